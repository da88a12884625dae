//! What a log remembers of a producer.

use alloc::vec::Vec;

/// How many batches of a producer are remembered for R33, as in Apache Kafka.
pub const MAX_PRODUCER_BATCHES: usize = 5;

/// The newest state of a producer, as it travels with every batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerLast {
    /// Producer epoch of its last batch.
    pub producer_epoch: i16,
    /// Last sequence number, -1 when only a control record is known.
    pub last_sequence: i32,
    /// Last offset of its last batch, -1 when only a control record is known.
    pub last_offset: i64,
    /// First offset of its open transaction.
    pub open_transaction: Option<i64>,
}

/// One remembered batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerBatch {
    /// First sequence number.
    pub first_sequence: i32,
    /// Last sequence number.
    pub last_sequence: i32,
    /// First offset (the batch's base offset).
    pub base_offset: i64,
    /// Last offset.
    pub last_offset: i64,
    /// Largest timestamp of the batch.
    pub timestamp: i64,
}

/// Everything that is remembered of a producer: at most [`MAX_PRODUCER_BATCHES`] batches, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerState {
    /// Producer epoch; -1 before its first batch.
    pub producer_epoch: i16,
    /// Epoch of the transaction coordinator in its last control record, -1 before the first.
    pub coordinator_epoch: i32,
    /// Timestamp of its last batch or control record, for `producer.id.expiration.ms`.
    pub last_timestamp: i64,
    /// First offset of its open transaction.
    pub open_transaction: Option<i64>,
    /// Its last batches, oldest first.
    pub batches: Vec<ProducerBatch>,
}

impl ProducerState {
    /// The newest state in short.
    #[must_use]
    pub fn last(&self) -> ProducerLast {
        let last = self.batches.last();
        ProducerLast {
            producer_epoch: self.producer_epoch,
            last_sequence: last.map_or(-1, |batch| batch.last_sequence),
            last_offset: last.map_or(-1, |batch| batch.last_offset),
            open_transaction: self.open_transaction,
        }
    }
}
