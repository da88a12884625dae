//! Shapes of the APIs about consumer groups: membership, committed offsets, and what tools ask of groups.

use super::{BOOL, BYTES, Field, I16, I32, I32S, I64, Kind, STR, STRS, field};

pub(super) const OFFSET_COMMIT_REQUEST: &[Field] = &[
    field("group_id", STR),
    field("generation_id_or_member_epoch", I32),
    field("member_id", STR),
    field("group_instance_id", STR).from(7).nullable(),
    field("retention_time_ms", I64).until(4),
    field("topics", Kind::Array(&Kind::Struct(TOPIC_TO_COMMIT))),
];

const TOPIC_TO_COMMIT: &[Field] =
    &[field("name", STR), field("partitions", Kind::Array(&Kind::Struct(PARTITION_TO_COMMIT)))];

const PARTITION_TO_COMMIT: &[Field] = &[
    field("partition_index", I32),
    field("committed_offset", I64),
    field("committed_leader_epoch", I32).from(6),
    field("committed_metadata", STR).nullable(),
];

pub(super) const OFFSET_COMMIT_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32).from(3), field("topics", Kind::Array(&Kind::Struct(TOPIC_WITH_ERRORS)))];

const TOPIC_WITH_ERRORS: &[Field] = &[
    field("name", STR),
    field(
        "partitions",
        Kind::Array(&Kind::Struct(&[field("partition_index", I32), field("error_code", I16)])),
    ),
];

pub(super) const OFFSET_FETCH_REQUEST: &[Field] = &[
    field("group_id", STR).until(7),
    field("topics", Kind::Array(&Kind::Struct(TOPIC_TO_FETCH))).until(7).nullable_from(2),
    field("groups", Kind::Array(&Kind::Struct(GROUP_TO_FETCH))).from(8),
    field("require_stable", BOOL).from(7),
];

const GROUP_TO_FETCH: &[Field] = &[
    field("group_id", STR),
    field("member_id", STR).from(9).nullable(),
    field("member_epoch", I32).from(9),
    field("topics", Kind::Array(&Kind::Struct(TOPIC_TO_FETCH))).nullable(),
];

const TOPIC_TO_FETCH: &[Field] = &[field("name", STR), field("partition_indexes", I32S)];

pub(super) const OFFSET_FETCH_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32).from(3),
    field("topics", Kind::Array(&Kind::Struct(FETCHED_TOPIC))).until(7),
    field("error_code", I16).from(2).until(7),
    field("groups", Kind::Array(&Kind::Struct(FETCHED_GROUP))).from(8),
];

const FETCHED_GROUP: &[Field] = &[
    field("group_id", STR),
    field("topics", Kind::Array(&Kind::Struct(FETCHED_TOPIC))),
    field("error_code", I16),
];

const FETCHED_TOPIC: &[Field] =
    &[field("name", STR), field("partitions", Kind::Array(&Kind::Struct(FETCHED_PARTITION)))];

const FETCHED_PARTITION: &[Field] = &[
    field("partition_index", I32),
    field("committed_offset", I64),
    field("committed_leader_epoch", I32).from(5),
    field("metadata", STR).nullable(),
    field("error_code", I16),
];

pub(super) const JOIN_GROUP_REQUEST: &[Field] = &[
    field("group_id", STR),
    field("session_timeout_ms", I32),
    field("rebalance_timeout_ms", I32).from(1),
    field("member_id", STR),
    field("group_instance_id", STR).from(5).nullable(),
    field("protocol_type", STR),
    field("protocols", Kind::Array(&Kind::Struct(&[field("name", STR), field("metadata", BYTES)]))),
    field("reason", STR).from(8).nullable(),
];

pub(super) const JOIN_GROUP_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32).from(2),
    field("error_code", I16),
    field("generation_id", I32),
    field("protocol_type", STR).from(7).nullable(),
    field("protocol_name", STR).nullable_from(7),
    field("leader", STR),
    field("skip_assignment", BOOL).from(9),
    field("member_id", STR),
    field("members", Kind::Array(&Kind::Struct(JOINED_MEMBER))),
];

const JOINED_MEMBER: &[Field] =
    &[field("member_id", STR), field("group_instance_id", STR).from(5).nullable(), field("metadata", BYTES)];

pub(super) const HEARTBEAT_REQUEST: &[Field] = &[
    field("group_id", STR),
    field("generation_id", I32),
    field("member_id", STR),
    field("group_instance_id", STR).from(3).nullable(),
];

pub(super) const HEARTBEAT_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32).from(1), field("error_code", I16)];

pub(super) const LEAVE_GROUP_REQUEST: &[Field] = &[
    field("group_id", STR),
    field("member_id", STR).until(2),
    field("members", Kind::Array(&Kind::Struct(LEAVING_MEMBER))).from(3),
];

const LEAVING_MEMBER: &[Field] = &[
    field("member_id", STR),
    field("group_instance_id", STR).nullable(),
    field("reason", STR).from(5).nullable(),
];

pub(super) const LEAVE_GROUP_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32).from(1),
    field("error_code", I16),
    field("members", Kind::Array(&Kind::Struct(LEFT_MEMBER))).from(3),
];

const LEFT_MEMBER: &[Field] =
    &[field("member_id", STR), field("group_instance_id", STR).nullable(), field("error_code", I16)];

pub(super) const SYNC_GROUP_REQUEST: &[Field] = &[
    field("group_id", STR),
    field("generation_id", I32),
    field("member_id", STR),
    field("group_instance_id", STR).from(3).nullable(),
    field("protocol_type", STR).from(5).nullable(),
    field("protocol_name", STR).from(5).nullable(),
    field("assignments", Kind::Array(&Kind::Struct(&[field("member_id", STR), field("assignment", BYTES)]))),
];

pub(super) const SYNC_GROUP_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32).from(1),
    field("error_code", I16),
    field("protocol_type", STR).from(5).nullable(),
    field("protocol_name", STR).from(5).nullable(),
    field("assignment", BYTES),
];

pub(super) const DESCRIBE_GROUPS_REQUEST: &[Field] =
    &[field("groups", STRS), field("include_authorized_operations", BOOL).from(3)];

pub(super) const DESCRIBE_GROUPS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32).from(1), field("groups", Kind::Array(&Kind::Struct(DESCRIBED_GROUP)))];

const DESCRIBED_GROUP: &[Field] = &[
    field("error_code", I16),
    field("error_message", STR).from(6).nullable(),
    field("group_id", STR),
    field("group_state", STR),
    field("protocol_type", STR),
    field("protocol_data", STR),
    field("members", Kind::Array(&Kind::Struct(DESCRIBED_MEMBER))),
    field("authorized_operations", I32).from(3),
];

const DESCRIBED_MEMBER: &[Field] = &[
    field("member_id", STR),
    field("group_instance_id", STR).from(4).nullable(),
    field("client_id", STR),
    field("client_host", STR),
    field("member_metadata", BYTES),
    field("member_assignment", BYTES),
];

pub(super) const LIST_GROUPS_REQUEST: &[Field] =
    &[field("states_filter", STRS).from(4), field("types_filter", STRS).from(5)];

pub(super) const LIST_GROUPS_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32).from(1),
    field("error_code", I16),
    field("groups", Kind::Array(&Kind::Struct(LISTED_GROUP))),
];

const LISTED_GROUP: &[Field] = &[
    field("group_id", STR),
    field("protocol_type", STR),
    field("group_state", STR).from(4),
    field("group_type", STR).from(5),
];

pub(super) const DELETE_GROUPS_REQUEST: &[Field] = &[field("groups_names", STRS)];

pub(super) const DELETE_GROUPS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32), field("results", Kind::Array(&Kind::Struct(DELETED_GROUP)))];

const DELETED_GROUP: &[Field] = &[field("group_id", STR), field("error_code", I16)];

pub(super) const OFFSET_DELETE_REQUEST: &[Field] =
    &[field("group_id", STR), field("topics", Kind::Array(&Kind::Struct(TOPIC_TO_FORGET)))];

const TOPIC_TO_FORGET: &[Field] =
    &[field("name", STR), field("partitions", Kind::Array(&Kind::Struct(&[field("partition_index", I32)])))];

pub(super) const OFFSET_DELETE_RESPONSE: &[Field] = &[
    field("error_code", I16),
    field("throttle_time_ms", I32),
    field("topics", Kind::Array(&Kind::Struct(TOPIC_WITH_ERRORS))),
];
