//! A partition that writes down what it was asked and answered, and one that answers from that.

use std::collections::HashMap;

use bytes::Bytes;
use verbatim_batch::Codec;
use verbatim_contract::{Comparison, CutPreview, ProducerState, Replica, Unreadable};

use crate::{Digest, Incoming, Partition};

/// What a tape holds at most, in bytes; a question that does not fit any more is not on it.
pub const MAX_TAPE_LEN: usize = 4 << 20;

/// About what an answer takes beside its records and texts, in bytes.
const ANSWER_LEN: usize = 128;

/// A broker's partition, whose answers can be written down. A judge sees no difference.
#[derive(Debug)]
pub struct Recorded<P> {
    inner: P,
    mode: Mode,
}

#[derive(Debug)]
enum Mode {
    Plain,
    Recording(Box<Tape>),
    /// What the module writes to the log is dropped.
    Muted,
}

/// What a partition was asked during one call, and what it answered.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    len: usize,
    compared: HashMap<i64, Vec<(Bytes, Comparison)>>,
    cuts: HashMap<i64, CutPreview>,
    producers: HashMap<i64, Option<ProducerState>>,
    replicas: Option<Vec<Replica>>,
    config: HashMap<String, Option<String>>,
    records: HashMap<u32, Reading>,
    /// What records were compressed to, by codec and their digest.
    compressed: HashMap<(Codec, Digest), Result<Bytes, String>>,
    /// Some of that did not fit.
    lost_compressed: bool,
}

/// A batch's records as far as they were read.
#[derive(Clone, Debug, Default)]
struct Reading {
    bytes: Vec<u8>,
    end: Option<End>,
}

/// What comes behind the bytes that were read.
#[derive(Clone, Copy, Debug)]
enum End {
    Complete,
    Unreadable(Unreadable),
    /// They did not fit on the tape.
    Lost,
}

/// A partition that answers from a tape.
#[derive(Debug)]
pub struct Replay {
    tape: Tape,
    /// How far each batch was read.
    read: HashMap<u32, usize>,
    inconclusive: bool,
}

impl<P> Recorded<P> {
    /// A partition of which nothing is written down.
    pub fn plain(inner: P) -> Self {
        Self { inner, mode: Mode::Plain }
    }

    /// A partition whose answers go to a new tape.
    pub fn recording(inner: P) -> Self {
        Self { inner, mode: Mode::Recording(Box::default()) }
    }

    /// A partition that keeps a module's lines from the host's log.
    pub(super) fn muted(inner: P) -> Self {
        Self { inner, mode: Mode::Muted }
    }

    /// The partition, and the tape if there is one.
    pub fn into_parts(self) -> (P, Option<Box<Tape>>) {
        let tape = match self.mode {
            Mode::Recording(tape) => Some(tape),
            Mode::Plain | Mode::Muted => None,
        };
        (self.inner, tape)
    }

    fn note(&mut self, note: impl FnOnce(&mut Tape)) {
        if let Mode::Recording(tape) = &mut self.mode {
            note(tape);
        }
    }
}

impl<P: Partition> Partition for Recorded<P> {
    fn compare(&mut self, batch: &Incoming, base_offset: i64) -> Comparison {
        let answer = self.inner.compare(batch, base_offset);
        self.note(|tape| {
            if tape.takes(ANSWER_LEN) {
                tape.compared.entry(base_offset).or_default().push((batch.bytes.clone(), answer));
            }
        });
        answer
    }

    fn cut(&mut self, to: i64) -> CutPreview {
        let answer = self.inner.cut(to);
        self.note(|tape| {
            if tape.takes(ANSWER_LEN) {
                tape.cuts.insert(to, answer);
            }
        });
        answer
    }

    fn producer(&mut self, producer_id: i64) -> Option<ProducerState> {
        let answer = self.inner.producer(producer_id);
        self.note(|tape| {
            if tape.takes(4 * ANSWER_LEN) {
                tape.producers.insert(producer_id, answer.clone());
            }
        });
        answer
    }

    fn replicas(&mut self) -> Vec<Replica> {
        let answer = self.inner.replicas();
        self.note(|tape| {
            if tape.replicas.is_none() && tape.takes(size_of::<Replica>().saturating_mul(answer.len())) {
                tape.replicas = Some(answer.clone());
            }
        });
        answer
    }

    fn records(&mut self, index: u32, batch: &Incoming, max: u32) -> Result<Vec<u8>, Unreadable> {
        let answer = self.inner.records(index, batch, max);
        self.note(|tape| tape.read(index, max, &answer));
        answer
    }

    fn inflated(&mut self, index: u32, batch: &Incoming) -> Result<Bytes, Unreadable> {
        // A module that rewrites records has read them, so they are on the tape already.
        self.inner.inflated(index, batch)
    }

    fn compress(&mut self, codec: Codec, plain: &[u8]) -> Result<Vec<u8>, String> {
        let answer = self.inner.compress(codec, plain);
        self.note(|tape| {
            let len = answer.as_ref().map_or_else(String::len, Vec::len);
            if tape.takes(len.saturating_add(ANSWER_LEN)) {
                let answer = answer.clone().map(Bytes::from);
                tape.compressed.insert((codec, Digest::of(plain)), answer);
            } else {
                tape.lost_compressed = true;
            }
        });
        answer
    }

    fn start_over(&mut self) {
        self.inner.start_over();
        self.note(|tape| *tape = Tape::default());
    }

    fn config(&mut self, key: &str) -> Option<String> {
        let answer = self.inner.config(key);
        self.note(|tape| {
            let text = key.len().saturating_add(answer.as_ref().map_or(0, String::len));
            if tape.takes(text.saturating_add(ANSWER_LEN)) {
                tape.config.insert(key.to_owned(), answer.clone());
            }
        });
        answer
    }

    fn trace(&mut self, line: &str) {
        if !matches!(self.mode, Mode::Muted) {
            self.inner.trace(line);
        }
    }
}

impl Tape {
    /// About what it holds, in bytes; never above [`MAX_TAPE_LEN`].
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len
    }

    /// Whether so many bytes more fit, which then count.
    fn takes(&mut self, len: usize) -> bool {
        let len = self.len.saturating_add(len);
        let fits = len <= MAX_TAPE_LEN;
        if fits {
            self.len = len;
        }
        fits
    }

    fn read(&mut self, index: u32, max: u32, answer: &Result<Vec<u8>, Unreadable>) {
        if !self.records.contains_key(&index) && !self.takes(ANSWER_LEN) {
            return;
        }
        let piece = answer.as_deref().unwrap_or_default();
        let fits = self.takes(piece.len());
        let reading = self.records.entry(index).or_default();
        if reading.end.is_some() {
            return;
        }
        reading.end = match answer {
            Err(unreadable) => Some(End::Unreadable(*unreadable)),
            Ok(_) if !fits => Some(End::Lost),
            Ok(piece) if piece.is_empty() && max > 0 => Some(End::Complete),
            Ok(_) => None,
        };
        if fits {
            reading.bytes.extend_from_slice(piece);
        }
    }
}

impl Replay {
    /// A partition that answers what is on the tape.
    #[must_use]
    pub fn new(tape: Tape) -> Self {
        Self { tape, read: HashMap::new(), inconclusive: false }
    }

    /// It was asked what is not on the tape: the verdict says nothing.
    #[must_use]
    pub fn is_inconclusive(&self) -> bool {
        self.inconclusive
    }

    fn known<T>(&mut self, answer: Option<T>, instead: T) -> T {
        answer.unwrap_or_else(|| {
            self.inconclusive = true;
            instead
        })
    }
}

impl Partition for Replay {
    fn compare(&mut self, batch: &Incoming, base_offset: i64) -> Comparison {
        let there = self.tape.compared.get(&base_offset);
        let found = there.and_then(|there| there.iter().find(|(bytes, _)| *bytes == batch.bytes));
        self.known(found.map(|&(_, answer)| answer), Comparison::Absent)
    }

    fn cut(&mut self, to: i64) -> CutPreview {
        let found = self.tape.cuts.get(&to).copied();
        self.known(found, CutPreview { at_boundary: false, last_entry: None, highest_epoch_cut: None })
    }

    fn producer(&mut self, producer_id: i64) -> Option<ProducerState> {
        let found = self.tape.producers.get(&producer_id).cloned();
        self.known(found, None)
    }

    fn replicas(&mut self) -> Vec<Replica> {
        let found = self.tape.replicas.clone();
        self.known(found, Vec::new())
    }

    fn records(&mut self, index: u32, _batch: &Incoming, max: u32) -> Result<Vec<u8>, Unreadable> {
        let at = self.read.entry(index).or_insert(0);
        let reading = self.tape.records.get(&index);
        let rest = reading.and_then(|reading| reading.bytes.get(*at..)).unwrap_or_default();
        let piece = rest.get(..usize::try_from(max).unwrap_or(usize::MAX)).unwrap_or(rest);
        if !piece.is_empty() || max == 0 {
            *at = at.saturating_add(piece.len());
            return Ok(piece.to_vec());
        }
        let end = match reading.and_then(|reading| reading.end) {
            Some(End::Complete) => Some(Ok(Vec::new())),
            Some(End::Unreadable(unreadable)) => Some(Err(unreadable)),
            Some(End::Lost) | None => None,
        };
        self.known(end, Ok(Vec::new()))
    }

    fn inflated(&mut self, index: u32, _batch: &Incoming) -> Result<Bytes, Unreadable> {
        let reading = self.tape.records.get(&index);
        let found = match reading.and_then(|reading| Some((reading, reading.end?))) {
            Some((reading, End::Complete)) => Some(Ok(Bytes::copy_from_slice(&reading.bytes))),
            Some((_, End::Unreadable(unreadable))) => Some(Err(unreadable)),
            Some((_, End::Lost)) | None => None,
        };
        self.known(found, Err(Unreadable::Corrupt))
    }

    /// Records that were not compressed live stay as they are: the module handed back others, and the plans differ.
    fn compress(&mut self, codec: Codec, plain: &[u8]) -> Result<Vec<u8>, String> {
        match self.tape.compressed.get(&(codec, Digest::of(plain))) {
            Some(answer) => answer.clone().map(Vec::from),
            None => {
                self.inconclusive |= self.tape.lost_compressed;
                Ok(plain.to_vec())
            }
        }
    }

    fn start_over(&mut self) {
        self.read.clear();
    }

    fn config(&mut self, key: &str) -> Option<String> {
        let found = self.tape.config.get(key).cloned();
        self.known(found, None)
    }

    fn trace(&mut self, _line: &str) {}
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use verbatim_contract::Policy;

    use super::*;
    use crate::Memory;

    fn memory() -> Memory {
        Memory::new(Policy {
            exact: true,
            rewind_truncate: false,
            validate_records: true,
            may_rewrite: false,
            compacted: false,
            log_append_time: false,
            max_message_bytes: 1 << 20,
            segment_bytes: 1 << 30,
            before_max_ms: i64::MAX,
            after_max_ms: i64::MAX,
            min_insync: 1,
            topic_id: (0, 1),
            partition: 0,
            config_generation: 0,
        })
    }

    /// A batch whose records are `len` bytes; with an attribute bit, of a codec that the partition does not know.
    fn incoming(len: usize, attributes: u8) -> Incoming {
        let mut bytes: Vec<u8> = (0..=250).cycle().take(verbatim_batch::HEADER_LEN + len).collect();
        if let Some(low) = bytes.get_mut(22) {
            *low = attributes;
        }
        Incoming::new(Bytes::from(bytes))
    }

    /// Reads in pieces of `max` bytes, at most `pieces` of them or to the end.
    fn read(partition: &mut impl Partition, batch: &Incoming, max: u32, pieces: usize) -> Vec<u8> {
        let pieces = (0..pieces).map_while(|_| {
            let piece = partition.records(0, batch, max).unwrap();
            (!piece.is_empty()).then_some(piece)
        });
        pieces.flatten().collect()
    }

    fn replay(recorded: Recorded<Memory>) -> Replay {
        Replay::new(*recorded.into_parts().1.unwrap())
    }

    #[test]
    fn records_replay_in_pieces_of_any_size() {
        let batch = incoming(1000, 0);
        let mut recorded = Recorded::recording(memory());
        let expected = read(&mut recorded, &batch, 300, usize::MAX);
        assert_eq!(expected.len(), 1000);
        let replay = replay(recorded);
        for max in [1, 7, 300, 999, 1000, 1001, u32::MAX] {
            let mut replay = Replay::new(replay.tape.clone());
            assert_eq!(read(&mut replay, &batch, max, usize::MAX), expected, "{max}");
            replay.start_over();
            assert_eq!(read(&mut replay, &batch, max, usize::MAX), expected, "{max}");
            assert!(!replay.is_inconclusive());
        }
    }

    #[test]
    fn what_was_not_read_is_not_known() {
        let batch = incoming(1000, 0);
        let mut recorded = Recorded::recording(memory());
        assert_eq!(read(&mut recorded, &batch, 300, 2).len(), 600);
        let mut replay = replay(recorded);
        assert_eq!(read(&mut replay, &batch, 400, 2).len(), 600, "a shorter piece is a piece");
        assert!(!replay.is_inconclusive());
        assert_eq!(replay.records(0, &batch, 400), Ok(Vec::new()));
        assert!(replay.is_inconclusive());
    }

    #[test]
    fn what_cannot_be_read_cannot_be_read_again() {
        let batch = incoming(1000, 1);
        let mut recorded = Recorded::recording(memory());
        assert_eq!(recorded.records(0, &batch, 10), Err(Unreadable::UnknownCodec));
        let mut replay = replay(recorded);
        for _ in 0..2 {
            assert_eq!(replay.records(0, &batch, 70), Err(Unreadable::UnknownCodec));
        }
        assert!(!replay.is_inconclusive());
    }

    #[test]
    fn a_tape_is_bounded_and_says_so() {
        let mut recorded = Recorded::recording(memory());
        let (small, large) = (incoming(100, 0), incoming(5 << 20, 0));
        assert_eq!(recorded.compare(&small, 0), Comparison::Absent);
        assert_eq!(read(&mut recorded, &large, 1 << 20, usize::MAX).len(), 5 << 20);
        for offset in 0..100_000 {
            recorded.compare(&small, offset);
            recorded.cut(offset);
            recorded.producer(offset);
            recorded.config(&format!("key {offset}"));
        }
        let mut replay = replay(recorded);
        assert!(replay.tape.len_bytes() <= MAX_TAPE_LEN);
        assert_eq!(replay.compare(&small, 0), Comparison::Absent);
        assert!(!replay.is_inconclusive());
        replay.compare(&small, 99_999);
        assert!(replay.is_inconclusive());
        let mut replay = Replay::new(replay.tape);
        read(&mut replay, &large, 1 << 20, usize::MAX);
        assert!(replay.is_inconclusive());
    }

    #[test]
    fn each_question_is_one_of_its_own() {
        let (batch, other) = (incoming(100, 0), incoming(101, 0));
        let mut recorded = Recorded::recording(memory());
        recorded.compare(&batch, 5);
        recorded.cut(5);
        recorded.producer(5);
        recorded.config("five");
        recorded.replicas();
        let tape = *recorded.into_parts().1.unwrap();
        type Ask<'a> = &'a dyn Fn(&mut Replay);
        let asks: [(Ask<'_>, bool); 9] = [
            (&|replay| _ = replay.compare(&batch, 5), false),
            (&|replay| _ = replay.compare(&other, 5), true),
            (&|replay| _ = replay.compare(&batch, 6), true),
            (&|replay| _ = replay.cut(5), false),
            (&|replay| _ = replay.cut(6), true),
            (&|replay| _ = replay.producer(5), false),
            (&|replay| _ = replay.producer(6), true),
            (&|replay| _ = replay.config("five"), false),
            (&|replay| _ = replay.config("six"), true),
        ];
        for (place, (ask, unknown)) in asks.into_iter().enumerate() {
            let mut replay = Replay::new(tape.clone());
            assert_eq!(replay.replicas().len(), 3);
            ask(&mut replay);
            assert_eq!(replay.is_inconclusive(), unknown, "{place}");
        }
        let mut nothing = Replay::new(Tape::default());
        assert!(nothing.replicas().is_empty() && nothing.is_inconclusive());
    }
}
