//! What readers see of a log at one moment.

use std::sync::Arc;

use verbatim_contract::EpochHistory;

use crate::SourcePosition;
use crate::segment::Segment;

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

/// A view and the files that it speaks of.
pub(crate) struct Published {
    pub(crate) view: Arc<View>,
    /// Rises before stored bytes are cut: what was read under another generation may be bytes of another history.
    pub(crate) generation: u64,
    /// In offset order.
    pub(crate) segments: Arc<[Arc<Segment>]>,
    /// For each segment but the last, the largest timestamp up to its end.
    pub(crate) largest: Arc<[i64]>,
    /// Bytes of all segments but the last.
    pub(crate) sealed_bytes: u64,
    /// Bytes of the last segment that belong to this view.
    pub(crate) last_length: u64,
}

impl Published {
    /// How many bytes of a segment belong to this view.
    pub(crate) fn limit(&self, index: usize) -> u64 {
        let last = index.saturating_add(1) == self.segments.len();
        if last { self.last_length } else { self.segments.get(index).map_or(0, |segment| segment.length()) }
    }

    /// The first segment that may hold a record of that timestamp or later; the last if no other does.
    pub(crate) fn first_reaching(&self, timestamp: i64) -> usize {
        self.largest.partition_point(|largest| *largest < timestamp)
    }

    /// The segment that holds `offset` if any does: the last that begins at or before it, else the first.
    pub(crate) fn floor(&self, offset: i64) -> usize {
        floor(&self.segments, offset)
    }
}

/// The index of the last segment that begins at or before `offset`, else 0.
pub(crate) fn floor(segments: &[Arc<Segment>], offset: i64) -> usize {
    segments.partition_point(|segment| segment.base <= offset).saturating_sub(1)
}
