//! Configuration rows of topics and of the broker, as DescribeConfigs and CreateTopics show them.

use kafka_protocol::protocol::StrBytes;

use crate::config::FlushPolicy;
use crate::module_keys;
use crate::properties::{PROPERTIES, Property};
use crate::settings::{self, Values};
use crate::shared::Shared;

/// Resource type of a topic.
pub(super) const TOPIC: i8 = 2;
/// Resource type of a broker.
pub(super) const BROKER: i8 = 4;
/// Resource type of a broker's loggers.
pub(super) const BROKER_LOGGER: i8 = 8;
/// Resource type of a subscription of client metrics (KIP-714).
pub(super) const CLIENT_METRICS: i8 = 16;
/// Resource type of a group.
pub(super) const GROUP: i8 = 32;

/// Where a value comes from: the topic.
pub(super) const FROM_TOPIC: i8 = 1;
/// Where a value comes from: what the host was started with.
pub(super) const FROM_HOST: i8 = 4;
/// Where a value comes from: the table.
pub(super) const FROM_DEFAULT: i8 = 5;

/// The type of a text.
const STRING: i8 = 2;

/// A property with its value.
pub(super) struct Row {
    pub(super) name: StrBytes,
    pub(super) value: Option<StrBytes>,
    pub(super) source: i8,
    pub(super) kind: i8,
    pub(super) read_only: bool,
    pub(super) doc: &'static str,
    /// Name, value and source, the one that counts first.
    pub(super) synonyms: Vec<(StrBytes, String, i8)>,
}

/// All properties of a topic, then what it has of modules' own keys.
pub(super) fn topic_rows(values: &Values) -> impl Iterator<Item = Row> + use<'_> {
    let own = PROPERTIES.iter().map(|property| topic_row(property, values));
    own.chain(module_keys::of(values).map(|(name, value)| module_row(name, value)))
}

fn module_row(name: &str, value: &str) -> Row {
    let name = StrBytes::from_string(name.to_owned());
    Row {
        name: name.clone(),
        value: Some(StrBytes::from_string(value.to_owned())),
        source: FROM_TOPIC,
        kind: STRING,
        read_only: false,
        doc: "A module's own key: what it means is the module's matter.",
        synonyms: vec![(name, value.to_owned(), FROM_TOPIC)],
    }
}

fn topic_row(property: &'static Property, values: &Values) -> Row {
    let name = StrBytes::from_static_str(property.name);
    let mut synonyms = Vec::new();
    if let Some(value) = values.get(property.name) {
        synonyms.push((name.clone(), value.clone(), FROM_TOPIC));
    }
    if !property.twin.is_empty() {
        let twin = StrBytes::from_static_str(property.twin);
        synonyms.push((twin, property.default.to_owned(), FROM_DEFAULT));
    }
    Row {
        name,
        value: Some(StrBytes::from_string(settings::text(values, property.name).to_owned())),
        source: if values.contains_key(property.name) { FROM_TOPIC } else { FROM_DEFAULT },
        kind: property.type_number(),
        read_only: false,
        doc: property.doc,
        synonyms,
    }
}

/// What the host was started with, under the names that Kafka's tools know. None of it changes while it runs.
pub(super) fn broker_rows(shared: &Shared) -> Vec<Row> {
    let config = &shared.config;
    let (host, port) = shared.advertised();
    let flush = match config.flush {
        FlushPolicy::Always => "always",
        FlushPolicy::Interval => "interval",
        FlushPolicy::Never => "never",
    };
    let own = [
        (
            "advertised.listeners",
            7,
            format!("PLAINTEXT://{host}:{port}"),
            FROM_HOST,
            "Address that clients are told.",
        ),
        (
            "auto.create.topics.enable",
            1,
            "false".to_owned(),
            FROM_DEFAULT,
            "Topics are created by request only.",
        ),
        (
            "default.replication.factor",
            3,
            "1".to_owned(),
            FROM_DEFAULT,
            "Replicas of a topic that names none.",
        ),
        ("listeners", 7, format!("PLAINTEXT://{}", config.listen), FROM_HOST, "Address that is listened on."),
        ("log.dirs", 7, config.data.display().to_string(), FROM_HOST, "Data folder."),
        ("node.id", 3, config.node_id.to_string(), FROM_HOST, "This node's id."),
        ("num.partitions", 3, "1".to_owned(), FROM_DEFAULT, "Partitions of a topic that names none."),
        (
            "socket.request.max.bytes",
            3,
            config.limits.request_bytes_max.to_string(),
            FROM_DEFAULT,
            "Largest request.",
        ),
        (
            "verbatim.flush",
            2,
            flush.to_owned(),
            FROM_HOST,
            "When an append counts as kept: always, interval, never.",
        ),
    ];
    let own =
        own.into_iter().map(|(name, kind, value, source, doc)| broker_row(name, kind, value, source, doc));
    let twins = PROPERTIES.iter().filter(|property| !property.twin.is_empty()).map(|property| {
        broker_row(
            property.twin,
            property.type_number(),
            property.default.to_owned(),
            FROM_DEFAULT,
            property.doc,
        )
    });
    own.chain(twins).collect()
}

fn broker_row(name: &'static str, kind: i8, value: String, source: i8, doc: &'static str) -> Row {
    let name = StrBytes::from_static_str(name);
    Row {
        name: name.clone(),
        value: Some(StrBytes::from_string(value.clone())),
        source,
        kind,
        read_only: true,
        doc,
        synonyms: vec![(name, value, source)],
    }
}
