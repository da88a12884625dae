//! A swap that is under way: whoever asked for it may go away, and a rollback may overtake it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use verbatim_engine::{Bound, Module, Shadow, ShadowError, ShadowReport, Slot};

use super::status::described;
use super::swap::now_ms;

/// Live requests that wait for a candidate at a time; what comes while so many wait is not judged by it, and counted.
const SHADOW_QUEUE: usize = 1024;
/// How soon it is noticed that nobody waits for a swap any more.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// The longest shadow period.
pub const SHADOW_TIME_MAX: Duration = Duration::from_secs(60 * 60);
/// How long a number of live requests is waited for.
pub const SHADOW_REQUESTS_WAIT: Duration = Duration::from_secs(10 * 60);

/// Whoever asks for a swap or a rollback.
pub trait Asker {
    /// Is told of a step that is done or begins.
    fn tell(&self, step: String);
    /// Does not wait for the end any more: a swap that changed nothing yet is abandoned.
    fn is_gone(&self) -> bool;
}

/// The swap under way under one name, if there is one.
#[derive(Default)]
pub(super) struct UnderWay(Mutex<State>);

#[derive(Default)]
struct State {
    /// There is one, and it is not decided yet that it takes place.
    is_open: bool,
    is_overtaken: bool,
    candidate: Option<Arc<Candidate>>,
}

/// A module that judges live requests beside the one that serves.
struct Candidate {
    module: Module,
    since_ms: u64,
    shadow: Shadow,
}

/// What is told of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Beside {
    /// What it says it is, name and version.
    pub described: String,
    /// SHA-256 of its file.
    pub sha256: String,
    /// Since when it judges live requests, in milliseconds since 1970.
    pub since_ms: u64,
    /// Live requests that it judged so far.
    pub judged: u64,
    /// Of them, otherwise than the module that serves.
    pub different: u64,
}

/// A swap from its beginning to its end.
pub(super) struct Running<'a>(&'a UnderWay);

impl UnderWay {
    /// A swap begins. One at a time: the caller sees to that.
    pub(super) fn begin(&self) -> Running<'_> {
        *self.lock() = State { is_open: true, ..State::default() };
        Running(self)
    }

    /// Ends the swap under way, soon, if there is one that can be ended.
    pub(super) fn overtake(&self) -> bool {
        let mut state = self.lock();
        state.is_overtaken = state.is_open;
        state.is_open
    }

    /// The candidate of the swap under way, while it judges live requests.
    pub(super) fn beside(&self) -> Option<Beside> {
        let candidate = self.lock().candidate.clone()?;
        let report = candidate.shadow.report();
        Some(Beside {
            described: described(&candidate.module),
            sha256: candidate.module.digest().to_string(),
            since_ms: candidate.since_ms,
            judged: report.judged,
            different: report.different,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running<'_> {
    pub(super) fn is_overtaken(&self) -> bool {
        self.0.lock().is_overtaken
    }

    /// Whether it takes place: a rollback that comes from now on comes after it.
    pub(super) fn decide(&self) -> bool {
        let mut state = self.0.lock();
        state.is_open = false;
        !state.is_overtaken
    }

    /// Has the module judge live requests, until the bound is reached; or a number of requests does not come within `wait`; or
    /// `go_on` fails, which is asked all the time. Blocks the thread.
    pub(super) fn judge_beside<E: From<ShadowError>>(
        &self,
        slot: &Slot,
        module: &Module,
        bound: Bound,
        wait: Duration,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<ShadowReport, E> {
        let shadow = slot.begin_shadow(module.clone(), bound, SHADOW_QUEUE)?;
        let since_ms = u64::try_from(now_ms()).unwrap_or_default();
        let candidate = Arc::new(Candidate { module: module.clone(), since_ms, shadow });
        self.0.lock().candidate = Some(Arc::clone(&candidate));
        let shadow = &candidate.shadow;
        let until = Instant::now().checked_add(wait).filter(|_| matches!(bound, Bound::Requests(_)));
        let mut goes_on = Ok(());
        while goes_on.is_ok() && !shadow.wait_for(LOOK_AROUND) {
            goes_on = go_on();
            if goes_on.is_err() || until.is_some_and(|until| Instant::now() >= until) {
                shadow.stop();
            }
        }
        let report = shadow.wait();
        self.0.lock().candidate = None;
        goes_on.map(|()| report)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.0.lock() = State::default();
    }
}
