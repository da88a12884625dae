//! Walking over the batches of a segment file.

use std::path::Path;

use verbatim_batch::{HEADER_LEN, Header, compute_crc};

use crate::io::read_full;
use crate::{File, LogError};

/// Bytes read at once where headers are looked at here and there.
pub(crate) const SMALL_WINDOW: usize = 4096;
/// Bytes read at once where everything is read.
pub(crate) const LARGE_WINDOW: usize = 1 << 20;

/// A batch as it lies in a segment file; its checksum is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Where it begins.
    pub(crate) position: u64,
    /// Whole length.
    pub(crate) length: u64,
    pub(crate) header: Header,
}

impl Stored {
    /// The offset after it; headers whose offsets overflow are not stored.
    pub(crate) fn next_offset(&self) -> i64 {
        self.header.next_offset().unwrap_or(i64::MAX)
    }

    /// Its last offset.
    pub(crate) fn last_offset(&self) -> i64 {
        self.header.last_offset().unwrap_or(i64::MAX)
    }

    /// Where the next one begins.
    pub(crate) fn end(&self) -> u64 {
        self.position.saturating_add(self.length)
    }
}

/// What is found at the walk's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A whole batch with a sound header.
    Batch(Stored),
    /// The limit.
    End,
    /// Neither; the walk stays where it is.
    Bad(String),
}

/// A walk from a batch's first byte up to a limit.
pub(crate) struct Walk<'a> {
    file: &'a dyn File,
    path: &'a Path,
    at: u64,
    limit: u64,
    window: Vec<u8>,
    window_at: u64,
    window_size: usize,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(file: &'a dyn File, path: &'a Path, at: u64, limit: u64, window_size: usize) -> Self {
        Self { file, path, at, limit, window: Vec::new(), window_at: 0, window_size }
    }

    /// Where the next step looks.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Looks at the next batch and passes it.
    pub(crate) fn step(&mut self) -> Result<Step, LogError> {
        let step = self.look()?;
        if let Step::Batch(stored) = &step {
            self.at = stored.end();
        }
        Ok(step)
    }

    /// [`Self::step`] where anything but a batch or the end is damage.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Stored>, LogError> {
        match self.step()? {
            Step::Batch(stored) => Ok(Some(stored)),
            Step::End => Ok(None),
            Step::Bad(detail) => Err(LogError::corrupt(self.path, self.at, detail)),
        }
    }

    /// All bytes of a batch.
    pub(crate) fn bytes(&mut self, stored: &Stored) -> Result<&[u8], LogError> {
        let length = usize::try_from(stored.length).unwrap_or(usize::MAX);
        self.fill(stored.position, length)
    }

    /// Whether a batch carries the right checksum.
    pub(crate) fn crc_ok(&mut self, stored: &Stored) -> Result<bool, LogError> {
        let crc = stored.header.crc;
        Ok(compute_crc(self.bytes(stored)?) == Some(crc))
    }

    fn look(&mut self) -> Result<Step, LogError> {
        let (at, left) = (self.at, self.limit.saturating_sub(self.at));
        if left == 0 {
            return Ok(Step::End);
        }
        let Some(header) = Header::read(self.fill(at, HEADER_LEN)?) else {
            return Ok(Step::Bad(format!("{left} bytes are no whole batch header")));
        };
        let Some(length) = header.total_len().filter(|length| *length >= HEADER_LEN) else {
            return Ok(Step::Bad(format!(
                "a batch length is too small, batchLength=`{}`",
                header.batch_length
            )));
        };
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        if header.magic != 2 {
            return Ok(Step::Bad(format!("a batch is not of format 2, magic=`{}`", header.magic)));
        }
        if header.base_offset < 0 || header.next_offset().is_none() {
            let (base, delta) = (header.base_offset, header.last_offset_delta);
            return Ok(Step::Bad(format!(
                "a batch's offsets overflow, baseOffset=`{base}`, lastOffsetDelta=`{delta}`"
            )));
        }
        if length > left {
            return Ok(Step::Bad(format!(
                "a batch of {length} bytes does not fit into the {left} that are left"
            )));
        }
        Ok(Step::Batch(Stored { position: at, length, header }))
    }

    /// At least `needed` bytes from `at` on, as far as the limit allows.
    fn fill(&mut self, at: u64, needed: usize) -> Result<&[u8], LogError> {
        let left = usize::try_from(self.limit.saturating_sub(at)).unwrap_or(usize::MAX);
        let needed = needed.min(left);
        let skip = at.checked_sub(self.window_at).and_then(|skip| usize::try_from(skip).ok());
        let covered = skip.is_some_and(|skip| skip.saturating_add(needed) <= self.window.len());
        let skip = if covered { skip.unwrap_or(0) } else { 0 };
        if !covered {
            self.window.resize(needed.max(self.window_size).min(left), 0);
            let filled =
                read_full(self.file, &mut self.window, at).map_err(LogError::io("read", self.path))?;
            self.window.truncate(filled);
            self.window_at = at;
        }
        let end = skip.saturating_add(needed).min(self.window.len());
        Ok(self.window.get(skip..end).unwrap_or_default())
    }
}
