//! Begins a module of one's own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::super::output::Output;
use super::super::values;

/// Write the crate of a new module in Rust: a rule to begin with, its tests and scenarios
#[derive(Debug, Args)]
pub(in super::super) struct New {
    /// The module's name: small letters, digits and hyphens, first a letter
    name: String,
    /// The folder to make [default: the name]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Where the library for modules is: the folder guest/kit of this project, or the URL of a git repository that has it
    #[arg(long, env = "VERBATIM_KIT", value_name = "DIR|URL")]
    kit: Option<String>,
}

/// The files of a new module; what they have in the place of its name and of its dependency is in [`NAME`] and [`KIT`].
const FILES: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("../../../../guest/kit/template/manifest.toml")),
    ("src/lib.rs", include_str!("../../../../guest/kit/template/lib.rs")),
    ("scenarios.toml", include_str!("../../../../guest/kit/template/scenarios.toml")),
    (".gitignore", include_str!("../../../../guest/kit/template/gitignore")),
];

const NAME: &str = "MODULE_NAME";
const KIT: &str = "{ KIT }";

/// Where the kit lies in this project's sources, if this command still lies beside those that it was built from.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../guest/kit");

/// The longest name: it becomes part of file names and property keys.
const NAME_LEN_MAX: usize = 64;

#[derive(Serialize)]
struct Written<'a> {
    name: &'a str,
    dir: &'a Path,
    files: Vec<&'a str>,
    kit: &'a str,
}

impl New {
    pub(super) fn run(self, output: Output) -> anyhow::Result<()> {
        let name = &self.name;
        if !is_name(name) {
            let expected = format!(
                "1 to {NAME_LEN_MAX} small letters, digits and hyphens, the first a letter, the last no hyphen"
            );
            return Err(values::wrong("module new", "name", name, &expected).into());
        }
        let kit = self.kit()?;
        let dir = self.dir.clone().unwrap_or_else(|| PathBuf::from(name));
        if dir.exists() {
            let expected = "a folder that is not there yet";
            return Err(values::wrong("module new", "dir", &dir.display().to_string(), expected).into());
        }
        for (file, template) in FILES {
            let path = dir.join(file);
            let text = template.replace(NAME, name).replace(KIT, &format!("{{ {kit} }}"));
            path.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::write(&path, text))
                .with_context(|| format!("cannot write, file=`{}`", path.display()))?;
        }
        let files = FILES.iter().map(|(file, _)| *file).collect();
        let written = Written { name, dir: &dir, files, kit: &kit };
        output.write(&written, || {
            let shown = dir.display();
            format!(
                "module {name} is in {shown}; there:\n  cargo test\n  verbatim module build\n  \
                 verbatim module swap NAME {name}.wasm --data DIR"
            )
        })
    }

    /// How the manifest names the kit: `path = ".."` or `git = ".."`.
    fn kit(&self) -> anyhow::Result<String> {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let place = self.kit.as_deref().unwrap_or(BUILT_FROM);
        if place.contains("://") {
            return Ok(format!("git = {}", quoted(place)));
        }
        let path = Path::new(place).canonicalize().ok().filter(|path| path.join("Cargo.toml").is_file());
        let path = path.as_deref().and_then(Path::to_str);
        let expected = "the folder guest/kit of this project, or the URL of a git repository that has it (--kit DIR|URL)";
        let path = path.ok_or_else(|| values::wrong("module new", "kit", place, expected))?;
        Ok(format!("path = {}", quoted(path)))
    }
}

/// Whether cargo takes it as a package, and a topic's setting can begin with it.
fn is_name(name: &str) -> bool {
    let legal = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    name.len() <= NAME_LEN_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_for_packages_and_settings() {
        for name in ["a", "strict", "one-record", "v2", &"a".repeat(NAME_LEN_MAX)] {
            assert!(is_name(name), "{name}");
        }
        for name in
            ["", "A", "2a", "-a", "a-", "a_b", "a.b", "a/b", "..", "größe", &"a".repeat(NAME_LEN_MAX + 1)]
        {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn every_file_has_its_places_filled() {
        let has = |wanted: &str| FILES.iter().filter(|(_, template)| template.contains(wanted)).count();
        assert_eq!((has(NAME), has(KIT)), (3, 1));
    }
}
