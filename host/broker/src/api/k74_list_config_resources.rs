//! ListConfigResources, v0 and v1.
//!
//! - v0 lists what KIP-714 has, subscriptions of client metrics: there are none.
//! - v1 lists the types that are asked for, or all of them: topics (2), brokers (4), loggers of brokers (8, by the broker's id,
//!   as in Kafka), client metrics (16) and groups (32), of which there are none. Any other type is 35,
//!   UNSUPPORTED_VERSION.
//!
//! Left out: nothing.

use kafka_protocol::messages::list_config_resources_response::ConfigResource;
use kafka_protocol::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use super::configs::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC};
use crate::shared::Shared;

/// All types, in the order of their numbers.
const TYPES: [i8; 5] = [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP];

/// The version in which a client names types.
const TYPES_FROM: i16 = 1;

pub(super) fn handle(
    shared: &Shared,
    version: i16,
    request: &ListConfigResourcesRequest,
) -> ListConfigResourcesResponse {
    let asked = &request.resource_types;
    if asked.iter().any(|kind| !TYPES.contains(kind)) {
        let code = ErrorCode::UnsupportedVersion.number();
        return ListConfigResourcesResponse::default().with_error_code(code);
    }
    let wanted = |kind: i8| {
        if version < TYPES_FROM { kind == CLIENT_METRICS } else { asked.is_empty() || asked.contains(&kind) }
    };
    let listed = TYPES.into_iter().filter(|kind| wanted(*kind)).flat_map(|kind| resources(shared, kind));
    ListConfigResourcesResponse::default().with_config_resources(listed.collect())
}

fn resources(shared: &Shared, kind: i8) -> Vec<ConfigResource> {
    let names = match kind {
        TOPIC => shared.catalogue.snapshot().visible().map(|topic| topic.name.clone()).collect(),
        BROKER | BROKER_LOGGER => vec![shared.config.node_id.to_string()],
        _ => Vec::new(),
    };
    let resource = |name| {
        let name = StrBytes::from_string(name);
        ConfigResource::default().with_resource_name(name).with_resource_type(kind)
    };
    names.into_iter().map(resource).collect()
}
