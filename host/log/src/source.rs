//! The source's declared position: two slots of one file, `verbatim.source`, written in turn.
//!
//! It changes with almost every request of a mirror, so it is written in place and made durable only on closing. A
//! process that dies loses none of it; after a power loss it may be an older one or none, until the mirror declares it
//! anew, which it does every second.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use verbatim_batch::crc32c;

use crate::checked::read_whole;
use crate::io::write_all;
use crate::{File, Io, LogError, SourcePosition};

const FILE: &str = "verbatim.source";
/// A slot a sector: a torn write never hits both.
const SLOT_LEN: usize = 512;
const USED_LEN: usize = 32;

pub(crate) struct SourceFile {
    path: PathBuf,
    file: Option<Arc<dyn File>>,
    count: u64,
    position: Option<SourcePosition>,
}

impl SourceFile {
    pub(crate) fn read(io: &dyn Io, folder: &Path) -> Result<Self, LogError> {
        let path = folder.join(FILE);
        let bytes = read_whole(io, &path)?.unwrap_or_default();
        let slots = bytes.chunks(SLOT_LEN).filter_map(|slot| decode(slot.first_chunk()?));
        let newest = slots.max_by_key(|(count, _)| *count);
        let count = newest.map_or(0, |(count, _)| count);
        Ok(Self { path, file: None, count, position: newest.map(|(_, position)| position) })
    }

    pub(crate) fn position(&self) -> Option<SourcePosition> {
        self.position
    }

    /// Keeps a position, in memory at any rate; an unchanged one costs nothing.
    pub(crate) fn set(&mut self, io: &dyn Io, position: SourcePosition) -> Result<(), LogError> {
        if self.position == Some(position) {
            return Ok(());
        }
        self.position = Some(position);
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => io.open(&self.path, true).map_err(LogError::io("open", &self.path))?,
        };
        self.file = Some(Arc::clone(&file));
        let count = self.count.saturating_add(1);
        let slot = if count.is_multiple_of(2) { 0 } else { SLOT_LEN };
        let slot = u64::try_from(slot).unwrap_or(0);
        write_all(&*file, &mut [IoSlice::new(&encode(count, position))], slot)
            .map_err(LogError::io("write", &self.path))?;
        self.count = count;
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<(), LogError> {
        self.file.as_ref().map_or(Ok(()), |file| file.sync().map_err(LogError::io("sync", &self.path)))
    }

    /// Forgets the position, in the file too.
    pub(crate) fn forget(&mut self, io: &dyn Io) -> Result<(), LogError> {
        (self.position, self.file, self.count) = (None, None, 0);
        crate::checked::remove_file(io, &self.path)
    }
}

fn encode(count: u64, position: SourcePosition) -> [u8; USED_LEN] {
    let mut bytes = Vec::with_capacity(USED_LEN);
    bytes.extend(count.to_be_bytes());
    bytes.extend(position.start.to_be_bytes());
    bytes.extend(position.end.to_be_bytes());
    bytes.extend(position.epoch.to_be_bytes());
    bytes.extend(crc32c(&bytes).to_be_bytes());
    bytes.first_chunk().copied().unwrap_or([0; USED_LEN])
}

fn decode(slot: &[u8; USED_LEN]) -> Option<(u64, SourcePosition)> {
    let (body, crc) = slot.split_last_chunk()?;
    let (count, rest) = body.split_first_chunk()?;
    let (start, rest) = rest.split_first_chunk()?;
    let (end, rest) = rest.split_first_chunk()?;
    let position = SourcePosition {
        start: i64::from_be_bytes(*start),
        end: i64::from_be_bytes(*end),
        epoch: i32::from_be_bytes(*rest.first_chunk()?),
    };
    (crc32c(body) == u32::from_be_bytes(*crc)).then(|| (u64::from_be_bytes(*count), position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_comes_back_and_a_torn_one_does_not() {
        let position = SourcePosition { start: 3, end: 1 << 40, epoch: 9 };
        let slot = encode(7, position);
        assert_eq!(decode(&slot), Some((7, position)));
        for index in 0..USED_LEN {
            let mut torn = slot;
            if let Some(byte) = torn.get_mut(index) {
                *byte ^= 0x10;
            }
            assert_eq!(decode(&torn), None, "byte {index}");
        }
        assert_eq!(decode(&[0; USED_LEN]), None);
    }
}
