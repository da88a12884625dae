//! A source whose log grows at random, and the writes that copy it.

use std::ops::RangeInclusive;

use bytes::Bytes;
use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_wire::exact_producer::{Source, Write};
use verbatim_wire::tag::EpochEntry;

use crate::model::Log;
use crate::random::Random;

/// A batch of so many records; `salt` makes its bytes its own.
pub(crate) fn batch(base: i64, epoch: i32, records: i32, salt: &str) -> Bytes {
    let mut builder = BatchBuilder::new(base).leader_epoch(epoch);
    for delta in 0..records {
        builder = builder.record(NewRecord::new(delta, 1_000).value(salt.as_bytes()));
    }
    builder.build().unwrap().into()
}

/// A source that stands there, with the copy at its end.
pub(crate) fn at(end: i64, epoch: i32) -> Source {
    Source { start: 0, end, epoch }
}

/// A write of these batches, without anything else.
pub(crate) fn write(from: i64, batches: &[Bytes], source: Source) -> Write {
    Write { from, batches: batches.concat().into(), entries: Vec::new(), end_to: None, source }
}

/// What the copy must be in the end, and the calls that lead there.
pub(crate) struct History {
    pub(crate) log: Log,
    pub(crate) calls: Vec<Call>,
}

#[derive(Debug, Clone)]
pub(crate) enum Call {
    Write(Write),
    Source(Source),
}

impl History {
    pub(crate) fn random(random: &mut Random, calls: usize) -> Self {
        let mut history = Self { log: Log::default(), calls: Vec::new() };
        for _ in 0..calls {
            let call = match random.below(10) {
                0 => Call::Source(at(history.log.end, history.epoch().max(0))),
                1 => history.without_data(random),
                _ => history.with_data(random),
            };
            history.calls.push(call);
        }
        history
    }

    fn epoch(&self) -> i32 {
        self.log.entries.last().map_or(-1, |entry| entry.epoch)
    }

    /// The end moves, an epoch begins at it, or both.
    fn without_data(&mut self, random: &mut Random) -> Call {
        let from = self.log.end;
        self.log.end += i64::try_from(random.below(3)).unwrap();
        let entries = self.declare(random, from..=self.log.end, 2);
        Call::Write(Write {
            from,
            batches: Bytes::new(),
            entries,
            end_to: Some(self.log.end),
            source: at(self.log.end, self.epoch().max(0)),
        })
    }

    fn with_data(&mut self, random: &mut Random) -> Call {
        let (from, mut entries, mut batches) = (self.log.end, Vec::new(), Vec::new());
        for _ in 0..=random.below(6) {
            let hole = if random.one_in(5) { i64::try_from(random.below(9)).unwrap() } else { 0 };
            let base = self.log.end + hole;
            entries.extend(self.declare(random, self.log.end..=base, 6));
            if self.epoch() < 0 || random.one_in(9) {
                let epoch = self.epoch() + 1;
                self.log.begin(EpochEntry { epoch, start: base });
            }
            let records = 1 + i32::try_from(random.below(3)).unwrap();
            let batch = batch(base, self.epoch(), records, &"x".repeat(random.below(40)));
            self.log.end = base + i64::from(records);
            self.log.batches.push(batch.clone());
            batches.push(batch);
        }
        let mut end_to = None;
        if random.one_in(8) {
            let batches_end = self.log.end;
            self.log.end += 1 + i64::try_from(random.below(3)).unwrap();
            end_to = Some(self.log.end);
            entries.extend(self.declare(random, batches_end..=self.log.end, 3));
        }
        let source = at(self.log.end, self.epoch());
        Call::Write(Write { from, batches: batches.concat().into(), entries, end_to, source })
    }

    /// Now and then an epoch that has no batch of its own begins somewhere in a hole or at its end, but not where one began
    /// already.
    fn declare(&mut self, random: &mut Random, hole: RangeInclusive<i64>, one_in: usize) -> Vec<EpochEntry> {
        let begun = self.log.entries.last().map_or(0, |entry| entry.start + 1);
        let (from, to) = (begun.max(*hole.start()), *hole.end());
        if !random.one_in(one_in) || from > to {
            return Vec::new();
        }
        let start = from + i64::try_from(random.below(usize::try_from(to - from + 1).unwrap())).unwrap();
        let entry = EpochEntry { epoch: self.epoch() + 1 + i32::from(random.one_in(2)), start };
        self.log.begin(entry);
        vec![entry]
    }
}
