//! Where the log stands before a request's batches and entries: as it is, or as a cut leaves it (R31).

use verbatim_contract::{CutPreview, EpochEntry};

use super::Settled;
use crate::{Broken, Call, Duplicate, Invariant, Partition};

/// The log before batches and entries, after the cut if there is one.
pub(super) struct Base {
    pub(super) cut: Option<i64>,
    pub(super) end: i64,
    pub(super) last: Option<EpochEntry>,
}

/// Whether the request cuts. It does not if it is a repetition: what it would leave is there already.
pub(super) fn base<P: Partition>(
    call: &Call,
    duplicates: &[Duplicate],
    rest: &[Settled<'_>],
    partition: &mut P,
) -> Result<Base, Broken> {
    let position = &call.position;
    let uncut = Base { cut: None, end: position.end, last: position.last_entry };
    let Some(to) = call.request.truncate_to else { return Ok(uncut) };
    if let Some(first) = duplicates.first() {
        return if first.base_offset >= to {
            Ok(uncut)
        } else {
            let text = format!("batches that are kept lie where the request cuts, truncate to=`{to}`");
            Err(Broken::new(Invariant::Cut, text))
        };
    }
    let preview = partition.cut(to);
    if rest.is_empty() && stands_there(call, to, preview, &uncut, partition) {
        return Ok(uncut);
    }
    let newer = preview.highest_epoch_cut.is_none_or(|cut| cut < call.request.source_epoch);
    let within = (position.start..=position.end).contains(&to) && preview.at_boundary;
    if call.policy.rewind_truncate && within && newer {
        let nothing_goes = to == position.end && preview.highest_epoch_cut.is_none();
        return Ok(Base { cut: (!nothing_goes).then_some(to), end: to, last: preview.last_entry });
    }
    let text = if !call.policy.rewind_truncate {
        format!("the topic refuses to be rewound, truncate to=`{to}`")
    } else if !within {
        format!("no stored boundary from {} to {}, truncate to=`{to}`", position.start, position.end)
    } else {
        let cut = preview.highest_epoch_cut.unwrap_or(-1);
        format!("the source's epoch {} is not above what is cut, epoch=`{cut}`", call.request.source_epoch)
    };
    Err(Broken::new(Invariant::Cut, text))
}

/// Whether a request that cuts and brings no batches finds all as it would leave it: the end, the entries with the latest
/// one, and no batch from `to` on. An entry hides batches below it from a preview; it is the source's own, and so are
/// they.
fn stands_there<P: Partition>(
    call: &Call,
    to: i64,
    preview: CutPreview,
    uncut: &Base,
    partition: &mut P,
) -> bool {
    let epoch = |entry: Option<EpochEntry>| entry.map_or(-1, |entry| entry.epoch);
    let position = &call.position;
    let wanted = call.entries.last().map_or(-1, |entry| entry.epoch).max(epoch(preview.last_entry));
    if call.request.end_to.unwrap_or(to) != position.end || wanted != epoch(uncut.last) {
        return false;
    }
    let known =
        |&entry: &EpochEntry| entry.start < position.start || uncut.knows(entry, call, &[], partition);
    if !call.entries.iter().all(known) {
        return false;
    }
    if to == position.end || preview.highest_epoch_cut.is_none() {
        return true;
    }
    let above = uncut.last.map_or(to, |last| last.start.saturating_add(1).max(to));
    let is_bare = |above: CutPreview| above.at_boundary && above.highest_epoch_cut.is_none();
    call.request.source_epoch <= position.shown_epoch
        && (above >= position.end || is_bare(partition.cut(above)))
}

impl Base {
    /// The entry changes nothing (R29): the history has it; or it is one that the source's start was moved into, of an epoch
    /// that covers that offset already, by the history or by a batch of `rest`; or the request brings only what is stored,
    /// and a later epoch replaced it since.
    pub(super) fn knows<P: Partition>(
        &self,
        entry: EpochEntry,
        call: &Call,
        rest: &[Settled<'_>],
        partition: &mut P,
    ) -> bool {
        let held = self.covering(entry.start, partition);
        if held == Some(entry) {
            return true;
        }
        let held = held.map(|held| held.epoch);
        let above = rest.partition_point(|one| one.batch.facts.header.base_offset <= entry.start);
        let batch = above.checked_sub(1).and_then(|index| rest.get(index));
        let covering = held.max(batch.map(|one| one.batch.facts.header.leader_epoch));
        let only_stored = rest.is_empty() && !call.batches.is_empty();
        (entry.start <= call.request.source_start && covering == Some(entry.epoch))
            || (only_stored && held > Some(entry.epoch))
    }

    /// The history's entry that covers `offset`.
    fn covering<P: Partition>(&self, offset: i64, partition: &mut P) -> Option<EpochEntry> {
        let last = self.last?;
        if last.start <= offset { Some(last) } else { partition.cut(offset.saturating_add(1)).last_entry }
    }
}
