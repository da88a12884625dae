//! SyncGroup, v0 to v5.
//!
//! - The leader hands out the assignment; everybody is answered with its part once the leader has. 27 while the group is being
//!   rebalanced, 22 in another generation, 25 if not in the group, 82 if another one has the instance, 23 if protocol type or
//!   name (v5) are not the group's, 81 if the assignment does not fit into `group_members_bytes_max`.
//! - Who does not ask for its assignment within the rebalance timeout is removed.
//! - The host shuts down: 15.
//!
//! Left out: nothing.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;
use verbatim_wire::server::{Reply, ReplyFuture};

use crate::groups::asked::{Answer, Sync, Synced, Who};
use crate::shared::Shared;

/// Asks now, in the order of the requests; the answer comes with the leader's.
pub(super) fn admit(shared: &Arc<Shared>, request: &SyncGroupRequest) -> ReplyFuture {
    let who = Who {
        member_id: &request.member_id,
        instance: request.group_instance_id.as_deref(),
        generation: request.generation_id,
    };
    // What members keep is copied: a slice would hold the whole request.
    let assignments = request.assignments.iter();
    let sync = Sync {
        protocol_type: request.protocol_type.as_ref().map(StrBytes::to_string),
        protocol: request.protocol_name.as_ref().map(StrBytes::to_string),
        assignments: assignments
            .map(|one| (one.member_id.to_string(), Bytes::copy_from_slice(&one.assignment)))
            .collect(),
    };
    let coming = shared.groups.sync(&request.group_id, who, sync);
    let stopping = shared.stopping.clone();
    Box::pin(async move {
        let synced = tokio::select! {
            Ok(Answer::Sync(synced)) = coming => synced,
            () = stopping.cancelled() => Synced::refused(ErrorCode::CoordinatorNotAvailable),
        };
        Reply::Answer(answer(synced).into())
    })
}

fn answer(synced: Synced) -> SyncGroupResponse {
    SyncGroupResponse::default()
        .with_error_code(synced.error.number())
        .with_protocol_type(synced.protocol_type.map(StrBytes::from_string))
        .with_protocol_name(synced.protocol.map(StrBytes::from_string))
        .with_assignment(synced.assignment)
}
