//! What the mirror asks of the destination beside data: topics, partitions and settings, with [the mark](verbatim_wire::tag).

use std::sync::Arc;

use tokio::sync::Mutex;
use uuid::Uuid;
use verbatim_wire::ApiKey;
use verbatim_wire::client::{ClientError, Connection};
use verbatim_wire::error::{ErrorCode, describe};
use verbatim_wire::messages::create_partitions_request::CreatePartitionsTopic;
use verbatim_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use verbatim_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use verbatim_wire::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, IncrementalAlterConfigsRequest, TopicName,
};
use verbatim_wire::protocol::{Request, StrBytes};
use verbatim_wire::tag::Marked;

use super::config::TargetConfig;
use super::target::{EXACT, SOURCE_TOPIC_ID};
use crate::cluster::{ClusterConfig, id_text};

const TOPIC_RESOURCE: i8 = 2;
const SET: i8 = 0;
const DELETE: i8 = 1;
/// How long the destination may take over one request, as it is told.
const TIMEOUT_MS: i32 = 30_000;

/// Why a wish was not fulfilled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denied {
    /// It may pass.
    Passing(String),
    /// The destination refuses, with Kafka's code and its own text.
    Refused { code: i16, text: String },
    /// The destination cannot do such a thing.
    Unsupported(String),
}

impl std::fmt::Display for Denied {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Passing(text) | Self::Unsupported(text) => out.write_str(text),
            Self::Refused { code, text } if text.is_empty() => out.write_str(&describe(*code)),
            Self::Refused { code, text } => write!(out, "{}: {text}", describe(*code)),
        }
    }
}

/// A setting to give a topic, or to take from it.
pub(super) type Change = (String, Option<String>);

/// One connection to the destination, made when it is needed.
#[derive(Debug)]
pub(super) struct Admin {
    config: ClusterConfig,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl Admin {
    pub(super) fn new(config: ClusterConfig) -> Self {
        Self { config, connection: Mutex::new(None) }
    }

    /// Makes an exact topic that is the copy of another one, with these properties beside. `Ok(false)`: there is one of that
    /// name.
    pub(super) async fn create_topic(
        &self,
        name: &str,
        partitions: i32,
        source_id: Uuid,
        wanted: &TargetConfig,
    ) -> Result<bool, Denied> {
        let config = |name: &str, value: &str| {
            CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
        };
        let own = [config(EXACT, "true"), config(SOURCE_TOPIC_ID, &id_text(source_id))];
        let configs = own.into_iter().chain(wanted.iter().map(|(name, value)| config(name, value))).collect();
        let topic = CreatableTopic::default()
            .with_name(TopicName(text(name)))
            .with_num_partitions(partitions)
            .with_replication_factor(-1)
            .with_configs(configs);
        let request = CreateTopicsRequest::default().with_timeout_ms(TIMEOUT_MS).with_topics(vec![topic]);
        let answer = self.call(&request, 2).await?;
        let topic = answer.topics.into_iter().next().ok_or_else(incomplete)?;
        if topic.error_code == ErrorCode::TopicAlreadyExists.number() {
            return Ok(false);
        }
        judge(topic.error_code, topic.error_message).map(|()| true)
    }

    /// Gives a topic so many partitions in all.
    pub(super) async fn create_partitions(&self, name: &str, count: i32) -> Result<(), Denied> {
        let topic = CreatePartitionsTopic::default().with_name(TopicName(text(name))).with_count(count);
        let mut request = CreatePartitionsRequest::default()
            .with_timeout_ms(TIMEOUT_MS)
            .with_topics(vec![topic.with_assignments(None)]);
        request.set_mark();
        let answer = self.call(&request, CreatePartitionsRequest::MARK_VERSION_MIN).await?;
        let result = answer.results.into_iter().next().ok_or_else(incomplete)?;
        judge(result.error_code, result.error_message)
    }

    /// Changes settings of a topic: all of them or none.
    pub(super) async fn alter(&self, name: &str, changes: &[Change]) -> Result<(), Denied> {
        let config = |(name, value): &Change| {
            AlterableConfig::default()
                .with_name(text(name))
                .with_config_operation(if value.is_some() { SET } else { DELETE })
                .with_value(value.as_deref().map(text))
        };
        let resource = AlterConfigsResource::default()
            .with_resource_type(TOPIC_RESOURCE)
            .with_resource_name(text(name))
            .with_configs(changes.iter().map(config).collect());
        let mut request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        request.set_mark();
        let answer = self.call(&request, IncrementalAlterConfigsRequest::MARK_VERSION_MIN).await?;
        let result = answer.responses.into_iter().next().ok_or_else(incomplete)?;
        judge(result.error_code, result.error_message)
    }

    async fn call<R: Request>(&self, request: &R, version_min: i16) -> Result<R::Response, Denied> {
        let key = ApiKey::from_number(R::KEY)
            .ok_or_else(|| Denied::Unsupported(format!("API key {} is not spoken here", R::KEY)))?;
        let connection = self.connection().await?;
        let version = connection.versions().highest(key, version_min, key.api().max);
        let version = version.map_err(|error| Denied::Unsupported(error.to_string()))?;
        match connection.send(version, request).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                self.connection.lock().await.take();
                Err(passing(&error))
            }
        }
    }

    async fn connection(&self) -> Result<Arc<Connection>, Denied> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref() {
            return Ok(Arc::clone(connection));
        }
        let mut last = Denied::Passing("no bootstrap address is given".to_owned());
        for address in &self.config.bootstrap {
            match Connection::connect(address.as_str(), self.config.client.clone()).await {
                Ok(connection) => {
                    let connection = Arc::new(connection);
                    *held = Some(Arc::clone(&connection));
                    return Ok(connection);
                }
                Err(error) => last = Denied::Passing(format!("{address}: {error}")),
            }
        }
        Err(last)
    }
}

fn judge(code: i16, message: Option<StrBytes>) -> Result<(), Denied> {
    let text = message.map(|text| text.to_string()).unwrap_or_default();
    match ErrorCode::from_number(code) {
        Some(ErrorCode::None) => Ok(()),
        Some(known) if known.is_retriable() && known != ErrorCode::UnknownTopicOrPartition => {
            Err(Denied::Passing(format!("{}: {text}", describe(code))))
        }
        _ => Err(Denied::Refused { code, text }),
    }
}

fn passing(error: &ClientError) -> Denied {
    Denied::Passing(error.to_string())
}

fn incomplete() -> Denied {
    Denied::Passing("an answer without what was asked for".to_owned())
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
