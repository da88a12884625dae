//! What a reader knows of the leader epochs of what it read, and how it finds where a leader's log parts from that.
//!
//! KIP-320 has the reader keep the epochs that it fetched; KIP-279 says how two histories find their largest common end by
//! questions of OffsetForLeaderEpoch alone. Nothing here asks anybody: [`Search`] says what to ask next.

use std::collections::VecDeque;

use verbatim_wire::exact_producer::EpochEnd;

use super::Position;

/// Epochs kept of one partition; older ones are forgotten, as if reading had begun behind them.
const ENTRIES_MAX: usize = 64;

/// The next offset, and the epochs of the offsets below it as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trail {
    next: i64,
    /// By rising epoch and rising start.
    entries: VecDeque<Entry>,
}

/// From `from` on, up to the next entry or the next offset, everything is of this epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    epoch: i32,
    from: i64,
    /// True if something was read below `from` of which no entry tells.
    read_below: bool,
}

/// What a [`Search`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The leader's log holds all that is known to have been read.
    Agreed,
    /// The same, but it has no longer the epoch that the position had: it has this one, up to there.
    AgreedAs(EpochEnd),
    /// Some of what was read is gone.
    Truncated(Truncation),
}

/// How a leader's log parts from what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Truncation {
    /// The first offset that is not what it was; `None` if that cannot be known.
    pub(super) first: Option<EpochEnd>,
    /// The first offset of the next larger epoch that the leader has; `None` if it has none.
    pub(super) next_larger: Option<EpochEnd>,
}

impl Trail {
    /// Nothing is known of what lies below this offset, so no truncation can be noticed.
    pub(super) fn unknown(next: i64) -> Self {
        Self { next, entries: VecDeque::new() }
    }

    /// Somebody read up to the position, and what was read last was of its epoch.
    pub(super) fn read_before(position: Position) -> Self {
        let mut trail = Self::unknown(position.offset);
        if let Some(epoch) = position.leader_epoch {
            let from = position.offset.saturating_sub(1);
            trail.entries.push_back(Entry { epoch, from, read_below: true });
        }
        trail
    }

    /// A leader named this position; nothing below it was read.
    pub(super) fn begins_at(position: Position) -> Self {
        let mut trail = Self::unknown(position.offset);
        if let Some(epoch) = position.leader_epoch {
            trail.entries.push_back(Entry { epoch, from: position.offset, read_below: false });
        }
        trail
    }

    /// The next offset, and the epoch known last.
    pub(super) fn position(&self) -> Position {
        Position { offset: self.next, leader_epoch: self.entries.back().map(|entry| entry.epoch) }
    }

    /// A batch was read: its base offset, the offset behind it, and its epoch (negative = none).
    pub(super) fn read(&mut self, base: i64, next: i64, epoch: i32) {
        let from = base.max(self.next);
        self.next = self.next.max(next);
        if epoch < 0 {
            self.entries.clear();
        } else if self.entries.back().is_none_or(|last| last.epoch != epoch) {
            // An epoch that falls (a leader's own may lie above the data it still copies) takes the later ones away.
            self.put(epoch, from);
        }
    }

    /// Goes back to `at`, up to which both sides agree; its epoch is one that the leader has, and ends there or behind.
    pub(super) fn cut(&mut self, at: EpochEnd) {
        self.next = at.end;
        let kept = |entry: &Entry| entry.from < at.end && entry.epoch <= at.epoch;
        let of_it = self.entries.iter().rfind(|entry| kept(entry)).is_some_and(|last| last.epoch == at.epoch);
        if of_it {
            self.entries.retain(kept);
        } else {
            self.put(at.epoch, at.end);
        }
    }

    /// Adds an entry; later ones and those of a larger epoch give way.
    fn put(&mut self, epoch: i32, from: i64) {
        let read_below = self.entries.front().is_some_and(|first| first.read_below || first.from < from);
        self.entries.retain(|entry| entry.epoch < epoch && entry.from < from);
        let read_below = read_below && self.entries.is_empty() && from > 0;
        self.entries.push_back(Entry { epoch, from, read_below });
        if self.entries.len() > ENTRIES_MAX {
            self.entries.pop_front();
            if let Some(first) = self.entries.front_mut() {
                first.read_below = true;
            }
        }
    }

    /// Where the epoch of entry `index` ends in what was read.
    fn end_of(&self, index: usize) -> i64 {
        index.checked_add(1).and_then(|next| self.entries.get(next)).map_or(self.next, |entry| entry.from)
    }
}

/// The questions that find where a leader's log parts from a trail.
#[derive(Debug)]
pub(super) struct Search<'a> {
    trail: &'a Trail,
    /// The entry whose epoch is asked for.
    index: usize,
    /// The first answer's end where its epoch is smaller: there the next larger epoch begins.
    next_larger: Option<EpochEnd>,
}

impl<'a> Search<'a> {
    /// `None` if no epoch is known: there is nothing to ask.
    pub(super) fn new(trail: &'a Trail) -> Option<Self> {
        Some(Self { trail, index: trail.entries.len().checked_sub(1)?, next_larger: None })
    }

    /// The epoch to ask OffsetForLeaderEpoch for.
    pub(super) fn question(&self) -> i32 {
        self.trail.entries.get(self.index).map_or(-1, |entry| entry.epoch)
    }

    /// Takes the answer; `None` if there is another question.
    pub(super) fn answer(&mut self, answer: EpochEnd) -> Option<Found> {
        let asked = self.question();
        if answer.epoch < 0 || answer.end < 0 || answer.epoch > asked {
            // The leader's own epoch is below ours, or it has none: another history, of which it says nothing.
            return Some(self.truncated(None));
        }
        if answer.epoch == asked {
            return Some(self.common(self.index, answer));
        }
        self.next_larger.get_or_insert(answer);
        let Some(index) = self.trail.entries.iter().rposition(|entry| entry.epoch <= answer.epoch) else {
            return Some(self.nothing_in_common(answer));
        };
        self.index = index;
        if self.question() == answer.epoch { Some(self.common(index, answer)) } else { None }
    }

    /// Both have the epoch of entry `index`: they agree up to the smaller of its two ends.
    fn common(&self, index: usize, answer: EpochEnd) -> Found {
        let end = answer.end.min(self.trail.end_of(index));
        if end >= self.trail.next && answer.epoch == self.trail.position().leader_epoch.unwrap_or(-1) {
            return Found::Agreed;
        }
        self.agreed_up_to(EpochEnd { epoch: answer.epoch, end })
    }

    /// Below `answer.end` the leader has smaller epochs only than any that is known to have been read, and from there on
    /// larger ones only than the one asked for first.
    fn nothing_in_common(&self, answer: EpochEnd) -> Found {
        let next = self.trail.next;
        let (from, unsure) =
            self.trail.entries.front().map_or((next, false), |entry| (entry.from, entry.read_below));
        if unsure && answer.end > from {
            return self.truncated(None);
        }
        self.agreed_up_to(EpochEnd { epoch: answer.epoch, end: answer.end.min(from) })
    }

    fn agreed_up_to(&self, at: EpochEnd) -> Found {
        if at.end >= self.trail.next {
            return Found::AgreedAs(EpochEnd { end: self.trail.next, ..at });
        }
        self.truncated(Some(at))
    }

    fn truncated(&self, first: Option<EpochEnd>) -> Found {
        Found::Truncated(Truncation { first, next_larger: self.next_larger })
    }
}
