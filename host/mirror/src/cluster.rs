//! One Kafka-speaking cluster, seen by a client: its topics, who leads which partition, and the questions leaders answer.
//!
//! A [`Cluster`] connects when it is first asked, keeps one connection to each broker, and finds a leader again after it
//! moved. Each question is tried as often as [`ClusterConfig::attempts_max`] allows while what goes wrong may pass.
//!
//! Questions that have no method here go through [`Cluster::call_leader`], [`Cluster::call_any`],
//! [`Cluster::call_controller`] and [`Cluster::call_broker`].

mod ask;
mod call;
mod epochs;
mod groups;
mod known;
mod link;
mod metadata;
mod topic_id;
mod tries;
mod types;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use verbatim_wire::client::{ClientConfig, Connection};
use verbatim_wire::exact_producer::EpochEnd;
use verbatim_wire::tag::EpochEntry;

use known::Known;
use link::Link;
use metadata::Asked;
use tries::Tries;

pub use groups::GroupOffset;
pub(crate) use topic_id::id_text;
pub(crate) use tries::{Fault, is_passing};
pub use types::{
    At, Broker, ClusterConfig, ClusterError, ListedOffset, Partition, PartitionInfo, Producer, TopicConfig,
    TopicInfo, Topics,
};

/// One cluster. Cheap to clone; clones share connections and what is known of leaders.
#[derive(Debug, Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: ClusterConfig,
    /// The addresses to begin with, and to come back to when no known broker answers.
    bootstrap: Vec<Arc<Link>>,
    known: Mutex<Known>,
    asked: Asked,
    /// Whose turn it is to answer a question that any broker can.
    turn: AtomicUsize,
}

impl Cluster {
    /// A cluster at these bootstrap addresses. Nothing is connected yet.
    pub fn new(config: ClusterConfig) -> Self {
        let bootstrap = config.bootstrap.iter().map(|address| Arc::new(Link::new(address.clone()))).collect();
        let (known, asked, turn) = (Mutex::default(), Asked::default(), AtomicUsize::new(0));
        Self { inner: Arc::new(Inner { config, bootstrap, known, asked, turn }) }
    }

    /// What it was made with.
    pub fn config(&self) -> &ClusterConfig {
        &self.inner.config
    }

    /// The brokers, by rising id (Metadata, asked anew).
    ///
    /// # Errors
    /// Whatever did not pass in time.
    pub async fn brokers(&self) -> Result<Vec<Broker>, ClusterError> {
        self.topics(Topics::Named(&[])).await?;
        let known = self.known();
        Ok(known.nodes().map(|(id, link)| Broker { id, address: link.address().to_owned() }).collect())
    }

    /// The topics asked for that are there, by name, with partitions, leaders and epochs (Metadata, asked anew).
    ///
    /// # Errors
    /// Whatever did not pass in time.
    pub async fn topics(&self, which: Topics<'_>) -> Result<Vec<TopicInfo>, ClusterError> {
        let what = match which {
            Topics::All => "all topics".to_owned(),
            Topics::Named([one]) => format!("topic {one}"),
            Topics::Named(names) => format!("{} topics", names.len()),
        };
        self.repeat(what, |_| self.ask_topics(which)).await
    }

    /// What is known of one partition's leader; asked for if nothing is known yet, or `anew`.
    ///
    /// # Errors
    /// As [`Cluster::topics`]; a topic or partition that is not there.
    pub async fn partition(&self, partition: &Partition, anew: bool) -> Result<PartitionInfo, ClusterError> {
        self.repeat(format!("leader of {partition}"), |again| async move {
            self.find(partition, anew || again).await.map_err(|fault| match fault {
                Fault::Unknown(what) => Fault::Final(ClusterError::Unknown(what)),
                fault => fault,
            })
        })
        .await
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
        self.call_leader(
            &format!("ListOffsets of {partition}"),
            partition,
            ask::list_offsets_version_min(at, read_committed),
            |leader, _| ask::list_offsets(partition, leader.leader_epoch, at, read_committed),
            |answer| ask::listed(answer, partition),
        )
        .await
    }

    /// Where begins what the leader itself holds; -1 where no such question is known, as there is no remote storage then. Below
    /// it a fetch that waits for remote storage in vain is answered with nothing and no error (KIP-405), which proves nothing.
    pub(crate) async fn local_start(&self, partition: &Partition) -> Result<i64, ClusterError> {
        match self.list_offset(partition, At::EarliestLocal, false).await {
            Ok(local) => Ok(local.map_or(-1, |local| local.offset)),
            Err(ClusterError::Unsupported(_)) => Ok(-1),
            Err(error) => Err(error),
        }
    }

    /// OffsetForLeaderEpoch, to the leader under its current epoch.
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub async fn epoch_end(&self, partition: &Partition, epoch: i32) -> Result<EpochEnd, ClusterError> {
        self.call_leader(
            &format!("OffsetForLeaderEpoch of {partition}"),
            partition,
            0,
            |leader, _| ask::epoch_end(partition, leader.leader_epoch, epoch),
            |answer| ask::ended(&answer, partition),
        )
        .await
    }

    /// As [`Cluster::epoch_end`], under this leader epoch and no other; `None`: it is not the leader's.
    pub(crate) async fn epoch_end_under(
        &self,
        partition: &Partition,
        leader_epoch: i32,
        epoch: i32,
    ) -> Result<Option<EpochEnd>, ClusterError> {
        self.call_leader(
            &format!("OffsetForLeaderEpoch of {partition}"),
            partition,
            ask::EPOCH_END_FENCED_FROM,
            |_, _| ask::epoch_end(partition, leader_epoch, epoch),
            |answer| match ask::ended(&answer, partition) {
                Err(code) if ask::is_other_epoch(code) => Ok(None),
                ended => ended.map(Some),
            },
        )
        .await
    }

    /// The leader's epoch history above `above`, in rising order, and the leader epoch under which all of it was answered:
    /// walks down from the current epoch (R42), one question an entry; asks again from the top if the leader changes meanwhile.
    /// The start of an entry at or below the log start is the start. A cluster that tells no leader epochs has (-1, none).
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub async fn epochs(
        &self,
        partition: &Partition,
        above: i32,
    ) -> Result<(i32, Vec<EpochEntry>), ClusterError> {
        let what = format!("leader epochs of {partition}");
        self.repeat(what, |anew| self.walk_epochs(partition, above, anew)).await
    }

    /// A topic's settings: name, value, and whether the topic itself sets it (DescribeConfigs).
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub async fn topic_configs(&self, topic: &str) -> Result<BTreeMap<String, TopicConfig>, ClusterError> {
        let what = format!("DescribeConfigs of topic {topic}");
        let code = |answer: &_| ask::described_code(answer);
        let answer = self.call_any(&what, 1, &ask::describe_configs(topic), code).await?;
        match ask::described_code(&answer) {
            0 => Ok(ask::described(answer)),
            3 => Err(ClusterError::Unknown(format!("topic {topic}"))),
            code => Err(ClusterError::Refused { what, code }),
        }
    }

    /// The active producers of a partition, by rising id (DescribeProducers).
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub async fn producers(&self, partition: &Partition) -> Result<Vec<Producer>, ClusterError> {
        self.call_leader(
            &format!("DescribeProducers of {partition}"),
            partition,
            0,
            |_, _| ask::describe_producers(partition),
            |answer| ask::producers(answer, partition),
        )
        .await
    }

    /// A connection of one's own to a broker, for requests that wait long.
    pub(crate) async fn dial(&self, node: i32, config: ClientConfig) -> Result<Connection, Fault> {
        let link = self.known().node(node)?;
        Ok(link.dial(config).await?)
    }

    /// A partition's leader and the connection to it that questions share.
    pub(crate) async fn leader_connection(
        &self,
        partition: &Partition,
        anew: bool,
    ) -> Result<(PartitionInfo, Arc<Connection>), Fault> {
        let (info, link) = self.leader(partition, anew).await?;
        Ok((info, link.connection(&self.inner.config).await?))
    }

    /// The attempts of one question; `what` names it in errors.
    pub(crate) fn tries(&self, what: String) -> Tries<'_> {
        Tries::new(&self.inner.config, what)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
