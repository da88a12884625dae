//! LeaveGroup, v0 to v5.
//!
//! - Members leave by id, static ones by instance alone as well; from v3 on several at once, each with a code of its own. The
//!   others are rebalanced at once. Unknown ids are 25, an instance that another id holds is 82.
//!
//! Left out: the reason (v5) is not recorded.

use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};

use super::group_fields;
use crate::shared::Shared;

/// From this version on a request names several members.
const BATCHED_FROM: i16 = 3;

pub(super) fn handle(shared: &Shared, version: i16, request: LeaveGroupRequest) -> LeaveGroupResponse {
    let group = &request.group_id;
    if version < BATCHED_FROM {
        let outcome = shared.groups.leave(group, (&request.member_id, None));
        return LeaveGroupResponse::default().with_error_code(group_fields::code(outcome));
    }
    let members = request.members.into_iter().map(|member| {
        let outcome = shared.groups.leave(group, (&member.member_id, member.group_instance_id.as_deref()));
        MemberResponse::default()
            .with_member_id(member.member_id)
            .with_group_instance_id(member.group_instance_id)
            .with_error_code(group_fields::code(outcome))
    });
    LeaveGroupResponse::default().with_members(members.collect())
}
