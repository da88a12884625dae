//! The suites: this project's own rules pass them, and a module that breaks something does not.

use hostile_module::Behaviour;
use verbatim_engine::contract::{Description, Position, Replica};
use verbatim_engine::{Call, Instance, Judge, Judged, Memory, Module, NotJoined};
use verbatim_harness::{DEFAULT_SEED, Report, Shipped, Subject, assert_passes, contract, load, run};
use verbatim_policy::ExactMirroring;

use crate::{loaded, module, seed};

#[test]
fn natively() {
    assert_passes(&Subject::native(ExactMirroring), &Shipped::ALL);
}

#[test]
fn through_the_component() {
    assert_passes(&Subject::module(&module()), &Shipped::ALL);
}

/// Scenarios of a module that hands back other records.
#[test]
fn redact_leaves_what_its_scenarios_say() {
    let module = loaded(verbatim_artifact::redact());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest/redact/scenarios");
    let suite = load(folder.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let mut judge = module.instance().unwrap_or_else(|error| panic!("{error}"));
    let report = run(&suite, &mut judge);
    assert!(report.is_success() && report.tests.len() >= 12, "{report}");
    assert_passes(&Subject::module(&module), &[Shipped::Contract]);
}

#[test]
fn the_contract_is_kept_whatever_the_seed() {
    let seed = seed();
    for subject in [Subject::native(ExactMirroring), Subject::module(&module())] {
        let report = contract(&subject, seed);
        assert!(report.is_success(), "VERBATIM_SEED={seed}: {report}");
        assert!(report.notes.is_empty() && report.left_out.is_empty(), "{report}");
    }
}

/// Those that break nothing: what is placed before a refusal is dropped, and a long text is cut.
const HARMLESS: [Behaviour; 2] = [Behaviour::RefusesAfterPlacing, Behaviour::RefusesAtLength];

/// What a behaviour breaks, as the report must name it: one of these.
fn breaks(behaviour: Behaviour) -> &'static [&'static str] {
    match behaviour {
        Behaviour::AppendsAll => &["validation (I5)"],
        Behaviour::Traps | Behaviour::Recurses | Behaviour::CallsAfterRefusing => &["trapped"],
        Behaviour::Spins | Behaviour::AsksForEver => &["deadline"],
        Behaviour::GrowsMemory | Behaviour::RefusesEndlessly => &["more memory than its limit"],
        Behaviour::SettlesNothing => &["settlement (I8): batch 0 is not settled"],
        Behaviour::SettlesTwice => &["settlement (I8): batch 0 is settled twice"],
        Behaviour::SettlesBeyond | Behaviour::AsksBeyond => &["settlement (I8): there are"],
        Behaviour::PlacesElsewhere | Behaviour::ChangesEpoch | Behaviour::ClaimsDuplicates => {
            &["settlement (I8)"]
        }
        // On a slow machine the time may be up before the text is written.
        Behaviour::RefusesTooLong | Behaviour::WritesEndlessLine => &["trapped", "deadline"],
        Behaviour::FloodsLog => &["validation (I5)", "deadline"],
        Behaviour::Rewrites | Behaviour::RewritesTwice => &["bytes (I3)"],
        // Every failure begins so.
        _ => &["the module "],
    }
}

#[test]
fn a_module_that_breaks_something_fails_and_the_report_names_it() {
    let hostile = hostile();
    for behaviour in Behaviour::ALL.into_iter().filter(|behaviour| !HARMLESS.contains(behaviour)) {
        let (report, names) = (judging(&hostile, behaviour), breaks(behaviour));
        assert!(!report.is_success(), "{behaviour:?}");
        let named = report.failed().filter(|test| test.mode.is_some()).any(|test| {
            test.differences.iter().any(|difference| names.iter().any(|name| difference.got.contains(name)))
        });
        assert!(named, "{behaviour:?}, expected one of {names:?}: {report}");
    }
}

/// Not to accept a single request is worth a note.
#[test]
fn a_module_that_refuses_everything_breaks_nothing() {
    let hostile = hostile();
    for behaviour in HARMLESS {
        let report = judging(&hostile, behaviour);
        let failed: Vec<_> = report.failed().map(|test| test.name.as_str()).collect();
        // It traps when it is asked who may join, whatever the partition.
        assert_eq!(failed, ["who may join the in-sync set"], "{behaviour:?}: {report}");
        assert_eq!(report.notes.len(), 2, "{report}");
    }
}

fn hostile() -> Module {
    loaded(verbatim_artifact::hostile())
}

/// The suite *contract* against the module as it behaves on that partition.
fn judging(hostile: &Module, behaviour: Behaviour) -> Report {
    let hostile = hostile.clone();
    let subject = Subject::new(move || {
        Ok(Box::new(OnPartition { judge: hostile.instance()?, partition: behaviour.partition() }))
    });
    contract(&subject, DEFAULT_SEED)
}

/// Shows every partition to its judge under the same number.
struct OnPartition {
    judge: Instance<Memory>,
    partition: u32,
}

impl Judge<Memory> for OnPartition {
    fn describe(&self) -> &Description {
        self.judge.describe()
    }

    fn judge(&mut self, mut call: Call, partition: Memory) -> Judged<Memory> {
        call.policy.partition = self.partition;
        self.judge.judge(call, partition)
    }

    fn may_join(&mut self, replica: &Replica, end: i64, position: &Position) -> Result<(), NotJoined> {
        self.judge.may_join(replica, end, position)
    }
}
