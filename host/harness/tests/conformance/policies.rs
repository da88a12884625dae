//! Policies that keep the contract, and ones that do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use verbatim_engine::contract::{
    Batch, Callbacks, Description, EpochEntry, Membership, Policy, Position, ProducePath, Reason, Refusal,
    Replica, Request,
};
use verbatim_harness::{DEFAULT_SEED, Mode, Report, Shipped, Subject, assert_passes, contract};
use verbatim_policy::ExactMirroring;

/// What a policy does otherwise than `exact-mirroring`.
#[derive(Clone, Default)]
struct Otherwise {
    description: Option<Description>,
    refusal: Option<Refusal>,
    /// Counts calls, by all judges together, and refuses every third one.
    calls: Option<Arc<AtomicU32>>,
    /// Asked who may join, gives this as the reason why not.
    reason: Option<String>,
}

impl ProducePath for Otherwise {
    fn produce(
        &self,
        policy: &Policy,
        position: &Position,
        request: &Request,
        entries: &[EpochEntry],
        batches: &[Batch],
        callbacks: &mut dyn Callbacks,
    ) -> Result<(), Refusal> {
        let third = self.calls.as_ref().is_some_and(|calls| calls.fetch_add(1, Ordering::Relaxed) % 3 == 2);
        match &self.refusal {
            Some(refusal) => Err(refusal.clone()),
            None if third => Err(refusal("every third one", None)),
            None => ExactMirroring.produce(policy, position, request, entries, batches, callbacks),
        }
    }

    fn describe(&self) -> Description {
        self.description.clone().unwrap_or_else(|| ExactMirroring.describe())
    }
}

impl Membership for Otherwise {
    fn may_join(&self, replica: &Replica, end: i64, position: &Position) -> Result<(), String> {
        match &self.reason {
            Some(reason) => Err(reason.clone()),
            None => ExactMirroring.may_join(replica, end, position),
        }
    }
}

fn refusal(text: &str, batch: Option<u32>) -> Refusal {
    Refusal { reason: Reason::Other(87), batch, expected: None, text: text.to_owned() }
}

fn judged(policy: Otherwise) -> Report {
    contract(&Subject::native(policy), DEFAULT_SEED)
}

#[test]
fn a_policy_of_other_rules_keeps_the_contract() {
    let strict = Otherwise { refusal: Some(refusal("closed", None)), ..Otherwise::default() };
    assert_passes(&Subject::native(strict), &[Shipped::Contract]);
}

#[test]
fn what_breaks_the_contract_is_named() {
    let silent = Otherwise { refusal: Some(refusal("", None)), ..Otherwise::default() };
    let beyond = Otherwise { refusal: Some(refusal("text", Some(5000))), ..Otherwise::default() };
    let moody = Otherwise { calls: Some(Arc::default()), ..Otherwise::default() };
    let wordless = Otherwise { reason: Some(String::new()), ..Otherwise::default() };
    for (policy, parts) in [
        (
            silent,
            ["the refusal's text: expected field, value and expectation", "got nothing, reason other(87)"],
        ),
        (beyond, ["the refusal's batch: expected one of the request", "got 5000"]),
        (moody, ["asked again: expected accepted", "every third one"]),
        (wordless, ["who may join the in-sync set", "the reason: expected some words, got nothing"]),
    ] {
        let report = judged(policy);
        let text = report.to_string();
        assert!(!report.is_success() && parts.iter().all(|part| text.contains(part)), "{parts:?}\n{text}");
    }
}

#[test]
fn another_instance_must_say_the_same() {
    let made = AtomicU32::new(0);
    let subject = Subject::new(move || {
        let later = made.fetch_add(1, Ordering::Relaxed) > 1;
        let refusal = later.then(|| refusal("not the first one", None));
        Ok(Box::new(verbatim_engine::Native::new(Otherwise { refusal, ..Otherwise::default() })))
    });
    let text = contract(&subject, DEFAULT_SEED).to_string();
    assert!(text.contains("another instance: expected") && text.contains("not the first one"), "{text}");
}

#[test]
fn a_description_says_what_it_must() {
    let own = ExactMirroring.describe();
    for (description, part) in [
        (Description { name: String::new(), ..own.clone() }, "its name: expected printable text, got \"\""),
        (Description { version: "1\n".to_owned(), ..own.clone() }, "its version: "),
        (Description { supports_exact: false, supports_normal: false, ..own }, "the topics that it judges"),
    ] {
        let report = judged(Otherwise { description: Some(description), ..Otherwise::default() });
        let text = report.to_string();
        assert!(text.contains("FAILED contract: it describes itself") && text.contains(part), "{text}");
    }
}

#[test]
fn a_mode_that_is_not_supported_is_left_out_and_counted() {
    let description = Description { supports_exact: false, ..ExactMirroring.describe() };
    let subject = Subject::native(Otherwise { description: Some(description), ..Otherwise::default() });
    for suite in Shipped::ALL {
        let report = suite.run(&subject);
        assert!(report.is_success(), "{report}");
        assert!(report.tests.iter().all(|test| test.mode != Some(Mode::Exact)), "{report}");
        let exact = suite
            .scenarios()
            .unwrap_or_else(|error| panic!("{error}"))
            .map(|suite| suite.scenarios().iter().filter(|scenario| scenario.mode() == Mode::Exact).count());
        let [left_out] = report.left_out.as_slice() else { panic!("{report}") };
        assert!(exact.is_none_or(|exact| exact == left_out.tests) && left_out.tests > 0, "{report}");
        let line = format!(
            "left out: {} of {}: the module says that it does not judge exact topics",
            left_out.tests,
            suite.name()
        );
        assert!(report.to_string().contains(&line), "{report}");
    }
}
