//! A normal topic: the partition assigns offset and leader epoch, as Apache Kafka does.

use verbatim_contract::{Batch, Callbacks, Placement, Reason, Refusal};

use crate::case::Case;
use crate::producers::Sequence;
use crate::records::Stamp;
use crate::{framing, header, producers, records, refuse, replicas, request};

/// Judges a request in the order of the rules for normal topics.
pub(crate) fn produce(case: &Case<'_>, log: &mut dyn Callbacks) -> Result<(), Refusal> {
    request::acks(case)?; // (21)
    request::no_tag(case)?; // R26
    request::not_transactional(case)?; // R36b
    request::codec_version(case)?; // (76)
    framing::some_batch(case)?; // R1
    framing::lengths(case)?; // R2a
    framing::magics(case)?; // R3
    let batch = framing::only_batch(case)?; // R10
    framing::base_offset_zero(batch)?; // R13
    framing::message_size(case.policy, batch)?; // R12
    header::whole(0, batch)?; // R2b
    header::checksum(0, batch)?; // R4
    header::codec(0, batch)?; // R5
    header::offset_delta(0, batch)?; // R6
    offsets_left(case, batch)?; // R6
    header::full_record_count(0, batch)?; // R7
    header::no_control(0, batch)?; // R8
    header::sequence(0, batch)?; // R9
    let stamp = records::normal(case, batch, log)?; // R14, R15, R16
    framing::segment_size(case.policy, batch)?; // R12
    match producers::sequence(batch, log)? {
        // R33 to R36
        Sequence::Stored(base_offset) => {
            log.duplicate(0, base_offset);
            return Ok(());
        }
        Sequence::New => {}
    }
    producers::no_open_transaction(batch)?; // R37
    replicas::enough(case, log)?; // R41
    log.append(0, placement(case, stamp));
    Ok(())
}

/// R6 for the offset that the batch gets: the log cannot grow beyond the largest one.
fn offsets_left(case: &Case<'_>, batch: &Batch) -> Result<(), Refusal> {
    let end = case.position.end;
    let delta = batch.header.last_offset_delta;
    if end.checked_add(i64::from(delta)).and_then(|last| last.checked_add(1)).is_some() {
        return Ok(());
    }
    Err(refuse::batch(
        Reason::OffsetDelta,
        0,
        None,
        format_args!(
            "the last offset must not exceed the largest there is, end={end}, lastOffsetDelta=`{delta}`"
        ),
    ))
}

fn placement(case: &Case<'_>, stamp: Stamp) -> Placement {
    Placement {
        base_offset: case.position.end,
        leader_epoch: case.position.shown_epoch,
        log_append_time: stamp.log_append_time,
        max_timestamp: stamp.max_timestamp,
    }
}
