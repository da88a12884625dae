//! The rules of the house: what lies at the top, which crate knows which, how long a file or a function may be, what no
//! file says.

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
const FUNCTION_LINES_MAX: usize = 70;

/// Each crate with those of this workspace that its library may use, as docs/ARCHITECTURE.md draws them.
const KNOWS: &[(&str, &[&str])] = &[
    ("guest", &["verbatim-kit"]),
    ("guest/artifact", &[]),
    ("guest/batch", &[]),
    ("guest/contract", &["verbatim-batch"]),
    ("guest/kit", &["verbatim-batch", "verbatim-contract", "verbatim-policy"]),
    ("guest/policy", &["verbatim-batch", "verbatim-contract"]),
    ("guest/redact", &["verbatim-kit"]),
    (
        "host",
        &[
            "verbatim-artifact",
            "verbatim-batch",
            "verbatim-broker",
            "verbatim-compression",
            "verbatim-engine",
            "verbatim-harness",
            "verbatim-log",
            "verbatim-mirror",
            "verbatim-policy",
            "verbatim-wire",
        ],
    ),
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
    ("host/compression", &["verbatim-batch"]),
    ("host/engine", &["verbatim-batch", "verbatim-contract"]),
    ("host/harness", &["verbatim-batch", "verbatim-compression", "verbatim-engine", "verbatim-wire"]),
    ("host/log", &["verbatim-batch", "verbatim-contract"]),
    ("host/mirror", &["verbatim-batch", "verbatim-compression", "verbatim-wire"]),
    ("host/wire", &["verbatim-batch"]),
];

/// Foreign crates that belong to one room alone.
const AT_HOME: &[(&str, &[&str])] = &[
    ("wasmtime", &["host/engine"]),
    ("wit-bindgen", &["guest/kit", "host/engine/tests/hostile"]),
    ("wit-component", &["guest/artifact", "host"]),
    ("kafka-protocol", &["host/broker", "host/wire"]),
    ("clap", &["host"]),
    ("tokio", &["host", "host/broker", "host/mirror", "host/wire", "tests"]),
    ("zstd", &["host/compression", "tests"]),
];

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
fn knowledge_runs_one_way() -> anyhow::Result<()> {
    let mut found = Vec::new();
    for_each_file(&["toml"], |path, text| {
        let folder = path.strip_prefix(verbatim_tests::workspace())?.parent().unwrap_or(Path::new(""));
        let folder = folder.display().to_string();
        if !path.ends_with("Cargo.toml") || folder.is_empty() {
            return Ok(());
        }
        let used = dependencies(text);
        for (name, rooms) in AT_HOME {
            let at_home = !used.contains(name) || rooms.contains(&folder.as_str());
            ensure!(at_home, "{folder} uses {name}, which belongs to {rooms:?}");
        }
        let Some((_, known)) = KNOWS.iter().find(|(crate_folder, _)| *crate_folder == folder) else {
            return Ok(());
        };
        let ours: Vec<&str> = used.into_iter().filter(|name| name.starts_with("verbatim")).collect();
        ensure!(ours == *known, "{folder} uses {ours:?}, and may use {known:?}");
        found.push(folder);
        Ok(())
    })?;
    found.sort();
    assert_eq!(found, KNOWS.iter().map(|(folder, _)| *folder).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn functions_are_short() -> anyhow::Result<()> {
    let mut functions = 0;
    for_each_file(&["rs"], |path, text| {
        let lines: Vec<&str> = text.lines().collect();
        for (first, _) in lines.iter().enumerate().filter(|(_, line)| is_function(line.trim_start())) {
            let (at, rest) = (first.saturating_add(1), lines.get(first..).unwrap_or_default());
            let len = function_len(rest).with_context(|| format!("{}:{at}: no end", path.display()))?;
            let short = len <= FUNCTION_LINES_MAX;
            ensure!(short, "{}:{at}: {len} lines, at most {FUNCTION_LINES_MAX}", path.display());
            functions += 1;
        }
        Ok(())
    })?;
    ensure!(functions > 1_000, "only {functions} functions were seen");
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
    no_file_says(&["rs", "wit", "sh", "py", "java", "md"], &forbidden)
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() -> anyhow::Result<()> {
    let forbidden =
        [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/tm", "p/"), concat!("/wo", "rk/")];
    no_file_says(&["rs", "wit", "sh", "py", "java", "md", "toml", "xml", "txt", "properties"], &forbidden)
}

#[test]
fn every_item_of_the_contract_is_documented() -> anyhow::Result<()> {
    let mut items = 0;
    for_each_file(&["wit"], |path, text| {
        let mut before = "";
        // Since when it is there stands between an item and its words.
        let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.starts_with('@'));
        for (number, line) in lines {
            let word = line.split([' ', ';']).next().unwrap_or_default();
            let is_item = !matches!(word, "" | "}" | "///" | "//" | "package" | "use" | "import" | "export");
            ensure!(!is_item || before.starts_with("///"), "{}:{number}: no word on {line}", path.display());
            items += usize::from(is_item);
            before = line;
        }
        Ok(())
    })?;
    ensure!(items > 100, "only {items} items were seen");
    Ok(())
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

#[test]
fn every_suite_and_benchmark_has_its_words() -> anyhow::Result<()> {
    let tests = verbatim_tests::workspace().join("tests");
    let readme = fs::read_to_string(tests.join("README.md"))?;
    let main = fs::read_to_string(tests.join("suites/main.rs"))?;
    let row = |line: &'_ str| Some(line.strip_prefix("| `")?.split_once("` | ")?.0.to_owned());
    let is_suite = |name: &String| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    let mut rows: Vec<String> = readme.lines().filter_map(row).filter(is_suite).collect();
    rows.sort();
    let suites = main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    assert_eq!(rows, suites.collect::<Vec<_>>());
    for bench in fs::read_dir(tests.join("benches"))? {
        let word = format!("`benches/{}`", bench?.file_name().to_string_lossy());
        ensure!(readme.contains(&word), "tests/README.md has no word on {word}");
    }
    Ok(())
}

fn no_file_says(extensions: &[&str], forbidden: &[&str]) -> anyhow::Result<()> {
    for_each_file(extensions, |path, text| {
        for (number, line) in (1..).zip(text.lines()) {
            let found = forbidden.iter().find(|word| line.contains(**word));
            ensure!(found.is_none(), "{}:{number}: {found:?}", path.display());
        }
        Ok(())
    })
}

/// What a manifest names as dependencies of its library or build script, sorted; not what only its tests use.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut within = false;
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            within = section.trim_end_matches(']').rsplit('.').next() == Some("dependencies")
                || section == "build-dependencies]";
        } else if within && !line.starts_with('#') {
            names.extend(line.split(['.', ' ', '=']).next().filter(|name| !name.is_empty()));
        }
    }
    names.sort_unstable();
    names
}

/// True for a line of code that a function begins with.
fn is_function(code: &str) -> bool {
    let private = code.strip_prefix("pub").unwrap_or(code);
    let private =
        private.strip_prefix('(').and_then(|scope| scope.split_once(')')).map_or(private, |(_, rest)| rest);
    let name = private.split(['(', '<']).next().unwrap_or_default();
    let before = name.trim_start().rsplit_once(' ').map(|(before, _)| before);
    before
        .is_some_and(|words| words.split(' ').all(|word| ["const", "async", "unsafe", "fn"].contains(&word)))
        && before.is_some_and(|words| words.ends_with("fn"))
}

/// The number of lines of a function that the first of these lines begins.
fn function_len(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?;
    if first.ends_with([';', '}']) {
        return Some(1);
    }
    // rustfmt puts the closing brace, or parenthesis of a mere declaration, under the function's first letter.
    let indent = first.len().saturating_sub(first.trim_start().len());
    let (body, declaration) = (" ".repeat(indent) + "}", " ".repeat(indent) + ")");
    let ends = |line: &&str| **line == body || line.starts_with(&declaration) && line.ends_with(';');
    lines.iter().position(ends).map(|last| last.saturating_add(1))
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
