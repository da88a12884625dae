//! Fetch, v4 to v18.
//!
//! - Reads end at the high watermark, with read_committed at the stable offset, and then list the aborted transactions in what
//!   is given (R46). Batches are given whole and as they are stored, from the one that holds the asked offset on (R44).
//! - Long poll: the answer waits until `min_bytes` are there, something is wrong, or `max_wait_ms` is over (the host has a
//!   limit of its own). The bytes are bounded per partition and in all; the very first batch is given whole, however large.
//!   All answers together are bounded, too: while readers are slow to take theirs, others are given less at a time.
//! - From v12 on, a reader that names the epoch it fetched last learns where its history and ours part (R43). On an exact
//!   topic an offset that only the source has yet is 78 (R43b). Leader epochs are fenced (R32).
//! - A partition named twice in a request is 42 the second time; so is an isolation level other than 0 and 1. A topic that is
//!   deleted while its reader waits is 3 or 100.
//! - Topics by name, from v13 on by id (unknown: 100). zstd below v10 is 76 (R47).
//!
//! Left out: fetch sessions (KIP-227): every answer is a full one with session id 0, and a request that names a session is
//! 70; preferred replicas, snapshots and current leaders, which one node does not have; followers are readers like others.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, PartitionData,
};
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse, ProducerId};
use tokio::sync::Notify;
use tokio::time::Instant;
use verbatim_wire::error::ErrorCode;
use verbatim_wire::server::{Reply, ReplyFuture};

use crate::catalogue::{Snapshot, Topic};
use crate::errors::ApiError;
use crate::fetch::{self, Ask, IDS_FROM, Part, Ruled};
use crate::partition::Reader;
use crate::room::{self, Room};
use crate::shared::Shared;

/// One partition of the request: where to read and what, or why not.
#[derive(Clone)]
struct Wanted {
    index: i32,
    ask: Ask,
    reader: Result<Arc<Reader>, ApiError>,
}

type Parts = Vec<Result<Part, ApiError>>;

/// The reply holds its room until it was written.
pub(super) fn admit(shared: Arc<Shared>, version: i16, request: FetchRequest) -> ReplyFuture {
    room::held(async move {
        let (answer, room) = handle(&shared, version, request).await;
        (Reply::Answer(answer.into()), room)
    })
}

async fn handle(shared: &Shared, version: i16, request: FetchRequest) -> (FetchResponse, Room) {
    if request.session_id != 0 {
        let refused = FetchResponse::default().with_error_code(ErrorCode::FetchSessionIdNotFound.number());
        return (refused, shared.rooms.take(0));
    }
    let snapshot = shared.catalogue.snapshot();
    let committed = super::is_committed(request.isolation_level);
    let (mut topics, mut wanted, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for asked in request.topics {
        let topic =
            committed.as_ref().map_err(ApiError::clone).and_then(|_| find(&snapshot, version, &asked));
        let FetchTopic { topic: name, topic_id, partitions, .. } = asked;
        topics.push((name, topic_id, partitions.len()));
        wanted.extend(partitions.iter().map(|part| {
            let again = topic.as_ref().is_ok_and(|topic| !seen.insert((topic.id, part.partition)));
            let topic = if again { Err(named_twice(part.partition)) } else { topic.clone() };
            want(shared, &topic, part, version, committed == Ok(true))
        }));
    }
    let max_bytes = usize::try_from(request.max_bytes).unwrap_or(0).min(shared.config.limits.fetch_bytes_max);
    let min_bytes = usize::try_from(request.min_bytes).unwrap_or(0).min(max_bytes.max(1));
    let wait_ms = u64::try_from(request.max_wait_ms).unwrap_or(0).min(shared.config.limits.fetch_wait_ms_max);
    let until = Instant::now() + Duration::from_millis(wait_ms);
    let enough = Enough { max_bytes, min_bytes, until };
    let (parts, room) = poll(shared, &Arc::from(wanted.as_slice()), enough).await;
    let mut answers =
        wanted.iter().map(|wanted| wanted.index).zip(parts).map(|(index, part)| answered(index, part));
    let topics = topics.into_iter().map(|(name, id, count)| {
        let partitions = answers.by_ref().take(count).collect();
        FetchableTopicResponse::default().with_topic(name).with_topic_id(id).with_partitions(partitions)
    });
    (FetchResponse::default().with_responses(topics.collect()), room)
}

/// Whoever asks for the same bytes again and again would have this host read without end.
fn named_twice(partition: i32) -> ApiError {
    let text = format!("a request may name a partition once, partition=`{partition}`");
    ApiError::new(ErrorCode::InvalidRequest, text)
}

fn find<'a>(snapshot: &'a Snapshot, version: i16, asked: &FetchTopic) -> Result<&'a Topic, ApiError> {
    let found = if version >= IDS_FROM {
        snapshot.topic_by_id(asked.topic_id).ok_or_else(|| ApiError::unknown_topic_id(asked.topic_id))
    } else {
        snapshot.topic(&asked.topic).ok_or_else(|| ApiError::unknown_topic(&asked.topic))
    };
    found.map(Arc::as_ref)
}

fn want(
    shared: &Shared,
    topic: &Result<&Topic, ApiError>,
    part: &FetchPartition,
    version: i16,
    committed: bool,
) -> Wanted {
    let ask = Ask {
        version,
        current_epoch: part.current_leader_epoch,
        offset: part.fetch_offset,
        last_epoch: part.last_fetched_epoch,
        max_bytes: usize::try_from(part.partition_max_bytes).unwrap_or(0),
        committed,
    };
    let reader = topic.clone().and_then(|topic| shared.find(topic, part.partition));
    Wanted { index: part.partition, ask, reader }
}

/// When a Fetch is answered.
#[derive(Clone, Copy)]
struct Enough {
    max_bytes: usize,
    min_bytes: usize,
    until: Instant,
}

/// Reads until there is enough, something is wrong, time is over, or the host shuts down.
async fn poll(shared: &Shared, wanted: &Arc<[Wanted]>, enough: Enough) -> (Parts, Room) {
    let waiter = Arc::new(Notify::new());
    loop {
        // Before reading: a change in between keeps its permit.
        let watching = Watching::begin(wanted, &waiter);
        let mut room = shared.rooms.take(enough.max_bytes);
        let parts = read_all(wanted, enough.max_bytes.min(room.bytes())).await;
        // What there is no room for is not waited for.
        let is_enough = is_enough(&parts, enough.min_bytes.min(room.bytes().max(1)));
        room.shrink(parts.iter().flatten().map(|part| part.records.len()).sum());
        if is_enough {
            return (parts, room);
        }
        tokio::select! {
            () = waiter.notified() => drop((watching, parts, room)),
            () = tokio::time::sleep_until(enough.until) => return (parts, room),
            () = shared.stopping.cancelled() => return (parts, room),
        }
    }
}

/// A waiter on the list of every partition; off it when dropped, also when the client goes away.
struct Watching<'a> {
    wanted: &'a [Wanted],
    waiter: &'a Arc<Notify>,
}

impl<'a> Watching<'a> {
    fn begin(wanted: &'a [Wanted], waiter: &'a Arc<Notify>) -> Self {
        for reader in wanted.iter().filter_map(|one| one.reader.as_ref().ok()) {
            reader.watch(waiter);
        }
        Self { wanted, waiter }
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        for reader in self.wanted.iter().filter_map(|one| one.reader.as_ref().ok()) {
            reader.unwatch(self.waiter);
        }
    }
}

fn is_enough(parts: &Parts, min_bytes: usize) -> bool {
    let told = |part: &Result<Part, ApiError>| part.as_ref().map_or(true, |part| part.diverging.is_some());
    let bytes: usize =
        parts.iter().filter_map(|part| part.as_ref().ok()).map(|part| part.records.len()).sum();
    bytes >= min_bytes || parts.iter().any(told)
}

async fn read_all(wanted: &Arc<[Wanted]>, max_bytes: usize) -> Parts {
    let ruled: Vec<_> = wanted
        .iter()
        .map(|one| one.reader.clone().and_then(|reader| fetch::rule(&reader, one.ask)))
        .collect();
    if !ruled.iter().any(|ruled| matches!(ruled, Ok(Ruled::Read(_)))) {
        return ruled.into_iter().map(|ruled| ruled.and_then(nothing_to_read)).collect();
    }
    let shared = Arc::clone(wanted);
    // The disk may be slow: it is read off the connections' threads.
    let reading = tokio::task::spawn_blocking(move || read_blocking(&shared, ruled, max_bytes));
    match reading.await {
        Ok(parts) => parts,
        Err(error) => {
            let error = ApiError::new(ErrorCode::UnknownServerError, error.to_string());
            wanted.iter().map(|_| Err(error.clone())).collect()
        }
    }
}

fn nothing_to_read(ruled: Ruled) -> Result<Part, ApiError> {
    match ruled {
        Ruled::Done(part) => Ok(part),
        Ruled::Read(_) => Err(ApiError::new(ErrorCode::UnknownServerError, "a read was left out")),
    }
}

fn read_blocking(wanted: &[Wanted], ruled: Vec<Result<Ruled, ApiError>>, max_bytes: usize) -> Parts {
    let (mut left, mut first) = (max_bytes, true);
    let mut parts = Vec::with_capacity(wanted.len());
    for (one, ruled) in wanted.iter().zip(ruled) {
        let part = match (ruled, &one.reader) {
            (Ok(Ruled::Done(part)), _) => Ok(part),
            (Ok(Ruled::Read(bound)), Ok(reader)) => {
                let ask = Ask { max_bytes: one.ask.max_bytes.min(left), ..one.ask };
                fetch::read(reader, ask, bound, first)
            }
            (Err(error), _) => Err(error),
            (_, Err(error)) => Err(error.clone()),
        };
        let bytes = part.as_ref().map_or(0, |part| part.records.len());
        left = left.saturating_sub(bytes);
        first &= bytes == 0;
        parts.push(part);
    }
    parts
}

fn answered(index: i32, part: Result<Part, ApiError>) -> PartitionData {
    let answer =
        PartitionData::default().with_partition_index(index).with_preferred_read_replica(BrokerId(-1));
    match part {
        Ok(part) => {
            let diverging = part.diverging.map_or_else(EpochEndOffset::default, |answer| {
                EpochEndOffset::default().with_epoch(answer.epoch).with_end_offset(answer.end)
            });
            let aborted = part.aborted.map(|list| list.into_iter().map(transaction).collect());
            answer
                .with_high_watermark(part.view.high_watermark)
                .with_last_stable_offset(part.view.stable_offset)
                .with_log_start_offset(part.view.start)
                .with_diverging_epoch(diverging)
                .with_aborted_transactions(aborted)
                .with_records(Some(part.records))
        }
        Err(error) => answer
            .with_error_code(error.code.number())
            .with_high_watermark(-1)
            .with_last_stable_offset(-1)
            .with_log_start_offset(-1)
            .with_aborted_transactions(None)
            .with_records(Some(bytes::Bytes::new())),
    }
}

fn transaction(aborted: verbatim_log::AbortedTransaction) -> AbortedTransaction {
    AbortedTransaction::default()
        .with_producer_id(ProducerId(aborted.producer_id))
        .with_first_offset(aborted.first_offset)
}
