//! Shapes of the data APIs: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, InitProducerId.

use super::{BYTES, Field, I8, I16, I32, I32S, I64, Kind, STR, UUID, field};

pub(super) const PRODUCE_REQUEST: &[Field] = &[
    field("transactional_id", STR).nullable(),
    field("acks", I16),
    field("timeout_ms", I32),
    field("topic_data", Kind::Array(&Kind::Struct(PRODUCE_TOPIC))),
];

const PRODUCE_TOPIC: &[Field] = &[
    field("name", STR).until(12),
    field("topic_id", UUID).from(13),
    field("partition_data", Kind::Array(&Kind::Struct(PRODUCE_PARTITION))),
];

const PRODUCE_PARTITION: &[Field] = &[field("index", I32), field("records", BYTES).nullable()];

pub(super) const PRODUCE_RESPONSE: &[Field] = &[
    field("responses", Kind::Array(&Kind::Struct(PRODUCED_TOPIC))),
    field("throttle_time_ms", I32),
    field("node_endpoints", Kind::Array(&Kind::Struct(NODE_ENDPOINT))).from(10).tag(0),
];

const PRODUCED_TOPIC: &[Field] = &[
    field("name", STR).until(12),
    field("topic_id", UUID).from(13),
    field("partition_responses", Kind::Array(&Kind::Struct(PRODUCED_PARTITION))),
];

const PRODUCED_PARTITION: &[Field] = &[
    field("index", I32),
    field("error_code", I16),
    field("base_offset", I64),
    field("log_append_time_ms", I64),
    field("log_start_offset", I64).from(5),
    field("record_errors", Kind::Array(&Kind::Struct(RECORD_ERROR))).from(8),
    field("error_message", STR).from(8).nullable(),
    field("current_leader", Kind::Struct(LEADER)).from(10).tag(0),
];

const RECORD_ERROR: &[Field] =
    &[field("batch_index", I32), field("batch_index_error_message", STR).nullable()];

const LEADER: &[Field] = &[field("leader_id", I32), field("leader_epoch", I32)];

const NODE_ENDPOINT: &[Field] =
    &[field("node_id", I32), field("host", STR), field("port", I32), field("rack", STR).nullable()];

pub(super) const FETCH_REQUEST: &[Field] = &[
    field("replica_id", I32).until(14),
    field("max_wait_ms", I32),
    field("min_bytes", I32),
    field("max_bytes", I32),
    field("isolation_level", I8),
    field("session_id", I32).from(7),
    field("session_epoch", I32).from(7),
    field("topics", Kind::Array(&Kind::Struct(FETCH_TOPIC))),
    field("forgotten_topics_data", Kind::Array(&Kind::Struct(FORGOTTEN_TOPIC))).from(7),
    field("rack_id", STR).from(11),
    field("cluster_id", STR).nullable().from(12).tag(0),
    field("replica_state", Kind::Struct(REPLICA_STATE)).from(15).tag(1),
];

const FETCH_TOPIC: &[Field] = &[
    field("topic", STR).until(12),
    field("topic_id", UUID).from(13),
    field("partitions", Kind::Array(&Kind::Struct(FETCH_PARTITION))),
];

const FETCH_PARTITION: &[Field] = &[
    field("partition", I32),
    field("current_leader_epoch", I32).from(9),
    field("fetch_offset", I64),
    field("last_fetched_epoch", I32).from(12),
    field("log_start_offset", I64).from(5),
    field("partition_max_bytes", I32),
    field("replica_directory_id", UUID).from(17).tag(0),
    field("high_watermark", I64).from(18).tag(1),
];

const FORGOTTEN_TOPIC: &[Field] =
    &[field("topic", STR).until(12), field("topic_id", UUID).from(13), field("partitions", I32S)];

const REPLICA_STATE: &[Field] = &[field("replica_id", I32), field("replica_epoch", I64)];

pub(super) const FETCH_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32),
    field("error_code", I16).from(7),
    field("session_id", I32).from(7),
    field("responses", Kind::Array(&Kind::Struct(FETCHED_TOPIC))),
    field("node_endpoints", Kind::Array(&Kind::Struct(NODE_ENDPOINT))).from(16).tag(0),
];

const FETCHED_TOPIC: &[Field] = &[
    field("topic", STR).until(12),
    field("topic_id", UUID).from(13),
    field("partitions", Kind::Array(&Kind::Struct(FETCHED_PARTITION))),
];

const FETCHED_PARTITION: &[Field] = &[
    field("partition_index", I32),
    field("error_code", I16),
    field("high_watermark", I64),
    field("last_stable_offset", I64),
    field("log_start_offset", I64).from(5),
    field("aborted_transactions", Kind::Array(&Kind::Struct(ABORTED_TRANSACTION))).nullable(),
    field("preferred_read_replica", I32).from(11),
    field("records", BYTES).nullable(),
    field("diverging_epoch", Kind::Struct(DIVERGING_EPOCH)).from(12).tag(0),
    field("current_leader", Kind::Struct(LEADER)).from(12).tag(1),
    field("snapshot_id", Kind::Struct(SNAPSHOT_ID)).from(12).tag(2),
];

const ABORTED_TRANSACTION: &[Field] = &[field("producer_id", I64), field("first_offset", I64)];

const DIVERGING_EPOCH: &[Field] = &[field("epoch", I32), field("end_offset", I64)];

const SNAPSHOT_ID: &[Field] = &[field("end_offset", I64), field("epoch", I32)];

pub(super) const LIST_OFFSETS_REQUEST: &[Field] = &[
    field("replica_id", I32),
    field("isolation_level", I8).from(2),
    field("topics", Kind::Array(&Kind::Struct(LIST_OFFSETS_TOPIC))),
    field("timeout_ms", I32).from(10),
];

const LIST_OFFSETS_TOPIC: &[Field] =
    &[field("name", STR), field("partitions", Kind::Array(&Kind::Struct(LIST_OFFSETS_PARTITION)))];

const LIST_OFFSETS_PARTITION: &[Field] =
    &[field("partition_index", I32), field("current_leader_epoch", I32).from(4), field("timestamp", I64)];

pub(super) const LIST_OFFSETS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32).from(2), field("topics", Kind::Array(&Kind::Struct(LISTED_TOPIC)))];

const LISTED_TOPIC: &[Field] =
    &[field("name", STR), field("partitions", Kind::Array(&Kind::Struct(LISTED_PARTITION)))];

const LISTED_PARTITION: &[Field] = &[
    field("partition_index", I32),
    field("error_code", I16),
    field("timestamp", I64),
    field("offset", I64),
    field("leader_epoch", I32).from(4),
];

pub(super) const OFFSET_FOR_LEADER_EPOCH_REQUEST: &[Field] =
    &[field("replica_id", I32).from(3), field("topics", Kind::Array(&Kind::Struct(EPOCH_TOPIC)))];

const EPOCH_TOPIC: &[Field] =
    &[field("topic", STR), field("partitions", Kind::Array(&Kind::Struct(EPOCH_PARTITION)))];

const EPOCH_PARTITION: &[Field] =
    &[field("partition", I32), field("current_leader_epoch", I32), field("leader_epoch", I32)];

pub(super) const OFFSET_FOR_LEADER_EPOCH_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32), field("topics", Kind::Array(&Kind::Struct(EPOCH_RESULT_TOPIC)))];

const EPOCH_RESULT_TOPIC: &[Field] =
    &[field("topic", STR), field("partitions", Kind::Array(&Kind::Struct(EPOCH_RESULT_PARTITION)))];

const EPOCH_RESULT_PARTITION: &[Field] = &[
    field("error_code", I16),
    field("partition", I32),
    field("leader_epoch", I32),
    field("end_offset", I64),
];

pub(super) const INIT_PRODUCER_ID_REQUEST: &[Field] = &[
    field("transactional_id", STR).nullable(),
    field("transaction_timeout_ms", I32),
    field("producer_id", I64).from(3),
    field("producer_epoch", I16).from(3),
];

pub(super) const INIT_PRODUCER_ID_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32),
    field("error_code", I16),
    field("producer_id", I64),
    field("producer_epoch", I16),
];

pub(super) const DELETE_RECORDS_REQUEST: &[Field] =
    &[field("topics", Kind::Array(&Kind::Struct(TOPIC_TO_SHORTEN))), field("timeout_ms", I32)];

const TOPIC_TO_SHORTEN: &[Field] = &[
    field("name", STR),
    field("partitions", Kind::Array(&Kind::Struct(&[field("partition_index", I32), field("offset", I64)]))),
];

pub(super) const DELETE_RECORDS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32), field("topics", Kind::Array(&Kind::Struct(SHORTENED_TOPIC)))];

const SHORTENED_TOPIC: &[Field] =
    &[field("name", STR), field("partitions", Kind::Array(&Kind::Struct(SHORTENED_PARTITION)))];

const SHORTENED_PARTITION: &[Field] =
    &[field("partition_index", I32), field("low_watermark", I64), field("error_code", I16)];
