//! What a cluster knows of consumer groups: who coordinates them, whether they have members, and what they committed.

use verbatim_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use verbatim_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use verbatim_wire::messages::{
    DescribeGroupsRequest, FindCoordinatorRequest, GroupId, ListGroupsRequest, OffsetCommitRequest,
    OffsetFetchRequest, OffsetFetchResponse, TopicName,
};
use verbatim_wire::protocol::StrBytes;

use super::{Cluster, ClusterError, Partition};

/// From this version on FindCoordinator and OffsetFetch name several groups: 4 and 8.
const COORDINATORS_FROM: i16 = 4;
const GROUPS_FROM: i16 = 8;
/// From this version on OffsetFetch can ask for all topics.
const ALL_TOPICS_FROM: i16 = 2;
/// From this version on OffsetCommit has leader epochs.
const EPOCHS_FROM: i16 = 6;

/// An offset that a group committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupOffset {
    /// The partition.
    pub partition: Partition,
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of what was read last; -1 = none was given.
    pub leader_epoch: i32,
    /// Whatever the client wrote to it.
    pub metadata: String,
}

impl Cluster {
    /// Every group by id, and the broker that coordinates it.
    ///
    /// # Errors
    /// As [`Cluster::topics`].
    pub async fn groups(&self) -> Result<Vec<(String, i32)>, ClusterError> {
        let mut groups = Vec::new();
        for broker in self.brokers().await? {
            let what = format!("groups of broker {}", broker.id);
            let answer = self
                .call_broker(broker.id, &what, 0, &ListGroupsRequest::default(), |one| one.error_code)
                .await?;
            refuse(&what, answer.error_code)?;
            groups.extend(answer.groups.into_iter().map(|group| (group.group_id.to_string(), broker.id)));
        }
        groups.sort();
        // A group that moves may be told by both of its brokers.
        groups.dedup_by(|a, b| a.0 == b.0);
        Ok(groups)
    }

    /// The broker that coordinates a group.
    ///
    /// # Errors
    /// As [`Cluster::topics`].
    pub async fn coordinator(&self, group: &str) -> Result<i32, ClusterError> {
        let what = format!("coordinator of group {group}");
        let key = StrBytes::from_string(group.to_owned());
        let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![key.clone()]);
        let code = |answer: &verbatim_wire::messages::FindCoordinatorResponse| {
            answer.coordinators.first().map_or(answer.error_code, |one| one.error_code)
        };
        let answer = match self.call_any(&what, COORDINATORS_FROM, &request, code).await {
            Err(ClusterError::Unsupported(_)) => {
                let request = FindCoordinatorRequest::default().with_key(key);
                self.call_any(&what, 0, &request, code).await?
            }
            answer => answer?,
        };
        refuse(&what, code(&answer))?;
        Ok(answer.coordinators.first().map_or(answer.node_id, |one| one.node_id).0)
    }

    /// What a group committed, by its coordinator.
    ///
    /// # Errors
    /// As [`Cluster::topics`]; another broker coordinates the group now.
    pub async fn group_offsets(&self, node: i32, group: &str) -> Result<Vec<GroupOffset>, ClusterError> {
        let what = format!("offsets of group {group}");
        let id = GroupId(StrBytes::from_string(group.to_owned()));
        let asked = OffsetFetchRequestGroup::default().with_group_id(id.clone()).with_topics(None);
        let request = OffsetFetchRequest::default().with_groups(vec![asked]);
        let code = |answer: &OffsetFetchResponse| {
            answer.groups.first().map_or(answer.error_code, |group| group.error_code)
        };
        let answer = match self.call_broker(node, &what, GROUPS_FROM, &request, elsewhere(code)).await {
            Err(ClusterError::Unsupported(_)) => {
                let request = OffsetFetchRequest::default().with_group_id(id).with_topics(None);
                self.call_broker(node, &what, ALL_TOPICS_FROM, &request, elsewhere(code)).await?
            }
            answer => answer?,
        };
        refuse(&what, code(&answer))?;
        Ok(read_offsets(answer))
    }

    /// Whether a group has members, by its coordinator.
    ///
    /// # Errors
    /// As [`Cluster::group_offsets`].
    pub async fn has_members(&self, node: i32, group: &str) -> Result<bool, ClusterError> {
        const NOT_FOUND: i16 = 69;
        let what = format!("members of group {group}");
        let id = GroupId(StrBytes::from_string(group.to_owned()));
        let request = DescribeGroupsRequest::default().with_groups(vec![id]);
        let code = |answer: &verbatim_wire::messages::DescribeGroupsResponse| {
            answer.groups.first().map_or(0, |group| group.error_code)
        };
        let answer = self.call_broker(node, &what, 0, &request, elsewhere(code)).await?;
        if code(&answer) == NOT_FOUND {
            return Ok(false);
        }
        refuse(&what, code(&answer))?;
        let is_empty = |state: &str| matches!(state, "Empty" | "Dead" | "");
        Ok(answer
            .groups
            .first()
            .is_some_and(|group| !is_empty(&group.group_state) || !group.members.is_empty()))
    }

    /// Commits offsets for a group from outside, which its coordinator refuses (25) while it has members. The error code of
    /// each, in order.
    ///
    /// # Errors
    /// As [`Cluster::group_offsets`].
    pub async fn commit_group_offsets(
        &self,
        node: i32,
        group: &str,
        offsets: &[GroupOffset],
    ) -> Result<Vec<i16>, ClusterError> {
        let topic = |one: &GroupOffset| {
            let partition = OffsetCommitRequestPartition::default()
                .with_partition_index(one.partition.index)
                .with_committed_offset(one.offset)
                .with_committed_leader_epoch(one.leader_epoch)
                .with_committed_metadata(Some(StrBytes::from_string(one.metadata.clone())));
            OffsetCommitRequestTopic::default()
                .with_name(TopicName(StrBytes::from_string(one.partition.topic.clone())))
                .with_partitions(vec![partition])
        };
        let request = OffsetCommitRequest::default()
            .with_group_id(GroupId(StrBytes::from_string(group.to_owned())))
            .with_generation_id_or_member_epoch(-1)
            .with_topics(offsets.iter().map(topic).collect());
        let what = format!("OffsetCommit of group {group}");
        let answer = self.call_broker(node, &what, EPOCHS_FROM, &request, |_| 0).await?;
        let codes: Vec<i16> =
            answer.topics.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code).collect();
        if codes.len() == offsets.len() {
            return Ok(codes);
        }
        refuse(&what, codes.into_iter().find(|code| *code != 0).unwrap_or(-1))?;
        Ok(Vec::new())
    }
}

/// That another broker has to be asked is for the caller: repeating the question here is of no use.
fn elsewhere<A>(code: impl Fn(&A) -> i16) -> impl Fn(&A) -> i16 {
    const NOT_COORDINATOR: i16 = 16;
    move |answer| if code(answer) == NOT_COORDINATOR { 0 } else { code(answer) }
}

fn refuse(what: &str, code: i16) -> Result<(), ClusterError> {
    if code == 0 { Ok(()) } else { Err(ClusterError::Refused { what: what.to_owned(), code }) }
}

/// Both shapes of the answer; a negative offset is no commit.
fn read_offsets(answer: OffsetFetchResponse) -> Vec<GroupOffset> {
    let mut offsets = Vec::new();
    let mut add = |topic: &str, index, offset, leader_epoch, metadata: Option<StrBytes>| {
        if offset >= 0 {
            let partition = Partition { topic: topic.to_owned(), index };
            let metadata = metadata.map(|text| text.to_string()).unwrap_or_default();
            offsets.push(GroupOffset { partition, offset, leader_epoch, metadata });
        }
    };
    for topic in answer.groups.into_iter().flat_map(|group| group.topics) {
        for one in topic.partitions {
            let (index, offset) = (one.partition_index, one.committed_offset);
            add(&topic.name, index, offset, one.committed_leader_epoch, one.metadata);
        }
    }
    for topic in answer.topics {
        for one in topic.partitions {
            let (index, offset) = (one.partition_index, one.committed_offset);
            add(&topic.name, index, offset, one.committed_leader_epoch, one.metadata);
        }
    }
    offsets
}
