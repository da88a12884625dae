//! Files of sealed segments: opened when they are read, closed when others are.
//!
//! A partition may have thousands of sealed segments with three files each, most of which nobody reads. All logs of a process
//! share [`OPEN_MAX`] open ones; the one opened longest ago gives way.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{File, Io};

/// Open files of sealed segments in all logs of the process.
const OPEN_MAX: usize = 512;

/// Those that are open; oldest first.
static OPEN: Mutex<VecDeque<Arc<dyn File>>> = Mutex::new(VecDeque::new());

/// A file that is only read from now on.
pub(crate) struct Parked {
    io: Arc<dyn Io>,
    path: PathBuf,
    slot: Mutex<Option<Weak<dyn File>>>,
}

impl Parked {
    pub(crate) fn park(io: &Arc<dyn Io>, path: &Path) -> Arc<dyn File> {
        Arc::new(Self { io: Arc::clone(io), path: path.to_owned(), slot: Mutex::new(None) })
    }

    fn file(&self) -> Result<Arc<dyn File>> {
        let mut slot = lock(&self.slot);
        if let Some(file) = slot.as_ref().and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file = self.io.open_read(&self.path)?;
        *slot = Some(Arc::downgrade(&file));
        let mut open = lock(&OPEN);
        open.push_back(Arc::clone(&file));
        let oldest = if open.len() > OPEN_MAX { open.pop_front() } else { None };
        // Closing takes time that nobody else has to wait for.
        drop((open, slot));
        drop(oldest);
        Ok(file)
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        // A file that was removed gives its space back.
        if let Some(file) = lock(&self.slot).take().and_then(|file| file.upgrade()) {
            lock(&OPEN).retain(|other| !Arc::ptr_eq(other, &file));
        }
    }
}

impl File for Parked {
    fn len(&self) -> Result<u64> {
        self.file()?.len()
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        self.file()?.read_at(buffer, position)
    }

    fn write_at(&self, _: &[IoSlice<'_>], _: u64) -> Result<usize> {
        Err(sealed())
    }

    fn set_len(&self, _: u64) -> Result<()> {
        Err(sealed())
    }

    fn sync(&self) -> Result<()> {
        Err(sealed())
    }

    fn modified_ms(&self) -> Result<Option<i64>> {
        self.file()?.modified_ms()
    }
}

fn sealed() -> Error {
    Error::new(ErrorKind::ReadOnlyFilesystem, "the segment is sealed")
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::DiskIo;

    #[test]
    fn few_are_open_and_all_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let io: Arc<dyn Io> = Arc::new(DiskIo);
        let parked: Vec<_> = (0..OPEN_MAX + 10)
            .map(|index| {
                let path = folder.path().join(index.to_string());
                std::fs::write(&path, index.to_string()).unwrap();
                Parked::park(&io, &path)
            })
            .collect();
        for _ in 0..2 {
            for (index, file) in parked.iter().enumerate() {
                let mut bytes = [0; 8];
                let count = file.read_at(&mut bytes, 0).unwrap();
                assert_eq!(bytes.get(..count).unwrap(), index.to_string().as_bytes());
                assert!(lock(&OPEN).len() <= OPEN_MAX);
            }
        }
        assert!(parked.first().unwrap().write_at(&[IoSlice::new(b"x")], 0).is_err());
        drop(parked);
        assert!(lock(&OPEN).is_empty());
    }
}
