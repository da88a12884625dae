//! Fetch, v4 to v18.
//!
//! - Reads end at the high watermark, with read_committed at the stable offset, and then list the aborted transactions in what
//!   is given (R46). Batches are given whole and as they are stored, from the one that holds the asked offset on (R44).
//! - Long poll: the answer waits until `min_bytes` are there, something is wrong, or `max_wait_ms` is over (the host has a
//!   limit of its own). What is not here ends no wait unless nothing else is asked for. The bytes are bounded per partition
//!   and in all; the very first batch is given whole, however large. All answers together are bounded, too: while readers
//!   are slow to take theirs, others are given less at a time.
//! - From v12 on, a reader that names the epoch it fetched last learns where its history and ours part (R43). On an exact
//!   topic an offset that only the source has yet is 78 (R43b). Leader epochs are fenced (R32).
//! - Fetch sessions (KIP-227): epoch 0 begins one and is answered in full; a session's next epoch is answered with what is
//!   new; -1 ends it. No such session: 70. Another epoch than the next: 71, also if a request of the same session came
//!   while this one waited. Names where the session began with ids, or the other way round: 106.
//! - A partition named twice in a request is 42 the second time, within a session the last one counts; an isolation level
//!   other than 0 and 1 is 42. A topic that is deleted while its reader waits is 3 or 100.
//! - Topics by name, from v13 on by id (unknown: 100, also in a session until it is known). A session that knew the topic
//!   is told 3 once it was deleted, and 103 if there is another of its name. zstd below v10 is 76 (R47).
//! - A client over its quota ([`crate::quotas`]) is answered without records and told to wait, and not read from meanwhile
//!   (KIP-219). It is never given more at once than a window of its quota holds, but for one batch.
//!
//! Left out: preferred replicas, snapshots and current leaders, which one node does not have; followers are readers like
//! others, also where sessions make room for each other.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::fetch_request::{FetchPartition, ForgottenTopic};
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, PartitionData,
};
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse, ProducerId, TopicName};
use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;
use verbatim_wire::error::ErrorCode;
use verbatim_wire::server::{Reply, ReplyFuture, RequestContext};

use crate::errors::ApiError;
use crate::fetch::find::Finder;
use crate::fetch::poll::{Enough, Parts, TopicRef, Wanted, poll};
use crate::fetch::{Ask, IDS_FROM, Part};
use crate::quotas::{Meters, Verdict};
use crate::room::{self, Room};
use crate::sessions::{Changes, Key, Session};
use crate::shared::Shared;
use crate::throttle;

/// The first Fetch version that tells where a reader's history and ours part.
const PARTING_FROM: i16 = 12;
/// The epoch of a request that begins a session.
const FIRST_EPOCH: i32 = 0;
/// The epoch of a request that ends its session, or has none.
const NO_EPOCH: i32 = -1;

/// The reply holds its room until it was written.
pub(super) fn admit(shared: Arc<Shared>, context: RequestContext, request: FetchRequest) -> ReplyFuture {
    room::held(async move {
        let client = context.head.client_id.as_deref().unwrap_or_default();
        let (answer, room) = handle(&shared, context.head.version, client, &request).await;
        let mute = throttle::mute(answer.throttle_time_ms);
        (Reply::Answer(answer.into()).muted(mute), room)
    })
}

async fn handle(
    shared: &Shared,
    version: i16,
    client: &str,
    request: &FetchRequest,
) -> (FetchResponse, Room) {
    let enough = enough(shared, client, request);
    if matches!(request.session_epoch, FIRST_EPOCH | NO_EPOCH) {
        // Whoever asks for everything is done with the session that was.
        shared.sessions.close(request.session_id);
        let begins = request.session_epoch == FIRST_EPOCH;
        return full(shared, version, client, request, enough, begins).await;
    }
    let changes = changes(version, request);
    let next =
        shared.sessions.next(changes, Instant::now(), |session| wanted_by(shared, version, request, session));
    let (turn, wanted) = match next {
        Ok(Some(next)) => next,
        // Everything was forgotten.
        Ok(None) => return full(shared, version, client, request, enough, false).await,
        Err(code) => return (refusal(code, 0), shared.rooms.take(0)),
    };
    let (parts, room) = poll(shared, &wanted, enough).await;
    let id = turn.id();
    let verdict = metered(shared, client, &parts);
    if !verdict.given {
        return (nothing_yet(id, verdict), shared.rooms.take(0));
    }
    match turn.choose(&parts) {
        Ok(chosen) => {
            let chosen = wanted.iter().zip(parts).zip(chosen).filter(|(_, chosen)| *chosen);
            let answer = answer(id, chosen.map(|(part, _)| part));
            (answer.with_throttle_time_ms(verdict.wait_ms), room)
        }
        Err(code) => (refusal(code, id), shared.rooms.take(0)),
    }
}

/// All that the request names, whether there is something new or not.
async fn full(
    shared: &Shared,
    version: i16,
    client: &str,
    request: &FetchRequest,
    enough: Enough,
    begins: bool,
) -> (FetchResponse, Room) {
    let wanted: Arc<[Wanted]> = wanted(shared, version, request).into();
    let (parts, room) = poll(shared, &wanted, enough).await;
    let verdict = metered(shared, client, &parts);
    if !verdict.given {
        return (nothing_yet(0, verdict), shared.rooms.take(0));
    }
    let id = if begins { begin(shared, version, &wanted, &parts) } else { 0 };
    (answer(id, wanted.iter().zip(parts)).with_throttle_time_ms(verdict.wait_ms), room)
}

/// Counts the records for the client's quota.
fn metered(shared: &Shared, client: &str, parts: &Parts) -> Verdict {
    let bytes: usize = parts.iter().flatten().map(|part| part.records.len()).sum();
    let quotas = &shared.catalogue.snapshot().quotas;
    shared.meters.reads(quotas, client, u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// The answer to a client that has to wait before it is given anything.
fn nothing_yet(session_id: i32, verdict: Verdict) -> FetchResponse {
    FetchResponse::default().with_session_id(session_id).with_throttle_time_ms(verdict.wait_ms)
}

fn enough(shared: &Shared, client: &str, request: &FetchRequest) -> Enough {
    let limits = &shared.config.limits;
    let max_bytes = usize::try_from(request.max_bytes).unwrap_or(0).min(limits.fetch_bytes_max);
    let readable = Meters::readable(&shared.catalogue.snapshot().quotas, client);
    let max_bytes =
        readable.map_or(max_bytes, |most| usize::try_from(most).unwrap_or(usize::MAX).min(max_bytes));
    let min_bytes = usize::try_from(request.min_bytes).unwrap_or(0).min(max_bytes.max(1));
    let wait_ms = u64::try_from(request.max_wait_ms).unwrap_or(0).min(limits.fetch_wait_ms_max);
    Enough { max_bytes, min_bytes, until: Instant::now() + Duration::from_millis(wait_ms) }
}

/// The partitions that the request names.
fn wanted(shared: &Shared, version: i16, request: &FetchRequest) -> Vec<Wanted> {
    let committed = super::is_committed(request.isolation_level);
    let (mut finder, mut seen) = (Finder::new(shared), HashSet::new());
    let mut wanted = Vec::new();
    for asked in &request.topics {
        let topic = topic_ref(version, &asked.topic, asked.topic_id);
        let known = finder.topic(&topic).map(|topic| topic.id);
        wanted.extend(asked.partitions.iter().map(|part| {
            let again = known.is_some_and(|id| !seen.insert((id, part.partition)));
            let allowed = if again { Err(named_twice(part.partition)) } else { committed.clone() };
            Wanted {
                topic: topic.clone(),
                index: part.partition,
                ask: ask(version, part, committed == Ok(true)),
                reader: allowed.and_then(|_| finder.partition(&topic, part.partition)),
            }
        }));
    }
    wanted
}

/// The partitions of a session. One whose id was not known may be known by now.
fn wanted_by(shared: &Shared, version: i16, request: &FetchRequest, session: &mut Session) -> Arc<[Wanted]> {
    let committed = super::is_committed(request.isolation_level);
    let mut finder = Finder::new(shared);
    let wanted = session.seen_mut().map(|seen| {
        let Key { topic, index } = &seen.key;
        if seen.name.is_none() {
            seen.name = finder.name(topic);
        }
        let reader =
            committed.clone().and_then(|_| finder.known_partition(topic, seen.name.as_deref(), *index));
        // An older version cannot be told where histories part.
        let last_epoch = if version < PARTING_FROM { -1 } else { seen.ask.last_epoch };
        let ask = Ask { version, last_epoch, committed: committed == Ok(true), ..seen.ask };
        Wanted { topic: topic.clone(), index: *index, ask, reader }
    });
    wanted.collect()
}

/// Begins a session with what its reader is told now; its id, or 0 if there is no room.
fn begin(shared: &Shared, version: i16, wanted: &[Wanted], parts: &Parts) -> i32 {
    let size = wanted.iter().map(|one| Session::size_of(&one.topic)).sum();
    shared.sessions.open(size, Instant::now(), || {
        let mut session = Session::new(version >= IDS_FROM);
        let mut finder = Finder::new(shared);
        let mut kept: Option<(&TopicRef, TopicRef)> = None;
        // What is not here is read last, once it is.
        for absent in [false, true] {
            for (one, part) in wanted.iter().zip(parts).filter(|(one, _)| one.is_absent() == absent) {
                let topic = match &kept {
                    Some((same, topic)) if **same == one.topic => topic.clone(),
                    _ => kept.insert((&one.topic, own(&one.topic))).1.clone(),
                };
                let name = finder.name(&topic);
                session.add(Key { topic, index: one.index }, one.ask, name, part);
            }
        }
        session
    })
}

fn changes(version: i16, request: &FetchRequest) -> Changes {
    let asked = request.topics.iter().flat_map(|asked| {
        let topic = own(&topic_ref(version, &asked.topic, asked.topic_id));
        // The isolation level is each request's own.
        let one = move |part: &FetchPartition| {
            (Key { topic: topic.clone(), index: part.partition }, ask(version, part, false))
        };
        asked.partitions.iter().map(one)
    });
    let forgotten = request.forgotten_topics_data.iter().flat_map(|forgotten: &ForgottenTopic| {
        let topic = topic_ref(version, &forgotten.topic, forgotten.topic_id);
        forgotten.partitions.iter().map(move |index| Key { topic: topic.clone(), index: *index })
    });
    Changes {
        session_id: request.session_id,
        epoch: request.session_epoch,
        by_id: version >= IDS_FROM,
        asked: asked.collect(),
        forgotten: forgotten.collect(),
    }
}

fn topic_ref(version: i16, name: &TopicName, id: uuid::Uuid) -> TopicRef {
    if version >= IDS_FROM { TopicRef::Id(id) } else { TopicRef::Name(name.0.clone()) }
}

/// A name of a request is a slice of its frame, which a session must not keep.
fn own(topic: &TopicRef) -> TopicRef {
    match topic {
        TopicRef::Name(name) => TopicRef::Name(StrBytes::from_string(name.to_string())),
        TopicRef::Id(id) => TopicRef::Id(*id),
    }
}

/// Whoever asks for the same bytes again and again would have this host read without end.
fn named_twice(partition: i32) -> ApiError {
    let text = format!("a request may name a partition once, partition=`{partition}`");
    ApiError::new(ErrorCode::InvalidRequest, text)
}

fn ask(version: i16, part: &FetchPartition, committed: bool) -> Ask {
    Ask {
        version,
        current_epoch: part.current_leader_epoch,
        offset: part.fetch_offset,
        last_epoch: part.last_fetched_epoch,
        max_bytes: usize::try_from(part.partition_max_bytes).unwrap_or(0),
        committed,
    }
}

fn refusal(code: ErrorCode, session_id: i32) -> FetchResponse {
    FetchResponse::default().with_error_code(code.number()).with_session_id(session_id)
}

/// Partitions of one topic that follow each other are given together.
fn answer<'a>(
    session_id: i32,
    parts: impl Iterator<Item = (&'a Wanted, Result<Part, ApiError>)>,
) -> FetchResponse {
    let mut topics: Vec<FetchableTopicResponse> = Vec::new();
    let mut last: Option<&TopicRef> = None;
    for (wanted, part) in parts {
        if last != Some(&wanted.topic) {
            last = Some(&wanted.topic);
            let topic = FetchableTopicResponse::default();
            topics.push(match &wanted.topic {
                TopicRef::Name(name) => topic.with_topic(TopicName(name.clone())),
                TopicRef::Id(id) => topic.with_topic_id(*id),
            });
        }
        if let Some(topic) = topics.last_mut() {
            topic.partitions.push(answered(wanted.index, part));
        }
    }
    FetchResponse::default().with_session_id(session_id).with_responses(topics)
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
