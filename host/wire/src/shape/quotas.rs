//! Shapes of the APIs about client quotas.

use super::{BOOL, F64, Field, I8, I16, I32, Kind, STR, field};

pub(super) const DESCRIBE_CLIENT_QUOTAS_REQUEST: &[Field] =
    &[field("components", Kind::Array(&Kind::Struct(COMPONENT))), field("strict", BOOL)];

const COMPONENT: &[Field] =
    &[field("entity_type", STR), field("match_type", I8), field("match", STR).nullable()];

pub(super) const DESCRIBE_CLIENT_QUOTAS_RESPONSE: &[Field] = &[
    field("throttle_time_ms", I32),
    field("error_code", I16),
    field("error_message", STR).nullable(),
    field("entries", Kind::Array(&Kind::Struct(DESCRIBED_QUOTAS))).nullable(),
];

const DESCRIBED_QUOTAS: &[Field] = &[
    field("entity", Kind::Array(&Kind::Struct(ENTITY))),
    field("values", Kind::Array(&Kind::Struct(&[field("key", STR), field("value", F64)]))),
];

const ENTITY: &[Field] = &[field("entity_type", STR), field("entity_name", STR).nullable()];

pub(super) const ALTER_CLIENT_QUOTAS_REQUEST: &[Field] =
    &[field("entries", Kind::Array(&Kind::Struct(QUOTAS_TO_ALTER))), field("validate_only", BOOL)];

const QUOTAS_TO_ALTER: &[Field] = &[
    field("entity", Kind::Array(&Kind::Struct(ENTITY))),
    field(
        "ops",
        Kind::Array(&Kind::Struct(&[field("key", STR), field("value", F64), field("remove", BOOL)])),
    ),
];

pub(super) const ALTER_CLIENT_QUOTAS_RESPONSE: &[Field] =
    &[field("throttle_time_ms", I32), field("entries", Kind::Array(&Kind::Struct(ALTERED_QUOTAS)))];

const ALTERED_QUOTAS: &[Field] = &[
    field("error_code", I16),
    field("error_message", STR).nullable(),
    field("entity", Kind::Array(&Kind::Struct(ENTITY))),
];
