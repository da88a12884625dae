//! What of a request is stored already, and whether the rest fits where the log ends (R19 to R26b).

use verbatim_contract::{Callbacks, Comparison, CutPreview, Reason, Refusal};

use crate::case::Case;
use crate::ground::Ground;
use crate::{refuse, rewind, tag};

/// How much of a request has been done before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// All of it (R21, R26b).
    Everything,
    /// So many batches at the front, which end where the log ends (R21); the bytes are the proof that the
    /// writer and the log agree up to there. 0 = none.
    LeadingRun(usize),
}

/// R24: batches of one request follow each other (87).
pub(crate) fn no_overlap_in_request(case: &Case<'_>) -> Result<(), Refusal> {
    let mut least = 0;
    for (index, batch) in case.numbered() {
        let base = batch.header.base_offset;
        if base < least {
            return Err(refuse::batch(
                Reason::OverlapInRequest,
                index,
                least,
                format_args!(
                    "the batch must begin at {least} or later, behind the one before it, baseOffset=`{base}`"
                ),
            ));
        }
        least = batch.header.next_offset().unwrap_or(i64::MAX);
    }
    Ok(())
}

/// R21, R26b: how much of the request the log holds already.
pub(crate) fn look_up(case: &Case<'_>, cut: Option<&CutPreview>, log: &mut dyn Callbacks) -> Stored {
    let end = case.position.end;
    let is_same = |index, base| base < end && log.compare(index, base) == Comparison::Same;
    let run = count_while(case, is_same);
    let whole = run == case.batches.len();
    // Before the cut: an old request that is repeated must not take away what came after it.
    if whole && is_reached(case, cut, log) && tag::entries_are_held(case, log) {
        return Stored::Everything;
    }
    // What a cut takes away does not count, whatever its bytes are.
    if cut.is_some_and(|cut| rewind::is_pending(case, cut)) {
        return Stored::LeadingRun(0);
    }
    let run_end = run.checked_sub(1).and_then(|last| case.batches.get(last)?.header.next_offset());
    let goes_on = run_end == Some(end) && (cut.is_none() || lies_behind_cut(case));
    Stored::LeadingRun(if goes_on { run } else { 0 })
}

/// The log has come as far as the request wants, whose batches are all stored. Without batches there has to
/// be a wish for an end (R26b), or a cut that has left the log exactly so.
fn is_reached(case: &Case<'_>, cut: Option<&CutPreview>, log: &mut dyn Callbacks) -> bool {
    let end_to = case.request.end_to;
    match cut {
        Some(cut) if case.batches.is_empty() => rewind::is_done(case, cut, log),
        Some(_) if rewind::is_new(case) || !lies_behind_cut(case) => false,
        _ => end_to.map_or(!case.batches.is_empty(), |end_to| end_to <= case.position.end),
    }
}

fn lies_behind_cut(case: &Case<'_>) -> bool {
    case.batches.first().is_none_or(|first| first.header.base_offset >= case.declared_end())
}

/// R22: the log ends where the writer thinks, under the epoch that the source has there (1).
pub(crate) fn position_matches(case: &Case<'_>, ground: &Ground) -> Result<(), Refusal> {
    let (end, expected_end) = (case.position.end, case.request.expected_end);
    if expected_end != end {
        return Err(refuse::request(
            Reason::PositionMismatch,
            end,
            format_args!("the log ends at {end}, expected end=`{expected_end}`"),
        ));
    }
    let (before, declared) = (ground.epoch_before, case.request.epoch_before);
    if !epoch_before_matches(case, before) {
        return Err(refuse::request(
            Reason::PositionMismatch,
            end,
            format_args!(
                "the log has leader epoch {before} below offset {}, epoch before=`{declared}`",
                ground.end
            ),
        ));
    }
    Ok(())
}

/// R22: the source's epoch below N is ours. A source that has nothing below N any more has nothing to compare.
pub(crate) fn epoch_before_matches(case: &Case<'_>, ours: i32) -> bool {
    let declared = case.request.epoch_before;
    declared == ours || (declared == -1 && case.declared_end() <= case.request.source_start)
}

/// R23: nothing else is stored where the batches go (87). R25: an empty log restarts below its end, if the
/// first batch reaches it.
pub(crate) fn not_diverged(case: &Case<'_>, ground: &Ground, log: &mut dyn Callbacks) -> Result<(), Refusal> {
    let mut same_until = None;
    for (index, batch) in case.numbered().take_while(|(_, batch)| batch.header.base_offset < ground.end) {
        let base = batch.header.base_offset;
        let next = batch.header.next_offset().unwrap_or(i64::MAX);
        if restart(case, ground).is_some() {
            return Ok(());
        }
        let first = match log.compare(index, base) {
            Comparison::Same => {
                same_until = Some((index, base, next));
                continue;
            }
            Comparison::Absent => base,
            Comparison::Differs(first) | Comparison::Overlaps(first) => first,
        };
        return Err(diverged(index, first, base, ground));
    }
    // Batches that are stored, but then the log goes on with a hole or with what the request does not hold.
    same_until.map_or(Ok(()), |(index, base, next)| Err(diverged(index, next, base, ground)))
}

/// R25: where an empty log restarts below its end, if the first batch reaches that.
pub(crate) fn restart(case: &Case<'_>, ground: &Ground) -> Option<i64> {
    let first = &case.batches.first()?.header;
    let reaches = first.next_offset().is_some_and(|next| next > ground.end);
    let is_empty = case.position.start == ground.end;
    (is_empty && reaches && first.base_offset < ground.end).then_some(first.base_offset)
}

fn diverged(index: u32, first: i64, base: i64, ground: &Ground) -> Refusal {
    refuse::batch(
        Reason::Diverged,
        index,
        first,
        format_args!(
            "diverged: the log, which ends at {}, is different from offset {first} on, baseOffset=`{base}`",
            ground.end
        ),
    )
}

/// How many batches at the front satisfy `is_so` (of index and base offset).
fn count_while(case: &Case<'_>, mut is_so: impl FnMut(u32, i64) -> bool) -> usize {
    case.numbered().take_while(|(index, batch)| is_so(*index, batch.header.base_offset)).count()
}
