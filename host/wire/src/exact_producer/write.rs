//! What a caller hands over, and what it gets back.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::ExactError;
use crate::tag::{AnswerTag, EpochEntry};

/// The partition that is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The topic's name. It exists already, with `produce.at.offset=true`.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The id of the topic that this one is a copy of; all zero if unknown.
    pub source_topic_id: [u8; 16],
}

impl Target {
    /// A partition whose source is not known by id.
    pub fn new(topic: impl Into<String>, partition: i32) -> Self {
        Self { topic: topic.into(), partition, source_topic_id: [0; 16] }
    }
}

/// Where a partition stands, as a host told by tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its end: the offset after the last one.
    pub end: i64,
    /// The largest epoch stored or declared so far; -1 = none.
    pub shown_epoch: i32,
    /// The epoch of its last epoch entry; -1 = none.
    pub last_epoch: i32,
}

impl From<AnswerTag> for Found {
    fn from(tag: AnswerTag) -> Self {
        Self { end: tag.end, shown_epoch: tag.shown_epoch, last_epoch: tag.last_epoch }
    }
}

/// Where the source stands at the time of a call. Readers here see it as the copied partition's own position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Its log start.
    pub start: i64,
    /// Its high watermark, at least `start`.
    pub end: i64,
    /// Its current leader epoch, at least 0.
    pub epoch: i32,
}

/// Batches as the source has them, and what belongs to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Where the write before it ended, or where the partition was resumed. A step between `from` and the first batch is
    /// a hole that stays empty; a write that was lost before this one is not taken for one.
    pub from: i64,
    /// Whole batches of format v2, one behind the other, untouched. May be empty.
    pub batches: Bytes,
    /// The source's leader epochs that begin at `from` or above, rising. Those that begin with one of the batches may
    /// be left out.
    pub entries: Vec<EpochEntry>,
    /// The end after the write, if it lies behind the last batch.
    pub end_to: Option<i64>,
    /// Where the source stands.
    pub source: Source,
}

/// The source was truncated, and the copy shall follow (R31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncate {
    /// Where the write before it ended.
    pub from: i64,
    /// The end after the cut, at a batch boundary of the copy.
    pub to: i64,
    /// The source's leader epoch at `to` - 1; -1 = nothing there.
    pub epoch_before: i32,
    /// Where the source stands. Its epoch must be above the latest one that is cut.
    pub source: Source,
}

/// A call, as it comes from the partition's handle.
#[derive(Debug)]
pub(super) enum Call {
    Write(Write),
    Truncate(Truncate),
    /// A write of nothing at the present end.
    Source(Source),
}

/// An acknowledged call: durable at the host, by the host's flush policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The partition's end after this call and those before it. The host may hold more by now.
    pub end: i64,
    /// The shown epoch at that time.
    pub shown_epoch: i32,
}

/// The future of an acknowledgement. Dropping it does not take the write back.
#[derive(Debug)]
#[must_use = "a write has only been queued until its receipt says more"]
pub struct Receipt {
    settled: oneshot::Receiver<Result<Written, ExactError>>,
}

impl Receipt {
    pub(super) fn new(settled: oneshot::Receiver<Result<Written, ExactError>>) -> Self {
        Self { settled }
    }
}

impl Future for Receipt {
    type Output = Result<Written, ExactError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.settled).poll(context).map(|settled| settled.unwrap_or(Err(ExactError::Ended)))
    }
}
