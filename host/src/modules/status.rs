//! What is told of the modules that serve.

use std::time::UNIX_EPOCH;

use serde::Serialize;
use verbatim_engine::{Generation, Module};

use super::{Modules, Named};

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
    /// Why: `start`, `swap`, or `rollback` with its reason.
    pub cause: String,
    /// Why it was taken back; none if it was not.
    pub rolled_back: Option<String>,
    /// Calls that it judged.
    pub calls: u64,
    /// Of them, refused.
    pub refusals: u64,
    /// Of them, failed.
    pub failures: u64,
}

impl Modules {
    /// What serves under each name.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        let of = |(name, named): (&String, &Named)| Status {
            name: name.clone(),
            serves: Served::new(&named.slot.current()),
            previous: named.slot.previous().map(|previous| Served::new(&previous)),
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
            cause: generation.cause().to_string(),
            rolled_back: generation.rolled_back().map(|back| back.reason.clone()),
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
