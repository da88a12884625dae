//! What the host refuses to carry out whatever a module says (I1 to I8), shown with policies that say it.

use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_contract::{Batch, Callbacks, EpochEntry, Placement, Refusal, Request};
use verbatim_engine::{Denied, Failure, Invariant, Memory, Native, Plan};

use crate::support::{Script, batch, entry, exact, fingerprint, normal, request, run, tagged};

fn own(batch: &Batch) -> Placement {
    Placement {
        base_offset: batch.header.base_offset,
        leader_epoch: batch.header.leader_epoch,
        log_append_time: false,
        max_timestamp: batch.header.max_timestamp,
    }
}

fn place_all(batches: &[Batch], log: &mut dyn Callbacks) -> Result<(), Refusal> {
    (0..).zip(batches).for_each(|(index, batch)| log.append(index, own(batch)));
    Ok(())
}

fn judge(
    memory: Memory,
    policy: impl Fn(&[Batch], &mut dyn Callbacks) -> Result<(), Refusal>,
    request: Request,
    entries: &[EpochEntry],
    batches: &[Vec<u8>],
) -> (Memory, Result<Plan, Denied>) {
    memory.produce(&mut Native::new(Script(policy)), request, entries.to_vec(), &run(batches))
}

/// Expects a broken invariant, and nothing changed.
#[track_caller]
fn broken(
    memory: Memory,
    policy: impl Fn(&[Batch], &mut dyn Callbacks) -> Result<(), Refusal>,
    request: Request,
    entries: &[EpochEntry],
    batches: &[Vec<u8>],
) -> Invariant {
    let before = fingerprint(&memory);
    let (after, verdict) = judge(memory, policy, request, entries, batches);
    assert_eq!(fingerprint(&after), before);
    match verdict {
        Err(Denied::Failed(Failure::Invariant(broken))) => broken.which,
        other => panic!("{other:?}"),
    }
}

/// An exact partition with offsets 0 to 9 under epoch 3.
fn ten() -> Memory {
    let memory = exact();
    let request = tagged(&memory, (10, 3));
    let (memory, verdict) = judge(memory, place_all, request, &[], &[batch(0, 3, 10)]);
    verdict.unwrap();
    memory
}

#[test]
fn offsets_strictly_increase() {
    let request = tagged(&ten(), (20, 3));
    for batches in
        [vec![batch(9, 3, 2)], vec![batch(10, 3, 2), batch(11, 3, 2)], vec![batch(12, 3, 1), batch(10, 3, 1)]]
    {
        assert_eq!(broken(ten(), place_all, request, &[], &batches), Invariant::Offsets);
    }
    let top = batch(i64::MAX, 3, 1);
    assert_eq!(broken(ten(), place_all, request, &[], &[top]), Invariant::Offsets);
    let hole = [batch(15, 3, 1), batch(20, 3, 1)];
    let (memory, verdict) = judge(ten(), place_all, request, &[], &hole);
    verdict.unwrap();
    assert_eq!(memory.end, 21);
}

#[test]
fn leader_epochs_never_decrease() {
    let request = tagged(&ten(), (20, 5));
    let falls = [batch(10, 2, 1)];
    assert_eq!(broken(ten(), place_all, request, &[], &falls), Invariant::Epochs);
    let falls = [batch(10, 4, 1), batch(11, 3, 1)];
    assert_eq!(broken(ten(), place_all, request, &[], &falls), Invariant::Epochs);
    let one = [batch(12, 4, 3)];
    for entries in [
        vec![entry(5, 11)],               // the batch above it has epoch 4
        vec![entry(4, 13)],               // inside the batch
        vec![entry(5, 16)],               // behind the end
        vec![entry(4, 5)],                // in what is stored, and not there
        vec![entry(3, 11)],               // not above the last
        vec![entry(4, 12), entry(4, 15)], // not rising
    ] {
        assert_eq!(broken(ten(), place_all, request, &entries, &one), Invariant::Epochs, "{entries:?}");
    }
    let (memory, verdict) =
        judge(ten(), place_all, request, &[entry(3, 0), entry(4, 11), entry(5, 15)], &one);
    verdict.unwrap();
    assert_eq!(memory.epochs.entries(), [entry(3, 0), entry(4, 11), entry(5, 15)]);
    for epoch in [-1, i32::MAX] {
        assert_eq!(broken(ten(), place_all, request, &[], &[batch(10, epoch, 1)]), Invariant::Epochs);
    }
}

#[test]
fn nothing_unvalidated_is_appended() {
    let request = tagged(&exact(), (20, 3));
    let mut old = batch(0, 3, 1);
    old[16] = 1;
    let mut damaged = batch(0, 3, 1);
    damaged[61] ^= 1;
    let mut short = batch(0, 3, 1);
    short.truncate(40);
    short[8..12].copy_from_slice(&28_i32.to_be_bytes());
    let record = NewRecord::new(0, 0).value(b"v");
    let negative = BatchBuilder::new(0).record(record).last_offset_delta(-1).build().unwrap();
    for bytes in [old, damaged, short, negative] {
        assert_eq!(broken(exact(), place_all, request, &[], &[bytes]), Invariant::Validated);
    }
}

#[test]
fn a_duplicate_is_one_by_its_bytes() {
    let claim = |batches: &[Batch], log: &mut dyn Callbacks| {
        (0..).zip(batches).for_each(|(index, batch)| log.duplicate(index, batch.header.base_offset));
        Ok(())
    };
    let request = tagged(&ten(), (20, 3));
    for batches in [[batch(0, 3, 9)], [batch(0, 2, 10)], [batch(10, 3, 1)]] {
        assert_eq!(broken(ten(), claim, request, &[], &batches), Invariant::Settled);
    }
    let elsewhere = |_: &[Batch], log: &mut dyn Callbacks| {
        log.duplicate(0, 5);
        Ok(())
    };
    assert_eq!(broken(ten(), elsewhere, request, &[], &[batch(0, 3, 10)]), Invariant::Settled);
    let (_, verdict) = judge(ten(), claim, request, &[], &[batch(0, 3, 10)]);
    assert_eq!(verdict.unwrap().duplicates().len(), 1);
}

#[test]
fn a_stored_run_ends_where_the_rest_begins() {
    let first_is_stored = |batches: &[Batch], log: &mut dyn Callbacks| {
        log.duplicate(0, batches[0].header.base_offset);
        (1..).zip(&batches[1..]).for_each(|(index, batch)| log.append(index, own(batch)));
        Ok(())
    };
    let (memory, verdict) = {
        let memory = exact();
        let request = tagged(&memory, (10, 3));
        judge(memory, place_all, request, &[], &[batch(0, 3, 5), batch(5, 3, 5)])
    };
    verdict.unwrap();
    let request = tagged(&memory, (20, 3));
    let skipping = [batch(0, 3, 5), batch(10, 3, 5)];
    assert_eq!(broken(memory.clone(), first_is_stored, request, &[], &skipping), Invariant::Offsets);
    let (memory, verdict) = judge(memory, first_is_stored, request, &[], &[batch(5, 3, 5), batch(10, 3, 5)]);
    verdict.unwrap();
    assert_eq!(memory.end, 15);
    let stored_behind = |batches: &[Batch], log: &mut dyn Callbacks| {
        log.append(0, own(&batches[0]));
        log.duplicate(1, batches[1].header.base_offset);
        Ok(())
    };
    let request = tagged(&memory, (20, 3));
    let batches = [batch(15, 3, 1), batch(5, 3, 5)];
    assert_eq!(broken(memory, stored_behind, request, &[], &batches), Invariant::Settled);
}

#[test]
fn the_tag_belongs_to_exact_topics() {
    let untagged = Request { has_tag: false, ..tagged(&exact(), (1, 0)) };
    assert_eq!(broken(exact(), place_all, untagged, &[], &[batch(0, 0, 1)]), Invariant::Settled);
    let tagged = Request { has_tag: true, ..request() };
    assert_eq!(broken(normal(), place_all, tagged, &[], &[batch(0, 0, 1)]), Invariant::Settled);
}

#[test]
fn a_normal_batch_goes_to_the_end_under_the_own_epoch() {
    let placed = |base_offset, leader_epoch| {
        move |batches: &[Batch], log: &mut dyn Callbacks| {
            log.append(0, Placement { base_offset, leader_epoch, ..own(&batches[0]) });
            Ok(())
        }
    };
    for (base, epoch) in [(1, 0), (-1, 0), (0, 1), (0, -1)] {
        assert_eq!(
            broken(normal(), placed(base, epoch), request(), &[], &[batch(0, 9, 2)]),
            Invariant::Settled
        );
    }
    let record = NewRecord::new(0, 0).value(b"v");
    let holed = BatchBuilder::new(0).record(record).last_offset_delta(4).build().unwrap();
    assert_eq!(broken(normal(), placed(0, 0), request(), &[], &[holed]), Invariant::Offsets);
    let (memory, verdict) = judge(normal(), placed(0, 0), request(), &[], &[batch(0, 9, 2)]);
    verdict.unwrap();
    assert_eq!((memory.end, memory.stored.batches()[0].0.leader_epoch), (2, 0));
}

#[test]
fn a_normal_duplicate_is_one_by_its_producer() {
    let claim = |base| {
        move |_: &[Batch], log: &mut dyn Callbacks| {
            log.duplicate(0, base);
            Ok(())
        }
    };
    let sequenced = |id, epoch, sequence| {
        let builder = BatchBuilder::new(0).producer(id, epoch, sequence);
        builder.record(NewRecord::new(0, 0).value(b"v")).build().unwrap()
    };
    let place = |batches: &[Batch], log: &mut dyn Callbacks| {
        log.append(0, Placement { leader_epoch: 0, ..own(&batches[0]) });
        Ok(())
    };
    let (memory, verdict) = judge(normal(), place, request(), &[], &[sequenced(7, 0, 0)]);
    verdict.unwrap();
    for (base, bytes) in [
        (1, sequenced(7, 0, 0)),
        (0, sequenced(7, 1, 0)),
        (0, sequenced(7, 0, 1)),
        (0, sequenced(8, 0, 0)),
        (0, sequenced(-1, -1, -1)),
    ] {
        assert_eq!(broken(memory.clone(), claim(base), request(), &[], &[bytes]), Invariant::Settled);
    }
    let (_, verdict) = judge(memory, claim(0), request(), &[], &[sequenced(7, 0, 0)]);
    assert_eq!(verdict.unwrap().base_offset(), Some(0));
}

#[test]
fn an_empty_log_restarts_below_its_end() {
    let mut memory = exact();
    (memory.start, memory.end, memory.high_watermark) = (100, 100, 100);
    let request = tagged(&memory, (200, 3));
    let (after, verdict) = judge(memory.clone(), place_all, request, &[], &[batch(95, 3, 10)]);
    verdict.unwrap();
    assert_eq!((after.start, after.end), (100, 105));
    assert_eq!(after.epochs.entries(), [entry(3, 100)]);
    assert_eq!(broken(memory, place_all, request, &[], &[batch(80, 3, 10)]), Invariant::Offsets);
}

#[test]
fn records_are_not_rewritten() {
    let rewrite = |batches: &[Batch], log: &mut dyn Callbacks| {
        log.rewrite(0, own(&batches[0]), vec![0; 10]);
        Ok(())
    };
    let request = tagged(&exact(), (1, 0));
    assert_eq!(broken(exact(), rewrite, request, &[], &[batch(0, 0, 1)]), Invariant::Bytes);
}
