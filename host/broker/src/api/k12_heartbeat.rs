//! Heartbeat, v0 to v4.
//!
//! - A member is kept for its session timeout from each request on. It is told 27 while the group is being rebalanced, 22 in
//!   another generation, 25 if it is not in the group (any more), 82 if another one has its instance.
//!
//! Left out: nothing.

use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use super::group_fields;
use crate::groups::asked::Who;
use crate::shared::Shared;

pub(super) fn handle(shared: &Shared, request: &HeartbeatRequest) -> HeartbeatResponse {
    let who = Who {
        member_id: &request.member_id,
        instance: request.group_instance_id.as_deref(),
        generation: request.generation_id,
    };
    let outcome = shared.groups.heartbeat(&request.group_id, who);
    HeartbeatResponse::default().with_error_code(group_fields::code(outcome))
}
