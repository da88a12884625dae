//! What one append thread counts, and what it does at present. Nobody else writes it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use uuid::Uuid;
use verbatim_contract::Reason;
use verbatim_engine::{FAILURE_LABELS, Failure, Incoming, Plan, REASON_LABELS, failure_place, reason_place};

use super::cells::{Cell, Histogram, Own};
use super::wide;
use crate::shared::PartitionId;

/// The label of parts that are refused because the module failed on them before: one more kind of failure.
pub(super) const POISONED: &str = "poisoned";

/// Upper bounds of a call's time, in nanoseconds: 1 us to 100 ms.
pub(super) const JUDGING: [u64; 16] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
];
/// Upper bounds of waits, flushes and whole requests, in nanoseconds: 10 us to 30 s.
pub(super) const TIMES: [u64; 19] = [
    10_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
];
/// Upper bounds of batches in a call.
pub(super) const BATCHES: [u64; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096];
/// Upper bounds of requests that share a flush.
pub(super) const GROUPS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Labels of the two modes, by their place.
pub(super) const MODES: [&str; 2] = ["normal", "exact"];

/// Counted by one append thread.
pub(crate) struct ThreadMetrics {
    pub(super) refusals: [Own; REASON_LABELS.len()],
    pub(super) failures: [Own; FAILURE_LABELS.len() + 1],
    pub(super) appended: [Appended; 2],
    pub(super) judging: Histogram<Own, { JUDGING.len() }>,
    pub(super) batches_per_call: Histogram<Own, { BATCHES.len() }>,
    pub(super) queue_wait: Histogram<Own, { TIMES.len() }>,
    pub(super) flushes: Histogram<Own, { TIMES.len() }>,
    pub(super) groups: Histogram<Own, { GROUPS.len() }>,
    /// What the thread does.
    pub(crate) duty: Duty,
}

/// What was appended in one mode.
#[derive(Default)]
pub(super) struct Appended {
    pub(super) records: Own,
    pub(super) batches: Own,
    pub(super) bytes: Own,
}

impl ThreadMetrics {
    pub(super) fn new(started: Instant) -> Self {
        Self {
            refusals: std::array::from_fn(|_| Own::default()),
            failures: std::array::from_fn(|_| Own::default()),
            appended: Default::default(),
            judging: Histogram::new(&JUDGING),
            batches_per_call: Histogram::new(&BATCHES),
            queue_wait: Histogram::new(&TIMES),
            flushes: Histogram::new(&TIMES),
            groups: Histogram::new(&GROUPS),
            duty: Duty::new(started),
        }
    }

    /// A part of a request that was queued then is taken now; when that is.
    pub(crate) fn taken(&self, id: PartitionId, queued: Instant) -> Instant {
        let now = Instant::now();
        self.queue_wait.record(nanoseconds(now.saturating_duration_since(queued)));
        self.duty.begin(Work::Produce(id), now);
        now
    }

    /// A module judged so many batches. Asking for the time costs more than counting, so `since` is when they were taken.
    pub(crate) fn judged(&self, batches: usize, since: Instant) {
        self.judging.record(nanoseconds(since.elapsed()));
        self.batches_per_call.record(wide(batches));
    }

    /// A partition is flushed.
    pub(crate) fn flushed<T>(&self, id: PartitionId, flush: impl FnOnce() -> T) -> T {
        let since = Instant::now();
        self.duty.begin(Work::Flush(id), since);
        let done = flush();
        self.flushes.record(nanoseconds(since.elapsed()));
        done
    }

    /// So many parts of requests are answered together.
    pub(crate) fn group(&self, requests: usize) {
        if requests > 0 {
            self.groups.record(wide(requests));
        }
    }

    /// A plan for these batches was carried out.
    pub(crate) fn appended(&self, exact: bool, plan: &Plan, batches: &[Incoming]) {
        let Some(appended) = self.appended.get(usize::from(exact)) else { return };
        for placed in plan.appends() {
            let index = usize::try_from(placed.index).unwrap_or(usize::MAX);
            let records = batches.get(index).map_or(0, |batch| batch.facts.header.record_count);
            appended.records.add(u64::try_from(records).unwrap_or(0));
            appended.bytes.add(wide(placed.head.len().saturating_add(placed.payload.len())));
        }
        appended.batches.add(wide(plan.appends().len()));
    }

    /// A part of a request was refused.
    pub(crate) fn refused(&self, reason: Reason) {
        if let Some(count) = self.refusals.get(reason_place(reason)) {
            count.add(1);
        }
    }

    /// A module failed.
    pub(crate) fn failed(&self, failure: &Failure) {
        self.failed_at(failure_place(failure));
    }

    /// A part of a request was refused because a module had failed on it before.
    pub(crate) fn poisoned(&self) {
        self.failed_at(FAILURE_LABELS.len());
    }

    fn failed_at(&self, place: usize) {
        if let Some(count) = self.failures.get(place) {
            count.add(1);
        }
    }
}

/// Nanoseconds, as histograms count them.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Judging and writing for this partition.
    Produce(PartitionId),
    /// Making this partition durable.
    Flush(PartitionId),
    /// Anything else.
    Other,
}

/// Since when a thread has been at which piece of work.
pub(crate) struct Duty {
    started: Instant,
    /// Nanoseconds after `started`, plus 1; 0 while there is nothing to do. Written last and read first.
    since: AtomicU64,
    kind: AtomicU8,
    topic: (AtomicU64, AtomicU64),
    partition: AtomicU32,
    ended: AtomicBool,
}

/// What a thread was found at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It waits for work.
    Idle,
    /// It has been at one piece of work for so long.
    Busy(Work, Duration),
    /// It does nothing any more.
    Ended,
}

impl Duty {
    fn new(started: Instant) -> Self {
        Self {
            started,
            since: AtomicU64::new(0),
            kind: AtomicU8::new(0),
            topic: (AtomicU64::new(0), AtomicU64::new(0)),
            partition: AtomicU32::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// The thread begins a piece of work now.
    pub(crate) fn begin(&self, work: Work, now: Instant) {
        let (kind, id) = match work {
            Work::Produce(id) => (1, Some(id)),
            Work::Flush(id) => (2, Some(id)),
            Work::Other => (0, None),
        };
        self.kind.store(kind, Ordering::Relaxed);
        if let Some(id) = id {
            let (high, low) = id.topic.as_u64_pair();
            self.topic.0.store(high, Ordering::Relaxed);
            self.topic.1.store(low, Ordering::Relaxed);
            self.partition.store(id.index, Ordering::Relaxed);
        }
        let since = nanoseconds(now.saturating_duration_since(self.started));
        self.since.store(since.saturating_add(1), Ordering::Release);
    }

    /// The thread has nothing to do.
    pub(crate) fn idle(&self) {
        self.since.store(0, Ordering::Release);
    }

    /// The thread is gone, however that came.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// What it is at. Names of work that began only now may be mixed up; of what lasts they are right.
    pub(super) fn found(&self) -> Found {
        if self.ended.load(Ordering::Acquire) {
            return Found::Ended;
        }
        let Some(since) = self.since.load(Ordering::Acquire).checked_sub(1) else { return Found::Idle };
        let topic = (self.topic.0.load(Ordering::Relaxed), self.topic.1.load(Ordering::Relaxed));
        let id = PartitionId {
            topic: Uuid::from_u64_pair(topic.0, topic.1),
            index: self.partition.load(Ordering::Relaxed),
        };
        let work = match self.kind.load(Ordering::Relaxed) {
            1 => Work::Produce(id),
            2 => Work::Flush(id),
            _ => Work::Other,
        };
        Found::Busy(work, self.started.elapsed().saturating_sub(Duration::from_nanos(since)))
    }
}

#[cfg(test)]
#[expect(clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_found_at_what_it_does() {
        let started = Instant::now();
        let duty = Duty::new(started);
        assert_eq!(duty.found(), Found::Idle);
        let id = PartitionId { topic: Uuid::from_u128(7 << 64 | 9), index: 3 };
        for work in [Work::Produce(id), Work::Flush(id), Work::Other] {
            duty.begin(work, started);
            let Found::Busy(found, _) = duty.found() else { panic!("{work:?}") };
            assert_eq!(found, work);
        }
        duty.idle();
        assert_eq!(duty.found(), Found::Idle);
        duty.end();
        assert_eq!(duty.found(), Found::Ended);
    }
}
