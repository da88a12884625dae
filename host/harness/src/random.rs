//! Random topics, logs and requests, small enough to meet each other's edges: for comparing two judges, and for the suite
//! *contract*.
//!
//! Every choice is read from a [`Tape`] of numbers, so that one seed brings all of them back and a failing case shrinks.

mod tape;
mod world;

pub use tape::{Tape, numbers};
pub use world::{Sent, log, request};
