//! Builds the modules for wasm32 and wraps each as a component.
//!
//! The inner build uses one target folder, `<target>/guest`, whatever the outer profile, and none of the outer build's
//! flags, so that clippy, tests and release all find the modules built already. Without a compiler for wasm32 the build
//! succeeds and what it leaves is the command to run: see `compiler` below and `MissingModule` in `src/lib.rs`.

mod compiler;

use compiler::{Compiler, TARGET};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A module: the name its constant has in the generated file, its package, and what is its own, watched for changes.
struct Module {
    constant: &'static str,
    package: &'static str,
    sources: &'static [&'static str],
}

/// All that is built. A new module also gets a function in `src/lib.rs`.
const MODULES: &[Module] = &[
    Module {
        constant: "EXACT_MIRRORING",
        package: "exact-mirroring",
        sources: &["guest/Cargo.toml", "guest/src"],
    },
    Module {
        constant: "REDACT",
        package: "redact",
        sources: &["guest/redact/Cargo.toml", "guest/redact/src"],
    },
    #[cfg(feature = "hostile")]
    Module { constant: "HOSTILE", package: "hostile-module", sources: &["host/engine/tests/hostile"] },
    #[cfg(feature = "hostile")]
    Module { constant: "FLAWED", package: "flawed-module", sources: &["tests/modules/flawed"] },
];

/// What every module is made from.
const SHARED: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "guest/batch/Cargo.toml",
    "guest/batch/src",
    "guest/contract/Cargo.toml",
    "guest/contract/src",
    "guest/kit/Cargo.toml",
    "guest/kit/src",
    "guest/policy/Cargo.toml",
    "guest/policy/src",
    "wit",
];

/// The cargo profile of the modules, in the workspace's manifest.
const PROFILE: &str = "guest";

fn main() -> Result<(), String> {
    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    let workspace = workspace_dir()?;
    watch(&workspace);

    let mut generated = String::new();
    match compiler::find(&workspace)? {
        Ok(compiler) => {
            let target_dir = target_dir(&out_dir)?.join("guest");
            for module in MODULES {
                let core = build(module, &compiler, &workspace, &target_dir)?;
                let component = out_dir.join(format!("{}.wasm", module.package));
                fs::write(&component, componentize(module, &core)?)
                    .map_err(|error| format!("cannot write {}: {error}", component.display()))?;
                declare(&mut generated, module, &format!("Ok(include_bytes!({component:?}))"));
            }
        }
        Err(reason) => {
            println!("cargo::warning=the modules are not built: {reason}");
            for module in MODULES {
                declare(&mut generated, module, &format!("Err({reason:?})"));
            }
        }
    }
    let path = out_dir.join("modules.rs");
    fs::write(&path, generated).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Adds one module's constant to the generated file.
fn declare(generated: &mut String, module: &Module, value: &str) {
    let _ = writeln!(generated, "const {}: Result<&[u8], &str> = {value};", module.constant);
}

/// Names what the modules depend on, so that this script runs again only when one of those changed.
fn watch(workspace: &Path) {
    let sources = MODULES.iter().flat_map(|module| module.sources).chain(SHARED);
    for path in sources.map(|source| workspace.join(source)) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=compiler.rs");
}

/// Builds one module's core file; returns its bytes.
fn build(
    module: &Module,
    compiler: &Compiler,
    workspace: &Path,
    target_dir: &Path,
) -> Result<Vec<u8>, String> {
    let mut cargo = Command::new(variable("CARGO")?);
    // `rustc --crate-type`: a library that is also built as an rlib would get no link-time optimisation.
    cargo.args(["rustc", "--lib", "--crate-type", "cdylib", "--target", TARGET, "--profile", PROFILE]);
    cargo.args(["--package", module.package]).arg("--manifest-path").arg(workspace.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(target_dir);
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_outer)) {
        cargo.env_remove(name);
    }
    // Set and empty, it also overrides flags from configuration files, which are meant for the host.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", "");
    compiler.apply(&mut cargo);

    let status = cargo.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("building the module {} failed: {status}", module.package));
    }
    let file = format!("{}.wasm", module.package.replace('-', "_"));
    let path = target_dir.join(TARGET).join(PROFILE).join(file);
    fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// True for a variable that speaks of the outer build. What tells cargo where its home, its registry and its network
/// are, and the job server, stays.
fn is_outer(name: &str) -> bool {
    const KEPT: [&str; 8] = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_MAKEFLAGS",
        "CARGO_NET_",
        "CARGO_REGISTRIES_",
        "CARGO_REGISTRY_",
        "CARGO_SOURCE_",
        "CARGO_TERM_",
    ];
    const OUTER: [&str; 14] = [
        "CARGO",
        "CLIPPY_",
        "DEBUG",
        "DEP_",
        "HOST",
        "LD_",
        "NUM_JOBS",
        "OPT_LEVEL",
        "OUT_DIR",
        "PROFILE",
        "RUSTC",
        "RUSTDOC",
        "RUSTFLAGS",
        "TARGET",
    ];
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    starts(&OUTER) && !starts(&KEPT)
}

/// Wraps a core module as a component.
fn componentize(module: &Module, core: &[u8]) -> Result<Vec<u8>, String> {
    wit_component::ComponentEncoder::default()
        .validate(true)
        .module(core)
        .and_then(|encoder| encoder.encode())
        .map_err(|error| format!("the module {} does not become a component: {error:#}", module.package))
}

/// The outer build's target folder: above `[<triple>/]<profile>/build/<package>/out`.
fn target_dir(out_dir: &Path) -> Result<PathBuf, String> {
    let profile = out_dir
        .ancestors()
        .find(|path| path.ends_with("build"))
        .and_then(Path::parent)
        .ok_or_else(|| format!("OUT_DIR={} is not in a target folder", out_dir.display()))?;
    let triple = variable("TARGET")?;
    let above = profile.parent().unwrap_or(profile);
    let above = if above.ends_with(&triple) { above.parent().unwrap_or(above) } else { above };
    Ok(above.to_path_buf())
}

/// The workspace's folder: this package is `guest/artifact` in it.
fn workspace_dir() -> Result<PathBuf, String> {
    let manifest_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let workspace = manifest_dir.ancestors().nth(2).map(Path::to_path_buf);
    workspace.ok_or_else(|| format!("CARGO_MANIFEST_DIR={} is not guest/artifact", manifest_dir.display()))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}
