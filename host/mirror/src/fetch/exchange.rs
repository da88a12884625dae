//! One Fetch request and what its answer says of each partition.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;
use verbatim_wire::ApiKey;
use verbatim_wire::ErrorCode;
use verbatim_wire::client::{ClientError, Connection};
use verbatim_wire::exact_producer::EpochEnd;
use verbatim_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use verbatim_wire::messages::fetch_response::PartitionData;
use verbatim_wire::messages::{FetchRequest, FetchResponse, TopicName};
use verbatim_wire::protocol::StrBytes;

use super::frames::{Unusable, Whole, whole};
use super::{Leader, Place};
use crate::cluster::{Partition, is_passing};

/// The lowest version spoken: the first with batches instead of messages.
const VERSION_MIN: i16 = 4;
/// The first version that carries the current leader epoch, and so is answered by its leader alone.
const FENCED_FROM: i16 = 9;
/// The first version that carries the last-fetched epoch, and so notices truncation.
const TRUNCATION_FROM: i16 = 12;
/// The first version that names topics by id.
const IDS_FROM: i16 = 13;
/// The longest throttle that is obeyed.
const THROTTLE_MAX: Duration = Duration::from_secs(60);

/// A partition in a request.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) line: u64,
    pub(super) generation: u64,
    pub(super) partition: Partition,
    pub(super) topic_id: Uuid,
    pub(super) place: Place,
    pub(super) leader_epoch: i32,
    pub(super) bytes_max: usize,
}

/// What a request is sent with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) wait: Duration,
    pub(super) bytes_min: i32,
    pub(super) bytes_max: usize,
    pub(super) read_committed: bool,
}

/// An answer, partition by partition in the order in which they were asked for.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) throttle: Duration,
    /// Bytes of records in it.
    pub(super) bytes: usize,
    /// True if the request carried the current leader epochs.
    pub(super) is_fenced: bool,
    /// True if it carried the last-fetched epochs.
    pub(super) notices_truncation: bool,
    pub(super) found: Vec<Found>,
}

/// What an answer says of one partition.
#[derive(Debug)]
pub(super) enum Found {
    Data {
        whole: Whole,
        leader: Leader,
        aborted: Vec<(i64, i64)>,
    },
    /// Nothing. `is_plain`: no byte, and no other replica named to read from.
    Nothing {
        leader: Leader,
        is_plain: bool,
        aborted: Vec<(i64, i64)>,
    },
    Unusable(Unusable),
    Diverging(EpochEnd),
    OutOfRange,
    /// The partition may be led elsewhere, or under another epoch, or be gone.
    Moved(i16),
    /// An error that may pass.
    Passing(i16),
    /// An error that does not.
    Refused(i16),
    /// The answer does not name the partition.
    Missing,
}

/// Sends a request and reads its answer.
pub(super) async fn exchange(
    connection: &Connection,
    asks: &[Ask],
    terms: Terms,
) -> Result<Answer, ClientError> {
    let has_ids = asks.iter().all(|ask| !ask.topic_id.is_nil());
    let max = if has_ids { ApiKey::Fetch.api().max } else { IDS_FROM.saturating_sub(1) };
    let version = connection.versions().highest(ApiKey::Fetch, VERSION_MIN, max)?;
    let answer = connection.send(version, &request(asks, version, terms)).await?;
    Ok(read(answer, version, asks))
}

/// Session 0 with epoch -1 is a request without a session: it names all its partitions, about 50 bytes each.
fn request(asks: &[Ask], version: i16, terms: Terms) -> FetchRequest {
    let mut topics: Vec<FetchTopic> = Vec::new();
    for ask in asks {
        let partition = FetchPartition::default()
            .with_partition(ask.partition.index)
            .with_current_leader_epoch(ask.leader_epoch)
            .with_fetch_offset(ask.place.offset)
            .with_last_fetched_epoch(if version >= TRUNCATION_FROM { ask.place.last_epoch } else { -1 })
            .with_partition_max_bytes(int(ask.bytes_max));
        // The order of partitions is what keeps them from starving: a topic may come up more than once.
        match topics.last_mut().filter(|topic| topic.topic.as_str() == ask.partition.topic) {
            Some(topic) => topic.partitions.push(partition),
            None => topics.push(
                FetchTopic::default()
                    .with_topic(TopicName(StrBytes::from_string(ask.partition.topic.clone())))
                    .with_topic_id(ask.topic_id)
                    .with_partitions(vec![partition]),
            ),
        }
    }
    FetchRequest::default()
        .with_max_wait_ms(i32::try_from(terms.wait.as_millis()).unwrap_or(i32::MAX))
        .with_min_bytes(terms.bytes_min)
        .with_max_bytes(int(terms.bytes_max))
        .with_isolation_level(i8::from(terms.read_committed))
        .with_topics(topics)
}

fn int(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

fn read(answer: FetchResponse, version: i16, asks: &[Ask]) -> Answer {
    let throttle =
        Duration::from_millis(u64::try_from(answer.throttle_time_ms).unwrap_or(0)).min(THROTTLE_MAX);
    let by_id = version >= IDS_FROM;
    let mut bytes = 0_usize;
    let mut told: HashMap<(Uuid, StrBytes, i32), PartitionData> = HashMap::new();
    for topic in answer.responses {
        let (id, name) =
            if by_id { (topic.topic_id, StrBytes::default()) } else { (Uuid::nil(), topic.topic.0) };
        for partition in topic.partitions {
            bytes = bytes.saturating_add(partition.records.as_ref().map_or(0, Bytes::len));
            told.insert((id, name.clone(), partition.partition_index), partition);
        }
    }
    let mut find = |ask: &Ask| {
        if answer.error_code != 0 {
            return by_code(answer.error_code, ask);
        }
        let (id, name) = if by_id {
            (ask.topic_id, StrBytes::default())
        } else {
            (Uuid::nil(), StrBytes::from_string(ask.partition.topic.clone()))
        };
        told.remove(&(id, name, ask.partition.index)).map_or(Found::Missing, |data| found(data, ask))
    };
    let found = asks.iter().map(&mut find).collect();
    let (is_fenced, notices_truncation) = (version >= FENCED_FROM, version >= TRUNCATION_FROM);
    Answer { throttle, bytes, is_fenced, notices_truncation, found }
}

fn found(data: PartitionData, ask: &Ask) -> Found {
    if data.error_code != 0 {
        return by_code(data.error_code, ask);
    }
    if data.diverging_epoch.end_offset >= 0 || data.diverging_epoch.epoch >= 0 {
        let diverging = data.diverging_epoch;
        return Found::Diverging(EpochEnd { epoch: diverging.epoch, end: diverging.end_offset });
    }
    let leader = Leader {
        epoch: ask.leader_epoch,
        log_start: data.log_start_offset,
        high_watermark: data.high_watermark,
        last_stable_offset: data.last_stable_offset,
    };
    let aborted = data.aborted_transactions.unwrap_or_default();
    let aborted = aborted.into_iter().map(|one| (one.producer_id.0, one.first_offset)).collect();
    let records = data.records.unwrap_or_default();
    if records.is_empty() {
        let is_plain = data.preferred_read_replica.0 < 0;
        return Found::Nothing { leader, is_plain, aborted };
    }
    match whole(&records, ask.place) {
        Ok(whole) => Found::Data { whole, leader, aborted },
        Err(unusable) => Found::Unusable(unusable),
    }
}

fn by_code(code: i16, ask: &Ask) -> Found {
    match ErrorCode::from_number(code) {
        Some(ErrorCode::OffsetOutOfRange) => Found::OutOfRange,
        Some(ErrorCode::CorruptMessage) => Found::Unusable(Unusable::Damaged {
            offset: ask.place.offset,
            why: "its leader cannot read it".to_owned(),
        }),
        Some(
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::InconsistentTopicId
            | ErrorCode::LeaderNotAvailable
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::UnknownLeaderEpoch,
        ) => Found::Moved(code),
        _ if is_passing(code) => Found::Passing(code),
        _ => Found::Refused(code),
    }
}
