//! Retention on a normal partition, by Kafka's conditions: whole segments, the oldest first, until the first that stays.
//!
//! A segment that is not wholly below the high watermark stays. By size one goes as long as at least `retention.bytes`
//! remain without it; then by time, if its largest timestamp lies more than `retention.ms` back. The last segment goes
//! like any other once an empty one has been rolled after it. The start moves durably first; what a crash leaves of the
//! files, the next start removes. Producers, open transactions among them, outlive their batches.

use crate::log::Log;
use crate::segment::Segment;
use crate::{ApplyError, Commit, LogError};

/// What is to be kept of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// `retention.bytes`; `None` sets no bound.
    pub bytes: Option<u64>,
    /// `retention.ms`; `None` sets no bound.
    pub ms: Option<i64>,
    /// Segments that one call removes at most, so that what waits for it does not wait long; at least one.
    pub segments_max: usize,
}

/// Why a segment went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It lies below the log start offset.
    Start,
    /// The log is larger than `retention.bytes`.
    Size,
    /// Its largest timestamp is older than `retention.ms`.
    Time,
}

/// A segment that went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedSegment {
    /// The offset that names it.
    pub base: i64,
    /// Its bytes.
    pub bytes: u64,
    /// Its largest timestamp, else when it was last written; -1 where neither is known.
    pub largest_timestamp: i64,
    /// Why it went.
    pub reason: Reason,
}

/// What a call of [`Log::retain`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The segments, the oldest first.
    pub segments: Vec<RemovedSegment>,
    /// The log start offset now.
    pub start: i64,
    /// More segments are due: the call stopped at `segments_max`.
    pub more: bool,
}

impl Removed {
    /// The bytes that were removed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).fold(0, u64::saturating_add)
    }
}

pub(crate) fn retain(log: &mut Log, now_ms: i64, retention: &Retention) -> Result<Removed, ApplyError> {
    if let Some(reason) = log.offline() {
        return Err(ApplyError::Offline { reason: reason.to_owned() });
    }
    if log.facts.exact {
        let detail = "retention never applies to an exact log: its source deletes".to_owned();
        return Err(ApplyError::Invalid { detail });
    }
    let most = retention.segments_max.max(1);
    let mut removed = Removed { start: log.facts.start, ..Removed::default() };
    let dead = dead(log).map_err(|source| log.failure(None, source))?;
    if !dead.is_empty() {
        let deleted = log.delete_dead();
        log.relist();
        log.publish();
        deleted.map_err(|source| log.failure(None, source))?;
        removed.segments = dead;
    }
    let due = due(log, now_ms, retention).map_err(|source| log.failure(None, source))?;
    removed.more = due.len() > most;
    let due = due.get(..due.len().min(most)).unwrap_or_default();
    if !due.is_empty() {
        let start = upper_bound(log, due.len().saturating_sub(1));
        log.apply(&Commit { start: Some(start), ..Commit::default() })?;
        removed.segments.extend(due);
        removed.start = log.facts.start;
    }
    Ok(removed)
}

/// What lies below the start as a whole, and is still there because its removal failed.
fn dead(log: &Log) -> Result<Vec<RemovedSegment>, LogError> {
    let dead = log.segments.iter().take(log.dead_count());
    dead.map(|segment| Ok(removed(segment, largest_timestamp(segment)?, Reason::Start))).collect()
}

/// The leading segments that are due.
fn due(log: &Log, now_ms: i64, retention: &Retention) -> Result<Vec<RemovedSegment>, LogError> {
    let total = log.segments.iter().map(|segment| segment.length()).fold(0, u64::saturating_add);
    let mut excess = retention.bytes.and_then(|bytes| total.checked_sub(bytes));
    let mut due = Vec::new();
    for (index, segment) in log.segments.iter().enumerate() {
        let is_last = index.saturating_add(1) == log.segments.len();
        if log.high_watermark < upper_bound(log, index) || (is_last && segment.length() == 0) {
            break;
        }
        excess = excess.and_then(|excess| excess.checked_sub(segment.length()));
        let largest = largest_timestamp(segment)?;
        let old = |ms| largest.is_some_and(|largest| now_ms.saturating_sub(largest) > ms);
        let reason = match retention.ms {
            _ if excess.is_some() => Reason::Size,
            Some(ms) if old(ms) => Reason::Time,
            _ => break,
        };
        due.push(removed(segment, largest, reason));
        if due.len() > retention.segments_max.max(1) {
            break;
        }
    }
    Ok(due)
}

/// The offset after a segment: where the next one begins, or the end.
fn upper_bound(log: &Log, index: usize) -> i64 {
    log.segments.get(index.saturating_add(1)).map_or(log.end, |next| next.base)
}

fn removed(segment: &Segment, largest: Option<i64>, reason: Reason) -> RemovedSegment {
    let (base, bytes) = (segment.base, segment.length());
    RemovedSegment { base, bytes, largest_timestamp: largest.unwrap_or(-1), reason }
}

/// A segment whose batches have no timestamp is as old as its file.
fn largest_timestamp(segment: &Segment) -> Result<Option<i64>, LogError> {
    match segment.latest() {
        Some((latest, _)) => Ok(Some(latest)),
        None => segment.modified_ms(),
    }
}
