//! Committed offsets of all groups, and changes of them.
//!
//! An offset belongs to a topic's id: what was committed for a topic that is gone is nobody's, also if another topic of that
//! name comes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::shared::PartitionId;

/// Memory that an offset takes beside its metadata, about; of a group, beside its id.
const BYTES_EACH: usize = 160;

/// An offset that a group committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The next one to read.
    pub(crate) offset: i64,
    /// The leader epoch of what was read last; -1 = none was given.
    pub(crate) leader_epoch: i32,
    /// Whatever the client wrote to it.
    pub(crate) metadata: String,
    /// When, in milliseconds since 1970.
    pub(crate) at_ms: i64,
}

impl Committed {
    fn bytes(&self) -> usize {
        self.metadata.len().saturating_add(BYTES_EACH)
    }
}

/// An offset and what it belongs to, as it lies in files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    topic: String,
    partition: u32,
    offset: i64,
    leader_epoch: i32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    metadata: String,
    time: i64,
}

impl Stored {
    pub(crate) fn new(id: PartitionId, committed: Committed) -> Self {
        let Committed { offset, leader_epoch, metadata, at_ms } = committed;
        let topic = crate::topic_id::format(id.topic);
        Self { topic, partition: id.index, offset, leader_epoch, metadata, time: at_ms }
    }

    fn read(self) -> Option<(PartitionId, Committed)> {
        let id = PartitionId { topic: crate::topic_id::parse(&self.topic)?, index: self.partition };
        let Self { offset, leader_epoch, metadata, time: at_ms, .. } = self;
        Some((id, Committed { offset, leader_epoch, metadata, at_ms }))
    }
}

/// One change, whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
pub(crate) enum Change {
    /// Offsets of a group are committed.
    Commit { group: String, offsets: Vec<Stored> },
    /// Offsets of a group are removed: topic ids and partitions.
    Forget { group: String, partitions: Vec<(String, u32)> },
    /// All offsets of a group are removed.
    ForgetGroup { group: String },
    /// All offsets of a topic are removed.
    ForgetTopic { topic: String },
}

impl Change {
    pub(crate) fn forget(group: String, partitions: impl IntoIterator<Item = PartitionId>) -> Self {
        let name = |id: PartitionId| (crate::topic_id::format(id.topic), id.index);
        Self::Forget { group, partitions: partitions.into_iter().map(name).collect() }
    }

    pub(crate) fn forget_topic(topic: Uuid) -> Self {
        Self::ForgetTopic { topic: crate::topic_id::format(topic) }
    }
}

/// The offsets of one group.
pub(crate) type OfGroup = BTreeMap<PartitionId, Committed>;

/// All there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offsets {
    groups: BTreeMap<String, OfGroup>,
    bytes: usize,
}

impl Offsets {
    /// Groups with offsets.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&String, &OfGroup)> {
        self.groups.iter()
    }

    pub(crate) fn group(&self, id: &str) -> Option<&OfGroup> {
        self.groups.get(id)
    }

    /// Memory that all take, about.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The highest leader epoch of the offsets of a partition; -1 = there is none.
    pub(crate) fn highest_epoch(&self, id: PartitionId) -> i32 {
        let epochs = self.groups.values().filter_map(|group| group.get(&id)).map(|one| one.leader_epoch);
        epochs.max().unwrap_or(-1).max(-1)
    }

    /// Bytes by which a change lets it grow.
    pub(crate) fn growth(&self, change: &Change) -> usize {
        let Change::Commit { group, offsets } = change else { return 0 };
        let known = self.groups.get(group);
        let of_group = if known.is_some() { 0 } else { group.len().saturating_add(BYTES_EACH) };
        let one = |stored: &Stored| {
            let topic = crate::topic_id::parse(&stored.topic).unwrap_or_default();
            let before = known.and_then(|known| known.get(&PartitionId { topic, index: stored.partition }));
            let bytes = stored.metadata.len().saturating_add(BYTES_EACH);
            bytes.saturating_sub(before.map_or(0, Committed::bytes))
        };
        offsets.iter().map(one).fold(of_group, usize::saturating_add)
    }

    /// Makes a change.
    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Commit { group, offsets } => self.commit(group, offsets),
            Change::Forget { group, partitions } => {
                let id = |(topic, index): (String, u32)| {
                    Some(PartitionId { topic: crate::topic_id::parse(&topic)?, index })
                };
                let gone: BTreeSet<PartitionId> = partitions.into_iter().filter_map(id).collect();
                self.retain(|name, id| *name != group || !gone.contains(&id));
            }
            Change::ForgetGroup { group } => self.retain(|name, _| *name != group),
            Change::ForgetTopic { topic } => {
                let gone = crate::topic_id::parse(&topic);
                self.retain(|_, id| Some(id.topic) != gone);
            }
        }
    }

    fn commit(&mut self, group: String, offsets: Vec<Stored>) {
        if offsets.is_empty() {
            return;
        }
        if !self.groups.contains_key(&group) {
            self.bytes = self.bytes.saturating_add(group.len().saturating_add(BYTES_EACH));
        }
        let known = self.groups.entry(group).or_default();
        for (id, committed) in offsets.into_iter().filter_map(Stored::read) {
            self.bytes = self.bytes.saturating_add(committed.bytes());
            let before = known.insert(id, committed);
            self.bytes = self.bytes.saturating_sub(before.as_ref().map_or(0, Committed::bytes));
        }
    }

    /// Keeps the offsets that `keep` names; groups without any are gone.
    pub(crate) fn retain(&mut self, keep: impl Fn(&String, PartitionId) -> bool) {
        let bytes = &mut self.bytes;
        self.groups.retain(|name, group| {
            group.retain(|id, committed| {
                let kept = keep(name, *id);
                *bytes = bytes.saturating_sub(if kept { 0 } else { committed.bytes() });
                kept
            });
            let kept = !group.is_empty();
            *bytes = bytes.saturating_sub(if kept { 0 } else { name.len().saturating_add(BYTES_EACH) });
            kept
        });
    }

    /// All of it as changes that make it again.
    pub(crate) fn to_changes(&self) -> impl Iterator<Item = Change> {
        self.groups.iter().map(|(group, offsets)| Change::Commit {
            group: group.clone(),
            offsets: offsets.iter().map(|(id, committed)| Stored::new(*id, committed.clone())).collect(),
        })
    }
}
