//! What a whole data folder needs: its lock, its format version, and files that are replaced as a whole.
//!
//! A *checked file* is one line, `#verbatim <kind> version=<n> length=<bytes> crc32c=<hex>`, and the content as it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Io, LogError};

/// The newest data folder layout that is understood.
pub const FORMAT_VERSION: u32 = 1;

/// A data folder held by this process; dropping it lets go.
pub struct DataFolder {}

impl DataFolder {
    /// Makes the folder if needed, takes its lock, writes or checks its format version.
    ///
    /// # Errors
    /// [`LogError::Locked`] where another process holds it, [`LogError::Newer`] where its layout is newer.
    pub fn open(path: &Path, io: Arc<dyn Io>) -> Result<Self, LogError> {
        let _ = (path, io);
        todo!()
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        todo!()
    }

    /// `<folder>/<topic>-<partition>`, as Kafka names it.
    #[must_use]
    pub fn partition_path(&self, topic: &str, partition: u32) -> PathBuf {
        let _ = (topic, partition);
        todo!()
    }
}

/// Replaces a checked file as a whole: after a crash there is the old one or the new one.
///
/// # Errors
/// What failed; the file is then the old one or the new one.
pub fn atomic_replace(
    io: &dyn Io,
    path: &Path,
    kind: &str,
    version: u32,
    content: &[u8],
) -> Result<(), LogError> {
    let _ = (io, path, kind, version, content);
    todo!()
}

/// Version and content of a checked file; `None` if there is none.
///
/// # Errors
/// [`LogError::Corrupt`] where line, kind, length or checksum are wrong, [`LogError::Newer`] above `newest`.
pub fn read_checked(
    io: &dyn Io,
    path: &Path,
    kind: &str,
    newest: u32,
) -> Result<Option<(u32, Vec<u8>)>, LogError> {
    let _ = (io, path, kind, newest);
    todo!()
}

/// Removes a partition's folder and all in it, so that no crash leaves a half that looks like a log.
///
/// # Errors
/// What failed; calling again goes on.
pub fn remove_partition(io: &dyn Io, folder: &Path) -> Result<(), LogError> {
    let _ = (io, folder);
    todo!()
}
