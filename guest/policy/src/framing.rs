//! How the records split into batches, and how many and how large they are.

use verbatim_contract::{Batch, Framing, Policy, Reason, Refusal};

use crate::MAX_BATCHES;
use crate::case::Case;
use crate::refuse;

/// R1 on a normal topic: at least one whole batch (87); a cut-off tail behind it is ignored.
pub(crate) fn some_batch(case: &Case<'_>) -> Result<(), Refusal> {
    // A length that cannot be is R2a's, which knows more about it.
    if case.batches.is_empty() && case.request.framing != Framing::LengthTooSmall {
        return Err(refuse::request(
            Reason::NoBatch,
            1,
            format_args!("the records must hold a whole batch, batches=`0`"),
        ));
    }
    Ok(())
}

/// R1 on an exact topic: nothing behind the last whole batch (87).
pub(crate) fn no_tail(case: &Case<'_>) -> Result<(), Refusal> {
    if case.request.framing == Framing::CutTail {
        let count = case.batches.len();
        return Err(refuse::request(
            Reason::CutTail,
            None,
            format_args!(
                "the records must end with a whole batch, bytes follow the last one, batches=`{count}`"
            ),
        ));
    }
    Ok(())
}

/// R2a: no batch states a length below 14 (2).
pub(crate) fn lengths(case: &Case<'_>) -> Result<(), Refusal> {
    if case.request.framing == Framing::LengthTooSmall {
        let index = u32::try_from(case.batches.len()).unwrap_or(u32::MAX);
        let least = verbatim_batch::MIN_BATCH_LENGTH;
        return Err(refuse::batch(
            Reason::FrameLength,
            index,
            i64::from(least),
            format_args!("the length must be at least {least}, batchLength=`below {least}`"),
        ));
    }
    Ok(())
}

/// R3 for all batches.
pub(crate) fn magics(case: &Case<'_>) -> Result<(), Refusal> {
    case.numbered().try_for_each(|(index, batch)| magic(index, batch))
}

/// R3: magic is 2; what is none of Kafka's is a damaged batch (2), an old format is named (87).
pub(crate) fn magic(index: u32, batch: &Batch) -> Result<(), Refusal> {
    match batch.header.magic {
        2 => Ok(()),
        old @ 0..=1 => Err(refuse::batch(
            Reason::OldMagic,
            index,
            2,
            format_args!("message formats before version 2 are not supported, magic=`{old}`"),
        )),
        unknown => Err(refuse::batch(
            Reason::UnknownMagic,
            index,
            2,
            format_args!("the message format must be version 2, magic=`{unknown}`"),
        )),
    }
}

/// R10 on a normal topic: one batch for a partition (87).
pub(crate) fn only_batch<'a>(case: &Case<'a>) -> Result<&'a Batch, Refusal> {
    match case.batches {
        [batch] => Ok(batch),
        batches => Err(refuse::batch(
            Reason::MultipleBatches,
            1,
            1,
            format_args!("a partition takes one batch in a request, batches=`{}`", batches.len()),
        )),
    }
}

/// R13 on a normal topic: the partition chooses the offset (87).
pub(crate) fn base_offset_zero(batch: &Batch) -> Result<(), Refusal> {
    match batch.header.base_offset {
        0 => Ok(()),
        base => Err(refuse::batch(
            Reason::BaseOffset,
            0,
            0,
            format_args!("the partition chooses the offset, it must be sent as 0, baseOffset=`{base}`"),
        )),
    }
}

/// R12 on a normal topic: within `max.message.bytes` (10).
pub(crate) fn message_size(policy: &Policy, batch: &Batch) -> Result<(), Refusal> {
    at_most(Reason::BatchTooLarge, "max.message.bytes", policy.max_message_bytes, batch)
}

/// R12 on a normal topic: within `segment.bytes` (18).
pub(crate) fn segment_size(policy: &Policy, batch: &Batch) -> Result<(), Refusal> {
    at_most(Reason::SegmentTooSmall, "segment.bytes", policy.segment_bytes, batch)
}

/// R12a on an exact topic: at most [`MAX_BATCHES`] (10).
pub(crate) fn batch_count(case: &Case<'_>) -> Result<(), Refusal> {
    let count = case.batches.len();
    if count > MAX_BATCHES {
        return Err(refuse::request(
            Reason::TooManyBatches,
            i64::try_from(MAX_BATCHES).ok(),
            format_args!("a partition takes at most {MAX_BATCHES} batches in a request, batches=`{count}`"),
        ));
    }
    Ok(())
}

fn at_most(reason: Reason, setting: &str, most: u32, batch: &Batch) -> Result<(), Refusal> {
    if batch.length > most {
        let length = batch.length;
        return Err(refuse::batch(
            reason,
            0,
            i64::from(most),
            format_args!("the batch must be at most {setting} = {most} bytes, length=`{length}`"),
        ));
    }
    Ok(())
}
