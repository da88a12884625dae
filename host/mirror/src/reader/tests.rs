//! Decisions against a model of a replicated log, and records against the batches that hold them.
#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod histories;
mod model;
mod policies;
mod walk;
