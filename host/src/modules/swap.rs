//! Another module in the place of a named one: looked at, tested, tried on live requests, kept, and taken into service.
//!
//! All of it happens on the thread of whoever asks; those that judge go on meanwhile. Until the last step nothing changed.

use std::cell::OnceCell;
use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};
use verbatim_engine::{
    Bound, Cause, Digest, Generation, Module, NoRollback, ShadowEnd, ShadowReport, TakenBack,
};
use verbatim_harness::{Report, Shipped, Subject};

use super::status::{Served, described};
use super::store::{Change, Entry, Outcome, cut};
use super::topics::{self, Topics};
use super::underway::{Asker, Running, SHADOW_TIME_MAX};
use super::{Modules, Named};

mod error;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;

pub use error::SwapError;

/// Topics that are named when a module does not judge them.
const TOPICS_SHOWN: usize = 3;
/// Failed tests that are named when a module is refused.
const FAILED_SHOWN: usize = 5;
/// Differences that are told where fewer live requests came than were asked for.
const DIFFERENCES_SHOWN: usize = 5;
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

impl Modules {
    /// Checks a module and takes it into service: every request that comes once this returned is judged by it. `topics` knows
    /// who chooses it. Blocks the thread, for as long as a shadow period lasts.
    ///
    /// # Errors
    /// Nothing changed, for this reason; it is in the history too, where it tells something of the module, or the swap was
    /// abandoned because `asker` is gone or a rollback came first.
    pub fn swap(
        &self,
        swap: &Swap<'_>,
        topics: &dyn Topics,
        asker: &dyn Asker,
    ) -> Result<Swapped, SwapError> {
        let (named, _changing) = self.changing(swap.name)?;
        let running = named.under_way.begin();
        let module = OnceCell::new();
        let step = Step { named, swap, topics, asker, running: &running };
        let swapped = self.check(&step, &module).and_then(|(module, shadow)| {
            let swapped = self.switch(&step, module)?;
            Ok(Swapped { shadow, ..swapped })
        });
        drop(running);
        if let Err(error) = &swapped {
            self.note_failure(named, swap, module.get(), error);
        }
        self.remove_unneeded();
        swapped
    }

    /// Takes the module that served before back into service, also if that was before the last start. A swap under way ends.
    ///
    /// # Errors
    /// There is none, or it was taken back itself; it cannot be had any more; or it does not judge topics that choose it.
    /// What serves did not change.
    pub fn roll_back(
        &self,
        name: &str,
        topics: &dyn Topics,
        asker: &dyn Asker,
    ) -> Result<Swapped, SwapError> {
        let named = self.named(name)?;
        if named.under_way.overtake() {
            asker.tell("the swap that is under way ends, and changes nothing".to_owned());
        }
        let _changing = named.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = named.slot.current();
        let module = self.before(named, name)?;
        judges_its_topics(name, &module, topics)?;
        if let Some(sha256) = stored_as(named, module.digest()) {
            // Without its file it would serve until the next start only.
            self.store.bytes(&sha256)?;
        }
        let entry = Entry {
            generation: before.number().saturating_add(1),
            ..entry(Outcome::RolledBack, &module, ASKED.to_owned())
        };
        self.store.note(name, change(named, module.digest(), before.digest()), entry)?;
        let now = named.slot.switch(module, Cause::Rollback(TakenBack::Asked { reason: ASKED.to_owned() }));
        named.outcomes.count(Outcome::RolledBack);
        self.remove_unneeded();
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

    /// Every step before the swap. `loaded` is what the file turned out to be, whatever is found later.
    fn check(
        &self,
        step: &Step<'_>,
        loaded: &OnceCell<Module>,
    ) -> Result<(Module, Option<Value>), SwapError> {
        let Step { named, swap, topics, asker, .. } = *step;
        if let Some(Bound::Time(asked)) = swap.shadow.filter(|bound| is_too_long(*bound)) {
            return Err(SwapError::ShadowTime { asked });
        }
        let current = named.slot.current();
        if Digest::of(swap.module) == current.digest() {
            let (name, sha256) = (swap.name.to_owned(), current.digest().to_string());
            return Err(SwapError::Same { name, sha256 });
        }
        let module = Module::load(&self.engine, swap.module)?;
        let module = loaded.get_or_init(|| module).clone();
        let version = &module.inspect().contract_version;
        asker.tell(format!("{} is a module of contract {version}", described(&module)));
        judges_its_topics(swap.name, &module, topics)?;
        for suite in [Some(Shipped::Contract), swap.kafka.then_some(Shipped::Kafka)].into_iter().flatten() {
            step.goes_on()?;
            let report = suite.run(&Subject::module(&module));
            if !report.is_success() {
                return Err(SwapError::Suite { suite: suite.name(), failed: failed(&report) });
            }
            asker.tell(format!("suite {}: {} passed", suite.name(), report.passed()));
        }
        let Some(bound) = swap.shadow else { return Ok((module, None)) };
        asker.tell("judges live requests beside the module that serves".to_owned());
        let wait = self.shadow_requests_wait;
        let report = step.running.judge_beside(&named.slot, &module, bound, wait, || step.goes_on())?;
        if named.slot.current().number() != current.number() {
            return Err(SwapError::Overtaken { name: swap.name.to_owned() });
        }
        // There may be topics now that there were not before.
        judges_its_topics(swap.name, &module, topics)?;
        if let (Bound::Requests(expected), Some(ShadowEnd::Stopped)) = (bound, report.end) {
            for difference in report.differences.iter().take(DIFFERENCES_SHOWN) {
                asker.tell(difference.to_string());
            }
            return Err(SwapError::TooFew { expected, waited: wait, counted: counted(&report) });
        }
        asker.tell(counted(&report));
        Ok((module, Some(shadow(&report))))
    }

    /// The swap itself, of a module that was checked.
    fn switch(&self, step: &Step<'_>, module: Module) -> Result<Swapped, SwapError> {
        let Step { named, swap, .. } = *step;
        let before = named.slot.current();
        step.goes_on()?;
        if swap.dry_run {
            let text = format!("{} {} would serve: nothing was changed", swap.name, described(&module));
            return Ok(Swapped::new(swap.name, &before, None, text));
        }
        if !step.running.decide() {
            return Err(SwapError::Overtaken { name: swap.name.to_owned() });
        }
        let entry = Entry {
            generation: before.number().saturating_add(1),
            ..entry(Outcome::Swapped, &module, String::new())
        };
        let change = change(named, module.digest(), before.digest());
        self.store.note_with(swap.name, swap.module, change, entry)?;
        let now = named.slot.switch(module, Cause::Swap);
        named.outcomes.count(Outcome::Swapped);
        let text = format!("{} {} serves as generation {}", swap.name, described(now.module()), now.number());
        Ok(Swapped::new(swap.name, &now, Some(&before), text))
    }

    /// Removes files in the data folder that no module needs any more. For the process that holds the folder.
    pub fn remove_unneeded(&self) {
        let generations =
            self.named.values().flat_map(|named| [Some(named.slot.current()), named.slot.previous()]);
        let held = generations.flatten().map(|generation| generation.digest().to_string()).collect();
        self.store.remove_unneeded(&held);
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
        let changed = history.iter().rev().find(|entry| entry.outcome.is_change());
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

    fn note_failure(&self, named: &Named, swap: &Swap<'_>, module: Option<&Module>, error: &SwapError) {
        let Some(outcome) = error.outcome() else { return };
        named.outcomes.count(outcome);
        let reason = cut(error.to_string());
        tracing::warn!(module = swap.name, outcome = outcome.name(), reason, "a module is not swapped in");
        let entry = Entry {
            at_ms: now_ms(),
            generation: named.slot.current().number(),
            outcome,
            sha256: Digest::of(swap.module).to_string(),
            described: module.map(described).unwrap_or_default(),
            reason,
            evidence: Vec::new(),
        };
        if let Err(error) = self.store.note(swap.name, Change::Stays, entry) {
            tracing::warn!(module = swap.name, %error, "this cannot be kept in the history");
        }
    }
}

/// What each step of a swap is told.
#[derive(Clone, Copy)]
struct Step<'a> {
    named: &'a Named,
    swap: &'a Swap<'a>,
    topics: &'a dyn Topics,
    asker: &'a dyn Asker,
    running: &'a Running<'a>,
}

impl Step<'_> {
    /// Somebody still waits for it, and no rollback came.
    fn goes_on(&self) -> Result<(), SwapError> {
        let name = || self.swap.name.to_owned();
        if self.running.is_overtaken() {
            return Err(SwapError::Overtaken { name: name() });
        }
        if self.asker.is_gone() { Err(SwapError::Gone { name: name() }) } else { Ok(()) }
    }
}

fn is_too_long(bound: Bound) -> bool {
    matches!(bound, Bound::Time(asked) if asked > SHADOW_TIME_MAX)
}

/// How the file of this digest is named in the store: not at all if it is what the host is started with.
fn stored_as(named: &Named, digest: Digest) -> Option<String> {
    (digest != named.own.digest()).then(|| digest.to_string())
}

fn change(named: &Named, serves: Digest, before: Digest) -> Change {
    Change::To { serves: stored_as(named, serves), before: stored_as(named, before) }
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
