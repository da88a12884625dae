//! What is told of the modules that serve.

use std::time::UNIX_EPOCH;

use serde::Serialize;
use verbatim_engine::{Cause, Generation, Module, TakenBack};

use super::underway::Beside;
use super::{Modules, Named, Outcome};

/// What serves under one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The name that topics choose it by.
    pub name: String,
    /// What serves.
    #[serde(flatten)]
    pub serves: Served,
    /// What served before, as far as this process knows.
    pub previous: Option<Served>,
    /// A module that judges live requests beside it, before it is swapped in.
    pub candidate: Option<Beside>,
}

/// A module in service, now or before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Served {
    /// Counted from 1 for each name.
    pub generation: u64,
    /// What it says it is, name and version.
    pub described: String,
    /// SHA-256 of its file.
    pub sha256: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// Why.
    #[serde(flatten)]
    pub cause: Why,
    /// Why it was taken back; none if it was not.
    pub rolled_back: Option<Why>,
    /// Calls that it judged.
    pub calls: u64,
    /// Of them, refused.
    pub refusals: u64,
    /// Of them, failed.
    pub failures: u64,
}

/// What brought a module into service, or took it out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Why {
    /// `start`, `swapped`, `rolled-back` (an operator asked for it) or `rolled-back-by-itself`: the last three as in histories.
    pub cause: &'static str,
    /// In words; empty for a start and a swap.
    pub reason: String,
    /// Each request on which the module failed and the one before it does not; empty unless it was taken back by itself.
    pub evidence: Vec<String>,
}

/// The reason of a rollback that nobody asked for.
pub(super) const BY_ITSELF: &str = "it failed where the module before it does not";

impl Why {
    fn new(cause: &Cause) -> Self {
        let plain = |cause| Self { cause, reason: String::new(), evidence: Vec::new() };
        match cause {
            Cause::Start => plain("start"),
            Cause::Swap => plain(Outcome::Swapped.name()),
            Cause::Rollback(why) => Self::taken_back(why),
        }
    }

    fn taken_back(why: &TakenBack) -> Self {
        match why {
            TakenBack::Asked { reason } => {
                Self { cause: Outcome::RolledBack.name(), reason: reason.clone(), evidence: Vec::new() }
            }
            TakenBack::Failing { witnesses } => Self {
                cause: Outcome::RolledBackByItself.name(),
                reason: BY_ITSELF.to_owned(),
                evidence: witnesses.iter().map(ToString::to_string).collect(),
            },
        }
    }
}

impl Modules {
    /// What serves under each name.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        let of = |(name, named): (&String, &Named)| Status {
            name: name.clone(),
            serves: Served::new(&named.slot.current()),
            previous: named.slot.previous().map(|previous| Served::new(&previous)),
            candidate: named.under_way.beside(),
        };
        self.named.iter().map(of).collect()
    }
}

impl Served {
    pub(super) fn new(generation: &Generation) -> Self {
        let counts = generation.counts();
        let since = generation.since().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            generation: generation.number(),
            described: described(generation.module()),
            sha256: generation.digest().to_string(),
            since_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            cause: Why::new(generation.cause()),
            rolled_back: generation.rolled_back().map(|back| Why::taken_back(&back.why)),
            calls: counts.calls,
            refusals: counts.refusals.iter().sum(),
            failures: counts.failed(),
        }
    }
}

/// Name and version, as a module says them.
pub(super) fn described(module: &Module) -> String {
    let description = &module.inspect().description;
    format!("{} {}", description.name, description.version)
}
