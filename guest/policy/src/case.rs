//! What a call is about.

use verbatim_contract::{Batch, EpochEntry, Policy, Position, Request};

/// One call's arguments under one name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) position: &'a Position,
    pub(crate) request: &'a Request,
    /// The tag's leader-epoch entries.
    pub(crate) entries: &'a [EpochEntry],
    pub(crate) batches: &'a [Batch],
}

impl<'a> Case<'a> {
    /// The batches with their index in the request.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, &'a Batch)> {
        (0..).zip(self.batches)
    }

    /// N of R19 and R22: where the writer wants its first batch, by the tag alone.
    pub(crate) fn declared_end(&self) -> i64 {
        self.request.truncate_to.unwrap_or(self.request.expected_end)
    }

    /// The offset behind the last batch; `None` without batches or where it overflows (R6).
    pub(crate) fn batches_end(&self) -> Option<i64> {
        self.batches.last().and_then(|batch| batch.header.next_offset())
    }
}
