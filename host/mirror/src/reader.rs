//! Records with leader epochs, positions that notice truncation (KIP-320), and what to do when it happens.
//!
//! A [`Reader`] reads partitions that its owner assigns, without a group. Each record tells the epoch of the leader that
//! appended it, and each [`Position`] the epoch of what was read before it. With that a reader finds out, from the leader and by
//! itself, that what it read is no longer what the log holds; what then happens is the [`Reset`] policy's, or the owner's.
//! `docs/READER.md` is its guide.
//!
//! ```no_run
//! use std::time::Duration;
//! use verbatim_mirror::cluster::{Cluster, ClusterConfig, Partition};
//! use verbatim_mirror::reader::{Position, ReadErrorKind, Reader, ReaderConfig, Seek};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = Cluster::new(ClusterConfig::new(["localhost:9092"]));
//! let mut reader = Reader::new(cluster, ReaderConfig::default());
//! let orders = Partition { topic: "orders".to_owned(), index: 0 };
//!
//! // Where an earlier run came to, as it stored it: offset and leader epoch.
//! reader.assign(&orders, Seek::To(Position::new(4_711, Some(12))));
//! loop {
//!     match reader.next().await {
//!         Ok(record) => {
//!             println!("{} at {}, epoch {:?}", record.partition, record.offset, record.leader_epoch);
//!             // Store this when the record is dealt with.
//!             let _position: Position = record.next_position();
//!         }
//!         Err(error) => match error.kind {
//!             // Undo what was done from there on, then read it again.
//!             ReadErrorKind::TruncatedPartition { first_truncated: Some(first), .. } => {
//!                 reader.seek(&error.partition, Seek::To(first));
//!             }
//!             _ => return Err(error.into()),
//!         },
//!     }
//! }
//! # }
//! ```

mod aborted;
mod error;
mod records;
mod reset;
mod task;
#[cfg(test)]
mod tests;
mod trail;
mod types;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::cluster::{At, Cluster, ClusterError, ListedOffset, Partition};
use crate::fetch::{Fetcher, Piece};
use aborted::AbortedTransactions;
use records::Walk;
use task::{News, Task, What};

pub use error::{ReadError, ReadErrorKind};
pub use types::{Header, Isolation, Position, ReaderConfig, Record, Reset, Seek};
pub use verbatim_batch::TimestampType;

/// News that may wait to be taken; the data in it counts as fetched and not yet taken.
const NEWS_MAX: usize = 16;

/// Reads assigned partitions. Dropping it ends that.
///
/// What is fetched ahead is bounded by [`FetchConfig`](crate::fetch::FetchConfig), and one batch is inflated at a time.
#[derive(Debug)]
pub struct Reader {
    cluster: Cluster,
    fetcher: Fetcher,
    config: Arc<ReaderConfig>,
    partitions: BTreeMap<Partition, Assigned>,
    generation: u64,
    news: mpsc::Receiver<News>,
    teller: mpsc::Sender<News>,
    current: Option<Current>,
    /// An error that a poll came upon after records.
    failed: Option<ReadError>,
}

#[derive(Debug)]
struct Assigned {
    name: Arc<Partition>,
    generation: u64,
    position: Option<Position>,
    /// `None` while the partition stands still after an error.
    task: Option<AbortOnDropHandle<()>>,
}

/// The piece whose records are being given out.
#[derive(Debug)]
struct Current {
    partition: Arc<Partition>,
    walk: Walk,
    /// Holds its room among what is fetched ahead.
    _piece: Piece,
}

impl Reader {
    /// A reader of a cluster, in the present tokio runtime. Nothing is assigned yet.
    pub fn new(cluster: Cluster, config: ReaderConfig) -> Self {
        let start = match config.isolation {
            Isolation::ReadUncommitted => Fetcher::start,
            Isolation::ReadCommitted => Fetcher::start_committed,
        };
        let fetcher = start(cluster.clone(), config.fetch.clone());
        let (teller, news) = mpsc::channel(NEWS_MAX);
        Self {
            cluster,
            fetcher,
            config: Arc::new(config),
            partitions: BTreeMap::new(),
            generation: 0,
            news,
            teller,
            current: None,
            failed: None,
        }
    }

    /// Reads a partition too, from there on. One that is assigned already is sought there.
    pub fn assign(&mut self, partition: &Partition, from: Seek) {
        self.forget(partition);
        self.generation = self.generation.saturating_add(1);
        let (generation, name) = (self.generation, Arc::new(partition.clone()));
        let task = Task {
            cluster: self.cluster.clone(),
            fetcher: self.fetcher.clone(),
            config: Arc::clone(&self.config),
            partition: Arc::clone(&name),
            generation,
            news: self.teller.clone(),
        };
        let task = Some(AbortOnDropHandle::new(tokio::spawn(task.run(from))));
        let position = match from {
            Seek::To(position) => Some(position),
            _ => None,
        };
        self.partitions.insert(partition.clone(), Assigned { name, generation, position, task });
    }

    /// Reads a partition no longer; what was fetched of it is dropped.
    pub fn unassign(&mut self, partition: &Partition) {
        self.forget(partition);
        self.partitions.remove(partition);
    }

    /// Goes elsewhere in an assigned partition, also after an error; false, and nothing happens, if it is not assigned.
    /// Leaders are asked by and by: what is wrong with the place is an error of a later [`Reader::next`].
    pub fn seek(&mut self, partition: &Partition, to: Seek) -> bool {
        let assigned = self.partitions.contains_key(partition);
        if assigned {
            self.assign(partition, to);
        }
        assigned
    }

    /// The partitions that are assigned.
    pub fn assigned(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.keys()
    }

    /// The position behind the last record given out; `None` while a leader has yet to be asked, or if it is not assigned.
    pub fn position(&self, partition: &Partition) -> Option<Position> {
        self.partitions.get(partition)?.position
    }

    /// The next record of any partition; those of one partition in their order. Waits until there is one, without end if
    /// nothing is assigned or all stand still. Cancel safe.
    ///
    /// # Errors
    /// What stopped a partition. The others go on with the next call; that one when it is [sought](Self::seek).
    pub async fn next(&mut self) -> Result<Record, ReadError> {
        loop {
            if let Some(ready) = self.ready() {
                return ready;
            }
            match self.news.recv().await {
                Some(news) => self.take(news),
                // It does not close: this reader can send, too.
                None => std::future::pending().await,
            }
        }
    }

    /// What is there, at most [`ReaderConfig::poll_records_max`] records; waits for the first one as long as said, and gives none
    /// if it does not come. Cancel safe.
    ///
    /// # Errors
    /// As [`Reader::next`]; what was read before comes first.
    pub async fn poll(&mut self, wait: Duration) -> Result<Vec<Record>, ReadError> {
        let Ok(first) = tokio::time::timeout(wait, self.next()).await else { return Ok(Vec::new()) };
        let mut records = vec![first?];
        let mut held = self.opened_bytes();
        while records.len() < self.config.poll_records_max && held <= self.config.inflated_bytes_max {
            let before = self.opened_bytes();
            match self.ready() {
                Some(Ok(record)) => {
                    records.push(record);
                    held = held.saturating_add(self.opened_bytes().saturating_sub(before));
                }
                Some(Err(error)) => {
                    self.failed = Some(error);
                    break;
                }
                None => {
                    let Ok(news) = self.news.try_recv() else { break };
                    self.take(news);
                }
            }
        }
        Ok(records)
    }

    /// For each partition the first record at or after a time in milliseconds since 1970, in the same order; `None` where
    /// there is none. At read_committed, only those below the last stable offset. They need not be assigned.
    ///
    /// # Errors
    /// The first question that is not answered.
    pub async fn offsets_for_times(
        &self,
        times: &[(Partition, i64)],
    ) -> Result<Vec<Option<ListedOffset>>, ClusterError> {
        let read_committed = self.config.isolation == Isolation::ReadCommitted;
        let mut offsets = Vec::with_capacity(times.len());
        for (partition, time) in times {
            offsets.push(self.cluster.list_offset(partition, At::Time(*time), read_committed).await?);
        }
        Ok(offsets)
    }

    /// A record or an error that needs no waiting.
    fn ready(&mut self) -> Option<Result<Record, ReadError>> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let current = self.current.as_mut()?;
        let given = current.walk.next();
        let assigned = self.partitions.get_mut(current.partition.as_ref());
        if let Some(assigned) = assigned {
            assigned.position = Some(current.walk.position());
        }
        match given {
            Ok(Some(record)) => Some(Ok(record)),
            Ok(None) => {
                self.current = None;
                None
            }
            Err(kind) => {
                let partition = Arc::clone(&current.partition);
                self.forget(&partition);
                Some(Err(ReadError { partition, kind }))
            }
        }
    }

    fn take(&mut self, news: News) {
        let News { partition, generation, what } = news;
        let assigned = self.partitions.get_mut(partition.as_ref());
        let Some(assigned) = assigned.filter(|assigned| assigned.generation == generation) else { return };
        match what {
            What::At(position) => assigned.position = Some(position),
            What::Failed(kind) => {
                assigned.task = None;
                self.failed = Some(ReadError { partition, kind });
            }
            What::Piece(piece) => {
                let position = assigned.position.unwrap_or(Position::new(0, None));
                let committed = self.config.isolation == Isolation::ReadCommitted;
                let aborted = committed.then(|| AbortedTransactions::new(&piece.aborted));
                let (name, batches) = (Arc::clone(&assigned.name), piece.batches.clone());
                let walk = Walk::new(name, position, batches, aborted, self.config.inflated_bytes_max);
                self.current = Some(Current { partition, walk, _piece: piece });
            }
        }
    }

    /// Ends a partition's task and drops what it brought; the partition stands still.
    fn forget(&mut self, partition: &Partition) {
        if let Some(assigned) = self.partitions.get_mut(partition) {
            assigned.task = None;
            // No task has it, so news that are still on their way are left out.
            assigned.generation = 0;
        }
        let of_it = |of: &Arc<Partition>| of.as_ref() == partition;
        self.current.take_if(|current| of_it(&current.partition));
        self.failed.take_if(|error| of_it(&error.partition));
    }

    fn opened_bytes(&self) -> usize {
        self.current.as_ref().map_or(0, |current| current.walk.opened_bytes())
    }
}
