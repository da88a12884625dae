//! Another module in the place of a named one: looked at, tested, tried on live requests, kept, and taken into service.
//!
//! All of it happens on the thread of whoever asks; those that judge go on meanwhile. Until the last step nothing changed.

use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};
use verbatim_engine::{
    Bound, Cause, Digest, Generation, LoadError, Misconfigured, Module, NoRollback, ShadowError,
    ShadowReport, TakenBack,
};
use verbatim_harness::{Report, Shipped, Subject};

use super::status::{Served, described};
use super::store::{Change, Entry, Outcome};
use super::topics::{self, Topics};
use super::{Modules, Named, StoreError};

/// Live requests that wait for a candidate at a time; what comes while so many wait is not judged by it, and counted.
const SHADOW_QUEUE: usize = 1024;
/// Topics that are named when a module does not judge them.
const TOPICS_SHOWN: usize = 3;
/// Failed tests that are named when a module is refused.
const FAILED_SHOWN: usize = 5;
/// The reason of a rollback that somebody asked for.
const ASKED: &str = "an operator asked for it";

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Swap<'a> {
    /// The name that topics choose the module by.
    pub name: &'a str,
    /// The file's bytes.
    pub module: &'a [u8],
    /// It must pass the suite *kafka* too, not only *contract*.
    pub kafka: bool,
    /// It judges live requests first, for so long.
    pub shadow: Option<Bound>,
    /// Everything but the swap itself.
    pub dry_run: bool,
}

/// What became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Swapped {
    /// The name.
    pub name: String,
    /// What serves now.
    pub serves: Served,
    /// What served before; none where nothing changed.
    pub previous: Option<Served>,
    /// What the shadow period found.
    pub shadow: Option<Value>,
    /// All of it in a sentence or two.
    pub text: String,
}

/// Why nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// There is no such name.
    #[error("there is no module of this name, name=`{name}`, expected one of {known}")]
    UnknownName {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// Somebody else is at it.
    #[error("a swap of this module is under way, name=`{name}`")]
    Busy {
        /// The name.
        name: String,
    },
    /// It is what serves.
    #[error("this very module serves already, name=`{name}`, sha256=`{sha256}`")]
    Same {
        /// The name.
        name: String,
        /// Its digest.
        sha256: String,
    },
    /// It is not a module that this host can use.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It does not pass a suite.
    #[error("the module does not pass the suite {suite}: {failed}")]
    Suite {
        /// The suite.
        suite: &'static str,
        /// The first tests that failed, with what differed.
        failed: String,
    },
    /// It does not judge topics that choose it.
    #[error(
        "the module {described} does not judge {mode} topics, and these choose it by produce.module=`{name}`: {topics}"
    )]
    Mode {
        /// The name.
        name: String,
        /// The module, as it says.
        described: String,
        /// `exact` or `normal`.
        mode: &'static str,
        /// A few of them.
        topics: String,
    },
    /// It does not take the keys of a topic that chooses it.
    #[error(
        "the module {described} does not take the keys of a topic that chooses it by produce.module=`{name}`, topic=`{topic}`: {source}"
    )]
    Keys {
        /// The name.
        name: String,
        /// The module, as it says.
        described: String,
        /// The topic, the first one.
        topic: String,
        /// What the module says is wrong with them.
        source: Misconfigured,
    },
    /// It could not be tried on live requests.
    #[error(transparent)]
    Shadow(#[from] ShadowError),
    /// Another module came into service during the shadow period.
    #[error("another module came into service meanwhile, name=`{name}`")]
    Overtaken {
        /// The name.
        name: String,
    },
    /// There is nothing to go back to.
    #[error("nothing to go back to, name=`{name}`: {why}")]
    NoRollback {
        /// The name.
        name: String,
        /// Why.
        why: NoRollback,
    },
    /// It cannot be kept, or what was kept cannot be had.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SwapError {
    /// The call is wrong, rather than the module.
    #[must_use]
    pub fn is_wrong_call(&self) -> bool {
        matches!(self, Self::UnknownName { .. } | Self::Same { .. })
    }
}

impl Modules {
    /// Checks a module and takes it into service: every request that comes once this returned is judged by it. `topics` knows
    /// who chooses it, `progress` is told each step. Blocks the thread, for as long as a shadow period lasts.
    ///
    /// # Errors
    /// Nothing changed, for this reason; it is in the history too, where it is the module's fault.
    pub fn swap(
        &self,
        swap: &Swap<'_>,
        topics: &dyn Topics,
        progress: &dyn Fn(String),
    ) -> Result<Swapped, SwapError> {
        let (named, _changing) = self.changing(swap.name)?;
        let checked = self.check(named, swap, topics, progress);
        let (module, shadow) = match checked {
            Ok(checked) => checked,
            Err(error) => {
                self.note_refusal(named, swap, &error);
                return Err(error);
            }
        };
        let before = named.slot.current();
        if swap.dry_run {
            let text = format!("{} {} would serve: nothing was changed", swap.name, described(&module));
            return Ok(Swapped { shadow, ..Swapped::new(swap.name, &before, None, text) });
        }
        let entry = Entry {
            generation: before.number().saturating_add(1),
            ..entry(Outcome::Swapped, &module, String::new())
        };
        let change = self.choice(named, module.digest());
        if let Change::To(Some(_)) = change {
            self.store.keep(swap.module)?;
        }
        self.store.note(swap.name, change, entry)?;
        let now = named.slot.switch(module, Cause::Swap);
        named.outcomes.count(Outcome::Swapped);
        let text = format!("{} {} serves as generation {}", swap.name, described(now.module()), now.number());
        Ok(Swapped { shadow, ..Swapped::new(swap.name, &now, Some(&before), text) })
    }

    /// Takes the module that served before back into service, also if that was before the last start.
    ///
    /// # Errors
    /// There is none, or it was taken back itself; it cannot be had any more; or it does not judge topics that choose it.
    /// Nothing changed.
    pub fn roll_back(&self, name: &str, topics: &dyn Topics) -> Result<Swapped, SwapError> {
        let (named, _changing) = self.changing(name)?;
        let before = named.slot.current();
        let module = self.before(named, name)?;
        judges_its_topics(name, &module, topics)?;
        let entry = Entry {
            generation: before.number().saturating_add(1),
            ..entry(Outcome::RolledBack, &module, ASKED.to_owned())
        };
        self.store.note(name, self.choice(named, module.digest()), entry)?;
        let now = named.slot.switch(module, Cause::Rollback(TakenBack::Asked { reason: ASKED.to_owned() }));
        named.outcomes.count(Outcome::RolledBack);
        let text = format!("{name} {} serves again, as generation {}", described(now.module()), now.number());
        Ok(Swapped::new(name, &now, Some(&before), text))
    }

    /// Logs which modules do not judge topics that choose them: of those another module was in service under that name before
    /// the host was started, and their writers are refused.
    pub fn tell_unjudged(&self, topics: &dyn Topics) {
        for (name, generation) in self.iter() {
            if let Err(error) = judges_its_topics(name, generation.module(), topics) {
                tracing::error!(module = name, %error, "a module serves topics that it does not judge");
            }
        }
    }

    /// What became of each swap under this name, oldest first, restarts included.
    ///
    /// # Errors
    /// There is no such name.
    pub fn history(&self, name: &str) -> Result<Vec<Entry>, SwapError> {
        self.named(name)?;
        Ok(self.store.history(name))
    }

    /// Every step before the swap.
    fn check(
        &self,
        named: &Named,
        swap: &Swap<'_>,
        topics: &dyn Topics,
        progress: &dyn Fn(String),
    ) -> Result<(Module, Option<Value>), SwapError> {
        let current = named.slot.current();
        if Digest::of(swap.module) == current.digest() {
            let (name, sha256) = (swap.name.to_owned(), current.digest().to_string());
            return Err(SwapError::Same { name, sha256 });
        }
        let module = Module::load(&self.engine, swap.module)?;
        progress(format!(
            "{} is a module of contract {}",
            described(&module),
            module.inspect().contract_version
        ));
        judges_its_topics(swap.name, &module, topics)?;
        for suite in [Some(Shipped::Contract), swap.kafka.then_some(Shipped::Kafka)].into_iter().flatten() {
            let report = suite.run(&Subject::module(&module));
            if !report.is_success() {
                return Err(SwapError::Suite { suite: suite.name(), failed: failed(&report) });
            }
            progress(format!("suite {}: {} passed", suite.name(), report.passed()));
        }
        let Some(bound) = swap.shadow else { return Ok((module, None)) };
        progress("judges live requests beside the module that serves".to_owned());
        let report = named.slot.begin_shadow(module.clone(), bound, SHADOW_QUEUE)?.wait();
        if named.slot.current().number() != current.number() {
            return Err(SwapError::Overtaken { name: swap.name.to_owned() });
        }
        // There may be topics now that there were not before.
        judges_its_topics(swap.name, &module, topics)?;
        progress(counted(&report));
        Ok((module, Some(shadow(&report))))
    }

    /// The module that served before: in this process, or before it started.
    fn before(&self, named: &Named, name: &str) -> Result<Module, SwapError> {
        let no = |why| SwapError::NoRollback { name: name.to_owned(), why };
        if let Some(previous) = named.slot.previous() {
            return match previous.rolled_back() {
                Some(_) => Err(no(NoRollback::WasRolledBack { number: previous.number() })),
                None => Ok(previous.module().clone()),
            };
        }
        let history = self.store.history(name);
        let changed = history.iter().rev().find(|entry| entry.outcome != Outcome::Refused);
        match changed.map(|entry| (entry.outcome, entry.generation)) {
            None => Err(no(NoRollback::NoPrevious)),
            Some((Outcome::Swapped, _)) => match self.store.previous(name) {
                Some(sha256) => self.stored(&sha256),
                None => Ok(named.own.clone()),
            },
            Some((_, generation)) => {
                Err(no(NoRollback::WasRolledBack { number: generation.saturating_sub(1) }))
            }
        }
    }

    fn named(&self, name: &str) -> Result<&Named, SwapError> {
        self.named.get(name).ok_or_else(|| SwapError::UnknownName {
            name: name.to_owned(),
            known: self.named.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })
    }

    /// The place of a name, for one who changes it.
    fn changing(&self, name: &str) -> Result<(&Named, MutexGuard<'_, ()>), SwapError> {
        let named = self.named(name)?;
        match named.changing.try_lock() {
            Ok(changing) => Ok((named, changing)),
            Err(TryLockError::Poisoned(poisoned)) => Ok((named, PoisonError::into_inner(poisoned))),
            Err(TryLockError::WouldBlock) => Err(SwapError::Busy { name: name.to_owned() }),
        }
    }

    /// How the file of this digest is named in the store: not at all if it is what the host is started with.
    fn choice(&self, named: &Named, digest: Digest) -> Change {
        Change::To((digest != named.own.digest()).then(|| digest.to_string()))
    }

    fn note_refusal(&self, named: &Named, swap: &Swap<'_>, error: &SwapError) {
        if !matches!(
            error,
            SwapError::Load(_) | SwapError::Suite { .. } | SwapError::Mode { .. } | SwapError::Keys { .. }
        ) {
            return;
        }
        named.outcomes.count(Outcome::Refused);
        tracing::warn!(module = swap.name, %error, "a module is refused");
        let entry = Entry {
            at_ms: now_ms(),
            generation: named.slot.current().number(),
            outcome: Outcome::Refused,
            sha256: Digest::of(swap.module).to_string(),
            described: String::new(),
            reason: error.to_string(),
            evidence: Vec::new(),
        };
        if let Err(error) = self.store.note(swap.name, Change::Stays, entry) {
            tracing::warn!(module = swap.name, %error, "a refusal cannot be kept in the history");
        }
    }
}

impl Swapped {
    fn new(name: &str, now: &Generation, before: Option<&Generation>, text: String) -> Self {
        let previous = before.map(Served::new);
        Self { name: name.to_owned(), serves: Served::new(now), previous, shadow: None, text }
    }
}

/// A module must judge the modes of the topics that choose it and take their keys, or their writers would be refused.
fn judges_its_topics(name: &str, module: &Module, topics: &dyn Topics) -> Result<(), SwapError> {
    for (exact, mode) in [(true, "exact"), (false, "normal")] {
        if judges(module, exact) {
            continue;
        }
        let choosing = topics.of_mode(name, exact);
        if choosing.is_empty() {
            continue;
        }
        let shown = choosing.iter().take(TOPICS_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let topics = match choosing.len().saturating_sub(TOPICS_SHOWN) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        };
        return Err(SwapError::Mode { name: name.to_owned(), described: described(module), mode, topics });
    }
    topics::takes_keys(name, module, topics)
}

/// Whether it says that it judges exact topics, or normal ones.
pub(super) fn judges(module: &Module, exact: bool) -> bool {
    let description = &module.inspect().description;
    if exact { description.supports_exact } else { description.supports_normal }
}

fn entry(outcome: Outcome, module: &Module, reason: String) -> Entry {
    let sha256 = module.digest().to_string();
    let (at_ms, described) = (now_ms(), described(module));
    Entry { at_ms, generation: 0, outcome, sha256, described, reason, evidence: Vec::new() }
}

/// The first tests that failed, and what differed.
fn failed(report: &Report) -> String {
    let shown = report.failed().take(FAILED_SHOWN).map(|test| {
        let differences: Vec<String> = test
            .differences
            .iter()
            .map(|one| format!("{} {}: expected {}, got {}", one.at, one.what, one.expected, one.got))
            .collect();
        format!("{}: {}", test.name, differences.join(", ").trim())
    });
    let shown: Vec<String> = shown.collect();
    let more = report.failed().count().saturating_sub(shown.len());
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    format!("{}{more}", shown.join("; "))
}

fn counted(report: &ShadowReport) -> String {
    format!(
        "judged {} live requests: {} the same, {} otherwise, {} inconclusive; {} were not judged",
        report.judged, report.same, report.different, report.inconclusive, report.dropped
    )
}

fn shadow(report: &ShadowReport) -> Value {
    let differences: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
    json!({
        "judged": report.judged,
        "same": report.same,
        "different": report.different,
        "inconclusive": report.inconclusive,
        "dropped": report.dropped,
        "differences": differences,
    })
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
