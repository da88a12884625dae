//! Without a compiler for wasm32 everything still builds; what needs a module fails then, with the command to run.

use anyhow::{Context, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use verbatim_tests::{programs, run, workspace};

/// A program that wants the module, with the crate that hands it over inside.
const PROGRAM: &str = r#"
#[path = "LIBRARY"]
mod artifact;

fn main() {
    match artifact::exact_mirroring() {
        Ok(bytes) => println!("{} bytes", bytes.len()),
        Err(missing) => println!("{missing}"),
    }
}
"#;

#[test]
fn the_build_succeeds_and_the_module_says_what_to_run() -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("verbatim-no-compiler-").tempdir()?;
    let out = folder.path().join("target/debug/build/x/out");
    fs::create_dir_all(&out)?;

    // A workspace without tools, and a toolchain without the target.
    let compiler = folder.path().join("rustc");
    fs::write(&compiler, format!("#!/bin/sh\necho {:?}\n", folder.path()))?;
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755))?;
    let mut script = Command::new(build_script()?);
    script.env("OUT_DIR", &out).env("RUSTC", &compiler).env("VERBATIM_WASM_COMPILER", "rustup");
    script.env("CARGO_MANIFEST_DIR", folder.path().join("guest/artifact"));
    script.env("HOST", "none").env("TARGET", "none");
    let printed = run::run(&mut script, b"")?.success()?;
    let reason = "no Rust compiler for wasm32-unknown-unknown was found; run `make setup`, then build again";
    let warning = format!("cargo::warning=the modules are not built: {reason}");
    ensure!(printed.lines().any(|line| line == warning), "no {warning:?} in {printed}");

    let program = folder.path().join("program.rs");
    let library = workspace().join("guest/artifact/src/lib.rs");
    fs::write(&program, PROGRAM.replace("LIBRARY", &library.display().to_string()))?;
    let built = program.with_extension("");
    let mut rustc = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
    rustc.args(["--edition", "2024", "--allow", "warnings", "-o"]).arg(&built).arg(&program);
    run::run(rustc.env("OUT_DIR", &out), b"")?.success()?;
    let told = run::run(&mut Command::new(built), b"")?.success()?;
    assert_eq!(told, format!("module `exact-mirroring` is not built: {reason}\n"));
    Ok(())
}

/// The build script of `guest/artifact`, as cargo built it last.
fn build_script() -> anyhow::Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(programs::profile_folder()?.join("build"))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let script = folder.join("build-script-build");
        if name.starts_with("verbatim-artifact-") && script.is_file() {
            found.push((fs::metadata(&script)?.modified()?, script));
        }
    }
    found.into_iter().max().map(|(_, script)| script).context("the build script is not there")
}
