//! The log as its owner sees it.

use std::path::Path;
use std::sync::Arc;

use verbatim_contract::{Comparison, CutPreview, EpochHistory, Position, ProducerState};

use crate::{ApplyError, Commit, Config, Flush, Io, LogError, LogReader, SourcePosition, View};

/// What a start found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The log was closed cleanly: nothing had to be scanned.
    pub clean: bool,
    /// Bytes of segments that were scanned, checksums included.
    pub scanned_bytes: u64,
    /// Bytes of a torn tail that were cut.
    pub cut_bytes: u64,
    /// The log end offset afterwards.
    pub end: i64,
    /// The partition was promoted before, though the configuration calls it exact: it is open as a normal one.
    pub promoted: bool,
}

/// One partition's log, owned by one thread.
#[derive(Debug)]
pub struct Log {}

impl Log {
    /// Makes a new, empty log in a folder that does not exist or is empty. A normal partition begins at epoch 0.
    ///
    /// # Errors
    /// [`LogError::Folder`] where the folder holds a log already.
    pub fn create(folder: &Path, config: Config, io: Arc<dyn Io>) -> Result<Self, LogError> {
        let _ = (folder, config, io);
        todo!()
    }

    /// Opens a log, recovering it from its last checkpoint. A normal partition's epoch rises by one, with an entry
    /// (epoch, end), durably; an exact partition's epochs stay as they are.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] names file and position where stored bytes are damaged other than by a crash;
    /// [`LogError::Newer`] where a file's version is not known.
    pub fn open(folder: &Path, config: Config, io: Arc<dyn Io>) -> Result<(Self, Recovery), LogError> {
        let _ = (folder, config, io);
        todo!()
    }

    /// Carries out a judged request. Facts (end, start, shown epoch, entries) are durable when this returns, batches
    /// when [`Self::flush`] has.
    ///
    /// # Errors
    /// See [`ApplyError`]: as before, as after the cut, or offline.
    pub fn apply(&mut self, commit: &Commit<'_>) -> Result<(), ApplyError> {
        let _ = commit;
        todo!()
    }

    /// Makes everything applied so far durable and moves the high watermark to the end. Costs nothing when nothing is
    /// pending.
    ///
    /// # Errors
    /// A failed flush takes the partition offline: what the disk holds is unknown until the log is opened again.
    pub fn flush(&mut self) -> Result<(), LogError> {
        todo!()
    }

    /// Where the log stands.
    #[must_use]
    pub fn position(&self) -> Position {
        todo!()
    }

    /// What readers see now.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        todo!()
    }

    /// A handle for reading beside this one.
    #[must_use]
    pub fn reader(&self) -> LogReader {
        todo!()
    }

    /// Compares a batch, header included, with what is stored at `base`: all bytes but the base offset itself. What lies
    /// in a hole or below the start is absent.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn compare(&self, batch: &[u8], base: i64) -> Result<Comparison, LogError> {
        let _ = (batch, base);
        todo!()
    }

    /// [`Self::compare`] for a batch in two parts.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn compare_parts(&self, head: &[u8], payload: &[u8], base: i64) -> Result<Comparison, LogError> {
        let _ = (head, payload, base);
        todo!()
    }

    /// What a cut to `to` would leave.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn cut_preview(&self, to: i64) -> Result<CutPreview, LogError> {
        let _ = to;
        todo!()
    }

    /// What is remembered of a producer.
    #[must_use]
    pub fn producer(&self, producer_id: i64) -> Option<&ProducerState> {
        let _ = producer_id;
        todo!()
    }

    /// All producers that are remembered, in no order.
    pub fn producers(&self) -> impl Iterator<Item = (i64, &ProducerState)> {
        std::iter::empty()
    }

    /// Open transactions: first offset and producer id, in offset order.
    #[must_use]
    pub fn open_transactions(&self) -> Vec<(i64, i64)> {
        todo!()
    }

    /// Forgets producers without an open transaction whose last batch is `expiration_ms` or more before `now_ms`.
    pub fn expire_producers(&mut self, now_ms: i64, expiration_ms: i64) -> usize {
        let _ = (now_ms, expiration_ms);
        todo!()
    }

    /// Leader epochs by offset.
    #[must_use]
    pub fn epochs(&self) -> &EpochHistory {
        todo!()
    }

    /// What the source last declared of itself.
    #[must_use]
    pub fn source(&self) -> Option<SourcePosition> {
        todo!()
    }

    /// Keeps what the source declared of itself, without a request that does anything else.
    ///
    /// # Errors
    /// The write failed; the position is kept in memory all the same.
    pub fn declare_source(&mut self, source: SourcePosition) -> Result<(), LogError> {
        let _ = source;
        todo!()
    }

    /// The partition takes exact writes.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        todo!()
    }

    /// Moves the start to `to`, at most to the end, durably, then deletes whole segments below it.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn advance_start(&mut self, to: i64) -> Result<(), ApplyError> {
        let _ = to;
        todo!()
    }

    /// Turns an exact partition into a normal one: its epoch is one above the shown epoch and above `epoch_floor` (the
    /// highest leader epoch of any committed offset that was mirrored, -1 for none), with an entry at the end; the
    /// declared source position is forgotten. Durable when it returns; on a normal partition nothing happens. Open
    /// transactions are the caller's business. Returns the partition's epoch.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn promote(&mut self, epoch_floor: i32) -> Result<i32, ApplyError> {
        let _ = epoch_floor;
        todo!()
    }

    /// Changes when batches count as written.
    pub fn set_flush(&mut self, flush: Flush) {
        let _ = flush;
        todo!()
    }

    /// Changes `segment.bytes` for segments to come.
    pub fn set_segment_bytes(&mut self, segment_bytes: u32) {
        let _ = segment_bytes;
        todo!()
    }

    /// Why the partition is offline.
    #[must_use]
    pub fn offline(&self) -> Option<&str> {
        todo!()
    }

    /// Makes all durable and leaves a checkpoint, so that the next start scans nothing. Dropping a log without this is
    /// as good as a crash.
    ///
    /// # Errors
    /// What failed; the next start recovers.
    pub fn close(self) -> Result<(), LogError> {
        todo!()
    }
}
