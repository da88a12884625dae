//! The way of recorded calls from those who judge to the shadow run: bounded, and never waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::{Call, Denied, Plan, Tape};

/// Bytes of batches and tapes that may wait, all together.
pub const MAX_QUEUED_BYTES: usize = 64 << 20;

/// A live call with all that is needed to judge it once more.
pub(super) struct Case {
    pub(super) call: Call,
    pub(super) tape: Tape,
    pub(super) live: Result<Plan, Denied>,
    len: usize,
}

/// The end for those who judge.
#[derive(Debug)]
pub(in crate::swap) struct Tap {
    queue: SyncSender<Case>,
    meter: Arc<Meter>,
}

/// The end for the run.
pub(super) struct Cases {
    queue: Receiver<Case>,
    meter: Arc<Meter>,
}

/// What is known at both ends.
#[derive(Debug)]
pub(in crate::swap) struct Meter {
    most: usize,
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    dropped: AtomicU64,
    closed: AtomicBool,
}

/// Nobody is left at the other end.
pub(super) struct Gone;

/// A queue for at most `most` calls.
pub(super) fn new(most: usize) -> (Arc<Tap>, Cases) {
    let most = most.max(1);
    let (sender, receiver) = sync_channel(most);
    let meter = Arc::new(Meter {
        most,
        waiting: AtomicUsize::new(0),
        waiting_bytes: AtomicUsize::new(0),
        dropped: AtomicU64::new(0),
        closed: AtomicBool::new(false),
    });
    (Arc::new(Tap { queue: sender, meter: Arc::clone(&meter) }), Cases { queue: receiver, meter })
}

impl Tap {
    /// Whether a call is to be recorded. One for which there is no room counts as dropped.
    pub(in crate::swap) fn wants(&self, call: &Call) -> bool {
        if !self.meter.is_open() {
            return false;
        }
        let room = self.meter.waiting.load(Relaxed) < self.meter.most && self.meter.fits(len(call));
        if !room {
            self.meter.drop_one();
        }
        room
    }

    /// Hands over a call that was recorded; never waits.
    pub(in crate::swap) fn offer(&self, call: &Call, tape: Tape, live: &Result<Plan, Denied>) {
        let len = len(call).saturating_add(tape.len_bytes());
        if !self.meter.fits(len) {
            return self.meter.drop_one();
        }
        self.meter.waiting.fetch_add(1, Relaxed);
        self.meter.waiting_bytes.fetch_add(len, Relaxed);
        let case = Case { call: call.clone(), tape, live: live.clone(), len };
        if self.queue.try_send(case).is_err() {
            self.meter.gone(len);
            self.meter.drop_one();
        }
    }

    pub(in crate::swap) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Nothing is wanted any more.
    pub(in crate::swap) fn close(&self) {
        self.meter.closed.store(true, Relaxed);
    }
}

impl Cases {
    pub(super) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// The next call, if one comes in this time.
    pub(super) fn next(&self, patience: Duration) -> Result<Option<Case>, Gone> {
        match self.queue.recv_timeout(patience) {
            Ok(case) => Ok(Some(self.taken(case))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Gone),
        }
    }

    /// The next call that waits already.
    pub(super) fn waiting(&self) -> Option<Case> {
        self.queue.try_recv().ok().map(|case| self.taken(case))
    }

    fn taken(&self, case: Case) -> Case {
        self.meter.gone(case.len);
        case
    }
}

impl Meter {
    pub(super) fn is_open(&self) -> bool {
        !self.closed.load(Relaxed)
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    fn drop_one(&self) {
        // What comes after the end is not missed.
        if self.is_open() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    fn fits(&self, len: usize) -> bool {
        self.waiting_bytes.load(Relaxed).saturating_add(len) <= MAX_QUEUED_BYTES
    }

    fn gone(&self, len: usize) {
        self.waiting.fetch_sub(1, Relaxed);
        self.waiting_bytes.fetch_sub(len, Relaxed);
    }
}

fn len(call: &Call) -> usize {
    usize::try_from(call.len_bytes()).unwrap_or(usize::MAX)
}
