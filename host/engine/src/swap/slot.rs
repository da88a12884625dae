//! A named place for a module.

use std::any::TypeId;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::{ArcSwap, Cache};

use super::shadow::{Bound, Meter, Shadow, ShadowError, Tap};
use super::{Cause, Follower, Generation, Recorded, Stamp, TakenBack, Witness};
use crate::{Digest, Failure, Module, Partition};

/// How many generations a slot remembers, the one in service included.
pub const MAX_HISTORY: usize = 16;

/// A named place for a module, which can be swapped while it judges. Cheap to clone: all clones are the same place.
///
/// Who judges by it has a [`Follower`]. A call is judged by exactly one generation, the one that is in service as it begins;
/// once [`Self::switch`] returned, every call that begins is judged by the new one. Nobody waits: running calls end where they
/// began.
#[derive(Clone)]
pub struct Slot {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    settings: SlotSettings,
    service: Arc<ArcSwap<Service>>,
    /// Held by those who change what is in service, never by those who judge.
    kept: Mutex<Kept>,
}

/// What followers see: replaced as a whole.
pub(super) struct Service {
    pub(super) generation: Arc<Generation>,
    pub(super) previous: Option<Arc<Generation>>,
    pub(super) tap: Option<Arc<Tap>>,
}

struct Kept {
    history: VecDeque<Arc<Generation>>,
    /// Kinds of partitions that are judged: a module is linked for each before it is taken into service.
    kinds: Vec<(TypeId, Prepare)>,
}

type Prepare = fn(&Module) -> Result<(), Failure>;

/// What a slot may be told at its beginning.
#[derive(Clone)]
pub struct SlotSettings {
    /// The number of the first generation: a host that remembers generations goes on with its own count.
    pub first: u64,
    /// What the first generation was swapped for, if that is not over: a host that starts anew goes on where it was, and takes
    /// it back by itself until [`ROLLBACK_WINDOW`](super::ROLLBACK_WINDOW) after the swap. None: it is where the slot began.
    pub before: Option<Before>,
    /// The clock by which [`ROLLBACK_WINDOW`](super::ROLLBACK_WINDOW) is measured.
    pub clock: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// Is told what happens, on the thread where it happens, which may be one that judges: it must not wait.
    pub observer: Arc<dyn Fn(&Event) + Send + Sync>,
}

/// A swap of an earlier process.
#[derive(Clone, Debug)]
pub struct Before {
    /// The module that was in service before it.
    pub module: Module,
    /// How long ago it was.
    pub elapsed: Duration,
}

/// What happens to a slot.
#[derive(Clone, Debug)]
pub enum Event {
    /// Another generation is in service; its cause says why. It is already.
    Switched {
        /// The slot's name.
        slot: String,
        /// The generation before.
        from: Arc<Generation>,
        /// The generation in service.
        to: Arc<Generation>,
    },
    /// A generation failed on a request that the one before it judges without failing.
    Evidence {
        /// The slot's name.
        slot: String,
        /// The generation that failed.
        generation: Arc<Generation>,
        /// On what, and how.
        witness: Witness,
    },
}

/// Why a slot is not rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRollback {
    /// There was no other generation.
    #[error("there is no generation before this one")]
    NoPrevious,
    /// The generation before was taken back.
    #[error("generation {number}, the one before this one, was rolled back itself")]
    WasRolledBack {
        /// Its number.
        number: u64,
    },
}

impl Default for SlotSettings {
    fn default() -> Self {
        Self { first: 1, before: None, clock: Arc::new(Instant::now), observer: Arc::new(|_| ()) }
    }
}

impl SlotSettings {
    /// So long ago, by both clocks; as far back as they go.
    fn past(&self, elapsed: Duration) -> (SystemTime, Instant) {
        let (wall, own) = (SystemTime::now(), (self.clock)());
        (wall.checked_sub(elapsed).unwrap_or(wall), own.checked_sub(elapsed).unwrap_or(own))
    }
}

impl Slot {
    /// A place with this module in service.
    #[must_use]
    pub fn new(name: impl Into<String>, module: Module) -> Self {
        Self::with(name, module, SlotSettings::default())
    }

    /// The same with settings of one's own.
    #[must_use]
    pub fn with(name: impl Into<String>, module: Module, mut settings: SlotSettings) -> Self {
        // Taken out: the settings stay as long as the slot, and the module need not.
        let before = settings.before.take();
        let (cause, elapsed) = match &before {
            Some(before) => (Cause::Swap, before.elapsed),
            None => (Cause::Start, Duration::ZERO),
        };
        let previous = before.map(|before| {
            let number = settings.first.saturating_sub(1);
            Arc::new(Generation::new(number, before.module, Cause::Start, settings.past(elapsed)))
        });
        let generation = Arc::new(Generation::new(settings.first, module, cause, settings.past(elapsed)));
        let history = previous.iter().chain([&generation]).map(Arc::clone).collect();
        let service = Service { generation, previous, tap: None };
        Self {
            shared: Arc::new(Shared {
                name: name.into(),
                settings,
                service: Arc::new(ArcSwap::from_pointee(service)),
                kept: Mutex::new(Kept { history, kinds: Vec::new() }),
            }),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The generation in service.
    #[must_use]
    pub fn current(&self) -> Arc<Generation> {
        Arc::clone(&self.shared.service.load().generation)
    }

    /// The generation that was in service before.
    #[must_use]
    pub fn previous(&self) -> Option<Arc<Generation>> {
        self.shared.service.load().previous.clone()
    }

    /// The last [`MAX_HISTORY`] generations, oldest first; the last one is in service.
    #[must_use]
    pub fn history(&self) -> Vec<Arc<Generation>> {
        self.kept().history.iter().cloned().collect()
    }

    /// A judge that always judges by the generation in service: one for each thread that judges.
    #[must_use]
    pub fn follower<P: Partition>(&self) -> Follower<P> {
        let prepare: Prepare = Module::prepare::<Recorded<P>>;
        let mut kept = self.kept();
        let kind = TypeId::of::<P>();
        if kept.kinds.iter().all(|(known, _)| *known != kind) {
            kept.kinds.push((kind, prepare));
        }
        drop(kept);
        // If that fails, so does the first call, and says why.
        let _ = prepare(self.current().module());
        Follower::new(self.clone())
    }

    /// Takes a module into service, whatever is in service. When this returns, every call that begins is judged by it. A
    /// shadow run ends. The module is not checked here beyond what [`Module::load`] did.
    ///
    /// [`Cause::Rollback`] marks the generation that goes as rolled back.
    pub fn switch(&self, module: Module, cause: Cause) -> Arc<Generation> {
        self.prepare(&module);
        let switched = self.replace(|_| Some((module, cause)));
        // The closure above always gives one.
        switched.unwrap_or_else(|| self.current())
    }

    /// Takes the module of the generation before back into service, as a new generation.
    ///
    /// # Errors
    /// There is none, or it was rolled back itself.
    pub fn roll_back(&self, reason: impl Into<String>) -> Result<Arc<Generation>, NoRollback> {
        let mut refused = NoRollback::NoPrevious;
        let switched = self.replace(|service| {
            let previous = service.previous.as_ref()?;
            if previous.rolled_back().is_some() {
                refused = NoRollback::WasRolledBack { number: previous.number() };
                return None;
            }
            let why = TakenBack::Asked { reason: reason.into() };
            Some((previous.module().clone(), Cause::Rollback(why)))
        });
        switched.ok_or(refused)
    }

    /// Judges recorded live calls with `candidate` too, on a thread of its own, and counts where it says something else.
    /// Whoever judges by this slot never waits for it: at most `queue` calls wait, others are dropped and counted.
    ///
    /// # Errors
    /// There is a run already, the candidate does not start, or no thread can be had.
    pub fn begin_shadow(&self, candidate: Module, bound: Bound, queue: usize) -> Result<Shadow, ShadowError> {
        Shadow::begin(self, candidate, bound, queue)
    }

    /// Takes `to`'s module back into service, if `from` still is in service.
    pub(super) fn roll_back_from(&self, from: &Generation, to: &Generation, why: TakenBack) {
        self.replace(|service| {
            let still = service.generation.number() == from.number();
            still.then(|| (to.module().clone(), Cause::Rollback(why)))
        });
    }

    /// The generation to judge by again when the one in service fails: the one before it, if it is another module that was not
    /// itself rolled back, and the time for that is not over. A module that rewrites is never left for one that does not: what
    /// was to be redacted would be stored as it came, and a writer can choose what a module is slow on.
    pub(super) fn fallback(&self, service: &Service) -> Option<Arc<Generation>> {
        let failing = &service.generation;
        let elapsed = (self.shared.settings.clock)().saturating_duration_since(failing.began());
        let previous = service.previous.as_ref().filter(|previous| previous.digest() != failing.digest())?;
        let open = *failing.cause() == Cause::Swap && elapsed < super::ROLLBACK_WINDOW;
        let open = open && (previous.rewrites() || !failing.rewrites());
        (open && !self.was_rolled_back(previous.digest())).then(|| Arc::clone(previous))
    }

    /// Lets live calls be recorded, and gives the generation that judges them; none if they are recorded already.
    pub(super) fn set_tap(&self, tap: &Arc<Tap>) -> Option<Stamp> {
        let _kept = self.kept();
        let service = self.shared.service.load_full();
        if service.tap.is_some() {
            return None;
        }
        self.publish(service.with(Some(Arc::clone(tap))));
        Some(service.generation.stamp())
    }

    /// Takes the tap with this meter away, if it is still there.
    pub(super) fn take_tap(&self, meter: &Arc<Meter>) {
        let _kept = self.kept();
        let service = self.shared.service.load_full();
        if let Some(tap) = service.tap.as_ref().filter(|tap| Arc::ptr_eq(tap.meter(), meter)) {
            tap.close();
            self.publish(service.with(None));
        }
    }

    pub(super) fn tell(&self, event: &Event) {
        (self.shared.settings.observer)(event);
    }

    pub(super) fn watch(&self) -> Cache<Arc<ArcSwap<Service>>, Arc<Service>> {
        Cache::new(Arc::clone(&self.shared.service))
    }

    pub(super) fn downgrade(&self) -> WeakSlot {
        WeakSlot(Arc::downgrade(&self.shared))
    }

    /// Links a module for every kind of partition that is judged here, so that no thread that judges has to.
    fn prepare(&self, module: &Module) {
        let kinds = self.kept().kinds.clone();
        for (_, prepare) in kinds {
            // If that fails, so does the first call, and says why.
            let _ = prepare(module);
        }
    }

    /// The one way to another generation: `choose` looks at what is in service and says what is to be instead.
    fn replace(&self, choose: impl FnOnce(&Service) -> Option<(Module, Cause)>) -> Option<Arc<Generation>> {
        let mut kept = self.kept();
        let service = self.shared.service.load_full();
        let (module, cause) = choose(&service)?;
        let from = Arc::clone(&service.generation);
        if let Cause::Rollback(why) = &cause {
            from.set_rolled_back(why.clone());
        }
        let now = self.shared.settings.past(Duration::ZERO);
        let to = Arc::new(Generation::new(from.number().saturating_add(1), module, cause, now));
        if kept.history.len() >= MAX_HISTORY {
            kept.history.pop_front();
        }
        kept.history.push_back(Arc::clone(&to));
        self.publish(Service { generation: Arc::clone(&to), previous: Some(Arc::clone(&from)), tap: None });
        drop(kept);
        if let Some(tap) = &service.tap {
            tap.close();
        }
        self.tell(&Event::Switched { slot: self.name().to_owned(), from, to: Arc::clone(&to) });
        Some(to)
    }

    fn publish(&self, service: Service) {
        self.shared.service.store(Arc::new(service));
    }

    /// A generation of this module was taken back, as far as is remembered.
    fn was_rolled_back(&self, digest: Digest) -> bool {
        let kept = self.kept();
        kept.history.iter().any(|one| one.digest() == digest && one.rolled_back().is_some())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// The same with this tap.
    fn with(&self, tap: Option<Arc<Tap>>) -> Self {
        Self { generation: Arc::clone(&self.generation), previous: self.previous.clone(), tap }
    }
}

/// A slot that may be gone.
#[derive(Clone)]
pub(super) struct WeakSlot(Weak<Shared>);

impl WeakSlot {
    pub(super) fn upgrade(&self) -> Option<Slot> {
        self.0.upgrade().map(|shared| Slot { shared })
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Slot");
        shown.field("name", &self.name()).field("current", &self.current()).finish_non_exhaustive()
    }
}

impl fmt::Debug for SlotSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SlotSettings").field("first", &self.first).finish_non_exhaustive()
    }
}
