//! The house rules that a reader relies on: short files, short functions, one direction of knowledge, unsafe in its place.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// "About 500": a file beyond this is more than one idea.
const FILE_LINES_MAX: usize = 560;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_CHARS_MAX: usize = 125;

/// Who may know whom inside the workspace (ARCHITECTURE.md draws it). Development dependencies are free.
const KNOWS: &[(&str, &[&str])] = &[
    ("guest", &["verbatim-batch", "verbatim-contract", "verbatim-policy"]),
    ("guest/artifact", &[]),
    ("guest/batch", &[]),
    ("guest/contract", &["verbatim-batch"]),
    ("guest/policy", &["verbatim-batch", "verbatim-contract"]),
    ("host/compression", &["verbatim-batch"]),
    ("host/engine", &["verbatim-batch", "verbatim-contract"]),
    ("host/harness", &["verbatim-batch", "verbatim-compression", "verbatim-contract", "verbatim-engine"]),
    ("host/log", &["verbatim-batch", "verbatim-contract"]),
    ("host/wire", &[]),
    (
        "host/broker",
        &[
            "verbatim-batch",
            "verbatim-compression",
            "verbatim-contract",
            "verbatim-engine",
            "verbatim-log",
            "verbatim-wire",
        ],
    ),
];

/// Files that may hold `unsafe`, each reviewed.
const UNSAFE_IN: &[&str] = &["guest/src/bindings.rs"];

#[test]
fn files_and_functions_stay_short() -> Result<()> {
    let mut faults = Vec::new();
    for path in rust_files()? {
        let text = fs::read_to_string(root().join(&path))?;
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            faults.push(format!("{path}: {lines} lines, at most {FILE_LINES_MAX}"));
        }
        for (number, line) in text.lines().enumerate() {
            if line.chars().count() > LINE_CHARS_MAX {
                faults.push(format!("{path}:{}: longer than {LINE_CHARS_MAX} characters", number + 1));
            }
        }
        faults.extend(long_functions(&text).into_iter().map(|fault| format!("{path}:{fault}")));
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

#[test]
fn unsafe_stays_in_its_files() -> Result<()> {
    for path in rust_files()? {
        let text = fs::read_to_string(root().join(&path))?;
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let found = code.into_iter().any(|line| line.contains("unsafe {") || line.contains("unsafe fn"));
        ensure!(!found || UNSAFE_IN.contains(&path.as_str()), "{path} holds unsafe code");
    }
    Ok(())
}

#[test]
fn knowledge_runs_one_way() -> Result<()> {
    let allowed: BTreeMap<_, _> = KNOWS.iter().copied().collect();
    for (folder, known) in allowed {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).context(folder)?;
        for name in internal_dependencies(&manifest) {
            ensure!(known.contains(&name.as_str()), "{folder} may not depend on {name}");
        }
    }
    Ok(())
}

#[test]
fn every_crate_takes_the_common_lints() -> Result<()> {
    for path in tracked("Cargo.toml")?.iter().filter(|path| path.contains('/')) {
        let text = fs::read_to_string(root().join(path))?;
        ensure!(text.contains("[lints]\nworkspace = true"), "{path} has lints of its own");
    }
    Ok(())
}

/// `line: name` of each function that is longer than the limit. The formatter guarantees that a function's closing brace
/// stands in the column where its first line began.
fn long_functions(text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if !is_function(code) || code.ends_with(';') || code.ends_with('}') {
            continue;
        }
        let closing = format!("{}}}", &line[..line.len() - code.len()]);
        let length = lines[start..].iter().position(|line| **line == closing).map_or(0, |end| end + 1);
        if length > FUNCTION_LINES_MAX {
            found.push(format!("{}: {length} lines, at most {FUNCTION_LINES_MAX}: {code}", start + 1));
        }
    }
    found
}

fn is_function(code: &str) -> bool {
    let words = code.split_whitespace().take_while(|word| !word.contains('(') || *word == "pub(crate)");
    let before_name: Vec<_> = words.collect();
    let modifiers = ["pub", "pub(crate)", "pub(super)", "async", "const", "extern", "\"C\"", "fn"];
    code.contains("fn ")
        && before_name.iter().take_while(|word| modifiers.contains(word)).any(|word| *word == "fn")
}

/// The workspace's own crates among a manifest's dependencies, target-specific ones included.
fn internal_dependencies(manifest: &str) -> Vec<String> {
    let mut counted = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            counted = line.ends_with("dependencies]") && !line.contains("dev-") && !line.contains("build-");
        } else if counted && line.starts_with("verbatim") {
            names.extend(line.split(['.', ' ', '=']).next().map(str::to_owned));
        }
    }
    names
}

fn rust_files() -> Result<Vec<String>> {
    tracked("*.rs")
}

fn tracked(pattern: &str) -> Result<Vec<String>> {
    let output = Command::new("git").args(["ls-files", "--", pattern]).current_dir(root()).output()?;
    ensure!(output.status.success(), "git ls-files failed: {}", String::from_utf8_lossy(&output.stderr));
    let files: Vec<_> = String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect();
    ensure!(!files.is_empty(), "no file matches {pattern}");
    Ok(files.into_iter().filter(|path| root().join(path).exists()).collect())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
