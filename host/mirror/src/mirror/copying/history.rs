//! The source's leader epochs, as far as the copy does not have them yet, and the epoch just below the copy's end.

use std::collections::VecDeque;

use verbatim_wire::tag::EpochEntry;

/// What is known of leader epochs at the copy's end.
#[derive(Debug)]
pub(super) struct History {
    /// The epoch under which the source is read.
    leader_epoch: i32,
    /// The largest epoch that the copy has or was sent.
    known: i32,
    /// The epoch just below the end; -1 = nothing there.
    before: i32,
    /// Entries above the known one, rising.
    pending: VecDeque<EpochEntry>,
    /// Those that were taken and begin at the end.
    at_end: Vec<EpochEntry>,
}

impl History {
    /// That of a copy whose last entry is of `known` and that has `before` just below its end.
    pub(super) fn new(known: i32, before: i32) -> Self {
        Self { leader_epoch: -1, known, before, pending: VecDeque::new(), at_end: Vec::new() }
    }

    /// What the source told of its epochs above [`History::known`], all of it under this leader epoch.
    pub(super) fn learn(&mut self, leader_epoch: i32, entries: Vec<EpochEntry>) {
        self.leader_epoch = leader_epoch;
        self.pending = entries.into_iter().filter(|entry| entry.epoch > self.known).collect();
    }

    pub(super) fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    pub(super) fn known(&self) -> i32 {
        self.known
    }

    /// The epoch just below the end.
    pub(super) fn before(&self) -> i32 {
        self.before
    }

    /// True if a batch of this epoch tells of one that is not known yet: what was learnt tells no more how the history goes.
    pub(super) fn lacks(&self, epoch: i32, base: i64) -> bool {
        let begins = |entry: &EpochEntry| entry.epoch == epoch && entry.start <= base;
        epoch > self.known && !self.pending.iter().any(begins)
    }

    /// Leaves out an entry of the present leader epoch that begins at `end` or above, if there is any other.
    pub(super) fn forget_unproved(&mut self, end: i64) {
        let is_unproved = |entry: &EpochEntry| entry.epoch == self.leader_epoch && entry.start >= end;
        if (self.known >= 0 || self.pending.len() > 1) && self.pending.back().is_some_and(is_unproved) {
            self.pending.pop_back();
        }
    }

    /// True if an epoch that the copy lacks begins at `end`.
    pub(super) fn begins_at(&self, end: i64) -> bool {
        self.pending.front().is_some_and(|entry| entry.start == end)
    }

    /// True if one begins below it, where the copy has others: the two are no longer aligned.
    pub(super) fn begins_below(&self, end: i64) -> bool {
        self.pending.front().is_some_and(|entry| entry.start < end)
    }

    /// The entries up to and at `end`, to be sent.
    pub(super) fn take(&mut self, end: i64) -> Vec<EpochEntry> {
        let mut taken = Vec::new();
        while let Some(entry) = self.pending.pop_front_if(|entry| entry.start <= end) {
            self.known = self.known.max(entry.epoch);
            taken.push(entry);
        }
        self.at_end.extend(taken.iter().copied());
        taken
    }

    /// A batch of this epoch is sent, which needs no entry if it begins the epoch.
    pub(super) fn append(&mut self, epoch: i32) {
        self.known = self.known.max(epoch);
        self.before = self.before.max(epoch);
    }

    /// The end has moved.
    pub(super) fn move_to(&mut self, end: i64) {
        let below = self.at_end.extract_if(.., |entry| entry.start < end);
        self.before = below.map(|entry| entry.epoch).max().unwrap_or(-1).max(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(epoch: i32, start: i64) -> EpochEntry {
        EpochEntry { epoch, start }
    }

    #[test]
    fn entries_go_with_what_reaches_them_and_count_once_the_end_is_above() {
        let mut history = History::new(2, 2);
        history.learn(9, vec![entry(2, 0), entry(4, 10), entry(6, 20), entry(9, 30)]);
        assert!(!history.begins_at(5) && !history.begins_below(10) && history.begins_below(11));
        assert_eq!(history.take(20), [entry(4, 10), entry(6, 20)]);
        history.append(4);
        history.move_to(20);
        assert_eq!((history.before(), history.known()), (4, 6));
        assert!(history.begins_at(30));
        assert_eq!(history.take(30), [entry(9, 30)]);
        history.move_to(30);
        assert_eq!((history.before(), history.known(), history.leader_epoch()), (6, 9, 9));
        history.move_to(31);
        assert_eq!(history.before(), 9);
    }

    #[test]
    fn a_batch_of_an_epoch_that_was_not_learnt_is_noticed_and_an_entry_without_proof_left_out() {
        let mut history = History::new(2, 2);
        history.learn(9, vec![entry(4, 10), entry(9, 30)]);
        assert!(!history.lacks(2, 5) && !history.lacks(4, 10) && !history.lacks(9, 31));
        assert!(history.lacks(3, 5) && history.lacks(4, 9) && history.lacks(7, 20) && history.lacks(9, 29));
        history.forget_unproved(31);
        assert!(!history.lacks(9, 30));
        history.forget_unproved(30);
        assert!(history.lacks(9, 30));
        history.forget_unproved(10);
        assert!(!history.lacks(4, 10), "an epoch that is not the leader's has data or a later one behind it");
        // The only one there is at all.
        let mut history = History::new(-1, -1);
        history.learn(3, vec![entry(3, 50)]);
        history.forget_unproved(50);
        assert!(history.begins_at(50));
    }

    #[test]
    fn an_epoch_that_a_batch_began_is_not_sent_again() {
        let mut history = History::new(-1, -1);
        history.learn(3, vec![entry(3, 5)]);
        assert_eq!(history.take(7), [entry(3, 5)]);
        history.append(3);
        history.move_to(7);
        history.learn(3, vec![entry(3, 5)]);
        assert!(history.take(100).is_empty());
    }
}
