//! Runs all scenarios.

use verbatim_engine::{Judge, Memory, Native};
use verbatim_harness::{load, run};
use verbatim_policy::ExactMirroring;

use crate::scenario_dir;

#[test]
fn natively() {
    check(&mut Native::new(ExactMirroring));
}

fn check(judge: &mut dyn Judge<Memory>) {
    let suite = load(&scenario_dir()).unwrap_or_else(|error| panic!("{error}"));
    let report = run(&suite, judge);
    assert!(report.is_success(), "{report}");
}
