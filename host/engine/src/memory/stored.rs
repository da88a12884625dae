//! The batches that the in-memory broker keeps, and what can be asked of them.

use std::collections::BTreeMap;

use bytes::Bytes;
use verbatim_batch::{Header, first_difference};
use verbatim_contract::{Comparison, CutPreview, EpochHistory};

use super::Producers;
use crate::{Digest, Incoming, Placed};

/// Stored batches by rising offset, with what is remembered of their producers.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    batches: Vec<(Header, Bytes)>,
    /// Digests of batches as they came, by base offset.
    received: BTreeMap<i64, Digest>,
    producers: Producers,
    /// As they were behind the batches that were dropped below the start, for a cut to begin with.
    below_start: Producers,
}

impl Stored {
    /// The batches, each with its header decoded.
    #[must_use]
    pub fn batches(&self) -> &[(Header, Bytes)] {
        &self.batches
    }

    /// Producers and transactions.
    #[must_use]
    pub fn producers(&self) -> &Producers {
        &self.producers
    }

    /// The same, to begin a test with other ones; a cut makes them anew from the batches.
    pub fn producers_mut(&mut self) -> &mut Producers {
        &mut self.producers
    }

    /// All bytes, one batch behind the other.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.batches.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect()
    }

    /// Appends a placed batch.
    pub fn append(&mut self, placed: &Placed) {
        self.received.extend(placed.received.map(|digest| (placed.header.base_offset, digest)));
        self.push(placed.header, Bytes::from([placed.head.as_slice(), &placed.payload].concat()));
    }

    /// Appends a whole batch as it is, to begin a test with.
    pub fn push(&mut self, header: Header, bytes: Bytes) {
        self.producers.append(&header, &bytes);
        self.batches.push((header, bytes));
    }

    /// Drops the batches from `to` on; producers and transactions become what they were there.
    pub fn cut(&mut self, to: i64) {
        let Self { batches, mut received, below_start, .. } = std::mem::take(self);
        received.split_off(&to);
        *self = Self { batches: Vec::new(), received, producers: below_start.clone(), below_start };
        let kept = batches.into_iter().filter(|(header, _)| header.base_offset < to);
        kept.for_each(|(header, bytes)| self.push(header, bytes));
    }

    /// Drops the batches that end below `start`; what is remembered of their producers stays.
    pub fn advance_start(&mut self, start: i64) {
        let is_left = |(header, _): &(Header, Bytes)| header.last_offset().is_some_and(|last| last >= start);
        let dropped = self.batches.extract_if(.., |batch| !is_left(batch));
        dropped.for_each(|(header, bytes)| {
            self.received.remove(&header.base_offset);
            self.below_start.append(&header, &bytes);
        });
    }

    /// See [`crate::Partition::compare`].
    #[must_use]
    pub fn compare(&self, batch: &Incoming, base_offset: i64) -> Comparison {
        let last = base_offset.saturating_add(i64::from(batch.facts.header.last_offset_delta));
        let touched = self.batches.iter().find(|(stored, _)| {
            stored.base_offset <= last && stored.last_offset().is_some_and(|end| end >= base_offset)
        });
        let received = touched.and_then(|(stored, _)| self.received.get(&stored.base_offset));
        match touched {
            None => Comparison::Absent,
            Some((stored, _)) if stored.base_offset == base_offset && received.is_some() => {
                match received.filter(|digest| **digest == batch.digest()) {
                    Some(_) => Comparison::Same,
                    None => Comparison::Differs(base_offset),
                }
            }
            Some((_, bytes)) if *bytes == batch.bytes => Comparison::Same,
            Some((stored, bytes)) if stored.base_offset == base_offset => {
                Comparison::Differs(first_difference(bytes, &batch.bytes))
            }
            Some((stored, _)) => Comparison::Overlaps(stored.base_offset.max(base_offset)),
        }
    }

    /// See [`crate::Partition::cut`]; the log reaches from `start` to `end`.
    #[must_use]
    pub fn preview(&self, to: i64, (start, end): (i64, i64), epochs: &EpochHistory) -> CutPreview {
        let (left, cut): (Vec<_>, Vec<_>) = epochs.entries().iter().partition(|entry| entry.start < to);
        let inside =
            |header: &Header| header.base_offset < to && header.last_offset().is_some_and(|last| last >= to);
        let batches = self.batches.iter().filter(|(header, _)| header.base_offset >= to);
        let batch_epochs = batches.map(|(header, _)| header.leader_epoch);
        CutPreview {
            at_boundary: (start..=end).contains(&to)
                && !self.batches.iter().any(|(header, _)| inside(header)),
            last_entry: left.last().map(|&&entry| entry),
            highest_epoch_cut: cut.iter().map(|entry| entry.epoch).chain(batch_epochs).max(),
        }
    }
}
