//! What a host says about where it runs: too few open files, and an address at which its own mirrors do not reach it.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;
use verbatim_tests::BesideLog as _;
use verbatim_tests::host::{Home, Host, free_address};

/// How long a line may take to come.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for a line of the host's log that has all of this.
fn told(host: &Host, parts: &[&str]) -> anyhow::Result<()> {
    let has_all = |line: &str| parts.iter().all(|part| line.contains(part));
    let found = verbatim_tests::wait_for("line in the log", PATIENCE, || {
        Ok(host.log().lines().any(has_all).then_some(()))
    });
    found.with_context(|| format!("{parts:?}")).beside("the host", || host.log())
}

#[test]
fn a_host_with_too_few_open_files_says_so_and_what_to_do() -> anyhow::Result<()> {
    let home = Home::new()?.open_files(100, 200);
    let host = home.start()?;
    // The soft limit was raised; 1,000 connections, 600 others, no partition yet.
    told(&host, &["WARN", "soft=200", "hard=\"200\"", "needed=1600", "raise the hard limit"])?;
    // Whether the command hears of it is the host's affair; whoever looks into the log does.
    host.verbatim(&["topic", "create", "wide", "--partitions", "300"], b"")?;
    told(&host, &["Too many open files", "raise the process's hard limit of open files"])?;
    Ok(())
}

#[test]
fn an_address_at_which_mirrors_do_not_reach_their_own_host_is_told_once() -> anyhow::Result<()> {
    let (folder, advertised) = (TempDir::new()?, free_address()?);
    let file = folder.path().join("verbatim.toml");
    fs::write(&file, "[[serve.mirror]]\nname = 'eu'\nsource = '127.0.0.1:1'\ntopics = ['orders']\n")?;
    let file = file.to_str().context("a path that is no text")?;
    let home = Home::new()?.arguments(&["--config-file", file, "--advertise", &advertised.to_string()]);
    let host = home.start()?;
    let address = format!("advertise=\"{advertised}\"");
    let unreachable = ["WARN", "cannot reach their own host", &address, "advertise one that this machine"];
    told(&host, &unreachable)?;
    let listener = TcpListener::bind(advertised)?;
    told(&host, &["INFO", "mirrors reach their own host again", &address])?;
    let log = host.log();
    let count = log.lines().filter(|line| line.contains("cannot reach their own host")).count();
    anyhow::ensure!(count == 1, "told {count} times: {log}");
    drop(listener);
    host.stop()
}
