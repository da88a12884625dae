//! What is to be written: the proof that a request was judged and verified.

use bytes::Bytes;
use verbatim_batch::{HEADER_LEN, Header};
use verbatim_contract::EpochEntry;

use crate::Digest;

/// What an accepted request does to a partition. Only the engine makes one, after it verified the invariants.
///
/// A broker carries it out in this order: cut, epoch entries and batches, end, start, source position. All of it is kept
/// or, if a write fails, none (I6). Shown epoch and source position outlive a restart, like the log itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(crate) cut: Option<i64>,
    pub(crate) entries: Vec<EpochEntry>,
    pub(crate) appends: Vec<Placed>,
    pub(crate) duplicates: Vec<Duplicate>,
    pub(crate) end: i64,
    pub(crate) start: i64,
    pub(crate) shown_epoch: i32,
    pub(crate) source: Option<Source>,
}

impl Plan {
    /// Cut the log, its epochs, producers and transactions to here first (R31).
    #[must_use]
    pub fn cut(&self) -> Option<i64> {
        self.cut
    }

    /// Epoch entries to assign in this order after the cut, those that the batches bring included (R29, R30).
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// Batches to append, in this order.
    #[must_use]
    pub fn appends(&self) -> &[Placed] {
        &self.appends
    }

    /// Batches that are stored already (R21, R33).
    #[must_use]
    pub fn duplicates(&self) -> &[Duplicate] {
        &self.duplicates
    }

    /// The log's end afterwards; above the last batch where a hole at the tail was declared.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.end
    }

    /// The log's start afterwards; never below what it was. Where it rises, the epoch history begins there too
    /// (`EpochHistory::advance_start`); so it does where the first batch lies below it, as the log then restarts (R25).
    #[must_use]
    pub fn start(&self) -> i64 {
        self.start
    }

    /// The leader epoch that readers are shown afterwards; never below what it was.
    #[must_use]
    pub fn shown_epoch(&self) -> i32 {
        self.shown_epoch
    }

    /// Where the source stands, on an exact topic.
    #[must_use]
    pub fn source(&self) -> Option<Source> {
        self.source
    }

    /// The offset of the request's first batch, appended or stored before; none without batches.
    #[must_use]
    pub fn base_offset(&self) -> Option<i64> {
        let duplicate = self.duplicates.first().map(|batch| (batch.index, batch.base_offset));
        let append = self.appends.first().map(|batch| (batch.index, batch.header.base_offset));
        duplicate.into_iter().chain(append).min_by_key(|&(index, _)| index).map(|(_, base)| base)
    }
}

/// A batch to append: `head` and then `payload` are the bytes to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The batch's place in the request.
    pub index: u32,
    /// `head`, decoded.
    pub header: Header,
    /// The first 61 bytes. On an exact topic those that came; on a normal one with base offset, leader epoch,
    /// maxTimestamp, timestamp type and checksum as placed. Of a batch that the module rewrote, length, checksum, number of
    /// records and maxTimestamp are those of the records that are left, and without any the codec is none.
    pub head: [u8; HEADER_LEN],
    /// The rest: as it came, or the records that the module handed back, compressed.
    pub payload: Bytes,
    /// The digest of the batch as it came, on an exact topic whose records may be rewritten. It is to be kept with the batch,
    /// durable before the answer and cut with it: a retry is recognised by it ([`Partition::compare`](crate::Partition)).
    pub received: Option<Digest>,
}

/// A batch that is stored already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The batch's place in the request.
    pub index: u32,
    /// Where it is stored.
    pub base_offset: i64,
    /// The offset after it: the answer waits until the log is flushed up to here.
    pub next_offset: i64,
}

/// Where the source of an exact topic stands, as the tag declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its log start offset.
    pub start: i64,
    /// Its high watermark.
    pub end: i64,
    /// Its current leader epoch.
    pub epoch: i32,
    /// The request only repeated what is stored, perhaps long ago: each number counts only if it is above the known one.
    pub raise_only: bool,
}

impl Source {
    /// What is known of the source after this, if `before` was known.
    #[must_use]
    pub fn after(self, before: Option<Self>) -> Self {
        match before.filter(|_| self.raise_only) {
            Some(before) => Self {
                start: self.start.max(before.start),
                end: self.end.max(before.end),
                epoch: self.epoch.max(before.epoch),
                raise_only: self.raise_only,
            },
            None => self,
        }
    }
}
