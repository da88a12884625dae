//! Shapes of the APIs that describe what is there: log dirs, producers, topics by page, resources with settings.

use super::{BOOL, Field, I8, I8S, I16, I32, I32S, I64, Kind, STR, UUID, field};

pub(super) const DESCRIBE_LOG_DIRS_REQUEST: &[Field] =
    &[field("topics", Kind::Array(&Kind::Struct(TOPIC_AND_PARTITIONS))).nullable()];

const TOPIC_AND_PARTITIONS: &[Field] = &[field("name", STR), field("partition_indexes", I32S)];

pub(super) const DESCRIBE_LOG_DIRS_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32),
    field("error_code", I16).from(3),
    field("results", Kind::Array(&Kind::Struct(LOG_DIR))),
];

const LOG_DIR: &[Field] = &[
    field("error_code", I16),
    field("log_dir", STR),
    field("topics", Kind::Array(&Kind::Struct(LOG_DIR_TOPIC))),
    field("total_bytes", I64).from(4),
    field("usable_bytes", I64).from(4),
];

const LOG_DIR_TOPIC: &[Field] =
    &[field("name", STR), field("partitions", Kind::Array(&Kind::Struct(LOG_DIR_PARTITION)))];

const LOG_DIR_PARTITION: &[Field] = &[
    field("partition_index", I32),
    field("partition_size", I64),
    field("offset_lag", I64),
    field("is_future_key", BOOL),
];

pub(super) const DESCRIBE_PRODUCERS_REQUEST: &[Field] =
    &[field("topics", Kind::Array(&Kind::Struct(TOPIC_AND_PARTITIONS)))];

pub(super) const DESCRIBE_PRODUCERS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32), field("topics", Kind::Array(&Kind::Struct(PRODUCERS_OF_TOPIC)))];

const PRODUCERS_OF_TOPIC: &[Field] =
    &[field("name", STR), field("partitions", Kind::Array(&Kind::Struct(PRODUCERS_OF_PARTITION)))];

const PRODUCERS_OF_PARTITION: &[Field] = &[
    field("partition_index", I32),
    field("error_code", I16),
    field("error_message", STR).nullable(),
    field("active_producers", Kind::Array(&Kind::Struct(PRODUCER))),
];

const PRODUCER: &[Field] = &[
    field("producer_id", I64),
    field("producer_epoch", I32),
    field("last_sequence", I32),
    field("last_timestamp", I64),
    field("coordinator_epoch", I32),
    field("current_txn_start_offset", I64),
];

pub(super) const LIST_CONFIG_RESOURCES_REQUEST: &[Field] = &[field("resource_types", I8S).from(1)];

pub(super) const LIST_CONFIG_RESOURCES_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32),
    field("error_code", I16),
    field("config_resources", Kind::Array(&Kind::Struct(CONFIG_RESOURCE))),
];

const CONFIG_RESOURCE: &[Field] = &[field("resource_name", STR), field("resource_type", I8).from(1)];

pub(super) const DESCRIBE_TOPIC_PARTITIONS_REQUEST: &[Field] = &[
    field("topics", Kind::Array(&Kind::Struct(&[field("name", STR)]))),
    field("response_partition_limit", I32),
    field("cursor", Kind::Maybe(CURSOR)).nullable(),
];

const CURSOR: &[Field] = &[field("topic_name", STR), field("partition_index", I32)];

pub(super) const DESCRIBE_TOPIC_PARTITIONS_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32),
    field("topics", Kind::Array(&Kind::Struct(DESCRIBED_TOPIC))),
    field("next_cursor", Kind::Maybe(CURSOR)).nullable(),
];

const DESCRIBED_TOPIC: &[Field] = &[
    field("error_code", I16),
    field("name", STR).nullable(),
    field("topic_id", UUID),
    field("is_internal", BOOL),
    field("partitions", Kind::Array(&Kind::Struct(DESCRIBED_PARTITION))),
    field("topic_authorized_operations", I32),
];

const DESCRIBED_PARTITION: &[Field] = &[
    field("error_code", I16),
    field("partition_index", I32),
    field("leader_id", I32),
    field("leader_epoch", I32),
    field("replica_nodes", I32S),
    field("isr_nodes", I32S),
    field("eligible_leader_replicas", I32S).nullable(),
    field("last_known_elr", I32S).nullable(),
    field("offline_replicas", I32S),
];
