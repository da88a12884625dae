//! ListGroups, v0 to v5.
//!
//! - Groups with members and groups with offsets alone, by id; from v4 on those in the states asked for, from v5 on those of
//!   the types asked for. All are of type `Classic`. Letters large or small do not matter.
//!
//! Left out: nothing.

use std::collections::BTreeMap;

use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{GroupId, ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::groups::group::State;
use crate::shared::Shared;

const TYPE: &str = "Classic";

pub(super) fn handle(shared: &Shared, request: &ListGroupsRequest) -> ListGroupsResponse {
    let mut groups = BTreeMap::new();
    if is_asked_for(&request.types_filter, TYPE) {
        let offsets = shared.groups.keeper().offsets();
        groups.extend(offsets.groups().map(|(id, _)| (id.clone(), (State::Empty, String::new()))));
        drop(offsets);
        shared.groups.look(|coordinator| {
            let living = coordinator.groups();
            groups.extend(
                living.map(|(id, group)| (id.to_string(), (group.state(), group.protocol_type().to_owned()))),
            );
        });
    }
    groups.retain(|_, (state, _)| is_asked_for(&request.states_filter, state.name()));
    let listed = groups.into_iter().map(|(id, (state, protocol_type))| {
        ListedGroup::default()
            .with_group_id(GroupId(StrBytes::from_string(id)))
            .with_protocol_type(StrBytes::from_string(protocol_type))
            .with_group_state(StrBytes::from_static_str(state.name()))
            .with_group_type(StrBytes::from_static_str(TYPE))
    });
    ListGroupsResponse::default().with_groups(listed.collect())
}

/// An empty filter asks for all.
fn is_asked_for(filter: &[StrBytes], name: &str) -> bool {
    filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
}
