//! Runs scenarios against a judge.

use std::time::Instant;

use verbatim_engine::{Judge, Memory, NotJoined};

use crate::check;
use crate::format::{JoinSpec, Mode};
use crate::report::{Difference, Outcome, Report};
use crate::suite::{Scenario, Suite, replica};

/// Runs every scenario on a log of its own, but for those of a mode that the judge's description does not support. What
/// differs is reported, nothing stops the run.
pub fn run(suite: &Suite, judge: &mut dyn Judge<Memory>) -> Report {
    let mut report = Report::default();
    let supported = supported(judge);
    for mode in [Mode::Exact, Mode::Normal].into_iter().filter(|mode| !supported.contains(mode)) {
        let tests = suite.scenarios().iter().filter(|scenario| scenario.mode() == mode).count();
        report.leave_out(suite.name(), mode, tests);
    }
    for scenario in suite.scenarios().iter().filter(|scenario| supported.contains(&scenario.mode())) {
        let begun = Instant::now();
        let outcome = Outcome {
            suite: suite.name().to_owned(),
            file: Some(scenario.file().to_owned()),
            name: scenario.name().to_owned(),
            mode: Some(scenario.mode()),
            rules: scenario.rules().to_vec(),
            time_us: 0,
            differences: run_one(scenario, judge),
        };
        report.tests.push(outcome.timed(begun.elapsed()));
    }
    report
}

/// The modes that a judge says it supports.
pub(crate) fn supported(judge: &dyn Judge<Memory>) -> Vec<Mode> {
    let description = judge.describe();
    let modes = [(Mode::Exact, description.supports_exact), (Mode::Normal, description.supports_normal)];
    modes.into_iter().filter(|(_, supported)| *supported).map(|(mode, _)| mode).collect()
}

fn run_one(scenario: &Scenario, judge: &mut dyn Judge<Memory>) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut log = scenario.log.clone();
    for (index, prepared) in scenario.requests.iter().enumerate() {
        let before = log.clone();
        let call = before.call(prepared.request, prepared.entries.clone(), &prepared.records);
        log.lines.clear();
        let (after, verdict) =
            log.produce(judge, prepared.request, prepared.entries.clone(), &prepared.records);
        log = after;
        let at = format!("request {index}");
        differences.extend(check::request(&at, &prepared.expect, &call, (&before, &log), &verdict));
    }
    for (index, spec) in scenario.joins.iter().enumerate() {
        differences.extend(join(format!("join {index}"), spec, &log, judge));
    }
    differences
}

fn join(at: String, spec: &JoinSpec, log: &Memory, judge: &mut dyn Judge<Memory>) -> Option<Difference> {
    let answer = judge.may_join(&replica(spec.replica), spec.end, &log.position());
    let expected = match &spec.refused {
        Some(part) => format!("no, with `{part}` in the reason"),
        None => "yes".to_owned(),
    };
    let got = match (&spec.refused, answer) {
        (None, Ok(())) => return None,
        (Some(part), Err(NotJoined::Refused(reason))) if reason.contains(part) => return None,
        (_, Ok(())) => "yes".to_owned(),
        (_, Err(NotJoined::Refused(reason))) => format!("no: {reason}"),
        (_, Err(NotJoined::Failed(failure))) => failure.to_string(),
    };
    Some(Difference { at, what: "may the replica join".to_owned(), expected, got })
}
