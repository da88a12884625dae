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

mod writers;

const PATIENCE: Duration = Duration::from_secs(60);
#[test]
fn swaps_under_load_cost_nobody_anything() -> anyhow::Result<()> {
    let files = Files::new()?;
    let home = Home::new()?;
    let mut host = serving(&home)?;
    host.create_topic("busy", 3, &[EXACT])?;
    host.create_topic("plain", 1, &[])?;
    let swaps = if soak() { 1_000 } else { 20 };
    let writers = Writers::start(host.address())?;
    let swapped = (1..=swaps).try_fold(0_u64, |good, number| {
        let is_good = number % 4 != 0;
        let (file, problem) = if is_good { (files.variant(number)?, "") } else { files.bad(number)? };
        let output = swap(&home, &host, "exact-mirroring", &file, &[])?;
        ensure!(
            output.status.success() == is_good && output.stderr.contains(problem),
            "swap {number}: {output}"
        );
        writers.wait_for_progress()?;
        Ok(good + u64::from(is_good))
    });
    let good = swapped.beside("the host", || host.log())?;
    writers.finish()?;
    let status = only(&home, &host)?;
    ensure!(status["generation"] == good + 1 && status["failures"] == 0, "{status}");
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
    let (garbage, _) = files.bad(4)?;
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
fn a_shadow_period_names_each_difference_and_changes_nothing_meanwhile() -> anyhow::Result<()> {
    let files = Files::new()?;
    let home = Home::new()?;
    let host = serving(&home)?;
    host.create_topic("busy", 3, &[EXACT])?;
    host.create_topic("plain", 1, &[])?;
    let writers = Writers::start(host.address())?;
    let same =
        swap(&home, &host, "exact-mirroring", &files.variant(1)?, &["--shadow", "50", "--output", "json"])?;
    let same: Value = serde_json::from_str(&same.success()?)?;
    let shadow = &same["shadow"];
    ensure!(shadow["judged"].as_u64() >= Some(50) && shadow["different"] == 0, "{shadow}");
    ensure!(shadow["same"].as_u64() >= Some(1), "{shadow}");
    let before = only(&home, &host)?["sha256"].clone();
    // It judges normal topics alone, by their checksums.
    let other = verbatim_tests::workspace().join("tests/modules/c/checksum.wasm");
    let more = ["--shadow", "50", "--dry-run", "--output", "json"];
    let other: Value =
        serde_json::from_str(&swap(&home, &host, "exact-mirroring", &other, &more)?.success()?)?;
    let shadow = &other["shadow"];
    ensure!(shadow["different"].as_u64() >= Some(1), "{shadow}");
    let named = shadow["differences"].as_array().and_then(|all| all.first()).and_then(Value::as_str);
    ensure!(
        named.is_some_and(|named| named.contains("partition") && named.contains("candidate refuses")),
        "{shadow}"
    );
    ensure!(only(&home, &host)?["sha256"] == before, "a dry run swaps nothing");
    writers.finish()?;
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

    /// A module that no host takes, and a part of what it says.
    fn bad(&self, number: u32) -> anyhow::Result<(PathBuf, &'static str)> {
        let good = verbatim_artifact::exact_mirroring()?;
        let (bytes, problem) = match number / 4 % 4 {
            0 => (b"not a module".to_vec(), "expected a WebAssembly component"),
            1 => (good.get(..good.len() / 2).context("short")?.to_vec(), "not valid"),
            2 => (other_contract(good), "is built for"),
            _ => (Vec::new(), "an empty file"),
        };
        Ok((self.write("bad.wasm", &bytes)?, problem))
    }
}

/// The same for a contract that no host speaks: only the names of versions are changed.
fn other_contract(module: &[u8]) -> Vec<u8> {
    let (from, to) = (&b"@1.0.0"[..], &b"@7.1.0"[..]);
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
