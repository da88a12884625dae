//! DescribeLogDirs, v1 to v4.
//!
//! - There is one folder of data, told by its absolute path, with the size of its volume and the bytes left on it (v4).
//! - A partition's size is that of its segments, indexes not counted. Null topics mean all partitions; of those named that
//!   are not here nothing is said, as in Kafka. A partition that is named several times is told once.
//! - The lag of one's own log is 0 and there are no future logs: one node has one replica.
//!
//! Left out: partitions that could not be opened when the host started.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::catalogue::Topic;
use crate::shared::Shared;

/// What is told of a volume that does not tell.
const UNKNOWN_BYTES: i64 = -1;

pub(super) async fn handle(shared: &Shared, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse {
    let data = std::path::absolute(&shared.config.data).unwrap_or_else(|_| shared.config.data.clone());
    let shown = StrBytes::from_string(data.display().to_string());
    // A file system may take its time: it is asked off the connections' threads.
    let volume = tokio::task::spawn_blocking(move || volume(&data)).await;
    let (total, usable) = volume.unwrap_or((UNKNOWN_BYTES, UNKNOWN_BYTES));
    let folder = DescribeLogDirsResult::default()
        .with_log_dir(shown)
        .with_topics(topics(shared, request.topics))
        .with_total_bytes(total)
        .with_usable_bytes(usable);
    DescribeLogDirsResponse::default().with_results(vec![folder])
}

/// Bytes of the volume, and those that are left for this process.
fn volume(data: &Path) -> (i64, i64) {
    match rustix::fs::statvfs(data) {
        Ok(volume) => {
            let bytes =
                |blocks: u64| i64::try_from(blocks.saturating_mul(volume.f_frsize)).unwrap_or(i64::MAX);
            (bytes(volume.f_blocks), bytes(volume.f_bavail))
        }
        Err(error) => {
            tracing::warn!(data = %data.display(), %error, "the volume does not tell its size");
            (UNKNOWN_BYTES, UNKNOWN_BYTES)
        }
    }
}

fn topics(shared: &Shared, asked: Option<Vec<DescribableLogDirTopic>>) -> Vec<DescribeLogDirsTopic> {
    let snapshot = shared.catalogue.snapshot();
    let Some(asked) = asked else {
        return snapshot.visible().map(|topic| described(shared, topic, 0..topic.partitions)).collect();
    };
    let mut wanted: BTreeMap<TopicName, BTreeSet<u32>> = BTreeMap::new();
    for topic in asked {
        let indices = topic.partitions.iter().filter_map(|index| u32::try_from(*index).ok());
        wanted.entry(topic.topic).or_default().extend(indices);
    }
    let found = wanted.into_iter().filter_map(|(name, indices)| Some((snapshot.topic(&name)?, indices)));
    found
        .map(|(topic, indices)| {
            described(shared, topic, indices.into_iter().filter(|index| *index < topic.partitions))
        })
        .collect()
}

fn described(shared: &Shared, topic: &Topic, indices: impl Iterator<Item = u32>) -> DescribeLogDirsTopic {
    let partition = |index: u32| {
        let reader = shared.opened(topic, index).ok()?;
        Some(
            DescribeLogDirsPartition::default()
                .with_partition_index(i32::try_from(index).unwrap_or(i32::MAX))
                .with_partition_size(i64::try_from(reader.log.size()).unwrap_or(i64::MAX)),
        )
    };
    DescribeLogDirsTopic::default()
        .with_name(TopicName(StrBytes::from_string(topic.name.clone())))
        .with_partitions(indices.filter_map(partition).collect())
}
