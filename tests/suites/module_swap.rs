//! Modules of a running host are swapped: nobody's request suffers, a bad module changes nothing, and what was chosen is
//! there after a restart.

#![expect(clippy::indexing_slicing, reason = "a JSON value that is not there is null")]

use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use verbatim_tests::BesideLog as _;
use verbatim_tests::exact::EXACT;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::run::Output;
use verbatim_tests::{soak, wait_for};

use writers::Writers;

mod abandoned;
mod crowded;
mod differences;
mod keys;
mod modes;
mod rollback;
mod writers;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn swaps_under_load_cost_nobody_anything() -> anyhow::Result<()> {
    let files = Files::new()?;
    let home = Home::new()?;
    let mut host = serving(&home)?;
    host.create_topic("busy", 3, &[EXACT])?;
    host.create_topic("plain", 1, &[])?;
    // Each kind of bad module comes twice at least.
    let swaps = if soak() { 1_000 } else { 2 * BAD_EVERY * BAD.len() };
    let writers = Writers::start(host.address())?;
    // Swaps that took place, and the calls that each generation before the one in service judged.
    let swapped = (1..=swaps).try_fold((0_u64, 0_u64), |(good, calls), number| {
        let bad = (number % BAD_EVERY == 0).then(|| BAD[number / BAD_EVERY % BAD.len()]);
        let file = bad.map_or_else(|| files.variant(u32::try_from(number)?), |(kind, _)| files.bad(kind))?;
        let output = swap(&home, &host, "exact-mirroring", &file, &[])?;
        let as_expected = match bad {
            None => output.status.success(),
            Some((_, problem)) => refused(&output, problem),
        };
        ensure!(as_expected, "swap {number}, expected {bad:?}: {output}");
        // Calls that began before the swap have ended when every writer has its next answer.
        writers.wait_for_progress()?;
        if bad.is_some() {
            return Ok((good, calls));
        }
        let status = only(&home, &host)?;
        let previous = &status["previous"];
        ensure!(previous["failures"] == 0 && previous["refusals"] == 0, "swap {number}: {status}");
        Ok((good + 1, calls + previous["calls"].as_u64().context("no calls")?))
    });
    let (good, calls) = swapped.beside("the host", || host.log())?;
    let written = writers.finish()?;
    let status = only(&home, &host)?;
    ensure!(status["generation"] == good + 1 && status["failures"] == 0, "{status}");
    let judged = calls + status["calls"].as_u64().context("no calls")?;
    ensure!(judged == written, "{written} requests were judged {judged} times");
    ensure!(host.is_running() && !host.log().contains("panicked"), "{}", host.log());
    host.stop()
}

#[test]
fn what_was_chosen_survives_a_restart_and_may_be_taken_back() -> anyhow::Result<()> {
    let files = Files::new()?;
    let home = Home::new()?;
    let host = serving(&home)?;
    let own = only(&home, &host)?["sha256"].clone();
    ensure!(
        refused(&ask(&home, &host, &["rollback", "exact-mirroring"])?, "before this one"),
        "nothing before"
    );
    let dry = swap(&home, &host, "exact-mirroring", &files.variant(1)?, &["--dry-run"])?.success()?;
    ensure!(dry.contains("nothing was changed") && only(&home, &host)?["sha256"] == own, "{dry}");
    swap(&home, &host, "exact-mirroring", &files.variant(1)?, &["--suite", "kafka"])?.success()?;
    let one = only(&home, &host)?["sha256"].clone();
    swap(&home, &host, "exact-mirroring", &files.variant(2)?, &[])?.success()?;
    let two = only(&home, &host)?["sha256"].clone();
    host.kill()?;

    let host = serving(&home)?;
    let status = only(&home, &host)?;
    ensure!(status["sha256"] == two && status["generation"] == 3, "{status}");
    ask(&home, &host, &["rollback", "exact-mirroring"])?.success()?;
    ensure!(only(&home, &host)?["sha256"] == one, "the one before");
    ensure!(
        refused(&ask(&home, &host, &["rollback", "exact-mirroring"])?, "was rolled back itself"),
        "no further"
    );
    host.stop()?;

    let host = serving(&home)?;
    ensure!(only(&home, &host)?["sha256"] == one, "a rollback is kept");
    let garbage = files.bad(Bad::Garbage)?;
    ensure!(!swap(&home, &host, "exact-mirroring", &garbage, &[])?.status.success(), "garbage");
    let history = json(&home, &host, &["history", "exact-mirroring"])?;
    let outcomes: Vec<&str> =
        history.as_array().into_iter().flatten().filter_map(|one| one["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["swapped", "swapped", "rolled-back", "refused"]);
    for sha256 in [&one, &two] {
        ensure!(stored(&home, sha256).is_file(), "{sha256}");
    }
    host.stop()?;

    // A file that is damaged costs the swap, not the host.
    fs::write(stored(&home, &one), b"damaged")?;
    let host = serving(&home)?;
    ensure!(only(&home, &host)?["sha256"] == own && host.log().contains("cannot be had"), "{}", host.log());
    host.stop()
}

#[test]
fn only_those_who_may_are_answered() -> anyhow::Result<()> {
    let files = Files::new()?;
    let token = files.folder.path().join("token");
    fs::write(&token, "0123456789abcdef\n")?;
    let token = token.to_str().context("not UTF-8")?.to_owned();
    let home = Home::new()?.arguments(&["--control-listen", "127.0.0.1:0", "--control-token-file", &token]);
    let host = serving(&home)?;
    let socket = fs::metadata(home.data().join("control.sock"))?;
    ensure!(socket.file_type().is_socket() && socket.permissions().mode() & 0o777 == 0o600, "{socket:?}");
    let log = host.log();
    let control = log
        .split(", control ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .context(log.clone())?;
    let told =
        host.verbatim(&["module", "status", "--control", control, "--control-token-file", &token], b"")?;
    ensure!(told.success()?.contains("exact-mirroring"), "with the token");
    let other = files.folder.path().join("other");
    fs::write(&other, "fedcba9876543210")?;
    let other = other.to_str().context("not UTF-8")?;
    let told =
        host.verbatim(&["module", "status", "--control", control, "--control-token-file", other], b"")?;
    ensure!(told.status.code() == Some(2) && told.stderr.contains("token"), "{told}");
    let unknown = swap(&home, &host, "nobody", &files.variant(1)?, &[])?;
    ensure!(unknown.status.code() == Some(2) && unknown.stderr.contains("nobody"), "{unknown}");
    host.stop()?;
    let nobody = host_less(&home)?;
    ensure!(nobody.status.code() == Some(1) && nobody.stderr.contains("no host serves there"), "{nobody}");
    Ok(())
}

/// What `verbatim module status` says where no host is.
fn host_less(home: &Home) -> anyhow::Result<Output> {
    let mut command = std::process::Command::new(verbatim_tests::programs::verbatim()?);
    verbatim_tests::run::run(command.args(["module", "status", "--data"]).arg(home.data()), b"")
}

/// Files of modules, good and bad.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> anyhow::Result<Self> {
        Ok(Self { folder: tempfile::Builder::new().prefix("verbatim-modules-").tempdir()? })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<PathBuf> {
        let file = self.folder.path().join(name);
        fs::write(&file, bytes)?;
        Ok(file)
    }

    /// The module `exact-mirroring` with another digest: a custom section says its number.
    fn variant(&self, number: u32) -> anyhow::Result<PathBuf> {
        let mut bytes = verbatim_artifact::exact_mirroring()?.to_vec();
        bytes.extend([0, 6, 1, b'n']);
        bytes.extend(number.to_be_bytes());
        self.write(&format!("variant-{number}.wasm"), &bytes)
    }

    /// A module that no host takes.
    fn bad(&self, kind: Bad) -> anyhow::Result<PathBuf> {
        let good = verbatim_artifact::exact_mirroring()?;
        let bytes = match kind {
            Bad::Empty => Vec::new(),
            Bad::Garbage => b"not a module".to_vec(),
            Bad::Cut => good.get(..good.len() / 2).context("short")?.to_vec(),
            Bad::OtherContract => renamed(good, b"@1.0.0", b"@7.1.0"),
            Bad::NoExport => renamed(good, b"produce-path@", b"produce-pith@"),
            Bad::SpinsAtStart => wat::parse_str(SPINS_AT_START)?,
            Bad::TrapsAtOnce => verbatim_artifact::hostile()?.to_vec(),
        };
        self.write("bad.wasm", &bytes)
    }
}

/// One swap in so many is one to a bad module.
const BAD_EVERY: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Bad {
    Empty,
    Garbage,
    Cut,
    OtherContract,
    NoExport,
    SpinsAtStart,
    TrapsAtOnce,
}

/// Each kind, and a part of what is said of it.
const BAD: [(Bad, &str); 7] = [
    (Bad::Garbage, "expected a WebAssembly component"),
    (Bad::Empty, "an empty file"),
    (Bad::Cut, "not valid"),
    (Bad::OtherContract, "is built for verbatim:produce/"),
    (Bad::NoExport, "does not export what verbatim:produce@1.0.0 asks for"),
    (Bad::SpinsAtStart, "exceeded its deadline"),
    (Bad::TrapsAtOnce, "does not pass the suite contract"),
];

/// A component whose start function does not return.
const SPINS_AT_START: &str = r#"(component
    (core module $m (func $spin (loop $again (br $again))) (start $spin) (func (export "f")))
    (core instance $i (instantiate $m))
    (func $f (canon lift (core func $i "f")))
    (instance $p (export "produce" (func $f)) (export "describe" (func $f)))
    (export "verbatim:produce/produce-path@1.0.0" (instance $p)))"#;

/// The same with other names, which are as long.
fn renamed<const N: usize>(module: &[u8], from: &[u8; N], to: &[u8; N]) -> Vec<u8> {
    let mut module = module.to_vec();
    for at in 0..module.len().saturating_sub(from.len()) {
        if let Some(found) = module.get_mut(at..at + from.len()).filter(|found| *found == from) {
            found.copy_from_slice(to);
        }
    }
    module
}

/// A host that takes questions: it says so in its log, a moment after it serves clients.
fn serving(home: &Home) -> anyhow::Result<Host> {
    let lines = |log: &str| log.matches(" serves on ").count();
    let before = lines(&home.log());
    let host = home.start()?;
    wait_for("line of the host", PATIENCE, || Ok((lines(&host.log()) > before).then_some(())))?;
    Ok(host)
}

fn ask(home: &Home, host: &Host, arguments: &[&str]) -> anyhow::Result<Output> {
    let data = home.data();
    let place = ["--data", data.to_str().context("not UTF-8")?];
    host.verbatim(&[&["module"], arguments, &place].concat(), b"")
}

fn json(home: &Home, host: &Host, arguments: &[&str]) -> anyhow::Result<Value> {
    let output = ask(home, host, &[arguments, &["--output", "json"]].concat())?;
    Ok(serde_json::from_str(&output.success()?)?)
}

fn swap(
    home: &Home,
    host: &Host,
    name: &str,
    file: &std::path::Path,
    more: &[&str],
) -> anyhow::Result<Output> {
    let file = file.to_str().context("not UTF-8")?;
    ask(home, host, &[&["swap", name, file], more].concat())
}

fn of(home: &Home, host: &Host, name: &str) -> anyhow::Result<Value> {
    let status = json(home, host, &["status"])?;
    let found = status.as_array().into_iter().flatten().find(|one| one["name"] == name);
    found.cloned().with_context(|| format!("no {name} in {status}"))
}

fn only(home: &Home, host: &Host) -> anyhow::Result<Value> {
    of(home, host, "exact-mirroring")
}

fn refused(output: &Output, why: &str) -> bool {
    output.status.code() == Some(1) && output.stderr.contains(why)
}

fn stored(home: &Home, sha256: &Value) -> PathBuf {
    home.data().join("modules").join(format!("{}.wasm", sha256.as_str().unwrap_or_default()))
}
