//! Shapes of the APIs about the cluster: Metadata, ApiVersions, FindCoordinator, DescribeCluster.

use super::{BOOL, Field, I8, I16, I32, I32S, I64, Kind, STR, STRS, UUID, field};

pub(super) const METADATA_REQUEST: &[Field] = &[
    field("topics", Kind::Array(&Kind::Struct(METADATA_REQUEST_TOPIC))).nullable_from(1),
    field("allow_auto_topic_creation", BOOL).from(4),
    field("include_cluster_authorized_operations", BOOL).from(8).until(10),
    field("include_topic_authorized_operations", BOOL).from(8),
];

const METADATA_REQUEST_TOPIC: &[Field] =
    &[field("topic_id", UUID).from(10), field("name", STR).nullable_from(10)];

pub(super) const METADATA_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32).from(3),
    field("brokers", Kind::Array(&Kind::Struct(METADATA_BROKER))),
    field("cluster_id", STR).from(2).nullable(),
    field("controller_id", I32).from(1),
    field("topics", Kind::Array(&Kind::Struct(METADATA_TOPIC))),
    field("cluster_authorized_operations", I32).from(8).until(10),
    field("error_code", I16).from(13),
];

const METADATA_BROKER: &[Field] =
    &[field("node_id", I32), field("host", STR), field("port", I32), field("rack", STR).from(1).nullable()];

const METADATA_TOPIC: &[Field] = &[
    field("error_code", I16),
    field("name", STR).nullable_from(12),
    field("topic_id", UUID).from(10),
    field("is_internal", BOOL).from(1),
    field("partitions", Kind::Array(&Kind::Struct(METADATA_PARTITION))),
    field("topic_authorized_operations", I32).from(8),
];

const METADATA_PARTITION: &[Field] = &[
    field("error_code", I16),
    field("partition_index", I32),
    field("leader_id", I32),
    field("leader_epoch", I32).from(7),
    field("replica_nodes", I32S),
    field("isr_nodes", I32S),
    field("offline_replicas", I32S).from(5),
];

pub(super) const API_VERSIONS_REQUEST: &[Field] =
    &[field("client_software_name", STR).from(3), field("client_software_version", STR).from(3)];

pub(super) const API_VERSIONS_RESPONSE: &[Field] = &[
    field("error_code", I16),
    field("api_keys", Kind::Array(&Kind::Struct(API_VERSION))),
    field("throttle_time_ms", I32).from(1),
    field("supported_features", Kind::Array(&Kind::Struct(FEATURE))).from(3).tag(0),
    field("finalized_features_epoch", I64).from(3).tag(1),
    field("finalized_features", Kind::Array(&Kind::Struct(FEATURE))).from(3).tag(2),
    field("zk_migration_ready", BOOL).from(3).tag(3),
];

const API_VERSION: &[Field] = &[field("api_key", I16), field("min_version", I16), field("max_version", I16)];

/// Supported and finalized features alike: a name and two levels.
const FEATURE: &[Field] = &[field("name", STR), field("level", I16), field("other_level", I16)];

pub(super) const FIND_COORDINATOR_REQUEST: &[Field] =
    &[field("key", STR).until(3), field("key_type", I8).from(1), field("coordinator_keys", STRS).from(4)];

pub(super) const FIND_COORDINATOR_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32).from(1),
    field("error_code", I16).until(3),
    field("error_message", STR).from(1).until(3).nullable(),
    field("node_id", I32).until(3),
    field("host", STR).until(3),
    field("port", I32).until(3),
    field("coordinators", Kind::Array(&Kind::Struct(COORDINATOR))).from(4),
];

const COORDINATOR: &[Field] = &[
    field("key", STR),
    field("node_id", I32),
    field("host", STR),
    field("port", I32),
    field("error_code", I16),
    field("error_message", STR).nullable(),
];

pub(super) const DESCRIBE_CLUSTER_REQUEST: &[Field] = &[
    field("include_cluster_authorized_operations", BOOL),
    field("endpoint_type", I8).from(1),
    field("include_fenced_brokers", BOOL).from(2),
];

pub(super) const DESCRIBE_CLUSTER_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32),
    field("error_code", I16),
    field("error_message", STR).nullable(),
    field("endpoint_type", I8).from(1),
    field("cluster_id", STR),
    field("controller_id", I32),
    field("brokers", Kind::Array(&Kind::Struct(CLUSTER_BROKER))),
    field("cluster_authorized_operations", I32),
];

const CLUSTER_BROKER: &[Field] = &[
    field("broker_id", I32),
    field("host", STR),
    field("port", I32),
    field("rack", STR).nullable(),
    field("is_fenced", BOOL).from(2),
];
