use std::sync::Arc;

use super::Position;
use crate::cluster::{ClusterError, Partition};

/// Why a partition is not read on. It stands still until it is sought elsewhere or unassigned; the others go on.
#[derive(Debug, thiserror::Error)]
#[error("{partition}: {kind}")]
pub struct ReadError {
    /// The partition.
    pub partition: Arc<Partition>,
    /// What is the matter with it.
    pub kind: ReadErrorKind,
}

impl ReadError {
    /// True if the log has the position no longer, or not yet: it was truncated, or the position lies outside it.
    pub const fn is_out_of_range(&self) -> bool {
        matches!(self.kind, ReadErrorKind::TruncatedPartition { .. } | ReadErrorKind::OffsetOutOfRange { .. })
    }
}

/// What can be the matter with a partition.
#[derive(Debug, thiserror::Error)]
pub enum ReadErrorKind {
    /// What was read is no longer what the log holds: an unclean election took it away, or the topic was made anew
    /// (KIP-320). Whoever acted on those records may have to undo that.
    #[error("the log was truncated below {position}; first truncated offset: {}", offset_or_unknown(*.first_truncated))]
    TruncatedPartition {
        /// Where the reader was.
        position: Position,
        /// The first offset that is known to hold something else, or nothing, now, with an epoch that the leader has below it:
        /// [seek](super::Reader::seek) to this position to read on without a gap.
        /// `None` if it cannot be known: the leader does not know the position's epoch, and what was read here does not tell.
        first_truncated: Option<Position>,
    },
    /// The position lies outside the log: below its start if that was moved, or above its end.
    #[error("{position} is out of range: the log goes from {log_start} to {log_end}")]
    OffsetOutOfRange {
        /// Where the reader was.
        position: Position,
        /// The log start offset.
        log_start: i64,
        /// The high watermark.
        log_end: i64,
    },
    /// A batch's records cannot be inflated, or not within the limit.
    #[error("the batch at offset {offset} cannot be read, offset {next} is behind it: {reason}")]
    Inflate {
        /// The batch's base offset.
        offset: i64,
        /// The offset behind it: seek there to leave it out.
        next: i64,
        /// What is wrong: names the codec, and the limit if it was that.
        reason: verbatim_compression::InflateError,
    },
    /// A batch's records are not what the format says.
    #[error("the batch at offset {offset} cannot be read, offset {next} is behind it: {reason}")]
    Malformed {
        /// The batch's base offset.
        offset: i64,
        /// The offset behind it: seek there to leave it out.
        next: i64,
        /// Field, value and expectation.
        reason: String,
    },
    /// What came from this offset on is damaged: checksum, magic or length of a batch are false.
    #[error("what was fetched from offset {offset} on is damaged: {reason}")]
    Corrupt {
        /// The offset.
        offset: i64,
        /// What is wrong.
        reason: String,
    },
    /// The topic is gone, or another one of its name has come.
    #[error("{0}")]
    Gone(String),
    /// A question was not answered.
    #[error("{0}")]
    Cluster(ClusterError),
}

impl From<ClusterError> for ReadErrorKind {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Unknown(what) => Self::Gone(format!("no such partition: {what}")),
            error => Self::Cluster(error),
        }
    }
}

fn offset_or_unknown(position: Option<Position>) -> String {
    position.map_or_else(|| "unknown".to_owned(), |position| position.offset.to_string())
}
