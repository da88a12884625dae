//! The scenarios of `tests/conformance` and random requests, natively and through the component.
#![expect(clippy::panic, reason = "a test says what is wrong by panicking")]

mod agreement;
mod coverage;
mod itself;
mod policies;
mod suites;
mod unloadable;

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;

use verbatim_artifact::MissingModule;
use verbatim_engine::{Engine, Instance, Limits, Memory, Module};
use verbatim_harness::Suite;

/// Set to a printed seed, it runs the same random cases again.
const SEED_VARIABLE: &str = "VERBATIM_SEED";

/// All scenarios there are.
fn suite() -> Suite {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "conformance"].iter().collect();
    verbatim_harness::load(&folder).unwrap_or_else(|error| panic!("{error}"))
}

/// The seed that was asked for, else a new one; prints it.
fn seed() -> u64 {
    let seed = match std::env::var(SEED_VARIABLE) {
        Ok(text) => {
            text.parse().unwrap_or_else(|_| panic!("{SEED_VARIABLE} must be a number, it is `{text}`"))
        }
        Err(_) => RandomState::new().hash_one(()),
    };
    println!("{SEED_VARIABLE}={seed}");
    seed
}

/// A judge that runs the component.
fn component() -> Instance<Memory> {
    module().instance().unwrap_or_else(|error| panic!("{error}"))
}

/// The component `exact-mirroring`, loaded.
fn module() -> Module {
    loaded(verbatim_artifact::exact_mirroring())
}

/// A component that was built along, loaded.
fn loaded(built: Result<&[u8], MissingModule>) -> Module {
    let bytes = built.unwrap_or_else(|missing| panic!("{missing}"));
    let engine = Engine::new(Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    Module::load(&engine, bytes).unwrap_or_else(|error| panic!("{error}"))
}
