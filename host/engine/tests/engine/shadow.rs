//! A candidate judges live calls too, and differences are told.

use hostile_module::Behaviour;
use verbatim_contract::Reason;
use verbatim_engine::{
    Bound, Cause, Denied, Failure, Follower, MAX_DIFFERENCES, Memory, Module, Said, Shadow, ShadowEnd,
    ShadowError, ShadowReport, Slot,
};

use crate::support::{
    batch, exact, exact_mirroring, hostile, normal, relabelled, request, run, tagged, valued,
};

/// One call on an exact partition with this number, at this offset of an empty log.
fn ask(follower: &mut Follower<Memory>, behaviour: Behaviour, base: i64) -> Result<(), Denied> {
    let mut memory = exact();
    memory.policy.partition = behaviour.partition();
    let request = tagged(&memory, (base + 10, 3));
    memory.produce(follower, request, vec![], &run(&[batch(base, 3, 2)])).1.map(|_| ())
}

fn another() -> Module {
    relabelled(verbatim_artifact::exact_mirroring().unwrap(), 1)
}

/// Waits until as many calls were judged or dropped as were made, and ends the run.
fn settled(run: &Shadow, calls: u64) -> ShadowReport {
    loop {
        let report = run.report();
        if report.judged + report.dropped == calls {
            run.stop();
            let report = run.wait();
            assert_eq!(report.judged, report.same + report.different + report.inconclusive);
            return report;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn the_same_rules_say_the_same() {
    let slot = Slot::new("policy", exact_mirroring().clone());
    let mut follower = slot.follower();
    let shadow = slot.begin_shadow(another(), Bound::Requests(1 << 40), 1000).unwrap();
    let mut calls = 0;
    let mut memory = exact();
    // Appended, then stored before, then diverged, then at the wrong place, then with a wrong checksum.
    let first = [batch(0, 3, 4), batch(4, 3, 6)];
    let mut damaged = batch(10, 3, 1);
    *damaged.last_mut().unwrap() ^= 1;
    for batches in
        [&first[..], &first, &[valued(0, 3, 4, b"other")], &[batch(11, 2, 1)], &[batch(5, 3, 1)], &[damaged]]
    {
        for validate_records in [false, true] {
            memory.policy.validate_records = validate_records;
            let request = tagged(&memory, (10, 3));
            memory = memory.produce(&mut follower, request, vec![], &run(batches)).0;
            calls += 1;
        }
    }
    let mut memory = normal();
    for value in [&[7; 300_000][..], b"small"] {
        memory = memory.produce(&mut follower, request(), vec![], &run(&[valued(0, -1, 3, value)])).0;
        calls += 1;
    }
    assert_eq!(memory.end, 6);
    let report = settled(&shadow, calls);
    assert_eq!((report.same, report.different), (calls, 0), "{report:?}");
    assert_eq!((report.inconclusive, report.dropped), (0, 0));
    assert_eq!((report.candidate, report.live), (another().inspect().digest, slot.current().stamp()));
    assert_eq!(slot.current().counts().calls, calls, "the candidate's calls are not counted as live ones");
}

#[test]
fn a_difference_is_named() {
    let slot = Slot::new("policy", exact_mirroring().clone());
    let mut follower = slot.follower();
    let shadow = slot.begin_shadow(hostile().clone(), Bound::Requests(4), 100).unwrap();
    ask(&mut follower, Behaviour::AppendsAll, 100).unwrap();
    ask(&mut follower, Behaviour::RefusesAfterPlacing, 200).unwrap();
    ask(&mut follower, Behaviour::Traps, 300).unwrap();
    let refused = {
        let memory = exact();
        // It expects an end that is not there.
        let request = verbatim_contract::Request { expected_end: 7, ..tagged(&memory, (410, 3)) };
        memory.produce(&mut follower, request, vec![], &run(&[batch(400, 3, 2)])).1
    };
    assert!(matches!(refused, Err(Denied::Refused(refusal)) if refusal.reason == Reason::PositionMismatch));

    let report = shadow.wait();
    assert_eq!(report.end, Some(ShadowEnd::Bound));
    assert_eq!((report.judged, report.same, report.different, report.inconclusive), (4, 1, 3, 0));
    let [refuses, traps, accepts] = &report.differences[..] else { panic!("{report:?}") };
    assert_eq!(refuses.partition, Behaviour::RefusesAfterPlacing.partition());
    assert_eq!((refuses.topic_id, refuses.base_offset, refuses.batches), ((1, 2), Some(200), 1));
    assert_eq!(refuses.live, Said::Accepted { placed: 1, duplicates: 0, end: 202 });
    assert!(matches!(&refuses.candidate, Said::Refused { reason: Reason::Other(42), .. }));
    assert!(matches!(&traps.candidate, Said::Failed(Failure::Trap { .. })), "{traps:?}");
    assert!(matches!(&accepts.live, Said::Refused { reason: Reason::PositionMismatch, .. }));
    assert!(matches!(&accepts.candidate, Said::Accepted { placed: 1, .. }), "{accepts:?}");
    let told = refuses.to_string();
    for part in
        ["partition `13`", "base offset `200`", "live accepts: 1 batches", "candidate refuses (other)"]
    {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn what_was_not_recorded_is_inconclusive() {
    // The module in service asks nothing back, the candidate does.
    let slot = Slot::new("policy", hostile().clone());
    let mut follower = slot.follower();
    let shadow = slot.begin_shadow(another(), Bound::Requests(3), 100).unwrap();
    for _ in 0..3 {
        let mut memory = exact();
        memory.policy.validate_records = true;
        let request = tagged(&memory, (10, 3));
        memory.produce(&mut follower, request, vec![], &run(&[batch(0, 3, 2)])).1.unwrap();
    }
    let report = shadow.wait();
    assert_eq!((report.judged, report.inconclusive, report.different), (3, 3, 0), "{report:?}");
}

#[test]
fn a_queue_that_is_full_costs_the_candidate_calls_and_nobody_else_anything() {
    let slot = Slot::new("policy", exact_mirroring().clone());
    let mut follower = slot.follower();
    // The candidate needs its whole deadline for each call.
    let shadow = slot.begin_shadow(hostile().clone(), Bound::Requests(1 << 40), 2).unwrap();
    let calls = 300;
    for _ in 0..calls {
        ask(&mut follower, Behaviour::Spins, 0).unwrap();
    }
    let report = settled(&shadow, calls);
    assert!(report.dropped > 0 && report.different > 0, "{report:?}");
    assert_eq!(report.different, report.judged);
    assert!(report.differences.len() <= MAX_DIFFERENCES);
    assert_eq!(slot.current().counts().calls, calls);
}

#[test]
fn differences_are_counted_beyond_those_that_are_kept() {
    let slot = Slot::new("policy", exact_mirroring().clone());
    let mut follower = slot.follower();
    let calls = u64::try_from(MAX_DIFFERENCES).unwrap() + 20;
    let shadow = slot.begin_shadow(hostile().clone(), Bound::Requests(calls), 1000).unwrap();
    for _ in 0..calls {
        ask(&mut follower, Behaviour::RefusesAfterPlacing, 0).unwrap();
    }
    let report = shadow.wait();
    assert_eq!((report.different, report.differences.len()), (calls, MAX_DIFFERENCES));
}

#[test]
fn a_slot_has_one_run_at_a_time_and_a_swap_ends_it() {
    let slot = Slot::new("policy", exact_mirroring().clone());
    let begin = || slot.begin_shadow(another(), Bound::Requests(1 << 40), 1);
    let first = begin().unwrap();
    assert_eq!(begin().unwrap_err(), ShadowError::Busy { slot: "policy".to_owned() });
    first.stop();
    assert_eq!(first.wait().end, Some(ShadowEnd::Stopped));

    let second = begin().unwrap();
    slot.switch(another(), Cause::Swap);
    assert_eq!(second.wait().end, Some(ShadowEnd::Swapped));

    let third = slot.begin_shadow(another(), Bound::Time(std::time::Duration::from_millis(5)), 1).unwrap();
    assert_eq!(third.wait().end, Some(ShadowEnd::Bound));
    begin().unwrap();
}
