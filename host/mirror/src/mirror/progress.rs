//! What is told of a running mirror: the status of each partition, notes, and events for whoever listens.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;
use verbatim_wire::exact_producer::Source;

use super::state::{Event, GroupStatus, PartitionStatus, Skipped, Snapshot, State, TopicNote};
use super::trouble::{Halt, remedy_of};
use crate::cluster::Partition;

/// Events kept for a listener that is slow; then it loses the oldest.
const EVENTS_MAX: usize = 8_192;
/// Positions of the source that are remembered until the copy has reached them.
const AHEAD_MAX: usize = 64;
/// How long a copy may be behind and still count as caught up.
const A_MOMENT: Duration = Duration::from_secs(1);

/// What is written on for all to see.
#[derive(Debug)]
pub(super) struct Board {
    partitions: Mutex<BTreeMap<Partition, Arc<Cell>>>,
    notes: Mutex<Vec<TopicNote>>,
    groups: Mutex<Vec<GroupStatus>>,
    events: Arc<Events>,
}

/// The way events go; nothing once the mirror has ended.
#[derive(Debug)]
struct Events(Mutex<Option<broadcast::Sender<Event>>>);

/// One partition's place on the board.
#[derive(Debug)]
pub(super) struct Cell {
    inner: Mutex<Inner>,
    events: Arc<Events>,
}

#[derive(Debug)]
struct Inner {
    status: PartitionStatus,
    /// Ends of the source that the copy has not reached, rising, and when they were seen first.
    ahead: VecDeque<(i64, Instant)>,
}

/// What an acknowledged write added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) batches: u64,
    pub(super) records: u64,
    pub(super) bytes: u64,
}

impl Board {
    /// An empty board, and a listener that gets everything from the first event on.
    pub(super) fn new() -> (Self, broadcast::Receiver<Event>) {
        let (sender, receiver) = broadcast::channel(EVENTS_MAX);
        let events = Arc::new(Events(Mutex::new(Some(sender))));
        (
            Self { partitions: Mutex::default(), notes: Mutex::default(), groups: Mutex::default(), events },
            receiver,
        )
    }

    /// The partition's place; a new one at the first time.
    pub(super) fn cell(&self, partition: &Partition) -> Arc<Cell> {
        let mut partitions = lock(&self.partitions);
        let cell = partitions.entry(partition.clone()).or_insert_with(|| {
            let inner = Inner { status: unknown(partition), ahead: VecDeque::new() };
            Arc::new(Cell { inner: Mutex::new(inner), events: Arc::clone(&self.events) })
        });
        Arc::clone(cell)
    }

    /// A note on a topic; once, however often it is made.
    pub(super) fn note(&self, topic: &str, text: impl Into<String>) {
        let note = TopicNote { topic: topic.to_owned(), text: text.into() };
        let mut notes = lock(&self.notes);
        if !notes.contains(&note) {
            notes.push(note.clone());
            self.events.send(Event::Note(note));
        }
    }

    /// Takes back notes on a topic that begin so.
    pub(super) fn forget_notes(&self, topic: &str, beginning: &str) {
        lock(&self.notes).retain(|note| note.topic != topic || !note.text.starts_with(beginning));
    }

    /// Something was done to a topic.
    pub(super) fn done(&self, topic: &str, text: impl Into<String>) {
        self.events.send(Event::Topic(TopicNote { topic: topic.to_owned(), text: text.into() }));
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let partitions = lock(&self.partitions).values().map(|cell| cell.status()).collect();
        let mut notes = lock(&self.notes).clone();
        notes.sort_by(|a, b| a.topic.cmp(&b.topic));
        Snapshot { partitions, notes, groups: lock(&self.groups).clone() }
    }

    /// Where a partition stands, if it is looked after.
    pub(super) fn find(&self, partition: &Partition) -> Option<PartitionStatus> {
        lock(&self.partitions).get(partition).map(|cell| cell.status())
    }

    /// What became of the groups' offsets.
    pub(super) fn set_groups(&self, groups: Vec<GroupStatus>) {
        *lock(&self.groups) = groups;
    }

    /// Nothing happens any more.
    pub(super) fn close(&self) {
        lock(&self.events.0).take();
    }
}

impl Events {
    fn send(&self, event: Event) {
        if let Some(sender) = lock(&self.0).as_ref() {
            // Perhaps nobody listens.
            let _ = sender.send(event);
        }
    }
}

impl Cell {
    pub(super) fn status(&self) -> PartitionStatus {
        let inner = lock(&self.inner);
        let mut status = inner.status.clone();
        let behind = inner.ahead.front().map_or(Duration::ZERO, |(_, seen)| seen.elapsed());
        status.lag_ms = i64::try_from(behind.as_millis()).unwrap_or(i64::MAX);
        status
    }

    /// The partition comes into a state; an event, if that or its reason is news.
    pub(super) fn enter(&self, state: State, reason: Option<String>) {
        self.change(state, reason, remedy_of(state));
    }

    pub(super) fn halt(&self, halt: Halt) {
        self.change(halt.state, Some(halt.reason), Some(halt.remedy.to_owned()));
    }

    /// Where the source stands now.
    pub(super) fn source(&self, source: Source) {
        let mut inner = lock(&self.inner);
        inner.status.source_start = source.start;
        inner.status.source_end = source.end;
        inner.status.source_epoch = source.epoch;
        inner.measure();
        self.behind(inner);
    }

    /// The copy was found to end here, or was cut.
    pub(super) fn end(&self, end: i64) {
        let mut inner = lock(&self.inner);
        inner.status.end = end;
        inner.ahead.clear();
        inner.measure();
    }

    /// A write was acknowledged.
    pub(super) fn acknowledged(&self, end: i64, amount: Amount) {
        let mut inner = lock(&self.inner);
        let status = &mut inner.status;
        status.end = status.end.max(end);
        status.batches = status.batches.saturating_add(amount.batches);
        status.records = status.records.saturating_add(amount.records);
        status.bytes = status.bytes.saturating_add(amount.bytes);
        inner.measure();
        self.behind(inner);
    }

    /// Offsets are skipped; those that were to be skipped from the same place are so no more, as it was tried again.
    pub(super) fn skipped(&self, skipped: Skipped) {
        let all = &mut lock(&self.inner).status.skipped;
        all.retain(|before| before.from != skipped.from);
        all.push(skipped);
    }

    /// Mirroring or caught up, as it is now.
    fn behind(&self, inner: MutexGuard<'_, Inner>) {
        let late = inner.ahead.front().is_some_and(|(_, seen)| seen.elapsed() >= A_MOMENT);
        let state = match inner.status.state {
            State::Mirroring if inner.ahead.is_empty() => State::CaughtUp,
            State::CaughtUp if late => State::Mirroring,
            _ => return,
        };
        drop(inner);
        self.enter(state, None);
    }

    fn change(&self, state: State, reason: Option<String>, remedy: Option<String>) {
        let mut inner = lock(&self.inner);
        let status = &mut inner.status;
        if status.state == state && status.reason == reason {
            return;
        }
        (status.state, status.reason, status.remedy) = (state, reason, remedy);
        drop(inner);
        self.events.send(Event::State(self.status()));
    }
}

impl Inner {
    fn measure(&mut self) {
        let (end, source_end) = (self.status.end, self.status.source_end);
        self.status.lag_records = source_end.saturating_sub(end).max(0);
        while self.ahead.pop_front_if(|(seen, _)| *seen <= end).is_some() {}
        if source_end > end && self.ahead.back().is_none_or(|(seen, _)| *seen < source_end) {
            let full = self.ahead.len() >= AHEAD_MAX;
            match self.ahead.back_mut().filter(|_| full) {
                // The lag is told too long rather than too short.
                Some(last) => last.0 = source_end,
                None => self.ahead.push_back((source_end, Instant::now())),
            }
        }
    }
}

fn unknown(partition: &Partition) -> PartitionStatus {
    PartitionStatus {
        topic: partition.topic.clone(),
        partition: partition.index,
        state: State::Aligning,
        reason: None,
        remedy: None,
        end: 0,
        source_start: 0,
        source_end: -1,
        source_epoch: -1,
        lag_records: 0,
        lag_ms: 0,
        batches: 0,
        records: 0,
        bytes: 0,
        skipped: Vec::new(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn place() -> (Board, broadcast::Receiver<Event>, Arc<Cell>) {
        let (board, events) = Board::new();
        let cell = board.cell(&Partition { topic: "t".to_owned(), index: 3 });
        (board, events, cell)
    }

    fn at(end: i64) -> Source {
        Source { start: 2, end, epoch: 4 }
    }

    #[test]
    fn a_copy_has_caught_up_once_it_ends_where_its_source_does() {
        let (board, mut events, cell) = place();
        cell.end(5);
        cell.enter(State::Mirroring, None);
        cell.source(at(9));
        let amount = Amount { batches: 1, records: 2, bytes: 70 };
        cell.acknowledged(7, amount);
        let status = board.snapshot().partitions.remove(0);
        assert_eq!((status.state, status.end, status.lag_records), (State::Mirroring, 7, 2));
        assert_eq!((status.source_start, status.source_end, status.source_epoch), (2, 9, 4));
        cell.acknowledged(9, amount);
        let status = cell.status();
        assert_eq!((status.state, status.lag_records, status.lag_ms), (State::CaughtUp, 0, 0));
        assert_eq!((status.batches, status.records, status.bytes), (2, 4, 140));
        // Behind again, and not for long.
        cell.source(at(10));
        assert_eq!((cell.status().state, cell.status().lag_records), (State::CaughtUp, 1));
        board.close();
        let states = std::iter::from_fn(|| events.try_recv().ok());
        let states: Vec<_> = states
            .map(|event| match event {
                Event::State(status) => status.state,
                other => unreachable!("{other:?}"),
            })
            .collect();
        assert_eq!(states, [State::Mirroring, State::CaughtUp]);
    }

    #[test]
    fn a_skip_that_is_tried_again_is_told_once() {
        let (_board, _events, cell) = place();
        let skipped = |from, to| Skipped { from, to, reason: "deleted".to_owned() };
        for (from, to) in [(5, 9), (5, 9), (20, 21), (20, 30)] {
            cell.skipped(skipped(from, to));
        }
        assert_eq!(cell.status().skipped, [skipped(5, 9), skipped(20, 30)]);
    }

    #[test]
    fn how_long_a_copy_is_behind_counts_from_the_oldest_end_that_it_has_not_reached() {
        let (_board, _events, cell) = place();
        for end in 1..1_000 {
            cell.source(at(end));
        }
        let seen = |cell: &Cell| lock(&cell.inner).ahead.iter().map(|(end, _)| *end).collect::<Vec<_>>();
        assert_eq!((seen(&cell).len(), seen(&cell).last()), (AHEAD_MAX, Some(&999)));
        let oldest = lock(&cell.inner).ahead.front().unwrap().1;
        cell.acknowledged(0, Amount::default());
        assert_eq!(lock(&cell.inner).ahead.front().unwrap().1, oldest);
        cell.acknowledged(10, Amount::default());
        assert_eq!(seen(&cell).first(), Some(&11));
        cell.acknowledged(999, Amount::default());
        assert!(seen(&cell).is_empty() && cell.status().lag_ms == 0);
    }

    #[test]
    fn a_note_is_made_once_and_taken_back() {
        let (board, mut events, _cell) = place();
        board.note("t", "setting a");
        board.note("t", "setting a");
        board.note("u", "setting a");
        board.forget_notes("t", "setting ");
        assert_eq!(board.snapshot().notes.len(), 1);
        board.close();
        assert_eq!(std::iter::from_fn(|| events.try_recv().ok()).count(), 2);
    }
}
