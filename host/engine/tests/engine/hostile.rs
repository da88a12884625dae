//! A module that misbehaves costs one call an error, and nobody else anything.

use std::sync::atomic::{AtomicBool, Ordering};

use hostile_module::Behaviour;
use verbatim_contract::{MAX_TEXT_LEN, Reason, Replica};
use verbatim_engine::{
    Cause, Denied, Failure, Instance, Invariant, Judge, MAX_TRACE_LEN, MAX_TRACE_LINES, Memory,
    Misconfigured, NotJoined, Slot, denied_code,
};

use crate::support::{batch, exact, exact_mirroring, fingerprint, hostile, run, tagged};

/// A partition with something in it, which the module sees under this behaviour's number.
fn partition(behaviour: Behaviour, judge: &mut Instance<Memory>) -> Memory {
    let memory = exact();
    let request = tagged(&memory, (10, 3));
    let (mut memory, verdict) =
        memory.produce(judge, request, vec![], &run(&[batch(0, 3, 4), batch(4, 3, 6)]));
    verdict.unwrap();
    memory.policy.partition = behaviour.partition();
    memory.policy.may_rewrite = true;
    memory
}

/// What a judge says of a request that a good module accepts.
fn misbehave(behaviour: Behaviour, judge: &mut Instance<Memory>) -> (Memory, Result<(), Denied>) {
    let memory = partition(behaviour, judge);
    let before = fingerprint(&memory);
    let request = tagged(&memory, (20, 3));
    let (memory, verdict) = memory.produce(judge, request, vec![], &run(&[batch(10, 3, 5), batch(15, 3, 5)]));
    if verdict.is_err() {
        assert_eq!(fingerprint(&memory), before, "{behaviour:?}");
    }
    (memory, verdict.map(|_| ()))
}

fn failure(behaviour: Behaviour, judge: &mut Instance<Memory>) -> Failure {
    match misbehave(behaviour, judge).1 {
        Err(denied @ Denied::Failed(_)) => {
            assert_eq!(denied_code(&denied).number, 56);
            assert!(denied_code(&denied).retriable);
            let Denied::Failed(failure) = denied else { unreachable!() };
            failure
        }
        other => panic!("{behaviour:?}: {other:?}"),
    }
}

#[test]
fn each_misbehaviour_has_its_failure() {
    let mut judge = hostile().instance().unwrap();
    for behaviour in [Behaviour::Traps, Behaviour::Recurses, Behaviour::CallsAfterRefusing] {
        let failure = failure(behaviour, &mut judge);
        assert!(matches!(failure, Failure::Trap { .. }), "{behaviour:?}: {failure:?}");
    }
    for behaviour in [Behaviour::Spins, Behaviour::AsksForEver] {
        let failure = failure(behaviour, &mut judge);
        assert!(matches!(failure, Failure::Deadline { .. }), "{behaviour:?}: {failure:?}");
    }
    for behaviour in [Behaviour::GrowsMemory, Behaviour::RefusesEndlessly] {
        let failure = failure(behaviour, &mut judge);
        assert!(matches!(failure, Failure::Memory { .. }), "{behaviour:?}: {failure:?}");
    }
    for behaviour in [Behaviour::RefusesTooLong, Behaviour::WritesEndlessLine] {
        let failure = failure(behaviour, &mut judge);
        // On a slow machine the time may be up before the text is written.
        assert!(
            matches!(failure, Failure::Trap { .. } | Failure::Deadline { .. }),
            "{behaviour:?}: {failure:?}"
        );
    }
    for (behaviour, which) in [
        (Behaviour::SettlesNothing, Invariant::Settled),
        (Behaviour::SettlesTwice, Invariant::Settled),
        (Behaviour::PlacesElsewhere, Invariant::Settled),
        (Behaviour::ChangesEpoch, Invariant::Settled),
        (Behaviour::ClaimsDuplicates, Invariant::Settled),
        (Behaviour::SettlesBeyond, Invariant::Settled),
        (Behaviour::AsksBeyond, Invariant::Settled),
        (Behaviour::SwapsPlaces, Invariant::Settled),
        (Behaviour::Rewrites, Invariant::Bytes),
        (Behaviour::RewritesTwice, Invariant::Bytes),
    ] {
        let failure = failure(behaviour, &mut judge);
        assert!(
            matches!(&failure, Failure::Invariant(broken) if broken.which == which),
            "{behaviour:?}: {failure:?}"
        );
    }
    misbehave(Behaviour::AppendsAll, &mut judge).1.expect("the instance works after all that");
}

#[test]
fn in_what_order_batches_are_settled_makes_no_difference() {
    let mut judge = hostile().instance().unwrap();
    let [forwards, backwards] = [Behaviour::AppendsAll, Behaviour::SettlesBackwards].map(|behaviour| {
        let (memory, verdict) = misbehave(behaviour, &mut judge);
        verdict.unwrap_or_else(|denied| panic!("{behaviour:?}: {denied}"));
        fingerprint(&memory)
    });
    assert_eq!(forwards, backwards);
}

#[test]
fn a_trap_tells_the_cause_and_what_the_module_said_last() {
    let mut judge = hostile().instance().unwrap();
    let text = failure(Behaviour::ReadsAndTraps, &mut judge).to_string();
    let (first, frames) = text.split_once('\n').unwrap();
    assert!(
        first.contains("unreachable") && first.ends_with(r"its last line: `read half,\nand no more`"),
        "{text}"
    );
    assert!(frames.contains("produce-path"), "{text}");
    let text = failure(Behaviour::Traps, &mut judge).to_string();
    assert!(!text.contains("last line"), "another call's line is not this one's: {text}");
}

#[test]
fn a_refusal_is_bounded_and_drops_what_was_placed() {
    let mut judge = hostile().instance().unwrap();
    for behaviour in [Behaviour::RefusesAfterPlacing, Behaviour::RefusesAtLength] {
        let Err(Denied::Refused(refusal)) = misbehave(behaviour, &mut judge).1 else {
            panic!("{behaviour:?}")
        };
        assert_eq!(refusal.reason, Reason::Other(42));
        assert!(refusal.text.len() <= MAX_TEXT_LEN, "{behaviour:?}");
    }
}

#[test]
fn a_flood_of_lines_is_cut() {
    let mut judge = hostile().instance().unwrap();
    let (memory, verdict) = misbehave(Behaviour::FloodsLog, &mut judge);
    // 10,000 lines take their time: on a slow machine that is a missed deadline, which is as good.
    if let Err(denied) = verdict {
        assert!(matches!(denied, Denied::Failed(Failure::Deadline { .. })), "{denied}");
    }
    assert!(!memory.lines.is_empty() && memory.lines.len() <= usize::try_from(MAX_TRACE_LINES).unwrap());
    assert!(memory.lines.iter().all(|line| line.len() == MAX_TRACE_LEN));
}

#[test]
fn a_false_checksum_is_never_committed() {
    let mut judge = hostile().instance().unwrap();
    let mut damaged = batch(0, 3, 4);
    *damaged.last_mut().unwrap() ^= 1;
    let memory = exact();
    let request = tagged(&memory, (10, 3));
    let (memory, verdict) = memory.produce(&mut judge, request, vec![], &run(&[damaged]));
    assert!(
        matches!(&verdict, Err(Denied::Failed(Failure::Invariant(broken))) if broken.which == Invariant::Validated),
        "{verdict:?}"
    );
    assert_eq!(fingerprint(&memory), fingerprint(&exact()));
}

#[test]
fn a_hostile_membership_harms_nobody() {
    let mut judge = hostile().instance::<Memory>().unwrap();
    let position = exact().position();
    let mut ask = |id| judge.may_join(&Replica { id, in_sync: false, online: true }, 0, &position);
    assert_eq!(ask(1), Ok(()));
    assert!(matches!(ask(2), Err(NotJoined::Refused(reason)) if reason.len() <= MAX_TEXT_LEN));
    assert!(matches!(ask(3), Err(NotJoined::Failed(Failure::Trap { .. }))));
    assert!(matches!(ask(4), Err(NotJoined::Failed(Failure::Deadline { .. }))));
    assert!(matches!(ask(5), Err(NotJoined::Failed(Failure::Trap { text })) if text.contains("produce")));
    assert_eq!(ask(1), Ok(()));
}

#[test]
fn a_hostile_check_of_keys_harms_nobody() {
    let check = |keys: &[(&str, &str)]| {
        let keys: Vec<_> =
            keys.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        hostile().check_configuration(&keys)
    };
    assert_eq!(check(&[]), Ok(()));
    let told = check(&[("hostile.a", "käse"), ("hostile.tell", "")]);
    let expected = r#"[("hostile.a", "käse"), ("hostile.tell", "")]"#;
    assert_eq!(told, Err(Misconfigured::Refused(expected.to_owned())));
    let long = check(&[("hostile.refuse", "")]);
    assert!(matches!(&long, Err(Misconfigured::Refused(text)) if text.len() == MAX_TEXT_LEN), "{long:?}");
    let trapped = check(&[("hostile.trap", "")]).unwrap_err();
    assert!(matches!(trapped, Misconfigured::Failed(Failure::Trap { .. })), "{trapped}");
    assert!(trapped.to_string().starts_with("the module could not check its configuration: "), "{trapped}");
    let spun = check(&[("hostile.spin", "")]);
    assert!(matches!(spun, Err(Misconfigured::Failed(Failure::Deadline { .. }))), "{spun:?}");
    let asked = check(&[("hostile.ask", "")]);
    assert!(
        matches!(&asked, Err(Misconfigured::Failed(Failure::Trap { text })) if text.contains("produce")),
        "{asked:?}"
    );
    let most = vec![("hostile.a".to_owned(), "v".repeat(32_767)); 4];
    assert_eq!(hostile().check_configuration(&most), Ok(()));
}

#[test]
fn a_module_without_a_check_takes_any_key() {
    assert!(!exact_mirroring().inspect().checks_configuration && hostile().inspect().checks_configuration);
    let keys = [("exact-mirroring.trap".to_owned(), "x".to_owned())];
    assert_eq!(exact_mirroring().check_configuration(&keys), Ok(()));
}

#[test]
fn many_traps_leave_memory_flat() {
    let mut judge = hostile().instance().unwrap();
    let mut trap = |times: u32| {
        for _ in 0..times {
            let mut memory = exact();
            memory.policy.partition = Behaviour::Traps.partition();
            let request = tagged(&memory, (10, 3));
            let (_, verdict) = memory.produce(&mut judge, request, vec![], &run(&[batch(0, 3, 1)]));
            assert!(verdict.is_err());
        }
        resident_bytes()
    };
    trap(200);
    // Other tests of this process take and give back memory meanwhile; a leaked store, 30 KiB and more each, would show in
    // every round.
    let growth = (0..5).map(|_| {
        let before = resident_bytes();
        trap(2000).saturating_sub(before)
    });
    let least = growth.min_by_key(|&bytes| bytes).unwrap();
    assert!(least < 16 << 20, "grew by {least} bytes and more in every round");
}

#[test]
fn many_swaps_leave_memory_flat() {
    let slot = Slot::new("policy", exact_mirroring().clone());
    let mut follower = slot.follower();
    let mut swap = |times: u32| {
        for round in 0..times {
            let module = if round % 2 == 0 { hostile() } else { exact_mirroring() };
            slot.switch(module.clone(), Cause::Swap);
            let memory = exact();
            let request = tagged(&memory, (10, 3));
            memory.produce(&mut follower, request, vec![], &run(&[batch(0, 3, 1)])).1.unwrap();
        }
        resident_bytes()
    };
    swap(200);
    let growth = (0..5).map(|_| {
        let before = resident_bytes();
        swap(1000).saturating_sub(before)
    });
    let least = growth.min_by_key(|&bytes| bytes).unwrap();
    assert!(least < 8 << 20, "grew by {least} bytes and more in every round");
}

fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Every core is kept busy by more threads than there are; a good module must not miss its deadline for that.
#[test]
fn a_good_module_does_not_fail_on_a_busy_machine() {
    let mut judge = exact_mirroring().instance().unwrap();
    let stop = AtomicBool::new(false);
    let threads = std::thread::available_parallelism().unwrap().get() * 4;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut memory = exact();
            for round in 0..3000 {
                let end = memory.end;
                let batches: Vec<_> = (0..16).map(|index| batch(end + index, 3, 1)).collect();
                let request = tagged(&memory, (end + 16, 3));
                let verdict;
                (memory, verdict) = memory.produce(&mut judge, request, vec![], &run(&batches));
                verdict.unwrap_or_else(|denied| panic!("round {round}: {denied}"));
                // Comparing is not what is tested; keep the log short.
                memory.stored.advance_start(memory.end);
            }
        }));
        stop.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}
