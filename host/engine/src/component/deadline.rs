//! How long a call may take, in the processor time of its own thread.
//!
//! What it is handed buys time: bytes, and records, since what has to be done for each of many small ones does not depend on
//! their bytes. A record counts as soon as as many bytes were handed over as the records before it have at least.
//!
//! A ticker raises the engine's epoch every millisecond. A call that sees a tick looks at its thread's clock and goes on
//! if it is within its budget: on a busy machine a call that is not running uses up none of it. A call that sees no tick
//! pays nothing.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Every call has this much.
const BASE: Duration = Duration::from_millis(2);
/// And this much more for each [`PIECE_LEN`] bytes handed to the module.
const PER_PIECE: Duration = Duration::from_millis(1);
const PIECE_LEN: u64 = 32 << 10;
/// And this much more for each record handed to the module.
const PER_RECORD_NS: u64 = 200;
/// No record has fewer bytes: its length, six fields of one byte.
const MIN_RECORD_LEN: u64 = 7;

/// In wall-clock time a call may take this long: the backstop for one that waits. It is far from any budget, since on a busy
/// machine a call waits for a processor, and that must not be held against its module.
const MAX_WALL: Duration = Duration::from_secs(2);

/// What the host does of its own for a module in one call, such as compressing, and is not the module's time. Beyond this it is:
/// the thread has others to serve.
const MAX_PAUSED: Duration = Duration::from_secs(4);

/// The deadline of one call.
#[derive(Debug, Default)]
pub(super) struct Deadline {
    paused: Duration,
    handed_over: u64,
    /// Records in the batches, as their headers say.
    records: u64,
    /// Both clocks at the first tick, which comes within a millisecond of the call's beginning.
    begun: Option<(Duration, Instant)>,
    missed: Option<Duration>,
}

/// Both clocks as something begins that does not count.
#[derive(Debug)]
pub(super) struct Pause(Duration, Instant);

impl Pause {
    pub(super) fn begin() -> Self {
        Self(thread_time(), Instant::now())
    }
}

impl Deadline {
    /// What happened since `pause` does not count, within [`MAX_PAUSED`] a call. Before the first tick nothing does.
    pub(super) fn end(&mut self, pause: Pause) {
        let (processor, wall) = (thread_time().saturating_sub(pause.0), pause.1.elapsed());
        self.paused = self.paused.saturating_add(wall);
        if self.paused > MAX_PAUSED {
            return;
        }
        if let Some((processor_begun, wall_begun)) = &mut self.begun {
            *processor_begun = processor_begun.saturating_add(processor);
            *wall_begun = wall_begun.checked_add(wall).unwrap_or(*wall_begun);
        }
    }

    /// A call begins, and this many bytes go in with it; its batches say that they have so many records.
    pub(super) fn begin(&mut self, handed_over: u64, records: u64) {
        *self = Self { handed_over, records, ..Self::default() };
    }

    /// A tick came; `more` bytes of records were handed over during the call. False if the time is up.
    pub(super) fn tick(&mut self, more: u64) -> bool {
        let (processor, wall) = (thread_time(), Instant::now());
        let (processor_begun, wall_begun) = *self.begun.get_or_insert((processor, wall));
        let budget = budget(self.handed_over.saturating_add(more), self.records.min(more / MIN_RECORD_LEN));
        let within = processor.saturating_sub(processor_begun) <= budget
            && wall.saturating_duration_since(wall_begun) <= MAX_WALL;
        if !within {
            self.missed = Some(budget);
        }
        within
    }

    /// The budget, if it was exceeded.
    pub(super) fn missed(&self) -> Option<Duration> {
        self.missed
    }
}

/// What a call that was handed this many bytes, and in them records, may use.
fn budget(handed_over: u64, records: u64) -> Duration {
    let pieces = u32::try_from(handed_over / PIECE_LEN).unwrap_or(u32::MAX);
    let for_records = Duration::from_nanos(records.saturating_mul(PER_RECORD_NS));
    BASE.saturating_add(PER_PIECE.saturating_mul(pieces)).saturating_add(for_records)
}

/// Processor time of the calling thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_records_buy_time() {
        assert_eq!(budget(0, 0), Duration::from_millis(2));
        assert_eq!(budget((32 << 10) - 1, 0), Duration::from_millis(2));
        assert_eq!(budget(64 << 20, 0), Duration::from_millis(2050));
        assert_eq!(budget(70_000, 10_000), Duration::from_millis(6));
        assert!(budget(u64::MAX, 0) > Duration::from_secs(3600));
        assert!(budget(0, u64::MAX) > Duration::from_secs(3600));
    }

    #[test]
    fn records_buy_time_as_they_are_handed_over() {
        let missed = |records, bytes| {
            let begun = Some((Duration::ZERO, Instant::now()));
            let mut deadline = Deadline { begun, records, ..Deadline::default() };
            while thread_time() < Duration::from_millis(10) {}
            assert!(!deadline.tick(bytes));
            deadline.missed().unwrap()
        };
        assert_eq!(missed(1000, 0), BASE);
        assert_eq!(missed(1000, 700), BASE + Duration::from_micros(20), "of 100 records at the most");
        assert_eq!(missed(1000, 30_000), BASE + Duration::from_micros(200));
    }

    #[test]
    fn waiting_too_long_is_too_long() {
        let waited = |millis| {
            let begun = (thread_time(), Instant::now().checked_sub(Duration::from_millis(millis)).unwrap());
            Deadline { begun: Some(begun), ..Deadline::default() }
        };
        assert!(waited(1900).tick(0), "a busy machine");
        assert!(!waited(2000).tick(0));
        assert!(!waited(2000).tick(64 << 20), "whatever was handed over");
    }

    #[test]
    fn processor_time_counts_and_waiting_does_not() {
        let mut deadline = Deadline::default();
        deadline.begin(0, 0);
        assert!(deadline.tick(0));
        std::thread::sleep(Duration::from_millis(20));
        assert!(deadline.tick(0), "waiting uses no processor time");

        let until = thread_time() + Duration::from_millis(3);
        while thread_time() < until {}
        assert!(!deadline.tick(0));
        assert_eq!(deadline.missed(), Some(BASE));
        assert!(deadline.tick(64 << 20), "what was handed over meanwhile counts");
        deadline.begin(0, 0);
        assert_eq!(deadline.missed(), None);

        assert!(deadline.tick(0));
        let pause = Pause::begin();
        let until = thread_time() + Duration::from_millis(5);
        while thread_time() < until {}
        deadline.end(pause);
        assert!(deadline.tick(0), "a pause does not count");
        let pause = Pause::begin();
        let until = thread_time() + Duration::from_millis(5);
        while thread_time() < until {}
        deadline.paused = MAX_PAUSED;
        deadline.end(pause);
        assert!(!deadline.tick(0), "there were enough of them");
    }
}
