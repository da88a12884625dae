//! AlterConfigs, v0 to v2: replaces all properties of a topic by those named.
//!
//! - Judged as in IncrementalAlterConfigs. A request that merely leaves `produce.at.offset` out of an exact topic's
//!   properties is 40, INVALID_CONFIG: removing it has to be said (by IncrementalAlterConfigs, or here by `false`).
//! - A module's own key (see [`crate::module_keys`]) that keeps its value may stay, also if its module is gone.
//! - There is no mirror's mark in this API: on an exact topic a change of what shapes data is 44.
//!
//! Left out: resources other than topics are refused by name with 42.

use kafka_protocol::messages::alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};

use crate::errors::{self, ApiError};
use crate::properties;
use crate::settings::Values;
use crate::shared::Shared;
use crate::topics::{self, Change};

pub(super) async fn handle(shared: &Shared, request: AlterConfigsRequest) -> AlterConfigsResponse {
    let mut answers = Vec::with_capacity(request.resources.len());
    for resource in request.resources {
        let altered = alter(shared, &resource, request.validate_only).await;
        let (code, text) = errors::fields(&altered);
        answers.push(
            AlterConfigsResourceResponse::default()
                .with_error_code(code)
                .with_error_message(text)
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name),
        );
    }
    AlterConfigsResponse::default().with_responses(answers)
}

async fn alter(
    shared: &Shared,
    resource: &AlterConfigsResource,
    validate_only: bool,
) -> Result<(), ApiError> {
    super::only_topics(resource.resource_type, resource.configs.iter().map(|config| config.name.as_str()))?;
    let change = Change { topic: resource.resource_name.as_str(), by_mirror: false, validate_only };
    topics::alter(shared, change, |values| {
        let mut replaced = Values::new();
        for config in &resource.configs {
            let Some(value) = &config.value else {
                return Err(ApiError::config(format!(
                    "topic property {} has no value, expected one",
                    config.name.as_str()
                )));
            };
            replaced.insert(config.name.to_string(), value.trim().to_owned());
        }
        let exact = values.get(properties::EXACT).is_some_and(|value| value == "true");
        if exact && !replaced.contains_key(properties::EXACT) {
            let text = "topic property produce.at.offset must be removed by name, not by leaving it out";
            return Err(ApiError::config(text));
        }
        // What can only be set at creation stays, whether it is named or not.
        for name in [properties::REWRITE, properties::SOURCE_TOPIC_ID] {
            if let (Some(value), false) = (values.get(name), replaced.contains_key(name)) {
                replaced.insert(name.to_owned(), value.clone());
            }
        }
        *values = replaced;
        Ok(())
    })
    .await
}
