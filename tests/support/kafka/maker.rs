//! The program that fills topics of a source (`tests/tools/kafka/MakeTopics.java`, whose page lists the commands).

use crate::tools;
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a command may take; brokers may be starting meanwhile.
const PATIENCE: Duration = Duration::from_secs(240);

/// How long ago the first records are said to be; a source of every kind takes most of it.
const BACK: Duration = Duration::from_secs(6_000);

/// The program, waiting for commands. Dropping it kills it: a transaction that is open stays open.
#[derive(Debug)]
pub struct Maker {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<String>,
}

impl Maker {
    /// Starts it for a cluster. What it writes follows from the seed. `None` without Kafka (see [`tools::find`]).
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(bootstrap: &str, seed: u64) -> anyhow::Result<Option<Self>> {
        let Some(tool) = tools::find("java-make-topics")? else { return Ok(None) };
        let mut command = Command::new(tool.program());
        // Kafka forgets producers by the timestamps of their records, so these are of today.
        let begin = SystemTime::now().duration_since(UNIX_EPOCH)?.saturating_sub(BACK);
        command.args([bootstrap, &seed.to_string(), &begin.as_millis().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let commands = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Ok(Some(Self { child, commands, answers }))
    }

    /// Has one command done.
    ///
    /// # Errors
    /// If it fails or takes too long.
    pub fn run(&mut self, command: &str) -> anyhow::Result<()> {
        writeln!(self.commands, "{command}")?;
        self.commands.flush()?;
        let answer =
            self.answers.recv_timeout(PATIENCE).with_context(|| format!("no answer to {command}"))?;
        ensure!(answer == "done", "{answer}");
        Ok(())
    }

    /// Has several done, one after the other; each line is one.
    ///
    /// # Errors
    /// The first that fails or takes too long.
    pub fn run_all(&mut self, commands: &str) -> anyhow::Result<()> {
        commands.lines().map(str::trim).filter(|line| !line.is_empty()).try_for_each(|line| self.run(line))
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
