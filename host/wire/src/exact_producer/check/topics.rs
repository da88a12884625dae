//! What a connection was told of topics, shared by the checks of their partitions.
//!
//! Metadata tells all partitions of a topic, so asking for each of ten thousand would bring a hundred million. Checks of one
//! topic that are made together share one answer, for [`SHARED_FOR`]; what is wrong is never shared, and whoever finds
//! an answer to be old asks anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{DescribeConfigsRequest, MetadataRequest};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::{Stop, call, missing, name, not_exact, refused};
use crate::client::Connection;
use crate::error::describe;
use crate::exact_producer::write::Target;

/// How long an answer serves for other partitions of its topic.
const SHARED_FOR: Duration = Duration::from_secs(1);
const TOPIC_RESOURCE: i8 = 2;
const PROPERTY: &str = "produce.at.offset";

/// An exact topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    pub(super) id: Uuid,
    /// When it was asked for.
    pub(super) at: Instant,
}

/// The topics that a connection was told of; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Topics(Arc<Mutex<HashMap<String, Slot>>>);

/// Held by whoever asks, so that the others wait for the answer.
type Slot = Arc<tokio::sync::Mutex<Option<Told>>>;

#[derive(Debug)]
struct Told {
    exact: Exact,
    /// Those without an error, in order.
    partitions: Vec<i32>,
}

impl Topics {
    /// Makes sure that the partition is there and its topic exact, by an answer after `after`, or one that may be shared.
    pub(super) async fn exact(
        &self,
        connection: &Connection,
        target: &Target,
        after: Option<Instant>,
    ) -> Result<Exact, Stop> {
        let slot = self.slot(&target.topic);
        let mut told = slot.lock().await;
        let may_be_shared = |told: &&Told| match after {
            Some(after) => told.exact.at > after,
            None => told.exact.at.elapsed() < SHARED_FOR,
        };
        let shared = told.as_ref().filter(may_be_shared);
        if let Some(shared) = shared.filter(|told| told.partitions.binary_search(&target.partition).is_ok()) {
            return Ok(shared.exact);
        }
        let at = Instant::now();
        let topic = exists(connection, target).await?;
        is_exact(connection, target).await?;
        let whole = topic.partitions.iter().filter(|partition| partition.error_code == 0);
        let mut partitions: Vec<i32> = whole.map(|partition| partition.partition_index).collect();
        partitions.sort_unstable();
        let exact = Exact { id: topic.topic_id, at };
        *told = Some(Told { exact, partitions });
        Ok(exact)
    }

    fn slot(&self, topic: &str) -> Slot {
        let mut topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(topics.entry(topic.to_owned()).or_default())
    }
}

async fn exists(connection: &Connection, target: &Target) -> Result<MetadataResponseTopic, Stop> {
    let topic = MetadataRequestTopic::default().with_name(Some(name(target)));
    let request =
        MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(false);
    let answer = call(connection, &request).await?;
    let topic = answer.topics.into_iter().find(|topic| topic.name.as_ref() == Some(&name(target)));
    let topic = topic.ok_or_else(|| missing(format!("no topic {} in Metadata", target.topic)))?;
    refused(topic.error_code, || format!("topic {}: {}", target.topic, describe(topic.error_code)))?;
    let partition = topic.partitions.iter().find(|partition| partition.partition_index == target.partition);
    let partition = partition.ok_or_else(|| {
        let count = topic.partitions.len();
        missing(format!("topic {} has {count} partitions, partition={}", target.topic, target.partition))
    })?;
    let code = partition.error_code;
    refused(code, || format!("{}-{}: {}", target.topic, target.partition, describe(code)))?;
    Ok(topic)
}

async fn is_exact(connection: &Connection, target: &Target) -> Result<(), Stop> {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(TOPIC_RESOURCE)
        .with_resource_name(StrBytes::from_string(target.topic.clone()))
        .with_configuration_keys(Some(vec![StrBytes::from_static_str(PROPERTY)]));
    let answer = call(connection, &DescribeConfigsRequest::default().with_resources(vec![resource])).await?;
    let result = answer.results.first();
    let result = result.ok_or_else(|| not_exact("DescribeConfigs tells nothing of the topic".to_owned()))?;
    let text = result.error_message.as_ref().map(StrBytes::to_string).unwrap_or_default();
    refused(result.error_code, || text)?;
    let value = result.configs.iter().find(|config| config.name.as_str() == PROPERTY);
    match value.and_then(|config| config.value.as_deref()) {
        Some("true") => Ok(()),
        Some(other) => Err(not_exact(format!("topic {} has {PROPERTY}={other}", target.topic))),
        None => Err(not_exact(format!("topic {} has no property {PROPERTY}", target.topic))),
    }
}
