//! What is asked of a cluster, and what it answers.

use std::time::Duration;

use uuid::Uuid;
use verbatim_wire::client::{ClientConfig, ClientError};
use verbatim_wire::error::describe;

/// How a cluster is reached.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// Addresses (`host:port`) to begin with, tried in turn.
    pub bootstrap: Vec<String>,
    /// Client id, and how long connecting and answers may take.
    pub client: ClientConfig,
    /// Failures of one question in a row after which it is given up, with pauses between them that double.
    pub attempts_max: u32,
    /// The first pause.
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

impl ClusterConfig {
    /// The defaults: ten attempts with pauses from 50 ms to 2 s.
    pub fn new<S: ToString>(bootstrap: impl IntoIterator<Item = S>) -> Self {
        Self {
            bootstrap: bootstrap.into_iter().map(|address| address.to_string()).collect(),
            client: ClientConfig::default(),
            attempts_max: 10,
            pause_min: Duration::from_millis(50),
            pause_max: Duration::from_secs(2),
        }
    }
}

/// A partition by the name of its topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition {
    /// The topic.
    pub topic: String,
    /// The partition's index.
    pub index: i32,
}

impl std::fmt::Display for Partition {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}-{}", self.topic, self.index)
    }
}

/// Which topics Metadata is asked for.
#[derive(Debug, Clone, Copy)]
pub enum Topics<'a> {
    /// All there are.
    All,
    /// These; those that are not there are left out of the answer.
    Named(&'a [String]),
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicInfo {
    /// Its name.
    pub name: String,
    /// Its id; nil if the cluster has none.
    pub id: Uuid,
    /// True for `__consumer_offsets` and its like.
    pub internal: bool,
    /// Its partitions, by rising index.
    pub partitions: Vec<PartitionInfo>,
}

/// A broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// Its node id.
    pub id: i32,
    /// Its address (`host:port`), as the cluster advertises it.
    pub address: String,
}

/// A partition's leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionInfo {
    /// The partition's index.
    pub index: i32,
    /// The topic's id; nil if the cluster has none.
    pub topic_id: Uuid,
    /// The leader's node id; -1 = none at present.
    pub leader: i32,
    /// The leader's epoch; -1 = the cluster tells none.
    pub leader_epoch: i32,
}

/// What ListOffsets is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The log start.
    Earliest,
    /// The high watermark; the last stable offset if read committed.
    Latest,
    /// The first record at or after this time, in milliseconds since 1970.
    Time(i64),
    /// The record with the largest timestamp.
    MaxTimestamp,
    /// Where what the leader itself holds begins; below it there is only remote storage (KIP-405). The log start without that.
    EarliestLocal,
}

/// An answer of ListOffsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedOffset {
    /// The offset.
    pub offset: i64,
    /// The record's time in milliseconds; -1 where none belongs to it.
    pub timestamp: i64,
    /// The leader epoch; -1 = none.
    pub leader_epoch: i32,
}

/// A setting of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicConfig {
    /// Its value; `None` if the cluster keeps it secret.
    pub value: Option<String>,
    /// True if the topic itself sets it, false if it is a default.
    pub is_set: bool,
}

/// An active producer of a partition, as DescribeProducers tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Producer {
    /// Producer id.
    pub id: i64,
    /// Producer epoch.
    pub epoch: i32,
    /// The last sequence.
    pub last_sequence: i32,
    /// The time of its last batch, in milliseconds.
    pub last_timestamp: i64,
    /// The coordinator's epoch of its last marker; -1 = none.
    pub coordinator_epoch: i32,
    /// Where its open transaction begins; -1 = none is open.
    pub transaction_start: i64,
}

/// Why a cluster did not answer a question.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClusterError {
    /// The topic or partition is not there (3, 100).
    #[error("no such partition: {0}")]
    Unknown(String),
    /// The cluster answered with an error that does not pass.
    #[error("{what}: {}", describe(*.code))]
    Refused {
        /// What was asked.
        what: String,
        /// Kafka's error code.
        code: i16,
    },
    /// Its answers do not go together.
    #[error("contradictory answers: {0}")]
    Contradictory(String),
    /// No broker has a version of an API that is needed.
    #[error("not supported: {0}")]
    Unsupported(ClientError),
    /// What may pass did not, in as many attempts as allowed.
    #[error("{what}: gave up after {attempts} attempts: {last}")]
    Unavailable {
        /// What was asked.
        what: String,
        /// How often.
        attempts: u32,
        /// The last failure.
        last: String,
    },
}
