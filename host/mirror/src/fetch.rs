//! Raw batches from many partitions of a cluster.
//!
//! A [`Fetcher`] fetches from each broker that leads something over two connections of its own. One asks, without waiting, for
//! partitions that had data last time or are new; the other waits for those that had none. So a long wait holds up nobody:
//! what gets data moves to the first, what runs dry to the second. Each partition that is [followed](Fetcher::follow) is
//! asked for at read_uncommitted (unless started otherwise), with its current and last-fetched leader epoch; the partition
//! that got data goes to the end of the order, so none starves.
//!
//! Memory is bounded: a partition is asked for only while its last piece has been taken and there is room for another. Where
//! room is short, a piece that its reader does not come for is dropped, and fetched again when it does.
//!
//! Requests have no session (KIP-227): each names all of its partitions, at some 50 bytes each.
//!
//! Brokers below Fetch v12 (Apache Kafka before 2.7) take no last-fetched epoch: there a truncation shows only by a new
//! leader epoch or an offset out of range, and before an end counts as proved the leader is asked by OffsetForLeaderEpoch,
//! under the same leader epoch, whether its log goes on up to the place. Below Fetch v9 (before 2.1) no end is ever proved.

mod board;
mod broker;
mod exchange;
mod finding;
mod frames;
mod once;
mod room;
mod settle;
mod shared;

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::cluster::{Cluster, ClusterError, Partition};
use shared::{Inner, Taken};

pub use once::{FetchOnce, Fetched};
pub use room::Room;

/// Settings of a fetcher.
#[derive(Debug, Clone)]
pub struct FetchConfig {
    /// How long a broker may wait for data.
    pub wait_max: std::time::Duration,
    /// Bytes of one answer at most; one batch that is larger comes whole (KIP-74).
    pub answer_bytes_max: usize,
    /// Bytes of one partition in an answer at most; likewise.
    pub partition_bytes_max: usize,
    /// Bytes fetched and not yet released, of all partitions, at most; one batch for each broker may come on top.
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
    /// Its log start; -1 if its version does not tell (below Fetch v5).
    pub log_start: i64,
    /// Its high watermark.
    pub high_watermark: i64,
    /// Its last stable offset; -1 if it tells none.
    pub last_stable_offset: i64,
}

/// What a fetch brought.
#[derive(Debug)]
pub struct Piece {
    /// Whole batches, untouched, whose checksums are right and whose offsets rise. The first may begin below the place (its
    /// last offset does not); a cut-off tail is taken away. Empty if there is nothing new.
    pub batches: Bytes,
    /// Where the leader stood.
    pub leader: Leader,
    /// True if emptiness proves that there is nothing below the high watermark: the partition was asked for alone, under its
    /// current epoch and with its last-fetched one (where anything was; below Fetch v12 asked for beside), its leader
    /// answered without error, throttle, preferred replica or diverging epoch, and there were zero bytes.
    pub proves_end: bool,
    /// Where the fetcher [reads what is committed](Fetcher::start_committed): aborted transactions that the batches belong to,
    /// as producer id and first offset. Else empty.
    pub aborted: Vec<(i64, i64)>,
    /// The memory that the batches take up: whoever keeps them longer than the piece keeps this as well.
    pub room: Room,
}

/// Why a followed partition stands still until it is [put somewhere](Followed::go_on).
#[derive(Debug, Clone)]
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
pub struct Fetcher {
    inner: Arc<Inner>,
}

/// One partition that is followed. Dropping it ends that.
#[derive(Debug)]
pub struct Followed {
    inner: Arc<Inner>,
    line: u64,
    news: Arc<tokio::sync::Notify>,
}

impl Fetcher {
    /// A fetcher in the present tokio runtime.
    pub fn start(cluster: Cluster, config: FetchConfig) -> Self {
        Self { inner: Arc::new(Inner::new(cluster, config, false)) }
    }

    /// The same at read_committed: nothing comes from the last stable offset on, pieces list aborted transactions, and no end is
    /// ever proved.
    pub fn start_committed(cluster: Cluster, config: FetchConfig) -> Self {
        Self { inner: Arc::new(Inner::new(cluster, config, true)) }
    }

    /// Follows a partition from a place on, under this leader epoch (as [`Cluster::partition`] or `epochs` told it), whatever
    /// topic of that name is there when it is first looked for.
    pub fn follow(&self, partition: Partition, place: Place, leader_epoch: i32) -> Followed {
        self.follow_topic(partition, Uuid::nil(), place, leader_epoch)
    }

    /// As [`Fetcher::follow`], and only in the topic of this id: another one of that name is [`Stop::Gone`]. Nil = any.
    pub fn follow_topic(
        &self,
        partition: Partition,
        topic_id: Uuid,
        place: Place,
        leader_epoch: i32,
    ) -> Followed {
        let (line, news) = self.inner.shared.follow(partition, topic_id, place, leader_epoch);
        Followed { inner: Arc::clone(&self.inner), line, news }
    }
}

impl Followed {
    /// The next piece, or why there is none. Waits; cancel safe. A piece without batches comes at least whenever a leader
    /// answered with nothing new (so at least every [`FetchConfig::wait_max`], roughly): it tells where the leader stands.
    ///
    /// A batch whose checksum is false is fetched once more before it is a stop.
    ///
    /// # Errors
    /// A stop: the same again until [`Followed::go_on`].
    pub async fn next(&mut self) -> Result<Piece, Stop> {
        loop {
            match self.inner.shared.take(self.line) {
                Taken::Piece(piece) => return Ok(piece),
                Taken::Stop(stop) => return Err(stop),
                Taken::Nothing => self.news.notified().await,
            }
        }
    }

    /// Goes on at another place or under another leader epoch; what was fetched ahead is dropped.
    pub fn go_on(&mut self, place: Place, leader_epoch: i32) {
        self.inner.shared.go_on(self.line, place, leader_epoch);
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.inner.shared.leave(self.line);
    }
}
