//! What is counted of a generation: by each follower in numbers of its own, so that counting shares no memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::labels::{FAILURE_LABELS, REASON_LABELS, failure_place, reason_place};
use crate::{Denied, Failure, Plan};

/// Upper bounds of the classes of time in [`Times`], nanoseconds; one more class has no bound.
pub const TIME_BOUNDS_NS: [u64; 15] = [
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
    100_000_000,
    1_000_000_000,
];

/// One call in so many is timed.
const TIMED_EACH: u64 = 8;

/// What a generation did so far, all its followers together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Calls that were judged, whatever came of them.
    pub calls: u64,
    /// Batches in them.
    pub batches: u64,
    /// Calls that were refused, by the places of [`REASON_LABELS`].
    pub refusals: [u64; REASON_LABELS.len()],
    /// Calls and questions about membership on which the module failed, by the places of [`FAILURE_LABELS`].
    pub failures: [u64; FAILURE_LABELS.len()],
    /// How long judging took: of one call in eight.
    pub times: Times,
    /// The most linear memory that one instance had, in bytes.
    pub memory_bytes: u64,
    /// Calls that the generation before judged again, to see whether it fails too.
    pub probes: u64,
}

/// How long calls took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Calls in each class of [`TIME_BOUNDS_NS`]; the last class has no bound.
    pub classes: [u64; TIME_BOUNDS_NS.len() + 1],
    /// The sum of their times, nanoseconds.
    pub sum_ns: u64,
}

/// A generation's counters.
#[derive(Debug, Default)]
pub(super) struct Counters {
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    tallies: Vec<Arc<Tally>>,
    /// Of followers that went on.
    closed: Counts,
}

/// The numbers of one follower. It alone writes them, so no read-modify-write is needed.
#[derive(Debug)]
pub(super) struct Tally {
    calls: AtomicU64,
    batches: AtomicU64,
    refusals: [AtomicU64; REASON_LABELS.len()],
    failures: [AtomicU64; FAILURE_LABELS.len()],
    classes: [AtomicU64; TIME_BOUNDS_NS.len() + 1],
    sum_ns: AtomicU64,
    memory_bytes: AtomicU64,
    probes: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            calls: 0,
            batches: 0,
            refusals: [0; REASON_LABELS.len()],
            failures: [0; FAILURE_LABELS.len()],
            times: Times::default(),
            memory_bytes: 0,
            probes: 0,
        }
    }
}

impl Default for Tally {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            calls: zero(),
            batches: zero(),
            refusals: [(); REASON_LABELS.len()].map(|()| zero()),
            failures: [(); FAILURE_LABELS.len()].map(|()| zero()),
            classes: [(); TIME_BOUNDS_NS.len() + 1].map(|()| zero()),
            sum_ns: zero(),
            memory_bytes: zero(),
            probes: zero(),
        }
    }
}

impl Counts {
    /// All failures together.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    fn add(&mut self, tally: &Tally) {
        let pairs = |to: &mut [u64], from: &[AtomicU64]| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = to.saturating_add(from.load(Relaxed));
            }
        };
        pairs(&mut self.refusals, &tally.refusals);
        pairs(&mut self.failures, &tally.failures);
        pairs(&mut self.times.classes, &tally.classes);
        for (to, from) in [
            (&mut self.calls, &tally.calls),
            (&mut self.batches, &tally.batches),
            (&mut self.times.sum_ns, &tally.sum_ns),
            (&mut self.probes, &tally.probes),
        ] {
            *to = to.saturating_add(from.load(Relaxed));
        }
        self.memory_bytes = self.memory_bytes.max(tally.memory_bytes.load(Relaxed));
    }
}

impl Times {
    /// How many calls were timed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.classes.iter().sum()
    }
}

impl Counters {
    /// Numbers for one more follower.
    pub(super) fn open(&self) -> Arc<Tally> {
        let mut books = self.books();
        let Books { tallies, closed } = &mut *books;
        // Followers that went on count no more: their numbers are kept, their places are not.
        tallies.retain(|tally| {
            let held = Arc::strong_count(tally) > 1;
            if !held {
                closed.add(tally);
            }
            held
        });
        let tally = Arc::new(Tally::default());
        tallies.push(Arc::clone(&tally));
        tally
    }

    pub(super) fn read(&self) -> Counts {
        let books = self.books();
        let mut counts = books.closed.clone();
        books.tallies.iter().for_each(|tally| counts.add(tally));
        counts
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    /// A call begins. True if it is one of those that are timed.
    pub(super) fn begin(&self, batches: usize) -> bool {
        let calls = self.calls.load(Relaxed).wrapping_add(1);
        self.calls.store(calls, Relaxed);
        raise(&self.batches, u64::try_from(batches).unwrap_or(u64::MAX));
        calls.is_multiple_of(TIMED_EACH)
    }

    pub(super) fn took(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let class = TIME_BOUNDS_NS.partition_point(|&bound| bound < ns);
        self.classes.get(class).into_iter().for_each(|class| raise(class, 1));
        raise(&self.sum_ns, ns);
    }

    pub(super) fn judged(&self, verdict: &Result<Plan, Denied>) {
        match verdict {
            Ok(_) => {}
            Err(Denied::Refused(refusal)) => {
                self.refusals.get(reason_place(refusal.reason)).into_iter().for_each(|count| raise(count, 1));
            }
            Err(Denied::Failed(failure)) => self.failed(failure),
        }
    }

    pub(super) fn failed(&self, failure: &Failure) {
        self.failures.get(failure_place(failure)).into_iter().for_each(|count| raise(count, 1));
    }

    pub(super) fn memory(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if bytes > self.memory_bytes.load(Relaxed) {
            self.memory_bytes.store(bytes, Relaxed);
        }
    }

    pub(super) fn probed(&self) {
        raise(&self.probes, 1);
    }
}

fn raise(count: &AtomicU64, by: u64) {
    count.store(count.load(Relaxed).wrapping_add(by), Relaxed);
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_followers_that_went_on_are_kept() {
        let counters = Counters::default();
        for follower in 1..=20_u64 {
            let tally = counters.open();
            for _ in 0..8 {
                let timed = tally.begin(2);
                if timed {
                    tally.took(Duration::from_nanos(999 + follower));
                }
            }
            tally.failed(&Failure::Deadline { budget_us: 1 });
            tally.memory(usize::try_from(follower).unwrap());
        }
        assert_eq!(counters.books().tallies.len(), 1, "places are given back");
        let counts = counters.read();
        assert_eq!((counts.calls, counts.batches, counts.failed()), (160, 320, 20));
        assert_eq!((counts.failures.get(1), counts.memory_bytes), (Some(&20), 20));
        assert_eq!(counts.times.classes.get(..2).unwrap(), [1, 19], "a bound belongs to its class");
        assert_eq!((counts.times.count(), counts.times.sum_ns), (20, 20 * 999 + 210));
    }
}
