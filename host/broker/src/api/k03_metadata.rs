//! Metadata, v0 to v13.
//!
//! - No topics in the request (v0: an empty list, later: null) means all; topics are found by name or, from v10 on, by id.
//! - One node leads every partition, is its only replica and the controller. The leader epoch is the shown epoch: on an
//!   exact topic the highest one of the source that was mirrored or declared, -1 before the first.
//! - A partition that is offline has no leader (5, LEADER_NOT_AVAILABLE) and lists its replica as offline.
//! - A topic that is named several times is described once, as in Kafka.
//! - An unknown name is answered with 3, an unknown id with 100, an illegal name with 17.
//! - Authorized operations (v8 on), if asked for, are all that there are; those of the cluster up to v10.
//!
//! Left out: topics are never created on the way (`allow_auto_topic_creation` is not looked at, as with
//! `auto.create.topics.enable=false`).

use std::collections::HashSet;

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use super::operations;
use crate::catalogue::{self, Snapshot, Topic};
use crate::errors::ApiError;
use crate::shared::Shared;

pub(super) fn handle(shared: &Shared, version: i16, request: MetadataRequest) -> MetadataResponse {
    let snapshot = shared.catalogue.snapshot();
    let asked = request.topics.filter(|topics| version > 0 || !topics.is_empty());
    let topics = match asked {
        None => snapshot.visible().map(|topic| described(shared, topic)).collect::<Vec<_>>(),
        Some(topics) => once(topics).map(|asked| find(shared, &snapshot, asked)).collect(),
    };
    let on_topic = |topic: MetadataResponseTopic| {
        let asked = request.include_topic_authorized_operations && topic.error_code == 0;
        topic.with_topic_authorized_operations(operations::if_asked(asked, operations::TOPIC))
    };
    let on_cluster = operations::if_asked(request.include_cluster_authorized_operations, operations::CLUSTER);
    let (host, port) = shared.advertised();
    MetadataResponse::default()
        .with_brokers(vec![
            MetadataResponseBroker::default().with_node_id(shared.node()).with_host(host).with_port(port),
        ])
        .with_cluster_id(Some(StrBytes::from_string(snapshot.cluster_id.clone())))
        .with_controller_id(shared.node())
        .with_topics(topics.into_iter().map(on_topic).collect())
        .with_cluster_authorized_operations(on_cluster)
}

/// Each topic once, however often it is named: a description may be far longer than a name.
fn once(topics: Vec<MetadataRequestTopic>) -> impl Iterator<Item = MetadataRequestTopic> {
    let mut seen = HashSet::new();
    topics.into_iter().filter(move |asked| seen.insert((asked.name.clone(), asked.topic_id)))
}

fn find(shared: &Shared, snapshot: &Snapshot, asked: MetadataRequestTopic) -> MetadataResponseTopic {
    let found = match &asked.name {
        Some(name) if asked.topic_id.is_nil() => catalogue::check_name(name)
            .and_then(|()| snapshot.topic(name).ok_or_else(|| ApiError::unknown_topic(name))),
        _ => snapshot.topic_by_id(asked.topic_id).ok_or_else(|| ApiError::unknown_topic_id(asked.topic_id)),
    };
    match found {
        Ok(topic) => described(shared, topic),
        Err(error) => MetadataResponseTopic::default()
            .with_error_code(error.code.number())
            // Before v12 the name cannot be null; an unknown id has none to tell.
            .with_name(Some(asked.name.unwrap_or_default()))
            .with_topic_id(asked.topic_id),
    }
}

fn described(shared: &Shared, topic: &Topic) -> MetadataResponseTopic {
    MetadataResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_string(topic.name.clone()))))
        .with_topic_id(topic.id)
        .with_partitions((0..topic.partitions).map(|index| partition(shared, topic, index)).collect())
}

fn partition(shared: &Shared, topic: &Topic, index: u32) -> MetadataResponsePartition {
    let node = shared.node();
    let answer = MetadataResponsePartition::default()
        .with_partition_index(i32::try_from(index).unwrap_or(i32::MAX))
        .with_replica_nodes(vec![node]);
    match shared.partition(topic, index) {
        Ok(partition) => {
            answer.with_leader_id(node).with_leader_epoch(partition.shown_epoch()).with_isr_nodes(vec![node])
        }
        Err(_) => answer
            .with_error_code(ErrorCode::LeaderNotAvailable.number())
            .with_leader_id(BrokerId(-1))
            .with_offline_replicas(vec![node]),
    }
}
