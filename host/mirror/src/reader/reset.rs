//! What becomes of a position that a log no longer has: the reset policies, as decisions without questions.

use verbatim_wire::exact_producer::EpochEnd;

use super::trail::Truncation;
use super::{Position, Reset};

/// What is wrong with a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The log was truncated below it.
    Truncated(Truncation),
    /// It lies below the log start.
    BelowStart(Bounds),
    /// It lies above the log's end.
    AboveEnd(Bounds),
}

/// From where to where a log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The log start offset.
    pub(super) start: i64,
    /// The high watermark.
    pub(super) end: i64,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Tell the caller, and stand still.
    Fail,
    /// Go to the log start.
    Start,
    /// Go to the log's end.
    End,
    /// Go where both sides agree.
    GoBack(EpochEnd),
    /// Go to the first offset of a later epoch, behind the end of this one.
    GoOn(EpochEnd),
}

impl Reset {
    /// What this policy does about a fault.
    pub(super) fn remedy(self, fault: Fault) -> Remedy {
        let first = match fault {
            Fault::Truncated(truncation) => truncation.first,
            Fault::BelowStart(_) | Fault::AboveEnd(_) => None,
        };
        match (self, first, fault) {
            (Self::None, ..) => Remedy::Fail,
            (_, Some(first), _) => Remedy::GoBack(first),
            (Self::Earliest, None, _) | (Self::Closest, None, Fault::BelowStart(_)) => Remedy::Start,
            (Self::Latest, None, _) | (Self::Closest, None, Fault::AboveEnd(_)) => Remedy::End,
            (Self::Closest, None, Fault::Truncated(Truncation { next_larger, .. })) => {
                next_larger.map_or(Remedy::End, Remedy::GoOn)
            }
        }
    }
}

/// Where seeking to the nearest position leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nearest {
    /// To the position itself: its epoch still matches.
    Same,
    /// To the log start.
    Start,
    /// To the log's end.
    End,
    /// To the first offset of the next larger epoch, behind the end of this one.
    GoOn(EpochEnd),
}

/// Decides by the leader's log start and its answer to OffsetForLeaderEpoch for the position's epoch; without an epoch there is
/// nothing that could not match.
pub(super) fn nearest(position: Position, log_start: i64, answer: Option<EpochEnd>) -> Nearest {
    let nearest = match (position.leader_epoch, answer) {
        (Some(epoch), Some(answer)) if answer.epoch < 0 || answer.end < 0 || answer.epoch > epoch => {
            Nearest::End
        }
        (Some(epoch), Some(answer)) if answer.epoch < epoch || answer.end < position.offset => {
            Nearest::GoOn(answer)
        }
        _ => Nearest::Same,
    };
    let offset = match nearest {
        Nearest::Same => position.offset,
        Nearest::GoOn(answer) => answer.end,
        Nearest::Start | Nearest::End => return nearest,
    };
    if offset < log_start { Nearest::Start } else { nearest }
}

/// Where an offset lies that a leader refused as out of range; `None` if it lies within the log by now.
pub(super) fn out_of_range(offset: i64, log: Bounds) -> Option<Fault> {
    if offset < log.start {
        Some(Fault::BelowStart(log))
    } else {
        (offset > log.end).then_some(Fault::AboveEnd(log))
    }
}
