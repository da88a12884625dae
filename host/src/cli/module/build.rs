//! Makes modules' files: of a crate, or of a core module that any compiler made.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::super::output::Output;

/// Build a module of a crate in Rust, by cargo for wasm32, and wrap it as a component
#[derive(Debug, Args)]
pub(in super::super) struct Build {
    /// The crate's folder
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// The module's file [default: the crate's folder and name]
    #[arg(short = 'o', long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Wrap a core module, which has the contract's types in a custom section, as a component
#[derive(Debug, Args)]
pub(in super::super) struct Wrap {
    /// What a compiler for wasm32 made
    core: PathBuf,
    /// The module's file
    #[arg(short = 'o', long, value_name = "FILE")]
    out: PathBuf,
}

/// What modules are built for.
const TARGET: &str = "wasm32-unknown-unknown";

#[derive(Serialize)]
struct Made<'a> {
    file: &'a Path,
    bytes: usize,
    name: &'a str,
    version: &'a str,
    sha256: String,
}

impl Build {
    pub(super) fn run(self, output: Output) -> anyhow::Result<()> {
        let core = compiled(&self.dir.join("Cargo.toml"))?;
        let named = || core.file_stem().map(|stem| stem.to_string_lossy().replace('_', "-") + ".wasm");
        let dir = self.dir.strip_prefix(".").unwrap_or(&self.dir);
        let out = self.out.or_else(|| Some(dir.join(named()?))).context("the core module has a name")?;
        wrap(&core, &out, output)
    }
}

impl Wrap {
    pub(super) fn run(self, output: Output) -> anyhow::Result<()> {
        wrap(&self.core, &self.out, output)
    }
}

/// Has cargo build the crate; where the core module is.
fn compiled(manifest: &Path) -> anyhow::Result<PathBuf> {
    let shown = manifest.display();
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // `rustc --crate-type`: a library that is also built for tests would get no link-time optimisation.
    cargo.args(["rustc", "--lib", "--crate-type", "cdylib", "--release", "--target", TARGET]);
    cargo.args(["--message-format", "json-render-diagnostics", "--manifest-path"]).arg(manifest);
    let done = cargo.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(
        done.status.success(),
        "cargo did not build the module, manifest=`{shown}`: {}; its target is added by `rustup target add {TARGET}`",
        done.status
    );
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    let core = told.lines().filter_map(|line| core_module(&serde_json::from_str(line).ok()?)).next_back();
    core.with_context(|| format!("the crate has no library of type cdylib, manifest=`{shown}`"))
}

/// The core module that a message of cargo's names.
fn core_module(message: &Value) -> Option<PathBuf> {
    let files = message.get("filenames")?.as_array()?;
    files
        .iter()
        .filter_map(Value::as_str)
        .map(PathBuf::from)
        .find(|file| file.extension().is_some_and(|it| it == "wasm"))
}

/// Wraps a core module, checks that it can be used, and writes it.
fn wrap(core: &Path, out: &Path, output: Output) -> anyhow::Result<()> {
    let component = component(&super::read(core)?)
        .with_context(|| format!("does not become a component, file=`{}`", core.display()))?;
    let module = super::load(core, &component)?;
    write(&component, &module, out, output)
}

/// Writes a module's file and says what it is.
pub(super) fn write(
    component: &[u8],
    module: &super::Loaded,
    out: &Path,
    output: Output,
) -> anyhow::Result<()> {
    fs::write(out, component).with_context(|| format!("cannot write, out=`{}`", out.display()))?;
    let inspection = module.inspect();
    let made = Made {
        file: out,
        bytes: component.len(),
        name: &inspection.description.name,
        version: &inspection.description.version,
        sha256: inspection.digest.to_string(),
    };
    output.write(&made, || format!("{}\n{}", super::title(inspection), out.display()))
}

fn component(core: &[u8]) -> anyhow::Result<Vec<u8>> {
    wit_component::ComponentEncoder::default().validate(true).module(core)?.encode()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cargo_names_the_core_module() {
        let message = |files| json!({ "reason": "compiler-artifact", "filenames": files });
        assert_eq!(core_module(&message(json!(["a/libb.rlib", "a/b.wasm"]))), Some("a/b.wasm".into()));
        assert_eq!(core_module(&message(json!(["a/libb.rlib"]))), None);
        assert_eq!(core_module(&json!({ "reason": "build-finished", "success": true })), None);
    }

    #[test]
    fn what_is_no_core_module_is_not_wrapped() {
        for bytes in [&b""[..], b"\0asm\x01\0\0\0", b"\0asm\x0d\0\x01\0", &[0xFF; 64]] {
            let made = component(bytes).and_then(|component| super::super::load(Path::new("x"), &component));
            assert!(made.is_err(), "{bytes:?}");
        }
    }
}
