//! Runs other programs: input given, output taken, time bounded.

use anyhow::{Context, ensure};
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long any program may take. A Java tool needs about a second, unless other tests keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(240);

/// What a program left.
#[derive(Debug, Clone)]
pub struct Output {
    /// The command line.
    pub command: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Output {
    /// The output of a program that must have succeeded.
    ///
    /// # Errors
    /// With command, status and all output, if it did not.
    pub fn success(self) -> anyhow::Result<String> {
        ensure!(self.status.success(), "{self}");
        Ok(self.stdout)
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { command, status, stdout, stderr } = self;
        write!(formatter, "{command}: {status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

/// Runs a program to its end. One that takes longer than four minutes is killed.
///
/// # Errors
/// If it cannot be started or does not end in time.
pub fn run(command: &mut Command, input: &[u8]) -> anyhow::Result<Output> {
    run_within(command, input, PATIENCE)
}

/// The same with another patience: for whole test suites.
///
/// # Errors
/// If it cannot be started or does not end in time.
pub fn run_within(command: &mut Command, input: &[u8], patience: Duration) -> anyhow::Result<Output> {
    let line = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {line}"))?;
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let (stdin, input) = (child.stdin.take(), input.to_vec());
    let writer = thread::spawn(move || {
        // A program may end without reading all of its input.
        let _ = stdin.map(|mut stdin| stdin.write_all(&input));
    });
    let status = wait(&mut child, patience);
    let _ = writer.join();
    let (stdout, stderr) = (text(stdout), text(stderr));
    let status = status.with_context(|| format!("{line}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"))?;
    Ok(Output { command: line, status, stdout, stderr })
}

/// Waits for a program's end; kills it if that takes longer than `patience`.
///
/// # Errors
/// If it had to be killed.
pub fn wait(child: &mut Child, patience: Duration) -> anyhow::Result<ExitStatus> {
    let ended = crate::wait_for("end of the program", patience, || Ok(child.try_wait()?));
    if ended.is_err() {
        child.kill().context("cannot kill")?;
        child.wait().context("cannot wait")?;
    }
    ended
}

fn drain(source: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is still worth showing.
        let _ = source.map(|mut source| source.read_to_end(&mut bytes));
        bytes
    })
}

fn text(output: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&output.join().unwrap_or_default()).into_owned()
}
