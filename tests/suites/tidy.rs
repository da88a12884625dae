//! The rules of the house: what lies at the top, how long a file may be, what no file says.

use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};

/// Everything at the top level that is not a dot-file.
const TOP_LEVEL: &[&str] = &[
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "deny.toml",
    "docs",
    "guest",
    "host",
    "tests",
    "wit",
];

const FILE_LINES_MAX: usize = 500;

#[test]
fn the_top_level_holds_what_it_must_and_nothing_else() -> anyhow::Result<()> {
    let mut names: Vec<String> = fs::read_dir(verbatim_tests::workspace())?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, std::io::Error>>()?;
    names.retain(|name| !name.starts_with('.') && name != "target");
    names.sort();
    assert_eq!(names, TOP_LEVEL);
    Ok(())
}

#[test]
fn rust_files_are_short() -> anyhow::Result<()> {
    for_each_file(&["rs"], |path, text| {
        let lines = text.lines().count();
        ensure!(lines <= FILE_LINES_MAX, "{}: {lines} lines, at most {FILE_LINES_MAX}", path.display());
        Ok(())
    })
}

#[test]
fn nothing_is_left_to_do_and_no_lint_is_off_without_a_reason() -> anyhow::Result<()> {
    // Written apart, so that this file does not contain them.
    let forbidden = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX"), concat!("#[al", "low(")];
    for_each_file(&["rs", "wit", "sh", "py", "java", "md"], |path, text| {
        for (number, line) in (1..).zip(text.lines()) {
            let found = forbidden.iter().find(|word| line.contains(**word));
            ensure!(found.is_none(), "{}:{number}: {found:?}", path.display());
        }
        Ok(())
    })
}

#[test]
fn links_between_documents_lead_somewhere() -> anyhow::Result<()> {
    for_each_file(&["md"], |path, text| {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = file.is_empty() || file.contains("://") || file.contains(char::is_whitespace);
            let leads = elsewhere || path.parent().is_some_and(|folder| folder.join(file).exists());
            ensure!(leads, "{}: {target} is not there", path.display());
        }
        Ok(())
    })
}

fn for_each_file(
    extensions: &[&str],
    mut check: impl FnMut(&Path, &str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut folders = vec![verbatim_tests::workspace()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path: PathBuf = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "target" && name != ".git" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extensions.iter().any(|one| extension == *one))
            {
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                check(&path, &text)?;
                seen += 1;
            }
        }
    }
    ensure!(seen > 0, "no file was looked at");
    Ok(())
}
