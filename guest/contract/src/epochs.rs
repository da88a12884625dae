//! Leader-epoch history (KIP-101, KIP-279, KIP-320): which epoch began at which offset.

use alloc::vec::Vec;

/// A leader epoch and the first offset that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEntry {
    /// Leader epoch.
    pub epoch: i32,
    /// First offset.
    pub start: i64,
}

/// The answer to `OffsetForLeaderEpoch` (R42).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochAnswer {
    /// The largest epoch that is not above the asked one; -1 = undefined.
    pub epoch: i32,
    /// Where that epoch ends; -1 = undefined.
    pub end: i64,
}

impl EpochAnswer {
    /// Nothing is known of the asked epoch.
    pub const UNDEFINED: Self = Self { epoch: -1, end: -1 };
}

/// Entries with strictly rising epochs and starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochHistory {
    entries: Vec<EpochEntry>,
}

impl EpochHistory {
    /// An empty history.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// A history from entries as stored; `None` unless epochs and starts strictly rise from at least 0.
    #[must_use]
    pub fn from_entries(entries: Vec<EpochEntry>) -> Option<Self> {
        let valid = entries.iter().all(|entry| entry.epoch >= 0 && entry.start >= 0);
        let rising =
            entries.iter().zip(entries.iter().skip(1)).all(|(a, b)| a.epoch < b.epoch && a.start < b.start);
        (valid && rising).then_some(Self { entries })
    }

    /// All entries, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The latest entry.
    #[must_use]
    pub fn last(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// The epoch that covers `offset`: that of the last entry with `start <= offset`.
    #[must_use]
    pub fn at(&self, offset: i64) -> Option<i32> {
        self.entries.iter().rev().find(|entry| entry.start <= offset).map(|entry| entry.epoch)
    }

    /// [`Self::at`] for the offset just below `end`, -1 when nothing covers it.
    #[must_use]
    pub fn before(&self, end: i64) -> i32 {
        end.checked_sub(1).and_then(|offset| self.at(offset)).unwrap_or(-1)
    }

    /// `epoch` begins at `start`. The same epoch again changes nothing; otherwise tail entries that are not below it in
    /// both epoch and start give way.
    pub fn assign(&mut self, epoch: i32, start: i64) {
        if self.last().is_some_and(|last| last.epoch == epoch && start >= last.start) {
            return;
        }
        while self.last().is_some_and(|last| last.epoch >= epoch || last.start >= start) {
            self.entries.pop();
        }
        self.entries.push(EpochEntry { epoch, start });
    }

    /// The log was cut to `end`: entries that start there or later go, also when the log did not get shorter.
    pub fn truncate(&mut self, end: i64) {
        while self.last().is_some_and(|last| last.start >= end) {
            self.entries.pop();
        }
    }

    /// The log now starts at `start`: entries that start there or earlier go, and the last of them comes back as
    /// beginning at `start`.
    pub fn advance_start(&mut self, start: i64) {
        let gone = self.entries.iter().take_while(|entry| entry.start <= start).count();
        if let Some(last) = gone.checked_sub(1).and_then(|index| self.entries.get_mut(index)) {
            last.start = start;
            self.entries.drain(..gone - 1);
        }
    }

    /// Where the asked epoch ends (R42). `shown_epoch` is the partition's current epoch and `current_end` the offset that
    /// answers for it: the high watermark, or on an exact topic the declared source end if that is larger.
    #[must_use]
    pub fn end_for(&self, asked: i32, shown_epoch: i32, current_end: i64) -> EpochAnswer {
        let Some(first) = self.entries.first() else { return EpochAnswer::UNDEFINED };
        if asked < 0 || asked > shown_epoch {
            return EpochAnswer::UNDEFINED;
        }
        if asked == shown_epoch {
            return EpochAnswer { epoch: shown_epoch, end: current_end };
        }
        if asked < first.epoch {
            return EpochAnswer { epoch: asked, end: first.start };
        }
        let next = self.entries.iter().position(|entry| entry.epoch > asked);
        let known = next.unwrap_or(self.entries.len()).checked_sub(1);
        let epoch = known.and_then(|index| self.entries.get(index)).map_or(-1, |entry| entry.epoch);
        let end = next.and_then(|index| self.entries.get(index)).map_or(current_end, |entry| entry.start);
        EpochAnswer { epoch, end }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn history(entries: &[(i32, i64)]) -> EpochHistory {
        let entries = entries.iter().map(|&(epoch, start)| EpochEntry { epoch, start }).collect();
        EpochHistory::from_entries(entries).unwrap_or_default()
    }

    fn ask(entries: &[(i32, i64)], end: i64, asked: i32) -> (i32, i64) {
        let history = history(entries);
        let shown = history.last().map_or(-1, |last| last.epoch);
        let answer = history.end_for(asked, shown, end);
        (answer.epoch, answer.end)
    }

    #[test]
    fn answers_where_an_epoch_ends() {
        let two = [(0, 0), (3, 50)];
        let expected = [(-1, -1), (0, 50), (0, 50), (0, 50), (3, 80), (-1, -1)];
        for (asked, expected) in (-1..=4).zip(expected) {
            assert_eq!(ask(&two, 80, asked), expected, "asked {asked}");
        }
        assert_eq!(ask(&[(5, 10)], 40, 4), (4, 10));
        assert_eq!(ask(&[], 40, 0), (-1, -1));
        assert_eq!(ask(&[(0, 0)], 20, 7), (-1, -1));
    }

    #[test]
    fn an_epoch_shown_without_an_entry_ends_at_the_current_end() {
        let history = history(&[(0, 0)]);
        assert_eq!(history.end_for(2, 3, 20), EpochAnswer { epoch: 0, end: 20 });
        assert_eq!(history.end_for(3, 3, 20), EpochAnswer { epoch: 3, end: 20 });
    }

    #[test]
    fn assigns_truncates_and_advances_as_a_follower() {
        let assigned = |from: &[(i32, i64)], epoch, start| {
            let mut history = history(from);
            history.assign(epoch, start);
            history
        };
        assert_eq!(assigned(&[(0, 0), (2, 10)], 3, 10), history(&[(0, 0), (3, 10)]));
        assert_eq!(assigned(&[(0, 0), (3, 50)], 3, 60), history(&[(0, 0), (3, 50)]));
        assert_eq!(assigned(&[(0, 0), (3, 50)], 3, 40), history(&[(0, 0), (3, 40)]));

        let mut cut = history(&[(0, 0), (2, 10)]);
        cut.truncate(10);
        assert_eq!(cut, history(&[(0, 0)]));

        let mut advanced = history(&[(2, 6), (3, 8), (4, 11)]);
        advanced.advance_start(9);
        assert_eq!(advanced, history(&[(3, 9), (4, 11)]));
        let mut advanced = history(&[(0, 0), (3, 50)]);
        advanced.advance_start(50);
        assert_eq!(advanced, history(&[(3, 50)]));
    }

    #[test]
    fn stored_entries_must_rise() {
        let entry = |epoch, start| EpochEntry { epoch, start };
        assert!(EpochHistory::from_entries(vec![entry(1, 5), entry(1, 9)]).is_none());
        assert!(EpochHistory::from_entries(vec![entry(1, 5), entry(2, 5)]).is_none());
        assert!(EpochHistory::from_entries(vec![entry(-1, 5)]).is_none());
        assert!(EpochHistory::from_entries(vec![entry(0, 5), entry(7, 6)]).is_some());
    }
}
