//! What a verification found, for people and for programs.

use serde::{Deserialize, Serialize};
use verbatim_batch::{Header, TimestampType};

use super::digest::Digest;

/// One of the two clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The one that was copied from.
    Source,
    /// The copy.
    Target,
}

impl Side {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Source => Self::Target,
            Self::Target => Self::Source,
        }
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Target => "target",
        })
    }
}

/// Something of each side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Both<T> {
    /// The source's.
    pub source: T,
    /// The target's.
    pub target: T,
}

impl<T> Both<T> {
    /// One side's.
    pub const fn of(&self, side: Side) -> &T {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    pub(super) const fn of_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Source => &mut self.source,
            Side::Target => &mut self.target,
        }
    }
}

/// What a partition came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything that was compared is equal, byte for byte.
    Identical,
    /// One side's records are what compaction leaves of the other's; everything else is equal.
    CompactedEqual,
    /// The target's records are what a module left of the source's, where its topic allows that; everything else is equal. Only
    /// with [`Options::allow_redacted`](super::Options::allow_redacted).
    Redacted,
    /// The target is a proper prefix of the source.
    Behind,
    /// They differ.
    Diverged,
    /// One side does not have the topic or the partition.
    Missing,
    /// It could not be found out; the reason says why.
    Undecided,
    /// Nothing to compare with: only a digest was asked for.
    Digest,
}

impl Verdict {
    const fn exit_code(self) -> u8 {
        match self {
            Self::Identical | Self::CompactedEqual | Self::Redacted | Self::Digest => 0,
            Self::Behind | Self::Diverged | Self::Missing => 1,
            Self::Undecided => 2,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Identical => "identical",
            Self::CompactedEqual => "compacted-equal",
            Self::Redacted => "redacted",
            Self::Behind => "behind",
            Self::Diverged => "diverged",
            Self::Missing => "missing",
            Self::Undecided => "undecided",
            Self::Digest => "digest",
        })
    }
}

/// A batch's header, every field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchHeader {
    /// First offset.
    pub base_offset: i64,
    /// Last offset; `None` if it overflows.
    pub last_offset: Option<i64>,
    /// Bytes of the whole batch.
    pub bytes: Option<usize>,
    /// The leader epoch it was written under.
    pub leader_epoch: i32,
    /// The attribute bits.
    pub attributes: i16,
    /// The codec's name or number.
    pub codec: String,
    /// `CreateTime` or `LogAppendTime`.
    pub timestamp_type: String,
    /// True if it belongs to a transaction.
    pub transactional: bool,
    /// True if it holds a marker.
    pub control: bool,
    /// Milliseconds since 1970; the delete horizon where the attributes say so.
    pub base_timestamp: i64,
    /// Milliseconds since 1970.
    pub max_timestamp: i64,
    /// Producer id; negative = none.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Sequence of the first record.
    pub base_sequence: i32,
    /// Records that are left.
    pub records: i32,
    /// The checksum in hexadecimal digits.
    pub crc: String,
}

impl From<&Header> for BatchHeader {
    fn from(header: &Header) -> Self {
        let attributes = header.attributes;
        let codec = attributes.codec();
        let timestamp_type = match attributes.timestamp_type() {
            TimestampType::CreateTime => "CreateTime",
            TimestampType::LogAppendTime => "LogAppendTime",
        };
        Self {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            bytes: header.total_len(),
            leader_epoch: header.leader_epoch,
            attributes: attributes.bits(),
            codec: codec.map_or_else(|number| format!("unknown {number}"), |codec| codec.to_string()),
            timestamp_type: timestamp_type.to_owned(),
            transactional: attributes.is_transactional(),
            control: attributes.is_control(),
            base_timestamp: header.base_timestamp,
            max_timestamp: header.max_timestamp,
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            records: header.record_count,
            crc: format!("{:08x}", header.crc),
        }
    }
}

/// The first thing that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The first offset concerned; `None` where no offset belongs to it.
    pub offset: Option<i64>,
    /// What differs, in words.
    pub what: String,
    /// The batches there, or the next ones, where batches differ.
    pub batches: Both<Option<Box<BatchHeader>>>,
}

impl Difference {
    pub(super) fn new(offset: impl Into<Option<i64>>, what: impl Into<String>) -> Self {
        Self { offset: offset.into(), what: what.into(), batches: Both::default() }
    }
}

/// Where a log stood at the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Log start offset.
    pub start: i64,
    /// High watermark.
    pub end: i64,
    /// Last stable offset.
    pub last_stable_offset: i64,
}

/// Offsets from `from` to below `to`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The first.
    pub from: i64,
    /// The one after the last.
    pub to: i64,
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}, {})", self.from, self.to)
    }
}

/// How a partition was sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The fraction asked for.
    pub fraction: f64,
    /// The seed that chose the windows.
    pub seed: u64,
    /// The offsets that were compared.
    pub windows: Vec<Range>,
}

/// What compaction took away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// The side that lacks records.
    pub side: Side,
    /// How many it lacks.
    pub records: u64,
    /// How many of its batches are gone whole.
    pub batches: u64,
}

/// What a module made of the target, where its topic allows that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redacted {
    /// The module that the target's topic names now (`produce.module`).
    pub module: String,
    /// How many batches are not the source's, byte for byte.
    pub batches: u64,
    /// How many records they lack.
    pub records_dropped: u64,
    /// How many have another key, value or headers.
    pub records_changed: u64,
}

impl std::fmt::Display for Redacted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { module, batches, records_dropped, records_changed } = self;
        write!(
            f,
            "redacted by module {module}: {batches} batches, {records_dropped} records dropped, {records_changed} changed"
        )
    }
}

/// What was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Batches.
    pub batches: u64,
    /// Records, by the batches' headers.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    pub(super) fn add(&mut self, header: &Header, bytes: usize) {
        self.batches = self.batches.saturating_add(1);
        self.records = self.records.saturating_add(u64::try_from(header.record_count).unwrap_or(0));
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(0));
    }
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionReport {
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is not identical, in words; empty if it is.
    pub reason: String,
    /// Where each side stood at the start; `None` where it was not found out.
    pub bounds: Both<Option<Bounds>>,
    /// The offsets that the verdict is about.
    pub range: Option<Range>,
    /// What was read of each side in that range, up to a difference if there is one.
    pub count: Both<Count>,
    /// The digests over that range; `None` if it was not read whole.
    pub digest: Both<Option<Digest>>,
    /// Offsets that the target is behind the source.
    pub behind: i64,
    /// What compaction took away, if it did.
    pub compacted: Option<Compacted>,
    /// What a module redacted, if it did.
    pub redacted: Option<Redacted>,
    /// The first difference.
    pub difference: Option<Difference>,
    /// Set if only a part was compared.
    pub sampled: Option<Sampled>,
    /// Where a run that was ended before had come to.
    pub resumed_from: Option<i64>,
    /// What else is worth knowing: what could not be compared and why, a start that moved.
    pub notes: Vec<String>,
}

impl PartitionReport {
    pub(super) fn new(topic: &str, partition: i32) -> Self {
        Self {
            topic: topic.to_owned(),
            partition,
            verdict: Verdict::Undecided,
            reason: String::new(),
            bounds: Both::default(),
            range: None,
            count: Both::default(),
            digest: Both::default(),
            behind: 0,
            compacted: None,
            redacted: None,
            difference: None,
            sampled: None,
            resumed_from: None,
            notes: Vec::new(),
        }
    }

    pub(super) fn with_verdict(mut self, verdict: Verdict, reason: impl Into<String>) -> Self {
        self.verdict = verdict;
        self.reason = reason.into();
        self
    }
}

/// The committed offset of one group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReport {
    /// Group id.
    pub group: String,
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// `Identical`, `Missing` or `Diverged`.
    pub verdict: Verdict,
    /// What differs, in words.
    pub reason: String,
    /// What each side has; `None` = no commit.
    pub committed: Both<Option<Committed>>,
}

/// A committed offset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The offset.
    pub offset: i64,
    /// The leader epoch; -1 = none.
    pub leader_epoch: i32,
    /// The committer's own text.
    pub metadata: String,
}

/// Everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Partitions by topic and index.
    pub partitions: Vec<PartitionReport>,
    /// Committed offsets, if they were asked for, by group, topic and partition.
    pub groups: Vec<GroupReport>,
}

impl Report {
    /// 0: every verdict is identical, compacted-equal, redacted or a mere digest. 1: some are not. 2: as 0, but that something could not
    /// be decided.
    pub fn exit_code(&self) -> u8 {
        let partitions = self.partitions.iter().map(|partition| partition.verdict);
        let groups = self.groups.iter().map(|group| group.verdict);
        let codes: Vec<u8> = partitions.chain(groups).map(Verdict::exit_code).collect();
        [1, 2].into_iter().find(|code| codes.contains(code)).unwrap_or(0)
    }
}
