//! FindCoordinator, v0 to v6.
//!
//! - Groups (key type 0), transactions (1) and share groups (2) have no coordinator here yet, so every key is answered
//!   with 15, COORDINATOR_NOT_AVAILABLE: clients go on asking and time out by their own settings, and no request for a
//!   group reaches a server that does not speak it. Consumers that are assigned their partitions are not affected.
//! - Another key type is 42, INVALID_REQUEST.
//!
//! Left out: coordinators themselves: every key is answered with 15.

use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use crate::errors::ApiError;

/// From this version on a request names several keys.
const BATCHED_FROM: i16 = 4;

pub(super) fn handle(version: i16, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
    let error = refusal(request.key_type);
    let (code, text) = error.fields();
    if version < BATCHED_FROM {
        return FindCoordinatorResponse::default()
            .with_error_code(code)
            .with_error_message(text)
            .with_node_id(BrokerId(-1))
            .with_port(-1);
    }
    let answer = |key: StrBytes| {
        Coordinator::default()
            .with_key(key)
            .with_node_id(BrokerId(-1))
            .with_port(-1)
            .with_error_code(code)
            .with_error_message(text.clone())
    };
    FindCoordinatorResponse::default()
        .with_coordinators(request.coordinator_keys.into_iter().map(answer).collect())
}

fn refusal(key_type: i8) -> ApiError {
    let what = match key_type {
        0 => "consumer groups",
        1 => "transactions",
        2 => "share groups",
        _ => {
            let text = format!(
                "key_type must be 0 (group), 1 (transaction) or 2 (share group), key_type=`{key_type}`"
            );
            return ApiError::new(ErrorCode::InvalidRequest, text);
        }
    };
    ApiError::new(ErrorCode::CoordinatorNotAvailable, format!("{what} are not served by this version"))
}
