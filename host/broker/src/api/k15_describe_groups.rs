//! DescribeGroups, v0 to v6.
//!
//! - State, protocol and members; subscriptions and assignments while the group is stable. A group that has offsets alone is
//!   `Empty`. One that is not there is `Dead`, from v6 on with 69. A group id that is empty or longer than 1,000 bytes is 24.
//!
//! Left out: authorized operations, since nobody is authorized: the field says that it is not known.

use bytes::Bytes;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use crate::errors::ApiError;
use crate::groups::coordinator::{Coordinator, check_id};
use crate::groups::group::{Group, State};
use crate::shared::Shared;

/// From this version on a group that is not there is an error.
const NOT_FOUND_FROM: i16 = 6;

pub(super) fn handle(
    shared: &Shared,
    version: i16,
    request: DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    let groups = request.groups.into_iter().map(|id| one(shared, version, id));
    DescribeGroupsResponse::default().with_groups(groups.collect())
}

fn one(shared: &Shared, version: i16, id: GroupId) -> DescribedGroup {
    if let Err(code) = check_id(&id) {
        return dead(id).with_error_code(code.number());
    }
    let living = |coordinator: &Coordinator| coordinator.group(&id).map(described);
    if let Some(found) = shared.groups.look(living) {
        return found.with_group_id(id);
    }
    if shared.groups.keeper().offsets().group(&id).is_some() {
        return dead(id).with_group_state(StrBytes::from_static_str(State::Empty.name()));
    }
    if version < NOT_FOUND_FROM {
        return dead(id);
    }
    let error =
        ApiError::new(ErrorCode::GroupIdNotFound, format!("there is no such group, group=`{}`", id.0));
    let (code, text) = error.fields();
    dead(id).with_error_code(code).with_error_message(text)
}

fn dead(id: GroupId) -> DescribedGroup {
    DescribedGroup::default().with_group_id(id).with_group_state(StrBytes::from_static_str("Dead"))
}

fn described(group: &Group) -> DescribedGroup {
    let is_stable = group.state() == State::Stable;
    let protocol = if is_stable { group.protocol() } else { "" };
    let members = group.members().map(|(id, member)| {
        let shown = |bytes: Bytes| if is_stable { bytes } else { Bytes::new() };
        DescribedGroupMember::default()
            .with_member_id(text(id))
            .with_group_instance_id(member.instance.as_deref().map(text))
            .with_client_id(text(&member.client_id))
            .with_client_host(text(&member.client_host))
            .with_member_metadata(shown(member.metadata(protocol)))
            .with_member_assignment(shown(member.assignment.clone()))
    });
    DescribedGroup::default()
        .with_group_state(StrBytes::from_static_str(group.state().name()))
        .with_protocol_type(text(group.protocol_type()))
        .with_protocol_data(text(protocol))
        .with_members(members.collect())
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
