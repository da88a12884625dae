//! OffsetForLeaderEpoch, v2 to v4.
//!
//! - R42: where the asked epoch ends by the epoch history; the shown epoch ends at the high watermark, on an exact topic at
//!   the source's declared end if that is larger, so that a lagging copy answers as its source would. Unknown is (-1, -1)
//!   with error 0.
//! - R32: a current leader epoch below or above the shown one is 74 or 75.
//!
//! Left out: nothing; the replica id is not looked at.

use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
use verbatim_contract::EpochAnswer;

use crate::catalogue::Topic;
use crate::errors::ApiError;
use crate::shared::Shared;

pub(super) fn handle(shared: &Shared, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse {
    let snapshot = shared.catalogue.snapshot();
    let topics = request.topics.into_iter().map(|asked| {
        let topic = snapshot.topic(&asked.topic).ok_or_else(|| ApiError::unknown_topic(&asked.topic));
        let partitions = asked.partitions.iter().map(|asked| {
            let answer = topic.as_ref().map_err(ApiError::clone);
            answered(asked, answer.and_then(|topic| find(shared, topic, asked)))
        });
        let partitions = partitions.collect();
        OffsetForLeaderTopicResult::default().with_topic(asked.topic).with_partitions(partitions)
    });
    OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
}

fn find(shared: &Shared, topic: &Topic, asked: &OffsetForLeaderPartition) -> Result<EpochAnswer, ApiError> {
    let reader = shared.find(topic, asked.partition)?;
    super::check_leader_epoch(&reader.view(), asked.current_leader_epoch)?;
    Ok(reader.log.epoch_end(asked.leader_epoch))
}

fn answered(asked: &OffsetForLeaderPartition, found: Result<EpochAnswer, ApiError>) -> EpochEndOffset {
    let (code, answer) = match found {
        Ok(answer) => (0, answer),
        Err(error) => (error.code.number(), EpochAnswer::UNDEFINED),
    };
    EpochEndOffset::default()
        .with_partition(asked.partition)
        .with_error_code(code)
        .with_leader_epoch(answer.epoch)
        .with_end_offset(answer.end)
}
