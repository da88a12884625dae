//! The log against a model, on a disk that fails, tears and forgets; and one test a promise of the README.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests"
)]

mod batches;
mod cases;
mod disk;
mod files;
mod layout;
mod model;
mod random;
mod readers;
mod received;
mod rng;
mod sweep;
