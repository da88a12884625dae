//! What all connections share: the catalogue, the way to each partition, the way to its append thread.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use kafka_protocol::messages::BrokerId;
use kafka_protocol::protocol::StrBytes;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use verbatim_log::folder::DataFolder;
use verbatim_log::{Io, Together};
use verbatim_wire::server::InFlight;

use crate::append::{Appender, Worker};
use crate::catalogue::{Catalogue, Topic};
use crate::config::Config;
use crate::errors::ApiError;
use crate::groups::Groups;
use crate::judges::Judges;
use crate::metrics::Metrics;
use crate::partition::Reader;
use crate::quotas::Meters;
use crate::room::Rooms;
use crate::sessions::Sessions;
use crate::throttle::Throttle;

/// A partition of a topic that may be gone and come back under the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PartitionId {
    pub(crate) topic: Uuid,
    pub(crate) index: u32,
}

/// What is expected of a partition's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folder {
    /// It is not there.
    New,
    /// It is there.
    Present,
    /// Either; a crash may have left it.
    NewOrLeft,
}

/// A partition that can be read, or why it cannot.
type Slot = Result<Arc<Reader>, String>;

/// A partition among all others.
pub(crate) struct PartitionView {
    pub(crate) topic: Arc<Topic>,
    pub(crate) index: u32,
    pub(crate) slot: Slot,
}

impl PartitionView {
    /// Why it is offline.
    pub(crate) fn offline(&self) -> Option<String> {
        match &self.slot {
            Ok(reader) => reader.view().offline.as_ref().map(ToString::to_string),
            Err(reason) => Some(reason.clone()),
        }
    }
}

/// Searches by time at a time: each may hold an inflated batch, and one of the few threads that read the disk.
const SEARCHES_MAX: usize = 2;

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) in_flight: InFlight,
    pub(crate) catalogue: Catalogue,
    pub(crate) judges: Arc<dyn Judges>,
    pub(crate) throttle: Throttle,
    /// What clients with a quota wrote and read.
    pub(crate) meters: Meters,
    /// For records on their way to readers.
    pub(crate) rooms: Rooms,
    /// What readers were told, so that they need not be told again.
    pub(crate) sessions: Sessions,
    /// Consumer groups and their offsets.
    pub(crate) groups: Groups,
    /// Searches by time that may run at a time.
    pub(crate) searches: Arc<Semaphore>,
    /// The host shuts down: nobody waits for new data any more.
    pub(crate) stopping: CancellationToken,
    /// Changes of topics happen one at a time.
    pub(crate) admin: tokio::sync::Mutex<()>,
    pub(crate) folder: DataFolder,
    pub(crate) io: Arc<dyn Io>,
    pub(crate) appenders: Vec<Appender>,
    pub(crate) advertised: (String, u16),
    partitions: RwLock<HashMap<PartitionId, Slot>>,
}

/// The parts of a host before anything is served.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) in_flight: InFlight,
    pub(crate) catalogue: Catalogue,
    pub(crate) judges: Arc<dyn Judges>,
    pub(crate) groups: Groups,
    pub(crate) folder: DataFolder,
    pub(crate) io: Arc<dyn Io>,
    pub(crate) appenders: Vec<Appender>,
    pub(crate) advertised: (String, u16),
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            config,
            metrics,
            in_flight,
            catalogue,
            judges,
            groups,
            folder,
            io,
            appenders,
            advertised,
        } = parts;
        Self {
            throttle: Throttle::new(config.limits.throttle_ms_max),
            meters: Meters::new(),
            rooms: Rooms::new(config.limits.fetch_buffered_bytes_max),
            sessions: Sessions::new(
                config.limits.fetch_sessions_max,
                config.limits.fetch_session_partitions_max,
            ),
            config,
            metrics,
            in_flight,
            catalogue,
            judges,
            groups,
            searches: Arc::new(Semaphore::new(SEARCHES_MAX)),
            stopping: CancellationToken::new(),
            admin: tokio::sync::Mutex::new(()),
            folder,
            io,
            appenders,
            advertised,
            partitions: RwLock::new(HashMap::new()),
        }
    }

    /// This node's id.
    pub(crate) fn node(&self) -> BrokerId {
        BrokerId(self.config.node_id)
    }

    /// Host and port that clients are told.
    pub(crate) fn advertised(&self) -> (StrBytes, i32) {
        (StrBytes::from_string(self.advertised.0.clone()), i32::from(self.advertised.1))
    }

    /// The append thread that owns a partition: always the same one.
    pub(crate) fn appender(&self, id: PartitionId) -> Appender {
        let low = id.topic.as_u64_pair().1.wrapping_add(u64::from(id.index));
        let count = u64::try_from(self.appenders.len()).unwrap_or(1).max(1);
        let index = usize::try_from(low % count).unwrap_or(0);
        // There is at least one, and the index is below their number.
        self.appenders.get(index).cloned().unwrap_or_else(Appender::ended)
    }

    /// A topic's partition as clients number them, for reading.
    pub(crate) fn find(&self, topic: &Topic, index: i32) -> Result<Arc<Reader>, ApiError> {
        let known = u32::try_from(index).ok().filter(|index| *index < topic.partitions);
        self.partition(topic, known.ok_or_else(|| ApiError::unknown_partition(&topic.name, index))?)
    }

    /// A topic's partition for reading.
    pub(crate) fn partition(&self, topic: &Topic, index: u32) -> Result<Arc<Reader>, ApiError> {
        let reader = self.opened(topic, index)?;
        match &reader.view().offline {
            Some(reason) => Err(offline(topic, index, reason)),
            None => Ok(Arc::clone(&reader)),
        }
    }

    /// A topic's partition for writing, also one that went offline since it was opened: its append thread knows more.
    pub(crate) fn find_for_writing(&self, topic: &Topic, index: i32) -> Result<Arc<Reader>, ApiError> {
        let known = u32::try_from(index).ok().filter(|index| *index < topic.partitions);
        self.opened(topic, known.ok_or_else(|| ApiError::unknown_partition(&topic.name, index))?)
    }

    /// A topic's partition that was opened, also one that went offline since.
    pub(crate) fn opened(&self, topic: &Topic, index: u32) -> Result<Arc<Reader>, ApiError> {
        let partitions = self.partitions.read().unwrap_or_else(PoisonError::into_inner);
        match partitions.get(&PartitionId { topic: topic.id, index }) {
            Some(Ok(reader)) => Ok(Arc::clone(reader)),
            Some(Err(reason)) => Err(offline(topic, index, reason)),
            None => Err(ApiError::unknown_partition(&topic.name, i32::try_from(index).unwrap_or(i32::MAX))),
        }
    }

    /// All partitions that clients may know, by topic and number, those that were not opened yet left out.
    pub(crate) fn each_partition(&self) -> Vec<PartitionView> {
        let snapshot = self.catalogue.snapshot();
        let partitions = self.partitions.read().unwrap_or_else(PoisonError::into_inner);
        let all = snapshot.visible().flat_map(|topic| (0..topic.partitions).map(move |index| (topic, index)));
        let view = |(topic, index): (&Arc<Topic>, u32)| {
            let slot = partitions.get(&PartitionId { topic: topic.id, index })?.clone();
            Some(PartitionView { topic: Arc::clone(topic), index, slot })
        };
        all.filter_map(view).collect()
    }

    /// Opens partitions, all append threads at work; the first error of them, the others are tried all the same. They
    /// are durable when this returns.
    pub(crate) async fn open_partitions(
        &self,
        topic: &Arc<Topic>,
        indices: Range<u32>,
        kind: Folder,
    ) -> Result<(), ApiError> {
        let together = self.together();
        let opened = self.open_together(topic, indices, kind, &together).await;
        self.finish(together).await?;
        opened
    }

    /// [`Self::open_partitions`], durable once `together` is finished.
    pub(crate) async fn open_together(
        &self,
        topic: &Arc<Topic>,
        indices: Range<u32>,
        kind: Folder,
        together: &Together,
    ) -> Result<(), ApiError> {
        let mut opening = Vec::new();
        for index in indices {
            let id = PartitionId { topic: topic.id, index };
            let (topic, path, together) = (Arc::clone(topic), self.path(topic, index), together.clone());
            let open = move |worker: &mut Worker| worker.open(id, &topic, &path, kind, together);
            opening.push((id, self.appender(id).begin(open).await?));
        }
        let mut first = Ok(());
        for (id, opened) in opening {
            let slot = opened.await.unwrap_or_else(|_| Err(ApiError::storage("the host is shutting down")));
            if let (Ok(()), Err(error)) = (&first, &slot) {
                first = Err(error.clone());
            }
            self.partitions_mut().insert(id, slot.map_err(|error| error.text));
        }
        first
    }

    /// Takes partitions away from clients and removes their folders, durably; the first error of them, the others are
    /// tried all the same.
    pub(crate) async fn remove_partitions(
        &self,
        topic: &Topic,
        indices: impl IntoIterator<Item = u32>,
    ) -> Result<(), ApiError> {
        let together = self.together();
        let mut removing = Vec::new();
        for index in indices {
            let id = PartitionId { topic: topic.id, index };
            self.partitions_mut().remove(&id);
            let (path, together) = (self.path(topic, index), together.clone());
            let remove = move |worker: &mut Worker| worker.remove(id, &path, &together);
            removing.push((id, self.appender(id).begin(remove).await?));
        }
        let mut first = Ok(());
        for (id, removed) in removing {
            let removed = removed.await.map_err(|_| ApiError::storage("the host is shutting down"))?;
            if let Err(error) = removed {
                tracing::error!(topic = topic.name, partition = id.index, %error, "a partition's folder cannot be removed");
                first = first.and(Err(ApiError::storage(error.to_string())));
            }
        }
        first.and(self.finish(together).await)
    }

    /// What many partitions are made durable through at once.
    pub(crate) fn together(&self) -> Together {
        Together::new(Arc::clone(&self.io))
    }

    /// Makes durable what was done through it.
    pub(crate) async fn finish(&self, together: Together) -> Result<(), ApiError> {
        let data = self.folder.path().to_owned();
        let finished = tokio::task::spawn_blocking(move || together.finish(&data)).await;
        let finished = finished.map_err(|error| ApiError::storage(error.to_string()))?;
        finished.map_err(|error| {
            tracing::error!(%error, "partitions cannot be made durable");
            ApiError::storage(error.to_string())
        })
    }

    fn path(&self, topic: &Topic, index: u32) -> PathBuf {
        self.folder.partition_path(&topic.name, index)
    }

    fn partitions_mut(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<PartitionId, Slot>> {
        self.partitions.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn offline(topic: &Topic, index: u32, reason: &str) -> ApiError {
    ApiError::storage(format!("partition is offline: {reason}, topic=`{}`, partition=`{index}`", topic.name))
}
