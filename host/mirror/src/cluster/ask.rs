//! Questions about one partition or topic, and what their answers say.

use std::collections::BTreeMap;

use verbatim_wire::ErrorCode;
use verbatim_wire::exact_producer::EpochEnd;
use verbatim_wire::messages::describe_configs_request::DescribeConfigsResource;
use verbatim_wire::messages::describe_producers_request::TopicRequest;
use verbatim_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use verbatim_wire::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use verbatim_wire::messages::{
    DescribeConfigsRequest, DescribeConfigsResponse, DescribeProducersRequest, DescribeProducersResponse,
    ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    TopicName,
};
use verbatim_wire::protocol::StrBytes;

use super::types::{At, ListedOffset, Partition, Producer, TopicConfig};

/// The error code of an answer that lacks what was asked for: UNKNOWN_SERVER_ERROR.
const NOT_ANSWERED: i16 = -1;
/// The kind of resource that a topic is to DescribeConfigs.
const TOPIC: i8 = 2;
/// Where a setting comes from: the topic itself.
const SET_BY_TOPIC: i8 = 1;

/// The first version of OffsetForLeaderEpoch that carries the current leader epoch.
pub(super) const EPOCH_END_FENCED_FROM: i16 = 2;

/// True if a leader refuses the leader epoch it was asked under (R32).
pub(super) fn is_other_epoch(code: i16) -> bool {
    matches!(ErrorCode::from_number(code), Some(ErrorCode::FencedLeaderEpoch | ErrorCode::UnknownLeaderEpoch))
}

fn name(partition: &Partition) -> TopicName {
    TopicName(StrBytes::from_string(partition.topic.clone()))
}

/// The lowest version of ListOffsets that can ask this.
pub(super) fn list_offsets_version_min(at: At, read_committed: bool) -> i16 {
    match (at, read_committed) {
        (At::MaxTimestamp, _) => 7,
        (At::EarliestLocal, _) => 8,
        (_, true) => 2,
        (_, false) => 1,
    }
}

pub(super) fn list_offsets(
    partition: &Partition,
    leader_epoch: i32,
    at: At,
    read_committed: bool,
) -> ListOffsetsRequest {
    let timestamp = match at {
        At::Latest => -1,
        At::Earliest => -2,
        At::MaxTimestamp => -3,
        At::EarliestLocal => -4,
        At::Time(time) => time,
    };
    let asked = ListOffsetsPartition::default()
        .with_partition_index(partition.index)
        .with_current_leader_epoch(leader_epoch)
        .with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default().with_name(name(partition)).with_partitions(vec![asked]);
    ListOffsetsRequest::default()
        .with_replica_id((-1).into())
        .with_isolation_level(i8::from(read_committed))
        .with_topics(vec![topic])
}

pub(super) fn listed(answer: ListOffsetsResponse, of: &Partition) -> Result<Option<ListedOffset>, i16> {
    let topic = answer.topics.into_iter().find(|topic| topic.name.as_str() == of.topic);
    let listed =
        topic.and_then(|topic| topic.partitions.into_iter().find(|one| one.partition_index == of.index));
    let listed = listed.ok_or(NOT_ANSWERED)?;
    if listed.error_code != 0 {
        return Err(listed.error_code);
    }
    Ok((listed.offset >= 0).then_some(ListedOffset {
        offset: listed.offset,
        timestamp: listed.timestamp,
        leader_epoch: listed.leader_epoch,
    }))
}

pub(super) fn epoch_end(partition: &Partition, leader_epoch: i32, epoch: i32) -> OffsetForLeaderEpochRequest {
    let asked = OffsetForLeaderPartition::default()
        .with_partition(partition.index)
        .with_current_leader_epoch(leader_epoch)
        .with_leader_epoch(epoch);
    let topic = OffsetForLeaderTopic::default().with_topic(name(partition)).with_partitions(vec![asked]);
    OffsetForLeaderEpochRequest::default().with_replica_id((-1).into()).with_topics(vec![topic])
}

pub(super) fn ended(answer: &OffsetForLeaderEpochResponse, of: &Partition) -> Result<EpochEnd, i16> {
    let topic = answer.topics.iter().find(|topic| topic.topic.as_str() == of.topic);
    let end = topic.and_then(|topic| topic.partitions.iter().find(|one| one.partition == of.index));
    let end = end.ok_or(NOT_ANSWERED)?;
    match end.error_code {
        0 => Ok(EpochEnd { epoch: end.leader_epoch, end: end.end_offset }),
        code => Err(code),
    }
}

pub(super) fn describe_configs(topic: &str) -> DescribeConfigsRequest {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(StrBytes::from_string(topic.to_owned()))
        .with_configuration_keys(None);
    DescribeConfigsRequest::default().with_resources(vec![resource])
}

pub(super) fn described_code(answer: &DescribeConfigsResponse) -> i16 {
    answer.results.first().map_or(NOT_ANSWERED, |result| result.error_code)
}

pub(super) fn described(answer: DescribeConfigsResponse) -> BTreeMap<String, TopicConfig> {
    let configs = answer.results.into_iter().flat_map(|result| result.configs);
    let config = |value: Option<StrBytes>, source| TopicConfig {
        value: value.map(|value| value.to_string()),
        is_set: source == SET_BY_TOPIC,
    };
    configs.map(|one| (one.name.to_string(), config(one.value, one.config_source))).collect()
}

pub(super) fn describe_producers(partition: &Partition) -> DescribeProducersRequest {
    let topic =
        TopicRequest::default().with_name(name(partition)).with_partition_indexes(vec![partition.index]);
    DescribeProducersRequest::default().with_topics(vec![topic])
}

pub(super) fn producers(answer: DescribeProducersResponse, of: &Partition) -> Result<Vec<Producer>, i16> {
    let topic = answer.topics.into_iter().find(|topic| topic.name.as_str() == of.topic);
    let found =
        topic.and_then(|topic| topic.partitions.into_iter().find(|one| one.partition_index == of.index));
    let found = found.ok_or(NOT_ANSWERED)?;
    if found.error_code != 0 {
        return Err(found.error_code);
    }
    let producer = |one: verbatim_wire::messages::describe_producers_response::ProducerState| Producer {
        id: one.producer_id.0,
        epoch: one.producer_epoch,
        last_sequence: one.last_sequence,
        last_timestamp: one.last_timestamp,
        coordinator_epoch: one.coordinator_epoch,
        transaction_start: one.current_txn_start_offset,
    };
    let mut producers: Vec<Producer> = found.active_producers.into_iter().map(producer).collect();
    producers.sort();
    Ok(producers)
}
