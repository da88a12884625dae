//! Swaps while others judge: each call is judged by exactly one generation, and by the newest there is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hostile_module::Behaviour;
use verbatim_contract::{Reason, Replica};
use verbatim_engine::{
    Cause, Denied, Follower, Judge, MAX_HISTORY, Memory, NoRollback, NotJoined, REASON_LABELS, Slot,
    SlotSettings, TakenBack,
};

use crate::support::{batch, exact, exact_mirroring, hostile, normal, request, run, tagged};

/// A request that `exact-mirroring` accepts and the hostile module refuses.
fn ask(follower: &mut Follower<Memory>) -> bool {
    let mut memory = exact();
    memory.policy.partition = Behaviour::RefusesAfterPlacing.partition();
    let request = tagged(&memory, (10, 3));
    match memory.produce(follower, request, vec![], &run(&[batch(0, 3, 1)])).1 {
        Ok(_) => true,
        Err(Denied::Refused(refusal)) if refusal.reason == Reason::Other(42) => false,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_swap_changes_what_judges() {
    let slot = Slot::new("policy", exact_mirroring().clone());
    let mut follower = slot.follower();
    assert!(ask(&mut follower));
    assert_eq!(follower.describe().name, "exact-mirroring");

    let second = slot.switch(hostile().clone(), Cause::Swap);
    assert!(!ask(&mut follower));
    assert_eq!(follower.judged_by(), Some(second.stamp()));
    assert_eq!((second.number(), second.digest()), (2, hostile().inspect().digest));
    assert_eq!(follower.describe().name, "hostile");
    assert_eq!(slot.current().number(), 2);
    assert_eq!(slot.previous().map(|one| one.number()), Some(1));
    assert_eq!(Follower::<Memory>::follow(&mut slot.follower()).map(|stamp| stamp.generation), Some(2));
}

#[test]
fn a_generation_counts_what_it_did() {
    let slot = Slot::new("policy", hostile().clone());
    let mut follower = slot.follower();
    for behaviour in [
        Behaviour::AppendsAll,
        Behaviour::Traps,
        Behaviour::Spins,
        Behaviour::GrowsMemory,
        Behaviour::SettlesNothing,
        Behaviour::RefusesAtLength,
    ] {
        for _ in 0..8 {
            let mut memory = exact();
            memory.policy.partition = behaviour.partition();
            let request = tagged(&memory, (10, 3));
            let _ = memory.produce(&mut follower, request, vec![], &run(&[batch(0, 3, 1), batch(1, 3, 1)]));
        }
    }
    let replica = Replica { id: 3, in_sync: false, online: true };
    let joined = follower.may_join(&replica, 0, &exact().position());
    assert!(matches!(joined, Err(NotJoined::Failed(_))));

    let counts = slot.current().counts();
    assert_eq!((counts.calls, counts.batches), (48, 96));
    assert_eq!(counts.failures, [9, 8, 8, 8, 0], "trap, deadline, memory, invariant, start");
    let refused: Vec<_> = REASON_LABELS.iter().zip(counts.refusals).filter(|(_, count)| *count > 0).collect();
    assert_eq!(refused, [(&"other", 8)]);
    assert_eq!(counts.times.count(), 6, "one in eight");
    assert!(counts.times.sum_ns > 2_000_000, "a call that spins takes 2 ms and more");
    let limit = u64::try_from(slot.current().module().limits().memory_bytes).unwrap();
    assert!((1 << 20..=limit).contains(&counts.memory_bytes), "{}", counts.memory_bytes);
    assert_eq!(counts.probes, 0, "there is no generation before");
}

#[test]
fn a_slot_goes_back_once_and_remembers() {
    let settings = SlotSettings { first: 40, ..SlotSettings::default() };
    let slot = Slot::with("policy", exact_mirroring().clone(), settings);
    assert_eq!(slot.roll_back("no").unwrap_err(), NoRollback::NoPrevious);
    slot.switch(hostile().clone(), Cause::Swap);
    let back = slot.roll_back("it is no good").unwrap();
    assert_eq!((back.number(), back.digest()), (42, exact_mirroring().inspect().digest));
    assert_eq!(*back.cause(), Cause::Rollback(TakenBack::Asked { reason: "it is no good".to_owned() }));
    assert!(ask(&mut slot.follower()));
    assert_eq!(slot.roll_back("again").unwrap_err(), NoRollback::WasRolledBack { number: 41 });

    let history = slot.history();
    let told: Vec<_> = history.iter().map(|one| (one.number(), one.rolled_back().is_some())).collect();
    assert_eq!(told, [(40, false), (41, true), (42, false)]);
    for _ in 0..100 {
        slot.switch(hostile().clone(), Cause::Swap);
    }
    let numbers: Vec<_> = slot.history().iter().map(|one| one.number()).collect();
    assert_eq!(numbers, (143 - u64::try_from(MAX_HISTORY).unwrap()..=142).collect::<Vec<_>>()[..]);
}

/// Four threads judge while the module is swapped; which one judged is seen by its verdict, not only by what is said.
#[test]
fn every_call_is_judged_by_one_generation_and_none_after_a_swap_by_an_older_one() {
    let slot = Slot::new("policy", exact_mirroring().clone());
    let (answered, done) = (AtomicU64::new(1), AtomicBool::new(false));
    let mut generations = vec![slot.current()];
    let calls: u64 = std::thread::scope(|scope| {
        let judge = || {
            let mut follower = slot.follower();
            let mut calls = 0;
            while !done.load(Ordering::Relaxed) {
                let before = answered.load(Ordering::SeqCst);
                let accepted = ask(&mut follower);
                let stamp = follower.judged_by().unwrap();
                let after = slot.current().number();
                assert!((before..=after).contains(&stamp.generation), "{before} {stamp} {after}");
                assert_eq!(accepted, stamp.generation % 2 == 1, "{stamp}");
                calls += 1;
            }
            calls
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(judge)).collect();
        for round in 0..500 {
            let module = if round % 2 == 0 { hostile() } else { exact_mirroring() };
            generations.push(slot.switch(module.clone(), Cause::Swap));
            answered.store(generations.last().unwrap().number(), Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        done.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let counted: u64 = generations.iter().map(|one| one.counts().calls).sum();
    assert_eq!(counted, calls, "each call is counted by the one that judged it");
    assert!(generations.iter().all(|one| one.counts().failed() == 0));
    assert!(generations.iter().filter(|one| one.counts().calls > 0).count() > 10, "swaps and calls met");
}

/// A recorded call is judged as any other.
#[test]
fn who_follows_judges_as_an_instance_does() {
    let slot = Slot::new("policy", exact_mirroring().clone());
    let mut follower = slot.follower();
    let mut instance = exact_mirroring().instance().unwrap();
    for (memory, epoch) in [(exact(), 3), (normal(), 0)] {
        for base in [0, 0, 7, -1] {
            let request = if memory.policy.exact { tagged(&memory, (10, 3)) } else { request() };
            let records = run(&[batch(base, epoch, 2)]);
            let by_follower = memory.clone().produce(&mut follower, request, vec![], &records).1;
            let by_instance = memory.clone().produce(&mut instance, request, vec![], &records).1;
            assert_eq!(by_follower, by_instance);
        }
    }
}
