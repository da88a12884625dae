//! The in-memory broker is a broker: transactions, the stable offset, and the source's position.

use verbatim_batch::{BatchBuilder, ControlType, NewRecord, place};
use verbatim_contract::{CutPreview, Request};
use verbatim_engine::{Aborted, Memory, Native, Partition};
use verbatim_policy::ExactMirroring;

use crate::support::{batch, entry, exact, run, tagged};

fn produce(memory: Memory, batches: &[Vec<u8>]) -> Memory {
    let request = tagged(&memory, (100, 1));
    let (memory, verdict) = memory.produce(&mut Native::new(ExactMirroring), request, vec![], &run(batches));
    verdict.unwrap();
    memory
}

fn transactional(base: i64, producer: i64) -> Vec<u8> {
    let record = NewRecord::new(0, 1).value(b"v");
    BatchBuilder::new(base).producer(producer, 0, 0).transactional().record(record).build().unwrap()
}

fn marker(base: i64, producer: i64, kind: ControlType) -> Vec<u8> {
    let mut bytes = BatchBuilder::marker(base, (producer, 0), 1, kind, 4).unwrap();
    place(&mut bytes, base, 0).unwrap();
    bytes
}

#[test]
fn transactions_hold_the_stable_offset() {
    let memory = produce(exact(), &[batch(0, 0, 2), transactional(2, 7), transactional(3, 8)]);
    assert_eq!((memory.end, memory.position().stable_offset), (4, 2));
    let memory = produce(memory, &[marker(4, 7, ControlType::Commit)]);
    assert_eq!(memory.position().stable_offset, 3);
    let memory = produce(memory, &[marker(5, 8, ControlType::Abort)]);
    assert_eq!(memory.position().stable_offset, 6);
    let aborted = Aborted { producer_id: 8, first_offset: 3, last_offset: 5 };
    assert_eq!(memory.stored.producers().aborted(), [aborted]);
    assert_eq!(memory.stored.producers().get(7).unwrap().coordinator_epoch, 4);

    let mut cut = memory;
    cut.stored.cut(5);
    assert_eq!(cut.stored.producers().first_open(), Some(3), "the abort is undone");
    assert!(cut.stored.producers().aborted().is_empty());
}

#[test]
fn a_cut_is_previewed_at_boundaries_and_in_holes() {
    let mut memory = produce(exact(), &[batch(0, 0, 5), batch(8, 1, 2)]);
    let expected = |at_boundary, last_entry, highest_epoch_cut| CutPreview {
        at_boundary,
        last_entry,
        highest_epoch_cut,
    };
    let zero = Some(entry(0, 0));
    assert_eq!(memory.cut(10), expected(true, Some(entry(1, 8)), None));
    assert_eq!(memory.cut(9), expected(false, Some(entry(1, 8)), None));
    assert_eq!(memory.cut(8), expected(true, zero, Some(1)));
    assert_eq!(memory.cut(6), expected(true, zero, Some(1)));
    assert_eq!(memory.cut(3), expected(false, zero, Some(1)));
    assert_eq!(memory.cut(0), expected(true, None, Some(1)));
    assert!(!memory.cut(11).at_boundary && !memory.cut(-1).at_boundary && !memory.cut(i64::MIN).at_boundary);
}

#[test]
fn the_start_follows_the_source() {
    let memory = produce(exact(), &[batch(0, 0, 5), batch(5, 1, 5), batch(10, 1, 5)]);
    let request = Request { source_start: 7, end_to: Some(20), ..tagged(&memory, (20, 2)) };
    let (memory, verdict) = memory.produce(&mut Native::new(ExactMirroring), request, vec![], &run(&[]));
    verdict.unwrap();
    assert_eq!((memory.start, memory.end, memory.shown_epoch), (7, 20, 2));
    assert_eq!(memory.stored.batches().len(), 2, "a batch around the start stays");
    assert_eq!(memory.epochs.entries(), [entry(1, 7)]);
    assert_eq!(memory.source.map(|source| (source.start, source.end, source.epoch)), Some((7, 20, 2)));
}
