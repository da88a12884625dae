//! Hostile lengths: every body is walked against a table of shapes before the message library may decode it.
//!
//! The library reserves memory for as many array elements as the peer states, before it has seen one: five bytes of
//! Metadata v12 ask for 290 GB and abort the process. The walk reads the same bytes without allocating and refuses
//! - an array count that the bytes left cannot hold (by the least size of an element), or a negative one where null is
//!   not allowed,
//! - more elements in all than [`Limits::elements_max`], because a three-byte element becomes a hundred in memory,
//! - string and byte lengths beyond the bytes left, strings that are not UTF-8, varints longer than five bytes,
//! - tagged fields out of order or twice (KIP-482), or of another size than the field inside, and
//! - bytes left over after the last field.
//!
//! What passes has exactly the shape that the decoder expects. The tables live in the files beside this one, one for a
//! few APIs; each field says from and until which version it exists.

mod admin;
mod cluster;
mod data;
mod describe;
mod groups;
mod quotas;
mod walk;

pub(crate) use walk::walk;
#[cfg(test)]
mod tests;

use crate::api::ApiKey;

/// What decoding allocates at most for one array element or tagged field of a request, in bytes.
pub(crate) const ELEMENT_BYTES: usize = 256;

/// Bounds of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many array elements and unknown tagged fields one message may hold in all.
    pub elements_max: usize,
}

impl Limits {
    /// For requests of clients: 100,000 elements, about 20 MB once decoded at worst.
    pub const REQUEST: Self = Self { elements_max: 100_000 };
    /// For answers of brokers, which may describe a whole cluster: 2,000,000 elements.
    pub const RESPONSE: Self = Self { elements_max: 2_000_000 };
}

/// Why a message was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field `{field}` at byte {offset}: {problem}")]
pub struct ShapeError {
    /// The path of the field, such as `topic_data[0].partition_data[2].records`.
    pub field: String,
    /// Where in the body the field begins.
    pub offset: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The bytes end before the field does.
    #[error("needs {needed} bytes, only {left} left")]
    Short {
        /// Bytes the field needs.
        needed: u64,
        /// Bytes there are.
        left: usize,
    },
    /// More elements are stated than the bytes left can hold.
    #[error("states {count} elements of at least {each} bytes, only {left} bytes left")]
    Count {
        /// Elements stated.
        count: u64,
        /// Least size of one element in bytes.
        each: usize,
        /// Bytes there are.
        left: usize,
    },
    /// More elements in the whole message than allowed.
    #[error("exceeds the limit of {limit} elements in one message")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Null, or a length below -1.
    #[error("length {length} is not allowed, expected {least} or more")]
    Negative {
        /// The length stated; compact lengths are shown as what they mean.
        length: i64,
        /// The least length allowed.
        least: i64,
    },
    /// A varint of more than five bytes or above 2^32 - 1.
    #[error("is a varint above 4294967295")]
    Varint,
    /// A string that is not UTF-8.
    #[error("is not UTF-8")]
    Utf8,
    /// A struct that may be null begins with neither 1 nor -1.
    #[error("begins with {found}, expected 1, or -1 for null")]
    Presence {
        /// The byte found.
        found: i8,
    },
    /// Tags must rise.
    #[error("tag {tag} after tag {before}, tags must rise")]
    TagOrder {
        /// The tag found.
        tag: u32,
        /// The tag before it.
        before: u32,
    },
    /// A tagged field that this version does not have.
    #[error("tag {tag} does not exist in version {version}")]
    TagVersion {
        /// The tag found.
        tag: u32,
        /// The message's version.
        version: i16,
    },
    /// A tagged field whose content is shorter or longer than its stated size.
    #[error("states {stated} bytes but holds {held}")]
    TagSize {
        /// Bytes stated.
        stated: usize,
        /// Bytes its content has.
        held: usize,
    },
    /// Bytes after the last field.
    #[error("{left} bytes left over after the last field")]
    Trailing {
        /// Bytes there are.
        left: usize,
    },
}

/// The shape of a message: its fields in wire order, and the first version with compact lengths and tagged fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) flexible_from: i16,
    pub(crate) fields: &'static [Field],
}

/// The version that no header has flexible fields at: used for a header without tagged fields.
const NEVER: i16 = i16::MAX;

/// One field, and the versions that have it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    name: &'static str,
    kind: Kind,
    nullable_from: i16,
    from: i16,
    until: i16,
    tag: Option<u32>,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A number, bool or uuid of so many bytes.
    Fixed(usize),
    /// A string; compact in flexible versions.
    Str,
    /// A string that stays with a two-byte length in flexible versions (the request header's client id).
    OldStr,
    /// Bytes; compact in flexible versions.
    Bytes,
    /// Fields, closed by tagged fields in flexible versions.
    Struct(&'static [Field]),
    /// A byte, and fields if it is 1; -1 is null.
    Maybe(&'static [Field]),
    /// Elements; the count is compact in flexible versions.
    Array(&'static Kind),
}

const BOOL: Kind = Kind::Fixed(1);
const I8: Kind = Kind::Fixed(1);
const I16: Kind = Kind::Fixed(2);
const I32: Kind = Kind::Fixed(4);
const I64: Kind = Kind::Fixed(8);
const F64: Kind = Kind::Fixed(8);
const I8S: Kind = Kind::Array(&I8);
const UUID: Kind = Kind::Fixed(16);
const STR: Kind = Kind::Str;
const BYTES: Kind = Kind::Bytes;
const I32S: Kind = Kind::Array(&I32);
const STRS: Kind = Kind::Array(&STR);

const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, nullable_from: NEVER, from: 0, until: i16::MAX, tag: None }
}

impl Field {
    /// Exists from this version on.
    const fn from(self, version: i16) -> Self {
        Self { from: version, ..self }
    }

    /// Exists until this version, inclusive.
    const fn until(self, version: i16) -> Self {
        Self { until: version, ..self }
    }

    /// May be null, in every version.
    const fn nullable(self) -> Self {
        self.nullable_from(0)
    }

    /// May be null from this version on.
    const fn nullable_from(self, version: i16) -> Self {
        Self { nullable_from: version, ..self }
    }

    /// Is a tagged field of this number.
    const fn tag(self, tag: u32) -> Self {
        Self { tag: Some(tag), ..self }
    }

    const fn exists(&self, version: i16) -> bool {
        version >= self.from && version <= self.until
    }
}

/// The header of a request: version 1, or 2 with tagged fields.
pub(crate) const REQUEST_HEADER: Message = Message {
    flexible_from: 2,
    fields: &[
        field("request_api_key", I16),
        field("request_api_version", I16),
        field("correlation_id", I32),
        field("client_id", Kind::OldStr).nullable(),
    ],
};

/// The header of an answer: version 0, or 1 with tagged fields.
pub(crate) const RESPONSE_HEADER: Message =
    Message { flexible_from: 1, fields: &[field("correlation_id", I32)] };

/// The shape of an API's request body.
pub(crate) const fn request(key: ApiKey) -> Message {
    let fields = match key {
        ApiKey::Produce => data::PRODUCE_REQUEST,
        ApiKey::Fetch => data::FETCH_REQUEST,
        ApiKey::ListOffsets => data::LIST_OFFSETS_REQUEST,
        ApiKey::Metadata => cluster::METADATA_REQUEST,
        ApiKey::OffsetCommit => groups::OFFSET_COMMIT_REQUEST,
        ApiKey::OffsetFetch => groups::OFFSET_FETCH_REQUEST,
        ApiKey::FindCoordinator => cluster::FIND_COORDINATOR_REQUEST,
        ApiKey::JoinGroup => groups::JOIN_GROUP_REQUEST,
        ApiKey::Heartbeat => groups::HEARTBEAT_REQUEST,
        ApiKey::LeaveGroup => groups::LEAVE_GROUP_REQUEST,
        ApiKey::SyncGroup => groups::SYNC_GROUP_REQUEST,
        ApiKey::DescribeGroups => groups::DESCRIBE_GROUPS_REQUEST,
        ApiKey::ListGroups => groups::LIST_GROUPS_REQUEST,
        ApiKey::ApiVersions => cluster::API_VERSIONS_REQUEST,
        ApiKey::CreateTopics => admin::CREATE_TOPICS_REQUEST,
        ApiKey::DeleteTopics => admin::DELETE_TOPICS_REQUEST,
        ApiKey::DeleteRecords => data::DELETE_RECORDS_REQUEST,
        ApiKey::InitProducerId => data::INIT_PRODUCER_ID_REQUEST,
        ApiKey::OffsetForLeaderEpoch => data::OFFSET_FOR_LEADER_EPOCH_REQUEST,
        ApiKey::DescribeConfigs => admin::DESCRIBE_CONFIGS_REQUEST,
        ApiKey::AlterConfigs => admin::ALTER_CONFIGS_REQUEST,
        ApiKey::DescribeLogDirs => describe::DESCRIBE_LOG_DIRS_REQUEST,
        ApiKey::CreatePartitions => admin::CREATE_PARTITIONS_REQUEST,
        ApiKey::IncrementalAlterConfigs => admin::INCREMENTAL_ALTER_CONFIGS_REQUEST,
        ApiKey::DeleteGroups => groups::DELETE_GROUPS_REQUEST,
        ApiKey::OffsetDelete => groups::OFFSET_DELETE_REQUEST,
        ApiKey::DescribeClientQuotas => quotas::DESCRIBE_CLIENT_QUOTAS_REQUEST,
        ApiKey::AlterClientQuotas => quotas::ALTER_CLIENT_QUOTAS_REQUEST,
        ApiKey::DescribeCluster => cluster::DESCRIBE_CLUSTER_REQUEST,
        ApiKey::DescribeProducers => describe::DESCRIBE_PRODUCERS_REQUEST,
        ApiKey::ListConfigResources => describe::LIST_CONFIG_RESOURCES_REQUEST,
        ApiKey::DescribeTopicPartitions => describe::DESCRIBE_TOPIC_PARTITIONS_REQUEST,
    };
    Message { flexible_from: key.api().flexible_from, fields }
}

/// The shape of an API's answer body.
pub(crate) const fn response(key: ApiKey) -> Message {
    let fields = match key {
        ApiKey::Produce => data::PRODUCE_RESPONSE,
        ApiKey::Fetch => data::FETCH_RESPONSE,
        ApiKey::ListOffsets => data::LIST_OFFSETS_RESPONSE,
        ApiKey::Metadata => cluster::METADATA_RESPONSE,
        ApiKey::OffsetCommit => groups::OFFSET_COMMIT_RESPONSE,
        ApiKey::OffsetFetch => groups::OFFSET_FETCH_RESPONSE,
        ApiKey::FindCoordinator => cluster::FIND_COORDINATOR_RESPONSE,
        ApiKey::JoinGroup => groups::JOIN_GROUP_RESPONSE,
        ApiKey::Heartbeat => groups::HEARTBEAT_RESPONSE,
        ApiKey::LeaveGroup => groups::LEAVE_GROUP_RESPONSE,
        ApiKey::SyncGroup => groups::SYNC_GROUP_RESPONSE,
        ApiKey::DescribeGroups => groups::DESCRIBE_GROUPS_RESPONSE,
        ApiKey::ListGroups => groups::LIST_GROUPS_RESPONSE,
        ApiKey::ApiVersions => cluster::API_VERSIONS_RESPONSE,
        ApiKey::CreateTopics => admin::CREATE_TOPICS_RESPONSE,
        ApiKey::DeleteTopics => admin::DELETE_TOPICS_RESPONSE,
        ApiKey::DeleteRecords => data::DELETE_RECORDS_RESPONSE,
        ApiKey::InitProducerId => data::INIT_PRODUCER_ID_RESPONSE,
        ApiKey::OffsetForLeaderEpoch => data::OFFSET_FOR_LEADER_EPOCH_RESPONSE,
        ApiKey::DescribeConfigs => admin::DESCRIBE_CONFIGS_RESPONSE,
        ApiKey::AlterConfigs | ApiKey::IncrementalAlterConfigs => admin::ALTER_CONFIGS_RESPONSE,
        ApiKey::DescribeLogDirs => describe::DESCRIBE_LOG_DIRS_RESPONSE,
        ApiKey::CreatePartitions => admin::CREATE_PARTITIONS_RESPONSE,
        ApiKey::DeleteGroups => groups::DELETE_GROUPS_RESPONSE,
        ApiKey::OffsetDelete => groups::OFFSET_DELETE_RESPONSE,
        ApiKey::DescribeClientQuotas => quotas::DESCRIBE_CLIENT_QUOTAS_RESPONSE,
        ApiKey::AlterClientQuotas => quotas::ALTER_CLIENT_QUOTAS_RESPONSE,
        ApiKey::DescribeCluster => cluster::DESCRIBE_CLUSTER_RESPONSE,
        ApiKey::DescribeProducers => describe::DESCRIBE_PRODUCERS_RESPONSE,
        ApiKey::ListConfigResources => describe::LIST_CONFIG_RESOURCES_RESPONSE,
        ApiKey::DescribeTopicPartitions => describe::DESCRIBE_TOPIC_PARTITIONS_RESPONSE,
    };
    Message { flexible_from: key.api().flexible_from, fields }
}
