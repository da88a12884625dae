//! Judging live calls with a candidate too, without anybody waiting for it.
//!
//! Followers hand over calls with their tapes and verdicts by a bounded queue; a thread of the run's own judges each once
//! more from its tape, and compares.

mod compare;
mod queue;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use compare::{Difference, Said};
pub use queue::MAX_QUEUED_BYTES;
use queue::{Case, Cases};
pub(super) use queue::{Meter, Tap};

use super::slot::WeakSlot;
use super::{Replay, Slot, Stamp};
use crate::{Digest, Failure, Instance, Judge, Module};

/// How many differences are kept; all are counted.
pub const MAX_DIFFERENCES: usize = 100;

/// How soon a run notices that it is to end.
const LOOK_AROUND: Duration = Duration::from_millis(50);
/// What waits as the time is over is still judged, but for no longer than this.
const MAX_REST: Duration = Duration::from_secs(1);

/// When a shadow run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// After this time.
    Time(Duration),
    /// After so many calls were judged, the inconclusive ones included.
    Requests(u64),
}

/// Why there is no shadow run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShadowError {
    /// A slot has one at a time.
    #[error("a shadow run is going on already, slot=`{slot}`")]
    Busy {
        /// The slot's name.
        slot: String,
    },
    /// The candidate does not start.
    #[error(transparent)]
    Candidate(#[from] Failure),
    /// The operating system gives no thread.
    #[error("no thread for the shadow run: {text}")]
    Thread {
        /// What it says.
        text: String,
    },
}

/// What became of a shadow run so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowReport {
    /// SHA-256 of the candidate's file.
    pub candidate: Digest,
    /// The generation that it is compared with.
    pub live: Stamp,
    /// Calls that the candidate judged: the sum of the next three.
    pub judged: u64,
    /// It said the same.
    pub same: u64,
    /// It said something else.
    pub different: u64,
    /// It asked what was not recorded, so nothing can be said.
    pub inconclusive: u64,
    /// Live calls that it did not get, because too much was waiting.
    pub dropped: u64,
    /// The first [`MAX_DIFFERENCES`] differences.
    pub differences: Vec<Difference>,
    /// Why it ended; none while it is going on.
    pub end: Option<ShadowEnd>,
}

/// Why a shadow run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShadowEnd {
    /// Its bound was reached.
    Bound,
    /// It was stopped.
    Stopped,
    /// Another generation came into service.
    Swapped,
}

/// A shadow run; ends when this is dropped.
#[derive(Debug)]
pub struct Shadow {
    run: Arc<Run>,
}

#[derive(Debug)]
struct Run {
    report: Mutex<ShadowReport>,
    ended: Condvar,
    stop: AtomicBool,
    meter: Arc<Meter>,
}

impl Shadow {
    pub(super) fn begin(
        slot: &Slot,
        candidate: Module,
        bound: Bound,
        queue: usize,
    ) -> Result<Self, ShadowError> {
        let (tap, cases) = queue::new(queue);
        let report = ShadowReport::new(candidate.digest(), slot.current().stamp());
        let run = Arc::new(Run {
            report: Mutex::new(report),
            ended: Condvar::new(),
            stop: AtomicBool::new(false),
            meter: Arc::clone(cases.meter()),
        });
        let judge = candidate.instance()?;
        let Some(live) = slot.set_tap(&tap) else {
            return Err(ShadowError::Busy { slot: slot.name().to_owned() });
        };
        run.report().live = live;
        let work = Work { run: Arc::clone(&run), slot: slot.downgrade(), judge, cases, bound };
        let spawned = std::thread::Builder::new().name("module-shadow".to_owned()).spawn(|| work.run());
        match spawned {
            Ok(_) => Ok(Self { run }),
            Err(error) => {
                slot.take_tap(&run.meter);
                Err(ShadowError::Thread { text: error.to_string() })
            }
        }
    }

    /// Waits for the end; blocks the thread.
    #[must_use]
    pub fn wait(&self) -> ShadowReport {
        let ended = self.run.ended.wait_while(self.run.report(), |report| report.end.is_none());
        drop(ended.unwrap_or_else(PoisonError::into_inner));
        self.report()
    }

    /// Waits for the end, but no longer than this; whether it ended. Blocks the thread.
    #[must_use]
    pub fn wait_for(&self, patience: Duration) -> bool {
        let going_on = |report: &mut ShadowReport| report.end.is_none();
        let waited = self.run.ended.wait_timeout_while(self.run.report(), patience, going_on);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Ends it soon, without waiting for that.
    pub fn stop(&self) {
        self.run.stop.store(true, Ordering::Relaxed);
    }

    /// What became of it so far.
    #[must_use]
    pub fn report(&self) -> ShadowReport {
        let report = self.run.report().clone();
        ShadowReport { dropped: self.run.meter.dropped(), ..report }
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Run {
    fn report(&self) -> MutexGuard<'_, ShadowReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShadowReport {
    fn new(candidate: Digest, live: Stamp) -> Self {
        Self {
            candidate,
            live,
            judged: 0,
            same: 0,
            different: 0,
            inconclusive: 0,
            dropped: 0,
            differences: Vec::new(),
            end: None,
        }
    }

    fn add(&mut self, outcome: Outcome) {
        self.judged = self.judged.saturating_add(1);
        let count = match outcome {
            Outcome::Same => &mut self.same,
            Outcome::Inconclusive => &mut self.inconclusive,
            Outcome::Different(difference) => {
                if self.differences.len() < MAX_DIFFERENCES {
                    self.differences.push(*difference);
                }
                &mut self.different
            }
        };
        *count = count.saturating_add(1);
    }
}

enum Outcome {
    Same,
    Different(Box<Difference>),
    Inconclusive,
}

/// What the run's thread owns.
struct Work {
    run: Arc<Run>,
    slot: WeakSlot,
    judge: Instance<Replay>,
    cases: Cases,
    bound: Bound,
}

impl Work {
    fn run(mut self) {
        let end = self.judge_all();
        if let Some(slot) = self.slot.upgrade() {
            slot.take_tap(&self.run.meter);
        }
        if end == ShadowEnd::Bound && matches!(self.bound, Bound::Time(_)) {
            let until = Instant::now().checked_add(MAX_REST);
            while until.is_some_and(|until| Instant::now() < until)
                && let Some(case) = self.cases.waiting()
            {
                self.judge(case);
            }
        }
        self.run.report().end = Some(end);
        self.run.ended.notify_all();
    }

    fn judge_all(&mut self) -> ShadowEnd {
        let began = Instant::now();
        loop {
            let over = match self.bound {
                Bound::Time(time) => began.elapsed() >= time,
                Bound::Requests(most) => self.run.report().judged >= most,
            };
            if over {
                return ShadowEnd::Bound;
            }
            if self.run.stop.load(Ordering::Relaxed) {
                return ShadowEnd::Stopped;
            }
            if !self.run.meter.is_open() {
                return ShadowEnd::Swapped;
            }
            let patience = match self.bound {
                Bound::Time(time) => time.saturating_sub(began.elapsed()).min(LOOK_AROUND),
                Bound::Requests(_) => LOOK_AROUND,
            };
            match self.cases.next(patience) {
                Ok(Some(case)) => self.judge(case),
                Ok(None) => {}
                // Nobody hands over calls any more: at a swap, or because slot and followers are gone.
                Err(queue::Gone) if self.run.meter.is_open() => return ShadowEnd::Stopped,
                Err(queue::Gone) => return ShadowEnd::Swapped,
            }
        }
    }

    fn judge(&mut self, case: Case) {
        let Case { call, tape, live, .. } = case;
        let judged = self.judge.judge(call, Replay::new(tape));
        let outcome = if judged.partition.is_inconclusive() {
            Outcome::Inconclusive
        } else {
            match Difference::between(&judged.call, &live, &judged.verdict) {
                Some(difference) => Outcome::Different(Box::new(difference)),
                None => Outcome::Same,
            }
        };
        self.run.report().add(outcome);
    }
}
