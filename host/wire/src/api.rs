//! One table of every API spoken: key, name, versions advertised and served, and the message types behind it.
//!
//! [`ApiKey`], [`Request`] and [`Response`] are made from the same table, so an API can neither be advertised without
//! being decodable nor decoded without a version range. The ranges are what Kafka 4 clients and librdkafka 2 use,
//! bounded by what the message library encodes. Header versions follow from the flexible version (KIP-482).

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages;
use kafka_protocol::protocol::{Decodable, Encodable};

/// What is known of one API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    /// The API.
    pub key: ApiKey,
    /// The lowest version told to clients. For Produce it lies below [`Api::min`], because librdkafka only compresses
    /// for a broker that claims Produce v0 (Apache Kafka 4 does the same).
    pub advertised_min: i16,
    /// The lowest version served.
    pub min: i16,
    /// The highest version served and told to clients.
    pub max: i16,
    /// The first version with compact lengths and tagged fields.
    pub flexible_from: i16,
}

impl Api {
    /// True if requests of this version are decoded and answered.
    pub const fn serves(&self, version: i16) -> bool {
        version >= self.min && version <= self.max
    }

    /// The version of the request header: 2 with tagged fields from the flexible version on, else 1.
    pub const fn request_header_version(&self, version: i16) -> i16 {
        if version >= self.flexible_from { 2 } else { 1 }
    }

    /// The version of the answer's header: 1 with tagged fields from the flexible version on, else 0. ApiVersions is
    /// always 0, so that a client can read the answer to a version that the server does not know (KIP-511).
    pub const fn response_header_version(&self, version: i16) -> i16 {
        if version >= self.flexible_from && !matches!(self.key, ApiKey::ApiVersions) { 1 } else { 0 }
    }
}

macro_rules! apis {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $request:ident, $response:ident,
       advertised $advertised:literal, served $min:literal ..= $max:literal, flexible $flexible:literal;)*) => {
        /// An API that is spoken here.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ApiKey { $($(#[$doc])* $name,)* }

        /// Every API, by rising number.
        pub const APIS: &[Api] = &[$(ApiKey::$name.api(),)*];

        impl ApiKey {
            /// The API's number on the wire.
            pub const fn number(self) -> i16 {
                match self { $(Self::$name => $number,)* }
            }

            /// Kafka's name of the API.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The API of this number, if it is spoken here.
            pub const fn from_number(number: i16) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }

            /// The API's row of the table.
            pub const fn api(self) -> Api {
                match self {
                    $(Self::$name => Api {
                        key: self, advertised_min: $advertised, min: $min, max: $max, flexible_from: $flexible,
                    },)*
                }
            }
        }

        /// A request's body.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Request { $($(#[$doc])* $name(messages::$request),)* }

        impl Request {
            /// The API this request belongs to.
            pub const fn key(&self) -> ApiKey {
                match self { $(Self::$name(_) => ApiKey::$name,)* }
            }

            /// Decodes a body whose lengths were walked before; only [`crate::request`] calls it.
            pub(crate) fn decode_walked(key: ApiKey, version: i16, body: &mut Bytes) -> Result<Self, String> {
                match key { $(ApiKey::$name => Ok(Self::$name(decode(body, version)?)),)* }
            }

            /// Encodes the body alone.
            ///
            /// # Errors
            /// A field that the version cannot carry, or a string or array too long for it.
            pub fn encode_body(&self, version: i16, out: &mut BytesMut) -> Result<(), EncodeError> {
                match self { $(Self::$name(body) => encode(body, ApiKey::$name, version, out),)* }
            }
        }

        /// An answer's body.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Response { $($(#[$doc])* $name(messages::$response),)* }

        impl Response {
            /// The API this answer belongs to.
            pub const fn key(&self) -> ApiKey {
                match self { $(Self::$name(_) => ApiKey::$name,)* }
            }

            /// Encodes the body alone.
            ///
            /// # Errors
            /// A field that the version cannot carry, or a string or array too long for it.
            pub fn encode_body(&self, version: i16, out: &mut BytesMut) -> Result<(), EncodeError> {
                match self { $(Self::$name(body) => encode(body, ApiKey::$name, version, out),)* }
            }
        }

        $(impl From<messages::$request> for Request {
            fn from(body: messages::$request) -> Self { Self::$name(body) }
        }
        impl From<messages::$response> for Response {
            fn from(body: messages::$response) -> Self { Self::$name(body) }
        })*
    };
}

apis! {
    /// Writing batches.
    Produce = 0, ProduceRequest, ProduceResponse, advertised 0, served 3..=13, flexible 9;
    /// Reading batches.
    Fetch = 1, FetchRequest, FetchResponse, advertised 4, served 4..=18, flexible 12;
    /// Offsets by timestamp, and the ends of a partition.
    ListOffsets = 2, ListOffsetsRequest, ListOffsetsResponse, advertised 1, served 1..=10, flexible 6;
    /// Topics, partitions, leaders.
    Metadata = 3, MetadataRequest, MetadataResponse, advertised 0, served 0..=13, flexible 9;
    /// Committed offsets of a group, written.
    OffsetCommit = 8, OffsetCommitRequest, OffsetCommitResponse, advertised 2, served 2..=9, flexible 8;
    /// Committed offsets of a group, read.
    OffsetFetch = 9, OffsetFetchRequest, OffsetFetchResponse, advertised 1, served 1..=9, flexible 6;
    /// Where a group's or a transaction's coordinator is.
    FindCoordinator = 10, FindCoordinatorRequest, FindCoordinatorResponse,
        advertised 0, served 0..=6, flexible 3;
    /// A member comes to a group, or begins a rebalance.
    JoinGroup = 11, JoinGroupRequest, JoinGroupResponse, advertised 2, served 2..=9, flexible 6;
    /// A member says that it lives.
    Heartbeat = 12, HeartbeatRequest, HeartbeatResponse, advertised 0, served 0..=4, flexible 4;
    /// Members leave a group.
    LeaveGroup = 13, LeaveGroupRequest, LeaveGroupResponse, advertised 0, served 0..=5, flexible 4;
    /// The leader of a group hands out the assignment, members get theirs.
    SyncGroup = 14, SyncGroupRequest, SyncGroupResponse, advertised 0, served 0..=5, flexible 4;
    /// The state and members of groups.
    DescribeGroups = 15, DescribeGroupsRequest, DescribeGroupsResponse, advertised 0, served 0..=6, flexible 5;
    /// The groups there are.
    ListGroups = 16, ListGroupsRequest, ListGroupsResponse, advertised 0, served 0..=5, flexible 3;
    /// This table, told to a client.
    ApiVersions = 18, ApiVersionsRequest, ApiVersionsResponse, advertised 0, served 0..=4, flexible 3;
    /// Making topics.
    CreateTopics = 19, CreateTopicsRequest, CreateTopicsResponse, advertised 2, served 2..=7, flexible 5;
    /// Deleting topics.
    DeleteTopics = 20, DeleteTopicsRequest, DeleteTopicsResponse, advertised 1, served 1..=6, flexible 4;
    /// Moving the start of partitions up.
    DeleteRecords = 21, DeleteRecordsRequest, DeleteRecordsResponse, advertised 0, served 0..=2, flexible 2;
    /// A producer id for an idempotent producer.
    InitProducerId = 22, InitProducerIdRequest, InitProducerIdResponse, advertised 0, served 0..=5, flexible 2;
    /// Where a leader epoch ends.
    OffsetForLeaderEpoch = 23, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
        advertised 2, served 2..=4, flexible 4;
    /// The settings of topics and brokers.
    DescribeConfigs = 32, DescribeConfigsRequest, DescribeConfigsResponse,
        advertised 1, served 1..=4, flexible 4;
    /// Replacing all settings of a resource.
    AlterConfigs = 33, AlterConfigsRequest, AlterConfigsResponse, advertised 0, served 0..=2, flexible 2;
    /// Folders of data, and how large partitions are in them.
    DescribeLogDirs = 35, DescribeLogDirsRequest, DescribeLogDirsResponse,
        advertised 1, served 1..=4, flexible 2;
    /// More partitions for a topic.
    CreatePartitions = 37, CreatePartitionsRequest, CreatePartitionsResponse,
        advertised 0, served 0..=3, flexible 2;
    /// Removing groups without members.
    DeleteGroups = 42, DeleteGroupsRequest, DeleteGroupsResponse, advertised 0, served 0..=2, flexible 2;
    /// Changing single settings of a resource.
    IncrementalAlterConfigs = 44, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
        advertised 0, served 0..=1, flexible 1;
    /// Removing committed offsets of a group. It has no flexible version.
    OffsetDelete = 47, OffsetDeleteRequest, OffsetDeleteResponse, advertised 0, served 0..=0, flexible 1;
    /// The rates that clients may use.
    DescribeClientQuotas = 48, DescribeClientQuotasRequest, DescribeClientQuotasResponse,
        advertised 0, served 0..=1, flexible 1;
    /// Changing the rates that clients may use.
    AlterClientQuotas = 49, AlterClientQuotasRequest, AlterClientQuotasResponse,
        advertised 0, served 0..=1, flexible 1;
    /// The brokers of the cluster.
    DescribeCluster = 60, DescribeClusterRequest, DescribeClusterResponse,
        advertised 0, served 0..=2, flexible 0;
    /// Producers that a partition remembers, and their open transactions.
    DescribeProducers = 61, DescribeProducersRequest, DescribeProducersResponse,
        advertised 0, served 0..=0, flexible 0;
    /// The resources that have settings, by type.
    ListConfigResources = 74, ListConfigResourcesRequest, ListConfigResourcesResponse,
        advertised 0, served 0..=1, flexible 0;
    /// Topics and their partitions, page by page.
    DescribeTopicPartitions = 75, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
        advertised 0, served 0..=0, flexible 0;
}

/// A message that its version cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} v{version} cannot be encoded: {problem}", .api.name())]
pub struct EncodeError {
    /// The API whose request or answer it is.
    pub api: ApiKey,
    /// The version asked for.
    pub version: i16,
    /// What does not fit.
    pub problem: String,
}

fn decode<T: Decodable>(body: &mut Bytes, version: i16) -> Result<T, String> {
    T::decode(body, version).map_err(|error| error.to_string())
}

/// Appends the message, growing `out` once; on an error `out` is as it was.
pub(crate) fn encode<T: Encodable>(
    message: &T,
    api: ApiKey,
    version: i16,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let before = out.len();
    let size = message.compute_size(version);
    let done = size.and_then(|size| {
        out.reserve(size);
        message.encode(out, version)
    });
    done.map_err(|error| {
        out.truncate(before);
        EncodeError { api, version, problem: error.to_string() }
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use kafka_protocol::messages::ApiKey as TheirKey;

    use super::*;

    #[test]
    fn rows_are_sorted_and_found_by_number() {
        assert!(APIS.windows(2).all(|pair| matches!(pair, [a, b] if a.key.number() < b.key.number())));
        for api in APIS {
            assert_eq!(ApiKey::from_number(api.key.number()), Some(api.key));
            assert!(api.advertised_min <= api.min && api.min <= api.max, "{api:?}");
        }
        assert_eq!(ApiKey::from_number(9_999), None);
    }

    #[test]
    fn names_ranges_and_header_versions_agree_with_the_message_library() {
        for api in APIS {
            let theirs = TheirKey::iter().find(|key| *key as i16 == api.key.number()).unwrap();
            assert_eq!(format!("{theirs:?}"), api.key.name());
            for version in api.min..=api.max {
                assert!(theirs.valid_versions().min <= version && version <= theirs.valid_versions().max);
                assert_eq!(
                    theirs.request_header_version(version),
                    api.request_header_version(version),
                    "{api:?}"
                );
                assert_eq!(
                    theirs.response_header_version(version),
                    api.response_header_version(version),
                    "{api:?}"
                );
            }
        }
    }

    #[test]
    fn a_message_that_does_not_fit_leaves_the_buffer_alone() {
        let mut out = BytesMut::from(&b"head"[..]);
        let body = Request::from(messages::ProduceRequest::default());
        let error = body.encode_body(99, &mut out).unwrap_err();
        assert_eq!(&out[..], b"head");
        assert!(error.to_string().starts_with("Produce v99 cannot be encoded"), "{error}");
    }
}
