//! Copies topics of any Kafka-speaking source into a Verbatim host, byte for byte.
//!
//! The destination's log is the only checkpoint: a mirror keeps nothing of its own, and may be stopped, killed and started
//! anywhere at any time.
//!
//! ```no_run
//! # async fn copy() -> Result<(), Box<dyn std::error::Error>> {
//! use verbatim_mirror::cluster::ClusterConfig;
//! use verbatim_mirror::mirror::{Mirror, MirrorConfig};
//!
//! let (source, target) = (ClusterConfig::new(["127.0.0.1:9092"]), ClusterConfig::new(["127.0.0.1:9192"]));
//! let mut config = MirrorConfig::new(source, target);
//! config.topics = vec![regex::Regex::new("orders.*")?];
//! config.once = true;
//! let mut mirror = Mirror::start(config);
//! for partition in mirror.ended().await?.partitions {
//!     println!("{}-{}: {:?}", partition.topic, partition.partition, partition.state);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Which way data goes**: a [`Fetcher`](crate::fetch::Fetcher) brings raw batches, the partition's own task says which of
//! them are new, and an [exact producer](verbatim_wire::exact_producer) writes them, many under way at a time. What was
//! fetched keeps its room ([`MirrorConfig::buffered_bytes_max`]) until it is acknowledged.
//!
//! **What a copy is told beside data**: the source's leader epochs with their starts, learnt before anything is read under
//! them; its log start, its end and its current epoch, at least once a second. The copy's end moves without data only where
//! a fetch has proved that there is none.
//!
//! **What stops**: a partition whose source and copy do not go together any more stops in a [named state](state::State),
//! with a reason and a remedy, until the mirror is started anew; the others go on. What may pass is tried again, after pauses
//! that double from 100 ms to 30 s.
//!
//! **What is made at the destination**: a topic that is not there is created exact, as the copy of that very source topic
//! (by its id), with as many partitions; later ones are added. Settings that the source's topic itself sets are kept the same,
//! but for those that are the destination's own: `min.insync.replicas`, replication throttles, `produce.*`, and what the source
//! does not know, such as a module's settings. Such properties can be [given at creation](TargetConfig). A setting
//! that the destination does not take is [noted](state::TopicNote). A topic that is there is looked at before the first
//! write; one that disappears while it is mirrored is not made again.

mod admin;
mod aligning;
mod backoff;
mod config;
mod copying;
mod discover;
mod groups;
mod links;
mod partition;
mod peek;
mod plan;
mod progress;
mod settings;
pub mod state;
mod supervisor;
mod target;
mod trouble;

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use config::{MirrorConfig, OnDataLost, OnDivergence, TargetConfig, TargetConfigError};
pub use plan::{PlannedCopy, PlannedPartition, PlannedTopic, Step, plan};

use crate::cluster::ClusterError;
use links::Links;
use progress::Board;
use state::{Event, Snapshot};
use supervisor::Supervisor;

/// Why nothing can be mirrored at all.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// The source did not answer when it was asked first.
    #[error("source: {0}")]
    Source(ClusterError),
    /// The destination did not.
    #[error("destination: {0}")]
    Target(ClusterError),
    /// There is nothing to mirror, and the mirror shall not wait for it.
    #[error("no topic of the source matches {patterns}")]
    NoTopic {
        /// What was looked for.
        patterns: String,
    },
    /// The mirror's own task ended before its time, with its runtime.
    #[error("the mirror's task has ended: {0}")]
    Ended(String),
}

/// A running mirror. Dropping it stops it.
#[derive(Debug)]
pub struct Mirror {
    links: Arc<Links>,
    events: broadcast::Receiver<Event>,
    stop: CancellationToken,
    running: Option<JoinHandle<Result<(), MirrorError>>>,
}

impl Mirror {
    /// Starts a mirror in the present tokio runtime.
    pub fn start(config: MirrorConfig) -> Self {
        let (board, events) = Board::new();
        let links = Arc::new(Links::new(config, board));
        let stop = CancellationToken::new();
        let running = tokio::spawn(Supervisor::new(Arc::clone(&links), stop.clone()).run());
        Self { links, events, stop, running: Some(running) }
    }

    /// Where everything stands.
    pub fn snapshot(&self) -> Snapshot {
        self.links.board.snapshot()
    }

    /// The next thing that happened, in order; `None` once the mirror has ended. Slow listeners lose the oldest. Cancel safe.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            match self.events.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// Waits for the end: with `once`, when all is caught up or stopped; otherwise only if nothing can be mirrored at all
    /// (a wrong address, a source without a needed API). Cancel safe.
    ///
    /// # Errors
    /// What made it impossible; told once.
    pub async fn ended(&mut self) -> Result<Snapshot, MirrorError> {
        if let Some(running) = &mut self.running {
            let ended = running.await;
            self.running = None;
            ended.map_err(|error| MirrorError::Ended(error.to_string()))??;
        }
        Ok(self.snapshot())
    }

    /// Stops: what was acknowledged stays, what is under way is waited for.
    pub async fn stop(mut self) -> Snapshot {
        self.stop.cancel();
        // Why it had ended before is what `ended` tells.
        let _ = self.ended().await;
        self.snapshot()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
