//! One partition as its brokers hold it, and what Kafka's leader answers about it.

use bytes::Bytes;
use uuid::Uuid;
use verbatim_batch::{BatchBuilder, NewRecord, frames};

/// A partition.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) topic_id: Uuid,
    pub(crate) leader: i32,
    pub(crate) epoch: i32,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) batches: Vec<Bytes>,
    /// Leader epochs and their starts.
    pub(crate) entries: Vec<(i32, i64)>,
}

impl Log {
    pub(crate) fn new(leader: i32) -> Self {
        let (start, end, batches) = (0, 0, Vec::new());
        Self { topic_id: Uuid::from_u128(7), leader, epoch: 0, start, end, batches, entries: vec![(0, 0)] }
    }

    /// Appends a batch of one record of so many bytes at the end, under the current epoch.
    pub(crate) fn append(&mut self, value: usize) {
        let batch = batch(self.end, self.epoch, value);
        self.end += 1;
        self.batches.push(batch);
    }

    /// So many batches.
    pub(crate) fn filled(mut self, batches: usize, value: usize) -> Self {
        (0..batches).for_each(|_| self.append(value));
        self
    }

    /// The leader moves: to a broker, under the next epoch.
    pub(crate) fn elect(&mut self, leader: i32) {
        self.leader = leader;
        self.epoch += 1;
        self.entries.push((self.epoch, self.end));
    }

    /// Cuts the log, as a leader does that never had the rest.
    pub(crate) fn truncate(&mut self, end: i64) {
        self.batches.retain(|batch| base(batch) < end);
        self.entries.retain(|(_, start)| *start < end);
        self.end = end;
    }

    /// Everything from the batch that holds this offset.
    pub(crate) fn bytes_from(&self, offset: i64) -> Vec<u8> {
        self.batches.iter().filter(|batch| next(batch) > offset).flatten().copied().collect()
    }

    /// R42.
    pub(crate) fn epoch_end(&self, asked: i32) -> (i32, i64) {
        if asked < 0 || asked > self.epoch || self.entries.is_empty() {
            return (-1, -1);
        }
        let next =
            self.entries.iter().find(|(epoch, _)| *epoch > asked).map_or(self.end, |(_, start)| *start);
        let at = self.entries.iter().rev().find(|(epoch, _)| *epoch <= asked);
        at.map_or((asked, next), |(epoch, _)| (*epoch, next))
    }
}

/// A batch of one record.
pub(crate) fn batch(base: i64, epoch: i32, value: usize) -> Bytes {
    let value = vec![u8::try_from(base.rem_euclid(251)).unwrap(); value];
    let record = NewRecord::new(0, 1_000).value(&value);
    BatchBuilder::new(base).leader_epoch(epoch).record(record).build().unwrap().into()
}

pub(crate) fn base(batch: &[u8]) -> i64 {
    frames(batch).next().unwrap().prefix().base_offset
}

pub(crate) fn next(batch: &[u8]) -> i64 {
    frames(batch).next().unwrap().header().unwrap().next_offset().unwrap()
}
