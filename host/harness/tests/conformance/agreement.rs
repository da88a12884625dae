//! Random requests on random logs: the component says what the native policy says, to the letter, and what it
//! accepts is something that the engine carries out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use proptest::collection::vec;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use verbatim_engine::{Denied, Instance, Judge, Memory, Native, NotJoined, Plan};
use verbatim_harness::reason_name;
use verbatim_policy::ExactMirroring;

use crate::tape::Tape;
use crate::{component, world};

const CASES: u32 = 4000;
const REQUESTS: usize = 4;
/// Long enough for every choice of a case.
const TAPE_LEN: usize = 400;
/// Set to a printed seed, it runs the same cases again.
const SEED_VARIABLE: &str = "VERBATIM_SEED";

struct Judges {
    native: Native<ExactMirroring>,
    component: Instance<Memory>,
    /// How often each verdict came about.
    verdicts: BTreeMap<String, u32>,
}

#[test]
fn native_and_component_agree_on_random_requests() {
    let seed = seed();
    println!("{SEED_VARIABLE}={seed}");
    let judges = RefCell::new(Judges {
        native: Native::new(ExactMirroring),
        component: component(),
        verdicts: BTreeMap::new(),
    });
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes(seed)));
    let tape = vec(proptest::num::u16::ANY, TAPE_LEN);
    runner
        .run(&tape, |numbers| judges.borrow_mut().case(&mut Tape::new(&numbers)))
        .unwrap_or_else(|error| panic!("{SEED_VARIABLE}={seed}: {error}"));
    let verdicts = judges.into_inner().verdicts;
    println!("{verdicts:?}");
    let accepted = verdicts.get("accepted").copied().unwrap_or(0);
    assert!(accepted > CASES / 10, "too few requests are accepted to tell much: {verdicts:?}");
    assert!(verdicts.len() > 25, "too few rules are reached to tell much: {verdicts:?}");
}

impl Judges {
    fn case(&mut self, tape: &mut Tape<'_>) -> Result<(), TestCaseError> {
        let mut log = world::log(tape);
        for _ in 0..REQUESTS {
            let (request, entries, records) = world::request(tape, &log);
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

fn seed() -> u64 {
    match std::env::var(SEED_VARIABLE) {
        Ok(text) => {
            text.parse().unwrap_or_else(|_| panic!("{SEED_VARIABLE} must be a number, it is `{text}`"))
        }
        Err(_) => RandomState::new().hash_one(CASES),
    }
}

fn seed_bytes(seed: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(seed.to_be_bytes()) {
        *to = from;
    }
    bytes
}
