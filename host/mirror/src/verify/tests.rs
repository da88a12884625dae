//! The comparison against a model: random keyed logs, compacted as Kafka's cleaner does it, with one difference planted.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod model;
mod planted;
mod redacted;

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use verbatim_batch::Header;

use super::aborted::{Aborted, AbortedTransaction};
use super::compaction::Rules;
use super::compare::{Comparison, Head};
use super::records::Batch;
use super::redaction::Rewriting;
use super::report::{Range, Side};
use super::walk::{Feed, Logs, ReadError, Walked, walk};
use model::{Log, Random};

/// A log in memory: its batches, and its aborted transactions as a broker knows them.
struct Memory {
    source: Vec<Head>,
    target: Vec<Head>,
}

struct MemoryFeed {
    heads: std::vec::IntoIter<Head>,
}

impl Feed for MemoryFeed {
    async fn load(&mut self) -> Result<(), ReadError> {
        Ok(())
    }

    fn head(&self) -> Option<&Head> {
        self.heads.as_slice().first()
    }

    fn pass(&mut self) {
        self.heads.next();
    }

    fn aborted(&mut self) -> Vec<AbortedTransaction> {
        Vec::new()
    }
}

impl Logs for Memory {
    type Feed = MemoryFeed;

    fn open(&self, side: Side, range: Range) -> MemoryFeed {
        let heads = if side == Side::Source { &self.source } else { &self.target };
        let within =
            |head: &&Head| head.batch.last() >= range.from && head.batch.header.base_offset < range.to;
        MemoryFeed { heads: heads.iter().filter(within).cloned().collect::<Vec<_>>().into_iter() }
    }

    async fn end(&self, side: Side) -> Result<i64, ReadError> {
        let heads = if side == Side::Source { &self.source } else { &self.target };
        Ok(heads.last().map_or(0, |head| head.batch.last() + 1))
    }
}

fn heads(log: &Log) -> Vec<Head> {
    let head = |batch: &model::Entry| Head {
        batch: Batch { bytes: Bytes::from(batch.bytes()), header: Header::read(&batch.bytes()).unwrap() },
        aborted: batch.aborted,
        unstable: batch.unstable,
    };
    log.entries.iter().map(head).collect()
}

const RULES: Rules = Rules {
    may_compact: true,
    rewriting: Rewriting::Refused,
    from: 0,
    keys_max: 1_000,
    inflate_bytes_max: 1 << 20,
};

/// What comparing comes to, and the side that lacks records.
fn judge(source: &Log, target: &Log, rules: Rules) -> (Walked, Option<Side>) {
    let range = Range { from: rules.from, to: source.end().max(target.end()) };
    let (walked, comparison) = compared(heads(source), heads(target), range, rules);
    (walked, comparison.compaction.side)
}

fn compared(source: Vec<Head>, target: Vec<Head>, range: Range, rules: Rules) -> (Walked, Comparison) {
    let logs = Memory { source, target };
    let mut comparison = Comparison::new(rules);
    let mut aborted = Aborted::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let walked = runtime.block_on(walk(&logs, &mut comparison, &mut aborted, range, |_, _, _| {})).unwrap();
    (walked, comparison)
}

fn differs_at(walked: &Walked) -> Option<i64> {
    match walked {
        Walked::Differs(difference) => difference.offset,
        _ => None,
    }
}

/// Judges both ways round: which side is the source must not matter.
fn judge_both(full: &Log, compacted: &Log) -> Walked {
    let (one, _) = judge(full, compacted, RULES);
    let (other, _) = judge(compacted, full, RULES);
    assert_eq!(differs_at(&one), differs_at(&other), "{one:?} {other:?}");
    assert_eq!(matches!(one, Walked::Equal), matches!(other, Walked::Equal));
    one
}

proptest! {
    #![proptest_config(crate::testing::cases(400))]

    #[test]
    fn what_the_cleaner_leaves_is_equal(seed in any::<u64>()) {
        let mut random = Random(seed);
        let full = Log::random(&mut random);
        let mut compacted = full.clone();
        for _ in 0..=random.below(2) {
            compacted = compacted.cleaned(&mut random);
        }
        let (walked, side) = judge(&full, &compacted, RULES);
        prop_assert_eq!(walked, Walked::Equal);
        prop_assert_eq!(side.is_some(), full.bytes() != compacted.bytes());
        prop_assert!(side != Some(Side::Source));
        prop_assert_eq!(judge(&compacted, &full, RULES).0, Walked::Equal);
    }

    #[test]
    fn a_log_is_equal_to_itself_and_nothing_may_be_missing_where_nothing_is_compacted(seed in any::<u64>()) {
        let mut random = Random(seed);
        let full = Log::random(&mut random);
        prop_assert_eq!(judge(&full, &full, RULES), (Walked::Equal, None));
        let compacted = full.cleaned(&mut random);
        let strict = Rules { may_compact: false, ..RULES };
        let first = full.entries.iter().find(|entry| !compacted.entries.contains(entry));
        let found = judge(&full, &compacted, strict).0;
        prop_assert_eq!(matches!(found, Walked::Equal), first.is_none());
        if let (Some(first), Some(at)) = (first, differs_at(&found)) {
            prop_assert!((first.base..=first.last()).contains(&at), "{first:?} {at}");
        }
    }

    #[test]
    fn each_planted_difference_is_found_where_it_is(seed in any::<u64>(), kind in 0..planted::KINDS) {
        let mut random = Random(seed);
        let full = Log::random(&mut random);
        let compacted = if random.below(4) == 0 { full.clone() } else { full.cleaned(&mut random) };
        let Some((spoiled, at)) = planted::plant(kind, &full, &compacted, &mut random) else {
            return Ok(());
        };
        let walked = judge_both(&full, &spoiled);
        prop_assert_eq!(differs_at(&walked), Some(at), "kind {} {:?}", kind, walked);
    }
}

#[test]
fn an_emptied_batch_has_the_largest_timestamp_of_what_any_run_left() {
    let mut random = Random(7);
    let mut full = Log::default();
    for _ in 0..2 {
        full.data(&[(1, Some(1)), (2, Some(2)), (3, Some(3))], None, &mut random);
    }
    let first = &mut full.entries[0];
    first.stamped = false;
    for (record, timestamp) in first.records.iter_mut().zip([5, 9, 7]) {
        record.timestamp = timestamp;
    }
    first.max_timestamp = 9;
    for (timestamp, may_be) in [(4, false), (5, true), (6, false), (7, true), (8, false), (9, true)] {
        let mut emptied = full.clone();
        emptied.entries[0].records.clear();
        emptied.entries[0].max_timestamp = timestamp;
        assert_eq!(judge_both(&full, &emptied) == Walked::Equal, may_be, "{timestamp}");
    }
}

#[test]
fn every_kind_is_planted_often_enough() {
    let mut seen = [0; planted::KINDS];
    for seed in 0..500 {
        for (kind, count) in seen.iter_mut().enumerate() {
            let mut random = Random(seed);
            let full = Log::random(&mut random);
            let compacted = full.cleaned(&mut random);
            *count += u32::from(planted::plant(kind, &full, &compacted, &mut random).is_some());
        }
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}

#[test]
fn too_many_missing_keys_are_undecided_by_name() {
    let mut random = Random(7);
    let (full, compacted) = loop {
        let full = Log::random(&mut random);
        let compacted = full.cleaned(&mut random);
        let lacking: BTreeSet<i64> = full.offsets().difference(&compacted.offsets()).copied().collect();
        if lacking.len() > 12 {
            break (full, compacted);
        }
    };
    let (walked, _) = judge(&full, &compacted, Rules { keys_max: 1, ..RULES });
    let Walked::Undecided(why) = walked else { panic!("{walked:?}") };
    assert!(why.contains("keys-max=`1`"), "{why}");
}

#[test]
fn a_tombstone_that_is_gone_must_not_bring_its_key_back() {
    let mut random = Random(1);
    let mut full = Log::default();
    full.data(&[(1, Some(1))], None, &mut random);
    full.data(&[(1, None)], None, &mut random);
    full.data(&[(2, Some(2))], None, &mut random);
    let mut compacted = full.clone();
    compacted.entries.remove(1);
    assert_eq!(differs_at(&judge_both(&full, &compacted)), Some(1));
    compacted.entries.remove(0);
    assert_eq!(judge_both(&full, &compacted), Walked::Equal);
}

#[test]
fn a_record_superseded_behind_the_range_is_not_missed() {
    let mut random = Random(1);
    let mut compacted = Log::default();
    compacted.data(&[(1, Some(1))], None, &mut random);
    compacted.data(&[(2, Some(2))], None, &mut random);
    let full = compacted.clone();
    compacted.data(&[(1, Some(3))], None, &mut random);
    compacted.entries.remove(0);
    let range = Range { from: 0, to: 2 };
    let (walked, comparison) = compared(heads(&compacted), heads(&full), range, RULES);
    assert_eq!((walked, comparison.compaction.side), (Walked::Equal, Some(Side::Source)));
}
