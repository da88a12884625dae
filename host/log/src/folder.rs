//! What a whole data folder needs: its lock, its format version, and files that are replaced as a whole.
//!
//! A *checked file* is one line, `#verbatim <kind> version=<n> length=<bytes> crc32c=<hex>`, and the content as it is.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

pub use crate::checked::{atomic_replace, read_checked};

use crate::checked::{remove_file, sync_parent};
use crate::{Io, LogError};

/// The newest data folder layout that is understood.
pub const FORMAT_VERSION: u32 = 1;

const FORMAT_FILE: &str = "verbatim.format";
const FORMAT_KIND: &str = "data-folder";
/// Kafka's name for the same thing.
const LOCK_FILE: &str = ".lock";

/// A data folder held by this process; dropping it lets go.
pub struct DataFolder {
    path: PathBuf,
    /// The lock is the open file's.
    _lock: std::fs::File,
}

impl DataFolder {
    /// Makes the folder if needed, takes its lock, writes or checks its format version.
    ///
    /// # Errors
    /// [`LogError::Locked`] where another process holds it, [`LogError::Newer`] where its layout is newer.
    pub fn open(path: &Path, io: Arc<dyn Io>) -> Result<Self, LogError> {
        io.create_folder(path).map_err(LogError::io("create the folder", path))?;
        let lock = take_lock(path)?;
        let format = path.join(FORMAT_FILE);
        if read_checked(&*io, &format, FORMAT_KIND, FORMAT_VERSION)?.is_none() {
            atomic_replace(&*io, &format, FORMAT_KIND, FORMAT_VERSION, b"")?;
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
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
}

/// Removes a partition's folder and all in it. The facts go first, so that what a crash leaves is no log any more, and
/// calling again goes on.
///
/// # Errors
/// What failed.
pub fn remove_partition(io: &dyn Io, folder: &Path) -> Result<(), LogError> {
    let names = match io.list(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
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

fn take_lock(folder: &Path) -> Result<std::fs::File, LogError> {
    let path = folder.join(LOCK_FILE);
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&path).map_err(LogError::io("open", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut text = String::new();
            let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            Err(LogError::Locked { folder: folder.to_owned(), pid })
        }
        locked => {
            locked.map_err(|error| LogError::io("lock", &path)(error.into()))?;
            let write = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
            write.map_err(LogError::io("write", &path))?;
            Ok(file)
        }
    }
}
