//! DescribeProducers, v0.
//!
//! - Producers that a partition remembers: id, epoch, last sequence (-1 before its first batch), last timestamp, epoch of the
//!   coordinator that wrote its last marker, and where its open transaction began (-1 without one). Sorted by id. On an
//!   exact topic they are the source's.
//! - Read on the partition's append thread, so that every write that was answered is seen.
//! - Unknown topics and partitions are 3, illegal names 17, offline partitions 56, each with a text. A partition named
//!   several times is told once.
//!
//! Left out: nothing.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use kafka_protocol::messages::{DescribeProducersRequest, DescribeProducersResponse, ProducerId, TopicName};
use verbatim_contract::ProducerState as Remembered;

use crate::append::Worker;
use crate::catalogue::{self, Snapshot};
use crate::errors::{self, ApiError};
use crate::shared::{PartitionId, Shared};

pub(super) async fn handle(shared: &Shared, request: DescribeProducersRequest) -> DescribeProducersResponse {
    let mut wanted: BTreeMap<TopicName, BTreeSet<i32>> = BTreeMap::new();
    for topic in request.topics {
        wanted.entry(topic.name).or_default().extend(topic.partition_indexes);
    }
    let snapshot = shared.catalogue.snapshot();
    let mut topics = Vec::with_capacity(wanted.len());
    for (name, indices) in wanted {
        let mut partitions = Vec::with_capacity(indices.len());
        for index in indices {
            let producers = producers(shared, &snapshot, &name, index).await;
            let (code, text) = errors::fields(&producers);
            let answer = PartitionResponse::default().with_partition_index(index);
            partitions.push(
                answer
                    .with_error_code(code)
                    .with_error_message(text)
                    .with_active_producers(producers.unwrap_or_default()),
            );
        }
        topics.push(TopicResponse::default().with_name(name).with_partitions(partitions));
    }
    DescribeProducersResponse::default().with_topics(topics)
}

async fn producers(
    shared: &Shared,
    snapshot: &Snapshot,
    name: &str,
    index: i32,
) -> Result<Vec<ProducerState>, ApiError> {
    catalogue::check_name(name)?;
    let topic = snapshot.topic(name).ok_or_else(|| ApiError::unknown_topic(name))?;
    shared.find(topic, index)?;
    let id = PartitionId { topic: topic.id, index: u32::try_from(index).unwrap_or(0) };
    shared.appender(id).call(move |worker| worker.describe_producers(id)).await?
}

impl Worker {
    fn describe_producers(&mut self, id: PartitionId) -> Result<Vec<ProducerState>, ApiError> {
        let log = self.online(id)?.log();
        let mut producers: Vec<_> = log.producers().map(|(id, state)| told(id, state)).collect();
        producers.sort_unstable_by_key(|producer| producer.producer_id);
        Ok(producers)
    }
}

fn told(id: i64, state: &Remembered) -> ProducerState {
    ProducerState::default()
        .with_producer_id(ProducerId(id))
        .with_producer_epoch(i32::from(state.producer_epoch))
        .with_last_sequence(state.last().last_sequence)
        .with_last_timestamp(state.last_timestamp)
        .with_coordinator_epoch(state.coordinator_epoch)
        .with_current_txn_start_offset(state.open_transaction.unwrap_or(-1))
}
