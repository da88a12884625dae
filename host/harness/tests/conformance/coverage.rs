//! Every admission rule has a scenario in each mode in which it has a meaning.

use std::collections::{BTreeMap, BTreeSet};

use verbatim_harness::Mode;

use crate::suite;

/// Judged in both modes.
const BOTH: [&str; 27] = [
    "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "R16",
    "R18", "R26", "R33", "R34", "R35", "R36", "R36b", "R37", "R38", "R39", "R40",
];
/// R41 and R41b, in both modes too.
const REPLICAS: [&str; 2] = ["R41", "R41b"];
/// Only where the partition assigns offsets.
const NORMAL: [&str; 2] = ["acks", "codec-version"];
/// Only where the writer chooses them.
const EXACT: [&str; 17] = [
    "R12a", "R17", "R19", "R20", "R21", "R22", "R23", "R24", "R25", "R26a", "R26b", "R27", "R28", "R28a",
    "R29", "R30", "R31",
];
/// The mark of scenarios that break two rules at once.
const ORDER: &str = "order";

#[test]
fn every_rule_has_a_scenario_in_each_of_its_modes() {
    let shown = shown();
    for mode in [Mode::Normal, Mode::Exact] {
        let only: &[&str] = if mode == Mode::Normal { &NORMAL } else { &EXACT };
        let meant: BTreeSet<&str> = [&BOTH, &REPLICAS[..], only, &[ORDER]].concat().into_iter().collect();
        let there: BTreeSet<&str> =
            shown.get(&mode_name(mode)).into_iter().flatten().map(String::as_str).collect();
        let missing: Vec<_> = meant.difference(&there).collect();
        assert!(missing.is_empty(), "no scenario on a topic of mode {} shows {missing:?}", mode_name(mode));
        let unknown: Vec<_> = there.difference(&meant).collect();
        assert!(unknown.is_empty(), "{unknown:?} are no rules of mode {}", mode_name(mode));
    }
}

#[test]
fn scenario_names_are_unique_in_a_file_and_mode() {
    let mut seen = BTreeSet::new();
    for scenario in suite().scenarios() {
        let key = (scenario.file().to_owned(), mode_name(scenario.mode()), scenario.name().to_owned());
        assert!(seen.insert(key.clone()), "{key:?} is there twice");
    }
}

/// Rules by mode.
fn shown() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut shown: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for scenario in suite().scenarios() {
        shown.entry(mode_name(scenario.mode())).or_default().extend(scenario.rules().iter().cloned());
    }
    shown
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Normal => "normal",
        Mode::Exact => "exact",
    }
}
