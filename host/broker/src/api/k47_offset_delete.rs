//! OffsetDelete, v0 (KIP-496).
//!
//! - Committed offsets of a group go, durably before the answer. Topics that a member of the group may read are 86: those that
//!   its members subscribe to, as far as they are consumers; every topic, where that cannot be told. An unknown topic or
//!   partition is 3, a group that is not there 69, a group id that is empty or longer than 1,000 bytes 24. What was not
//!   committed is gone already.
//!
//! Left out: nothing.

use std::sync::Arc;

use kafka_protocol::messages::offset_delete_request::OffsetDeleteRequestTopic;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use verbatim_wire::error::ErrorCode;

use super::group_fields;
use crate::catalogue::Topic;
use crate::groups::coordinator::check_id;
use crate::groups::keeper;
use crate::groups::offsets::Change;
use crate::groups::subscription::Subscription;
use crate::shared::{PartitionId, Shared};

pub(super) async fn handle(shared: &Shared, request: OffsetDeleteRequest) -> OffsetDeleteResponse {
    let group = request.group_id.to_string();
    let has_offsets = shared.groups.keeper().offsets().group(&group).is_some();
    let snapshot = shared.catalogue.snapshot();
    let mut topics = Vec::with_capacity(request.topics.len());
    let pending = shared.groups.change(|coordinator, _| {
        check_id(&group)?;
        let living = coordinator.group(&group).map(Subscription::of);
        let subscription = living.or_else(|| has_offsets.then(Subscription::none));
        let subscription = subscription.ok_or(ErrorCode::GroupIdNotFound)?;
        let mut gone = Vec::new();
        for asked in request.topics {
            let judged = judge(&asked, snapshot.topic(&asked.name), subscription.reads(&asked.name));
            gone.extend(judged.iter().filter_map(|one| one.ok()));
            topics.push((asked, judged));
        }
        Ok((!gone.is_empty()).then(|| Change::forget(group.clone(), gone)))
    });
    let kept = match pending.await {
        Ok(Some(pending)) => keeper::kept(pending).await.map_err(|error| error.code),
        Ok(None) => Ok(()),
        Err(code) => return OffsetDeleteResponse::default().with_error_code(code.number()),
    };
    let answers = topics.into_iter().map(|(asked, judged)| answer(asked, judged, kept));
    OffsetDeleteResponse::default().with_topics(answers.collect())
}

fn judge(
    asked: &OffsetDeleteRequestTopic,
    topic: Option<&Arc<Topic>>,
    is_read: bool,
) -> Vec<Result<PartitionId, ErrorCode>> {
    let one = |index: i32| {
        let unknown = ErrorCode::UnknownTopicOrPartition;
        let topic = topic.ok_or(unknown)?;
        let index = u32::try_from(index).ok().filter(|index| *index < topic.partitions).ok_or(unknown)?;
        if is_read {
            Err(ErrorCode::GroupSubscribedToTopic)
        } else {
            Ok(PartitionId { topic: topic.id, index })
        }
    };
    asked.partitions.iter().map(|partition| one(partition.partition_index)).collect()
}

fn answer(
    asked: OffsetDeleteRequestTopic,
    judged: Vec<Result<PartitionId, ErrorCode>>,
    kept: Result<(), ErrorCode>,
) -> OffsetDeleteResponseTopic {
    let partitions = asked.partitions.into_iter().zip(judged).map(|(partition, judged)| {
        OffsetDeleteResponsePartition::default()
            .with_partition_index(partition.partition_index)
            .with_error_code(group_fields::code(judged.and(kept)))
    });
    OffsetDeleteResponseTopic::default().with_name(asked.name).with_partitions(partitions.collect())
}
