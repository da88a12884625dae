//! OffsetFetch, v1 to v9.
//!
//! - What a group committed: offset, leader epoch (from v5 on), metadata. Where it committed nothing, the topic or the group is
//!   not known: -1, -1 and no error. A null list of topics asks for all there are; from v8 on several groups.
//! - `require_stable` waits for nothing: there are no offsets within transactions here.
//! - A group id that is empty or longer than 1,000 bytes is 24.
//!
//! Left out: member id and epoch of v9, which only members of the newer protocol (KIP-848) have; v10 with topic ids.

use std::collections::BTreeMap;

use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::groups::coordinator::check_id;
use crate::groups::offsets::{Committed, OfGroup};
use crate::shared::{PartitionId, Shared};

/// From this version on a request names several groups.
const BATCHED_FROM: i16 = 8;

/// A topic, and each partition's offset.
type Found = Vec<(TopicName, Vec<(i32, Option<Committed>)>)>;

pub(super) fn handle(shared: &Shared, version: i16, request: OffsetFetchRequest) -> OffsetFetchResponse {
    if version < BATCHED_FROM {
        let asked = request
            .topics
            .map(|topics| topics.into_iter().map(|topic| (topic.name, topic.partition_indexes)).collect());
        let (code, found) = find(shared, &request.group_id, asked);
        return OffsetFetchResponse::default().with_error_code(code).with_topics(old_topics(found));
    }
    let groups = request.groups.into_iter().map(|group| {
        let asked = group
            .topics
            .map(|topics| topics.into_iter().map(|topic| (topic.name, topic.partition_indexes)).collect());
        let (code, found) = find(shared, &group.group_id, asked);
        OffsetFetchResponseGroup::default()
            .with_group_id(group.group_id)
            .with_error_code(code)
            .with_topics(topics(found))
    });
    OffsetFetchResponse::default().with_groups(groups.collect())
}

fn find(shared: &Shared, group: &str, asked: Option<Vec<(TopicName, Vec<i32>)>>) -> (i16, Found) {
    if let Err(code) = check_id(group) {
        return (code.number(), Vec::new());
    }
    let offsets = shared.groups.keeper().offsets();
    let none = OfGroup::new();
    let of_group = offsets.group(group).unwrap_or(&none);
    let found = match asked {
        Some(asked) => named(shared, of_group, asked),
        None => all(shared, of_group),
    };
    (0, found)
}

fn named(shared: &Shared, of_group: &OfGroup, asked: Vec<(TopicName, Vec<i32>)>) -> Found {
    let snapshot = shared.catalogue.snapshot();
    let topic = |(name, indices): (TopicName, Vec<i32>)| {
        let id = snapshot.topic(&name).map(|topic| topic.id);
        let one = |index: i32| {
            let place = id.zip(u32::try_from(index).ok()).map(|(topic, index)| PartitionId { topic, index });
            (index, place.and_then(|place| of_group.get(&place)).cloned())
        };
        (name, indices.into_iter().map(one).collect())
    };
    asked.into_iter().map(topic).collect()
}

fn all(shared: &Shared, of_group: &OfGroup) -> Found {
    let snapshot = shared.catalogue.snapshot();
    let mut topics = BTreeMap::<&str, Vec<(i32, Option<Committed>)>>::new();
    for (id, committed) in of_group {
        let Some(topic) = snapshot.topic_by_id(id.topic) else { continue };
        let index = i32::try_from(id.index).unwrap_or(i32::MAX);
        topics.entry(&topic.name).or_default().push((index, Some(committed.clone())));
    }
    let name = |name: &str| TopicName(StrBytes::from_string(name.to_owned()));
    topics.into_iter().map(|(topic, found)| (name(topic), found)).collect()
}

fn fields(committed: Option<Committed>) -> (i64, i32, Option<StrBytes>) {
    committed.map_or((-1, -1, Some(StrBytes::default())), |one| {
        (one.offset, one.leader_epoch, Some(StrBytes::from_string(one.metadata)))
    })
}

fn old_topics(found: Found) -> Vec<OffsetFetchResponseTopic> {
    let partition = |(index, committed): (i32, Option<Committed>)| {
        let (offset, epoch, metadata) = fields(committed);
        OffsetFetchResponsePartition::default()
            .with_partition_index(index)
            .with_committed_offset(offset)
            .with_committed_leader_epoch(epoch)
            .with_metadata(metadata)
    };
    let topic = |(name, partitions): (TopicName, Vec<_>)| {
        OffsetFetchResponseTopic::default()
            .with_name(name)
            .with_partitions(partitions.into_iter().map(partition).collect())
    };
    found.into_iter().map(topic).collect()
}

fn topics(found: Found) -> Vec<OffsetFetchResponseTopics> {
    let partition = |(index, committed): (i32, Option<Committed>)| {
        let (offset, epoch, metadata) = fields(committed);
        OffsetFetchResponsePartitions::default()
            .with_partition_index(index)
            .with_committed_offset(offset)
            .with_committed_leader_epoch(epoch)
            .with_metadata(metadata)
    };
    let topic = |(name, partitions): (TopicName, Vec<_>)| {
        OffsetFetchResponseTopics::default()
            .with_name(name)
            .with_partitions(partitions.into_iter().map(partition).collect())
    };
    found.into_iter().map(topic).collect()
}
