//! The epoch history that a request builds on, and which declared entries are no news to it.

use verbatim_contract::{Callbacks, EpochEntry};

use crate::case::Case;
use crate::ground::Ground;

/// The entry changes nothing: the history has it, or it is a clamped one whose epoch covers that offset already, by the
/// history or by one of the request's batches. The first `run` batches are stored.
pub(crate) fn is_known(
    entry: &EpochEntry,
    case: &Case<'_>,
    run: usize,
    ground: &Ground,
    log: &mut dyn Callbacks,
) -> bool {
    let held = covering(entry.start, ground, log);
    if held == Some(*entry) {
        return true;
    }
    let rest = case.batches.get(run..).unwrap_or_default();
    let above = rest.partition_point(|batch| batch.header.base_offset <= entry.start);
    let batch = above.checked_sub(1).and_then(|index| rest.get(index));
    let covering = held.map(|held| held.epoch).max(batch.map(|batch| batch.header.leader_epoch));
    is_clamped(entry, case) && covering == Some(entry.epoch)
}

/// A source whose start moved into an epoch tells the epoch as beginning at its start (R29): whether this entry can be
/// such a one.
pub(crate) fn is_clamped(entry: &EpochEntry, case: &Case<'_>) -> bool {
    entry.start <= case.request.source_start
}

/// A later epoch begins at or below the entry, so that it has been replaced since.
pub(crate) fn is_overtaken(entry: &EpochEntry, ground: &Ground, log: &mut dyn Callbacks) -> bool {
    covering(entry.start, ground, log).is_some_and(|held| held.epoch > entry.epoch)
}

/// The history's entry that covers `offset`: the last one travels with the call, others are what a cut just behind would
/// leave.
fn covering(offset: i64, ground: &Ground, log: &mut dyn Callbacks) -> Option<EpochEntry> {
    let last = ground.last_entry?;
    if last.start <= offset { Some(last) } else { log.cut(offset.saturating_add(1)).last_entry }
}
