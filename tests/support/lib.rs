//! Support for the whole-system suites: a host to test, the tools of other people, and a client that writes exactly.
//!
//! Everything here returns errors with what is needed to understand a failure: the command, its output, the host's log.

pub mod answers;
pub mod captures;
pub mod client;
pub mod exact;
pub mod host;
pub mod kafka;
pub mod load;
pub mod programs;
pub mod proxy;
pub mod random;
pub mod run;
pub mod segments;
pub mod tools;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The repository's root folder.
pub fn workspace() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_path_buf()
}

/// True for the long runs (`make soak`).
pub fn soak() -> bool {
    std::env::var_os("VERBATIM_SOAK").is_some()
}

/// Prints a line that is seen whether or not the test passes: the test runner captures only the print macros.
pub fn announce(line: &str) {
    // A closed stderr is no reason to fail a test.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Lets a failed test's output show a log, before the error: of long output the end is what is read, and kept.
pub trait BesideLog<T> {
    /// The same result; if it is an error, the last lines of this log have been printed.
    ///
    /// # Errors
    /// The same.
    fn beside(self, whose: &str, log: impl FnOnce() -> String) -> anyhow::Result<T>;
}

impl<T> BesideLog<T> for anyhow::Result<T> {
    fn beside(self, whose: &str, log: impl FnOnce() -> String) -> Self {
        if self.is_err() {
            let log = log();
            let lines: Vec<&str> = log.lines().collect();
            let shown = lines.len().saturating_sub(LOG_LINES);
            eprintln!("the last lines of {whose}'s log ({shown} more before)");
            lines.iter().skip(shown).for_each(|line| eprintln!("{line}"));
        }
        self
    }
}

/// How many lines of a log a failed test prints.
const LOG_LINES: usize = 100;

/// Looks again and again until `probe` gives something, for at most `patience`.
///
/// # Errors
/// What `probe` fails with; or, once patience is at its end, an error naming `what`.
pub fn wait_for<T>(
    what: &str,
    patience: Duration,
    mut probe: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = probe()? {
            return Ok(found);
        }
        anyhow::ensure!(start.elapsed() < patience, "no {what} within {patience:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
