//! IncrementalAlterConfigs, v0 and v1.
//!
//! - Topics only; operations set (0), delete (1), append (2) and subtract (3), the last two on lists. The changes of one
//!   resource are judged together and become one durable change, or none. `validate_only` changes nothing.
//! - A module's own key (see [`crate::module_keys`]) can be set, if the module takes it, and deleted, and is no list. One of a
//!   module that the host does not have any more can be deleted. With the mirror's mark any change of one is 44.
//! - `produce.at.offset` can only be removed: delete it, or set it to false; other changes may come along. That promotes the topic
//!   (see [`crate::promotion`]) and needs no tag, so that an operator can do it in an emergency. Anything else is 40,
//!   INVALID_CONFIG.
//! - On an exact topic a property that shapes data needs the mirror's mark (v1: one byte under tag 12486 at the top
//!   level), else 44, POLICY_VIOLATION. A mark that cannot be read is 42.
//!
//! Left out: broker and logger resources are refused with 42; nothing of a running host changes that way.

use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use verbatim_wire::error::ErrorCode;
use verbatim_wire::tag::Marked;

use crate::errors::{self, ApiError};
use crate::module_keys;
use crate::properties::{self, Kind, Property};
use crate::settings::{self, Values};
use crate::shared::Shared;
use crate::topics::{self, Change};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

pub(super) async fn handle(
    shared: &Shared,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let marked = request.mark().map_err(|error| ApiError::new(ErrorCode::InvalidRequest, error.to_string()));
    let mut answers = Vec::with_capacity(request.resources.len());
    for resource in request.resources {
        let altered = match &marked {
            Ok(marked) => alter(shared, &resource, *marked, request.validate_only).await,
            Err(error) => Err(error.clone()),
        };
        let (code, text) = errors::fields(&altered);
        answers.push(
            AlterConfigsResourceResponse::default()
                .with_error_code(code)
                .with_error_message(text)
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name),
        );
    }
    IncrementalAlterConfigsResponse::default().with_responses(answers)
}

async fn alter(
    shared: &Shared,
    resource: &AlterConfigsResource,
    by_mirror: bool,
    validate_only: bool,
) -> Result<(), ApiError> {
    super::only_topics(resource.resource_type, resource.configs.iter().map(|config| config.name.as_str()))?;
    let change = Change { topic: resource.resource_name.as_str(), by_mirror, validate_only };
    topics::alter(shared, change, |values| {
        resource.configs.iter().try_for_each(|config| apply(shared, values, config))
    })
    .await
}

fn apply(shared: &Shared, values: &mut Values, config: &AlterableConfig) -> Result<(), ApiError> {
    let name = config.name.as_str();
    let property = Property::find(name);
    if property.is_none() && !values.contains_key(name) {
        module_keys::check_name(shared.judges.as_ref(), name)?;
    }
    let value = || {
        let value = config.value.as_ref().map(|value| value.trim());
        value.ok_or_else(|| ApiError::config(format!("topic property {name} has no value, expected one")))
    };
    match config.config_operation {
        SET if name == properties::EXACT && value()? != "false" => {
            let text = format!(
                "topic property {name} can be set at creation only; afterwards it can be deleted or set to false"
            );
            return Err(ApiError::config(text));
        }
        SET => {
            values.insert(name.to_owned(), value()?.to_owned());
        }
        DELETE => {
            values.remove(name);
        }
        operation @ (APPEND | SUBTRACT) => {
            let is_list =
                property.is_some_and(|property| matches!(property.kind, Kind::Words(_) | Kind::List));
            if !is_list {
                let kind = property.map_or("a module's own", Property::type_name);
                let text = format!("append and subtract need a list, but topic property {name} is {kind}");
                return Err(ApiError::config(text));
            }
            let changed: Vec<&str> = properties::items(value()?).collect();
            let kept = properties::items(settings::text(values, name)).filter(|item| !changed.contains(item));
            let list: Vec<&str> = if operation == APPEND {
                kept.chain(changed.iter().copied()).collect()
            } else {
                kept.collect()
            };
            let list = list.join(",");
            values.insert(name.to_owned(), list);
        }
        other => {
            let text = format!("config_operation must be 0 to 3, config_operation=`{other}`, name=`{name}`");
            return Err(ApiError::new(ErrorCode::InvalidRequest, text));
        }
    }
    Ok(())
}
