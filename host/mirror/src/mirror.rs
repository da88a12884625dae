//! Copies topics of any Kafka-speaking source into a Verbatim host, byte for byte.
//!
//! The destination's log is the only checkpoint: a mirror keeps nothing of its own, and may be stopped, killed and started
//! anywhere at any time.

pub mod state;

use std::time::Duration;

use regex::Regex;

use crate::cluster::{ClusterConfig, ClusterError};
use state::{Event, Snapshot};

/// What is mirrored, from where to where, and how.
#[derive(Debug, Clone)]
pub struct MirrorConfig {
    /// The source.
    pub source: ClusterConfig,
    /// The destination, a Verbatim host.
    pub target: ClusterConfig,
    /// Topics whose whole name one of these matches are mirrored.
    pub topics: Vec<Regex>,
    /// Except those that one of these matches.
    pub exclude: Vec<Regex>,
    /// Topics whose whole name one of these matches are shown, and not copied.
    pub paused: Vec<Regex>,
    /// True to end when everything is caught up or stopped.
    pub once: bool,
    /// What to do where the source has deleted data that was not copied.
    pub on_data_lost: OnDataLost,
    /// What to do where the source was truncated below what was copied.
    pub on_divergence: OnDivergence,
    /// Committed offsets of groups whose whole id one of these matches are carried over; none if empty.
    pub groups: Vec<Regex>,
    /// Time between two looks for new topics, partitions and settings.
    pub refresh: Duration,
    /// Bytes on their way, from the source's answer to the destination's acknowledgement, at most.
    pub buffered_bytes_max: usize,
    /// Connections to the destination; partitions are dealt out among them.
    pub connections: usize,
}

/// What to do where the source's log start moved past the copy's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDataLost {
    /// Stop the partition.
    #[default]
    Stop,
    /// Record the hole, and go on at the source's start.
    Skip,
}

/// What to do where the source was truncated below the copy's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDivergence {
    /// Stop the partition.
    #[default]
    Stop,
    /// Truncate the copy as the source was.
    Follow,
}

/// A running mirror. Dropping it stops it.
#[derive(Debug)]
pub struct Mirror {}

impl Mirror {
    /// Starts a mirror in the present tokio runtime.
    pub fn start(config: MirrorConfig) -> Self {
        let _ = config;
        Self {}
    }

    /// Where everything stands.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }

    /// The next thing that happened, in order; `None` once the mirror has ended. Slow listeners lose the oldest.
    pub async fn event(&mut self) -> Option<Event> {
        None
    }

    /// Waits for the end: with `once`, when all is caught up or stopped; otherwise only if nothing can be mirrored at all
    /// (a wrong address, a source without a needed API).
    ///
    /// # Errors
    /// What made it impossible.
    pub async fn ended(&mut self) -> Result<Snapshot, ClusterError> {
        Ok(Snapshot::default())
    }

    /// Stops: what was acknowledged stays, what is under way is waited for.
    pub async fn stop(self) -> Snapshot {
        Snapshot::default()
    }
}
