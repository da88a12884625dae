//! A batch's header, field by field.

use verbatim_batch::{Codec, HEADER_LEN};
use verbatim_contract::{Batch, Reason, Refusal};

use crate::refuse;

/// R2b: long enough for a header (2).
pub(crate) fn whole(index: u32, batch: &Batch) -> Result<(), Refusal> {
    if batch.short_header {
        let length = batch.length;
        return Err(refuse::batch(
            Reason::FrameLength,
            index,
            i64::try_from(HEADER_LEN).ok(),
            format_args!("the batch must have its header of {HEADER_LEN} bytes, length=`{length}`"),
        ));
    }
    Ok(())
}

/// R4: the checksum is that of the bytes (2).
pub(crate) fn checksum(index: u32, batch: &Batch) -> Result<(), Refusal> {
    if batch.crc_ok {
        return Ok(());
    }
    let crc = batch.header.crc;
    Err(refuse::batch(
        Reason::Checksum,
        index,
        None,
        format_args!("the checksum must be that of the batch's bytes, crc=`{crc:08x}`"),
    ))
}

/// R5: a codec that exists (87).
pub(crate) fn codec(index: u32, batch: &Batch) -> Result<(), Refusal> {
    match batch.header.attributes.codec() {
        Ok(_) => Ok(()),
        Err(unknown) => Err(refuse::batch(
            Reason::UnknownCodec,
            index,
            None,
            format_args!("the codec must be one of 0 to 4, codec=`{unknown}`"),
        )),
    }
}

/// R6: the offsets exist (87).
pub(crate) fn offset_delta(index: u32, batch: &Batch) -> Result<(), Refusal> {
    let header = &batch.header;
    if header.next_offset().is_some() {
        return Ok(());
    }
    Err(refuse::batch(
        Reason::OffsetDelta,
        index,
        None,
        format_args!(
            "the last offset must not be below baseOffset nor exceed the largest there is, baseOffset={}, \
             lastOffsetDelta=`{}`",
            header.base_offset, header.last_offset_delta
        ),
    ))
}

/// R13 on an exact topic, where the offset is the writer's choice: not below 0 (87).
pub(crate) fn base_offset(index: u32, batch: &Batch) -> Result<(), Refusal> {
    match batch.header.base_offset {
        0.. => Ok(()),
        base => Err(refuse::batch(
            Reason::BaseOffset,
            index,
            None,
            format_args!("the offset must be at least 0, baseOffset=`{base}`"),
        )),
    }
}

/// R7 on a normal topic: a record for every offset (87).
pub(crate) fn full_record_count(index: u32, batch: &Batch) -> Result<(), Refusal> {
    let offsets = offsets(batch);
    let count = batch.header.record_count;
    if i64::from(count) == offsets {
        return Ok(());
    }
    Err(refuse::batch(
        Reason::RecordCount,
        index,
        offsets,
        format_args!("there must be a record for each of {offsets} offsets, recordCount=`{count}`"),
    ))
}

/// R7 on an exact topic: no more records than offsets, compaction may have left fewer or none (87).
pub(crate) fn record_count(index: u32, batch: &Batch) -> Result<(), Refusal> {
    let offsets = offsets(batch);
    let count = batch.header.record_count;
    if (0..=offsets).contains(&i64::from(count)) {
        return Ok(());
    }
    Err(refuse::batch(
        Reason::RecordCount,
        index,
        offsets,
        format_args!("there must be 0 to {offsets} records, recordCount=`{count}`"),
    ))
}

/// R8 on a normal topic: control records are the coordinator's (87).
pub(crate) fn no_control(index: u32, batch: &Batch) -> Result<(), Refusal> {
    if batch.header.attributes.is_control() {
        return Err(refuse::batch(
            Reason::ControlBatch,
            index,
            None,
            format_args!("clients may not write control records, control=`true`"),
        ));
    }
    Ok(())
}

/// R9 on a normal topic: a producer numbers its records (87).
pub(crate) fn sequence(index: u32, batch: &Batch) -> Result<(), Refusal> {
    let header = &batch.header;
    if header.has_producer() && header.base_sequence < 0 {
        return Err(refuse::batch(
            Reason::MissingSequence,
            index,
            None,
            format_args!(
                "a batch with a producer id must have a sequence of at least 0, producerId={}, baseSequence=`{}`",
                header.producer_id, header.base_sequence
            ),
        ));
    }
    Ok(())
}

/// R17 on an exact topic: a batch without records is its header alone (87).
pub(crate) fn empty_batch(index: u32, batch: &Batch) -> Result<(), Refusal> {
    let header = &batch.header;
    if header.record_count != 0 {
        return Ok(());
    }
    if usize::try_from(batch.length) != Ok(HEADER_LEN) {
        return Err(refuse::batch(
            Reason::EmptyBatch,
            index,
            i64::try_from(HEADER_LEN).ok(),
            format_args!(
                "a batch without records must be {HEADER_LEN} bytes long, length=`{}`",
                batch.length
            ),
        ));
    }
    match header.attributes.codec() {
        Ok(Codec::None) => Ok(()),
        Ok(codec) => Err(refuse::batch(
            Reason::EmptyBatch,
            index,
            None,
            format_args!("a batch without records must have codec none, codec=`{codec}`"),
        )),
        Err(unknown) => Err(refuse::batch(
            Reason::EmptyBatch,
            index,
            None,
            format_args!("a batch without records must have codec none, codec=`{unknown}`"),
        )),
    }
}

/// How many offsets the batch takes, compacted ones included.
fn offsets(batch: &Batch) -> i64 {
    i64::from(batch.header.last_offset_delta).saturating_add(1)
}
