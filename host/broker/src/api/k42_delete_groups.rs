//! DeleteGroups, v0 to v2.
//!
//! - A group without members goes, and its offsets with it, durably before the answer. With members it is 68; one that is not
//!   there is 69; a group id that is empty or longer than 1,000 bytes is 24.
//!
//! Left out: nothing.

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

use super::group_fields;
use crate::shared::Shared;

pub(super) async fn handle(shared: &Shared, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let mut results = Vec::with_capacity(request.groups_names.len());
    for group in request.groups_names {
        let outcome = shared.groups.delete(&group).await;
        if outcome.is_ok() {
            tracing::info!(group = group.as_str(), "group deleted");
        }
        let code = group_fields::code(outcome.map_err(|error| error.code));
        results.push(DeletableGroupResult::default().with_group_id(group).with_error_code(code));
    }
    DeleteGroupsResponse::default().with_results(results)
}
