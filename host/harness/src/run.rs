//! Runs scenarios against a judge.

use verbatim_engine::{Judge, Memory, NotJoined};

use crate::check;
use crate::format::JoinSpec;
use crate::report::{Mismatch, Report};
use crate::suite::{Scenario, Suite, replica};

/// Runs every scenario on a log of its own. What differs is reported, nothing stops the run.
pub fn run(suite: &Suite, judge: &mut dyn Judge<Memory>) -> Report {
    let mut report = Report::default();
    for scenario in suite.scenarios() {
        let differences = run_one(scenario, judge);
        if differences.is_empty() {
            report.passed += 1;
        } else {
            let scenario = format!("{}: {}", scenario.file(), scenario.name());
            report.failed.push(Mismatch { scenario, differences });
        }
    }
    report
}

fn run_one(scenario: &Scenario, judge: &mut dyn Judge<Memory>) -> Vec<String> {
    let mut differences = Vec::new();
    let mut log = scenario.log.clone();
    for (index, prepared) in scenario.requests.iter().enumerate() {
        let before = log.clone();
        let call = before.call(prepared.request, prepared.entries.clone(), &prepared.records);
        log.lines.clear();
        let (after, verdict) =
            log.produce(judge, prepared.request, prepared.entries.clone(), &prepared.records);
        log = after;
        let found = check::request(&prepared.expect, &call, &before, &log, &verdict);
        differences.extend(found.into_iter().map(|difference| format!("request {index}: {difference}")));
    }
    for (index, spec) in scenario.joins.iter().enumerate() {
        let found = join(spec, &log, judge);
        differences.extend(found.map(|difference| format!("join {index}: {difference}")));
    }
    differences
}

fn join(spec: &JoinSpec, log: &Memory, judge: &mut dyn Judge<Memory>) -> Option<String> {
    let answer = judge.may_join(&replica(spec.replica), spec.end, &log.position());
    match (&spec.refused, answer) {
        (None, Ok(())) => None,
        (Some(_), Ok(())) => Some("expected a refusal, the replica may join".to_owned()),
        (Some(part), Err(NotJoined::Refused(reason))) if reason.contains(part) => None,
        (Some(part), Err(error)) => Some(format!("expected a reason with `{part}`, got `{error}`")),
        (None, Err(error)) => Some(format!("expected that the replica may join, got `{error}`")),
    }
}
