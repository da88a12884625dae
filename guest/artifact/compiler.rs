//! Finds a Rust compiler that can build for wasm32.
//!
//! Two kinds will do: the current toolchain if it has the target's standard library (`rustup target add`), else a
//! distribution's compiler that comes with the standard library's source (Debian: `rustc-web` and `rust-web-src`), whose
//! standard library is then built along with the module.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules' target.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// `rustup` or `distribution`: use that kind of compiler only.
const CHOICE: &str = "VERBATIM_WASM_COMPILER";

/// Where `make setup` unpacks a distribution's compiler, in the workspace; and where the distribution itself has it.
const DISTRIBUTION: [&str; 2] = ["target/tools/rustc-web/rustc", "/usr/bin/rustc"];

/// A compiler for wasm32.
pub(crate) enum Compiler {
    /// The current toolchain, which has the target's standard library.
    Toolchain(PathBuf),
    /// A compiler that has the standard library's source; the linker is the current toolchain's.
    Distribution { rustc: PathBuf, linker: PathBuf },
}

impl Compiler {
    /// Makes a cargo command use this compiler.
    pub(crate) fn apply(&self, cargo: &mut Command) {
        match self {
            Self::Toolchain(rustc) => {
                cargo.env("RUSTC", rustc);
            }
            Self::Distribution { rustc, linker } => {
                cargo.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
                cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
                cargo.args(["-Z", "build-std=std,panic_abort"]);
            }
        }
    }
}

/// Looks for a compiler. The inner error says why there is none and what to run.
pub(crate) fn find(workspace: &Path) -> Result<Result<Compiler, String>, String> {
    println!("cargo::rerun-if-env-changed={CHOICE}");
    let choice = env::var(CHOICE).unwrap_or_default();
    let (toolchain, distribution) = match choice.as_str() {
        "" => (true, true),
        "rustup" => (true, false),
        "distribution" => (false, true),
        _ => return Err(format!("{CHOICE}={choice}: must be `rustup` or `distribution`")),
    };
    let rustc = PathBuf::from(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let sysroot = ask(&rustc, &["--print", "sysroot"]).map(PathBuf::from);
    let sysroot = sysroot.ok_or_else(|| format!("{} --print sysroot failed", rustc.display()))?;

    let target_lib = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    if toolchain && has_std(&target_lib) {
        return Ok(Ok(Compiler::Toolchain(rustc)));
    }
    if distribution {
        let linker =
            sysroot.join("lib/rustlib").join(env::var("HOST").unwrap_or_default()).join("bin/rust-lld");
        let found = DISTRIBUTION.iter().map(|path| workspace.join(path)).find(|rustc| has_source(rustc));
        if let Some(rustc) = found.filter(|_| linker.exists()) {
            return Ok(Ok(Compiler::Distribution { rustc, linker }));
        }
    }
    // A path that does not exist makes cargo run the script again each time, until there is a compiler.
    println!("cargo::rerun-if-changed={}", target_lib.join("absent").display());
    Ok(Err(format!("no Rust compiler for {TARGET} was found; run `make setup`, then build again")))
}

/// True if the target's standard library is there.
fn has_std(target_lib: &Path) -> bool {
    let files = target_lib.read_dir().into_iter().flatten().flatten();
    files.map(|file| file.file_name()).any(|name| name.to_string_lossy().starts_with("libstd-"))
}

/// True if this compiler runs, has the standard library's source, and is new enough for the modules.
fn has_source(rustc: &Path) -> bool {
    let Some(sysroot) = ask(rustc, &["--print", "sysroot"]) else { return false };
    let Some(version) = ask(rustc, &["--version"]) else { return false };
    let wanted = env::var("CARGO_PKG_RUST_VERSION").unwrap_or_default();
    let number = version.split_whitespace().nth(1).unwrap_or_default();
    Path::new(&sysroot).join("lib/rustlib/src/rust/library/std").exists() && parts(number) >= parts(&wanted)
}

/// `1.96.0` as (1, 96); what is no number is 0.
fn parts(version: &str) -> (u32, u32) {
    let mut numbers = version.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// A compiler's answer, if it runs and succeeds.
fn ask(rustc: &Path, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(rustc).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
