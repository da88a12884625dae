//! An exact topic: the writer chooses offset and leader epoch, and the log takes what a follower would, made
//! strict.

use verbatim_contract::{Batch, Callbacks, Placement, Refusal};

use crate::case::Case;
use crate::ground::Ground;
use crate::stored::{self, Stored};
use crate::{control, epochs, framing, header, producers, records, replicas, rewind, tag};

/// Judges a request in the order of the rules for exact topics.
pub(crate) fn produce(case: &Case<'_>, log: &mut dyn Callbacks) -> Result<(), Refusal> {
    tag::admits(case)?; // R26
    tag::agrees_with_itself(case)?; // R26a
    framing::no_tail(case)?; // R1
    framing::lengths(case)?; // R2a
    let malformed_control = headers(case, log)?; // R2b to R9
    framing::batch_count(case)?; // R12a
    each(case, header::empty_batch)?; // R17
    stored::no_overlap_in_request(case)?; // R24
    epochs::in_range(case)?; // R27
    tag::agrees_with_batches(case)?; // R26a
    validate_records(case, malformed_control, log)?; // R14

    let cut = rewind::preview(case, log);
    let run = match stored::look_up(case, cut.as_ref(), log) {
        // R21, R26b, R31 again
        Stored::Everything => return settle(case, case.batches.len(), log),
        Stored::LeadingRun(run) => run,
    };
    let ground = if run == 0 {
        let ground = rewind::ground(case, cut)?; // R31
        stored::position_matches(case, &ground)?; // R22
        stored::not_diverged(case, &ground, log)?; // R23, R25
        ground
    } else {
        Ground::of(case.position)
    };
    tag::agrees_with_log(case, run, &ground, log)?; // R26a
    epochs::source_is_current(case)?; // R28a
    epochs::never_fall(case, run, &ground)?; // R28
    producers::warn_of_open_transaction(case, run, log); // R37
    replicas::enough(case, log)?; // R41
    settle(case, run, log) // R19, R20
}

/// R2b to R9, batch by batch. Gives R14's refusal of the first control batch that is malformed, for when its
/// turn comes.
fn headers(case: &Case<'_>, log: &mut dyn Callbacks) -> Result<Option<Refusal>, Refusal> {
    let validate = case.policy.validate_records;
    let mut malformed = None;
    for (index, batch) in case.numbered() {
        header::whole(index, batch)?; // R2b
        framing::magic(index, batch)?; // R3
        header::checksum(index, batch)?; // R4
        header::codec(index, batch)?; // R5
        header::offset_delta(index, batch)?; // R6
        header::record_count(index, batch)?; // R7
        let records = control::key(index, batch, validate, log)?; // R8
        header::base_offset(index, batch)?; // R13
        malformed = malformed.or(records.err());
    }
    Ok(malformed)
}

/// R14, where the policy asks for it.
fn validate_records(
    case: &Case<'_>,
    malformed_control: Option<Refusal>,
    log: &mut dyn Callbacks,
) -> Result<(), Refusal> {
    if !case.policy.validate_records {
        return Ok(());
    }
    let first_control = malformed_control.as_ref().and_then(|refusal| refusal.batch).unwrap_or(u32::MAX);
    let plain = |batch: &Batch| !batch.header.attributes.is_control() && batch.header.record_count > 0;
    case.numbered()
        .take_while(|(index, _)| *index < first_control)
        .filter(|(_, batch)| plain(batch))
        .try_for_each(|(index, batch)| records::exact(index, batch, log))?;
    malformed_control.map_or(Ok(()), Err)
}

/// The first `run` batches are stored, the others are placed where their writer wants them.
fn settle(case: &Case<'_>, run: usize, log: &mut dyn Callbacks) -> Result<(), Refusal> {
    for (index, batch) in case.numbered() {
        let header = &batch.header;
        if usize::try_from(index).is_ok_and(|index| index < run) {
            log.duplicate(index, header.base_offset);
            continue;
        }
        log.append(
            index,
            Placement {
                base_offset: header.base_offset,
                leader_epoch: header.leader_epoch,
                log_append_time: header.attributes.timestamp_type()
                    == verbatim_batch::TimestampType::LogAppendTime,
                max_timestamp: header.max_timestamp,
            },
        );
    }
    Ok(())
}

fn each(case: &Case<'_>, rule: impl Fn(u32, &Batch) -> Result<(), Refusal>) -> Result<(), Refusal> {
    case.numbered().try_for_each(|(index, batch)| rule(index, batch))
}
