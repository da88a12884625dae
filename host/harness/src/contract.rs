//! The suite *contract*: what any policy keeps, whatever its rules.
//!
//! A module is asked about plain and about hostile requests, on topics of the modes that it says it supports. Any verdict
//! will do, as long as it is one: accepted with each batch settled once and no invariant broken, or refused by value; never
//! a trap or a missed deadline. Asked again, and in another instance, it says the same.

mod ask;
mod configuration;
mod header;
mod membership;
mod records;
mod requests;
mod tags;

use std::time::Instant;

use verbatim_engine::contract::{Description, Framing, Refusal};
use verbatim_engine::{Call, Denied, Failure, Judge, Memory, Plan};

use crate::format::Mode;
use crate::random::{self, Sent, Tape};
use crate::reason::reason_name;
use crate::report::{Difference, Outcome, Report};
use crate::run::supported;
use crate::subject::Subject;
use ask::Ask;

pub(crate) use ask::fitting_request;

/// The seed of the random requests if none is given, so that a module that passes once passes again.
pub const DEFAULT_SEED: u64 = 1;

const NAME: &str = "contract";
/// How many random topics of each mode, and how many requests each of them gets.
const RANDOM_TOPICS: usize = 200;
const RANDOM_REQUESTS: usize = 4;
/// The longest verdict that is shown, in characters.
const SHOWN_LEN: usize = 300;

type Verdict = Result<Plan, Denied>;
/// Makes what is asked about one thing, on this log.
type Make = fn(&Memory) -> Result<Vec<Ask>, String>;

/// Requests of one kind.
struct Group {
    name: String,
    asks: Vec<Ask>,
}

/// Runs the suite *contract*. The same seed brings the same random requests.
#[must_use]
pub fn contract(subject: &Subject, seed: u64) -> Report {
    match judged(subject, seed) {
        Ok(report) => report,
        Err(failure) => Report::not_loaded(&failure),
    }
}

fn judged(subject: &Subject, seed: u64) -> Result<Report, Failure> {
    let mut judge = subject.judge()?;
    let mut report = Report::default();
    let about = |name: &str| Outcome { suite: NAME.to_owned(), name: name.to_owned(), ..Outcome::default() };
    let differences = described(judge.describe(), subject.judge()?.describe());
    report.tests.push(Outcome { differences, ..about("it describes itself") });

    let supported = supported(judge.as_ref());
    for mode in [Mode::Exact, Mode::Normal] {
        let groups = match groups(mode, seed) {
            Ok(groups) => groups,
            Err(error) => return Ok(Report::not_loaded(&error)),
        };
        if !supported.contains(&mode) {
            report.leave_out(NAME, mode, groups.len());
            continue;
        }
        let mut accepted = 0;
        for group in &groups {
            let begun = Instant::now();
            let differences = run(group, subject, judge.as_mut(), &mut accepted)?;
            let outcome = Outcome { mode: Some(mode), differences, ..about(&group.name) };
            report.tests.push(outcome.timed(begun.elapsed()));
        }
        if accepted == 0 {
            report.notes.push(format!("the module accepted none of the requests to {mode} topics"));
        }
    }
    let begun = Instant::now();
    let differences = membership::run(subject, judge.as_mut())?;
    let outcome = Outcome { differences, ..about("who may join the in-sync set") };
    report.tests.push(outcome.timed(begun.elapsed()));
    if let Some(check) = subject.check() {
        let begun = Instant::now();
        let differences = configuration::run(check, &judge.describe().name);
        let outcome = Outcome { differences, ..about("which keys it takes") };
        report.tests.push(outcome.timed(begun.elapsed()));
    }
    Ok(report)
}

/// It has a name and a version, judges something, and says so every time.
fn described(description: &Description, again: &Description) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut say = |what: &str, expected: &str, got: String| {
        let (what, expected) = (what.to_owned(), expected.to_owned());
        found.push(Difference { at: String::new(), what, expected, got });
    };
    for (what, text) in [("its name", &description.name), ("its version", &description.version)] {
        if text.is_empty() || text.chars().any(char::is_control) {
            say(what, "printable text", format!("{text:?}"));
        }
    }
    if !description.supports_exact && !description.supports_normal {
        say("the topics that it judges", "exact or normal ones, or both", "neither".to_owned());
    }
    if description != again {
        say("another instance", &format!("{description:?}"), format!("{again:?}"));
    }
    found
}

/// All that is asked about topics of a mode.
fn groups(mode: Mode, seed: u64) -> Result<Vec<Group>, String> {
    let logs = ask::logs(mode)?;
    let kinds = [header::KINDS, records::KINDS, tags::KINDS, requests::KINDS].concat();
    let mut groups = Vec::new();
    for (name, make) in kinds {
        let asks = logs.iter().map(make).collect::<Result<Vec<_>, _>>()?.concat();
        groups.push(Group { name: name.to_owned(), asks });
    }
    groups.push(Group { name: format!("random requests, seed {seed}"), asks: random_asks(mode, seed) });
    Ok(groups)
}

/// Requests that are nearly right, on random logs. What a judge makes of one does not change the log of the next.
fn random_asks(mode: Mode, seed: u64) -> Vec<Ask> {
    let mut asks = Vec::new();
    // A third of the topics or more is of either mode.
    for case in 0..u64::MAX {
        let numbers = random::numbers(seed, case);
        let mut tape = Tape::new(&numbers);
        let log = random::log(&mut tape);
        if log.policy.exact != (mode == Mode::Exact) {
            continue;
        }
        let mut sent: Vec<Sent> = Vec::new();
        for _ in 0..RANDOM_REQUESTS {
            let one = random::request(&mut tape, &log, &sent);
            let (request, entries, records) = one.clone();
            sent.push(one);
            asks.push(Ask { what: format!("case {case}"), log: log.clone(), request, entries, records });
        }
        if asks.len() >= RANDOM_TOPICS.saturating_mul(RANDOM_REQUESTS) {
            break;
        }
    }
    asks
}

/// The first thing that is wrong with a module's answers to a group, if any.
fn run(
    group: &Group,
    subject: &Subject,
    judge: &mut dyn Judge<Memory>,
    accepted: &mut usize,
) -> Result<Vec<Difference>, Failure> {
    let mut verdicts = Vec::with_capacity(group.asks.len());
    for (index, ask) in group.asks.iter().enumerate() {
        let verdict = ask.put(judge);
        if let Some(wrong) = wrong(&verdict, ask) {
            return Ok(vec![Difference { at: ask.at(index), ..wrong }]);
        }
        *accepted = accepted.saturating_add(usize::from(verdict.is_ok()));
        verdicts.push(verdict);
    }
    let mut other = subject.judge()?;
    // The other instance is asked in another order, so that what came before differs.
    for (index, (ask, verdict)) in group.asks.iter().zip(&verdicts).enumerate().rev() {
        for (what, judge) in [("asked again", &mut *judge), ("another instance", other.as_mut())] {
            let again = ask.put(judge);
            if again != *verdict {
                let (what, expected, got) = (what.to_owned(), shown(verdict), shown(&again));
                return Ok(vec![Difference { at: ask.at(index), what, expected, got }]);
            }
        }
    }
    Ok(Vec::new())
}

/// What is wrong with a verdict by itself.
fn wrong(verdict: &Verdict, ask: &Ask) -> Option<Difference> {
    let (what, expected, got) = match verdict {
        Ok(_) => return None,
        Err(Denied::Failed(failure)) => ("verdict", "accepted, or refused by value", failure.to_string()),
        Err(Denied::Refused(refusal)) => {
            let call = ask.log.call(ask.request, Vec::new(), &ask.records);
            refused_wrongly(refusal, &call)?
        }
    };
    let (what, expected) = (what.to_owned(), expected.to_owned());
    Some(Difference { at: String::new(), what, expected, got })
}

fn refused_wrongly(refusal: &Refusal, call: &Call) -> Option<(&'static str, &'static str, String)> {
    if refusal.text.is_empty() {
        let reason = reason_name(refusal.reason);
        return Some((
            "the refusal's text",
            "field, value and expectation",
            format!("nothing, reason {reason}"),
        ));
    }
    // What is behind the last whole batch counts as one more.
    let behind = usize::from(call.request.framing != Framing::Complete);
    let count = call.batches.len().saturating_add(behind);
    let batch = refusal.batch.filter(|&batch| usize::try_from(batch).is_ok_and(|batch| batch >= count))?;
    Some(("the refusal's batch", "one of the request", format!("{batch}, where there are {count}")))
}

fn shown(verdict: &Verdict) -> String {
    let text = match verdict {
        Ok(plan) => format!("accepted: {plan:?}"),
        Err(Denied::Refused(refusal)) => {
            let Refusal { reason, batch, expected, text } = refusal;
            format!("refused as {}, batch {batch:?}, expected {expected:?}: {text}", reason_name(*reason))
        }
        Err(Denied::Failed(failure)) => failure.to_string(),
    };
    text.chars().take(SHOWN_LEN).collect()
}
