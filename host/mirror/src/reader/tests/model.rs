//! A partition with three replicas, any of which may be elected (also one that lags), as far as epochs and offsets go.

use std::collections::BTreeMap;

use verbatim_wire::exact_producer::EpochEnd;

/// A record: its epoch, and a number that no other record has.
pub(super) type Stored = (i32, u64);

#[derive(Debug, Clone, Default)]
pub(super) struct Replica {
    pub(super) start: i64,
    pub(super) end: i64,
    log: BTreeMap<i64, Stored>,
    /// Leader epochs with their first offsets.
    entries: Vec<(i32, i64)>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    replicas: [Replica; 3],
    leader: usize,
    epoch: i32,
    written: u64,
}

impl Replica {
    pub(super) fn at(&self, offset: i64) -> Option<Stored> {
        self.log.get(&offset).copied()
    }

    /// The first offset of the smallest epoch above this one; the end if there is none.
    pub(super) fn start_of_next_larger(&self, epoch: i32) -> i64 {
        self.entries.iter().find(|(larger, _)| *larger > epoch).map_or(self.end, |(_, start)| *start)
    }

    /// What ListOffsets earliest tells beside the offset (R45).
    pub(super) fn epoch_at_start(&self) -> Option<i32> {
        self.entries.iter().rfind(|(_, start)| *start <= self.start).map(|(epoch, _)| *epoch)
    }

    pub(super) fn has_epoch(&self, epoch: i32) -> bool {
        self.entries.iter().any(|(known, _)| *known == epoch)
    }

    /// Offsets in a row under one epoch, from this one on; at most `count`.
    pub(super) fn batch(&self, from: i64, count: i64) -> Option<(i32, Vec<(i64, Stored)>)> {
        let (epoch, _) = self.at(from)?;
        let of_it = self.log.range(from..from + count).take_while(|(_, (other, _))| *other == epoch);
        Some((epoch, of_it.map(|(offset, stored)| (*offset, *stored)).collect()))
    }

    fn append(&mut self, stored: Stored) {
        self.log.insert(self.end, stored);
        self.assign(stored.0);
        self.end += 1;
    }

    fn assign(&mut self, epoch: i32) {
        if self.entries.last().is_none_or(|(last, _)| *last < epoch) {
            self.entries.retain(|(_, start)| *start < self.end);
            self.entries.push((epoch, self.end));
        }
    }

    fn truncate(&mut self, to: i64) {
        self.log.retain(|offset, _| *offset < to);
        self.entries.retain(|(_, start)| *start < to);
        self.end = to;
    }

    fn delete_below(&mut self, start: i64) {
        self.start = start;
        self.log.retain(|offset, _| *offset >= start);
        let gone = self.entries.iter().filter(|(_, first)| *first <= start).count();
        let last = self.entries.drain(..gone).next_back();
        if let Some((epoch, _)) = last {
            self.entries.insert(0, (epoch, start));
        }
    }
}

impl Model {
    pub(super) fn leader(&self) -> &Replica {
        &self.replicas[self.leader]
    }

    pub(super) fn epoch(&self) -> i32 {
        self.epoch
    }

    pub(super) fn append(&mut self, count: u8) {
        for _ in 0..count {
            self.written += 1;
            self.replicas[self.leader].append((self.epoch, self.written));
        }
    }

    /// A follower truncates to what it has in common with the leader, and copies some of the rest.
    pub(super) fn replicate(&mut self, to: usize, count: u8) {
        let leader = self.leader().clone();
        let copy = &mut self.replicas[to % 3];
        if to % 3 == self.leader {
            return;
        }
        // What one of them has deleted cannot be compared: if they differ at the first offset that can, all is copied anew.
        let first = leader.start.max(copy.start);
        if first >= leader.end.min(copy.end) || copy.at(first) != leader.at(first) {
            *copy = Replica { start: leader.start, end: leader.start, ..Replica::default() };
        } else {
            let common =
                (first..copy.end.min(leader.end)).find(|offset| copy.at(*offset) != leader.at(*offset));
            copy.truncate(common.unwrap_or(copy.end.min(leader.end)));
        }
        for offset in copy.end..leader.end.min(copy.end + i64::from(count)) {
            copy.append(leader.at(offset).expect("offsets of a log are contiguous"));
        }
        if copy.start < leader.start && copy.end >= leader.start {
            copy.delete_below(leader.start);
        }
    }

    pub(super) fn elect(&mut self, leader: usize, more: u8) {
        self.leader = leader % 3;
        self.epoch += 1 + i32::from(more % 2);
        let epoch = self.epoch;
        self.replicas[self.leader].assign(epoch);
    }

    /// Deletes a part of the leader's log, in 255ths.
    pub(super) fn delete(&mut self, part: u8) {
        let leader = &mut self.replicas[self.leader];
        leader.delete_below(leader.start + (leader.end - leader.start) * i64::from(part) / 255);
    }

    /// OffsetForLeaderEpoch, as R42 has it.
    pub(super) fn epoch_end(&self, asked: i32) -> EpochEnd {
        let leader = self.leader();
        let Some(&(first, first_start)) = leader.entries.first() else {
            return EpochEnd { epoch: -1, end: -1 };
        };
        if asked < 0 || asked > self.epoch {
            return EpochEnd { epoch: -1, end: -1 };
        }
        if asked == self.epoch {
            return EpochEnd { epoch: asked, end: leader.end };
        }
        if asked < first {
            return EpochEnd { epoch: asked, end: first_start };
        }
        let (epoch, _) =
            leader.entries.iter().rfind(|(epoch, _)| *epoch <= asked).expect("not below the first");
        EpochEnd { epoch: *epoch, end: leader.start_of_next_larger(asked) }
    }
}
