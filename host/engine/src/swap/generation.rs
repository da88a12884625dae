//! A module from when it was taken into service.

use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use super::counters::{Counters, Counts};
use super::evidence::{Evidence, Witness};
use crate::{Digest, Module};

/// A module in a slot's service, with what came of it.
pub struct Generation {
    number: u64,
    module: Module,
    cause: Cause,
    since: SystemTime,
    /// By the slot's clock.
    began: Instant,
    rolled_back: OnceLock<RolledBack>,
    pub(super) counters: Counters,
    evidence: Mutex<Evidence>,
}

/// Why a module was taken into service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The slot began with it.
    Start,
    /// Somebody chose it.
    Swap,
    /// The one after it was taken back.
    Rollback(TakenBack),
}

/// Why a generation was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenBack {
    /// Somebody wanted it.
    Asked {
        /// In their words.
        reason: String,
    },
    /// By itself: it failed on these requests, and the generation before it does not.
    Failing {
        /// Each of them, in the order in which they came.
        witnesses: Vec<Witness>,
    },
}

/// That a generation was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// Why.
    pub why: TakenBack,
    /// When.
    pub at: SystemTime,
}

/// Which module judged: for log lines, and to count its failures by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// SHA-256 of its file.
    pub digest: Digest,
    /// Its generation in its slot.
    pub generation: u64,
}

impl Generation {
    pub(super) fn new(
        number: u64,
        module: Module,
        cause: Cause,
        (since, began): (SystemTime, Instant),
    ) -> Self {
        Self {
            number,
            module,
            cause,
            since,
            began,
            rolled_back: OnceLock::new(),
            counters: Counters::default(),
            evidence: Mutex::default(),
        }
    }

    /// Counted from 1 for each slot, or from where the slot's settings say; no two of a slot are the same.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// SHA-256 of the module's file.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.module.digest()
    }

    /// Digest and number.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        Stamp { digest: self.digest(), generation: self.number }
    }

    /// Why it was taken into service.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// When it was taken into service, by the wall clock.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// Whether and why it was taken back.
    #[must_use]
    pub fn rolled_back(&self) -> Option<&RolledBack> {
        self.rolled_back.get()
    }

    /// What was counted while it judged.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// Whether its module hands records back that are others than those that came.
    pub(super) fn rewrites(&self) -> bool {
        self.module.inspect().description.rewrites
    }

    /// When it was taken into service, by the slot's clock.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    pub(super) fn set_rolled_back(&self, why: TakenBack) {
        // The first reason is the one that counts.
        let _ = self.rolled_back.set(RolledBack { why, at: SystemTime::now() });
    }

    pub(super) fn evidence(&self) -> MutexGuard<'_, Evidence> {
        self.evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Generation");
        shown.field("number", &self.number).field("digest", &self.digest()).field("cause", &self.cause);
        shown.field("rolled_back", &self.rolled_back.get()).finish_non_exhaustive()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => formatter.write_str("start"),
            Self::Swap => formatter.write_str("swap"),
            Self::Rollback(why) => write!(formatter, "rollback: {why}"),
        }
    }
}

impl fmt::Display for TakenBack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked { reason } => formatter.write_str(reason),
            Self::Failing { witnesses } => {
                let all: Vec<String> = witnesses.iter().map(Witness::to_string).collect();
                write!(formatter, "it failed where the generation before it does not: {}", all.join("; "))
            }
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "generation {}, digest {}", self.generation, self.digest)
    }
}
