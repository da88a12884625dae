//! Random requests on random logs: the component says what the native policy says, to the letter, and what it
//! accepts is something that the engine carries out.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use verbatim_batch::{Header, frames};
use verbatim_engine::contract::{EpochEntry, Position, Request};
use verbatim_engine::{Denied, Instance, Judge, Memory, Native, NotJoined, Plan};
use verbatim_harness::random::{self, Sent, Tape};
use verbatim_harness::reason_name;
use verbatim_policy::ExactMirroring;

use crate::{SEED_VARIABLE, component, seed};

const CASES: u32 = 4000;
const REQUESTS: usize = 6;
/// Long enough for every choice of a case.
const TAPE_LEN: usize = 600;

/// Rare things that have to come about, so that the run tells of them.
const HAPPENINGS: [&str; 6] = [
    "a rewind",
    "a rewind again that changes nothing",
    "a rewind again that goes on",
    "an entry that the source's start moved into",
    "a start at the end",
    "a source with nothing below",
];

struct Judges {
    native: Native<ExactMirroring>,
    component: Instance<Memory>,
    /// How often each verdict came about.
    verdicts: BTreeMap<String, u32>,
    /// How often what is rare came about.
    happenings: BTreeMap<&'static str, u32>,
}

#[test]
fn native_and_component_agree_on_random_requests() {
    let seed = seed();
    let judges = RefCell::new(Judges {
        native: Native::new(ExactMirroring),
        component: component(),
        verdicts: BTreeMap::new(),
        happenings: BTreeMap::new(),
    });
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes(seed)));
    let tape = vec(proptest::num::u16::ANY, TAPE_LEN);
    runner
        .run(&tape, |numbers| judges.borrow_mut().case(&mut Tape::new(&numbers)))
        .unwrap_or_else(|error| panic!("{SEED_VARIABLE}={seed}: {error}"));
    let Judges { verdicts, happenings, .. } = judges.into_inner();
    println!("{verdicts:?} {happenings:?}");
    let accepted = verdicts.get("accepted").copied().unwrap_or(0);
    assert!(accepted > CASES / 10, "too few requests are accepted to tell much: {verdicts:?}");
    assert!(verdicts.len() > 25, "too few rules are reached to tell much: {verdicts:?}");
    for happening in HAPPENINGS {
        let times = happenings.get(happening).copied().unwrap_or(0);
        assert!(times > 0, "it never came about: {happening}");
    }
}

impl Judges {
    fn case(&mut self, tape: &mut Tape<'_>) -> Result<(), TestCaseError> {
        let mut log = random::log(tape);
        let mut sent: Vec<Sent> = Vec::new();
        for _ in 0..REQUESTS {
            let one = random::request(tape, &log, &sent);
            let before = |sent: &Sent| sent.0 == one.0 && sent.1 == one.1 && one.2.starts_with(&sent.2);
            let repeats = sent.iter().any(before);
            sent.push(one.clone());
            let (request, entries, records) = one;
            let log_before = log.position();
            let (native, said) = log.clone().produce(&mut self.native, request, entries.clone(), &records);
            let (other, also_said) = log.produce(&mut self.component, request, entries.clone(), &records);
            agree("verdict", &said, &also_said)?;
            agree("lines", &native.lines, &other.lines)?;
            agree("position", &native.position(), &other.position())?;
            if let Err(Denied::Failed(failure)) = &said {
                let epochs = native.epochs.entries().to_vec();
                let call = native.call(request, entries, &records);
                let text = format!("the policy broke an invariant: {failure}\nepochs {epochs:?}\n{call:#?}");
                return Err(TestCaseError::fail(text));
            }
            *self.verdicts.entry(name(&said)).or_default() += 1;
            for happening in happenings(&request, &entries, &said, repeats, &log_before) {
                *self.happenings.entry(happening).or_default() += 1;
            }
            if native.policy.exact && said.is_ok() && is_repeatable(&native, &request, &records) {
                self.once_more(&native, request, entries, &records)?;
            }
            log = native;
            for replica in log.replicas.clone() {
                let end = log.end - i64::from(tape.below(3));
                let reason = |answer: Result<(), NotJoined>| answer.map_err(|error| error.to_string());
                let position = log.position();
                let may = Judge::<Memory>::may_join(&mut self.native, &replica, end, &position);
                agree("join", &reason(may), &reason(self.component.may_join(&replica, end, &position)))?;
            }
        }
        Ok(())
    }

    /// What was accepted on an exact topic can be sent again at once: it succeeds and changes nothing.
    fn once_more(
        &mut self,
        log: &Memory,
        request: Request,
        entries: Vec<EpochEntry>,
        records: &Bytes,
    ) -> Result<(), TestCaseError> {
        let (after, said) = log.clone().produce(&mut self.native, request, entries.clone(), records);
        let stored = |log: &Memory| log.stored.batches().to_vec();
        let source = |log: &Memory| log.source.map(|source| (source.start, source.end, source.epoch));
        let state = |log: &Memory| (log.position(), log.epochs.clone(), source(log));
        if said.is_err() || state(&after) != state(log) || stored(&after) != stored(log) {
            let (before, after) = (state(log), state(&after));
            let call = log.call(request, entries, records);
            let text = format!("sent again: {said:?}\nbefore {before:?}\nafter {after:?}\n{call:#?}");
            return Err(TestCaseError::fail(text));
        }
        Ok(())
    }
}

/// The start did not move past what the request is judged by: batches below it cannot be recognized, nor can the epoch
/// below it, nor whether an epoch at it is one that a cut to it takes away. And the source's epoch is not below those that
/// it declared itself.
fn is_repeatable(log: &Memory, request: &Request, records: &[u8]) -> bool {
    let from = request.truncate_to.unwrap_or(request.expected_end);
    let is_left = |header: Header| header.next_offset().is_some_and(|next| next > log.start);
    request.source_epoch >= log.shown_epoch
        && (from > log.start || (request.epoch_before == -1 && request.truncate_to.is_none()))
        && frames(records).filter_map(|frame| Header::read(frame.bytes())).all(is_left)
}

/// What is rare and was accepted.
fn happenings(
    request: &Request,
    entries: &[EpochEntry],
    said: &Result<Plan, Denied>,
    repeats: bool,
    before: &Position,
) -> impl Iterator<Item = &'static str> {
    let plan = said.as_ref().ok();
    let rewinds = request.has_tag && request.truncate_to.is_some();
    let clamped = entries.first().is_some_and(|first| first.start == request.source_start);
    let happened = [
        plan.is_some_and(|plan| plan.cut().is_some()),
        rewinds && repeats && plan.is_some_and(|plan| plan.cut().is_none() && plan.appends().is_empty()),
        rewinds && repeats && plan.is_some_and(|plan| plan.end() > before.end),
        clamped
            && plan.is_some_and(|plan| entries.first().is_some_and(|first| !plan.entries().contains(first))),
        plan.is_some_and(|plan| plan.start() == plan.end() && plan.start() > before.start),
        request.has_tag && plan.is_some() && request.epoch_before == -1 && before.epoch_before_end >= 0,
    ];
    HAPPENINGS.into_iter().zip(happened).filter(|(_, happened)| *happened).map(|(name, _)| name)
}

fn agree<T: PartialEq + std::fmt::Debug>(what: &str, native: &T, component: &T) -> Result<(), TestCaseError> {
    if native == component {
        return Ok(());
    }
    Err(TestCaseError::fail(format!("{what}: native {native:?}, component {component:?}")))
}

fn name(verdict: &Result<Plan, Denied>) -> String {
    match verdict {
        Ok(_) => "accepted".to_owned(),
        Err(Denied::Refused(refusal)) => reason_name(refusal.reason).into_owned(),
        Err(Denied::Failed(_)) => "failed".to_owned(),
    }
}

fn seed_bytes(seed: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(seed.to_be_bytes()) {
        *to = from;
    }
    bytes
}
