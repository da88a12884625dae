//! DescribeTopicPartitions, v0 (KIP-966).
//!
//! - Topics by name, sorted, each once; none named means all. Partitions as Metadata tells them, without eligible leaders: one
//!   node has one replica.
//! - Page by page: at most `response_partition_limit` partitions, at least one and at most 2,000. The next cursor names the
//!   topic and partition to go on with; null at the end.
//! - A cursor starts at its topic, which must be among those named, if any are, and not below partition 0, else every
//!   named topic is answered with 42. A topic that was deleted since goes on with the next one.
//! - Unknown names are 3 and illegal ones 17.
//!
//! Left out: nothing.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::{
    BrokerId, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;
use verbatim_wire::error::ErrorCode;

use super::operations;
use crate::catalogue::{self, Snapshot, Topic};
use crate::errors::ApiError;
use crate::shared::Shared;

/// Kafka's default of `max.request.partition.size.limit`.
const PARTITIONS_MAX: u32 = 2_000;

pub(super) fn handle(
    shared: &Shared,
    request: &DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let start = match start(request) {
        Ok(start) => start,
        Err(error) => return refused(request, &error),
    };
    let snapshot = shared.catalogue.snapshot();
    let limit = u32::try_from(request.response_partition_limit).unwrap_or(0).clamp(1, PARTITIONS_MAX);
    let mut page = Page { shared, left: limit, topics: Vec::new(), next: None };
    if request.topics.is_empty() {
        let range = (Bound::Included(start.topic), Bound::Unbounded);
        let all = snapshot.topics.range::<str, _>(range).filter(|(_, topic)| topic.is_visible());
        page.fill(start, all.map(|(name, topic)| (name.as_str(), Ok(topic))));
    } else {
        let named: BTreeSet<&str> = request.topics.iter().map(|topic| &*topic.name.0).collect();
        let named = named.into_iter().filter(|name| *name >= start.topic);
        page.fill(start, named.map(|name| (name, find(&snapshot, name))));
    }
    DescribeTopicPartitionsResponse::default().with_topics(page.topics).with_next_cursor(page.next)
}

/// Where the page begins.
#[derive(Clone, Copy)]
struct Start<'a> {
    topic: &'a str,
    partition: u32,
}

/// A page in the making.
struct Page<'a> {
    shared: &'a Shared,
    /// Partitions that still fit.
    left: u32,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    next: Option<Cursor>,
}

impl Page<'_> {
    fn fill<'t>(
        &mut self,
        start: Start<'_>,
        topics: impl Iterator<Item = (&'t str, Result<&'t Arc<Topic>, ApiError>)>,
    ) {
        for (name, found) in topics {
            let first = if name == start.topic { start.partition } else { 0 };
            if self.left == 0 {
                self.next = Some(cursor(name, first));
                return;
            }
            match found {
                Ok(topic) => {
                    let first = first.min(topic.partitions);
                    let end = topic.partitions.min(first.saturating_add(self.left));
                    self.left = self.left.saturating_sub(end.saturating_sub(first));
                    let partitions = (first..end).map(|index| partition(self.shared, topic, index)).collect();
                    self.topics.push(described(0, name, topic.id).with_partitions(partitions));
                    if end < topic.partitions {
                        self.next = Some(cursor(name, end));
                        return;
                    }
                }
                Err(error) => self.topics.push(described(error.code.number(), name, Uuid::nil())),
            }
        }
    }
}

fn start(request: &DescribeTopicPartitionsRequest) -> Result<Start<'_>, ApiError> {
    let Some(cursor) = &request.cursor else { return Ok(Start { topic: "", partition: 0 }) };
    let topic = &*cursor.topic_name.0;
    let invalid = |text| Err(ApiError::new(ErrorCode::InvalidRequest, text));
    if !request.topics.is_empty() && !request.topics.iter().any(|asked| asked.name == cursor.topic_name) {
        return invalid(format!("the topics must contain that of the cursor, cursor.topic_name=`{topic}`"));
    }
    let index = cursor.partition_index;
    match u32::try_from(index) {
        Ok(partition) => Ok(Start { topic, partition }),
        Err(_) => {
            invalid(format!("the cursor's partition must be 0 or more, cursor.partition_index=`{index}`"))
        }
    }
}

fn refused(request: &DescribeTopicPartitionsRequest, error: &ApiError) -> DescribeTopicPartitionsResponse {
    // This answer has no room for a text.
    tracing::debug!(%error, "topics are not described");
    let topic = |asked: &TopicName| described(error.code.number(), asked, Uuid::nil());
    let topics = request.topics.iter().map(|asked| topic(&asked.name)).collect();
    DescribeTopicPartitionsResponse::default().with_topics(topics)
}

fn find<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a Arc<Topic>, ApiError> {
    catalogue::check_name(name)?;
    snapshot.topic(name).ok_or_else(|| ApiError::unknown_topic(name))
}

fn cursor(topic: &str, partition: u32) -> Cursor {
    Cursor::default()
        .with_topic_name(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_partition_index(i32::try_from(partition).unwrap_or(i32::MAX))
}

fn described(code: i16, name: &str, id: Uuid) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic::default()
        .with_error_code(code)
        .with_name(Some(TopicName(StrBytes::from_string(name.to_owned()))))
        .with_topic_id(id)
        .with_topic_authorized_operations(operations::TOPIC)
}

fn partition(shared: &Shared, topic: &Topic, index: u32) -> DescribeTopicPartitionsResponsePartition {
    let node = shared.node();
    let answer = DescribeTopicPartitionsResponsePartition::default()
        .with_partition_index(i32::try_from(index).unwrap_or(i32::MAX))
        .with_replica_nodes(vec![node])
        .with_eligible_leader_replicas(Some(Vec::new()))
        .with_last_known_elr(Some(Vec::new()));
    match shared.partition(topic, index) {
        Ok(reader) => {
            answer.with_leader_id(node).with_leader_epoch(reader.shown_epoch()).with_isr_nodes(vec![node])
        }
        Err(_) => answer
            .with_error_code(ErrorCode::LeaderNotAvailable.number())
            .with_leader_id(BrokerId(-1))
            .with_offline_replicas(vec![node]),
    }
}
