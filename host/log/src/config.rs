//! What a log is told when it is opened.

/// When a batch counts as written (design: high watermark = end of what meets the flush policy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// The high watermark moves when [`crate::Log::flush`] has made the batches durable.
    #[default]
    Always,
    /// The high watermark moves with [`crate::Log::apply`]; the owner calls [`crate::Log::flush`] now and then.
    Interval,
    /// The high watermark moves with [`crate::Log::apply`]; only rolls, facts and closing make batches durable.
    Never,
}

/// Settings of one partition's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The topic carries `produce.at.offset`: epochs are the writer's and are never cut at start-up. Once a partition was
    /// promoted its own facts override this (see [`crate::Recovery::promoted`]).
    pub exact: bool,
    /// The topic may have other records stored than were received: beside each batch the log keeps the SHA-256 of what was
    /// received, as long as the partition is exact ([`crate::Log::compare_received`]). Chosen for good when the log is made.
    pub keeps_received: bool,
    /// The topic's id, high and low 64 bits; kept in `partition.metadata`.
    pub topic_id: (u64, u64),
    /// `segment.bytes`: a batch that would make a segment larger begins a new one.
    pub segment_bytes: u32,
    /// `segment.ms`: a batch begins a new segment where its largest timestamp lies more than this after that of the
    /// segment's first batch. Without a timestamp there the wall clock counts, from the segment's creation on.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: `segment.ms` is shorter by up to this, by another part for each segment.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: a batch begins a new segment where an index file of the last one has no room for more.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`: bytes of log between two index entries.
    pub index_interval_bytes: u32,
    /// When a batch counts as written.
    pub flush: Flush,
}

impl Config {
    /// Kafka's default `segment.bytes`: 1 GiB.
    pub const SEGMENT_BYTES: u32 = 1 << 30;
    /// Kafka's default `segment.ms`: a week.
    pub const SEGMENT_MS: i64 = 7 * 24 * 3_600 * 1_000;
    /// Kafka's default `segment.index.bytes`: 10 MiB.
    pub const SEGMENT_INDEX_BYTES: u32 = 10 << 20;
    /// Kafka's default `index.interval.bytes`.
    pub const INDEX_INTERVAL_BYTES: u32 = 4096;
}

impl Default for Config {
    fn default() -> Self {
        Self {
            exact: false,
            keeps_received: false,
            topic_id: (0, 0),
            segment_bytes: Self::SEGMENT_BYTES,
            segment_ms: Self::SEGMENT_MS,
            segment_jitter_ms: 0,
            segment_index_bytes: Self::SEGMENT_INDEX_BYTES,
            index_interval_bytes: Self::INDEX_INTERVAL_BYTES,
            flush: Flush::Always,
        }
    }
}
