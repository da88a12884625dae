//! Append threads: each owns its partitions and its judges, so that nothing is locked.
//!
//! A thread takes what is waiting in its queue, judges and applies request after request, makes all of it durable with
//! one flush a partition, and only then answers (group commit).

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use verbatim_engine::{Judge, Poison};
use verbatim_log::{Config as LogConfig, Flush, Io, Log, LogError, Together, folder};

use crate::catalogue::Topic;
use crate::config::FlushPolicy;
use crate::errors::ApiError;
use crate::judges::Judges;
use crate::metrics::{Metrics, ThreadMetrics, Work};
use crate::partition::{OwnPartition, Reader};
use crate::produce::{Outcome, Submission};
use crate::promotion::Obstacles;
use crate::shared::{Folder, PartitionId};

/// Requests that share a flush at most, so that the first of them does not wait for ever.
const GROUP_MAX: usize = 256;

/// What an append thread is asked to do.
enum Job {
    /// With when it was queued.
    Produce(Box<Submission>, Instant),
    Call(Box<dyn FnOnce(&mut Worker) + Send>),
    Stop,
}

/// The way to one append thread.
#[derive(Clone)]
pub(crate) struct Appender {
    queue: mpsc::Sender<Job>,
}

impl Appender {
    /// Queues a request; waits while the queue is full. What is queued later is judged later.
    pub(crate) async fn produce(&self, submission: Submission) -> Result<(), ApiError> {
        self.queue.send(Job::Produce(Box::new(submission), Instant::now())).await.map_err(|_| stopping())
    }

    /// Has something done on the thread, in the queue's order, and waits for what comes of it.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Worker) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.begin(call).await?.await.map_err(|_| stopping())
    }

    /// As [`Self::call`], without waiting for what comes of it.
    pub(crate) async fn begin<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Worker) -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, ApiError> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Call(Box::new(move |worker| {
            // Nobody waits any more: the work is done all the same.
            let _ = answer.send(call(worker));
        }));
        self.queue.send(job).await.map_err(|_| stopping())?;
        Ok(answered)
    }

    /// The way to no thread: whatever is asked of it fails.
    pub(crate) fn ended() -> Self {
        Self { queue: mpsc::channel(1).0 }
    }

    /// Lets the thread end once it did what is queued.
    pub(crate) async fn stop(&self) {
        // An error means that it has ended already.
        let _ = self.queue.send(Job::Stop).await;
    }
}

fn stopping() -> ApiError {
    ApiError::storage("the host is shutting down")
}

/// What every append thread is started with.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) judges: Arc<dyn Judges>,
    pub(crate) io: Arc<dyn Io>,
    /// The data folder.
    pub(crate) data: PathBuf,
    pub(crate) node: i32,
    pub(crate) flush: FlushPolicy,
    pub(crate) queue_max: usize,
    pub(crate) inflate_bytes_max: usize,
    pub(crate) exact_batch_bytes_max: usize,
}

/// Starts an append thread.
pub(crate) fn start(index: usize, setup: Setup) -> std::io::Result<(Appender, JoinHandle<()>)> {
    let (queue, jobs) = mpsc::channel(setup.queue_max.max(1));
    // The worker is made on its thread: judges do not move between threads.
    let thread = std::thread::Builder::new().name(format!("append-{index}")).spawn(move || {
        let metrics = setup.metrics.thread(index);
        let _ending = Ending(Arc::clone(&metrics));
        Worker::new(setup, metrics).run(jobs);
    })?;
    Ok((Appender { queue }, thread))
}

/// Tells that the thread is gone, also if it panicked.
struct Ending(Arc<ThreadMetrics>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.duty.end();
    }
}

/// What an append thread owns.
pub(crate) struct Worker {
    pub(crate) metrics: Arc<ThreadMetrics>,
    pub(crate) setup: Setup,
    pub(crate) partitions: HashMap<PartitionId, OwnPartition>,
    /// Judges by module name, made when first needed.
    pub(crate) judges: HashMap<String, Box<dyn Judge<OwnPartition>>>,
    /// Requests on which a module failed. A partition's requests all come here, so the thread's own table is enough.
    pub(crate) poison: Poison,
}

/// An answer that waits for the flush.
pub(crate) struct Pending {
    pub(crate) id: PartitionId,
    pub(crate) outcome: Outcome,
    pub(crate) answer: oneshot::Sender<Outcome>,
}

impl Worker {
    fn new(setup: Setup, metrics: Arc<ThreadMetrics>) -> Self {
        Self { metrics, setup, partitions: HashMap::new(), judges: HashMap::new(), poison: Poison::default() }
    }

    fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(first) = jobs.blocking_recv() {
            let mut pending = Vec::new();
            let mut next = Some(first);
            while let Some(job) = next {
                match job {
                    Job::Produce(submission, queued) => {
                        let taken = self.metrics.taken(submission.id, queued);
                        pending.push(self.produce(*submission, taken));
                    }
                    Job::Call(call) => {
                        self.settle(std::mem::take(&mut pending));
                        self.metrics.duty.begin(Work::Other, Instant::now());
                        call(&mut self);
                    }
                    Job::Stop => {
                        self.settle(pending);
                        return self.close();
                    }
                }
                next = if pending.len() < GROUP_MAX { jobs.try_recv().ok() } else { None };
            }
            self.settle(pending);
            self.metrics.duty.idle();
        }
        self.close();
    }

    /// One flush for each partition that was written, then the answers.
    fn settle(&mut self, pending: Vec<Pending>) {
        self.metrics.group(pending.len());
        let touched: BTreeSet<PartitionId> = pending.iter().map(|one| one.id).collect();
        let mut failed = HashMap::new();
        for id in touched {
            let Some(partition) = self.partitions.get_mut(&id) else { continue };
            if self.setup.flush == FlushPolicy::Always
                && let Err(error) = self.metrics.flushed(id, || partition.log_mut().flush())
            {
                failed.insert(id, report(partition.topic(), id, &error));
            }
            partition.reader().wake();
        }
        for one in pending {
            let outcome = match failed.get(&one.id) {
                Some(error) if one.outcome.is_done() => {
                    Outcome { tag: one.outcome.tag, failed: true, ..Outcome::refused(error.clone()) }
                }
                _ => one.outcome,
            };
            // The connection may be gone; what was written stays.
            let _ = one.answer.send(outcome);
        }
    }

    /// Makes everything durable, whatever the policy; an error takes the partition offline and is logged.
    pub(crate) fn flush_all(&mut self) {
        for (id, partition) in &mut self.partitions {
            if let Err(error) = self.metrics.flushed(*id, || partition.log_mut().flush()) {
                report(partition.topic(), *id, &error);
            }
            partition.reader().wake();
        }
    }

    /// Forgets producers that have been idle for long enough.
    pub(crate) fn expire_producers(&mut self, expiration_ms: i64) {
        let now_ms = crate::api::now_ms();
        for partition in self.partitions.values_mut() {
            partition.log_mut().expire_producers(now_ms, expiration_ms);
        }
    }

    /// Opens a partition's log, or makes it; durable once `together` is finished.
    pub(crate) fn open(
        &mut self,
        id: PartitionId,
        topic: &Arc<Topic>,
        path: &Path,
        kind: Folder,
        together: Together,
    ) -> Result<Arc<Reader>, ApiError> {
        let config = log_config(topic, self.setup.flush);
        let io: Arc<dyn Io> = Arc::new(together);
        let opened = match kind {
            Folder::New => Log::create(path, config, io),
            Folder::Present => reopen(topic, id, path, config, io),
            // Whatever a crash left was never served.
            Folder::NewOrLeft => {
                folder::remove_partition(&*io, path).and_then(|()| Log::create(path, config, io))
            }
        };
        let log = opened.map_err(|error| report(topic, id, &error))?;
        let own =
            OwnPartition::new(id, Arc::clone(topic), log, self.setup.node, self.setup.inflate_bytes_max);
        let reader = Arc::clone(own.reader());
        self.partitions.insert(id, own);
        Ok(reader)
    }

    /// The topic's properties changed.
    pub(crate) fn configure(&mut self, id: PartitionId, topic: &Arc<Topic>) {
        if let Some(partition) = self.partitions.get_mut(&id) {
            partition.configure(topic, &log_config(topic, self.setup.flush));
        }
    }

    /// Gives up a partition and removes its folder; durable once `together` is finished.
    pub(crate) fn remove(
        &mut self,
        id: PartitionId,
        path: &Path,
        together: &Together,
    ) -> Result<(), LogError> {
        if let Some(partition) = self.partitions.remove(&id) {
            let reader = Arc::clone(partition.reader());
            drop(partition);
            reader.set_deleted();
        }
        folder::remove_partition(together, path)
    }

    /// Takes no more writes, and tells what stands against a promotion.
    pub(crate) fn seal(&mut self, id: PartitionId, own_prefix: u32) -> Result<Obstacles, ApiError> {
        let partition = self.online(id)?;
        partition.set_sealed(true);
        let log = partition.log();
        let open = log.open_transactions().into_iter().map(|(first, producer)| (producer, first)).collect();
        let own = |producer: &i64| producer >> 32 == i64::from(own_prefix);
        Ok(Obstacles { open, own_ids: log.producers().map(|(producer, _)| producer).filter(own).collect() })
    }

    /// Takes writes again.
    pub(crate) fn unseal(&mut self, id: PartitionId) {
        if let Some(partition) = self.partitions.get_mut(&id) {
            partition.set_sealed(false);
        }
    }

    /// Makes a normal partition of an exact one, with a leader epoch above `epoch_floor`; that epoch.
    pub(crate) fn promote(&mut self, id: PartitionId, epoch_floor: i32) -> Result<i32, ApiError> {
        let partition = self.online(id)?;
        let promoted = partition.log_mut().promote(epoch_floor);
        let promoted = promoted.map_err(|error| report(partition.topic(), id, &error));
        partition.reader().wake();
        promoted
    }

    /// The partition, if it is online.
    pub(crate) fn online(&mut self, id: PartitionId) -> Result<&mut OwnPartition, ApiError> {
        let partition = self.partitions.get_mut(&id).filter(|partition| partition.log().offline().is_none());
        partition.ok_or_else(|| {
            ApiError::storage(format!("partition is offline until restart, partition=`{}`", id.index))
        })
    }

    fn close(self) {
        let together = Together::new(Arc::clone(&self.setup.io));
        for (id, partition) in self.partitions {
            let (topic, reader) = (partition.topic().name.clone(), Arc::clone(partition.reader()));
            if let Err(error) = partition.into_log().close_through(Arc::new(together.clone())) {
                tracing::error!(topic, partition = id.index, %error, "closing a partition failed, the next start recovers it");
            }
            reader.wake();
        }
        if let Err(error) = together.finish(&self.setup.data) {
            tracing::error!(%error, "closing partitions failed, the next start recovers them");
        }
    }
}

/// A topic's properties as its logs are told them.
fn log_config(topic: &Topic, flush: FlushPolicy) -> LogConfig {
    let settings = &topic.settings;
    LogConfig {
        exact: topic.is_exact_on_disk(),
        keeps_received: topic.is_exact_on_disk() && settings.may_rewrite,
        topic_id: topic.id.as_u64_pair(),
        segment_bytes: settings.segment_bytes,
        segment_ms: settings.segment_ms,
        segment_jitter_ms: settings.segment_jitter_ms,
        segment_index_bytes: settings.segment_index_bytes,
        index_interval_bytes: settings.index_interval_bytes,
        flush: match flush {
            FlushPolicy::Always => Flush::Always,
            FlushPolicy::Interval => Flush::Interval,
            FlushPolicy::Never => Flush::Never,
        },
    }
}

fn reopen(
    topic: &Topic,
    id: PartitionId,
    path: &Path,
    config: LogConfig,
    io: Arc<dyn Io>,
) -> Result<Log, LogError> {
    let opened = Log::open(path, config.clone(), Arc::clone(&io)).or_else(|error| {
        // One that was made before digests were kept has none: nothing is rewritten there.
        let without = LogConfig { keeps_received: false, ..config.clone() };
        let made_without = config.keeps_received.then(|| Log::open(path, without, io).ok()).flatten();
        made_without.ok_or(error)
    });
    let (log, recovery) = opened?;
    if recovery.clean {
        tracing::debug!(topic = topic.name, partition = id.index, end = recovery.end, "partition opened");
    } else {
        let (scanned, cut) = (recovery.scanned_bytes, recovery.cut_bytes);
        tracing::info!(
            topic = topic.name,
            partition = id.index,
            end = recovery.end,
            scanned,
            cut,
            "partition recovered"
        );
    }
    Ok(log)
}

/// Logs a failure of the disk and puts it into the words that clients get.
pub(crate) fn report(topic: &Topic, id: PartitionId, error: &dyn std::error::Error) -> ApiError {
    tracing::error!(topic = topic.name, partition = id.index, %error, "disk failure");
    ApiError::storage(format!("{error}, topic=`{}`, partition=`{}`", topic.name, id.index))
}
