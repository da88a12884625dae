//! Reads any Kafka with truncation detection (KIP-320), mirrors topics exactly, and verifies copies.
//!
//! - [`cluster`]: one Kafka-speaking cluster: who leads what, and the questions that a leader answers.
//! - [`fetch`]: raw batches of many partitions at once, with current and last-fetched leader epoch.
//! - [`reader`]: records with leader epochs, positions, and what to do when the log was truncated. Usable by itself.
//! - [`mirror`]: copies topics into a Verbatim host, byte for byte.
//! - [`verify`]: proves that two clusters hold the same.

pub mod cluster;
pub mod fetch;
pub mod mirror;
pub mod reader;
pub mod verify;

#[cfg(test)]
mod testing;

/// Compiles the example there.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/READER.md")]
struct ReaderDocument;
