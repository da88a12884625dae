//! From the bytes of an answer to whole batches.

use bytes::Bytes;
use verbatim_batch::{FramesEnd, crc_matches, frames};

use super::Place;

/// The format whose batches are read (R3).
const MAGIC: i8 = 2;
/// Bytes in front of what a batch's length field counts.
const OVERHEAD: usize = verbatim_batch::OVERHEAD_LEN;

/// Whole batches, one or more, that rise from the place on; not yet checked against their checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) batches: Bytes,
    /// The place behind them.
    pub(super) next: Place,
}

/// Why an answer's bytes hold no batch to go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unusable {
    /// Its only batch is cut off. It has so many bytes, if its length came.
    CutOff(Option<usize>),
    /// A batch is not what it should be.
    Damaged {
        /// From what offset.
        offset: i64,
        /// What is wrong.
        why: String,
    },
    /// An older message format.
    Format {
        /// From what offset.
        offset: i64,
        /// Its magic.
        magic: i8,
    },
}

/// Cuts batches out of an answer: those wholly below the place are dropped, the first may begin below it, a cut-off tail is
/// dropped, as is everything from the first unusable batch on if there is a usable one before it.
pub(super) fn whole(records: &Bytes, place: Place) -> Result<Whole, Unusable> {
    let mut walk = Walk { start: 0, end: 0, next: place };
    let mut frames = frames(records);
    let mut unusable = None;
    for frame in frames.by_ref() {
        if let Err(problem) = walk.take(&frame) {
            unusable = Some(problem);
            break;
        }
    }
    if walk.end > walk.start {
        return Ok(Whole { batches: records.slice(walk.start..walk.end), next: walk.next });
    }
    let damaged = |why: &str| Unusable::Damaged { offset: place.offset, why: why.to_owned() };
    Err(unusable.unwrap_or_else(|| match frames.end() {
        Some(FramesEnd::TailCut { .. }) => {
            let tail = records.get(frames.framed_len()..).unwrap_or_default();
            let length =
                tail.get(8..).and_then(|tail| tail.first_chunk()).map(|bytes| i32::from_be_bytes(*bytes));
            let length = length.and_then(|length| usize::try_from(length).ok());
            Unusable::CutOff(length.map(|length| length.saturating_add(OVERHEAD)))
        }
        Some(FramesEnd::LengthTooSmall { value, .. }) => {
            damaged(&format!("batchLength {value}, expected 14 or more"))
        }
        Some(FramesEnd::Complete) | None => {
            damaged("all batches of the answer lie below the offset asked for")
        }
    }))
}

struct Walk {
    /// Where the first batch to be kept begins; where the last one ends.
    start: usize,
    end: usize,
    next: Place,
}

impl Walk {
    fn take(&mut self, frame: &verbatim_batch::Frame<'_>) -> Result<(), Unusable> {
        let (prefix, range) = (frame.prefix(), frame.range());
        let offset = prefix.base_offset;
        if prefix.magic != MAGIC {
            return Err(Unusable::Format { offset, magic: prefix.magic });
        }
        let next = frame.header().and_then(|header| header.next_offset());
        let next = next.ok_or_else(|| Unusable::Damaged {
            offset,
            why: "its header is short, or its last offset lies below its first or beyond the last there is"
                .to_owned(),
        })?;
        let is_first = self.end == self.start;
        if is_first && next <= self.next.offset {
            (self.start, self.end) = (range.end, range.end);
            return Ok(());
        }
        if !is_first && offset < self.next.offset {
            let why = format!(
                "base offset {offset}, expected {} or above, behind the batch before",
                self.next.offset
            );
            return Err(Unusable::Damaged { offset, why });
        }
        self.end = range.end;
        self.next = Place { offset: next, last_epoch: prefix.leader_epoch };
        Ok(())
    }
}

/// Checks every checksum: `None` if all are right; else the bytes in front of the first false batch, where they lead from
/// `from`, and that batch's offset.
pub(super) fn first_false(batches: &Bytes, from: Place) -> Option<(Bytes, Place, i64)> {
    let mut place = from;
    for frame in frames(batches) {
        if !crc_matches(frame.bytes()) {
            return Some((batches.slice(..frame.range().start), place, frame.prefix().base_offset));
        }
        let next = frame.header().and_then(|header| header.next_offset()).unwrap_or(place.offset);
        place = Place { offset: next, last_epoch: frame.prefix().leader_epoch };
    }
    None
}
