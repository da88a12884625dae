//! OffsetCommit, v2 to v9.
//!
//! - Members commit in their generation (22, 25, 27, 82 as Kafka has them); one who is no member may commit, with generation -1,
//!   where the group has no members, and is 25 otherwise. So nobody moves a group's offsets under its members.
//! - An offset is kept with leader epoch, metadata and time, durably by the flush policy before the answer; those of a request
//!   together. It belongs to the topic's id, and goes with the topic.
//! - Unknown topics and partitions are 3, metadata longer than its limit 12, a group id that is empty or longer than 1,000
//!   bytes 24. Where the offsets of all groups would take more memory than `group_offsets_bytes_max`, 28. A disk that fails is
//!   15: clients try again.
//!
//! Left out: `retention_time_ms` of v2 to v4, retention is the host's; v10 with topic ids (KIP-848).

use std::collections::HashMap;
use std::sync::Arc;

use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestPartition;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};
use verbatim_wire::error::ErrorCode;
use verbatim_wire::server::{Reply, ReplyFuture};

use crate::catalogue::Topic;
use crate::groups::asked::Who;
use crate::groups::keeper;
use crate::groups::offsets::{Committed, Stored};
use crate::shared::{PartitionId, Shared};

/// Hands the offsets over now, in the order of the requests; the answer comes once they are kept.
pub(super) async fn admit(shared: &Arc<Shared>, request: OffsetCommitRequest) -> ReplyFuture {
    let judged = judge(shared, &request);
    let fitting: Vec<Stored> = judged.iter().flatten().filter_map(|one| one.clone().ok()).collect();
    let who = Who {
        member_id: &request.member_id,
        instance: request.group_instance_id.as_deref(),
        generation: request.generation_id_or_member_epoch,
    };
    let (may, pending) = match shared.groups.commit(&request.group_id, who, fitting).await {
        Ok(pending) => (Ok(()), pending),
        Err(code) => (Err(code), None),
    };
    Box::pin(async move {
        let kept = match pending {
            Some(pending) => keeper::kept(pending).await.map_err(|error| error.code),
            None => Ok(()),
        };
        Reply::Answer(answer(request, judged, (may, kept)).into())
    })
}

type Judged = Vec<Vec<Result<Stored, ErrorCode>>>;

/// Partition by partition of each topic, whoever it is that commits.
fn judge(shared: &Shared, request: &OffsetCommitRequest) -> Judged {
    let snapshot = shared.catalogue.snapshot();
    // Many partitions of a topic may come one by one.
    let mut known = HashMap::new();
    let mut judged = Judged::with_capacity(request.topics.len());
    for asked in &request.topics {
        let topic = *known.entry(&asked.name).or_insert_with(|| snapshot.topic(&asked.name));
        let one = |partition: &OffsetCommitRequestPartition| judge_one(shared, topic, partition);
        judged.push(asked.partitions.iter().map(one).collect());
    }
    judged
}

fn judge_one(
    shared: &Shared,
    topic: Option<&Arc<Topic>>,
    partition: &OffsetCommitRequestPartition,
) -> Result<Stored, ErrorCode> {
    let unknown = ErrorCode::UnknownTopicOrPartition;
    let topic = topic.ok_or(unknown)?;
    let index = u32::try_from(partition.partition_index).map_err(|_| unknown)?;
    if index >= topic.partitions {
        return Err(unknown);
    }
    let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
    if metadata.len() > shared.config.limits.group_offset_metadata_bytes_max {
        return Err(ErrorCode::OffsetMetadataTooLarge);
    }
    let committed = Committed {
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: metadata.to_owned(),
        at_ms: super::now_ms(),
    };
    Ok(Stored::new(PartitionId { topic: topic.id, index }, committed))
}

/// The first reason there is: they may not commit, the partition's own, the disk's.
fn answer(
    request: OffsetCommitRequest,
    judged: Judged,
    (may, kept): (Result<(), ErrorCode>, Result<(), ErrorCode>),
) -> OffsetCommitResponse {
    let partition = |(partition, judged): (OffsetCommitRequestPartition, Result<Stored, ErrorCode>)| {
        let code = may.and(judged).and(kept).err().unwrap_or(ErrorCode::None);
        OffsetCommitResponsePartition::default()
            .with_partition_index(partition.partition_index)
            .with_error_code(code.number())
    };
    let topics = request.topics.into_iter().zip(judged).map(|(topic, judged)| {
        OffsetCommitResponseTopic::default()
            .with_name(topic.name)
            .with_partitions(topic.partitions.into_iter().zip(judged).map(partition).collect())
    });
    OffsetCommitResponse::default().with_topics(topics.collect())
}
