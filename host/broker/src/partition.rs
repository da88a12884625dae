//! One partition from both sides: what its append thread owns, and what readers share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use verbatim_batch::{Codec, HEADER_LEN};
use verbatim_compression::{InflateError, Inflater, deflate, inflate};
use verbatim_contract::{Comparison, CutPreview, EpochEntry, Policy, ProducerState, Replica, Unreadable};
use verbatim_engine::{Digest, Incoming, Partition};
use verbatim_log::{Log, LogError, LogReader, View};

use crate::catalogue::Topic;
use crate::module_keys;
use crate::shared::PartitionId;

/// A partition as readers see it.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Reads beside the append thread.
    pub(crate) log: LogReader,
    waiters: Mutex<Vec<Arc<Notify>>>,
    deleted: AtomicBool,
}

impl Reader {
    pub(crate) fn new(log: LogReader) -> Self {
        Self { log, waiters: Mutex::new(Vec::new()), deleted: AtomicBool::new(false) }
    }

    /// The topic was deleted since this reader was found.
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// The topic was deleted; all that wait learn it.
    pub(crate) fn set_deleted(&self) {
        self.deleted.store(true, Ordering::Release);
        self.wake();
    }

    /// Where the log stands.
    pub(crate) fn view(&self) -> Arc<View> {
        self.log.view()
    }

    /// The leader epoch that clients are shown.
    pub(crate) fn shown_epoch(&self) -> i32 {
        self.view().shown_epoch
    }

    /// `waiter` is woken at the next change of what may be read.
    pub(crate) fn watch(&self, waiter: &Arc<Notify>) {
        self.waiters().push(Arc::clone(waiter));
    }

    /// `waiter` does not wait any more.
    pub(crate) fn unwatch(&self, waiter: &Arc<Notify>) {
        self.waiters().retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Wakes all that wait for a change.
    pub(crate) fn wake(&self) {
        for waiter in std::mem::take(&mut *self.waiters()) {
            // A permit is kept for one that is not waiting yet.
            waiter.notify_one();
        }
    }

    fn waiters(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Notify>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A partition as its append thread owns it; a judge gets it for the time of a call.
pub struct OwnPartition(Box<Inner>);

struct Inner {
    id: PartitionId,
    node: i32,
    log: Log,
    reader: Arc<Reader>,
    topic: Arc<Topic>,
    policy: Policy,
    sealed: bool,
    inflate_bytes_max: usize,
    /// Records of the present call that are being inflated, by the batch's index.
    reading: BTreeMap<u32, Result<Inflater, InflateError>>,
    /// What could not be read during the present call.
    broken: Option<String>,
}

impl std::fmt::Debug for OwnPartition {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OwnPartition").field("id", &self.0.id).finish_non_exhaustive()
    }
}

impl OwnPartition {
    pub(crate) fn new(
        id: PartitionId,
        topic: Arc<Topic>,
        log: Log,
        node: i32,
        inflate_bytes_max: usize,
    ) -> Self {
        let reader = Arc::new(Reader::new(log.reader()));
        let policy = policy(&topic, id.index, &log);
        let sealed = topic.state == crate::catalogue::State::Promoting;
        Self(Box::new(Inner {
            id,
            node,
            log,
            reader,
            topic,
            policy,
            sealed,
            inflate_bytes_max,
            reading: BTreeMap::new(),
            broken: None,
        }))
    }

    pub(crate) fn log(&self) -> &Log {
        &self.0.log
    }

    pub(crate) fn log_mut(&mut self) -> &mut Log {
        &mut self.0.log
    }

    pub(crate) fn into_log(self) -> Log {
        self.0.log
    }

    pub(crate) fn reader(&self) -> &Arc<Reader> {
        &self.0.reader
    }

    pub(crate) fn topic(&self) -> &Topic {
        &self.0.topic
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.0.policy
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.0.sealed
    }

    pub(crate) fn set_sealed(&mut self, sealed: bool) {
        self.0.sealed = sealed;
    }

    /// The topic's properties changed.
    pub(crate) fn configure(&mut self, topic: &Arc<Topic>, log: &verbatim_log::Config) {
        self.0.topic = Arc::clone(topic);
        self.0.policy = policy(topic, self.0.id.index, &self.0.log);
        self.0.log.configure(log);
    }

    /// The leader epoch of the latest entry; -1 when there is none.
    pub(crate) fn last_epoch(&self) -> i32 {
        self.0.log.epochs().last().map_or(-1, |entry| entry.epoch)
    }

    /// Ends a call: forgets what was inflated, and tells what could not be read while it was judged.
    pub(crate) fn end_call(&mut self) -> Option<String> {
        self.0.reading.clear();
        self.0.broken.take()
    }
}

impl Inner {
    /// A failed read makes the verdict worthless: it is noted and whatever comes back counts for nothing.
    fn noted<T>(&mut self, read: Result<T, LogError>, instead: T) -> T {
        read.unwrap_or_else(|error| {
            self.broken.get_or_insert_with(|| error.to_string());
            instead
        })
    }
}

impl Partition for OwnPartition {
    fn compare(&mut self, batch: &Incoming, base_offset: i64) -> Comparison {
        let log = &self.0.log;
        let compared = if log.keeps_received() {
            log.compare_received(&batch.bytes, Digest::of(&batch.bytes).as_bytes(), base_offset)
        } else {
            log.compare(&batch.bytes, base_offset)
        };
        self.0.noted(compared, Comparison::Overlaps(base_offset))
    }

    fn cut(&mut self, to: i64) -> CutPreview {
        let preview = self.0.log.cut_preview(to);
        self.0.noted(preview, CutPreview { at_boundary: false, last_entry: None, highest_epoch_cut: None })
    }

    fn producer(&mut self, producer_id: i64) -> Option<ProducerState> {
        self.0.log.producer(producer_id).cloned()
    }

    fn replicas(&mut self) -> Vec<Replica> {
        vec![Replica { id: self.0.node, in_sync: true, online: self.0.log.offline().is_none() }]
    }

    fn records(&mut self, index: u32, batch: &Incoming, max: u32) -> Result<Vec<u8>, Unreadable> {
        let limit = self.0.inflate_bytes_max;
        let reading = self.0.reading.entry(index).or_insert_with(|| {
            let payload = batch.bytes.slice(HEADER_LEN.min(batch.bytes.len())..);
            Inflater::new(batch.facts.header.attributes, payload, limit)
        });
        let piece = match reading {
            Ok(inflater) => inflater.next_piece(usize::try_from(max).unwrap_or(usize::MAX)).map(Vec::from),
            Err(error) => Err(error.clone()),
        };
        piece.map_err(unreadable)
    }

    fn inflated(&mut self, _index: u32, batch: &Incoming) -> Result<Bytes, Unreadable> {
        let payload = batch.bytes.slice(HEADER_LEN.min(batch.bytes.len())..);
        inflate(batch.facts.header.attributes, payload, self.0.inflate_bytes_max).map_err(unreadable)
    }

    fn compress(&mut self, codec: Codec, plain: &[u8]) -> Result<Vec<u8>, String> {
        deflate(codec, plain).map_err(|error| error.to_string())
    }

    fn start_over(&mut self) {
        self.0.reading.clear();
    }

    fn config(&mut self, key: &str) -> Option<String> {
        module_keys::get(&self.0.topic.values, key).cloned()
    }

    fn trace(&mut self, line: &str) {
        tracing::info!(topic = self.0.topic.name, partition = self.0.id.index, line, "module");
    }
}

fn unreadable(error: InflateError) -> Unreadable {
    match error {
        InflateError::Corrupt { .. } => Unreadable::Corrupt,
        InflateError::TooLarge { .. } => Unreadable::TooLarge,
        InflateError::UnknownCodec { .. } => Unreadable::UnknownCodec,
    }
}

/// The settings of a topic as a judge is told them.
fn policy(topic: &Topic, index: u32, log: &Log) -> Policy {
    let settings = &topic.settings;
    Policy {
        exact: settings.exact,
        rewind_truncate: settings.rewind_truncate,
        validate_records: !settings.exact || settings.validate_exact_records,
        // A retry of an exact write is recognised by the digest of what was received, or not at all.
        may_rewrite: settings.may_rewrite && (!settings.exact || log.keeps_received()),
        compacted: settings.compacted,
        log_append_time: settings.log_append_time,
        max_message_bytes: settings.max_message_bytes,
        segment_bytes: settings.segment_bytes,
        before_max_ms: settings.before_max_ms,
        after_max_ms: settings.after_max_ms,
        min_insync: settings.min_insync,
        topic_id: topic.id.as_u64_pair(),
        partition: index,
        config_generation: topic.generation,
    }
}

/// Epoch entries of the tag in the contract's words.
pub(crate) fn entries(tag: &[verbatim_wire::tag::EpochEntry]) -> Vec<EpochEntry> {
    tag.iter().map(|entry| EpochEntry { epoch: entry.epoch, start: entry.start }).collect()
}
