//! Listing the batches of a partition folder, read-only and without its lock.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use verbatim_batch::{HEADER_LEN, Header};

use crate::segment::{self, Names};
use crate::walk::{LARGE_WINDOW, Step, Stored, Walk};
use crate::{File, Io, LogError};

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
    /// Everything after the header, as stored.
    pub payload: Vec<u8>,
}

/// Walks the batches of all segments in offset order; after an error the walk goes on with the next segment. A log that
/// is being written shows what it had when its last segment was reached; a cut in between may show as an error.
pub struct Dump {
    folder: PathBuf,
    io: Arc<dyn Io>,
    bases: VecDeque<i64>,
    current: Option<Current>,
}

struct Current {
    file: Arc<dyn File>,
    path: PathBuf,
    at: u64,
    limit: u64,
}

impl Dump {
    /// A walk over a partition folder.
    ///
    /// # Errors
    /// The folder cannot be listed or holds no segment.
    pub fn open(folder: &Path, io: Arc<dyn Io>) -> Result<Self, LogError> {
        let bases = VecDeque::from(segment::list(&*io, folder)?);
        if bases.is_empty() {
            let detail = "folder holds no segment file".to_owned();
            return Err(LogError::Folder { folder: folder.to_owned(), detail });
        }
        Ok(Self { folder: folder.to_owned(), io, bases, current: None })
    }

    fn step(&mut self) -> Result<Option<DumpedBatch>, LogError> {
        loop {
            let Some(current) = &mut self.current else {
                let Some(base) = self.bases.pop_front() else { return Ok(None) };
                self.current = Some(Current::open(&*self.io, Names::new(&self.folder, base).log)?);
                continue;
            };
            match current.step()? {
                Some(batch) => return Ok(Some(batch)),
                None => self.current = None,
            }
        }
    }
}

impl Iterator for Dump {
    type Item = Result<DumpedBatch, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.current = None;
        }
        step.transpose()
    }
}

impl Current {
    fn open(io: &dyn Io, path: PathBuf) -> Result<Self, LogError> {
        let file = io.open_read(&path).map_err(LogError::io("open", &path))?;
        let limit = file.len().map_err(LogError::io("read the length", &path))?;
        Ok(Self { file, path, at: 0, limit })
    }

    fn step(&mut self) -> Result<Option<DumpedBatch>, LogError> {
        let mut walk = Walk::new(&*self.file, &self.path, self.at, self.limit, LARGE_WINDOW.min(1 << 16));
        match walk.step()? {
            Step::End => Ok(None),
            Step::Bad(detail) => Err(LogError::corrupt(&self.path, self.at, detail)),
            Step::Batch(stored) => {
                let crc_ok = walk.crc_ok(&stored)?;
                let payload = walk.bytes(&stored)?.get(HEADER_LEN..).unwrap_or_default().to_vec();
                self.at = stored.end();
                let Stored { position, length, header } = stored;
                Ok(Some(DumpedBatch { file: self.path.clone(), position, length, header, crc_ok, payload }))
            }
        }
    }
}
