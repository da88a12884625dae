//! The scenarios of `tests/conformance` and random requests, natively and through the component.
#![expect(clippy::panic, reason = "a test says what is wrong by panicking")]

mod agreement;
mod coverage;
mod itself;
mod scenarios;
mod tape;
mod world;

use std::path::PathBuf;

use verbatim_engine::{Engine, Instance, Limits, Memory, Module};
use verbatim_harness::Suite;

/// All scenarios there are.
fn suite() -> Suite {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "conformance"].iter().collect();
    verbatim_harness::load(&folder).unwrap_or_else(|error| panic!("{error}"))
}

/// A judge that runs the component.
fn component() -> Instance<Memory> {
    let bytes = verbatim_artifact::exact_mirroring().unwrap_or_else(|missing| panic!("{missing}"));
    let engine = Engine::new(Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    let module = Module::load(&engine, bytes).unwrap_or_else(|error| panic!("{error}"));
    module.instance().unwrap_or_else(|error| panic!("{error}"))
}
