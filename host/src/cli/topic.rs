//! `verbatim topic`: create, describe, list, delete.

use std::collections::BTreeMap;

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;
use verbatim::broker::format_topic_id;
use verbatim::wire::client::Connection;
use verbatim::wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use verbatim::wire::messages::delete_topics_request::DeleteTopicState;
use verbatim::wire::messages::describe_configs_request::DescribeConfigsResource;
use verbatim::wire::messages::metadata_request::MetadataRequestTopic;
use verbatim::wire::messages::metadata_response::MetadataResponseTopic;
use verbatim::wire::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest, MetadataRequest, TopicName,
};
use verbatim::wire::protocol::StrBytes;

use super::connect::{check, connect};
use super::output::{Output, table};

/// How long a broker may take, as told in requests.
const TIMEOUT_MS: i32 = 30_000;
/// Resource type and source of a topic's own property in DescribeConfigs.
const TOPIC_RESOURCE: i8 = 2;
const FROM_TOPIC: i8 = 1;
/// DeleteTopics names topics by state from this version on.
const DELETE_BY_STATE_FROM: i16 = 6;

#[derive(Debug, Subcommand)]
pub(super) enum Topic {
    /// Create a topic; with --config produce.at.offset=true its writer chooses offsets and leader epochs
    Create {
        /// Its name
        name: String,
        /// How many partitions it has
        #[arg(long, default_value_t = 1, value_name = "N")]
        partitions: i32,
        /// A property; may be repeated
        #[arg(long, value_parser = key_value, value_name = "KEY=VALUE")]
        config: Vec<(String, String)>,
        /// Only tell whether it could be created
        #[arg(long)]
        dry_run: bool,
    },
    /// Show a topic's id, partitions and properties
    Describe {
        /// Its name
        name: String,
    },
    /// List all topics
    List,
    /// Delete a topic and its data
    Delete {
        /// Its name
        name: String,
    },
}

impl Topic {
    pub(super) async fn run(self, bootstrap: &str, output: Output) -> anyhow::Result<()> {
        let broker = connect(bootstrap).await?;
        match self {
            Self::Create { name, partitions, config, dry_run } => {
                create(&broker, &name, partitions, &config, dry_run, output).await
            }
            Self::Describe { name } => describe(&broker, &name, output).await,
            Self::List => list(&broker, output).await,
            Self::Delete { name } => delete(&broker, &name, output).await,
        }
    }
}

#[derive(Serialize)]
struct Described {
    name: String,
    id: String,
    partitions: Vec<DescribedPartition>,
    properties: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct DescribedPartition {
    partition: i32,
    leader: i32,
    leader_epoch: i32,
}

async fn create(
    broker: &Connection,
    name: &str,
    partitions: i32,
    config: &[(String, String)],
    dry_run: bool,
    output: Output,
) -> anyhow::Result<()> {
    let configs = config.iter().map(|(key, value)| {
        CreatableTopicConfig::default()
            .with_name(StrBytes::from_string(key.clone()))
            .with_value(Some(StrBytes::from_string(value.clone())))
    });
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(-1)
        .with_configs(configs.collect());
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(TIMEOUT_MS)
        .with_validate_only(dry_run);
    let answer = broker.call(&request).await?;
    let made = answer.topics.first().context("the broker's answer names no topic")?;
    check(made.error_code, made.error_message.as_ref())?;
    let id = format_topic_id(made.topic_id);
    let value = serde_json::json!({
        "name": name, "id": id, "partitions": made.num_partitions, "created": !dry_run,
    });
    output.write(&value, || match dry_run {
        true => format!("topic {name} could be created"),
        false => format!("created topic {name}, id {id}, partitions {}", made.num_partitions),
    })
}

async fn describe(broker: &Connection, name: &str, output: Output) -> anyhow::Result<()> {
    let asked = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
    let answer = broker.call(&MetadataRequest::default().with_topics(Some(vec![asked]))).await?;
    let topic = answer.topics.first().context("the broker's answer names no topic")?;
    check(topic.error_code, None).with_context(|| format!("topic `{name}`"))?;
    let described = Described {
        name: name.to_owned(),
        id: format_topic_id(topic.topic_id),
        partitions: partitions(topic),
        properties: own_properties(broker, name).await?,
    };
    output.write(&described, || described.text())
}

async fn list(broker: &Connection, output: Output) -> anyhow::Result<()> {
    let answer = broker.call(&MetadataRequest::default().with_topics(None)).await?;
    let mut names: Vec<&str> =
        answer.topics.iter().filter_map(|topic| topic.name.as_ref()).map(|name| name.as_str()).collect();
    names.sort_unstable();
    match output {
        Output::Text if names.is_empty() => Ok(()),
        _ => output.write(&names, || names.join("\n")),
    }
}

async fn delete(broker: &Connection, name: &str, output: Output) -> anyhow::Result<()> {
    let version = broker.version_of(verbatim::wire::ApiKey::DeleteTopics)?;
    let request = DeleteTopicsRequest::default().with_timeout_ms(TIMEOUT_MS);
    let request = if version >= DELETE_BY_STATE_FROM {
        request.with_topics(vec![DeleteTopicState::default().with_name(Some(topic_name(name)))])
    } else {
        request.with_topic_names(vec![topic_name(name)])
    };
    let answer = broker.send(version, &request).await?;
    let deleted = answer.responses.first().context("the broker's answer names no topic")?;
    check(deleted.error_code, deleted.error_message.as_ref())?;
    output.write(&serde_json::json!({ "name": name, "deleted": true }), || format!("deleted topic {name}"))
}

/// The properties that the topic itself has, as opposed to defaults.
async fn own_properties(broker: &Connection, name: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(TOPIC_RESOURCE)
        .with_resource_name(StrBytes::from_string(name.to_owned()))
        .with_configuration_keys(None);
    let answer = broker.call(&DescribeConfigsRequest::default().with_resources(vec![resource])).await?;
    let result = answer.results.first().context("the broker's answer describes nothing")?;
    check(result.error_code, result.error_message.as_ref())?;
    let own = result.configs.iter().filter(|row| row.config_source == FROM_TOPIC);
    Ok(own
        .map(|row| (row.name.to_string(), row.value.as_ref().map(ToString::to_string).unwrap_or_default()))
        .collect())
}

fn partitions(topic: &MetadataResponseTopic) -> Vec<DescribedPartition> {
    let mut partitions: Vec<_> = topic
        .partitions
        .iter()
        .map(|partition| DescribedPartition {
            partition: partition.partition_index,
            leader: partition.leader_id.0,
            leader_epoch: partition.leader_epoch,
        })
        .collect();
    partitions.sort_by_key(|partition| partition.partition);
    partitions
}

impl Described {
    fn text(&self) -> String {
        let mut rows = vec![vec!["PARTITION".to_owned(), "LEADER".to_owned(), "LEADER EPOCH".to_owned()]];
        rows.extend(self.partitions.iter().map(|partition| {
            vec![
                partition.partition.to_string(),
                partition.leader.to_string(),
                partition.leader_epoch.to_string(),
            ]
        }));
        let properties: Vec<String> =
            self.properties.iter().map(|(key, value)| format!("\n{key}={value}")).collect();
        format!("topic {}, id {}{}\n{}", self.name, self.id, properties.concat(), table(&rows))
    }
}

fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}
