//! Listing the batches of a partition folder, read-only and without its lock.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use verbatim_batch::Header;

use crate::{Io, LogError};

/// One stored batch.
#[derive(Clone, Debug)]
pub struct DumpedBatch {
    /// The segment file.
    pub file: PathBuf,
    /// Byte position in it.
    pub position: u64,
    /// Whole length in bytes.
    pub length: u64,
    /// Its header.
    pub header: Header,
    /// The stored checksum is that of the bytes.
    pub crc_ok: bool,
}

/// Walks the batches of all segments in offset order; after an error the walk goes on with the next segment.
pub struct Dump {}

impl Dump {
    /// A walk over a partition folder.
    ///
    /// # Errors
    /// The folder cannot be listed or holds no segment.
    pub fn open(folder: &Path, io: Arc<dyn Io>) -> Result<Self, LogError> {
        let _ = (folder, io);
        todo!()
    }
}

impl Iterator for Dump {
    type Item = Result<DumpedBatch, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
