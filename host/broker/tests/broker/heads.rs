//! The head of each API's file says the versions that are served, and there is a file for each API.

use std::path::{Path, PathBuf};

use verbatim_wire::APIS;

#[test]
fn every_api_has_a_file_whose_head_says_its_versions() {
    let mut files: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('k'))
        .collect();
    files.sort_unstable();
    assert_eq!(files.len(), APIS.len());
    for (file, api) in files.iter().zip(APIS) {
        assert!(
            file.starts_with(&format!("k{:02}_", api.key.number())),
            "{file} is not of {}",
            api.key.name()
        );
        let text = std::fs::read_to_string(folder().join(file)).unwrap();
        let head = text.lines().next().unwrap_or_default();
        let (min, max) = (api.min, api.max);
        let ranges = if min == max {
            vec![format!(", v{min}")]
        } else {
            vec![format!("v{min} to v{max}"), format!("v{min} and v{max}")]
        };
        assert!(head.starts_with(&format!("//! {}, ", api.key.name())), "{file}: {head}");
        assert!(ranges.iter().any(|range| head.contains(range)), "{file}: {head}, expected {ranges:?}");
        assert!(!left_out(api.key.number()).is_empty(), "{file} does not say what is left out");
    }
}

/// What the head of an API's file says is left out: the words behind `Left out:`, up to the end of the head.
pub(crate) fn left_out(number: i16) -> String {
    let start = format!("k{number:02}_");
    let mut files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&start);
    let text = std::fs::read_to_string(files.find(is_it).unwrap()).unwrap();
    let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let head = head.join(" ");
    let (_, behind) = head.split_once("Left out: ").unwrap_or_default();
    behind.trim_end_matches('.').to_owned()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api")
}
