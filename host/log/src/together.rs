//! Many logs made durable together: one sync of the file system instead of several for each log.
//!
//! Making, opening or closing a log takes a few files, each synced for itself; for ten thousand partitions that is a
//! minute of waiting for the disk. A [`Together`] stands between such logs and the disk. Until [`Together::finish`] it
//! lets syncs go and keeps back renames, which is how files are replaced: what a crash leaves is the old file or none.
//! Then it syncs the file system, carries out the renames, and syncs again. From then on it passes everything through.
//!
//! It holds for logs that nobody uses yet or any more; what such a log answers before the finish is not durable.

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
    /// From, to; in their order, each pair once.
    renames: Mutex<Vec<(PathBuf, PathBuf)>>,
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
        for (from, to) in std::mem::take(&mut *self.renames()) {
            self.0.io.rename(&from, &to).map_err(LogError::io("rename", &from))?;
        }
        sync()?;
        self.0.waiting.store(false, Ordering::Release);
        Ok(())
    }

    fn waits(&self) -> bool {
        self.0.waiting.load(Ordering::Acquire)
    }

    fn renames(&self) -> std::sync::MutexGuard<'_, Vec<(PathBuf, PathBuf)>> {
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
        let mut renames = self.renames();
        renames.retain(|(earlier, _)| earlier != from);
        renames.push((from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut renames = self.renames();
        if let Some(index) = renames.iter().position(|(_, to)| to == path) {
            let (from, _) = renames.remove(index);
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
