//! Where committed offsets lie on the disk: a snapshot, and a journal of what changed since.
//!
//! The snapshot, `group-offsets` in the data folder, is a checked file that names the number of its journal,
//! `group-offsets.<number>.journal`. A journal is a row of records: length (u32), CRC-32C of length and content (u32), and one
//! change as JSON. When it has grown larger than the snapshot, both begin anew under the next number: the empty journal
//! first, then the snapshot that names it, so that a crash leaves one pair or the other. There is no file before the first
//! commit.
//!
//! A start ends the journal at its first record that is not whole, which is what a crash left of records that nobody was
//! told about.

use std::io::{ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use verbatim_batch::{crc32c, crc32c_append};
use verbatim_log::folder::{atomic_replace, read_checked};
use verbatim_log::{File, Io, LogError, read_full, write_all};

use super::offsets::{Change, Offsets};

const SNAPSHOT: &str = "group-offsets";
const KIND: &str = "group-offsets";
const FORMAT: u32 = 1;
/// Bytes before the content of a record.
const HEAD: usize = 8;
/// A journal of so many bytes is never too large.
const SMALL: u64 = 1_048_576;

/// Snapshot and journal of a running host.
pub(crate) struct Journal {
    io: Arc<dyn Io>,
    data: PathBuf,
    /// The journal that is written; none before the first change, or after a failure that leaves unknown what it holds.
    file: Option<Current>,
    /// The number that the next journal gets.
    next: u64,
}

struct Current {
    file: Arc<dyn File>,
    number: u64,
    end: u64,
    /// It is too large at this length.
    large_at: u64,
}

#[derive(Serialize, Deserialize)]
struct Snapshot {
    journal: u64,
    changes: Vec<Change>,
}

impl Journal {
    /// Reads what there is.
    ///
    /// # Errors
    /// A file that cannot be read, is damaged where no crash can have done it, or was written by a newer version.
    pub(crate) fn open(data: &Path, io: Arc<dyn Io>) -> Result<(Self, Offsets), LogError> {
        let path = data.join(SNAPSHOT);
        let mut offsets = Offsets::default();
        let mut journal = Self { io, data: data.to_owned(), file: None, next: 1 };
        let Some((_, content)) = read_checked(journal.io.as_ref(), &path, KIND, FORMAT)? else {
            journal.remove_others(0)?;
            return Ok((journal, offsets));
        };
        let snapshot: Snapshot = serde_json::from_slice(&content).map_err(|error| LogError::Corrupt {
            file: path.clone(),
            position: 0,
            detail: error.to_string(),
        })?;
        snapshot.changes.into_iter().for_each(|change| offsets.apply(change));
        journal.replay(snapshot.journal, u64::try_from(content.len()).unwrap_or(u64::MAX), &mut offsets)?;
        journal.remove_others(snapshot.journal)?;
        Ok((journal, offsets))
    }

    fn replay(&mut self, number: u64, snapshot_bytes: u64, offsets: &mut Offsets) -> Result<(), LogError> {
        let path = self.path(number);
        let file = self.io.open(&path, false).map_err(failed("open", &path))?;
        let length = file.len().map_err(failed("read the length", &path))?;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        let filled = read_full(file.as_ref(), &mut bytes, 0).map_err(failed("read", &path))?;
        bytes.truncate(filled);
        let mut rest = bytes.as_slice();
        while let Some((change, behind)) = record(rest) {
            let change = serde_json::from_slice(change).map_err(|error| LogError::Corrupt {
                file: path.clone(),
                position: length.saturating_sub(wide(rest.len())),
                detail: error.to_string(),
            })?;
            offsets.apply(change);
            rest = behind;
        }
        let end = length.saturating_sub(wide(rest.len()));
        if end < length {
            let cut = length.saturating_sub(end);
            tracing::warn!(cut, end, file = %path.display(), "the end of the offsets' journal is not whole and is cut");
            file.set_len(end).map_err(failed("truncate", &path))?;
            file.sync().map_err(failed("sync", &path))?;
        }
        self.next = number.saturating_add(1);
        self.file = Some(Current { file, number, end, large_at: large_at(snapshot_bytes) });
        Ok(())
    }

    /// Writes changes; kept for certain if `durable`. `offsets` is what was there before them.
    ///
    /// # Errors
    /// None of them counts as kept then.
    pub(crate) fn write(
        &mut self,
        changes: &[&Change],
        offsets: &Offsets,
        durable: bool,
    ) -> Result<(), LogError> {
        if self.file.as_ref().is_none_or(|current| current.end >= current.large_at)
            && let Err(error) = self.begin_anew(offsets)
        {
            // One that is merely large goes on for a while, as long as it is known what it holds.
            let Some(current) = &mut self.file else { return Err(error) };
            tracing::warn!(%error, "the journal of offsets stays larger than it should be");
            current.large_at = current.end.saturating_add(SMALL);
        }
        let Some(current) = &mut self.file else { return Ok(()) };
        let path = self.data.join(journal_name(current.number));
        let mut bytes = Vec::new();
        changes.iter().try_for_each(|change| encode(change, &mut bytes)).map_err(failed("encode", &path))?;
        let written = write_all(current.file.as_ref(), &mut [IoSlice::new(&bytes)], current.end)
            .map_err(failed("write", &path))
            .and_then(|()| if durable { current.file.sync().map_err(failed("sync", &path)) } else { Ok(()) });
        match written {
            Ok(()) => current.end = current.end.saturating_add(wide(bytes.len())),
            // What it holds is not known any more.
            Err(_) => self.file = None,
        }
        written
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// What failed; the next change writes everything anew.
    pub(crate) fn sync(&mut self) -> Result<(), LogError> {
        let Some(current) = &self.file else { return Ok(()) };
        let path = self.path(current.number);
        let synced = current.file.sync().map_err(failed("sync", &path));
        if synced.is_err() {
            self.file = None;
        }
        synced
    }

    /// The next pair of snapshot and journal.
    fn begin_anew(&mut self, offsets: &Offsets) -> Result<(), LogError> {
        let number = self.next;
        // Each attempt has its own: a snapshot that failed half-way may be there after a crash.
        self.next = number.saturating_add(1);
        let path = self.path(number);
        let file = self.io.open(&path, true).map_err(failed("create", &path))?;
        file.set_len(0).map_err(failed("truncate", &path))?;
        file.sync().map_err(failed("sync", &path))?;
        self.io.sync_folder(&self.data).map_err(failed("sync the folder", &self.data))?;
        let before = self.file.take();
        let snapshot = Snapshot { journal: number, changes: offsets.to_changes().collect() };
        let snapshot_path = self.data.join(SNAPSHOT);
        let content = serde_json::to_vec(&snapshot)
            .map_err(|error| failed("encode", &snapshot_path)(std::io::Error::other(error)))?;
        atomic_replace(self.io.as_ref(), &snapshot_path, KIND, FORMAT, &content)?;
        self.file = Some(Current { file, number, end: 0, large_at: large_at(wide(content.len())) });
        if let Some(before) = before
            && let Err(error) = self.io.remove(&self.path(before.number))
        {
            tracing::warn!(%error, "an old journal of offsets is removed at the next start");
        }
        Ok(())
    }

    /// Removes journals that a crash left.
    fn remove_others(&self, number: u64) -> Result<(), LogError> {
        let names = self.io.list(&self.data).map_err(failed("list", &self.data))?;
        let is_journal = |name: &&String| name.starts_with(SNAPSHOT) && name.ends_with(".journal");
        for name in names.iter().filter(is_journal).filter(|name| **name != journal_name(number)) {
            let path = self.data.join(name);
            match self.io.remove(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed.map_err(failed("remove", &path))?,
            }
        }
        Ok(())
    }

    fn path(&self, number: u64) -> PathBuf {
        self.data.join(journal_name(number))
    }
}

fn journal_name(number: u64) -> String {
    format!("{SNAPSHOT}.{number}.journal")
}

fn large_at(snapshot_bytes: u64) -> u64 {
    snapshot_bytes.saturating_mul(2).max(SMALL)
}

/// The first record's content, and what is behind it; none if it is not whole.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<4>()?;
    let (content, behind) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    (crc32c_append(crc32c(length), content) == u32::from_be_bytes(*checksum)).then_some((content, behind))
}

fn encode(change: &Change, out: &mut Vec<u8>) -> std::io::Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    serde_json::to_writer(&mut *out, change)?;
    let length = u32::try_from(out.len().saturating_sub(start).saturating_sub(HEAD));
    let length = length.map_err(std::io::Error::other)?.to_be_bytes();
    let Some(written) = out.get_mut(start..) else { return Ok(()) };
    let Some((head, content)) = written.split_at_mut_checked(HEAD) else { return Ok(()) };
    let checksum = crc32c_append(crc32c(&length), content).to_be_bytes();
    head.iter_mut().zip(length.into_iter().chain(checksum)).for_each(|(byte, value)| *byte = value);
    Ok(())
}

fn failed(what: &'static str, file: &Path) -> impl Fn(std::io::Error) -> LogError {
    let file = file.to_owned();
    move |source| LogError::Io { what, file: file.clone(), source }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
