//! What a reader is told, and what it gives.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use verbatim_batch::{Records, TimestampType};

use crate::cluster::Partition;
use crate::fetch::FetchConfig;

/// A place in a partition, in the form in which to store it: the next offset to read, and the leader epoch of what was read last.
///
/// These are the two fields of a committed offset in Kafka, where -1 stands for no epoch. With the epoch a reader notices
/// later that the log was truncated below the place (KIP-320); without it, it cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The next offset.
    pub offset: i64,
    /// The leader epoch of the record before it; `None` if that is unknown.
    pub leader_epoch: Option<i32>,
}

impl Position {
    /// A position by offset and epoch.
    pub const fn new(offset: i64, leader_epoch: Option<i32>) -> Self {
        Self { offset, leader_epoch }
    }

    /// From the fields of a committed offset: any negative epoch is none.
    pub const fn from_committed(offset: i64, leader_epoch: i32) -> Self {
        Self { offset, leader_epoch: if leader_epoch < 0 { None } else { Some(leader_epoch) } }
    }

    /// The epoch as a committed offset has it: -1 = none.
    pub const fn committed_leader_epoch(self) -> i32 {
        match self.leader_epoch {
            Some(epoch) => epoch,
            None => -1,
        }
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.leader_epoch {
            Some(epoch) => write!(out, "offset {} after leader epoch {epoch}", self.offset),
            None => write!(out, "offset {} after an unknown leader epoch", self.offset),
        }
    }
}

/// Where to read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// The log start.
    Beginning,
    /// The high watermark; the last stable offset at read_committed.
    End,
    /// The first record at or after this time, in milliseconds since 1970; the end if there is none.
    Time(i64),
    /// This position. If it has an epoch, the leader is asked first whether its log was truncated below it.
    To(Position),
    /// This position if its epoch still matches, else the first offset of the next larger epoch, else the end. Below the log
    /// start it is the log start. Never an error, whatever the reset policy.
    Nearest(Position),
}

/// What to do where a log no longer has the position of its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reset {
    /// A [`ReadError`](super::ReadError), and the partition stands still until it is sought elsewhere.
    #[default]
    None,
    /// The first truncated offset if it is known, else the log start.
    Earliest,
    /// The first truncated offset if it is known, else the log's end.
    Latest,
    /// What loses and repeats least: the first truncated offset; below the log start the start; above the log's end the end. If
    /// the leader does not know the position's epoch, and the first truncated offset is unknown, the first offset of the next
    /// larger epoch there is, else the end.
    Closest,
}

/// Which records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// All, also those of transactions that are open or were aborted.
    #[default]
    ReadUncommitted,
    /// Up to the last stable offset, without those of aborted transactions.
    ReadCommitted,
}

/// Settings of a reader.
#[derive(Debug, Clone)]
pub struct ReaderConfig {
    /// Which records are read.
    pub isolation: Isolation,
    /// What to do where a log no longer has the position.
    pub reset: Reset,
    /// Bytes that one batch's records may inflate to, at most.
    pub inflated_bytes_max: usize,
    /// Records that one [`Reader::poll`](super::Reader::poll) gives at most.
    pub poll_records_max: usize,
    /// How data is fetched, and how much of it is held.
    pub fetch: FetchConfig,
}

impl Default for ReaderConfig {
    /// All records, no reset, 64 MiB a batch, 500 records a poll; answers of 8 MiB, 1 MiB a partition, 32 MiB fetched ahead.
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            reset: Reset::default(),
            inflated_bytes_max: verbatim_compression::DEFAULT_LIMIT_BYTES,
            poll_records_max: 500,
            fetch: FetchConfig {
                wait_max: Duration::from_millis(500),
                answer_bytes_max: 8 << 20,
                partition_bytes_max: 1 << 20,
                buffered_bytes_max: 32 << 20,
            },
        }
    }
}

/// A record.
///
/// Keys, values and headers of a batch that is not compressed are slices of the answer that brought them, others of the
/// inflated batch: whoever keeps one keeps all of that. Copy what is kept for long.
#[derive(Debug, Clone)]
pub struct Record {
    /// Where it is from.
    pub partition: Arc<Partition>,
    /// Its offset.
    pub offset: i64,
    /// The epoch of the leader that appended it; `None` where the log keeps none.
    pub leader_epoch: Option<i32>,
    /// Milliseconds since 1970; -1 = none.
    pub timestamp: i64,
    /// Whose clock that is: the producer's or the broker's.
    pub timestamp_type: TimestampType,
    /// `None` is null, which is not empty.
    pub key: Option<Bytes>,
    /// `None` is null (a tombstone), which is not empty.
    pub value: Option<Bytes>,
    /// The whole record, of which the walk has made sure that it is one.
    pub(super) bytes: Bytes,
}

impl Record {
    /// The headers in their order; keys may repeat. They are read when they are asked for.
    pub fn headers(&self) -> impl Iterator<Item = Header> {
        let record = Records::new(&self.bytes, 1).next().and_then(Result::ok);
        record.into_iter().flat_map(|record| record.headers).map(|header| Header {
            key: self.bytes.slice_ref(header.key),
            value: header.value.map(|value| self.bytes.slice_ref(value)),
        })
    }

    /// The position behind this record: what to store once it is dealt with.
    pub const fn next_position(&self) -> Position {
        Position { offset: self.offset.saturating_add(1), leader_epoch: self.leader_epoch }
    }
}

/// A header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// UTF-8 by convention, which nobody checks.
    pub key: Bytes,
    /// `None` is null, which is not empty.
    pub value: Option<Bytes>,
}
