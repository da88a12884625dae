//! The host under test: the real `verbatim serve`, on a free loopback port.

use crate::programs;
use crate::run::{self, Output};
use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How long a host may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running host. Dropping it kills it.
#[derive(Debug)]
pub struct Host {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

/// A data folder that is removed with it, and what a host in it is started with.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
    address: SocketAddr,
    limits: Vec<String>,
    arguments: Vec<String>,
    environment: Option<(&'static str, &'static str)>,
}

impl Home {
    /// An empty home with a free port, which every host started in it listens on.
    ///
    /// # Errors
    /// If there is no room or no port.
    pub fn new() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("verbatim-test-").tempdir()?;
        let address = free_address()?;
        Ok(Self { folder, address, limits: Vec::new(), arguments: Vec::new(), environment: None })
    }

    /// Limits the host's address space, in bytes.
    pub fn address_space(mut self, bytes: u64) -> Self {
        self.limits.push(format!("--as={bytes}"));
        self
    }

    /// Limits the host's open files, softly and hard.
    pub fn open_files(mut self, soft: u64, hard: u64) -> Self {
        self.limits.push(format!("--nofile={soft}:{hard}"));
        self
    }

    /// A variable, by name and value, that every host gets beside this process's own.
    pub fn environment(mut self, variable: (&'static str, &'static str)) -> Self {
        self.environment = Some(variable);
        self
    }

    /// More arguments for `verbatim serve`.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(ToString::to_string));
        self
    }

    /// No more arguments than what every host gets.
    pub fn without_arguments(mut self) -> Self {
        self.arguments.clear();
        self
    }

    /// The host's data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What all hosts of this home have printed so far.
    pub fn log(&self) -> String {
        read_log(&self.log_file())
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("host.log")
    }

    /// Starts a host and waits until it takes connections.
    ///
    /// # Errors
    /// With the host's log, if it ends or takes too long.
    pub fn start(&self) -> anyhow::Result<Host> {
        let log = self.log_file();
        let mut command = if self.limits.is_empty() {
            Command::new(programs::verbatim()?)
        } else {
            // Limits are set by prlimit, which then becomes the host.
            let mut command = Command::new("prlimit");
            command.args(&self.limits).arg(programs::verbatim()?);
            command
        };
        command.arg("serve").arg("--data").arg(self.data()).envs(self.environment);
        command.args(["--listen", &self.address.to_string()]).args(&self.arguments);
        let output = File::options().append(true).create(true).open(&log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let mut host = Host { child, address: self.address, log };
        match host.wait_until_ready() {
            Ok(()) => Ok(host),
            Err(error) => Err(error.context(format!("{command:?}\n--- log\n{}", host.log()))),
        }
    }
}

impl Host {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as text, for command lines.
    pub fn bootstrap(&self) -> String {
        self.address.to_string()
    }

    /// What all hosts of this home have printed so far.
    pub fn log(&self) -> String {
        read_log(&self.log)
    }

    /// Where it tells metrics, as the last host of this home printed it. For hosts with `--metrics-listen`.
    ///
    /// # Errors
    /// If it does not print it in time.
    pub fn metrics_address(&self) -> anyhow::Result<SocketAddr> {
        crate::wait_for("address of the metrics", PATIENCE, || {
            let log = self.log();
            let address = log.lines().rev().find_map(|line| line.rsplit_once(", metrics "));
            Ok(address.and_then(|(_, address)| address.parse().ok()))
        })
    }

    /// True while it runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// A figure of `/proc/<pid>/status`, such as `VmRSS`, in KiB.
    ///
    /// # Errors
    /// If the host does not run or the figure is not there.
    pub fn status_kib(&self, field: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.with_context(|| format!("no {field}"))?.parse().context("not a number")
    }

    /// Stops it with SIGTERM, as an operator does.
    ///
    /// # Errors
    /// If it does not end in time, or not with exit code 0.
    pub fn stop(mut self) -> anyhow::Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM)?;
        let status = run::wait(&mut self.child, PATIENCE);
        ensure!(status.as_ref().is_ok_and(ExitStatus::success), "SIGTERM: {status:?}\n{}", self.log());
        Ok(())
    }

    /// Kills it with SIGKILL.
    ///
    /// # Errors
    /// If it had ended before by itself.
    pub fn kill(mut self) -> anyhow::Result<()> {
        ensure!(self.is_running(), "the host had ended before it was killed\n{}", self.log());
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Runs a sub-command of `verbatim` against this host; `--bootstrap-server` is added.
    ///
    /// # Errors
    /// If it cannot be started or does not end in time.
    pub fn verbatim(&self, arguments: &[&str], input: &[u8]) -> anyhow::Result<Output> {
        let bootstrap = ["--bootstrap-server", &self.bootstrap()];
        run::run(Command::new(programs::verbatim()?).args(arguments).args(bootstrap), input)
    }

    /// Creates a topic by `verbatim topic create`.
    ///
    /// # Errors
    /// If the command fails.
    pub fn create_topic(&self, name: &str, partitions: u32, configs: &[&str]) -> anyhow::Result<()> {
        let partitions = partitions.to_string();
        let mut arguments = vec!["topic", "create", name, "--partitions", &partitions];
        arguments.extend(configs.iter().flat_map(|config| ["--config", config]));
        self.verbatim(&arguments, b"")?.success().map(drop)
    }

    fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let address = self.address;
        crate::wait_for("answer of the host", PATIENCE, || {
            if let Some(status) = self.child.try_wait()? {
                bail!("the host ended: {status}");
            }
            Ok(TcpStream::connect(address).ok().map(drop))
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_log(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// A loopback address that nothing listens on at present.
///
/// # Errors
/// If there is none.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
