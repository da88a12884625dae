//! Produce, served v3 to v13, advertised from v0 (librdkafka compresses only for a broker that claims v0).
//!
//! - Each partition's part is split into batches by length, checksummed and queued on the partition's append thread, in the
//!   order of the requests; one connection may have many requests under way. What is accepted and why not is the module's
//!   judgement (the admission rules); codes, texts and batch indices (v8 on) go back per partition, so that a request can
//!   succeed in part.
//! - For the request as a whole: acks other than -1, 0, 1 are 21; unknown topics are 3 by name, 100 by id (v13).
//! - acks = 0 is never answered; if something failed the connection is closed, as in Kafka.
//! - Tag 12486 on a partition entry (v9 on) makes an exact write. One that cannot be read is 42. The answer's tag, on success
//!   and on refusal, tells end, shown epoch, last entry's epoch and the first diverged offset, but only to those who sent one.
//! - The base offset is that of the first batch, where it was stored first if it is a repetition; -1 without batches. The log
//!   append time is told for what was stamped now, not for repetitions.
//! - After failures of the module (56) the throttle time doubles from answer to answer, up to the host's limit;
//!   the connection is not read from meanwhile (KIP-219). So it is with a client over its quota ([`crate::quotas`]), whose
//!   records are taken all the same; of both waits the longer counts.
//!
//! Left out: transactional batches are refused by the module (53), since there is no transaction coordinator; the timeout is
//! not looked at, since no follower is waited for; current leader and node endpoints (v10) are not needed with one node.

use std::sync::Arc;

use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::oneshot;
use verbatim_contract::Request;
use verbatim_engine::Incoming;
use verbatim_wire::Response;
use verbatim_wire::error::ErrorCode;
use verbatim_wire::server::{Reply, ReplyFuture, RequestContext};
use verbatim_wire::tag::{self, AnswerTag, RequestTag, TagError};

use crate::catalogue::{Snapshot, Topic};
use crate::errors::ApiError;
use crate::partition::{self, Reader};
use crate::produce::{Outcome, Refused, Submission};
use crate::shared::{PartitionId, Shared};
use crate::throttle::{self, Client};

/// The version in which topics are named by id.
const IDS_FROM: i16 = 13;

/// A partition's answer in the making.
enum Waiting {
    Ready(Outcome),
    Judged(oneshot::Receiver<Outcome>),
}

/// A topic's answer in the making.
struct TopicAnswers {
    answer: TopicProduceResponse,
    partitions: Vec<(i32, Waiting)>,
}

/// What all partitions of the request have in common.
#[derive(Clone, Copy)]
struct Common {
    acks: i16,
    version: i16,
    transactional: bool,
    now_ms: i64,
}

/// Queues every part of the request; the future waits for what comes of them.
pub(super) async fn admit(
    shared: &Arc<Shared>,
    context: RequestContext,
    request: ProduceRequest,
) -> ReplyFuture {
    let common = Common {
        acks: request.acks,
        version: context.head.version,
        transactional: request.transactional_id.is_some(),
        now_ms: super::now_ms(),
    };
    let snapshot = shared.catalogue.snapshot();
    let bytes = records_bytes(&request);
    let mut topics = Vec::with_capacity(request.topic_data.len());
    for data in request.topic_data {
        topics.push(queue_topic(shared, &snapshot, common, data).await);
    }
    let shared = Arc::clone(shared);
    let name = context.head.client_id.map(|id| id.to_string()).unwrap_or_default();
    let address = context.peer.ip();
    Box::pin(async move {
        let (reply, failed_ms) = answer(&shared, (address, &name), common.acks, topics).await;
        let quota_ms = shared.meters.wrote(&shared.catalogue.snapshot().quotas, &name, bytes);
        throttled(reply, failed_ms.max(quota_ms))
    })
}

/// Bytes of all records, which count for the client's quota.
fn records_bytes(request: &ProduceRequest) -> u64 {
    let parts = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
    let bytes: usize = parts.filter_map(|part| part.records.as_ref()).map(|records| records.len()).sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Tells the client to wait, and takes nothing from it meanwhile.
fn throttled(reply: Reply, wait_ms: i32) -> Reply {
    let reply = match reply {
        Reply::Answer(Response::Produce(answer)) => {
            Reply::Answer(answer.with_throttle_time_ms(wait_ms).into())
        }
        other => other,
    };
    reply.muted(throttle::mute(wait_ms))
}

async fn queue_topic(
    shared: &Shared,
    snapshot: &Snapshot,
    common: Common,
    data: TopicProduceData,
) -> TopicAnswers {
    let found = if common.version >= IDS_FROM {
        snapshot.topic_by_id(data.topic_id).ok_or_else(|| ApiError::unknown_topic_id(data.topic_id))
    } else {
        snapshot.topic(&data.name).ok_or_else(|| ApiError::unknown_topic(&data.name))
    };
    let found = if matches!(common.acks, -1..=1) { found } else { Err(bad_acks(common.acks)) };
    let mut partitions = Vec::with_capacity(data.partition_data.len());
    for part in data.partition_data {
        let index = part.index;
        let queued = match &found {
            Ok(topic) => queue(shared, topic, common, part).await,
            Err(error) => Err(error.clone()),
        };
        let waiting = queued.unwrap_or_else(|error| Waiting::Ready(Outcome::refused(error)));
        partitions.push((index, waiting));
    }
    let answer = TopicProduceResponse::default().with_name(data.name).with_topic_id(data.topic_id);
    TopicAnswers { answer, partitions }
}

async fn queue(
    shared: &Shared,
    topic: &Topic,
    common: Common,
    part: PartitionProduceData,
) -> Result<Waiting, ApiError> {
    let reader = shared.find_for_writing(topic, part.index)?;
    let tag = match tag::request_tag(&part) {
        Ok(tag) => tag,
        Err(error) => return Ok(Waiting::Ready(unreadable(topic, &reader, &error))),
    };
    let records = part.records.unwrap_or_default();
    let (batches, framing) = Incoming::split(&records);
    let request = request(topic, common, framing, tag.as_ref());
    let entries = tag.map_or_else(Vec::new, |tag| partition::entries(&tag.entries));
    let id = PartitionId { topic: topic.id, index: u32::try_from(part.index).unwrap_or(0) };
    let (answer, answered) = oneshot::channel();
    shared.appender(id).produce(Submission { id, request, entries, batches, answer }).await?;
    Ok(Waiting::Judged(answered))
}

/// A tag that cannot be read is a tag all the same: its sender is told where the partition stands.
fn unreadable(topic: &Topic, reader: &Reader, error: &TagError) -> Outcome {
    let view = reader.view();
    let stands = AnswerTag {
        end: view.end,
        shown_epoch: view.shown_epoch,
        last_epoch: view.epochs.last().map_or(-1, |entry| entry.epoch),
        diverged: None,
    };
    let error = ApiError::new(ErrorCode::InvalidRequest, format!("{error}, topic=`{}`", topic.name));
    Outcome { tag: Some(stands), ..Outcome::refused(error) }
}

fn request(
    topic: &Topic,
    common: Common,
    framing: verbatim_contract::Framing,
    tag: Option<&RequestTag>,
) -> Request {
    let recorded = topic.settings.source_topic_id;
    let matches = |tag: &RequestTag| {
        let named = uuid::Uuid::from_bytes(tag.source_topic_id);
        recorded.is_nil() || named.is_nil() || named == recorded
    };
    Request {
        now_ms: common.now_ms,
        acks: common.acks,
        api_version: common.version,
        transactional: common.transactional,
        framing,
        has_tag: tag.is_some(),
        source_topic_matches: tag.is_none_or(matches),
        expected_end: tag.map_or(0, |tag| tag.expected_end),
        epoch_before: tag.map_or(-1, |tag| tag.epoch_before),
        source_start: tag.map_or(0, |tag| tag.source_start),
        source_end: tag.map_or(0, |tag| tag.source_end),
        source_epoch: tag.map_or(-1, |tag| tag.source_epoch),
        end_to: tag.and_then(|tag| tag.end_to),
        truncate_to: tag.and_then(|tag| tag.truncate_to),
    }
}

fn bad_acks(acks: i16) -> ApiError {
    ApiError::new(ErrorCode::InvalidRequiredAcks, format!("acks must be -1, 0 or 1, acks=`{acks}`"))
}

/// The answer, and how long the client has to wait for failures of the module.
async fn answer(shared: &Shared, client: Client<'_>, acks: i16, topics: Vec<TopicAnswers>) -> (Reply, i32) {
    let (mut module_failed, mut first_error) = (false, None);
    let mut answers = Vec::with_capacity(topics.len());
    for TopicAnswers { answer, partitions } in topics {
        let mut parts = Vec::with_capacity(partitions.len());
        for (index, waiting) in partitions {
            let outcome = match waiting {
                Waiting::Ready(outcome) => outcome,
                Waiting::Judged(answered) => answered
                    .await
                    .unwrap_or_else(|_| Outcome::refused(ApiError::storage("the host is shutting down"))),
            };
            module_failed |= outcome.failed;
            if let Err(refused) = &outcome.result {
                first_error.get_or_insert_with(|| refused.error.clone());
            }
            parts.push(partition_answer(index, outcome));
        }
        answers.push(answer.with_partition_responses(parts));
    }
    let wait_ms = shared.throttle.after(client, module_failed);
    let reply = match (acks, first_error) {
        (0, None) => Reply::Silent,
        (0, Some(error)) => Reply::Close { reason: format!("a Produce with acks=0 failed: {error}") },
        _ => Reply::Answer(ProduceResponse::default().with_responses(answers).into()),
    };
    (reply, wait_ms)
}

fn partition_answer(index: i32, outcome: Outcome) -> PartitionProduceResponse {
    let answer = PartitionProduceResponse::default().with_index(index);
    let mut answer = match outcome.result {
        Ok(done) => answer
            .with_base_offset(done.base_offset)
            .with_log_append_time_ms(done.log_append_time)
            .with_log_start_offset(done.start),
        Err(Refused { error, batch }) => {
            let (code, text) = error.fields();
            answer
                .with_error_code(code)
                .with_base_offset(-1)
                .with_log_append_time_ms(-1)
                .with_log_start_offset(-1)
                .with_record_errors(
                    batch.map(|batch| record_error(batch, text.clone())).into_iter().collect(),
                )
                .with_error_message(text)
        }
    };
    if let Some(tag) = &outcome.tag {
        tag::set_answer_tag(&mut answer, tag);
    }
    answer
}

fn record_error(batch: u32, text: Option<StrBytes>) -> BatchIndexAndErrorMessage {
    BatchIndexAndErrorMessage::default()
        .with_batch_index(i32::try_from(batch).unwrap_or(i32::MAX))
        .with_batch_index_error_message(text)
}
