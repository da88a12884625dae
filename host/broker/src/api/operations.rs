//! The operations that a client may do, as the bit fields that Metadata, DescribeCluster and DescribeTopicPartitions tell when
//! asked (KIP-430). Without ACLs everybody may do everything, and Kafka too tells all operations that a resource has.

/// Bits of Kafka's ACL operations by their numbers.
const READ: i32 = 1 << 3;
const WRITE: i32 = 1 << 4;
const CREATE: i32 = 1 << 5;
const DELETE: i32 = 1 << 6;
const ALTER: i32 = 1 << 7;
const DESCRIBE: i32 = 1 << 8;
const CLUSTER_ACTION: i32 = 1 << 9;
const DESCRIBE_CONFIGS: i32 = 1 << 10;
const ALTER_CONFIGS: i32 = 1 << 11;
const IDEMPOTENT_WRITE: i32 = 1 << 12;

/// What is told where nobody asked.
const NOT_ASKED: i32 = i32::MIN;

/// All operations on a topic.
pub(super) const TOPIC: i32 =
    READ | WRITE | CREATE | DELETE | ALTER | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS;

/// All operations on the cluster.
pub(super) const CLUSTER: i32 =
    CREATE | ALTER | DESCRIBE | CLUSTER_ACTION | DESCRIBE_CONFIGS | ALTER_CONFIGS | IDEMPOTENT_WRITE;

/// The operations, if the client asked for them.
pub(super) const fn if_asked(asked: bool, operations: i32) -> i32 {
    if asked { operations } else { NOT_ASKED }
}
