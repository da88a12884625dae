//! CreateTopics, v2 to v7.
//!
//! - Partitions: -1 stands for 1, else 1 up to the host's limit (37). Replication factor: -1 or 1 (38). Names by Kafka's rule
//!   (17); one that exists is 36; a name twice in a request is 42.
//! - Properties are judged one by one and together; a refusal is 40, INVALID_CONFIG, and names key, value and expectation.
//!   `produce.at.offset=true` makes an exact topic. A `produce.module` that the host does not hold is 40. On a normal
//!   topic `compression.type` can only be `producer`.
//! - A module's own key is taken if the host has that module and the module takes it, see [`crate::module_keys`].
//! - `validate_only` answers as if, and changes nothing.
//! - The answer (v5 on) carries all properties that the topic has, with their sources.
//!
//! Left out: manual replica assignments are refused with 39; the timeout is not looked at, since creation is immediate.

use std::collections::HashMap;

use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse, TopicName};
use verbatim_wire::error::ErrorCode;

use super::configs;
use crate::catalogue::Topic;
use crate::errors::{self, ApiError};
use crate::settings::Values;
use crate::shared::Shared;
use crate::topics::{self, NewTopic};

pub(super) async fn handle(shared: &Shared, request: CreateTopicsRequest) -> CreateTopicsResponse {
    let mut named: HashMap<TopicName, usize> = HashMap::new();
    for topic in &request.topics {
        *named.entry(topic.name.clone()).or_default() += 1;
    }
    let mut answers = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let name = topic.name.clone();
        let twice = named.get(&name).is_some_and(|count| *count > 1);
        let made =
            if twice { Err(named_twice(&name)) } else { create(shared, topic, request.validate_only).await };
        answers.push(answer(name, made));
    }
    CreateTopicsResponse::default().with_topics(answers)
}

async fn create(shared: &Shared, asked: CreatableTopic, validate_only: bool) -> Result<Topic, ApiError> {
    if !asked.assignments.is_empty() {
        let text =
            format!("replica assignments are not possible with one node, topic=`{}`", asked.name.as_str());
        return Err(ApiError::new(ErrorCode::InvalidReplicaAssignment, text));
    }
    if !matches!(asked.replication_factor, -1 | 1) {
        let text = format!(
            "replication_factor must be -1 or 1 with one node, replication_factor=`{}`",
            asked.replication_factor
        );
        return Err(ApiError::new(ErrorCode::InvalidReplicationFactor, text));
    }
    let mut values = Values::new();
    for config in asked.configs {
        let name = config.name.to_string();
        let Some(value) = config.value else {
            return Err(ApiError::config(format!("topic property {name} has no value, expected one")));
        };
        if values.insert(name.clone(), value.trim().to_owned()).is_some() {
            return Err(ApiError::config(format!("topic property is given twice, name=`{name}`")));
        }
    }
    let topic = NewTopic { name: asked.name.to_string(), partitions: asked.num_partitions, values };
    topics::create(shared, topic, validate_only).await
}

fn named_twice(name: &TopicName) -> ApiError {
    ApiError::new(
        ErrorCode::InvalidRequest,
        format!("a request may name a topic once, topic=`{}`", name.as_str()),
    )
}

fn answer(name: TopicName, made: Result<Topic, ApiError>) -> CreatableTopicResult {
    let (code, text) = errors::fields(&made);
    let answer =
        CreatableTopicResult::default().with_name(name).with_error_code(code).with_error_message(text);
    let Ok(topic) = made else {
        return answer.with_num_partitions(-1).with_replication_factor(-1);
    };
    let shown = configs::topic_rows(&topic.values).map(|row| {
        CreatableTopicConfigs::default()
            .with_name(row.name)
            .with_value(row.value)
            .with_config_source(row.source)
            .with_read_only(false)
    });
    answer
        .with_topic_id(topic.id)
        .with_num_partitions(i32::try_from(topic.partitions).unwrap_or(i32::MAX))
        .with_replication_factor(1)
        .with_configs(Some(shown.collect()))
}
