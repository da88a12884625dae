//! The log as its owner sees it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use verbatim_contract::{Comparison, CutPreview, EpochHistory, Position, ProducerState};

use crate::facts::{Checkpoint, Facts};
use crate::producers::Producers;
use crate::received::Received;
use crate::segment::{Names, Segment};
use crate::source::SourceFile;
use crate::view::Published;
use crate::{
    ApplyError, Commit, Config, Io, LogError, LogReader, Removed, Retention, SourcePosition, View, compare,
    open, snapshot,
};

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
pub struct Log {
    pub(crate) io: Arc<dyn Io>,
    pub(crate) folder: PathBuf,
    pub(crate) config: Config,
    pub(crate) facts: Facts,
    /// The facts' file says something else than `facts`: nothing may be written before it does not.
    pub(crate) owed: bool,
    pub(crate) source: SourceFile,
    /// In offset order, never empty; the last one grows.
    pub(crate) segments: Vec<Arc<Segment>>,
    /// `segments` as it is published.
    listed: Arc<[Arc<Segment>]>,
    /// Bytes of those, but for the last.
    listed_bytes: u64,
    /// As [`Published::largest`].
    largest: Arc<[i64]>,
    /// Bases of segments that were never used, to be removed after the commit.
    pub(crate) unused: Vec<i64>,
    pub(crate) producers: Producers,
    pub(crate) end: i64,
    pub(crate) high_watermark: i64,
    /// The last segment holds bytes that are not durable.
    pub(crate) dirty: bool,
    pub(crate) generation: u64,
    pub(crate) offline: Option<Arc<str>>,
    shared: Arc<ArcSwap<Published>>,
}

impl Log {
    /// Whether a folder holds a log that [`Self::open`] can open, which a [`Self::create`] that did not finish leaves not.
    ///
    /// # Errors
    /// The folder cannot be looked at.
    pub fn exists(folder: &Path, io: &dyn Io) -> Result<bool, LogError> {
        open::exists(folder, io)
    }

    /// Makes a new, empty log in a folder that does not exist or is empty. A normal partition begins at epoch 0.
    ///
    /// # Errors
    /// [`LogError::Folder`] where the folder holds a log already.
    pub fn create(folder: &Path, config: Config, io: Arc<dyn Io>) -> Result<Self, LogError> {
        open::create(folder, config, io)
    }

    /// Opens a log, recovering it from its last checkpoint. A normal partition's epoch rises by one, with an entry
    /// (epoch, end), durably; an exact partition's epochs stay as they are. An exact partition that is opened as a normal
    /// one is promoted thereby, as by [`Self::promote`] with -1.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] names file and position where stored bytes are damaged other than by a crash;
    /// [`LogError::Newer`] where a file's version is not known; [`LogError::Folder`] where the folder is another topic's, or the
    /// log was made with another [`Config::keeps_received`].
    pub fn open(folder: &Path, config: Config, io: Arc<dyn Io>) -> Result<(Self, Recovery), LogError> {
        open::open(folder, config, io)
    }

    /// Carries out a judged request. Facts (end, start, shown epoch, entries) are durable when this returns, batches
    /// when [`Self::flush`] has.
    ///
    /// # Errors
    /// See [`ApplyError`]: as before, as after the cut, or offline.
    pub fn apply(&mut self, commit: &Commit<'_>) -> Result<(), ApplyError> {
        crate::append::apply(self, commit)
    }

    /// Makes everything applied so far durable and moves the high watermark to the end. Costs nothing when nothing is
    /// pending.
    ///
    /// # Errors
    /// A failed flush takes the partition offline: what the disk holds is unknown until the log is opened again.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.check_online()?;
        self.sync_last()?;
        if self.high_watermark < self.end {
            self.high_watermark = self.end;
            self.publish();
        }
        Ok(())
    }

    /// Where the log stands.
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            start: self.facts.start,
            end: self.end,
            high_watermark: self.high_watermark,
            stable_offset: self.stable_offset(),
            last_entry: self.facts.epochs.last(),
            epoch_before_end: self.facts.epochs.before(self.end),
            shown_epoch: self.facts.shown_epoch,
        }
    }

    /// What readers see now.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.shared.load().view)
    }

    /// A handle for reading beside this one.
    #[must_use]
    pub fn reader(&self) -> LogReader {
        LogReader::new(Arc::clone(&self.shared))
    }

    /// Compares a batch, header included, with what is stored at `base`: all bytes but the base offset itself. What lies
    /// in a hole or below the start is absent.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn compare(&self, batch: &[u8], base: i64) -> Result<Comparison, LogError> {
        compare::compare(self, batch, &[], base)
    }

    /// [`Self::compare`] for a batch in two parts, the first of which holds at least the header.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn compare_parts(&self, head: &[u8], payload: &[u8], base: i64) -> Result<Comparison, LogError> {
        compare::compare(self, head, payload, base)
    }

    /// [`Self::compare`] for a batch that may have been stored otherwise than it was received: where a stored batch begins at
    /// `base`, it is the same if it ends with the same offset and `digest`, the SHA-256 of the whole received batch, is the
    /// one that is kept of it; otherwise it differs from `base` on. A log that keeps no digests compares bytes.
    ///
    /// # Errors
    /// What cannot be read; [`LogError::Corrupt`] where the kept digest is damaged.
    pub fn compare_received(
        &self,
        batch: &[u8],
        digest: &[u8; 32],
        base: i64,
    ) -> Result<Comparison, LogError> {
        compare::compare_received(self, batch, digest, base)
    }

    /// What a cut to `to` would leave.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn cut_preview(&self, to: i64) -> Result<CutPreview, LogError> {
        compare::cut_preview(self, to)
    }

    /// What is remembered of a producer.
    #[must_use]
    pub fn producer(&self, producer_id: i64) -> Option<&ProducerState> {
        self.producers.get(producer_id)
    }

    /// All producers that are remembered, in no order.
    pub fn producers(&self) -> impl Iterator<Item = (i64, &ProducerState)> {
        self.producers.iter()
    }

    /// Open transactions: first offset and producer id, in offset order.
    #[must_use]
    pub fn open_transactions(&self) -> Vec<(i64, i64)> {
        self.producers.open_transactions()
    }

    /// Forgets producers without an open transaction whose last batch is `expiration_ms` or more before `now_ms`.
    pub fn expire_producers(&mut self, now_ms: i64, expiration_ms: i64) -> usize {
        self.producers.expire(now_ms, expiration_ms)
    }

    /// Leader epochs by offset.
    #[must_use]
    pub fn epochs(&self) -> &EpochHistory {
        &self.facts.epochs
    }

    /// What the source last declared of itself.
    #[must_use]
    pub fn source(&self) -> Option<SourcePosition> {
        self.source.position()
    }

    /// Keeps what the source declared of itself, without a request that does anything else.
    ///
    /// # Errors
    /// The write failed; the position is kept in memory all the same.
    pub fn declare_source(&mut self, source: SourcePosition) -> Result<(), LogError> {
        let kept = self.source.set(&*self.io, source);
        self.publish();
        kept
    }

    /// The partition takes exact writes.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.facts.exact
    }

    /// The digest of what was received stands beside each batch: the log was made so, and is exact still.
    #[must_use]
    pub fn keeps_received(&self) -> bool {
        self.facts.keeps_received
    }

    /// Moves the start to `to`, at most to the end, durably, then deletes whole segments below it.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn advance_start(&mut self, to: i64) -> Result<(), ApplyError> {
        self.apply(&Commit { start: Some(to), ..Commit::default() })
    }

    /// Removes whole old segments by size and by time, as Kafka does. With the last segment due, too, an empty one is
    /// rolled first, and the log ends empty at its end. Nothing above the high watermark goes.
    ///
    /// # Errors
    /// [`ApplyError::Invalid`] on an exact log, of which nothing is ever removed by retention; else as [`Self::apply`].
    pub fn retain(&mut self, now_ms: i64, retention: &Retention) -> Result<Removed, ApplyError> {
        crate::retain::retain(self, now_ms, retention)
    }

    /// Turns an exact partition into a normal one: its epoch is one above the shown epoch and above `epoch_floor` (the
    /// highest leader epoch of any committed offset that was mirrored, -1 for none), with an entry at the end; the
    /// declared source position is forgotten. Durable when it returns; on a normal partition nothing happens. Open
    /// transactions are the caller's business. Returns the partition's epoch.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn promote(&mut self, epoch_floor: i32) -> Result<i32, ApplyError> {
        crate::append::promote(self, epoch_floor)
    }

    /// Takes over all settings but those that a log is opened with for good, `exact`, `keeps_received` and `topic_id`.
    pub fn configure(&mut self, config: &Config) {
        let Config { exact, keeps_received, topic_id, .. } = self.config;
        self.config = Config { exact, keeps_received, topic_id, ..config.clone() };
    }

    /// Why the partition is offline.
    #[must_use]
    pub fn offline(&self) -> Option<&str> {
        self.offline.as_deref()
    }

    /// [`Self::close`], its files written through another file system, such as [`crate::Together`].
    ///
    /// # Errors
    /// As [`Self::close`].
    pub fn close_through(self, io: Arc<dyn Io>) -> Result<(), LogError> {
        Self { io, ..self }.close()
    }

    /// Makes all durable and leaves a checkpoint, so that the next start scans nothing. Dropping a log without this is
    /// as good as a crash.
    ///
    /// # Errors
    /// What failed; the next start recovers.
    pub fn close(mut self) -> Result<(), LogError> {
        self.flush()?;
        let Some(last) = self.segments.last().cloned() else { return Ok(()) };
        if last.length() > 0 {
            last.write_indexes(&*self.io)?;
        }
        let names = Names::new(&self.folder, self.end);
        snapshot::write(&*self.io, &names.producers, self.producers.iter())?;
        self.source.sync()?;
        let checkpoint = Checkpoint { end: self.end, segment: last.base, length: last.length() };
        let facts = Facts { checkpoint: Some(checkpoint), ..self.facts.clone() };
        facts.write(&*self.io, &self.folder)?;
        self.export_epochs();
        Ok(())
    }
}

impl Log {
    pub(crate) fn assemble(
        io: Arc<dyn Io>,
        folder: &Path,
        config: Config,
        (facts, source): (Facts, SourceFile),
        segments: Vec<Arc<Segment>>,
        producers: Producers,
        end: i64,
    ) -> Self {
        let listed: Arc<[_]> = segments.as_slice().into();
        let view = View {
            start: facts.start,
            end,
            high_watermark: end,
            stable_offset: facts.start,
            shown_epoch: facts.shown_epoch,
            exact: facts.exact,
            epochs: Arc::clone(&facts.epochs),
            source: source.position(),
            offline: None,
        };
        let segments_seen = Arc::clone(&listed);
        let published = Published {
            view: Arc::new(view),
            generation: 0,
            segments: segments_seen,
            largest: [].into(),
            sealed_bytes: 0,
            last_length: 0,
        };
        let mut log = Self {
            io,
            folder: folder.to_owned(),
            config,
            facts,
            owed: false,
            source,
            segments,
            listed,
            listed_bytes: 0,
            largest: [].into(),
            unused: Vec::new(),
            producers,
            end,
            high_watermark: end,
            dirty: false,
            generation: 0,
            offline: None,
            shared: Arc::new(ArcSwap::from_pointee(published)),
        };
        log.relist();
        log.publish();
        log
    }

    /// Shows readers where the log stands.
    pub(crate) fn publish(&mut self) {
        self.publish_up_to(self.segments.last().map_or(0, |last| last.length()));
    }

    /// The same, with as many bytes of the last segment.
    pub(crate) fn publish_up_to(&mut self, last_length: u64) {
        self.producers.decide(self.high_watermark);
        let view = View {
            start: self.facts.start,
            end: self.end,
            high_watermark: self.high_watermark,
            stable_offset: self.stable_offset(),
            shown_epoch: self.facts.shown_epoch,
            exact: self.facts.exact,
            epochs: Arc::clone(&self.facts.epochs),
            source: self.source.position(),
            offline: self.offline.clone(),
        };
        self.shared.store(Arc::new(Published {
            view: Arc::new(view),
            generation: self.generation,
            segments: Arc::clone(&self.listed),
            largest: Arc::clone(&self.largest),
            sealed_bytes: self.listed_bytes,
            last_length,
        }));
    }

    /// The list of segments or the start changed. Readers are not shown what lies below the start: its files go.
    pub(crate) fn relist(&mut self) {
        self.listed = self.segments.get(self.dead_count()..).unwrap_or_default().into();
        let sealed = self.listed.iter().take(self.listed.len().saturating_sub(1));
        self.listed_bytes = sealed.clone().map(|segment| segment.length()).fold(0, u64::saturating_add);
        let running = sealed.scan(-1_i64, |largest, segment| {
            *largest = segment.latest().map_or(*largest, |(latest, _)| latest.max(*largest));
            Some(*largest)
        });
        self.largest = running.collect();
    }

    /// Makes the last segment durable; those before it are.
    pub(crate) fn sync_last(&mut self) -> Result<(), LogError> {
        let Some(last) = self.segments.last().filter(|_| self.dirty) else { return Ok(()) };
        let synced =
            if self.facts.keeps_received { last.received().and_then(Received::sync) } else { Ok(()) };
        let synced = synced.and_then(|()| last.file.sync().map_err(LogError::io("sync", &last.names.log)));
        if let Err(error) = synced {
            // The system may have dropped what it could not write, and a second try would not notice.
            self.go_offline(&error);
            return Err(error);
        }
        self.dirty = false;
        Ok(())
    }

    pub(crate) fn check_online(&self) -> Result<(), LogError> {
        match &self.offline {
            Some(reason) => Err(LogError::Offline { reason: reason.as_ref().to_owned() }),
            None => Ok(()),
        }
    }

    /// How a failure is told: undone, unless the partition is offline by now.
    pub(crate) fn failure(&self, cut: Option<i64>, source: LogError) -> ApplyError {
        match &self.offline {
            Some(reason) => ApplyError::Offline { reason: reason.as_ref().to_owned() },
            None => ApplyError::Failed { cut, source },
        }
    }

    pub(crate) fn go_offline(&mut self, error: &LogError) {
        if self.offline.is_none() {
            tracing::error!(folder = %self.folder.display(), %error, "partition is offline until restart");
            self.offline = Some(error.to_string().into());
            self.publish();
        }
    }

    fn stable_offset(&self) -> i64 {
        let unstable = self.producers.first_unstable(self.high_watermark).unwrap_or(i64::MAX);
        unstable.min(self.high_watermark).max(self.facts.start)
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("folder", &self.folder)
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}
