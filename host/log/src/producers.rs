//! Idempotent producers and transactions, kept as a follower keeps them (KIP-98).

use std::collections::{BTreeMap, HashMap};

use verbatim_batch::{Codec, ControlKey, ControlType, Header, Records};
use verbatim_contract::{MAX_PRODUCER_BATCHES, ProducerBatch, ProducerState};

use crate::AbortedTransaction;

/// What the log remembers of producers at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Producers {
    states: HashMap<i64, ProducerState>,
    /// Open transactions: first offset to producer id.
    open: BTreeMap<i64, i64>,
    /// Closed transactions, (first offset, marker's offset), whose marker may still be above the high watermark.
    undecided: Vec<(i64, i64)>,
    undo: Option<Undo>,
}

#[derive(Clone, Debug)]
struct Undo {
    states: HashMap<i64, Option<ProducerState>>,
    undecided: usize,
}

struct Marker {
    abort: bool,
    coordinator_epoch: Option<i32>,
}

impl Producers {
    /// Producers as a snapshot holds them.
    pub(crate) fn from_states(states: HashMap<i64, ProducerState>) -> Self {
        let open = states.iter().filter_map(|(id, state)| Some((state.open_transaction?, *id))).collect();
        Self { states, open, ..Self::default() }
    }

    pub(crate) fn get(&self, producer_id: i64) -> Option<&ProducerState> {
        self.states.get(&producer_id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &ProducerState)> {
        self.states.iter().map(|(id, state)| (*id, state))
    }

    /// First offset and producer of every open transaction, in offset order.
    pub(crate) fn open_transactions(&self) -> Vec<(i64, i64)> {
        self.open.iter().map(|(first, id)| (*first, *id)).collect()
    }

    /// The first offset whose transaction is not decided below `high_watermark`.
    pub(crate) fn first_unstable(&self, high_watermark: i64) -> Option<i64> {
        let open = self.open.keys().next().copied();
        let undecided =
            self.undecided.iter().filter(|(_, marker)| *marker >= high_watermark).map(|(first, _)| *first);
        open.into_iter().chain(undecided).min()
    }

    /// Forgets closed transactions whose marker is below the high watermark.
    pub(crate) fn decide(&mut self, high_watermark: i64) {
        self.undecided.retain(|(_, marker)| *marker >= high_watermark);
    }

    /// What comes from now on can be undone by [`Self::rollback`].
    pub(crate) fn begin(&mut self) {
        self.undo = Some(Undo { states: HashMap::new(), undecided: self.undecided.len() });
    }

    /// What came since [`Self::begin`] stays.
    pub(crate) fn keep(&mut self) {
        self.undo = None;
    }

    /// What came since [`Self::begin`] is undone.
    pub(crate) fn rollback(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        self.undecided.truncate(undo.undecided);
        for (id, before) in undo.states {
            let after = match before {
                Some(state) => self.states.insert(id, state),
                None => self.states.remove(&id),
            };
            if let Some(first) = after.and_then(|state| state.open_transaction) {
                self.open.remove(&first);
            }
            if let Some(first) = self.states.get(&id).and_then(|state| state.open_transaction) {
                self.open.insert(first, id);
            }
        }
    }

    /// Takes note of an appended batch; the transaction that it aborts.
    pub(crate) fn observe(&mut self, header: &Header, payload: &[u8]) -> Option<AbortedTransaction> {
        if !header.has_producer() {
            return None;
        }
        if !header.attributes.is_control() {
            self.remember(header);
            self.observe_data(header);
            return None;
        }
        let marker = Marker::read(header, payload)?;
        self.remember(header);
        self.observe_marker(header, &marker)
    }

    /// Forgets idle producers without an open transaction; how many.
    pub(crate) fn expire(&mut self, now_ms: i64, expiration_ms: i64) -> usize {
        let before = self.states.len();
        self.states.retain(|_, state| {
            state.open_transaction.is_some() || now_ms.saturating_sub(state.last_timestamp) < expiration_ms
        });
        before.saturating_sub(self.states.len())
    }

    fn observe_data(&mut self, header: &Header) {
        let state = self.states.entry(header.producer_id).or_insert_with(unknown);
        adopt_epoch(state, header.producer_epoch);
        if state.batches.len() >= MAX_PRODUCER_BATCHES {
            state.batches.remove(0);
        }
        state.batches.push(ProducerBatch {
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            base_offset: header.base_offset,
            last_offset: header.last_offset().unwrap_or(header.base_offset),
            timestamp: header.max_timestamp,
        });
        state.last_timestamp = header.max_timestamp;
        if header.attributes.is_transactional() {
            if state.open_transaction.is_none() {
                state.open_transaction = Some(header.base_offset);
                self.open.insert(header.base_offset, header.producer_id);
            }
        } else if state.open_transaction.is_some() {
            let (producer_id, offset) = (header.producer_id, header.base_offset);
            tracing::warn!(producer_id, offset, "plain data while the producer's transaction is open");
        }
    }

    fn observe_marker(&mut self, header: &Header, marker: &Marker) -> Option<AbortedTransaction> {
        let state = self.states.entry(header.producer_id).or_insert_with(unknown);
        adopt_epoch(state, header.producer_epoch);
        state.coordinator_epoch = marker.coordinator_epoch.unwrap_or(state.coordinator_epoch);
        state.last_timestamp = header.max_timestamp;
        let first_offset = state.open_transaction.take()?;
        self.open.remove(&first_offset);
        // The marker is the batch's first record, whatever else it may span; so Kafka counts, too.
        let last_offset = header.base_offset;
        self.undecided.push((first_offset, last_offset));
        let last_stable_offset = self.open.keys().next().copied().unwrap_or(last_offset.saturating_add(1));
        marker.abort.then_some(AbortedTransaction {
            producer_id: header.producer_id,
            first_offset,
            last_offset,
            last_stable_offset,
        })
    }

    fn remember(&mut self, header: &Header) {
        let id = header.producer_id;
        if let Some(undo) = &mut self.undo {
            undo.states.entry(id).or_insert_with(|| self.states.get(&id).cloned());
        }
    }
}

impl Marker {
    /// The marker that a control batch begins with; none where it is empty, compressed, which no marker is, or holds
    /// another control record (R39).
    fn read(header: &Header, payload: &[u8]) -> Option<Self> {
        if header.attributes.codec() != Ok(Codec::None) {
            return None;
        }
        let record = Records::new(payload, header.record_count).next()?.ok()?;
        let abort = match ControlKey::parse(record.key?).ok()?.kind {
            ControlType::Abort => true,
            ControlType::Commit => false,
            ControlType::Other(_) => return None,
        };
        let epoch = record.value.and_then(|value| value.get(2..)?.first_chunk().copied());
        Some(Self { abort, coordinator_epoch: epoch.map(i32::from_be_bytes) })
    }
}

/// Another epoch of a producer forgets the batches of the one before.
fn adopt_epoch(state: &mut ProducerState, epoch: i16) {
    if state.producer_epoch != epoch {
        state.producer_epoch = epoch;
        state.batches.clear();
    }
}

fn unknown() -> ProducerState {
    ProducerState {
        producer_epoch: -1,
        coordinator_epoch: -1,
        last_timestamp: -1,
        open_transaction: None,
        batches: Vec::new(),
    }
}
