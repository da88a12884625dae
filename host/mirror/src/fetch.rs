//! Raw batches from many partitions of a cluster.
//!
//! A [`Fetcher`] runs one fetch loop for each broker that leads something. Each partition that is
//! [followed](Fetcher::follow) is asked for in turn, at read_uncommitted, with its current and last-fetched leader epoch; the
//! partition that got data goes to the end of the order, so none starves. Memory is bounded: a partition is
//! asked for only while its last piece has been taken and there is room for another.

use bytes::Bytes;

use crate::cluster::{Cluster, ClusterError, Partition};

/// Settings of a fetcher.
#[derive(Debug, Clone)]
pub struct FetchConfig {
    /// How long a broker may wait for data.
    pub wait_max: std::time::Duration,
    /// Bytes of one answer at most; one batch that is larger comes whole (KIP-74).
    pub answer_bytes_max: usize,
    /// Bytes of one partition in an answer at most; likewise.
    pub partition_bytes_max: usize,
    /// Bytes fetched and not yet taken or released, of all partitions, at most.
    pub buffered_bytes_max: usize,
}

/// Where a reader is: what it wants next, and what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The next offset.
    pub offset: i64,
    /// The leader epoch of what was read last, just below `offset`; -1 = unknown, and then truncation is not looked for.
    pub last_epoch: i32,
}

/// Where a leader stands, as a fetch answer tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    /// The epoch that the question was asked under and the leader accepted; -1 if the cluster tells none.
    pub epoch: i32,
    /// Its log start.
    pub log_start: i64,
    /// Its high watermark.
    pub high_watermark: i64,
    /// Its last stable offset.
    pub last_stable_offset: i64,
}

/// What a fetch brought.
#[derive(Debug)]
pub struct Piece {
    /// Whole batches, untouched. The first may begin below the place (its last offset does not); a cut-off tail is taken
    /// away. Empty if there is nothing new.
    pub batches: Bytes,
    /// Where the leader stood.
    pub leader: Leader,
    /// True if emptiness proves that there is nothing below the high watermark: the partition was asked for alone, its leader
    /// answered without error, throttle, preferred replica or diverging epoch, and there were zero bytes.
    pub proves_end: bool,
    _room: Option<tokio::sync::OwnedSemaphorePermit>,
}

/// Why a followed partition stands still until it is [put somewhere](Followed::go_on).
#[derive(Debug)]
pub enum Stop {
    /// The log was truncated below the place: the largest epoch not above ours, and where it ends.
    Diverging {
        /// That epoch.
        epoch: i32,
        /// Where it ends.
        end: i64,
    },
    /// The place lies outside the log (error 1).
    OutOfRange,
    /// The leader has another epoch than was asked under: learn the epochs anew, then go on.
    NewEpoch {
        /// The new epoch.
        epoch: i32,
    },
    /// The topic is gone, or another one of that name has come (its id differs).
    Gone(String),
    /// A batch is damaged: this is from what offset.
    Corrupt(i64),
    /// It did not pass.
    Failed(ClusterError),
}

/// Fetches from a cluster. Cheap to clone; ends when all clones and followed partitions are dropped.
#[derive(Debug, Clone)]
pub struct Fetcher {}

/// One partition that is followed.
#[derive(Debug)]
pub struct Followed {}

impl Fetcher {
    /// A fetcher in the present tokio runtime.
    pub fn start(cluster: Cluster, config: FetchConfig) -> Self {
        let _ = (cluster, config);
        Self {}
    }

    /// Follows a partition from a place on, under this leader epoch (as [`Cluster::partition`] or `epochs` told it).
    pub fn follow(&self, partition: Partition, place: Place, leader_epoch: i32) -> Followed {
        let _ = (partition, place, leader_epoch);
        Followed {}
    }
}

impl Followed {
    /// The next piece, or why there is none. Waits; cancel safe. A piece without batches comes at least whenever a leader
    /// answered with nothing new (so at least every [`FetchConfig::wait_max`], roughly): it tells where the leader stands.
    ///
    /// # Errors
    /// A stop: the same again until [`Followed::go_on`].
    pub async fn next(&mut self) -> Result<Piece, Stop> {
        Err(Stop::OutOfRange)
    }

    /// Goes on at another place or under another leader epoch; what was fetched ahead is dropped.
    pub fn go_on(&mut self, place: Place, leader_epoch: i32) {
        let _ = (place, leader_epoch);
    }
}
