//! Support for the whole-system suites: a host to test, the tools of other people, and a client that writes exactly.
//!
//! Everything here returns errors with what is needed to understand a failure: the command, its output, the host's log.

pub mod answers;
pub mod captures;
pub mod client;
pub mod exact;
pub mod host;
pub mod kafka;
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
