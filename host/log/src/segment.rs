//! One segment: its file, its indexes, its aborted transactions. Shared with readers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use verbatim_batch::HEADER_LEN;

use crate::checked::remove_file;
use crate::index::{Growing, Sealed, TimeEntry, relative};
use crate::parked::Parked;
use crate::received::{self, Received};
use crate::walk::{SMALL_WINDOW, Step, Stored, Walk};
use crate::{AbortedTransaction, File, Io, LogError};

/// The files of a segment that begins at an offset.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) log: PathBuf,
    pub(crate) offsets: PathBuf,
    pub(crate) times: PathBuf,
    pub(crate) aborted: PathBuf,
    /// Producers at the segment's base.
    pub(crate) producers: PathBuf,
}

pub(crate) struct Segment {
    pub(crate) base: i64,
    pub(crate) names: Names,
    pub(crate) file: Arc<dyn File>,
    length: AtomicU64,
    index: RwLock<Index>,
    aborted: RwLock<Vec<AbortedTransaction>>,
    /// Digests of received batches, on a log that keeps them; a segment that lies below the start may have lost them.
    received: Option<Received>,
}

pub(crate) enum Index {
    Growing(Growing),
    Sealed(Sealed),
}

impl Names {
    pub(crate) fn new(folder: &Path, base: i64) -> Self {
        let name = |extension: &str| folder.join(format!("{base:020}.{extension}"));
        Self {
            log: name("log"),
            offsets: name("index"),
            times: name("timeindex"),
            aborted: name("txnindex"),
            producers: name("snapshot"),
        }
    }
}

impl Segment {
    pub(crate) fn new(names: Names, base: i64, file: Arc<dyn File>, length: u64, index: Index) -> Self {
        let (length, index) = (AtomicU64::new(length), RwLock::new(index));
        Self { base, names, file, length, index, aborted: RwLock::new(Vec::new()), received: None }
    }

    pub(crate) fn with_received(self, received: Option<Received>) -> Self {
        Self { received, ..self }
    }

    /// The digests of received batches; asked for on a log that keeps them, where they are needed.
    pub(crate) fn received(&self) -> Result<&Received, LogError> {
        let missing = || {
            LogError::corrupt(
                &received::path(&self.names.log),
                0,
                "the digests of received batches are missing",
            )
        };
        self.received.as_ref().ok_or_else(missing)
    }

    /// The same segment, to which nothing is added any more.
    pub(crate) fn sealed(&self, io: &Arc<dyn Io>, index: Sealed) -> Self {
        let file = Parked::park(io, &self.names.log);
        let received = self.received.as_ref().map(|received| received.parked(io));
        let sealed = Self::new(self.names.clone(), self.base, file, self.length(), Index::Sealed(index))
            .with_received(received);
        sealed.aborted_mut().clone_from(&self.aborted());
        sealed
    }

    /// Bytes written; those of the last segment also count batches that are not published yet.
    pub(crate) fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    pub(crate) fn set_length(&self, length: u64) {
        self.length.store(length, Ordering::Release);
    }

    pub(crate) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn aborted(&self) -> RwLockReadGuard<'_, Vec<AbortedTransaction>> {
        self.aborted.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn aborted_mut(&self) -> RwLockWriteGuard<'_, Vec<AbortedTransaction>> {
        self.aborted.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// More batches may be added.
    pub(crate) fn is_growing(&self) -> bool {
        matches!(&*self.index(), Index::Growing(_))
    }

    /// The position of a batch at or before the one that holds `offset`.
    pub(crate) fn position_near(&self, offset: i64) -> Result<u64, LogError> {
        let offset = match relative(self.base, offset) {
            Some(offset) => offset,
            None if offset < self.base => return Ok(0),
            None => i32::MAX,
        };
        match &*self.index() {
            Index::Growing(index) => Ok(index.position(offset)),
            Index::Sealed(index) => index.position(offset),
        }
    }

    /// The first batch before `limit` (a byte position) whose last offset is `offset` or later.
    pub(crate) fn find(&self, offset: i64, limit: u64) -> Result<Option<Stored>, LogError> {
        let mut walk = self.walk(self.position_near(offset)?, limit, SMALL_WINDOW);
        while let Some(stored) = walk.next_batch()? {
            if stored.last_offset() >= offset {
                return Ok(Some(stored));
            }
        }
        Ok(None)
    }

    pub(crate) fn walk(&self, from: u64, limit: u64, window: usize) -> Walk<'_> {
        Walk::new(&*self.file, &self.names.log, from, limit, window)
    }

    /// The largest timestamp and the last offset of the batch that carries it.
    pub(crate) fn latest(&self) -> Option<(i64, i64)> {
        let latest = match &*self.index() {
            Index::Growing(index) => index.latest(),
            Index::Sealed(index) => index.latest(),
        };
        latest.map(|entry| self.absolute(entry))
    }

    /// Finds anew when a segment began that goes on growing: without timestamps it counts as made when it was last written.
    pub(crate) fn find_age(&self) -> Result<(), LogError> {
        let mut walk = self.walk(0, self.length(), HEADER_LEN);
        if let Step::Batch(first) = walk.step()?
            && let Index::Growing(index) = &mut *self.index_mut()
        {
            index.age_mut().begin(first.header.max_timestamp, self.modified_ms()?);
        }
        Ok(())
    }

    /// When the file was last written, milliseconds since 1970, where that is known.
    pub(crate) fn modified_ms(&self) -> Result<Option<i64>, LogError> {
        self.file.modified_ms().map_err(LogError::io("read the time of the last write", &self.names.log))
    }

    /// An offset at or before the first batch with a timestamp of at least `timestamp`.
    pub(crate) fn offset_near_time(&self, timestamp: i64) -> Result<i64, LogError> {
        let entry = match &*self.index() {
            Index::Growing(index) => index.time(timestamp),
            Index::Sealed(index) => index.time(timestamp)?,
        };
        Ok(entry.map_or(self.base, |entry| self.absolute(entry).1))
    }

    /// Writes the indexes of a segment that is complete, durably.
    pub(crate) fn write_indexes(&self, io: &dyn Io) -> Result<(), LogError> {
        if let Index::Growing(index) = &*self.index() {
            index.write(io, &self.names.offsets, &self.names.times)?;
            crate::aborted::write(io, &self.names.aborted, &self.aborted())?;
        }
        Ok(())
    }

    fn absolute(&self, entry: TimeEntry) -> (i64, i64) {
        (entry.timestamp, self.base.saturating_add(i64::from(entry.offset)))
    }
}

/// Base offsets of the segments in a folder, rising.
pub(crate) fn list(io: &dyn Io, folder: &Path) -> Result<Vec<i64>, LogError> {
    named(io, folder, ".log")
}

/// Offsets of the files in a folder that are named `<20 digits><extension>`, rising.
pub(crate) fn named(io: &dyn Io, folder: &Path, extension: &str) -> Result<Vec<i64>, LogError> {
    Ok(offsets(&io.list(folder).map_err(LogError::io("list", folder))?, extension))
}

/// The same, of names that are known already.
pub(crate) fn offsets(names: &[String], extension: &str) -> Vec<i64> {
    let offset = |name: &String| {
        let digits = name.strip_suffix(extension)?;
        (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| digits.parse().ok())?
    };
    let mut offsets: Vec<i64> = names.iter().filter_map(offset).collect();
    offsets.sort_unstable();
    offsets
}

/// Removes producer snapshots of offsets that the log does not reach any more.
pub(crate) fn remove_snapshots_above(io: &dyn Io, folder: &Path, end: i64) -> Result<(), LogError> {
    for offset in named(io, folder, ".snapshot")?.into_iter().filter(|offset| *offset > end) {
        remove_file(io, &Names::new(folder, offset).producers)?;
    }
    Ok(())
}
