//! Where committed offsets lie on the disk: a snapshot, and a journal of what changed since.
//!
//! The snapshot, `group-offsets` in the data folder, is a checked file that names the number of its journal,
//! `group-offsets.<number>.journal`, a row of changes. When it has grown larger than the snapshot, both begin anew under the
//! next number: the empty journal first, then the snapshot that names it, so that a crash leaves one pair or the other. There
//! is no file before the first commit.
//!
//! What is not whole at the end of a journal is what a crash left of records that nobody was told about: a start cuts it off.
//! Records that are not whole before others are damage. They are told as errors, the others are used, both files begin anew,
//! and the damaged journal stays as `group-offsets.<number>.journal.damaged`, which nothing reads or removes.

mod records;

use std::io::{ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use verbatim_log::folder::{atomic_replace, read_checked};
use verbatim_log::{File, Io, LogError, read_full, write_all};

use self::records::{Part, encode, parts};
use super::offsets::{Change, Offsets};

const SNAPSHOT: &str = "group-offsets";
const KIND: &str = "group-offsets";
const FORMAT: u32 = 1;
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
        let bytes = journal.take_up(snapshot.journal, wide(content.len()))?;
        if journal.replay(&bytes, &mut offsets)? {
            journal.set_aside(snapshot.journal, &bytes)?;
            journal.begin_anew(&offsets)?;
        }
        let number = journal.file.as_ref().map_or(0, |current| current.number);
        journal.remove_others(number)?;
        Ok((journal, offsets))
    }

    /// Goes on with this journal; what is in it.
    fn take_up(&mut self, number: u64, snapshot_bytes: u64) -> Result<Vec<u8>, LogError> {
        let path = self.path(number);
        let file = self.io.open(&path, false).map_err(failed("open", &path))?;
        let length = file.len().map_err(failed("read the length", &path))?;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        let filled = read_full(file.as_ref(), &mut bytes, 0).map_err(failed("read", &path))?;
        bytes.truncate(filled);
        self.next = number.saturating_add(1);
        self.file = Some(Current { file, number, end: wide(filled), large_at: large_at(snapshot_bytes) });
        Ok(bytes)
    }

    /// Makes its changes, and cuts off what is not whole at its end; true if it is damaged before.
    fn replay(&mut self, bytes: &[u8], offsets: &mut Offsets) -> Result<bool, LogError> {
        let Some(current) = &mut self.file else { return Ok(false) };
        let path = self.data.join(journal_name(current.number));
        let mut is_damaged = false;
        for part in parts(bytes) {
            match part {
                Part::Whole(at, change) => {
                    offsets.apply(serde_json::from_slice(change).map_err(|error| LogError::Corrupt {
                        file: path.clone(),
                        position: wide(at),
                        detail: error.to_string(),
                    })?);
                }
                Part::Damaged(position, skipped) => {
                    is_damaged = true;
                    tracing::error!(
                        position,
                        skipped,
                        file = %path.display(),
                        "the journal of committed offsets is damaged: these bytes are skipped, commits in them are lost"
                    );
                }
                Part::Torn(end) => {
                    let cut = bytes.len().saturating_sub(end);
                    tracing::warn!(cut, end, file = %path.display(), "the end of the offsets' journal is not whole and is cut");
                    current.end = wide(end);
                    current.file.set_len(current.end).map_err(failed("truncate", &path))?;
                    current.file.sync().map_err(failed("sync", &path))?;
                }
            }
        }
        Ok(is_damaged)
    }

    /// Keeps a damaged journal for whoever wants to look into it.
    fn set_aside(&self, number: u64, bytes: &[u8]) -> Result<(), LogError> {
        let path = self.data.join(format!("{}.damaged", journal_name(number)));
        let file = self.io.open(&path, true).map_err(failed("create", &path))?;
        file.set_len(0).map_err(failed("truncate", &path))?;
        write_all(file.as_ref(), &mut [IoSlice::new(bytes)], 0).map_err(failed("write", &path))?;
        file.sync().map_err(failed("sync", &path))?;
        self.io.sync_folder(&self.data).map_err(failed("sync the folder", &self.data))?;
        tracing::error!(file = %path.display(), "the damaged journal is kept here; compare offsets with where readers are");
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

fn failed(what: &'static str, file: &Path) -> impl Fn(std::io::Error) -> LogError {
    let file = file.to_owned();
    move |source| LogError::Io { what, file: file.clone(), source }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
