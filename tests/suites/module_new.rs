//! A module of one's own, as guest/kit/README.md has it: written, tested, built, swapped into a running host; and what that
//! host's log says when it panics. And other modules than `exact-mirroring`, one of them not in Rust.
//!
//! What it is built with lies in `target/modules`, so that only its first build takes long.

use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::Home;
use verbatim_tests::run::{Output, run};
use verbatim_tests::{BesideLog as _, announce, programs, wait_for, workspace};

const STORAGE_ERROR: i16 = 56;
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// The leader epoch at which the module of the last test panics.
const PANICS_AT: i32 = 12_345_678;

#[test]
fn a_new_module_is_tested_built_and_swapped() -> anyhow::Result<()> {
    let Some(module) = Module::new()? else { return Ok(()) };
    let tested = module.cargo(&["test"])?.success()?;
    ensure!(tested.contains("3 passed; 0 failed"), "{tested}");
    module.build()?;
    let inspected = module.verbatim(&["module", "inspect", "strict.wasm"])?.success()?;
    for line in ["module strict 0.1.0", "judges exact topics, normal topics", "rewrites records no"] {
        ensure!(inspected.lines().any(|one| one == line), "no {line:?} in {inspected}");
    }
    ensure!(inspected.contains("decides who may join the in-sync set no"), "{inspected}");
    let suites = ["module", "test", "strict.wasm", "scenarios.toml", "--suite", "contract"];
    module.verbatim(&suites)?.success()?;

    // The same core module, wrapped by hand.
    let core = module.core().display().to_string();
    module.verbatim(&["module", "wrap", &core, "-o", "again.wasm"])?.success()?;
    ensure!(module.file("again.wasm")? == module.file("strict.wasm")?, "wrapped otherwise");
    let twice = module.verbatim(&["module", "wrap", "strict.wasm", "-o", "twice.wasm"])?;
    ensure!(
        twice.status.code() == Some(1) && twice.stderr.contains("does not become a component"),
        "{twice}"
    );
    ensure!(!module.dir().join("twice.wasm").exists(), "a file of what cannot be used");

    swapped_and_panicking(&module)
}

/// The module serves as soon as it is swapped in; the next version of it panics, which its log tells with the place.
fn swapped_and_panicking(module: &Module) -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("strict", 1, &[EXACT])?;
    let client = Client::connect(host.address())?;
    let data = home.data().display().to_string();
    let swap = ["module", "swap", "exact-mirroring", "strict.wasm", "--data", &data];
    let write = |base: i64, before: i32, epoch: i32, values: &[&str]| -> anyhow::Result<i16> {
        let order = order((base, before), (0, base + 1_000), epoch);
        Ok(client.produce(("strict", 0), Some(&order), &batch(base, epoch, values)?)?.error_code)
    };
    ensure!(write(0, -1, 3, &["v"; 101])? == 0, "the rules before");
    module.verbatim(&swap)?.success().beside("the host", || host.log())?;
    ensure!(write(101, 3, 3, &["v"; 101])? == 87, "101 records");
    ensure!(write(101, 3, 3, &["v"; 100])? == 0, "100 records");

    let rules = module.dir().join("src/lib.rs");
    let before = "            if count > max {\n";
    let text = fs::read_to_string(&rules)?;
    ensure!(text.matches(before).count() == 1, "{text}");
    let panic = format!(
        "            assert!(batch.header.leader_epoch != {PANICS_AT}, \"epoch {{}}\", batch.header.leader_epoch);\n"
    );
    let line = text.lines().take_while(|line| !line.starts_with(before.trim_end())).count() + 1;
    fs::write(&rules, text.replace(before, &(panic + before)))?;
    module.build()?;
    module.verbatim(&swap)?.success().beside("the host", || host.log())?;
    ensure!(write(201, 3, PANICS_AT, &["v"])? == STORAGE_ERROR, "it panics");
    let told = format!("panic at src/lib.rs:{line}: epoch {PANICS_AT}");
    wait_for("line of the panic", PATIENCE, || Ok(host.log().contains(&told).then_some(())))
        .beside("the host", || host.log())?;
    ensure!(write(201, 3, 3, &["v"])? == 0, "it goes on");
    drop(client);
    host.stop()
}

#[test]
fn what_cannot_be_written_is_a_wrong_call() -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("verbatim-module-new-").tempdir()?;
    let new = |arguments: &[&str]| -> anyhow::Result<Output> {
        let mut command = Command::new(programs::verbatim()?);
        command.args(["module", "new"]).args(arguments).current_dir(folder.path());
        run(command.env_remove("VERBATIM_KIT"), b"")
    };
    for (arguments, told) in [
        (["Strict", "--kit", "https://example.org/kit"], "name=`Strict`"),
        (["a/b", "--kit", "https://example.org/kit"], "name=`a/b`"),
        (["strict", "--kit", "nowhere"], "kit=`nowhere`"),
    ] {
        let output = new(&arguments)?;
        ensure!(output.status.code() == Some(2) && output.stderr.contains(told), "{output}");
    }
    ensure!(fs::read_dir(folder.path())?.next().is_none(), "something was written");

    new(&["strict", "--kit", "https://example.org/kit"])?.success()?;
    let manifest = fs::read_to_string(folder.path().join("strict/Cargo.toml"))?;
    ensure!(manifest.contains("verbatim-kit = { git = \"https://example.org/kit\" }"), "{manifest}");
    let again = new(&["strict", "--kit", "https://example.org/kit"])?;
    ensure!(again.status.code() == Some(2) && again.stderr.contains("dir=`strict`"), "{again}");
    Ok(())
}

#[test]
fn modules_other_than_our_first_pass_what_they_are_held_to() -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("verbatim-module-others-").tempdir()?;
    let redact = folder.path().join("redact.wasm");
    fs::write(&redact, verbatim_artifact::redact()?)?;
    let in_c = workspace().join("tests/modules/c");
    let test = |module: &Path, arguments: &[&str]| {
        let mut command = Command::new(programs::verbatim()?);
        run(command.args(["module", "test"]).arg(module).args(arguments), b"")?.success()
    };
    // Without configuration it is `exact-mirroring`.
    test(&redact, &["--suite", "all"])?;
    let scenarios = in_c.join("scenarios.toml").display().to_string();
    let told = test(&in_c.join("checksum.wasm"), &[&scenarios, "--suite", "contract"])?;
    ensure!(told.starts_with("module checksum 0.1.0 "), "{told}");
    // It was built when the contract became 1.0.0, and is never built again.
    let told = test(&workspace().join("tests/modules/kept/kept.wasm"), &["--suite", "contract"])?;
    ensure!(told.starts_with("module kept 1 "), "{told}");
    Ok(())
}

/// A module that `verbatim module new` wrote into a folder of its own.
struct Module {
    folder: TempDir,
    target: PathBuf,
}

impl Module {
    /// None where there is nothing to build it with.
    fn new() -> anyhow::Result<Option<Self>> {
        let mut rustc = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
        rustc.args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"]);
        let library = run(&mut rustc, b"")?.success()?;
        if !Path::new(library.trim()).is_dir() {
            announce(
                "skipped: this toolchain has no target wasm32-unknown-unknown, which modules are built for",
            );
            return Ok(None);
        }
        let profile = programs::profile_folder()?;
        let target = profile.parent().context("the target folder")?.join("modules");
        let module =
            Self { folder: tempfile::Builder::new().prefix("verbatim-module-new-").tempdir()?, target };
        let kit = workspace().join("guest/kit").display().to_string();
        let dir = module.dir().display().to_string();
        let mut new = Command::new(programs::verbatim()?);
        new.args(["module", "new", "strict", "--kit", &kit, "--dir", &dir]);
        let told = run(&mut new, b"")?.success()?;
        ensure!(told.contains("verbatim module swap NAME strict.wasm --data DIR"), "{told}");
        // The versions that are here already: nothing is fetched.
        fs::copy(workspace().join("Cargo.lock"), module.dir().join("Cargo.lock"))?;
        Ok(Some(module))
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("strict")
    }

    fn file(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        Ok(fs::read(self.dir().join(name))?)
    }

    fn core(&self) -> PathBuf {
        self.target.join("wasm32-unknown-unknown/release/strict.wasm")
    }

    fn build(&self) -> anyhow::Result<()> {
        let built = self.verbatim(&["module", "build"])?.success()?;
        ensure!(built.starts_with("module strict 0.1.0 sha256:") && built.contains("strict.wasm"), "{built}");
        Ok(())
    }

    fn verbatim(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new(programs::verbatim()?);
        self.run(command.args(arguments))
    }

    fn cargo(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        self.run(Command::new(env!("CARGO")).args(arguments))
    }

    /// Runs a program in the module's folder, as an author would, but without a network.
    fn run(&self, command: &mut Command) -> anyhow::Result<Output> {
        command
            .current_dir(self.dir())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_NET_OFFLINE", "true");
        run(command, b"")
    }
}
