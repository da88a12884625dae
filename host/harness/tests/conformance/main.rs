//! The scenarios of `tests/conformance`, natively and through the component.
#![expect(clippy::panic, reason = "a test says what is wrong by panicking")]

mod scenarios;

use std::path::PathBuf;

/// The folder of scenario files.
fn scenario_dir() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "conformance"].iter().collect()
}
