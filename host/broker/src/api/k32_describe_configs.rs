//! DescribeConfigs, v1 to v4.
//!
//! - Topics (resource type 2) by name: all properties of the table and its keys of modules, or those named; unknown keys are passed over, as in
//!   Kafka. Source is the topic (1) or the default (5); the synonyms end with the broker-wide twin.
//! - Brokers (resource type 4): this node's id, or the empty name for cluster-wide defaults, of which there are none. All
//!   read-only.
//! - A resource that is named twice in a request is 42 the second time.
//! - Types and documentation from v3 on, documentation only when asked for.
//!
//! Left out: other resource types are refused with 42.

use std::collections::HashSet;

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use super::configs::{self, Row};
use crate::errors::{self, ApiError};
use crate::shared::Shared;

pub(super) fn handle(shared: &Shared, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
    let show = Show { synonyms: request.include_synonyms, docs: request.include_documentation };
    let mut seen = HashSet::new();
    let results = request.resources.into_iter().map(|resource| {
        let again = !seen.insert((resource.resource_type, resource.resource_name.clone()));
        let rows = if again { Err(named_twice(&resource)) } else { rows(shared, &resource) };
        described(resource, rows, show)
    });
    DescribeConfigsResponse::default().with_results(results.collect())
}

#[derive(Clone, Copy)]
struct Show {
    synonyms: bool,
    docs: bool,
}

fn named_twice(asked: &DescribeConfigsResource) -> ApiError {
    let text =
        format!("a request may name a resource once, resource_name=`{}`", asked.resource_name.as_str());
    ApiError::new(ErrorCode::InvalidRequest, text)
}

fn described(
    asked: DescribeConfigsResource,
    rows: Result<Vec<Row>, ApiError>,
    show: Show,
) -> DescribeConfigsResult {
    let (code, text) = errors::fields(&rows);
    let wanted = |row: &Row| asked.configuration_keys.as_ref().is_none_or(|keys| keys.contains(&row.name));
    let shown = rows.unwrap_or_default().into_iter().filter(wanted).map(|row| result(row, show)).collect();
    DescribeConfigsResult::default()
        .with_error_code(code)
        .with_error_message(text)
        .with_resource_type(asked.resource_type)
        .with_resource_name(asked.resource_name)
        .with_configs(shown)
}

fn rows(shared: &Shared, asked: &DescribeConfigsResource) -> Result<Vec<Row>, ApiError> {
    let name = asked.resource_name.as_str();
    match asked.resource_type {
        configs::TOPIC => {
            let snapshot = shared.catalogue.snapshot();
            let topic = snapshot.topic(name).ok_or_else(|| ApiError::unknown_topic(name))?;
            Ok(configs::topic_rows(&topic.values).collect())
        }
        configs::BROKER if name.is_empty() => Ok(Vec::new()),
        configs::BROKER if name == shared.config.node_id.to_string() => Ok(configs::broker_rows(shared)),
        configs::BROKER => {
            let text = format!("this node is {}, resource_name=`{name}`", shared.config.node_id);
            Err(ApiError::new(ErrorCode::InvalidRequest, text))
        }
        other => {
            let text = format!("resource_type must be 2 (topic) or 4 (broker), resource_type=`{other}`");
            Err(ApiError::new(ErrorCode::InvalidRequest, text))
        }
    }
}

fn result(row: Row, show: Show) -> DescribeConfigsResourceResult {
    let synonym = |(name, value, source): (StrBytes, String, i8)| {
        DescribeConfigsSynonym::default()
            .with_name(name)
            .with_value(Some(StrBytes::from_string(value)))
            .with_source(source)
    };
    let synonyms = if show.synonyms { row.synonyms.into_iter().map(synonym).collect() } else { Vec::new() };
    DescribeConfigsResourceResult::default()
        .with_name(row.name)
        .with_value(row.value)
        .with_read_only(row.read_only)
        .with_config_source(row.source)
        .with_is_sensitive(false)
        .with_synonyms(synonyms)
        .with_config_type(row.kind)
        .with_documentation(show.docs.then(|| StrBytes::from_static_str(row.doc)))
}
