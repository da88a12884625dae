//! Random requests, judged and carried out twice: by the in-memory broker, and by a partition with a real log. After each,
//! verdicts and everything that can be seen of the two must be the same.

mod twins;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use verbatim_harness::random::{self, Tape};

use twins::Twins;

const CASES: u32 = 3000;
/// No further case begins after this, once all that has to came about, so that a slow machine is not held up.
const TIME: Duration = Duration::from_secs(6);
const REQUESTS: usize = 12;
/// Long enough for every choice of a case.
const TAPE_LEN: usize = 1500;
/// Set to a printed seed, it runs the same cases again, all of them.
const SEED_VARIABLE: &str = "VERBATIM_SEED";

/// What has to come about, so that the run tells of it.
const HAPPENINGS: [&str; 10] = [
    "a cut",
    "a hole",
    "a hole at the tail",
    "a declared entry",
    "several epochs in a request",
    "a restart below the end",
    "a start that moves",
    "a repetition",
    "a sequence seen before",
    "a log opened again",
];

#[test]
fn a_log_does_what_the_broker_in_memory_does() {
    let given = std::env::var(SEED_VARIABLE).ok();
    let seed =
        given.as_ref().map_or_else(|| RandomState::new().hash_one(CASES), |text| text.parse().unwrap());
    println!("{SEED_VARIABLE}={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let (begun, happened) = (Instant::now(), RefCell::new(BTreeMap::new()));
    let tape = vec(proptest::num::u16::ANY, TAPE_LEN);
    let run = runner.run(&tape, |numbers| {
        let mut happened = happened.borrow_mut();
        if given.is_none() && begun.elapsed() > TIME && happened.len() == HAPPENINGS.len() {
            return Ok(());
        }
        case(&mut Tape::new(&numbers), &mut happened)
    });
    run.unwrap_or_else(|error| panic!("{SEED_VARIABLE}={seed}: {error}"));
    let happened = happened.into_inner();
    println!("{happened:?}");
    for happening in HAPPENINGS {
        assert!(happened.contains_key(happening), "it never came about: {happening}, {happened:?}");
    }
}

fn case(tape: &mut Tape<'_>, happened: &mut BTreeMap<&'static str, u32>) -> Result<(), TestCaseError> {
    let mut note = |happening| *happened.entry(happening).or_default() += 1;
    let mut twins = Twins::new(tape)?;
    twins.agree("at first")?;
    let mut sent = Vec::new();
    for _ in 0..REQUESTS {
        let one = random::request(tape, twins.memory(), &sent);
        sent.push(one.clone());
        twins.produce(one, tape.rarely(4), &mut note)?;
        if tape.rarely(8) {
            twins.open_again(tape.rarely(2))?;
            note("a log opened again");
        }
    }
    Ok(())
}
