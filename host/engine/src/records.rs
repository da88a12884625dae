//! Reading a request's records piece by piece.

use std::collections::BTreeMap;

use bytes::Bytes;
use verbatim_batch::{Codec, HEADER_LEN};
use verbatim_contract::Unreadable;

use crate::Incoming;

/// Inflates compressed records within the caller's own limits.
pub type Inflate = fn(Codec, &[u8]) -> Result<Vec<u8>, Unreadable>;

/// Compresses plain records; the error says in words why that cannot be done.
pub type Compress = fn(Codec, &[u8]) -> Result<Vec<u8>, String>;

/// How far the records of a call's batches were read: what a [`Partition`](crate::Partition) needs for its `records`.
#[derive(Clone, Debug, Default)]
pub struct RecordReader {
    batches: BTreeMap<u32, (Bytes, usize)>,
}

impl RecordReader {
    /// The next piece of batch `index`, at most `max` bytes; empty at the end. The first one inflates the batch.
    ///
    /// # Errors
    /// What `inflate` says, or that there is no such codec.
    pub fn next(
        &mut self,
        index: u32,
        batch: &Incoming,
        max: u32,
        inflate: Inflate,
    ) -> Result<Vec<u8>, Unreadable> {
        let (plain, at) = match self.batches.remove(&index) {
            Some(reading) => reading,
            None => (plain_records(batch, inflate)?, 0),
        };
        let to = plain.len().min(at.saturating_add(usize::try_from(max).unwrap_or(usize::MAX)));
        let piece = plain.slice(at..to).to_vec();
        self.batches.insert(index, (plain, to));
        Ok(piece)
    }

    /// Forgets what was inflated; to be called after each request.
    pub fn clear(&mut self) {
        self.batches.clear();
    }
}

/// All of a batch's records, inflated: what a [`Partition`](crate::Partition) needs for its `inflated`.
///
/// # Errors
/// What `inflate` says, or that there is no such codec.
pub fn plain_records(batch: &Incoming, inflate: Inflate) -> Result<Bytes, Unreadable> {
    let payload = batch.bytes.slice(HEADER_LEN.min(batch.bytes.len())..);
    match batch.facts.header.attributes.codec() {
        Ok(Codec::None) => Ok(payload),
        Ok(codec) => inflate(codec, &payload).map(Bytes::from),
        Err(_) => Err(Unreadable::UnknownCodec),
    }
}
