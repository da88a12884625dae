//! Leader epochs of an exact topic (R27 to R28a).

use verbatim_contract::{Reason, Refusal};

use crate::MAX_LEADER_EPOCH;
use crate::case::Case;
use crate::ground::Ground;
use crate::{refuse, stored};

/// R27: every epoch is at least 0 and leaves room for one more (87).
pub(crate) fn in_range(case: &Case<'_>) -> Result<(), Refusal> {
    let legal = |epoch: i32| (0..=MAX_LEADER_EPOCH).contains(&epoch);
    if let Some((index, batch)) = case.numbered().find(|(_, batch)| !legal(batch.header.leader_epoch)) {
        return Err(refuse::batch(
            Reason::EpochRange,
            index,
            None,
            format_args!(
                "the leader epoch must be within 0 to {MAX_LEADER_EPOCH}, partitionLeaderEpoch=`{}`",
                batch.header.leader_epoch
            ),
        ));
    }
    let declared = case.entries.iter().map(|entry| entry.epoch);
    if let Some(epoch) = declared.chain([case.request.source_epoch]).find(|epoch| !legal(*epoch)) {
        return Err(refuse::request(
            Reason::EpochRange,
            None,
            format_args!("a declared leader epoch must be within 0 to {MAX_LEADER_EPOCH}, epoch=`{epoch}`"),
        ));
    }
    Ok(())
}

/// R28a: the writer speaks for the source's current leader, not for one that was replaced (74). What such a one read may
/// have been truncated since.
pub(crate) fn source_is_current(case: &Case<'_>) -> Result<(), Refusal> {
    let (shown, epoch) = (case.position.shown_epoch, case.request.source_epoch);
    if epoch < shown {
        return Err(refuse::request(
            Reason::EpochRegressed,
            i64::from(shown),
            format_args!(
                "the source's leader epoch is stale, it must be at least {shown}, source epoch=`{epoch}`"
            ),
        ));
    }
    Ok(())
}

/// R28: no batch's epoch is below the last entry's, be it stored or declared, or below that of the batch
/// before it (74). The first `run` batches are stored already.
pub(crate) fn never_fall(case: &Case<'_>, run: usize, ground: &Ground) -> Result<(), Refusal> {
    let mut least = ground.last_entry.map_or(0, |entry| entry.epoch);
    let floor = stored::restart(case, ground).unwrap_or(ground.end);
    let mut declared = case.entries.iter().filter(|entry| entry.start >= floor).peekable();
    for (index, batch) in case.numbered().skip(run) {
        while let Some(entry) = declared.next_if(|entry| entry.start <= batch.header.base_offset) {
            least = least.max(entry.epoch);
        }
        let epoch = batch.header.leader_epoch;
        if epoch < least {
            return Err(refuse::batch(
                Reason::EpochRegressed,
                index,
                i64::from(least),
                format_args!(
                    "the leader epoch must not be below {least}, which begins before offset {}, \
                     partitionLeaderEpoch=`{epoch}`",
                    batch.header.base_offset
                ),
            ));
        }
        least = epoch;
    }
    Ok(())
}
