//! The source truncated its log, and the writer asks the copy to follow (R31).

use verbatim_contract::{Callbacks, CutPreview, Reason, Refusal};

use crate::case::Case;
use crate::ground::{Ground, epoch_left};
use crate::{refuse, stored};

/// What the cut that the tag asks for would leave; `None` when it asks for none.
pub(crate) fn preview(case: &Case<'_>, log: &mut dyn Callbacks) -> Option<CutPreview> {
    case.request.truncate_to.map(|target| log.cut(target))
}

/// The cut would take away what is older than the source's epoch, so it has not been done yet.
pub(crate) fn is_pending(case: &Case<'_>, cut: &CutPreview) -> bool {
    cut.highest_epoch_cut.is_some_and(|highest| highest < case.request.source_epoch)
}

/// No request of the source's epoch has been carried out yet, so this one is no repetition.
pub(crate) fn is_new(case: &Case<'_>) -> bool {
    case.request.source_epoch > case.position.shown_epoch
}

/// A request without batches finds the log exactly as it would leave it: the end, the latest entry, and nothing stored
/// that a cut would take away.
pub(crate) fn is_done(case: &Case<'_>, cut: &CutPreview, log: &mut dyn Callbacks) -> bool {
    let (position, target) = (case.position, case.declared_end());
    let left = epoch_left(cut);
    let declared = case.entries.last().map_or(-1, |entry| entry.epoch);
    case.request.end_to.unwrap_or(target) == position.end
        && stored::epoch_before_matches(case, left)
        && position.last_entry.map_or(-1, |last| last.epoch) == declared.max(left)
        && holds_no_batch(case, cut, log)
}

/// Nothing is stored from the target of the cut on. Entries without data hide what lies below them, but a log that has
/// the source's latest entry has the source's batches below it.
fn holds_no_batch(case: &Case<'_>, cut: &CutPreview, log: &mut dyn Callbacks) -> bool {
    let (end, target) = (case.position.end, case.declared_end());
    if target == end || cut.highest_epoch_cut.is_none() {
        return true;
    }
    let above = case.position.last_entry.map_or(target, |last| last.start.saturating_add(1).max(target));
    !is_new(case) && (above >= end || is_bare(log.cut(above)))
}

/// A cut would neither take anything away nor fall inside a batch.
fn is_bare(cut: CutPreview) -> bool {
    cut.at_boundary && cut.highest_epoch_cut.is_none()
}

/// R31, and the ground that it leaves: with the policy `refuse` (44); a source epoch above what is cut, a
/// target not below the start and at a boundary between stored batches (87).
pub(crate) fn ground(case: &Case<'_>, cut: Option<CutPreview>) -> Result<Ground, Refusal> {
    let (Some(target), Some(cut)) = (case.request.truncate_to, cut) else {
        return Ok(Ground::of(case.position));
    };
    if !case.policy.rewind_truncate {
        return Err(refuse::request(
            Reason::RewindRefused,
            None,
            format_args!("the source truncated, produce.at.offset.rewind=`refuse`, truncate to=`{target}`"),
        ));
    }
    let source_epoch = case.request.source_epoch;
    if let Some(highest) = cut.highest_epoch_cut.filter(|highest| *highest >= source_epoch) {
        return Err(refuse::request(
            Reason::RewindInvalid,
            i64::from(highest).saturating_add(1),
            format_args!(
                "the source's epoch must be above epoch {highest} that is cut, source epoch=`{source_epoch}`"
            ),
        ));
    }
    let start = case.position.start;
    if target < start {
        return Err(refuse::request(
            Reason::RewindInvalid,
            start,
            format_args!("the log cannot be cut below its start {start}, truncate to=`{target}`"),
        ));
    }
    if target > case.position.end || !cut.at_boundary {
        return Err(refuse::request(
            Reason::RewindInvalid,
            None,
            format_args!(
                "the log, which ends at {}, can be cut between stored batches only, truncate to=`{target}`",
                case.position.end
            ),
        ));
    }
    Ok(Ground::after_cut(target, &cut))
}
