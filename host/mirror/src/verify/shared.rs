//! What all partitions of a verification share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::feed::Pace;
use super::options::Options;
use super::state::Store;
use crate::cluster::Cluster;

/// Shared by all partitions.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) source: Cluster,
    pub(super) target: Option<Cluster>,
    pub(super) pace: Arc<Pace>,
    pub(super) store: Store,
    pub(super) progress: Counters,
}

/// How far everything has come.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) partitions: AtomicU64,
    pub(super) partitions_done: AtomicU64,
    pub(super) offsets_total: AtomicU64,
    pub(super) offsets: AtomicU64,
    pub(super) bytes: AtomicU64,
}
