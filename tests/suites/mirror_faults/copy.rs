//! Where is mirrored to: a host behind a proxy, and the command that mirrors.

use super::source::{Expected, Source};
use anyhow::{Context, anyhow, ensure};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use verbatim_tests::BesideLog as _;
use verbatim_tests::answers::Answers;
use verbatim_tests::client::Client;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::proxy::{Faults, Proxy};
use verbatim_tests::run::{self, Output};
use verbatim_tests::{programs, segments};

/// How long a mirror may take to be caught up.
const PATIENCE: Duration = Duration::from_secs(240);

/// A destination.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) proxy: Proxy,
    home: Home,
    host: Option<Host>,
}

impl Copy {
    /// An empty host behind a proxy.
    pub(super) fn start(seed: u64, faults: Faults) -> anyhow::Result<Self> {
        let proxy = Proxy::bind(seed, faults)?;
        let home = Home::new()?.arguments(&["--advertise", &proxy.address().to_string()]);
        let mut copy = Self { proxy, home, host: None };
        copy.start_again()?;
        copy.open()?;
        Ok(copy)
    }

    /// Starts the host anew; until [`Copy::open`] the mirror does not reach it.
    pub(super) fn start_again(&mut self) -> anyhow::Result<()> {
        self.proxy.go_down();
        self.host = Some(self.home.start()?);
        Ok(())
    }

    /// Lets the mirror reach the host.
    pub(super) fn open(&self) -> anyhow::Result<()> {
        self.proxy.forward_to(self.host()?.address());
        Ok(())
    }

    /// Kills the host with SIGKILL.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        self.host.take().context("it does not run")?.kill()
    }

    pub(super) fn host(&self) -> anyhow::Result<&Host> {
        self.host.as_ref().context("it does not run")
    }

    /// What the host has printed so far.
    pub(super) fn log(&self) -> String {
        self.home.log()
    }

    /// High watermarks of a topic's partitions, of which nobody but the host is asked; none before there is the topic.
    pub(super) fn ends(&self, topic: &str, partitions: i32) -> anyhow::Result<Vec<i64>> {
        let client = Client::connect(self.host()?.address())?;
        let ends = (0..partitions).map(|index| client.latest((topic, index)).map(|(end, _)| end));
        Ok(ends.collect::<anyhow::Result<_>>().unwrap_or_default())
    }

    /// Copies these topics until all are caught up; anything else is an error.
    pub(super) fn mirror_once(&self, source: &Source, topics: &[&str]) -> anyhow::Result<Output> {
        let mut command = self.command(source, topics)?;
        let output = run::run_within(command.arg("--once"), b"", PATIENCE)?;
        let ended = if output.status.success() { Ok(output) } else { Err(anyhow!("{output}")) };
        ended.beside("the host", || self.log())
    }

    /// Starts to copy these topics, and goes on until it is killed.
    pub(super) fn mirror(&self, source: &Source, topics: &[&str]) -> anyhow::Result<Mirror> {
        Mirror::start(self.command(source, topics)?)
    }

    fn command(&self, source: &Source, topics: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(programs::verbatim()?);
        command.args(["--output", "json", "mirror", "--source", &source.bootstrap()]);
        command.args(["--target", &self.proxy.address().to_string(), "--topics", &topics.join(",")]);
        Ok(command)
    }

    /// Everything that is expected must be there: the same answers, and the same bytes. The copy has at least what the source
    /// has from its log start on, and may still have what lay before it when it was copied.
    pub(super) fn check(&self, expected: &[Expected]) -> anyhow::Result<()> {
        let mut differences = Vec::new();
        for one in expected {
            let stored = segments::log_bytes(&self.home.data(), &one.topic, one.index)?;
            let needed = segments::from_offset(&one.log, one.answers.earliest.offset)?;
            if !stored.ends_with(needed) || !one.log.ends_with(&stored) {
                differences.push(format!("{}-{}: {}", one.topic, one.index, unequal(&one.log, &stored)));
            }
            let name = (one.topic.as_str(), i32::try_from(one.index)?);
            let answers = Answers::ask(&[self.host()?.address()], name, &one.times)?;
            let left = segments::headers(needed)?;
            let found = one.answers.differences(&answers, (!one.is_whole).then_some(&left));
            differences.extend(found.iter().map(|found| format!("{}-{}: {found}", one.topic, one.index)));
        }
        let same = if differences.is_empty() { Ok(()) } else { Err(anyhow!(differences.join("\n"))) };
        same.beside("the host", || self.log())
    }
}

/// Two logs that are not the same, in words.
fn unequal(source: &[u8], copy: &[u8]) -> String {
    let same = source.iter().zip(copy).take_while(|(ours, theirs)| ours == theirs).count();
    let offsets = |bytes: &[u8]| match segments::headers(bytes) {
        Ok(headers) => {
            let ends = headers.first().zip(headers.last());
            let ends = ends.map(|(first, last)| (first.base_offset, last.next_offset().unwrap_or(-1)));
            format!("{} batches, first and next offset {ends:?}", headers.len())
        }
        Err(error) => format!("{error}"),
    };
    format!(
        "the source has {} bytes ({}), the copy {} ({}), equal up to byte {same}",
        source.len(),
        offsets(source),
        copy.len(),
        offsets(copy)
    )
}

/// A running mirror. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Mirror {
    child: Child,
    folder: TempDir,
}

impl Mirror {
    fn start(mut command: Command) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("verbatim-mirror-").tempdir()?;
        let output = File::create(output_file(&folder))?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { child, folder })
    }

    /// Kills it with SIGKILL.
    pub(super) fn kill(mut self) -> anyhow::Result<()> {
        self.must_run()?;
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// An error if it has ended by itself.
    pub(super) fn must_run(&mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait()?;
        ensure!(ended.is_none(), "the mirror ended by itself: {ended:?}\n{}", self.output());
        Ok(())
    }

    /// What it has printed so far.
    pub(super) fn output(&self) -> String {
        let bytes = std::fs::read(output_file(&self.folder)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn output_file(folder: &TempDir) -> PathBuf {
    folder.path().join("output")
}

/// Adds up what proxies did.
pub(super) fn add<K: Ord + std::marker::Copy>(sum: &mut BTreeMap<K, u32>, more: &BTreeMap<K, u32>) {
    for (fault, count) in more {
        *sum.entry(*fault).or_default() += count;
    }
}
