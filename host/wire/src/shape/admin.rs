//! Shapes of the administrative APIs: topics, partitions, configurations.

use super::{BOOL, Field, I8, I16, I32, I32S, Kind, STR, STRS, UUID, field};

pub(super) const CREATE_TOPICS_REQUEST: &[Field] = &[
    field("topics", Kind::Array(&Kind::Struct(CREATABLE_TOPIC))),
    field("timeout_ms", I32),
    field("validate_only", BOOL),
];

const CREATABLE_TOPIC: &[Field] = &[
    field("name", STR),
    field("num_partitions", I32),
    field("replication_factor", I16),
    field("assignments", Kind::Array(&Kind::Struct(REPLICA_ASSIGNMENT))),
    field("configs", Kind::Array(&Kind::Struct(NAME_AND_VALUE))),
];

const REPLICA_ASSIGNMENT: &[Field] = &[field("partition_index", I32), field("broker_ids", I32S)];

const NAME_AND_VALUE: &[Field] = &[field("name", STR), field("value", STR).nullable()];

pub(super) const CREATE_TOPICS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32), field("topics", Kind::Array(&Kind::Struct(CREATED_TOPIC)))];

const CREATED_TOPIC: &[Field] = &[
    field("name", STR),
    field("topic_id", UUID).from(7),
    field("error_code", I16),
    field("error_message", STR).nullable(),
    field("num_partitions", I32).from(5),
    field("replication_factor", I16).from(5),
    field("configs", Kind::Array(&Kind::Struct(CREATED_CONFIG))).from(5).nullable(),
    field("topic_config_error_code", I16).from(5).tag(0),
];

const CREATED_CONFIG: &[Field] = &[
    field("name", STR),
    field("value", STR).nullable(),
    field("read_only", BOOL),
    field("config_source", I8),
    field("is_sensitive", BOOL),
];

pub(super) const DELETE_TOPICS_REQUEST: &[Field] = &[
    field("topics", Kind::Array(&Kind::Struct(TOPIC_TO_DELETE))).from(6),
    field("topic_names", STRS).until(5),
    field("timeout_ms", I32),
];

const TOPIC_TO_DELETE: &[Field] = &[field("name", STR).nullable(), field("topic_id", UUID)];

pub(super) const DELETE_TOPICS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32), field("responses", Kind::Array(&Kind::Struct(DELETED_TOPIC)))];

const DELETED_TOPIC: &[Field] = &[
    field("name", STR).nullable_from(6),
    field("topic_id", UUID).from(6),
    field("error_code", I16),
    field("error_message", STR).from(5).nullable(),
];

pub(super) const DESCRIBE_CONFIGS_REQUEST: &[Field] = &[
    field("resources", Kind::Array(&Kind::Struct(RESOURCE_TO_DESCRIBE))),
    field("include_synonyms", BOOL),
    field("include_documentation", BOOL).from(3),
];

const RESOURCE_TO_DESCRIBE: &[Field] =
    &[field("resource_type", I8), field("resource_name", STR), field("configuration_keys", STRS).nullable()];

pub(super) const DESCRIBE_CONFIGS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32), field("results", Kind::Array(&Kind::Struct(DESCRIBED_RESOURCE)))];

const DESCRIBED_RESOURCE: &[Field] = &[
    field("error_code", I16),
    field("error_message", STR).nullable(),
    field("resource_type", I8),
    field("resource_name", STR),
    field("configs", Kind::Array(&Kind::Struct(DESCRIBED_CONFIG))),
];

const DESCRIBED_CONFIG: &[Field] = &[
    field("name", STR),
    field("value", STR).nullable(),
    field("read_only", BOOL),
    field("config_source", I8),
    field("is_sensitive", BOOL),
    field("synonyms", Kind::Array(&Kind::Struct(CONFIG_SYNONYM))),
    field("config_type", I8).from(3),
    field("documentation", STR).from(3).nullable(),
];

const CONFIG_SYNONYM: &[Field] = &[field("name", STR), field("value", STR).nullable(), field("source", I8)];

pub(super) const ALTER_CONFIGS_REQUEST: &[Field] =
    &[field("resources", Kind::Array(&Kind::Struct(RESOURCE_TO_ALTER))), field("validate_only", BOOL)];

const RESOURCE_TO_ALTER: &[Field] = &[
    field("resource_type", I8),
    field("resource_name", STR),
    field("configs", Kind::Array(&Kind::Struct(NAME_AND_VALUE))),
];

pub(super) const INCREMENTAL_ALTER_CONFIGS_REQUEST: &[Field] =
    &[field("resources", Kind::Array(&Kind::Struct(RESOURCE_TO_CHANGE))), field("validate_only", BOOL)];

const RESOURCE_TO_CHANGE: &[Field] = &[
    field("resource_type", I8),
    field("resource_name", STR),
    field("configs", Kind::Array(&Kind::Struct(CONFIG_CHANGE))),
];

const CONFIG_CHANGE: &[Field] =
    &[field("name", STR), field("config_operation", I8), field("value", STR).nullable()];

/// AlterConfigs and IncrementalAlterConfigs answer alike.
pub(super) const ALTER_CONFIGS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32), field("responses", Kind::Array(&Kind::Struct(ALTERED_RESOURCE)))];

const ALTERED_RESOURCE: &[Field] = &[
    field("error_code", I16),
    field("error_message", STR).nullable(),
    field("resource_type", I8),
    field("resource_name", STR),
];

pub(super) const CREATE_PARTITIONS_REQUEST: &[Field] = &[
    field("topics", Kind::Array(&Kind::Struct(TOPIC_TO_GROW))),
    field("timeout_ms", I32),
    field("validate_only", BOOL),
];

const TOPIC_TO_GROW: &[Field] = &[
    field("name", STR),
    field("count", I32),
    field("assignments", Kind::Array(&Kind::Struct(&[field("broker_ids", I32S)]))).nullable(),
];

pub(super) const CREATE_PARTITIONS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32), field("results", Kind::Array(&Kind::Struct(GROWN_TOPIC)))];

const GROWN_TOPIC: &[Field] =
    &[field("name", STR), field("error_code", I16), field("error_message", STR).nullable()];
