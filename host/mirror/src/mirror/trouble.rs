//! What can go wrong with a partition, and the words for it: the one table of states, reasons and remedies.

use uuid::Uuid;
use verbatim_batch::Header;
use verbatim_wire::exact_producer::{Apart, EpochEnd, ExactError};

use super::state::State;
use crate::cluster::{ClusterError, Partition, id_text};
use crate::verify::{BatchHeader, Difference};

/// Why a partition does not go on as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It stays so until an operator does something.
    Halt(Halt),
    /// It may pass: try again after a pause.
    Pass(String),
    /// Source and copy are to be compared anew.
    Realign(String),
}

/// A state that stays, with reason and remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Halt {
    pub(super) state: State,
    pub(super) reason: String,
    pub(super) remedy: &'static str,
}

/// Which side a question went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Target,
}

impl Halt {
    fn new(state: State, reason: String) -> Self {
        Self { state, reason, remedy: remedy(state) }
    }

    pub(super) fn data_lost(end: i64, source_start: i64) -> Self {
        let reason = format!(
            "the source deleted offsets that were not copied: its log start is {source_start}, the copy ends at {end}"
        );
        Self::new(State::SourceDataLost, reason)
    }

    pub(super) fn recreated(before: Uuid, now: Uuid) -> Self {
        Self::other_copy(&id_text(before), &id_text(now))
    }

    pub(super) fn other_copy(copied: &str, now: &str) -> Self {
        let reason = format!(
            "the copy is of topic id {copied}, the source's topic of that name now has topic id {now}"
        );
        Self::new(State::SourceRecreated, reason)
    }

    pub(super) fn deleted(id: Uuid) -> Self {
        let reason = format!("the source's topic, which had topic id {}, is deleted", id_text(id));
        let remedy = "Keep the copy as it is, or promote it (remove produce.at.offset), or delete it.";
        Self { remedy, ..Self::new(State::SourceRecreated, reason) }
    }

    pub(super) fn truncated(to: i64, end: i64, last_epoch: i32, source: EpochEnd) -> Self {
        let reason = format!(
            "the source was truncated: the first truncated offset is {to}, the copy goes on to {end} under leader epoch \
             {last_epoch}, the source's epoch up to there is {} and ends at {}",
            source.epoch, source.end
        );
        Self::new(State::SourceTruncated, reason)
    }

    pub(super) fn apart(why: Apart, end: i64, last_epoch: i32) -> Self {
        let why = match why {
            Apart::UnknownToSource => "the source knows no such leader epoch",
            Apart::NothingInCommon => "the two have no history in common",
            Apart::Contradiction => "a side named a leader epoch above the one it was asked for",
        };
        Self::new(State::Diverged, format!("the copy ends at {end} under leader epoch {last_epoch}: {why}"))
    }

    /// Both sides' batches at one place are not the same.
    pub(super) fn differs(difference: &Difference) -> Self {
        let told = |header: Option<&BatchHeader>| {
            header.map_or_else(
                || "none".to_owned(),
                |header| {
                    let BatchHeader { base_offset, records, leader_epoch, crc, .. } = header;
                    format!("one at offset {base_offset} (records {records}, leader epoch {leader_epoch}, crc {crc})")
                },
            )
        };
        let Difference { what, batches, .. } = difference;
        let (source, copy) = (told(batches.source.as_deref()), told(batches.target.as_deref()));
        let reason = format!(
            "the copy's last batch is not the source's: {what}; the source has {source}, the copy (target) {copy}"
        );
        Self::new(State::Diverged, reason)
    }

    pub(super) fn overlaps(header: &Header, end: i64) -> Self {
        let last = header.last_offset().unwrap_or(header.base_offset);
        let reason = format!(
            "the source's batch from {} to {last} overlaps the copy, which ends at {end} at a batch boundary",
            header.base_offset
        );
        Self::new(State::Diverged, reason)
    }

    pub(super) fn not_exact(reason: impl Into<String>) -> Self {
        Self::new(State::TargetNotExact, reason.into())
    }

    /// The destination does not take a topic with the properties that were wanted.
    pub(super) fn not_taken(reason: impl Into<String>) -> Self {
        Self {
            remedy: "Correct the --target-config that the reason names, or mirror into a Verbatim host that takes it.",
            ..Self::not_exact(reason)
        }
    }

    /// The copy was created with another permission to rewrite.
    pub(super) fn other_permission(topic: &str, found: &str, wanted: &str) -> Self {
        let name = crate::verify::REWRITE.0;
        let reason = format!(
            "the destination's topic {topic} has {name}={found}, wanted {wanted}, which only a new topic can be given"
        );
        Self {
            remedy: "Delete the copy and let the mirror make it anew, or leave that property out of --target-config.",
            ..Self::failed(reason)
        }
    }

    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self::new(State::Failed, reason.into())
    }

    pub(super) fn corrupt(partition: &Partition, offset: i64) -> Self {
        let reason =
            format!("{partition}: the source keeps sending a damaged batch, at or behind offset {offset}");
        Self { remedy: "Check the source's disks; let a sound replica lead.", ..Self::failed(reason) }
    }

    pub(super) fn no_epochs() -> Self {
        Self {
            remedy: "Mirror from a cluster that tells leader epochs (Apache Kafka 2.1 or later).",
            ..Self::failed("the source tells no leader epoch, leader_epoch=-1, expected 0 or above")
        }
    }

    pub(super) fn gave_up(failures: u32, last: &str) -> Self {
        Self::failed(format!("nothing came of {failures} attempts in a row: {last}"))
    }

    /// The destination's policy forbids it. Where that is the rewriting of records only a new copy can be given leave.
    fn policy(message: String) -> Self {
        let is_rewriting = message.contains(crate::verify::REWRITE.0);
        let halt = Self::not_exact(message);
        let remedy =
            "Delete the copy, then begin again with --target-config produce.at.offset.rewrite=allow.";
        if is_rewriting { Self { remedy, ..halt } } else { halt }
    }

    fn too_large(message: String) -> Self {
        Self {
            remedy: "Serve the destination with a larger --exact-batch-bytes-max, then start the mirror again.",
            ..Self::failed(message)
        }
    }
}

/// What an operator can do where nothing more particular is said.
const fn remedy(state: State) -> &'static str {
    match state {
        State::SourceDataLost => {
            "Start the mirror with --on-data-lost skip to leave a hole there and go on, or delete the copy to begin anew."
        }
        State::SourceRecreated => {
            "Delete or rename the copy, then start the mirror again to copy the new topic."
        }
        State::SourceTruncated => {
            "Start the mirror with --on-divergence follow to cut the copy as the source was cut."
        }
        State::Diverged => {
            "Compare both sides with verbatim verify and decide which one counts; to begin anew, delete the copy."
        }
        State::TargetNotExact => {
            "Mirror into a topic that was created by the mirror on a Verbatim host, or leave this one out (--exclude)."
        }
        State::Failed => "Remove the cause that the reason names, then start the mirror again.",
        State::Waiting => "None if it passes; else look at the cluster that the reason names.",
        State::Paused => "Start the mirror without the pattern that pauses it.",
        State::Aligning | State::Mirroring | State::CaughtUp => "",
    }
}

/// The remedy to show beside a state that is not a halt's.
pub(super) fn remedy_of(state: State) -> Option<String> {
    Some(remedy(state)).filter(|text| !text.is_empty()).map(str::to_owned)
}

impl Trouble {
    /// What a cluster's failure means.
    pub(super) fn of_cluster(side: Side, error: &ClusterError) -> Self {
        let who = match side {
            Side::Source => "source",
            Side::Target => "destination",
        };
        let said = format!("{who}: {error}");
        match (error, side) {
            (ClusterError::Unavailable { .. }, _) | (ClusterError::Unknown(_), Side::Source) => {
                Self::Pass(said)
            }
            (ClusterError::Unknown(_), Side::Target) => Self::Halt(Halt::not_exact(said)),
            _ => Self::Halt(Halt::failed(said)),
        }
    }
}

impl From<ExactError> for Trouble {
    /// What a failed write means.
    fn from(error: ExactError) -> Self {
        let said = error.to_string();
        match error {
            ExactError::Unavailable { .. } | ExactError::Ended => Self::Pass(format!("destination: {said}")),
            ExactError::Realign { .. } | ExactError::Fenced { .. } => {
                Self::Realign(format!("destination: {said}"))
            }
            ExactError::Diverged { .. } => Self::Halt(Halt::new(State::Diverged, said)),
            ExactError::SourceTopicIdMismatch { .. } => Self::Halt(Halt::new(State::SourceRecreated, said)),
            ExactError::UnknownPartition { .. } | ExactError::NotExact { .. } => {
                Self::Halt(Halt::not_exact(said))
            }
            ExactError::PolicyViolation { .. } => Self::Halt(Halt::policy(said)),
            ExactError::TooLarge { .. } => Self::Halt(Halt::too_large(said)),
            ExactError::InvalidRecord { .. }
            | ExactError::InvalidWrite { .. }
            | ExactError::Refused { .. } => Self::Halt(Halt::failed(said)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbatim_wire::exact_producer::Found;

    #[test]
    fn every_state_in_which_something_is_wrong_has_a_remedy() {
        for state in State::ALL {
            let well = matches!(state, State::Aligning | State::Mirroring | State::CaughtUp);
            assert_eq!(remedy_of(state).is_none(), well, "{state:?}");
        }
    }

    #[test]
    fn what_a_failed_write_says_decides_what_becomes_of_the_partition() {
        let message = || "said".to_owned();
        let halted = |error: ExactError| match Trouble::from(error) {
            Trouble::Halt(halt) => {
                assert!(halt.reason.contains("said") && !halt.remedy.is_empty(), "{halt:?}");
                halt.state
            }
            other => unreachable!("{other:?}"),
        };
        let table = [
            (ExactError::Diverged { offset: 7, message: message() }, State::Diverged),
            (ExactError::SourceTopicIdMismatch { message: message() }, State::SourceRecreated),
            (ExactError::UnknownPartition { message: message() }, State::TargetNotExact),
            (ExactError::NotExact { message: message() }, State::TargetNotExact),
            (ExactError::PolicyViolation { message: message() }, State::TargetNotExact),
            (ExactError::TooLarge { message: message() }, State::Failed),
            (ExactError::InvalidRecord { message: message() }, State::Failed),
            (ExactError::InvalidWrite { message: message() }, State::Failed),
            (ExactError::Refused { code: 53, message: message() }, State::Failed),
        ];
        for (error, state) in table {
            assert_eq!(halted(error), state);
        }
        let passing = ExactError::Unavailable { attempts: 3, message: message() };
        assert!(matches!(Trouble::from(passing), Trouble::Pass(_)));
        let found = Found { end: 1, shown_epoch: 0, last_epoch: 0 };
        for error in [ExactError::Realign { found }, ExactError::Fenced { message: message() }] {
            assert!(matches!(Trouble::from(error), Trouble::Realign(_)));
        }
        let may_not = "may not be rewritten, produce.at.offset.rewrite=`refuse`".to_owned();
        let rewriting = Trouble::from(ExactError::PolicyViolation { message: may_not });
        let remedy = "begin again with --target-config produce.at.offset.rewrite=allow";
        assert!(matches!(rewriting, Trouble::Halt(halt) if halt.remedy.contains(remedy)));
        let too_large = Trouble::from(ExactError::TooLarge { message: message() });
        assert!(matches!(too_large, Trouble::Halt(halt) if halt.remedy.contains("--exact-batch-bytes-max")));
    }
}
