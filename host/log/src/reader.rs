//! Reading beside the append thread.

use std::sync::Arc;

use bytes::Bytes;
use verbatim_batch::Codec;
use verbatim_contract::EpochAnswer;

use crate::{AbortedTransaction, LogError, ReadError, View};

/// Whole batches as they are stored.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The batches, the first of which contains the offset asked for or is the first after it; empty when there is none
    /// below the bound.
    pub bytes: Bytes,
    /// The view that the bytes were read under: start, high watermark and stable offset for the answer.
    pub view: Arc<View>,
}

/// A record found by its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampHit {
    /// The record's offset.
    pub offset: i64,
    /// Its timestamp, milliseconds since 1970.
    pub timestamp: i64,
    /// The leader epoch of its batch.
    pub leader_epoch: i32,
}

/// Inflates a batch's payload; the text says why it cannot.
pub type Inflate<'a> = &'a dyn Fn(Codec, &[u8]) -> Result<Bytes, String>;

/// A handle for reading one log; cheap to clone and to send to other threads.
#[derive(Clone, Debug)]
pub struct LogReader {}

impl LogReader {
    /// Where the log stands now.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        todo!()
    }

    /// Reads whole batches that lie below `bound`, from the one that contains `offset` on (R44), about `max_bytes` of
    /// them: never more, but for a first batch that alone is larger and is given if `min_one`. `bound` is the high
    /// watermark or the stable offset of a [`Self::view`], or anything else; it is lowered to the log's end.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] where `offset` is below the start or above the bound; at the bound there is nothing to
    /// read and no error.
    pub fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        bound: i64,
        min_one: bool,
    ) -> Result<Fetched, ReadError> {
        let _ = (offset, max_bytes, bound, min_one);
        todo!()
    }

    /// Transactions that were aborted and have records in `from..to`.
    #[must_use]
    pub fn aborted(&self, from: i64, to: i64) -> Vec<AbortedTransaction> {
        let _ = (from, to);
        todo!()
    }

    /// Where the asked leader epoch ends, as readers are told (R42): never past the high watermark, or on an exact
    /// partition the source's declared end if that is larger.
    #[must_use]
    pub fn epoch_end(&self, asked: i32) -> EpochAnswer {
        let _ = asked;
        todo!()
    }

    /// The first record at or after the start, below `bound`, whose timestamp is `timestamp` or later.
    ///
    /// # Errors
    /// What cannot be read or inflated.
    pub fn offset_for_timestamp(
        &self,
        timestamp: i64,
        bound: i64,
        inflate: Inflate<'_>,
    ) -> Result<Option<TimestampHit>, LogError> {
        let _ = (timestamp, bound, inflate);
        todo!()
    }

    /// The record with the largest timestamp, the first of several, below `bound` (KIP-734).
    ///
    /// # Errors
    /// What cannot be read or inflated.
    pub fn max_timestamp(&self, bound: i64, inflate: Inflate<'_>) -> Result<Option<TimestampHit>, LogError> {
        let _ = (bound, inflate);
        todo!()
    }
}
