//! What travels in with a call: scalars about the topic, the log, the request and each batch.

use verbatim_batch::Header;

use crate::{EpochEntry, ProducerLast};

/// The topic's settings, as far as admission depends on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The topic carries `produce.at.offset`: the writer chooses offsets and leader epochs.
    pub exact: bool,
    /// `produce.at.offset.rewind` is `truncate` rather than `refuse` (R31).
    pub rewind_truncate: bool,
    /// Records are validated. Always so on a normal topic, by `produce.at.offset.validation` on an exact one (R14).
    pub validate_records: bool,
    /// `produce.at.offset.rewrite` is `allow`: the module may hand back other records.
    pub may_rewrite: bool,
    /// `cleanup.policy` contains `compact` (R15).
    pub compacted: bool,
    /// `message.timestamp.type` is `LogAppendTime` (R16).
    pub log_append_time: bool,
    /// `max.message.bytes` (R12).
    pub max_message_bytes: u32,
    /// `segment.bytes` (R12).
    pub segment_bytes: u32,
    /// `message.timestamp.before.max.ms` (R16), milliseconds.
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms` (R16), milliseconds.
    pub after_max_ms: i64,
    /// `min.insync.replicas` (R41).
    pub min_insync: u32,
    /// This topic's own id: high and low 64 bits.
    pub topic_id: (u64, u64),
    /// The partition's index.
    pub partition: u32,
    /// Rises by one with every change of the topic's configuration.
    pub config_generation: u64,
}

/// Where the partition's log stands before the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Log start offset.
    pub start: i64,
    /// Log end offset: the offset that a normal topic would give to the next record.
    pub end: i64,
    /// High watermark: the end of what meets the flush policy.
    pub high_watermark: i64,
    /// Last stable offset.
    pub stable_offset: i64,
    /// The latest leader-epoch entry, with or without data.
    pub last_entry: Option<EpochEntry>,
    /// The leader epoch, by the epoch history, of the offset just below the end; -1 when nothing is there.
    pub epoch_before_end: i32,
    /// The leader epoch that readers are shown and fenced by; -1 when there is none.
    pub shown_epoch: i32,
}

/// How the split of the request's records into batches by length ended (R1, R2a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The last batch ends where the bytes end.
    Complete,
    /// Bytes follow the last whole batch that are too few for one more.
    CutTail,
    /// The batch after the last one listed states a length below 14.
    LengthTooSmall,
}

/// The request as far as it concerns this partition. The tag's scalars are meaningful only with `has_tag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The broker's wall clock, milliseconds since 1970.
    pub now_ms: i64,
    /// Acknowledgements asked for: 0, 1 or -1 (all); anything else is refused with 21.
    pub acks: i16,
    /// Version of the Produce request.
    pub api_version: i16,
    /// The request names a transactional id.
    pub transactional: bool,
    /// How the records split into batches.
    pub framing: Framing,
    /// The partition entry carries the exact-produce tag (R26).
    pub has_tag: bool,
    /// The tag's source topic id equals the one recorded at creation, or one of the two is zero (R26).
    pub source_topic_matches: bool,
    /// The log end offset that the writer expects (R22).
    pub expected_end: i64,
    /// The source's leader epoch at `truncate_to` or else `expected_end`, minus one; -1 = nothing there (R22).
    pub epoch_before: i32,
    /// The source's log start offset.
    pub source_start: i64,
    /// The source's high watermark.
    pub source_end: i64,
    /// The source's current leader epoch.
    pub source_epoch: i32,
    /// The log end offset moves to here after the batches (R26b).
    pub end_to: Option<i64>,
    /// The log is cut to here before the batches (R31).
    pub truncate_to: Option<i64>,
}

/// One batch of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The header; all zero, but for what was there, when `short_header`.
    pub header: Header,
    /// Length in bytes, the 12 bytes of offset and length included.
    pub length: u32,
    /// The checksum over the received bytes is the one that the header states (R4).
    pub crc_ok: bool,
    /// The batch is framed but shorter than a whole header (R2b).
    pub short_header: bool,
    /// What the log knew of this batch's producer before the request; none when unknown or without producer id.
    pub producer: Option<ProducerLast>,
}
