//! Tests of the engine: modules against the contract, good ones against the native policy, hostile ones against the host.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[cfg(feature = "cache")]
mod cached;
mod contract_check;
mod equal;
mod hostile;
mod in_time;
mod invariants;
mod kept;
mod memory;
mod rewinds;
mod rewrites;
mod rollback;
mod shadow;
mod support;
mod swaps;
