//! The transaction index, in Kafka's format: one entry of 34 bytes an aborted transaction, in the order of the markers.

use std::path::Path;

use crate::checked::{read_whole, remove_file, write_file};
use crate::{AbortedTransaction, Io, LogError};

const ENTRY_LEN: usize = 34;
const VERSION: i16 = 0;

/// Writes a segment's transaction index, durably; without transactions there is no file.
pub(crate) fn write(io: &dyn Io, path: &Path, aborted: &[AbortedTransaction]) -> Result<(), LogError> {
    if aborted.is_empty() {
        return remove_file(io, path);
    }
    let mut bytes = Vec::with_capacity(aborted.len().saturating_mul(ENTRY_LEN));
    for transaction in aborted {
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend(transaction.producer_id.to_be_bytes());
        bytes.extend(transaction.first_offset.to_be_bytes());
        bytes.extend(transaction.last_offset.to_be_bytes());
        bytes.extend(transaction.last_stable_offset.to_be_bytes());
    }
    write_file(io, path, &bytes, true)
}

/// Reads a sealed segment's transaction index.
pub(crate) fn read(io: &dyn Io, path: &Path) -> Result<Vec<AbortedTransaction>, LogError> {
    let bytes = read_whole(io, path)?.unwrap_or_default();
    let (entries, rest) = bytes.as_chunks::<ENTRY_LEN>();
    if !rest.is_empty() {
        let position = u64::try_from(bytes.len().saturating_sub(rest.len())).unwrap_or(0);
        return Err(LogError::corrupt(path, position, "an entry is cut off"));
    }
    entries.iter().enumerate().map(|(index, entry)| read_entry(path, index, entry)).collect()
}

fn read_entry(path: &Path, index: usize, entry: &[u8; ENTRY_LEN]) -> Result<AbortedTransaction, LogError> {
    let position = u64::try_from(index.saturating_mul(ENTRY_LEN)).unwrap_or(0);
    let (version, rest) = entry.split_first_chunk().unwrap_or((&[0; 2], &[]));
    let version = i16::from_be_bytes(*version);
    if version > VERSION {
        let (version, newest) = (u32::from(version.unsigned_abs()), 0);
        return Err(LogError::Newer {
            kind: "transaction index".to_owned(),
            version,
            newest,
            file: path.to_owned(),
        });
    }
    let (fields, _) = rest.as_chunks::<8>();
    let [producer_id, first_offset, last_offset, last_stable_offset] = *fields else {
        return Err(LogError::corrupt(path, position, "an entry is cut off"));
    };
    Ok(AbortedTransaction {
        producer_id: i64::from_be_bytes(producer_id),
        first_offset: i64::from_be_bytes(first_offset),
        last_offset: i64::from_be_bytes(last_offset),
        last_stable_offset: i64::from_be_bytes(last_stable_offset),
    })
}
