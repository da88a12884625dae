//! The aborted transactions that both sides list, compared.

use std::collections::BTreeSet;

use super::report::{Both, Difference, Range, Side};

/// Differences that are held at most; with more, some are enough.
const HELD_MAX: usize = 10_000;

/// An aborted transaction, as a fetch answer lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(super) struct AbortedTransaction {
    /// Its first offset.
    pub(super) first: i64,
    /// Its producer.
    pub(super) producer_id: i64,
}

/// Those that only one side has listed so far.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Aborted {
    alone: Both<BTreeSet<AbortedTransaction>>,
}

impl Aborted {
    /// A side lists one. Each is told once.
    pub(super) fn list(&mut self, side: Side, transaction: AbortedTransaction) {
        let other = self.alone.of_mut(side.other());
        if !other.remove(&transaction) && self.alone.of(side).len() < HELD_MAX {
            self.alone.of_mut(side).insert(transaction);
        }
    }

    /// The first that one side lists and the other does not, of those that both can know: begun in the range, below both stable
    /// offsets. `compacted` may lack some. A transaction that began below the range may begin with it on a side that
    /// does not have its first batches.
    pub(super) fn difference(
        &self,
        range: Range,
        stable: i64,
        compacted: Option<Side>,
    ) -> Option<Difference> {
        let of = |side: Side| {
            let began_before = |transaction: &AbortedTransaction| {
                let before = if compacted == Some(side) { transaction.first } else { range.from };
                let other = self.alone.of(side.other()).iter();
                other
                    .take_while(|one| one.first < before)
                    .any(|one| one.producer_id == transaction.producer_id)
            };
            let excused = compacted == Some(side.other());
            let mut alone = self.alone.of(side).iter().filter(|one| !excused && one.first >= range.from);
            let first = alone.find(|one| one.first < range.to.min(stable) && !began_before(one));
            first.map(|one| (one.first, one.producer_id, side))
        };
        let (first, producer, side) =
            [Side::Source, Side::Target].into_iter().filter_map(of).min_by_key(|one| one.0)?;
        Some(Difference::new(
            first,
            format!(
                "only the {side} lists an aborted transaction of producer {producer} that begins at offset {first}"
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_lists_alone_is_a_difference_unless_that_side_may_lack_it() {
        let one = |first, producer_id| AbortedTransaction { first, producer_id };
        let range = Range { from: 10, to: 100 };
        let mut aborted = Aborted::default();
        aborted.list(Side::Source, one(20, 1));
        aborted.list(Side::Target, one(30, 2));
        aborted.list(Side::Target, one(20, 1));
        let offset = |aborted: &Aborted, stable, compacted| {
            aborted.difference(range, stable, compacted).and_then(|difference| difference.offset)
        };
        assert_eq!(offset(&aborted, 100, None), Some(30));
        assert_eq!(offset(&aborted, 100, Some(Side::Target)), Some(30));
        assert_eq!(offset(&aborted, 100, Some(Side::Source)), None);
        let mut cut = Aborted::default();
        cut.list(Side::Source, one(20, 1));
        cut.list(Side::Target, one(22, 1));
        assert_eq!(offset(&cut, 100, None), Some(20));
        assert_eq!(offset(&cut, 100, Some(Side::Target)), None, "its first batch is compacted away");
        assert_eq!(offset(&cut, 100, Some(Side::Source)), Some(20));
        assert_eq!(offset(&aborted, 30, None), None, "it may not have ended on the other side");
        aborted.list(Side::Source, one(3, 2));
        assert_eq!(offset(&aborted, 100, None), None, "it began below the range");
    }
}
