//! What the in-memory broker remembers of producers and their transactions, as a follower does: it takes what is there
//! and judges nothing.

use std::collections::BTreeMap;

use verbatim_batch::{Batch, ControlType, Header};
use verbatim_contract::{MAX_PRODUCER_BATCHES, ProducerBatch, ProducerState};

/// Producers by id, and the transactions that were aborted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Producers {
    states: BTreeMap<i64, ProducerState>,
    aborted: Vec<Aborted>,
}

/// An aborted transaction (R38).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted {
    /// The producer.
    pub producer_id: i64,
    /// First offset of the transaction.
    pub first_offset: i64,
    /// Offset of the marker that closed it.
    pub last_offset: i64,
}

impl Producers {
    /// What is remembered of one.
    #[must_use]
    pub fn get(&self, producer_id: i64) -> Option<&ProducerState> {
        self.states.get(&producer_id)
    }

    /// All that are remembered, by id.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &ProducerState)> {
        self.states.iter().map(|(&id, state)| (id, state))
    }

    /// Sets what is remembered of one, to begin a test with.
    pub fn insert(&mut self, producer_id: i64, state: ProducerState) {
        self.states.insert(producer_id, state);
    }

    /// Aborted transactions in the order of their markers.
    #[must_use]
    pub fn aborted(&self) -> &[Aborted] {
        &self.aborted
    }

    /// Where the first open transaction begins.
    #[must_use]
    pub fn first_open(&self) -> Option<i64> {
        self.states.values().filter_map(|state| state.open_transaction).min()
    }

    /// Takes note of a batch that was appended.
    pub(super) fn append(&mut self, header: &Header, bytes: &[u8]) {
        let marker = if header.attributes.is_control() { marker(bytes) } else { None };
        // Control batches of other types, and those that a compaction emptied, have no effect (R39).
        if !header.has_producer() || header.attributes.is_control() != marker.is_some() {
            return;
        }
        let new = ProducerState {
            producer_epoch: -1,
            coordinator_epoch: -1,
            last_timestamp: -1,
            open_transaction: None,
            batches: Vec::new(),
        };
        let state = self.states.entry(header.producer_id).or_insert(new);
        if state.producer_epoch != header.producer_epoch {
            state.batches.clear();
        }
        state.producer_epoch = header.producer_epoch;
        state.last_timestamp = header.max_timestamp;
        if let Some((aborts, coordinator_epoch)) = marker {
            state.coordinator_epoch = coordinator_epoch.unwrap_or(state.coordinator_epoch);
            let (producer_id, last_offset) = (header.producer_id, header.base_offset);
            if let Some(first_offset) = state.open_transaction.take().filter(|_| aborts) {
                self.aborted.push(Aborted { producer_id, first_offset, last_offset });
            }
            return;
        }
        if header.attributes.is_transactional() {
            state.open_transaction.get_or_insert(header.base_offset);
        }
        state.batches.push(ProducerBatch {
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            base_offset: header.base_offset,
            last_offset: header.last_offset().unwrap_or(header.base_offset),
            timestamp: header.max_timestamp,
        });
        let excess = state.batches.len().saturating_sub(MAX_PRODUCER_BATCHES);
        state.batches.drain(..excess);
    }
}

/// The first record of a batch that ends a transaction: whether it aborts, and its coordinator's epoch where the value
/// tells.
fn marker(bytes: &[u8]) -> Option<(bool, Option<i32>)> {
    let record = Batch::parse(bytes).ok()?.plain_records()?.next()?.ok()?;
    let aborts = match record.meta().control_key().ok()?.kind {
        ControlType::Abort => true,
        ControlType::Commit => false,
        ControlType::Other(_) => return None,
    };
    let epoch = record.value.and_then(|value| value.get(2..)?.first_chunk().copied());
    Some((aborts, epoch.map(i32::from_be_bytes)))
}
