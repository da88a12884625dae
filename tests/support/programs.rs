//! Programs of this workspace, in the build profile of the running test. They are brought up to date once, which is nothing
//! to do under `make test`: other people's packages cannot depend on a binary.

use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A program that is built at its first use.
type Built = OnceLock<Result<PathBuf, String>>;

/// The `verbatim` command.
///
/// # Errors
/// If it cannot be built.
pub fn verbatim() -> anyhow::Result<&'static Path> {
    static BUILT: Built = OnceLock::new();
    built(&BUILT, "verbatim")
}

/// The example that `make demo` runs.
///
/// # Errors
/// If it cannot be built.
pub fn demo() -> anyhow::Result<&'static Path> {
    static BUILT: Built = OnceLock::new();
    built(&BUILT, "examples/demo")
}

fn built(built: &'static Built, file: &str) -> anyhow::Result<&'static Path> {
    let built = built.get_or_init(|| build(file).map_err(|error| format!("{error:#}")));
    built.as_deref().map_err(|error| anyhow::anyhow!("{error}"))
}

/// Builds both programs as `make build` does, so that nothing is compiled for other features, and gives one.
fn build(file: &str) -> anyhow::Result<PathBuf> {
    let folder = profile_folder()?;
    let target = folder.parent().context("no target folder")?;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--bin", "verbatim", "--example", "demo", "--profile", profile]);
    cargo.arg("--target-dir").arg(target).current_dir(crate::workspace());
    let output = cargo.output().with_context(|| format!("cannot run {cargo:?}"))?;
    ensure!(output.status.success(), "{cargo:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(folder.join(file))
}

/// Where cargo leaves what it builds in this profile. The running test lies in its folder `deps`.
///
/// # Errors
/// If it does not.
pub fn profile_folder() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    test.ancestors().nth(2).map(Path::to_path_buf).context("the test is not in a target folder")
}
