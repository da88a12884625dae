//! The head of each API's file says the versions that are served, and there is a file for each API.

use std::path::Path;

use verbatim_wire::APIS;

#[test]
fn every_api_has_a_file_whose_head_says_its_versions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api");
    let mut files: Vec<String> = std::fs::read_dir(folder.clone())
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
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let head = text.lines().next().unwrap_or_default();
        let (min, max) = (api.min, api.max);
        let ranges = if min == max {
            vec![format!(", v{min}")]
        } else {
            vec![format!("v{min} to v{max}"), format!("v{min} and v{max}")]
        };
        assert!(head.starts_with(&format!("//! {}, ", api.key.name())), "{file}: {head}");
        assert!(ranges.iter().any(|range| head.contains(range)), "{file}: {head}, expected {ranges:?}");
        assert!(text.contains("//! Left out: "), "{file} does not say what is left out");
    }
}
