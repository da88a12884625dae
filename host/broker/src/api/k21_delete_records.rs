//! DeleteRecords, v0 to v2.
//!
//! - Moves a partition's start up to the offset, durably before the answer; whole segments below it go at once. -1 stands for
//!   the high watermark. The start may come to lie inside a batch, which is kept whole.
//! - At or below the start nothing changes. Above the high watermark, or below -1, is 1, OFFSET_OUT_OF_RANGE. The answer tells
//!   the start, -1 with an error.
//! - An exact topic (its source deletes) and a topic that is only compacted are 44, POLICY_VIOLATION; an offline partition
//!   is 56.
//! - A partition named several times is answered once; its last offset counts, as in Kafka.
//!
//! Left out: the timeout is not looked at, since no follower is waited for.

use std::collections::BTreeMap;

use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse, TopicName};
use tokio::sync::oneshot;
use verbatim_wire::error::ErrorCode;

use crate::append::{Worker, report};
use crate::catalogue::{Snapshot, Topic};
use crate::errors::ApiError;
use crate::properties;
use crate::settings;
use crate::shared::{PartitionId, Shared};

/// Stands for the high watermark.
const HIGH_WATERMARK: i64 = -1;
/// Told instead of a start where there is an error.
const NO_START: i64 = -1;

/// What comes of one partition: its start.
type Moved = Result<i64, ApiError>;

pub(super) async fn handle(shared: &Shared, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
    let mut wanted: BTreeMap<TopicName, BTreeMap<i32, i64>> = BTreeMap::new();
    for topic in request.topics {
        let offsets = topic.partitions.iter().map(|part| (part.partition_index, part.offset));
        wanted.entry(topic.name).or_default().extend(offsets);
    }
    let snapshot = shared.catalogue.snapshot();
    let mut moving = Vec::with_capacity(wanted.len());
    for (name, offsets) in wanted {
        let mut parts = Vec::with_capacity(offsets.len());
        for (index, offset) in offsets {
            parts.push((index, begin(shared, &snapshot, &name, index, offset).await));
        }
        moving.push((name, parts));
    }
    let mut topics = Vec::with_capacity(moving.len());
    for (name, parts) in moving {
        let mut partitions = Vec::with_capacity(parts.len());
        for (index, begun) in parts {
            partitions.push(answered(index, finished(begun).await));
        }
        topics.push(DeleteRecordsTopicResult::default().with_name(name).with_partitions(partitions));
    }
    DeleteRecordsResponse::default().with_topics(topics)
}

async fn begin(
    shared: &Shared,
    snapshot: &Snapshot,
    name: &str,
    index: i32,
    offset: i64,
) -> Result<oneshot::Receiver<Moved>, ApiError> {
    let topic = snapshot.topic(name).ok_or_else(|| ApiError::unknown_topic(name))?;
    shared.find_for_writing(topic, index)?;
    let id = PartitionId { topic: topic.id, index: u32::try_from(index).unwrap_or(0) };
    shared.appender(id).begin(move |worker| worker.delete_records(id, offset)).await
}

async fn finished(begun: Result<oneshot::Receiver<Moved>, ApiError>) -> Moved {
    begun?.await.unwrap_or_else(|_| Err(ApiError::storage("the host is shutting down")))
}

fn answered(index: i32, moved: Moved) -> DeleteRecordsPartitionResult {
    let (code, start) = match moved {
        Ok(start) => (0, start),
        Err(error) => {
            // This answer has no room for a text.
            tracing::debug!(partition = index, %error, "records are not deleted");
            (error.code.number(), NO_START)
        }
    };
    let answer = DeleteRecordsPartitionResult::default().with_partition_index(index);
    answer.with_low_watermark(start).with_error_code(code)
}

impl Worker {
    /// Moves a partition's start to `to`, or to the high watermark; the start afterwards.
    fn delete_records(&mut self, id: PartitionId, to: i64) -> Moved {
        let partition = self.online(id)?;
        check_policy(partition.topic())?;
        let position = partition.log().position();
        let to = if to == HIGH_WATERMARK { position.high_watermark } else { to };
        if !(0..=position.high_watermark).contains(&to) {
            let text = format!("offset must be -1 to {}, offset=`{to}`", position.high_watermark);
            return Err(ApiError::new(ErrorCode::OffsetOutOfRange, text));
        }
        if to > position.start {
            let moved = partition.log_mut().advance_start(to);
            moved.map_err(|error| report(partition.topic(), id, &error))?;
            partition.reader().wake();
        }
        Ok(partition.log().position().start)
    }
}

fn check_policy(topic: &Topic) -> Result<(), ApiError> {
    if topic.is_exact_on_disk() {
        let text =
            format!("records of an exact topic are deleted by its source only, topic=`{}`", topic.name);
        return Err(ApiError::policy(text));
    }
    let policy = settings::text(&topic.values, "cleanup.policy");
    let has = |asked: &str| properties::items(policy).any(|word| word == asked);
    if has("compact") && !has("delete") {
        let text = format!(
            "records of a topic that is only compacted are not deleted, topic=`{}`, cleanup.policy=`{policy}`",
            topic.name
        );
        return Err(ApiError::policy(text));
    }
    Ok(())
}
