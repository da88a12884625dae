//! JoinGroup, v2 to v9.
//!
//! - Kafka's classic protocol: the answer comes when the generation does. From v4 on a member without an id gets one with 79 and
//!   joins again with it (KIP-394); static members keep their place by `group_instance_id` (KIP-345) and get another id each
//!   time they come without one, which fences the one before (82). An empty group waits for
//!   `group_initial_rebalance_delay` before its first generation.
//! - Session timeouts outside the limits are 26, protocols without one in common 23, unknown ids 25. More members than
//!   `group_members_max` are 81, and so is what the bounds of all groups (`groups_max`, `group_members_bytes_max`) do not hold.
//!   A group id that is empty or longer than 1,000 bytes is 24; names of protocols and instances longer than 255 bytes are 42.
//! - The host shuts down: 15.
//!
//! Left out: the newer protocol (KIP-848). Membership is not kept over a restart: members are told 25 and join again.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;
use verbatim_wire::error::ErrorCode;
use verbatim_wire::server::{Reply, ReplyFuture, RequestContext};

use super::group_fields;
use crate::groups::asked::{Answer, Join, Joined};
use crate::shared::Shared;

/// From this version on a member needs an id before it joins.
const KNOWN_ID_FROM: i16 = 4;
/// From this version on names may be null.
const NULL_FROM: i16 = 7;
/// From this version on a leader can be told to hand out nothing.
const SKIP_FROM: i16 = 9;
/// Bytes of a client id that a member id begins with.
const CLIENT_ID_BYTES_MAX: usize = 255;

/// Joins now, in the order of the requests; the answer comes with the generation.
pub(super) fn admit(
    shared: &Arc<Shared>,
    context: &RequestContext,
    request: JoinGroupRequest,
) -> ReplyFuture {
    let version = context.head.version;
    let refused = |code| Reply::Answer(answer(version, Joined::refused(&request.member_id, code)).into());
    let names = request.protocols.iter().map(|protocol| &protocol.name);
    let names = names.chain([&request.protocol_type]).chain(&request.group_instance_id);
    if !group_fields::are_short(names) {
        return Box::pin(std::future::ready(refused(ErrorCode::InvalidRequest)));
    }
    let ended = refused(ErrorCode::CoordinatorNotAvailable);
    let coming = shared.groups.join(&request.group_id, &join(context, &request));
    let stopping = shared.stopping.clone();
    Box::pin(async move {
        tokio::select! {
            Ok(Answer::Join(joined)) = coming => Reply::Answer(answer(version, joined).into()),
            () = stopping.cancelled() => ended,
        }
    })
}

/// What the member keeps is copied: a slice would hold the whole request.
fn join(context: &RequestContext, request: &JoinGroupRequest) -> Join {
    let client_id = context.head.client_id.as_deref().unwrap_or_default();
    let instance = request.group_instance_id.as_ref().map(StrBytes::to_string);
    let begin = instance.as_deref().unwrap_or(client_id);
    let begin = begin.get(..begin.floor_char_boundary(CLIENT_ID_BYTES_MAX)).unwrap_or_default();
    let millis = |value: i32| u64::try_from(value).unwrap_or(0);
    let protocols = request.protocols.iter();
    Join {
        member_id: request.member_id.to_string(),
        fresh_id: format!("{begin}-{}", Uuid::new_v4()),
        client_id: client_id.to_owned(),
        client_host: format!("/{}", context.peer.ip()),
        session_ms: millis(request.session_timeout_ms),
        rebalance_ms: millis(request.rebalance_timeout_ms),
        protocol_type: request.protocol_type.to_string(),
        protocols: protocols
            .map(|protocol| (protocol.name.to_string(), Bytes::copy_from_slice(&protocol.metadata)))
            .collect(),
        needs_known_id: context.head.version >= KNOWN_ID_FROM,
        may_skip: context.head.version >= SKIP_FROM,
        instance,
    }
}

fn answer(version: i16, joined: Joined) -> JoinGroupResponse {
    let protocol =
        if version < NULL_FROM { joined.protocol.or_else(|| Some(String::new())) } else { joined.protocol };
    let member = |(id, instance, metadata): (String, Option<String>, Bytes)| {
        JoinGroupResponseMember::default()
            .with_member_id(StrBytes::from_string(id))
            .with_group_instance_id(instance.map(StrBytes::from_string))
            .with_metadata(metadata)
    };
    JoinGroupResponse::default()
        .with_error_code(joined.error.number())
        .with_generation_id(joined.generation)
        .with_protocol_type(joined.protocol_type.map(StrBytes::from_string))
        .with_protocol_name(protocol.map(StrBytes::from_string))
        .with_leader(StrBytes::from_string(joined.leader))
        .with_skip_assignment(joined.skip_assignment)
        .with_member_id(StrBytes::from_string(joined.member_id))
        .with_members(joined.members.into_iter().map(member).collect())
}
