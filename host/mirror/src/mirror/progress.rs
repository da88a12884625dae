//! What is told of a running mirror: the status of each partition, notes, and events for whoever listens.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;
use verbatim_wire::exact_producer::Source;

use super::state::{Event, PartitionStatus, Skipped, Snapshot, State, TopicNote};
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
        (Self { partitions: Mutex::default(), notes: Mutex::default(), events }, receiver)
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
        Snapshot { partitions, notes, groups: Vec::new() }
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

    pub(super) fn skipped(&self, skipped: Skipped) {
        lock(&self.inner).status.skipped.push(skipped);
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
