//! What all tasks of a mirror share: the two clusters, and the ways data goes between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use uuid::Uuid;
use verbatim_wire::exact_producer::{Config, ExactProducer};

use super::admin::Admin;
use super::config::MirrorConfig;
use super::progress::Board;
use super::target::Keeper;
use super::trouble::Halt;
use crate::cluster::Cluster;
use crate::fetch::{FetchConfig, Fetcher};

/// How long the source may wait for data.
const FETCH_WAIT: Duration = Duration::from_millis(500);
/// Bytes of one answer of the source, and of one partition in it, at most.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;
const PARTITION_BYTES: usize = 4 * 1024 * 1024;
/// Partitions that align at the same time, so that ten thousand of them are no storm of questions.
const ALIGNING_MAX: usize = 64;

/// The shared parts.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) config: MirrorConfig,
    pub(super) source: Cluster,
    pub(super) target: Cluster,
    pub(super) admin: Admin,
    /// Reads the source.
    pub(super) from: Fetcher,
    /// Write the copy.
    pub(super) to: Vec<ExactProducer>,
    pub(super) board: Board,
    pub(super) aligning: Semaphore,
    /// When the mirror began.
    pub(super) begun: Instant,
}

/// A topic that is mirrored, as its partitions' tasks share it.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    /// Its id when the mirror first saw it; nil if the source has none.
    pub(super) id: Uuid,
    is_copy: AtomicBool,
    halt: watch::Sender<Option<Halt>>,
}

impl Links {
    /// Everything, in the present tokio runtime; nothing is connected yet.
    pub(super) fn new(config: MirrorConfig, board: Board) -> Self {
        let (source, target) = (Cluster::new(config.source.clone()), Cluster::new(config.target.clone()));
        let part = (config.buffered_bytes_max / 4).max(1);
        let fetch = FetchConfig {
            wait_max: FETCH_WAIT,
            answer_bytes_max: part.min(ANSWER_BYTES),
            partition_bytes_max: part.min(PARTITION_BYTES),
            buffered_bytes_max: config.buffered_bytes_max.max(1),
        };
        let connections = config.connections.max(1);
        let producer = || {
            ExactProducer::start(Config {
                bootstrap: config.target.bootstrap.clone(),
                in_flight_bytes_max: (config.buffered_bytes_max / connections).max(1),
                client: config.target.client.clone(),
                ..Config::new("")
            })
        };
        Self {
            from: Fetcher::start(source.clone(), fetch),
            to: (0..connections).map(|_| producer()).collect(),
            admin: Admin::new(config.target.clone()),
            aligning: Semaphore::new(ALIGNING_MAX),
            begun: Instant::now(),
            source,
            target,
            config,
            board,
        }
    }

    /// Looks after topics at the destination.
    pub(super) fn keeper(&self) -> Keeper<'_> {
        let wanted = &self.config.target_config;
        Keeper { admin: &self.admin, target: &self.target, board: &self.board, wanted }
    }
}

impl Topic {
    pub(super) fn new(name: &str, id: Uuid) -> Self {
        let (halt, _) = watch::channel(None);
        Self { name: name.to_owned(), id, is_copy: AtomicBool::new(false), halt }
    }

    /// True if the source's topic is a copy itself: it may show a leader epoch before it has that epoch's data, or those of
    /// epochs below it.
    pub(super) fn is_copy(&self) -> bool {
        self.is_copy.load(Ordering::Relaxed)
    }

    pub(super) fn set_copy(&self, is_copy: bool) {
        self.is_copy.store(is_copy, Ordering::Relaxed);
    }

    /// Stops all partitions of the topic.
    pub(super) fn stop(&self, halt: Halt) {
        self.halt.send_replace(Some(halt));
    }

    /// Waits until the topic is stopped.
    pub(super) async fn stopped(&self) -> Halt {
        let mut halt = self.halt.subscribe();
        loop {
            if let Some(halt) = halt.borrow_and_update().clone() {
                return halt;
            }
            // The sender lives as long as this topic.
            let _ = halt.changed().await;
        }
    }
}
