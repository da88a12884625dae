//! Makes sure of a target before anything is written to it, on every new connection.
//!
//! Metadata (the partition is there; no topic is created by asking) and DescribeConfigs (`produce.at.offset` is true), whose
//! answers the partitions of a [topic](topics) share, and of each partition a probe: a tagged Produce request without records that expects an end no log can have. A Verbatim host refuses it with
//! error 1, and its answer's tag tells where the partition stands; nothing changes, not even what is known of the
//! source. A broker that does not know the tag gets no records that it could append.

mod topics;

use std::time::Instant;

use bytes::Bytes;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{ProduceRequest, TopicName};
use kafka_protocol::protocol::{Request, StrBytes};
use uuid::Uuid;

use super::ExactError;
use super::failure::{Class, class};
use super::write::{Found, Target};
use crate::api::ApiKey;
use crate::client::{ClientError, Connection};
use crate::error::describe;
use crate::tag::{AnswerTag, PRODUCE_VERSION_MIN, RequestTag, answer_tag, set_request_tag};

pub(super) use topics::Topics;

/// The first Produce version in which topics are named by id.
pub(super) const IDS_FROM: i16 = 13;
/// The first Metadata version that tells a topic's id.
const TELLS_IDS_FROM: i16 = 10;

/// What a check brought.
#[derive(Debug)]
pub(super) enum Checked {
    Sound {
        topic_id: Uuid,
        found: Found,
    },
    /// It may pass.
    Passing(String),
    Fatal(ExactError),
}

/// What the host answered to one piece.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) code: i16,
    pub(super) message: String,
    pub(super) tag: Option<AnswerTag>,
}

/// What ends a check without a verdict.
enum Stop {
    Connection(ClientError),
    Checked(Checked),
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::Connection(error)
    }
}

/// The Produce version for exact writes on this connection: with topic ids if the broker can, so that a topic that was
/// re-created is noticed. `None` if the broker has no version that carries the tag.
pub(super) fn produce_version(connection: &Connection) -> Option<i16> {
    let tells_ids = connection.version_of(ApiKey::Metadata).is_ok_and(|version| version >= TELLS_IDS_FROM);
    let max = if tells_ids { IDS_FROM } else { IDS_FROM.saturating_sub(1) };
    connection.versions().highest(ApiKey::Produce, PRODUCE_VERSION_MIN, max).ok()
}

/// Checks a target; `topics` is what its connection was told so far.
///
/// # Errors
/// If the connection fails; whatever else is wrong is in the result.
pub(super) async fn target(
    connection: &Connection,
    topics: &Topics,
    target: &Target,
    timeout_ms: i32,
) -> Result<Checked, ClientError> {
    match sound(connection, topics, target, timeout_ms).await {
        Ok(checked) | Err(Stop::Checked(checked)) => Ok(checked),
        Err(Stop::Connection(error)) => Err(error),
    }
}

async fn sound(
    connection: &Connection,
    topics: &Topics,
    target: &Target,
    timeout_ms: i32,
) -> Result<Checked, Stop> {
    let version = produce_version(connection).ok_or_else(|| {
        not_exact(format!(
            "the broker has no Produce version from {PRODUCE_VERSION_MIN} on, its range is {:?}",
            connection.versions().range(ApiKey::Produce)
        ))
    })?;
    let begun = Instant::now();
    let mut topic = topics.exact(connection, target, None).await?;
    let mut found = probe(connection, target, (version, topic.id), timeout_ms).await;
    if topic.at < begun && matches!(found, Err(Stop::Checked(Checked::Fatal(_)))) {
        // The topic may have been deleted or made anew since.
        topic = topics.exact(connection, target, Some(topic.at)).await?;
        found = probe(connection, target, (version, topic.id), timeout_ms).await;
    }
    Ok(Checked::Sound { topic_id: topic.id, found: found? })
}

async fn probe(
    connection: &Connection,
    target: &Target,
    (version, topic_id): (i16, Uuid),
    timeout_ms: i32,
) -> Result<Found, Stop> {
    let tag = RequestTag {
        source_topic_id: target.source_topic_id,
        expected_end: i64::MAX,
        epoch_before: -1,
        source_start: 0,
        source_end: 0,
        source_epoch: 0,
        end_to: None,
        truncate_to: None,
        entries: Vec::new(),
    };
    let entry = entry(target.partition, &tag, None)?;
    let topic = topic(target, topic_id, version).with_partition_data(vec![entry]);
    let answer = connection.send(version, &request(vec![topic], timeout_ms)).await?;
    let mut entries = answer.responses.into_iter().flat_map(|topic| topic.partition_responses);
    let entry = entries.find(|entry| entry.index == target.partition);
    let entry = entry.ok_or_else(|| not_exact("an answer without the partition".to_owned()))?;
    let verdict = verdict(&entry);
    match (class(verdict.code, &verdict.message, None), verdict.tag) {
        (Class::Position, Some(tag)) => Ok(Found::from(tag)),
        (Class::Passing, _) => Err(Stop::Checked(Checked::Passing(verdict.message))),
        (Class::Fatal(error), Some(_)) => Err(fatal(error)),
        // What a Verbatim host says of a topic that is gone, or that is exact no more, comes without a tag.
        (Class::Fatal(error @ ExactError::UnknownPartition { .. }), None) => Err(fatal(error)),
        (_, tag) => {
            let with = if tag.is_some() { "with" } else { "without" };
            let said = describe(verdict.code);
            Err(not_exact(format!(
                "a tagged request was answered {said} {with} the tag: {}",
                verdict.message
            )))
        }
    }
}

/// A Produce request with acks = all.
pub(super) fn request(topics: Vec<TopicProduceData>, timeout_ms: i32) -> ProduceRequest {
    ProduceRequest::default().with_acks(-1).with_timeout_ms(timeout_ms).with_topic_data(topics)
}

/// The topic's part of a request, as this version names it.
pub(super) fn topic(target: &Target, topic_id: Uuid, version: i16) -> TopicProduceData {
    if version >= IDS_FROM {
        return TopicProduceData::default().with_topic_id(topic_id);
    }
    TopicProduceData::default().with_name(name(target))
}

/// The partition's part of a request.
///
/// # Errors
/// A tag that cannot be encoded; those that are queued were tried before.
pub(super) fn entry(
    partition: i32,
    tag: &RequestTag,
    records: Option<Bytes>,
) -> Result<PartitionProduceData, ClientError> {
    let mut entry = PartitionProduceData::default().with_index(partition).with_records(records);
    set_request_tag(&mut entry, tag).map_err(|error| ClientError::Closed { reason: error.to_string() })?;
    Ok(entry)
}

/// What a partition's answer says. A tag that cannot be read is none.
pub(super) fn verdict(entry: &PartitionProduceResponse) -> Verdict {
    let said = entry.error_message.as_ref().filter(|text| !text.is_empty());
    let message = said.map_or_else(|| describe(entry.error_code), StrBytes::to_string);
    Verdict { code: entry.error_code, message, tag: answer_tag(entry).ok().flatten() }
}

async fn call<R: Request>(connection: &Connection, request: &R) -> Result<R::Response, Stop> {
    match connection.call(request).await {
        Err(error @ ClientError::NoVersion { .. }) => Err(not_exact(error.to_string())),
        answer => Ok(answer?),
    }
}

fn refused(code: i16, message: impl FnOnce() -> String) -> Result<(), Stop> {
    if code == 0 {
        return Ok(());
    }
    let message = message();
    Err(match class(code, &message, None) {
        Class::Fatal(error) => fatal(error),
        Class::Passing => Stop::Checked(Checked::Passing(message)),
        Class::Position => fatal(ExactError::Refused { code, message }),
    })
}

fn name(target: &Target) -> TopicName {
    TopicName(StrBytes::from_string(target.topic.clone()))
}

fn not_exact(message: String) -> Stop {
    fatal(ExactError::NotExact { message })
}

fn missing(message: String) -> Stop {
    fatal(ExactError::UnknownPartition { message })
}

fn fatal(error: ExactError) -> Stop {
    Stop::Checked(Checked::Fatal(error))
}
