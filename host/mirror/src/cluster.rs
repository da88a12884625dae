//! One Kafka-speaking cluster, seen by a client: its topics, who leads which partition, and the questions leaders answer.
//!
//! A [`Cluster`] connects when it is first asked, keeps one connection to each broker, and finds a leader again after it
//! moved. Each question is tried as often as [`ClusterConfig::retry`] allows while what goes wrong may pass.

mod types;

use std::collections::BTreeMap;

use verbatim_wire::exact_producer::EpochEnd;
use verbatim_wire::tag::EpochEntry;

pub use types::{
    At, ClusterConfig, ClusterError, ListedOffset, Partition, PartitionInfo, Producer, TopicConfig, TopicInfo, Topics,
};

/// One cluster. Cheap to clone; clones share connections and what is known of leaders.
#[derive(Debug, Clone)]
pub struct Cluster {}

impl Cluster {
    /// A cluster at these bootstrap addresses. Nothing is connected yet.
    pub fn new(config: ClusterConfig) -> Self {
        let _ = config;
        Self {}
    }

    /// The topics asked for that are there, with partitions, leaders and epochs (Metadata, asked anew).
    ///
    /// # Errors
    /// Whatever did not pass in time.
    pub async fn topics(&self, which: Topics<'_>) -> Result<Vec<TopicInfo>, ClusterError> {
        let _ = which;
        Ok(Vec::new())
    }

    /// What is known of one partition's leader; asked for if nothing is known yet, or `anew`.
    ///
    /// # Errors
    /// As [`Cluster::topics`]; a topic or partition that is not there.
    pub async fn partition(&self, partition: &Partition, anew: bool) -> Result<PartitionInfo, ClusterError> {
        let _ = (partition, anew);
        Err(ClusterError::not_yet())
    }

    /// ListOffsets, to the leader under its current epoch. `None`: there is no such offset (no record at or after a time).
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub async fn list_offset(
        &self,
        partition: &Partition,
        at: At,
        read_committed: bool,
    ) -> Result<Option<ListedOffset>, ClusterError> {
        let _ = (partition, at, read_committed);
        Ok(None)
    }

    /// OffsetForLeaderEpoch, to the leader under its current epoch.
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub async fn epoch_end(&self, partition: &Partition, epoch: i32) -> Result<EpochEnd, ClusterError> {
        let _ = (partition, epoch);
        Err(ClusterError::not_yet())
    }

    /// The leader's epoch history above `above`, in rising order, and the leader epoch under which all of it was answered:
    /// walks down from the current epoch (R42), one question an entry; asks again from the top if the leader changes meanwhile.
    /// The start of an entry at or below the log start is the start.
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub async fn epochs(&self, partition: &Partition, above: i32) -> Result<(i32, Vec<EpochEntry>), ClusterError> {
        let _ = (partition, above);
        Ok((-1, Vec::new()))
    }

    /// A topic's settings: name, value, and whether the topic itself sets it (DescribeConfigs).
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub async fn topic_configs(&self, topic: &str) -> Result<BTreeMap<String, TopicConfig>, ClusterError> {
        let _ = topic;
        Ok(BTreeMap::new())
    }

    /// The active producers of a partition, by rising id (DescribeProducers).
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub async fn producers(&self, partition: &Partition) -> Result<Vec<Producer>, ClusterError> {
        let _ = partition;
        Ok(Vec::new())
    }
}
