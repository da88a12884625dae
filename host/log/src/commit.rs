//! What one judged request asks of the log.

use verbatim_contract::EpochEntry;

/// A batch as it is to be stored: the two parts are written one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed<'a> {
    /// The 61-byte header, with base offset, leader epoch and checksum as they are to be stored.
    pub head: &'a [u8],
    /// Everything after the header.
    pub payload: &'a [u8],
    /// SHA-256 of the batch as it was received, which a log that keeps these digests ([`crate::Config::keeps_received`])
    /// must be given; others ignore it.
    pub received: Option<[u8; 32]>,
}

/// Where the source of an exact partition stands, as its mirror last declared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    /// The source's log start offset.
    pub start: i64,
    /// The source's high watermark.
    pub end: i64,
    /// The source's current leader epoch.
    pub epoch: i32,
}

/// One request's effect, carried out in the order of the fields, all or nothing after the cut (I4, I6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commit<'a> {
    /// Cut the log to this end first (R31); a durable step of its own.
    pub cut: Option<i64>,
    /// Declared leader-epoch entries, in order; entries that the history already holds change nothing.
    pub entries: &'a [EpochEntry],
    /// Batches in offset order; each begins at or after the end reached so far, and a step between them is a hole that
    /// stays empty (R20). In an empty log the first may begin below the end if it reaches it (R25).
    pub batches: &'a [Placed<'a>],
    /// The end moves to here after the batches; at or below it nothing happens (R26b).
    pub end: Option<i64>,
    /// The start moves to here, at most to the end; at or below it nothing happens.
    pub start: Option<i64>,
    /// What the source declared of itself; kept, but durable only as a file write is (the README says why).
    pub source: Option<SourcePosition>,
    /// An epoch to be shown at least; epochs of entries and batches raise it by themselves. `None` leaves that to them.
    pub shown_epoch: Option<i32>,
    /// The wall clock, milliseconds since 1970: `segment.ms` counts by it in a segment whose first batch has no timestamp,
    /// and not at all without it.
    pub now_ms: Option<i64>,
}
