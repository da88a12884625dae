//! Which batches a reader at read_committed leaves out.

use std::collections::{BTreeSet, HashSet};

use verbatim_batch::{ControlKey, ControlType, Header};

/// The aborted transactions that touch what one fetch answer brought, as it lists them, and how far a walk has come in them.
#[derive(Debug, Default)]
pub(super) struct AbortedTransactions {
    /// First offset and producer id of those that were not reached yet.
    ahead: BTreeSet<(i64, i64)>,
    /// Producers whose aborted transaction is under way.
    open: HashSet<i64>,
}

/// What a batch is to a reader of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its records are given out.
    Data,
    /// Its records are not.
    Hidden,
    /// A control batch whose first key has to be [looked at](AbortedTransactions::marker).
    Marker,
}

impl Verdict {
    /// Without regard to transactions.
    pub(super) fn of(header: &Header) -> Self {
        if header.attributes.is_control() { Self::Hidden } else { Self::Data }
    }
}

impl AbortedTransactions {
    /// From pairs of producer id and first offset.
    pub(super) fn new(listed: &[(i64, i64)]) -> Self {
        let ahead = listed.iter().map(|(producer, first)| (*first, *producer)).collect();
        Self { ahead, open: HashSet::new() }
    }

    /// Comes to a batch.
    pub(super) fn enter(&mut self, header: &Header) -> Verdict {
        if !header.has_producer() {
            return Verdict::of(header);
        }
        let last = header.last_offset().unwrap_or(i64::MAX);
        while let Some(&(first, producer)) = self.ahead.first().filter(|(first, _)| *first <= last) {
            self.ahead.remove(&(first, producer));
            self.open.insert(producer);
        }
        let aborted = self.open.contains(&header.producer_id);
        match (header.attributes.is_control(), aborted) {
            (true, true) => Verdict::Marker,
            (false, true) if header.attributes.is_transactional() => Verdict::Hidden,
            _ => Verdict::of(header),
        }
    }

    /// Reads a control batch's first key: an ABORT ends its producer's transaction.
    pub(super) fn marker(&mut self, header: &Header, key: Option<&[u8]>) {
        let kind = ControlKey::parse(key.unwrap_or_default()).map(|key| key.kind);
        if kind == Ok(ControlType::Abort) {
            self.open.remove(&header.producer_id);
        }
    }
}
