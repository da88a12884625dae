//! Many logs made durable together: one sync of the file system instead of several for each log.
//!
//! Making, opening or closing a log takes a few files, each synced for itself; for ten thousand partitions that is a
//! minute of waiting for the disk. A [`Together`] stands between such logs and the disk. Until [`Together::finish`] it
//! lets syncs go and keeps back renames, which is how files are replaced: what a crash leaves is the old file or none.
//! Then it syncs the file system, carries out the renames, and syncs again. From then on it passes everything through.
//!
//! It holds for logs that nobody uses yet or any more; what such a log answers before the finish is not durable.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, IoSlice, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{File, Io, Lock, LogError};

/// A file system whose syncs wait for each other; clones are the same one.
#[derive(Clone)]
pub struct Together(Arc<Inner>);

struct Inner {
    io: Arc<dyn Io>,
    waiting: AtomicBool,
    renames: Mutex<Renames>,
}

/// Renames that wait, in their order; each found by both its names, for there may be tens of thousands.
#[derive(Default)]
struct Renames {
    next: u64,
    /// From, to.
    waiting: BTreeMap<u64, (PathBuf, PathBuf)>,
    by_from: HashMap<PathBuf, u64>,
    by_to: HashMap<PathBuf, u64>,
}

impl Renames {
    /// One more, in the place of an earlier one of the same file.
    fn add(&mut self, from: &Path, to: &Path) {
        if let Some((_, earlier)) = self.by_from.get(from).and_then(|number| self.waiting.remove(number)) {
            self.by_to.remove(&earlier);
        }
        self.by_from.insert(from.to_owned(), self.next);
        self.by_to.insert(to.to_owned(), self.next);
        self.waiting.insert(self.next, (from.to_owned(), to.to_owned()));
        self.next = self.next.saturating_add(1);
    }

    /// The file that was to become `to`, which it will not any more.
    fn drop_to(&mut self, to: &Path) -> Option<PathBuf> {
        let number = self.by_to.remove(to)?;
        let (from, _) = self.waiting.remove(&number)?;
        self.by_from.remove(&from);
        Some(from)
    }
}

impl Together {
    /// Stands before `io` until it is finished.
    #[must_use]
    pub fn new(io: Arc<dyn Io>) -> Self {
        let (waiting, renames) = (AtomicBool::new(true), Mutex::default());
        Self(Arc::new(Inner { io, waiting, renames }))
    }

    /// Makes all durable that was done through it, on the file system of `folder`.
    ///
    /// # Errors
    /// What failed. Some files are then the new ones, the others the old ones.
    pub fn finish(&self, folder: &Path) -> std::result::Result<(), LogError> {
        let sync = || self.0.io.sync_all(folder).map_err(LogError::io("sync the file system of", folder));
        sync()?;
        for (from, to) in std::mem::take(&mut *self.renames()).waiting.into_values() {
            self.0.io.rename(&from, &to).map_err(LogError::io("rename", &from))?;
        }
        sync()?;
        self.0.waiting.store(false, Ordering::Release);
        Ok(())
    }

    fn waits(&self) -> bool {
        self.0.waiting.load(Ordering::Acquire)
    }

    fn renames(&self) -> std::sync::MutexGuard<'_, Renames> {
        self.0.renames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(TogetherFile { file, together: self.clone() })
    }
}

impl Io for Together {
    fn open(&self, path: &Path, create: bool) -> Result<Arc<dyn File>> {
        Ok(self.file(self.0.io.open(path, create)?))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.0.io.open_read(path)
    }

    fn lock(&self, path: &Path) -> Result<Lock> {
        self.0.io.lock(path)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>> {
        self.0.io.list(folder)
    }

    fn create_folder(&self, folder: &Path) -> Result<()> {
        if !self.waits() {
            return self.0.io.create_folder(folder);
        }
        match self.0.io.make_folder(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => self.0.io.create_folder(folder),
            made => made,
        }
    }

    fn make_folder(&self, folder: &Path) -> Result<()> {
        self.0.io.make_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        if !self.waits() {
            return self.0.io.rename(from, to);
        }
        self.renames().add(from, to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let waiting = self.renames().drop_to(path);
        if let Some(from) = waiting {
            self.0.io.remove(&from)?;
        }
        self.0.io.remove(path)
    }

    fn remove_folder(&self, folder: &Path) -> Result<()> {
        self.0.io.remove_folder(folder)
    }

    fn sync_folder(&self, folder: &Path) -> Result<()> {
        if self.waits() { Ok(()) } else { self.0.io.sync_folder(folder) }
    }

    fn sync_all(&self, folder: &Path) -> Result<()> {
        self.0.io.sync_all(folder)
    }
}

struct TogetherFile {
    file: Arc<dyn File>,
    together: Together,
}

impl File for TogetherFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        self.file.read_at(buffer, position)
    }

    fn write_at(&self, slices: &[IoSlice<'_>], position: u64) -> Result<usize> {
        self.file.write_at(slices, position)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> Result<()> {
        if self.together.waits() { Ok(()) } else { self.file.sync() }
    }

    fn modified_ms(&self) -> Result<Option<i64>> {
        self.file.modified_ms()
    }
}
