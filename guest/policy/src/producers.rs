//! Idempotent producers on normal topics (R33 to R37); on exact ones nothing is deduplicated by sequence.

use verbatim_contract::{Batch, Callbacks, ProducerLast, Reason, Refusal};

use crate::case::Case;
use crate::refuse;

/// What a batch's sequence numbers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// To be appended.
    New,
    /// Stored already, with this base offset.
    Stored(i64),
}

/// R33 to R36: a repeated batch succeeds as before; else producer epoch and sequence must follow what is
/// known.
pub(crate) fn sequence(batch: &Batch, log: &mut dyn Callbacks) -> Result<Sequence, Refusal> {
    let Some(known) = known_producer(batch) else { return Ok(Sequence::New) };
    if let Some(base_offset) = repeated(batch, known, log) {
        return Ok(Sequence::Stored(base_offset));
    }
    not_fenced(batch, known)?;
    in_order(batch, known)?;
    Ok(Sequence::New)
}

/// R37 on a normal topic: no plain data inside an open transaction (48).
pub(crate) fn no_open_transaction(batch: &Batch) -> Result<(), Refusal> {
    let Some(first) = plain_in_transaction(batch) else { return Ok(()) };
    Err(refuse::batch(
        Reason::InvalidTxnState,
        0,
        None,
        format_args!(
            "the producer has an open transaction since offset {first}, producerId=`{}`",
            batch.header.producer_id
        ),
    ))
}

/// R37 on an exact topic: the source took it, so it is taken; one line tells of the first such batch.
pub(crate) fn warn_of_open_transaction(case: &Case<'_>, from: usize, log: &mut dyn Callbacks) {
    let found = case
        .numbered()
        .skip(from)
        .find_map(|(index, batch)| Some((index, batch, plain_in_transaction(batch)?)));
    if let Some((index, batch, first)) = found {
        log.trace(&alloc::format!(
            "batch {index}: plain data of a producer with an open transaction since offset {first}, baseOffset={}, \
             producerId=`{}`",
            batch.header.base_offset,
            batch.header.producer_id
        ));
    }
}

/// R33: the base offset of the remembered batch with the same epoch and exactly the same sequences.
fn repeated(batch: &Batch, known: &ProducerLast, log: &mut dyn Callbacks) -> Option<i64> {
    let header = &batch.header;
    // The next sequence in line cannot be one of the last five batches', so most calls ask nothing.
    if header.producer_epoch != known.producer_epoch || header.base_sequence == next_sequence(known) {
        return None;
    }
    let (first, last) = (header.base_sequence, header.last_sequence());
    let state = log.producer(header.producer_id)?;
    let same_range = |stored: &&verbatim_contract::ProducerBatch| {
        stored.first_sequence == first && stored.last_sequence == last
    };
    state.batches.iter().find(same_range).map(|stored| stored.base_offset)
}

/// R34: not below the known producer epoch (47).
fn not_fenced(batch: &Batch, known: &ProducerLast) -> Result<(), Refusal> {
    let header = &batch.header;
    if header.producer_epoch >= known.producer_epoch {
        return Ok(());
    }
    Err(refuse::batch(
        Reason::ProducerFenced,
        0,
        i64::from(known.producer_epoch),
        format_args!(
            "producer {} has epoch {} now, producerEpoch=`{}`",
            header.producer_id, known.producer_epoch, header.producer_epoch
        ),
    ))
}

/// R35, R36: a new epoch begins at sequence 0, the same one goes on without a gap (45).
fn in_order(batch: &Batch, known: &ProducerLast) -> Result<(), Refusal> {
    let header = &batch.header;
    let expected = if known.producer_epoch == -1 {
        return Ok(());
    } else if header.producer_epoch == known.producer_epoch {
        next_sequence(known)
    } else {
        0
    };
    if header.base_sequence == expected {
        return Ok(());
    }
    Err(refuse::batch(
        Reason::OutOfOrderSequence,
        0,
        i64::from(expected),
        format_args!(
            "producer {} epoch {} must go on with sequence {expected}, baseSequence=`{}`",
            header.producer_id, header.producer_epoch, header.base_sequence
        ),
    ))
}

/// After 2147483647 comes 0; before the first batch too.
fn next_sequence(known: &ProducerLast) -> i32 {
    known.last_sequence.checked_add(1).unwrap_or(0)
}

fn known_producer(batch: &Batch) -> Option<&ProducerLast> {
    batch.producer.as_ref().filter(|_| batch.header.has_producer())
}

/// The first offset of the open transaction that a batch of plain data lies in.
fn plain_in_transaction(batch: &Batch) -> Option<i64> {
    let attributes = batch.header.attributes;
    if attributes.is_transactional() || attributes.is_control() {
        return None;
    }
    known_producer(batch)?.open_transaction
}
