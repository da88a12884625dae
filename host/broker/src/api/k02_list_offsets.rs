//! ListOffsets, v1 to v10.
//!
//! - Timestamps: -1 the end (the high watermark, with read_committed the stable offset), -2 the start, -3 the record with the
//!   largest timestamp (KIP-734, v7 on), -4 the local start (the same as -2, v8 on), -5 the tiered end (there is none: -1,
//!   v9 on); from 0 on the first record at or after that time. Anything else, or one too new for the request's version, is
//!   35, UNSUPPORTED_VERSION, for that partition, as in Kafka.
//! - With read_committed a record above the stable offset is not told, and no other one in its stead: -3 finds nothing while
//!   the record with the largest timestamp is of an open transaction or behind one, as in Kafka.
//! - R45: the start carries the epoch that covers it, a found record its batch's epoch, the end the shown epoch. Where
//!   nothing is found offset, timestamp and epoch are -1.
//! - R32: a current leader epoch below or above the shown one is 74 or 75.
//! - A partition named twice in a request is 42 the second time; so is an isolation level other than 0 and 1.
//!
//! Left out: the timeout (v10) is not looked at, since nothing is tiered.

use std::collections::HashSet;
use std::sync::Arc;

use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};
use verbatim_log::{LogError, TimestampHit, View};
use verbatim_wire::error::ErrorCode;

use crate::catalogue::Topic;
use crate::errors::ApiError;
use crate::partition::Reader;
use crate::shared::Shared;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;

/// The stand-ins for a time, each with the first version that has it.
const STAND_INS: [(i64, i16); 5] =
    [(LATEST, 1), (EARLIEST, 1), (MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9)];

const NOWHERE: TimestampHit = TimestampHit { offset: -1, timestamp: -1, leader_epoch: -1 };

/// The first version that tells leader epochs; in others they cannot be said.
const EPOCHS_FROM: i16 = 4;

pub(super) async fn handle(
    shared: &Shared,
    version: i16,
    request: ListOffsetsRequest,
) -> ListOffsetsResponse {
    let snapshot = shared.catalogue.snapshot();
    let committed = super::is_committed(request.isolation_level);
    let mut seen = HashSet::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for asked in request.topics {
        let topic = committed.clone().and_then(|committed| {
            let topic = snapshot.topic(&asked.name).ok_or_else(|| ApiError::unknown_topic(&asked.name))?;
            Ok((topic, committed))
        });
        let mut partitions = Vec::with_capacity(asked.partitions.len());
        for partition in &asked.partitions {
            let found = match &topic {
                Ok((topic, _)) if !seen.insert((topic.id, partition.partition_index)) => {
                    Err(ApiError::new(ErrorCode::InvalidRequest, "a request may name a partition once"))
                }
                Ok((topic, committed)) => find(shared, version, topic, partition, *committed).await,
                Err(error) => Err(error.clone()),
            };
            partitions.push(answered(version, partition, found));
        }
        topics.push(ListOffsetsTopicResponse::default().with_name(asked.name).with_partitions(partitions));
    }
    ListOffsetsResponse::default().with_topics(topics)
}

async fn find(
    shared: &Shared,
    version: i16,
    topic: &Topic,
    asked: &ListOffsetsPartition,
    committed: bool,
) -> Result<TimestampHit, ApiError> {
    let reader = shared.find(topic, asked.partition_index)?;
    let view = reader.view();
    super::check_leader_epoch(&view, asked.current_leader_epoch)?;
    check_timestamp(version, asked.timestamp)?;
    let bound = if committed { view.stable_offset } else { view.high_watermark };
    match asked.timestamp {
        LATEST => Ok(TimestampHit { offset: bound, leader_epoch: view.shown_epoch, ..NOWHERE }),
        EARLIEST | EARLIEST_LOCAL => {
            Ok(TimestampHit { offset: view.start, leader_epoch: start_epoch(&view), ..NOWHERE })
        }
        LATEST_TIERED => Ok(NOWHERE),
        timestamp => {
            let hit = search(shared, reader, timestamp, view.high_watermark).await?;
            Ok(hit.filter(|hit| hit.offset < bound).unwrap_or(NOWHERE))
        }
    }
}

fn check_timestamp(version: i16, timestamp: i64) -> Result<(), ApiError> {
    if timestamp >= 0 || STAND_INS.iter().any(|(known, from)| *known == timestamp && version >= *from) {
        return Ok(());
    }
    let text = format!("this timestamp means nothing in v{version}, timestamp=`{timestamp}`");
    Err(ApiError::new(ErrorCode::UnsupportedVersion, text))
}

/// The epoch that covers the start; the first one of all if the history begins above it.
fn start_epoch(view: &View) -> i32 {
    let first = || view.epochs.entries().first().map(|entry| entry.epoch);
    view.epochs.at(view.start).or_else(first).unwrap_or(-1)
}

/// Reads stored batches, so it stays off the connections' threads; a few at a time, since each may inflate a batch.
async fn search(
    shared: &Shared,
    reader: Arc<Reader>,
    timestamp: i64,
    bound: i64,
) -> Result<Option<TimestampHit>, ApiError> {
    let limit = shared.config.limits.inflate_bytes_max;
    let turn = Arc::clone(&shared.searches).acquire_owned().await;
    let turn = turn.map_err(|error| ApiError::new(ErrorCode::UnknownServerError, error.to_string()))?;
    let searching = tokio::task::spawn_blocking(move || -> Result<Option<TimestampHit>, LogError> {
        // Kept to the end, also if nobody waits for it any more.
        let _turn = turn;
        let inflate = |codec, payload: &[u8]| super::inflate(codec, payload, limit);
        if timestamp == MAX_TIMESTAMP {
            reader.log.max_timestamp(bound, &inflate)
        } else {
            reader.log.offset_for_timestamp(timestamp, bound, &inflate)
        }
    });
    let found =
        searching.await.map_err(|error| ApiError::new(ErrorCode::UnknownServerError, error.to_string()))?;
    found.map_err(|error| {
        tracing::error!(%error, "searching by timestamp failed");
        ApiError::storage(error.to_string())
    })
}

fn answered(
    version: i16,
    asked: &ListOffsetsPartition,
    found: Result<TimestampHit, ApiError>,
) -> ListOffsetsPartitionResponse {
    let (code, hit) = match found {
        Ok(hit) => (0, hit),
        Err(error) => (error.code.number(), NOWHERE),
    };
    ListOffsetsPartitionResponse::default()
        .with_partition_index(asked.partition_index)
        .with_error_code(code)
        .with_offset(hit.offset)
        .with_timestamp(hit.timestamp)
        .with_leader_epoch(if version >= EPOCHS_FROM { hit.leader_epoch } else { -1 })
}
