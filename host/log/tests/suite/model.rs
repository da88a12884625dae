//! What a log must look like, kept the simplest way: as a list of batches.

use std::collections::BTreeMap;

use bytes::Bytes;
use verbatim_batch::{Codec, ControlKey, ControlType, HEADER_LEN, Records};
use verbatim_contract::{Comparison, EpochEntry, EpochHistory, ProducerBatch, ProducerState};
use verbatim_log::{AbortedTransaction, Log, Placed, SourcePosition, TimestampHit};

use crate::batches::{digest, header, next, placed_for};

/// A commit that owns its parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) cut: Option<i64>,
    pub(crate) entries: Vec<EpochEntry>,
    pub(crate) batches: Vec<Vec<u8>>,
    pub(crate) end: Option<i64>,
    pub(crate) start: Option<i64>,
    pub(crate) source: Option<SourcePosition>,
    /// Which of several batches that may have been received the batches are stored for.
    pub(crate) original: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) exact: bool,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) high_watermark: i64,
    pub(crate) shown_epoch: i32,
    pub(crate) epochs: EpochHistory,
    /// All batches that were not cut, those below the start included.
    pub(crate) batches: Vec<Vec<u8>>,
    /// The digest of what was received for each of them.
    pub(crate) digests: Vec<[u8; 32]>,
}

/// Producers, aborted transactions and undecided ones, (first offset, marker's offset or none), by replay.
#[derive(Default)]
pub(crate) struct Replay {
    pub(crate) producers: BTreeMap<i64, ProducerState>,
    pub(crate) aborted: Vec<AbortedTransaction>,
    pub(crate) transactions: Vec<(i64, Option<i64>)>,
}

impl Request {
    pub(crate) fn placed(&self) -> Vec<Placed<'_>> {
        self.batches.iter().map(|batch| placed_for(batch, self.original)).collect()
    }
}

impl Model {
    pub(crate) fn new(exact: bool) -> Self {
        let mut epochs = EpochHistory::new();
        if !exact {
            epochs.assign(0, 0);
        }
        let shown_epoch = if exact { -1 } else { 0 };
        let (batches, digests) = (Vec::new(), Vec::new());
        Self { exact, start: 0, end: 0, high_watermark: 0, shown_epoch, epochs, batches, digests }
    }

    /// The states that a request goes through: after the cut, after each batch, at last.
    pub(crate) fn steps(&self, request: &Request) -> Vec<Self> {
        let mut now = self.clone();
        let mut steps = Vec::new();
        if let Some(to) = request.cut {
            now.batches.retain(|batch| next(batch) <= to);
            now.digests.truncate(now.batches.len());
            now.epochs.truncate(to);
            now.end = to;
            now.high_watermark = to;
            steps.push(now.clone());
        }
        for entry in &request.entries {
            if !now.epochs.entries().contains(entry) {
                now.epochs.assign(entry.epoch, entry.start);
            }
            now.shown_epoch = now.shown_epoch.max(entry.epoch);
        }
        for batch in &request.batches {
            let header = header(batch);
            if header.base_offset < now.end {
                // Only in an empty log (R25); the start stays, so the entry that covers it begins there.
                now.epochs.assign(header.leader_epoch, header.base_offset);
                now.epochs.advance_start(now.start);
            }
            if now.epochs.last().is_none_or(|last| header.leader_epoch > last.epoch) {
                now.epochs.assign(header.leader_epoch, header.base_offset);
            }
            now.shown_epoch = now.shown_epoch.max(header.leader_epoch);
            now.end = next(batch);
            now.batches.push(batch.clone());
            now.digests.push(digest(batch, request.original));
            steps.push(now.clone());
        }
        now.end = now.end.max(request.end.unwrap_or(now.end));
        if let Some(start) = request.start.map(|start| start.min(now.end)).filter(|start| *start > now.start)
        {
            now.start = start;
            now.epochs.advance_start(start);
        }
        steps.push(now);
        steps
    }

    /// The batches that can be read.
    pub(crate) fn readable(&self) -> Vec<u8> {
        self.batches.iter().filter(|batch| next(batch) > self.start).flatten().copied().collect()
    }

    pub(crate) fn replay(&self) -> Replay {
        let mut replay = Replay::default();
        for batch in &self.batches {
            replay.observe(batch);
        }
        replay
    }

    pub(crate) fn stable_offset(&self) -> i64 {
        let replay = self.replay();
        let unstable = replay
            .transactions
            .iter()
            .filter(|(_, marker)| marker.is_none_or(|at| at >= self.high_watermark));
        let unstable = unstable.map(|(first, _)| *first).min().unwrap_or(i64::MAX);
        unstable.min(self.high_watermark).max(self.start)
    }

    /// Panics where the log differs from the model in anything.
    pub(crate) fn check(&self, log: &Log, hint: &str) {
        let position = log.position();
        assert_eq!((position.start, position.end), (self.start, self.end), "start and end, {hint}");
        assert_eq!(position.high_watermark, self.high_watermark, "high watermark, {hint}");
        assert_eq!(position.shown_epoch, self.shown_epoch, "shown epoch, {hint}");
        assert_eq!(log.epochs().entries(), self.epochs.entries(), "epochs, {hint}");
        assert_eq!(position.last_entry, self.epochs.last(), "last entry, {hint}");
        assert!(read_all(log) == self.readable(), "bytes, {hint}");
        assert!(self.has_digests(log, hint), "digests, {hint}");
        self.check_producers(log, hint);
        self.check_times(log, hint);
        assert_eq!(position.stable_offset, self.stable_offset(), "stable offset, {hint}");
        let view = log.view();
        assert_eq!(
            (view.start, view.end, view.high_watermark),
            (self.start, self.end, self.high_watermark),
            "{hint}"
        );
        assert_eq!(view.stable_offset, position.stable_offset, "view, {hint}");
    }

    /// Whether the log, if it keeps digests, has that of each batch that can be read, and takes none for another.
    pub(crate) fn has_digests(&self, log: &Log, hint: &str) -> bool {
        let batches = self.batches.iter().zip(&self.digests).filter(|(batch, _)| next(batch) > self.start);
        !log.keeps_received()
            || batches.into_iter().all(|(batch, digest)| {
                let base = header(batch).base_offset;
                let compare = |digest| {
                    let compared = log.compare_received(batch, digest, base);
                    compared.unwrap_or_else(|error| panic!("{error}, {hint}"))
                };
                let mut other = *digest;
                other[(base % 32) as usize] ^= 1;
                assert_eq!(compare(&other), Comparison::Differs(base), "{hint}");
                compare(digest) == Comparison::Same
            })
    }

    /// Records below the start do not count, also where their batch reaches across it.
    fn check_times(&self, log: &Log, hint: &str) {
        let records: Vec<_> = self.batches.iter().flat_map(|batch| records(batch)).collect();
        let live = || records.iter().filter(|hit| hit.offset >= self.start);
        let newest = live().map(|hit| hit.timestamp).max().unwrap_or(0);
        let some = live().nth(records.len() / 3).or(live().next()).map_or(7, |hit| hit.timestamp);
        let reader = log.reader();
        for asked in [0, some, some + 1, newest, newest + 1].map(|asked| asked.max(0)) {
            let expected = live().find(|hit| hit.timestamp >= asked).copied();
            let found = reader.offset_for_timestamp(asked, self.end, &no_codec).unwrap();
            assert_eq!(found, expected, "first at {asked}, {hint}");
        }
        let expected = live().rev().filter(|hit| hit.timestamp >= 0).max_by_key(|hit| hit.timestamp).copied();
        let found = reader.max_timestamp(self.end, &no_codec).unwrap();
        assert_eq!(found.filter(|hit| hit.timestamp >= 0), expected, "largest, {hint}");
    }

    pub(crate) fn check_producers(&self, log: &Log, hint: &str) {
        let replay = self.replay();
        let producers: BTreeMap<_, _> = log.producers().map(|(id, state)| (id, state.clone())).collect();
        assert_eq!(producers, replay.producers, "producers, {hint}");
        let expected: Vec<_> =
            replay.aborted.iter().filter(|aborted| aborted.last_offset >= self.start).copied().collect();
        assert_eq!(log.reader().aborted(self.start, self.end), expected, "aborted transactions, {hint}");
    }
}

impl Replay {
    fn observe(&mut self, batch: &[u8]) {
        let header = header(batch);
        if header.producer_id < 0 {
            return;
        }
        let unknown = ProducerState {
            producer_epoch: -1,
            coordinator_epoch: -1,
            last_timestamp: -1,
            open_transaction: None,
            batches: Vec::new(),
        };
        let state = self.producers.entry(header.producer_id).or_insert(unknown);
        if state.producer_epoch != header.producer_epoch {
            state.batches.clear();
        }
        state.producer_epoch = header.producer_epoch;
        state.last_timestamp = header.max_timestamp;
        let last_offset = next(batch) - 1;
        if !header.attributes.is_control() {
            state.batches.push(ProducerBatch {
                first_sequence: header.base_sequence,
                last_sequence: header.last_sequence(),
                base_offset: header.base_offset,
                last_offset,
                timestamp: header.max_timestamp,
            });
            let excess = state.batches.len().saturating_sub(5);
            state.batches.drain(..excess);
            if header.attributes.is_transactional() && state.open_transaction.is_none() {
                state.open_transaction = Some(header.base_offset);
                self.transactions.push((header.base_offset, None));
            }
            return;
        }
        let record = Records::new(&batch[HEADER_LEN..], header.record_count).next().unwrap().unwrap();
        state.coordinator_epoch = i32::from_be_bytes(record.value.unwrap()[2..6].try_into().unwrap());
        let Some(first_offset) = state.open_transaction.take() else { return };
        for transaction in self.transactions.iter_mut().filter(|(first, _)| *first == first_offset) {
            transaction.1 = Some(last_offset);
        }
        if ControlKey::parse(record.key.unwrap()).unwrap().kind == ControlType::Abort {
            let open =
                self.transactions.iter().filter(|(_, marker)| marker.is_none()).map(|(first, _)| *first);
            let last_stable_offset = open.min().unwrap_or(last_offset + 1);
            let producer_id = header.producer_id;
            self.aborted.push(AbortedTransaction {
                producer_id,
                first_offset,
                last_offset,
                last_stable_offset,
            });
        }
    }
}

fn records(batch: &[u8]) -> Vec<TimestampHit> {
    let header = header(batch);
    let hit = |record: verbatim_batch::Record<'_>| TimestampHit {
        offset: header.base_offset + i64::from(record.offset_delta),
        timestamp: header.base_timestamp + record.timestamp_delta,
        leader_epoch: header.leader_epoch,
    };
    Records::new(&batch[HEADER_LEN..], header.record_count).map(|record| hit(record.unwrap())).collect()
}

fn no_codec(codec: Codec, _: &[u8]) -> Result<Bytes, String> {
    Err(format!("unexpected codec {codec}"))
}

/// Everything that can be read, from the start to the end, in small reads.
pub(crate) fn read_all(log: &Log) -> Vec<u8> {
    let reader = log.reader();
    let (mut at, end) = (log.position().start, log.position().end);
    let mut all = Vec::new();
    while at < end {
        let bytes = reader.read(at, 300, end, true).unwrap().bytes;
        let Some(last) = verbatim_batch::frames(&bytes).last() else { break };
        at = last.header().unwrap().next_offset().unwrap();
        all.extend_from_slice(&bytes);
    }
    all
}
