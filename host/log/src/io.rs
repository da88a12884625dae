//! The few file operations a log needs, behind traits so that a test can fail, tear or drop the N-th of them.

use std::any::Any;
use std::io::{ErrorKind, IoSlice, Result, Write as _};
use std::path::Path;
use std::sync::Arc;

/// A file system.
pub trait Io: Send + Sync {
    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// `NotFound` if it is not there and `create` is false; else as the operating system says.
    fn open(&self, path: &Path, create: bool) -> Result<Arc<dyn File>>;
    /// Opens a file for reading only.
    ///
    /// # Errors
    /// As the operating system says.
    fn open_read(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Takes the lock of a file, which is made if it is not there and then holds the process's id as text.
    ///
    /// # Errors
    /// `WouldBlock` where somebody holds it; else as the operating system says.
    fn lock(&self, path: &Path) -> Result<Lock>;
    /// Names of the files and folders in a folder, in no order.
    ///
    /// # Errors
    /// As the operating system says.
    fn list(&self, folder: &Path) -> Result<Vec<String>>;
    /// Makes a folder and those above it, and the names of all that were missing durable.
    ///
    /// # Errors
    /// As the operating system says.
    fn create_folder(&self, folder: &Path) -> Result<()>;
    /// Makes a folder, if it is not there, in one that is; nothing is durable yet.
    ///
    /// # Errors
    /// As the operating system says.
    fn make_folder(&self, folder: &Path) -> Result<()>;
    /// Renames a file, replacing what has the new name.
    ///
    /// # Errors
    /// As the operating system says.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// As the operating system says.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Removes an empty folder.
    ///
    /// # Errors
    /// As the operating system says.
    fn remove_folder(&self, folder: &Path) -> Result<()>;
    /// Makes created, renamed and removed names of a folder durable.
    ///
    /// # Errors
    /// As the operating system says.
    fn sync_folder(&self, folder: &Path) -> Result<()>;
    /// Makes everything durable that was done so far to the file system that holds the folder.
    ///
    /// # Errors
    /// As the operating system says.
    fn sync_all(&self, folder: &Path) -> Result<()>;
}

/// A lock, held until it is dropped or the process ends.
pub type Lock = Box<dyn Any + Send + Sync>;

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "a file's length, not a collection's")]
pub trait File: Send + Sync {
    /// Its length in bytes.
    ///
    /// # Errors
    /// As the operating system says.
    fn len(&self) -> Result<u64>;
    /// Reads at most `buffer.len()` bytes at `position`; 0 at the end.
    ///
    /// # Errors
    /// As the operating system says.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize>;
    /// Writes the slices one after the other at `position`, in one operation; how many bytes were written.
    ///
    /// # Errors
    /// As the operating system says.
    fn write_at(&self, slices: &[IoSlice<'_>], position: u64) -> Result<usize>;
    /// Cuts or extends the file.
    ///
    /// # Errors
    /// As the operating system says.
    fn set_len(&self, length: u64) -> Result<()>;
    /// Makes its bytes and length durable.
    ///
    /// # Errors
    /// As the operating system says.
    fn sync(&self) -> Result<()>;
    /// When it was last written, milliseconds since 1970; `None` where that is not known.
    ///
    /// # Errors
    /// As the operating system says.
    fn modified_ms(&self) -> Result<Option<i64>> {
        Ok(None)
    }
}

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskIo;

struct DiskFile(std::fs::File);

impl Io for DiskIo {
    fn open(&self, path: &Path, create: bool) -> Result<Arc<dyn File>> {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create(create);
        Ok(Arc::new(DiskFile(options.open(path)?)))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn File>> {
        Ok(Arc::new(DiskFile(std::fs::File::open(path)?)))
    }

    fn lock(&self, path: &Path) -> Result<Lock> {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        // For people, who look for who holds it: a full disk is no reason not to start.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        // The lock is the open file's.
        Ok(Box::new(file))
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create_folder(&self, folder: &Path) -> Result<()> {
        let missing = folder.ancestors().take_while(|folder| !folder.exists()).count().max(1);
        std::fs::create_dir_all(folder)?;
        folder.ancestors().skip(1).take(missing).try_for_each(|parent| self.sync_folder(parent))
    }

    fn make_folder(&self, folder: &Path) -> Result<()> {
        match std::fs::create_dir(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            made => made,
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_folder(&self, folder: &Path) -> Result<()> {
        std::fs::remove_dir(folder)
    }

    fn sync_folder(&self, folder: &Path) -> Result<()> {
        // A relative folder of one part has the empty path as its parent.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        rustix::fs::fsync(std::fs::File::open(folder)?)?;
        Ok(())
    }

    fn sync_all(&self, folder: &Path) -> Result<()> {
        rustix::fs::syncfs(std::fs::File::open(folder)?)?;
        Ok(())
    }
}

impl File for DiskFile {
    fn len(&self) -> Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, buffer, position)
    }

    fn write_at(&self, slices: &[IoSlice<'_>], position: u64) -> Result<usize> {
        Ok(rustix::io::pwritev(&self.0, slices, position)?)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> Result<()> {
        Ok(rustix::fs::fdatasync(&self.0)?)
    }

    fn modified_ms(&self) -> Result<Option<i64>> {
        let since = self.0.metadata()?.modified()?.duration_since(std::time::UNIX_EPOCH);
        Ok(since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()))
    }
}

/// The most slices that one vectored write may take on any supported system (IOV_MAX).
const SLICES_MAX: usize = 1024;

/// Writes all slices from `position` on: one operation as long as the system takes them whole.
///
/// # Errors
/// As the operating system says; part of them may be written then.
pub fn write_all(file: &dyn File, slices: &mut [IoSlice<'_>], mut position: u64) -> Result<()> {
    let mut left = slices;
    while !left.is_empty() {
        let group = left.get(..left.len().min(SLICES_MAX)).unwrap_or_default();
        let mut written = match file.write_at(group, position) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            written => written?,
        };
        if written == 0 && group.iter().any(|slice| !slice.is_empty()) {
            return Err(ErrorKind::WriteZero.into());
        }
        position = position.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        // A group of empty slices alone has to go as well, or the loop would not end.
        if written == 0 {
            let skip = group.len();
            left = left.get_mut(skip..).unwrap_or_default();
            continue;
        }
        written = written.min(left.iter().map(|slice| slice.len()).sum());
        IoSlice::advance_slices(&mut left, written);
    }
    Ok(())
}

/// Fills the buffer from `position` on, or says how many bytes there were.
///
/// # Errors
/// As the operating system says.
pub fn read_full(file: &dyn File, buffer: &mut [u8], position: u64) -> Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let at = position.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
        match file.read_at(rest, at) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) => break,
            Ok(count) => filled = filled.saturating_add(count),
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
