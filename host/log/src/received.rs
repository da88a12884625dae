//! Digests of received batches, where other records may be stored than came: a file beside each segment with one entry a
//! batch, in the same order.
//!
//! An entry is written before its batch, and both are synced before the batch counts. So a crash leaves entries that have no
//! batch, which a start drops, or batches that have no entry and were never acknowledged, which it cuts. What no crash can
//! leave is damage, as in the batches themselves. Only batches that reach beyond the start are in need of an entry.

use std::io::{ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use verbatim_batch::crc32c;

use crate::checked::remove_file;
use crate::index::{entry, partition_point};
use crate::io::{read_full, write_all};
use crate::parked::Parked;
use crate::scan::reads_as_lost;
use crate::segment::named;
use crate::walk::{Stored, Walk};
use crate::{File, Io, LogError};

const EXTENSION: &str = "received";
const ENTRY_LEN: usize = 48;
const ENTRY_BYTES: u64 = 48;
/// Entries read at once where all are.
const WINDOW_LEN: usize = 1024 * ENTRY_LEN;

/// What was received for a stored batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// SHA-256 of the batch as it came. It stands first: whatever part of an entry a sector holds, it is not zeros, as which
    /// lost writes read.
    pub(crate) digest: [u8; 32],
    pub(crate) base_offset: i64,
    /// The checksum that the stored batch carries: the entry is of this one and of none that lay there before.
    pub(crate) batch_crc: u32,
}

/// A segment's file of entries.
pub(crate) struct Received {
    path: PathBuf,
    file: Arc<dyn File>,
    /// Bytes of entries; as many as there are batches.
    length: AtomicU64,
}

/// How far batches have entries.
pub(crate) struct Checked {
    /// Bytes of the entries of these batches.
    pub(crate) length: u64,
    /// The first batch without one, which a crash explains.
    pub(crate) lacking: Option<Lacking>,
}

/// A batch that has no sound entry.
pub(crate) struct Lacking {
    /// Where it begins in the segment.
    pub(crate) position: u64,
    pub(crate) detail: String,
}

impl Entry {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ENTRY_LEN);
        bytes.extend(self.digest);
        bytes.extend(self.base_offset.to_be_bytes());
        bytes.extend(self.batch_crc.to_be_bytes());
        bytes.extend(crc32c(&bytes).to_be_bytes());
        bytes
    }

    /// `None` where the entry is damaged.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (fields, crc) = bytes.split_last_chunk()?;
        if crc32c(fields) != u32::from_be_bytes(*crc) {
            return None;
        }
        let (digest, rest) = fields.split_first_chunk()?;
        let (base_offset, rest) = rest.split_first_chunk()?;
        let (base_offset, batch_crc) = (i64::from_be_bytes(*base_offset), *rest.first_chunk()?);
        Some(Self { digest: *digest, base_offset, batch_crc: u32::from_be_bytes(batch_crc) })
    }

    fn is_of(&self, stored: &Stored) -> bool {
        (self.base_offset, self.batch_crc) == (stored.header.base_offset, stored.header.crc)
    }
}

impl Received {
    /// A new, empty file; its name is not durable yet.
    pub(crate) fn create(io: &dyn Io, log: &Path) -> Result<Self, LogError> {
        remove(io, log)?;
        let path = path(log);
        let file = io.open(&path, true).map_err(LogError::io("create", &path))?;
        Ok(Self { path, file, length: AtomicU64::new(0) })
    }

    /// That of a segment to which more is added; `None` where it is missing.
    pub(crate) fn open(io: &dyn Io, log: &Path) -> Result<Option<Self>, LogError> {
        let path = path(log);
        match io.open(&path, false) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            file => Self::new(path.clone(), file.map_err(LogError::io("open", &path))?).map(Some),
        }
    }

    /// That of a segment to which nothing is added; `None` where it is missing.
    pub(crate) fn open_parked(io: &Arc<dyn Io>, log: &Path) -> Result<Option<Self>, LogError> {
        let path = path(log);
        let file = Parked::park(io, &path);
        match file.len() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LogError::io("read the length", &path)(error)),
            Ok(length) => Ok(Some(Self { path, file, length: AtomicU64::new(length) })),
        }
    }

    /// The same, to which nothing is added any more.
    pub(crate) fn parked(&self, io: &Arc<dyn Io>) -> Self {
        let (path, file) = (self.path.clone(), Parked::park(io, &self.path));
        Self { path, file, length: AtomicU64::new(self.length()) }
    }

    fn new(path: PathBuf, file: Arc<dyn File>) -> Result<Self, LogError> {
        let length = file.len().map_err(LogError::io("read the length", &path))?;
        Ok(Self { path, file, length: AtomicU64::new(length) })
    }

    /// Bytes of entries.
    pub(crate) fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// Bytes of the file, those of a write that failed included.
    pub(crate) fn stored(&self) -> Result<u64, LogError> {
        self.file.len().map_err(LogError::io("read the length", &self.path))
    }

    /// Adds entries; they are durable after [`Self::sync`].
    pub(crate) fn append(&self, entries: impl Iterator<Item = Entry>) -> Result<(), LogError> {
        let bytes: Vec<u8> = entries.flat_map(Entry::to_bytes).collect();
        let length = self.length();
        write_all(&*self.file, &mut [IoSlice::new(&bytes)], length)
            .map_err(LogError::io("write", &self.path))?;
        let added = u64::try_from(bytes.len()).unwrap_or(0);
        self.length.store(length.saturating_add(added), Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<(), LogError> {
        self.file.sync().map_err(LogError::io("sync", &self.path))
    }

    /// Leaves so many bytes of entries, durably.
    pub(crate) fn cut(&self, length: u64) -> Result<(), LogError> {
        self.file.set_len(length).map_err(LogError::io("truncate", &self.path))?;
        self.length.store(length, Ordering::Relaxed);
        self.sync()
    }

    /// Leaves the entries of batches that begin below an offset, durably. Those above may read as lost where a crash came
    /// while this was done before.
    pub(crate) fn cut_to(&self, offset: i64) -> Result<(), LogError> {
        let count = self.length() / ENTRY_BYTES;
        let kept = partition_point(count, |index| match self.entry(index) {
            Err(LogError::Corrupt { position, .. }) if self.is_lost(position)? => Ok(false),
            entry => Ok(entry?.base_offset < offset),
        })?;
        self.cut(kept.saturating_mul(ENTRY_BYTES))
    }

    /// The first entry of a batch that begins at `offset` or later.
    pub(crate) fn first_from(&self, offset: i64) -> Result<u64, LogError> {
        partition_point(self.length() / ENTRY_BYTES, |index| Ok(self.entry(index)?.base_offset < offset))
    }

    /// What was received for a stored batch.
    pub(crate) fn digest(&self, stored: &Stored) -> Result<[u8; 32], LogError> {
        let index = self.first_from(stored.header.base_offset)?;
        if index >= self.length() / ENTRY_BYTES {
            return Err(self.corrupt(self.length(), missing(stored)));
        }
        let entry = self.entry(index)?;
        if entry.is_of(stored) {
            Ok(entry.digest)
        } else {
            Err(self.corrupt(index.saturating_mul(ENTRY_BYTES), foreign(stored, &entry)))
        }
    }

    /// Whether the file ends with an entry, that of the last batch where it is known: no crash leaves anything else of a
    /// segment that is sealed or was closed.
    pub(crate) fn check_end(&self, last: Option<&Stored>) -> Result<(), LogError> {
        let (count, length) = (self.length() / ENTRY_BYTES, self.length());
        if !length.is_multiple_of(ENTRY_BYTES) {
            return Err(self.corrupt(count.saturating_mul(ENTRY_BYTES), "an entry is cut off"));
        }
        let Some(index) = count.checked_sub(1) else {
            return Err(self.corrupt(0, "the digests of received batches are missing"));
        };
        let entry = self.entry(index)?;
        match last.filter(|last| !entry.is_of(last)) {
            Some(last) => Err(self.corrupt(index.saturating_mul(ENTRY_BYTES), foreign(last, &entry))),
            None => Ok(()),
        }
    }

    /// Compares the entries with the batches of a walk from the segment's first one.
    ///
    /// # Errors
    /// Damage that no crash explains: an entry of another batch, or an unsound one that sound ones follow.
    pub(crate) fn check(&self, walk: &mut Walk<'_>) -> Result<Checked, LogError> {
        let mut entries = Entries::from(self, 0);
        while let Some(stored) = walk.next_batch()? {
            let at = entries.at;
            let found = entries.next()?;
            let Some(entry) = found.and_then(Entry::read) else {
                let detail = if found.is_some() { damaged(&stored) } else { missing(&stored) };
                if found.is_some() && !self.is_torn(at)? {
                    return Err(self.corrupt(at, format!("{detail}, and sound entries follow")));
                }
                let lacking = Some(Lacking { position: stored.position, detail });
                return Ok(Checked { length: at, lacking });
            };
            if !entry.is_of(&stored) {
                return Err(self.corrupt(at, foreign(&stored, &entry)));
            }
        }
        Ok(Checked { length: entries.at, lacking: None })
    }

    /// The same of a segment that no crash can have torn.
    ///
    /// # Errors
    /// Any damage, a lacking entry included.
    pub(crate) fn check_all(&self, walk: &mut Walk<'_>) -> Result<(), LogError> {
        let Checked { length, lacking } = self.check(walk)?;
        lacking.map_or(Ok(()), |lacking| Err(self.corrupt(length, lacking.detail)))
    }

    /// Whether a crash explains an unsound entry: writes in it were lost, or nothing sound follows.
    fn is_torn(&self, at: u64) -> Result<bool, LogError> {
        if self.is_lost(at)? {
            return Ok(true);
        }
        let mut entries = Entries::from(self, at.saturating_add(ENTRY_BYTES));
        while let Some(bytes) = entries.next()? {
            if Entry::read(bytes).is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_lost(&self, at: u64) -> Result<bool, LogError> {
        let end = at.saturating_add(ENTRY_BYTES);
        reads_as_lost(&*self.file, &self.path, at, end, self.length())
    }

    fn entry(&self, index: u64) -> Result<Entry, LogError> {
        let bytes: [u8; ENTRY_LEN] = entry(&*self.file, &self.path, index)?;
        let position = index.saturating_mul(ENTRY_BYTES);
        Entry::read(&bytes).ok_or_else(|| self.corrupt(position, "an entry's checksum is wrong"))
    }

    fn corrupt(&self, position: u64, detail: impl Into<String>) -> LogError {
        LogError::corrupt(&self.path, position, detail)
    }
}

/// One entry after the other.
struct Entries<'a> {
    received: &'a Received,
    at: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> Entries<'a> {
    fn from(received: &'a Received, at: u64) -> Self {
        Self { received, at, window: Vec::new(), window_at: at }
    }

    /// The next one, sound or not; `None` where no whole one is left.
    fn next(&mut self) -> Result<Option<&[u8]>, LogError> {
        let Received { path, file, .. } = self.received;
        let window_end = self.window_at.saturating_add(u64::try_from(self.window.len()).unwrap_or(0));
        if self.at >= window_end {
            self.window.resize(WINDOW_LEN, 0);
            let filled = read_full(&**file, &mut self.window, self.at).map_err(LogError::io("read", path))?;
            self.window.truncate(filled);
            self.window_at = self.at;
        }
        let skip = usize::try_from(self.at.saturating_sub(self.window_at)).unwrap_or(usize::MAX);
        let entry = self.window.get(skip..skip.saturating_add(ENTRY_LEN));
        if entry.is_some() {
            self.at = self.at.saturating_add(ENTRY_BYTES);
        }
        Ok(entry)
    }
}

/// The file beside a segment's.
pub(crate) fn path(log: &Path) -> PathBuf {
    log.with_extension(EXTENSION)
}

/// Removes the file beside a segment's.
pub(crate) fn remove(io: &dyn Io, log: &Path) -> Result<(), LogError> {
    remove_file(io, &path(log))
}

/// Removes all files of a folder but those of the segments that begin at these rising offsets.
pub(crate) fn remove_others(io: &dyn Io, folder: &Path, bases: &[i64]) -> Result<(), LogError> {
    let others =
        named(io, folder, ".received")?.into_iter().filter(|base| bases.binary_search(base).is_err());
    others
        .map(|base| folder.join(format!("{base:020}.{EXTENSION}")))
        .try_for_each(|path| remove_file(io, &path))
}

fn missing(stored: &Stored) -> String {
    format!("a batch has no digest of what was received, baseOffset=`{}`", stored.header.base_offset)
}

fn damaged(stored: &Stored) -> String {
    format!("the digest of a received batch is damaged, baseOffset=`{}`", stored.header.base_offset)
}

fn foreign(stored: &Stored, entry: &Entry) -> String {
    let (expected, found) = (&stored.header, entry);
    format!(
        "a digest is of another batch, expected baseOffset {} and crc {}, baseOffset=`{}`, crc=`{}`",
        expected.base_offset, expected.crc, found.base_offset, found.batch_crc
    )
}
