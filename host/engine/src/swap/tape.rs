//! A partition that writes down what it was asked and answered, and one that answers from that.

use std::collections::HashMap;

use bytes::Bytes;
use verbatim_contract::{Comparison, CutPreview, ProducerState, Replica, Unreadable};

use crate::{Incoming, Partition};

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

    fn start_over(&mut self) {
        self.read.clear();
    }

    fn config(&mut self, key: &str) -> Option<String> {
        let found = self.tape.config.get(key).cloned();
        self.known(found, None)
    }

    fn trace(&mut self, _line: &str) {}
}
