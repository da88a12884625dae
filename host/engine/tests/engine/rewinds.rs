//! The source truncated: what the host cuts, and what it does not cut twice (R31).

use verbatim_contract::{Reason, Request};
use verbatim_engine::{Denied, Memory, Native, Plan};
use verbatim_policy::ExactMirroring;

use crate::support::{batch, entry, exact, fingerprint, run, tagged, valued};

fn produce(memory: Memory, request: Request, batches: &[Vec<u8>]) -> (Memory, Result<Plan, Denied>) {
    memory.produce(&mut Native::new(ExactMirroring), request, vec![], &run(batches))
}

/// Offsets 0 to 9 under epoch 2, 10 to 19 under epoch 3.
fn twenty() -> Memory {
    let memory = exact();
    let request = tagged(&memory, (20, 3));
    let (memory, verdict) = produce(memory, request, &[batch(0, 2, 10), batch(10, 3, 5), batch(15, 3, 5)]);
    verdict.unwrap();
    memory
}

fn rewind(memory: &Memory, to: i64, epoch: i32) -> Request {
    Request { truncate_to: Some(to), epoch_before: memory.epochs.before(to), ..tagged(memory, (30, epoch)) }
}

#[test]
fn a_rewind_cuts_and_goes_on() {
    let request = rewind(&twenty(), 10, 4);
    let (memory, verdict) = produce(twenty(), request, &[valued(10, 4, 3, b"new")]);
    assert_eq!(verdict.unwrap().cut(), Some(10));
    assert_eq!((memory.end, memory.shown_epoch), (13, 4));
    assert_eq!(memory.epochs.entries(), [entry(2, 0), entry(4, 10)]);
}

#[test]
fn the_same_rewind_again_changes_nothing() {
    let request = rewind(&twenty(), 10, 4);
    let new = [valued(10, 4, 3, b"new"), valued(13, 4, 3, b"newer")];
    let (memory, verdict) = produce(twenty(), request, &new);
    verdict.unwrap();
    let before = fingerprint(&memory);
    let (memory, verdict) = produce(memory, request, &new);
    let plan = verdict.unwrap();
    assert_eq!((plan.cut(), plan.duplicates().len(), plan.appends().len()), (None, 2, 0));
    let stood = |text: &str| text.split(" Some(Source").next().map(str::to_owned);
    assert_eq!(stood(&fingerprint(&memory)), stood(&before));
}

#[test]
fn the_same_rewind_again_keeps_what_came_after_it() {
    let request = rewind(&twenty(), 10, 5);
    let (memory, verdict) = produce(twenty(), request, &[valued(10, 4, 5, b"new")]);
    verdict.unwrap();
    let (memory, verdict) = produce(memory.clone(), tagged(&memory, (40, 5)), &[batch(15, 4, 5)]);
    verdict.unwrap();
    let (memory, verdict) = produce(memory, request, &[valued(10, 4, 5, b"new")]);
    let plan = verdict.unwrap();
    assert_eq!((plan.cut(), plan.duplicates().len(), plan.appends().len()), (None, 1, 0));
    assert_eq!((memory.end, memory.source.map(|source| source.end)), (20, Some(40)));
}

#[test]
fn a_rewind_that_left_an_epoch_without_data_is_not_planned_twice() {
    let request = rewind(&twenty(), 10, 5);
    let mut memory = twenty();
    for cut in [Some(10), None] {
        let judge = &mut Native::new(ExactMirroring);
        let (after, verdict) = memory.produce(judge, request, vec![entry(4, 10)], &run(&[]));
        assert_eq!(verdict.unwrap().cut(), cut);
        assert_eq!((after.end, after.epochs.entries()), (10, &[entry(2, 0), entry(4, 10)][..]));
        memory = after;
    }
}

#[test]
fn a_rewind_that_broke_off_is_completed() {
    let request = rewind(&twenty(), 10, 4);
    let new = [valued(10, 4, 3, b"new"), valued(13, 4, 3, b"newer")];
    let (memory, verdict) = produce(twenty(), request, &new[..1]);
    verdict.unwrap();
    let (memory, verdict) = produce(memory, request, &new);
    let plan = verdict.unwrap();
    assert_eq!((plan.cut(), plan.duplicates().len(), plan.appends().len()), (None, 1, 1));
    assert_eq!(memory.end, 16);
}

#[test]
fn a_rewind_without_batches_cuts_once() {
    let request = rewind(&twenty(), 15, 4);
    let (memory, verdict) = produce(twenty(), request, &[]);
    assert_eq!(verdict.unwrap().cut(), Some(15));
    assert_eq!((memory.end, memory.stored.batches().len()), (15, 2));
    let (memory, verdict) = produce(memory, request, &[]);
    assert_eq!(verdict.unwrap().cut(), None);
    assert_eq!(memory.end, 15);
}

#[test]
fn a_rewind_that_is_not_legal_is_refused() {
    for (to, epoch) in [(12, 4), (10, 3), (21, 4)] {
        let (memory, verdict) = produce(twenty(), rewind(&twenty(), to, epoch), &[]);
        assert!(matches!(verdict, Err(Denied::Refused(_))), "to {to}, epoch {epoch}: {verdict:?}");
        assert_eq!(memory.end, 20);
    }
    let mut refusing = twenty();
    refusing.policy.rewind_truncate = false;
    let request = rewind(&refusing, 10, 4);
    let (_, verdict) = produce(refusing, request, &[]);
    assert!(matches!(verdict, Err(Denied::Refused(refusal)) if refusal.reason == Reason::RewindRefused));
}
