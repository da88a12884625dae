//! What a whole data folder needs: its lock, its format version, and files that are replaced as a whole.
//!
//! A *checked file* is one line, `#verbatim <kind> version=<n> length=<bytes> crc32c=<hex>`, and the content as it is.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use crate::checked::{atomic_replace, read_checked};

use crate::checked::{read_whole, remove_file, replace_file, sync_parent};
use crate::{Io, Lock, LogError};

/// The newest data folder layout that is understood.
pub const FORMAT_VERSION: u32 = 1;

const FORMAT_FILE: &str = "verbatim.format";
const FORMAT_KIND: &str = "data-folder";
/// Kafka's name for the same thing.
const LOCK_FILE: &str = ".lock";

/// A data folder held by this process; dropping it lets go.
pub struct DataFolder {
    path: PathBuf,
    io: Arc<dyn Io>,
    _lock: Lock,
}

impl DataFolder {
    /// Makes the folder if needed, takes its lock, writes or checks its format version.
    ///
    /// # Errors
    /// [`LogError::Locked`] where another process holds it, [`LogError::Newer`] where its layout is newer.
    pub fn open(path: &Path, io: Arc<dyn Io>) -> Result<Self, LogError> {
        io.create_folder(path).map_err(LogError::io("create the folder", path))?;
        let lock = take_lock(&*io, path)?;
        let format = path.join(FORMAT_FILE);
        if read_checked(&*io, &format, FORMAT_KIND, FORMAT_VERSION)?.is_none() {
            atomic_replace(&*io, &format, FORMAT_KIND, FORMAT_VERSION, b"")?;
        }
        Ok(Self { path: path.to_owned(), io, _lock: lock })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `<folder>/<topic>-<partition>`, as Kafka names it.
    #[must_use]
    pub fn partition_path(&self, topic: &str, partition: u32) -> PathBuf {
        self.path.join(format!("{topic}-{partition}"))
    }

    /// Topic and partition of each name that could be a partition's folder, in no order.
    ///
    /// # Errors
    /// The data folder cannot be read.
    pub fn partitions(&self) -> Result<Vec<(String, u32)>, LogError> {
        let names = self.io.list(&self.path).map_err(LogError::io("list", &self.path))?;
        let partition = |name: &String| {
            let (topic, index) = name.rsplit_once('-')?;
            Some((topic.to_owned(), index.parse().ok()?))
        };
        Ok(names.iter().filter_map(partition).collect())
    }
}

/// Replaces a file of any content as a whole, durably: after a crash there is the old one or the new one.
///
/// # Errors
/// What failed; the file is then the old one or the new one.
pub fn replace(io: &dyn Io, path: &Path, bytes: &[u8]) -> Result<(), LogError> {
    replace_file(io, path, bytes, true)
}

/// All bytes of a file; `None` if there is none.
///
/// # Errors
/// It cannot be read.
pub fn read(io: &dyn Io, path: &Path) -> Result<Option<Vec<u8>>, LogError> {
    read_whole(io, path)
}

/// Removes a partition's folder and all in it. The facts go first, so that what a crash leaves is no log any more, and
/// calling again goes on.
///
/// # Errors
/// What failed.
pub fn remove_partition(io: &dyn Io, folder: &Path) -> Result<(), LogError> {
    let names = match io.list(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        names => names.map_err(LogError::io("list", folder))?,
    };
    remove_file(io, &folder.join(crate::facts::FILE))?;
    io.sync_folder(folder).map_err(LogError::io("sync the folder", folder))?;
    for name in names {
        remove_file(io, &folder.join(name))?;
    }
    io.remove_folder(folder).map_err(LogError::io("remove the folder", folder))?;
    sync_parent(io, folder)
}

fn take_lock(io: &dyn Io, folder: &Path) -> Result<Lock, LogError> {
    let path = folder.join(LOCK_FILE);
    io.lock(&path).map_err(|error| {
        if error.kind() != ErrorKind::WouldBlock {
            return LogError::io("lock", &path)(error);
        }
        let text = read_whole(io, &path).ok().flatten().unwrap_or_default();
        let pid = String::from_utf8_lossy(&text).trim().parse().ok();
        LogError::Locked { folder: folder.to_owned(), pid }
    })
}
