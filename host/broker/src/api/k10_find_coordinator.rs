//! FindCoordinator, v0 to v6.
//!
//! - Groups (key type 0): this host. A group id that is empty or longer than 1,000 bytes is 24.
//! - Transactions (1) and share groups (2) have no coordinator here, so every key is answered with 15,
//!   COORDINATOR_NOT_AVAILABLE: clients go on asking and time out by their own settings.
//! - Another key type is 42, INVALID_REQUEST.
//!
//! Left out: coordinators of transactions and share groups: their keys are answered with 15.

use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use crate::errors::{self, ApiError};
use crate::groups::coordinator::check_id;
use crate::shared::Shared;

/// From this version on a request names several keys.
const BATCHED_FROM: i16 = 4;

pub(super) fn handle(
    shared: &Shared,
    version: i16,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let kind = request.key_type;
    if version >= BATCHED_FROM {
        let answers = request.coordinator_keys.into_iter().map(|key| coordinator(shared, kind, key));
        return FindCoordinatorResponse::default().with_coordinators(answers.collect());
    }
    let one = coordinator(shared, kind, request.key);
    FindCoordinatorResponse::default()
        .with_error_code(one.error_code)
        .with_error_message(one.error_message)
        .with_node_id(one.node_id)
        .with_host(one.host)
        .with_port(one.port)
}

fn coordinator(shared: &Shared, kind: i8, key: StrBytes) -> Coordinator {
    let judged = judge(kind, &key);
    let (code, text) = errors::fields(&judged);
    let (node, (host, port)) = match judged {
        Ok(()) => (shared.node(), shared.advertised()),
        Err(_) => (BrokerId(-1), (StrBytes::default(), -1)),
    };
    Coordinator::default()
        .with_key(key)
        .with_node_id(node)
        .with_host(host)
        .with_port(port)
        .with_error_code(code)
        .with_error_message(text)
}

fn judge(kind: i8, key: &str) -> Result<(), ApiError> {
    let what = match kind {
        0 => {
            let text = || format!("a group id must have 1 to 1000 bytes, bytes=`{}`", key.len());
            return check_id(key).map_err(|code| ApiError::new(code, text()));
        }
        1 => "transactions",
        2 => "share groups",
        _ => {
            let text =
                format!("key_type must be 0 (group), 1 (transaction) or 2 (share group), key_type=`{kind}`");
            return Err(ApiError::new(ErrorCode::InvalidRequest, text));
        }
    };
    let text = format!("{what} are not served by this version");
    Err(ApiError::new(ErrorCode::CoordinatorNotAvailable, text))
}
