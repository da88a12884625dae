//! Where a mirror and its partitions stand, in named states, each with a reason and a remedy.

use serde::Serialize;

/// The state of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Finding out where source and copy agree.
    Aligning,
    /// Copying.
    Mirroring,
    /// The copy ends where the source did a moment ago.
    CaughtUp,
    /// An operator does not want it copied.
    Paused,
    /// Something failed that may pass; it is tried again after a pause.
    Waiting,
    /// The source deleted what was not copied yet.
    SourceDataLost,
    /// The source's topic was deleted, or deleted and created anew.
    SourceRecreated,
    /// The source was truncated below the copy's end.
    SourceTruncated,
    /// Source and copy hold different bytes at one place, or have nothing in common.
    Diverged,
    /// The destination's topic is not exact (any more), is another's copy, or is no Verbatim host's.
    TargetNotExact,
    /// Anything else that does not pass.
    Failed,
}

impl State {
    /// All of them, in the order of a partition's life.
    pub const ALL: [Self; 11] = [
        Self::Aligning,
        Self::Mirroring,
        Self::CaughtUp,
        Self::Paused,
        Self::Waiting,
        Self::SourceDataLost,
        Self::SourceRecreated,
        Self::SourceTruncated,
        Self::Diverged,
        Self::TargetNotExact,
        Self::Failed,
    ];

    /// Its name, as it is in JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aligning => "aligning",
            Self::Mirroring => "mirroring",
            Self::CaughtUp => "caught-up",
            Self::Paused => "paused",
            Self::Waiting => "waiting",
            Self::SourceDataLost => "source-data-lost",
            Self::SourceRecreated => "source-recreated",
            Self::SourceTruncated => "source-truncated",
            Self::Diverged => "diverged",
            Self::TargetNotExact => "target-not-exact",
            Self::Failed => "failed",
        }
    }

    /// True for those that stay until an operator does something.
    pub const fn is_stopped(self) -> bool {
        !matches!(self, Self::Aligning | Self::Mirroring | Self::CaughtUp | Self::Paused | Self::Waiting)
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// One partition at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionStatus {
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// Its state.
    pub state: State,
    /// Why it is in that state, where that needs saying: names field, value and expectation.
    pub reason: Option<String>,
    /// What an operator can do about it.
    pub remedy: Option<String>,
    /// The copy's log end offset.
    pub end: i64,
    /// The source's log start offset.
    pub source_start: i64,
    /// The source's high watermark; -1 while unknown.
    pub source_end: i64,
    /// The source's leader epoch; -1 while unknown.
    pub source_epoch: i32,
    /// Offsets between the copy's end and the source's: how many records it is behind at most.
    pub lag_records: i64,
    /// How long the copy has been behind, in milliseconds: since when its end has been below the source's end at that time.
    pub lag_ms: i64,
    /// Batches acknowledged since the start.
    pub batches: u64,
    /// Records acknowledged since the start.
    pub records: u64,
    /// Bytes acknowledged since the start.
    pub bytes: u64,
    /// Holes that were skipped by policy.
    pub skipped: Vec<Skipped>,
}

/// Offsets that the copy lacks because the source had deleted them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The first.
    pub from: i64,
    /// The one after the last.
    pub to: i64,
    /// Why.
    pub reason: String,
}

/// Something about a topic as a whole that an operator should know: a setting that is not carried over, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopicNote {
    /// Topic.
    pub topic: String,
    /// What and why.
    pub text: String,
}

/// What became of one group's committed offset of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupStatus {
    /// Group id.
    pub group: String,
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// The source's committed offset.
    pub source_offset: i64,
    /// The destination's; -1 = none.
    pub offset: i64,
    /// Why they differ, if they do.
    pub reason: Option<String>,
}

/// Everything at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// Partitions by topic and index.
    pub partitions: Vec<PartitionStatus>,
    /// Notes by topic.
    pub notes: Vec<TopicNote>,
    /// Groups by id, topic and partition.
    pub groups: Vec<GroupStatus>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// A partition came into another state.
    State(PartitionStatus),
    /// A note on a topic.
    Note(TopicNote),
    /// A topic was created at the destination, or got partitions or settings.
    Topic(TopicNote),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_one_name_everywhere() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).ok(), Some(state.name().into()));
        }
    }
}
