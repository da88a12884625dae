//! Runs all scenarios.

use verbatim_engine::{Judge, Memory, Native};
use verbatim_harness::run;
use verbatim_policy::ExactMirroring;

use crate::{component, suite};

#[test]
fn natively() {
    check(&mut Native::new(ExactMirroring));
}

#[test]
fn through_the_component() {
    check(&mut component());
}

fn check(judge: &mut dyn Judge<Memory>) {
    let report = run(&suite(), judge);
    assert!(report.is_success(), "{report}");
}
