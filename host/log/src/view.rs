//! What readers see of a log at one moment.

use std::sync::Arc;

use verbatim_contract::EpochHistory;

use crate::SourcePosition;

/// An aborted transaction, as Kafka's transaction index keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// The producer.
    pub producer_id: i64,
    /// First offset of the transaction.
    pub first_offset: i64,
    /// Offset of its abort marker.
    pub last_offset: i64,
    /// The last stable offset right after the marker.
    pub last_stable_offset: i64,
}

/// A log's positions at one moment; published after every change.
#[derive(Clone, Debug)]
pub struct View {
    /// Log start offset.
    pub start: i64,
    /// Log end offset, durable or not.
    pub end: i64,
    /// High watermark: the end of what meets the flush policy.
    pub high_watermark: i64,
    /// Last stable offset.
    pub stable_offset: i64,
    /// The leader epoch that readers are shown and fenced by; -1 when there is none.
    pub shown_epoch: i32,
    /// The partition takes exact writes.
    pub exact: bool,
    /// Leader epochs by offset.
    pub epochs: Arc<EpochHistory>,
    /// What the source last declared of itself; none on a normal partition.
    pub source: Option<SourcePosition>,
    /// Why the partition is offline.
    pub offline: Option<Arc<str>>,
}
