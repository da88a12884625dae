//! Records that are read more than once.

use alloc::collections::BTreeMap;
use alloc::{string::String, vec::Vec};

use verbatim_contract::{
    Callbacks, Comparison, CutPreview, Placement, ProducerState, Refusal, Replica, Unreadable,
};

use crate::records::{reserve_within, rest_of_records};

/// The host's callbacks, with records that may be read again: a host gives each piece only once, so a rule that looks into
/// records hands an `Again` to the rules behind it.
///
/// It keeps what was read, at most the number of bytes it is made with, all batches of the request together. Beyond that,
/// records are [`Unreadable::TooLarge`].
///
/// ```
/// use verbatim_kit::testing::Log;
/// use verbatim_kit::{Again, Callbacks};
///
/// let mut log = Log::default().plain_records(b"records");
/// let mut log = Again::new(&mut log, 1 << 20);
/// assert_eq!(log.records(0, 4), Ok(b"reco".to_vec()));
/// log.from_the_start();
/// assert_eq!(log.records(0, 6), Ok(b"reco".to_vec()));
/// assert_eq!(log.records(0, 6), Ok(b"rds".to_vec()));
/// assert_eq!(log.records(0, 6), Ok(Vec::new()));
/// ```
pub struct Again<'a> {
    log: &'a mut dyn Callbacks,
    bytes_left: usize,
    kept: BTreeMap<u32, Kept>,
}

/// What was read of one batch, and how much of it was given since the start.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    given: usize,
}

impl<'a> Again<'a> {
    /// Keeps at most `bytes_max` bytes of records.
    pub fn new(log: &'a mut dyn Callbacks, bytes_max: usize) -> Self {
        Self { log, bytes_left: bytes_max, kept: BTreeMap::new() }
    }

    /// The records of every batch are given from their start again.
    pub fn from_the_start(&mut self) {
        self.kept.values_mut().for_each(|kept| kept.given = 0);
    }

    /// All records of batch `index`, those that were read and those still to come, for the last time: they are not kept.
    ///
    /// # Errors
    /// As [`plain_records`](crate::plain_records).
    pub fn take(&mut self, index: u32, bytes_max: usize) -> Result<Vec<u8>, Refusal> {
        let kept = self.kept.remove(&index).unwrap_or_default().bytes;
        self.bytes_left = self.bytes_left.saturating_add(kept.len());
        rest_of_records(index, kept, self.log, bytes_max)
    }
}

impl Callbacks for Again<'_> {
    fn records(&mut self, index: u32, max: u32) -> Result<Vec<u8>, Unreadable> {
        let kept = self.kept.entry(index).or_default();
        if let Some(rest) = kept.bytes.get(kept.given..).filter(|rest| !rest.is_empty()) {
            let len = rest.len().min(usize::try_from(max).unwrap_or(usize::MAX));
            let piece = rest.iter().take(len).copied().collect();
            kept.given = kept.given.saturating_add(len);
            return Ok(piece);
        }
        let piece = self.log.records(index, max)?;
        let bytes_max = kept.bytes.len().saturating_add(self.bytes_left);
        reserve_within(&mut kept.bytes, piece.len(), bytes_max).ok_or(Unreadable::TooLarge)?;
        kept.bytes.extend_from_slice(&piece);
        self.bytes_left = self.bytes_left.saturating_sub(piece.len());
        kept.given = kept.bytes.len();
        Ok(piece)
    }

    fn append(&mut self, index: u32, placement: Placement) {
        self.log.append(index, placement);
    }

    fn duplicate(&mut self, index: u32, base_offset: i64) {
        self.log.duplicate(index, base_offset);
    }

    fn rewrite(&mut self, index: u32, placement: Placement, records: Vec<u8>) {
        self.log.rewrite(index, placement, records);
    }

    fn compare(&mut self, index: u32, base_offset: i64) -> Comparison {
        self.log.compare(index, base_offset)
    }

    fn cut(&mut self, to: i64) -> CutPreview {
        self.log.cut(to)
    }

    fn producer(&mut self, producer_id: i64) -> Option<ProducerState> {
        self.log.producer(producer_id)
    }

    fn replicas(&mut self) -> Vec<Replica> {
        self.log.replicas()
    }

    fn config(&mut self, key: &str) -> Option<String> {
        self.log.config(key)
    }

    fn trace(&mut self, line: &str) {
        self.log.trace(line);
    }
}
