//! Targets that a module has redacted, made of random sources as a host makes them, with one lie planted.

mod lies;
mod resumed;

use bytes::Bytes;
use proptest::prelude::*;
use verbatim_batch::{Codec, HEADER_LEN, Header, Record, RecordHeader, Records, TimestampType, assemble};

use super::super::compaction::Rules;
use super::super::compare::{Comparison, Head, certain_difference};
use super::super::records::Batch;
use super::super::redaction::{Redaction, Rewriting};
use super::super::report::{Range, Side};
use super::super::walk::Walked;
use super::model::{Log, Random};
use super::{RULES, compared, differs_at, heads};

const ACCEPTED: Rules = Rules { may_compact: false, rewriting: Rewriting::Accepted, ..RULES };
const ALLOWED: Rules = Rules { rewriting: Rewriting::Allowed, ..ACCEPTED };
const REFUSED: Rules = Rules { rewriting: Rewriting::Refused, ..ACCEPTED };

/// A record to be written; its headers may be masked.
pub(super) struct Mine<'a> {
    record: Record<'a>,
    masked: bool,
}

/// A source and what a module left of it.
struct Twins {
    source: Vec<Head>,
    target: Vec<Head>,
    count: Redaction,
    /// The first offset that was redacted.
    first: Option<i64>,
}

impl Twins {
    fn random(random: &mut Random) -> Self {
        let source = heads(&Log::random(random));
        let mut twins = Self { target: source.clone(), source, count: Redaction::default(), first: None };
        for index in 0..twins.target.len() {
            if !is_control(&twins.source[index]) && random.one_in(2) {
                twins.redact(index, random);
            }
        }
        twins
    }

    /// What a module may make of a batch, and a host stores: some records dropped, some changed.
    fn redact(&mut self, index: usize, random: &mut Random) {
        let (drop_in, mut count, mut first) = (1 + random.below(3), Redaction::default(), None);
        let batch = remade(&self.source[index].batch, |header, records| {
            let mut left = Vec::new();
            for mut mine in records.drain(..) {
                let (dropped, changed) = (random.one_in(drop_in), random.one_in(3));
                count.records_dropped += u64::from(dropped);
                count.records_changed += u64::from(changed && !dropped);
                if dropped || changed {
                    first.get_or_insert(header.base_offset + i64::from(mine.record.offset_delta));
                }
                match random.below(3) {
                    _ if !changed => {}
                    0 => mine.record.key = Some(b"another key"),
                    1 => mine.record.value = Some(b"***"),
                    _ => mine.masked = true,
                }
                left.extend((!dropped).then_some(mine));
            }
            *records = left;
            as_a_host_does(header, records);
        });
        if first.is_some() {
            self.first = self.first.or(first);
            self.count.add(Redaction { batches: 1, ..count });
            self.target[index].batch = batch;
        }
    }

    fn range(&self) -> Range {
        let to = self.source.iter().chain(&self.target).map(|head| head.batch.last() + 1).max();
        Range { from: 0, to: to.unwrap_or(0) }
    }

    fn judge(&self, rules: Rules) -> (Walked, Comparison) {
        compared(self.source.clone(), self.target.clone(), self.range(), rules)
    }
}

/// What a host does with the header of a batch that a module rewrote.
fn as_a_host_does(header: &mut Header, records: &[Mine<'_>]) {
    let largest = records.iter().map(|mine| header.base_timestamp + mine.record.timestamp_delta).max();
    match largest {
        Some(largest) if header.attributes.timestamp_type() == TimestampType::CreateTime => {
            header.max_timestamp = largest;
        }
        Some(_) => {}
        None => header.attributes = header.attributes.with_codec(Codec::None),
    }
}

/// The batch with another header and other records; length, checksum and number of records fit.
fn remade(batch: &Batch, change: impl FnOnce(&mut Header, &mut Vec<Mine<'_>>)) -> Batch {
    let mut header = batch.header;
    let payload = batch.bytes.slice(HEADER_LEN..);
    let plain = verbatim_compression::inflate(header.attributes, payload, 1 << 20).unwrap();
    let records = Records::new(&plain, header.record_count);
    let mut records: Vec<Mine<'_>> =
        records.map(|record| Mine { record: record.unwrap(), masked: false }).collect();
    change(&mut header, &mut records);
    let mut written = Vec::new();
    for Mine { record, masked } in &records {
        let mask = |one| if *masked { RecordHeader { value: Some(b"***"), ..one } } else { one };
        record.write(record.value, mask, &mut written).unwrap();
    }
    header.record_count = i32::try_from(records.len()).unwrap();
    let codec = header.attributes.codec().unwrap();
    read(assemble(&header, &verbatim_compression::deflate(codec, &written).unwrap()).unwrap())
}

fn read(bytes: Vec<u8>) -> Batch {
    Batch { header: Header::read(&bytes).unwrap(), bytes: Bytes::from(bytes) }
}

fn is_control(head: &Head) -> bool {
    head.batch.header.attributes.is_control()
}

/// The verdict would be `redacted`.
fn is_redacted((walked, comparison): &(Walked, Comparison)) -> bool {
    *walked == Walked::Equal && comparison.redaction.batches > 0 && comparison.compaction.side.is_none()
}

proptest! {
    #![proptest_config(crate::testing::cases(400))]

    #[test]
    fn what_a_module_leaves_is_redacted_and_counted(seed in any::<u64>(), may_compact in any::<bool>()) {
        let twins = Twins::random(&mut Random(seed));
        let (walked, comparison) = twins.judge(Rules { may_compact, ..ACCEPTED });
        prop_assert_eq!(walked, Walked::Equal);
        prop_assert_eq!((comparison.redaction, comparison.compaction.side), (twins.count, None));
        let same = twins.source.iter().zip(&twins.target).all(|(s, t)| s.batch == t.batch);
        prop_assert_eq!(comparison.digest.source == comparison.digest.target, same);
    }

    #[test]
    fn who_does_not_accept_it_is_told_the_first_redacted_offset(seed in any::<u64>(), may_compact in any::<bool>()) {
        let twins = Twins::random(&mut Random(seed));
        let (walked, _) = twins.judge(Rules { may_compact, ..ALLOWED });
        prop_assert_eq!(differs_at(&walked), twins.first);
        if let Walked::Differs(difference) = walked {
            prop_assert!(difference.what.contains("produce.at.offset.rewrite=allow"), "{}", difference.what);
            prop_assert!(difference.what.contains("--allow-redacted would accept"), "{}", difference.what);
        }
        let (walked, _) = twins.judge(REFUSED);
        prop_assert_eq!(differs_at(&walked), twins.first, "a topic that does not allow it");
        let told = format!("{walked:?}");
        prop_assert!(!told.contains("allow-redacted"), "{}", told);
    }

    #[test]
    fn each_lie_is_found_where_it_is(seed in any::<u64>(), kind in 0..lies::KINDS) {
        let mut random = Random(seed);
        let mut twins = Twins::random(&mut random);
        let Some(at) = lies::plant(kind, &mut twins, &mut random) else { return Ok(()) };
        let (walked, _) = twins.judge(ACCEPTED);
        prop_assert_eq!(differs_at(&walked), Some(at), "kind {} {:?}", kind, walked);
        // Compaction could have made some of them; then it is that, or open, but never redaction.
        let compacted = twins.judge(Rules { may_compact: true, ..ACCEPTED });
        prop_assert!(!is_redacted(&compacted), "kind {} {:?}", kind, compacted);
    }

    #[test]
    fn a_source_that_was_compacted_later_is_never_redacted_by_luck(seed in any::<u64>()) {
        let mut random = Random(seed);
        let full = Log::random(&mut random);
        let mut twins = Twins { source: heads(&full), target: heads(&full), count: Redaction::default(), first: None };
        for index in 0..twins.target.len() {
            if !is_control(&twins.source[index]) && random.one_in(3) {
                twins.redact(index, &mut random);
            }
        }
        twins.source = heads(&full.cleaned(&mut random));
        let found = twins.judge(Rules { may_compact: true, ..ACCEPTED });
        if is_redacted(&found) {
            let bases = |heads: &[Head]| heads.iter().map(|head| head.batch.header.base_offset).collect::<Vec<_>>();
            prop_assert_eq!(bases(&twins.source), bases(&twins.target));
            for (s, t) in twins.source.iter().zip(&twins.target) {
                let offsets = |head: &Head| {
                    let inflated = head.batch.inflated(1 << 20).unwrap();
                    inflated.records().map(|placed| (placed.offset, placed.timestamp)).collect::<Vec<_>>()
                };
                let held = offsets(s);
                prop_assert!(offsets(t).iter().all(|one| held.contains(one)), "{s:?} {t:?}");
            }
        }
    }

    #[test]
    fn a_mirror_takes_a_redacted_last_batch_for_its_own_and_no_other(seed in any::<u64>(), kind in 0..lies::KINDS) {
        let mut random = Random(seed);
        let twins = Twins::random(&mut random);
        let differing = |twins: &Twins, may_rewrite| {
            let pairs = twins.source.iter().zip(&twins.target);
            pairs.filter_map(|(s, t)| certain_difference(&s.batch.bytes, &t.batch.bytes, may_rewrite)).count()
        };
        prop_assert_eq!(differing(&twins, true), 0);
        if twins.count.records_changed > 0 && twins.count.records_dropped == 0 {
            prop_assert!(differing(&twins, false) > 0);
        }
        // Where the broker's clock has stamped a batch, its cleaner does not keep the records' own times.
        let is_stamped = |at: i64| {
            let head = twins.source.iter().find(|head| head.batch.last() >= at);
            head.unwrap().batch.header.attributes.timestamp_type() == TimestampType::LogAppendTime
        };
        let mut spoiled = Twins { source: twins.source.clone(), target: twins.target.clone(), ..twins };
        let at = lies::plant(kind, &mut spoiled, &mut random).filter(|_| lies::IS_NO_COMPACTION[kind]);
        if at.is_some_and(|at| !is_stamped(at)) {
            prop_assert_eq!(differing(&spoiled, true), 1, "kind {}", kind);
        }
    }
}

#[test]
fn both_together_are_undecided() {
    let mut random = Random(3);
    let mut full = Log::default();
    for key in 0..3 {
        full.data(&[(key, Some(1)), (9, Some(key))], None, &mut random);
    }
    let rules = Rules { may_compact: true, ..ACCEPTED };
    // In one batch, and in one below or above the other; what a module does is masking or dropping.
    for (compacted, redacted) in [(0, 0), (0, 1), (1, 0)] {
        let (mut source, target) = (heads(&full), heads(&full));
        // The record of key 9, which the last batch supersedes.
        source[compacted].batch = remade(&source[compacted].batch, |header, records| {
            records.remove(1);
            as_a_host_does(header, records);
        });
        let mut twins = Twins { source, target, count: Redaction::default(), first: None };
        let (walked, comparison) = twins.judge(rules);
        assert_eq!((walked, comparison.compaction.side), (Walked::Equal, Some(Side::Source)));

        let whole = twins.target.clone();
        let masked = remade(&whole[redacted].batch, |_, records| records[0].record.value = Some(b"***"));
        let dropped = remade(&whole[redacted].batch, |header, records| {
            records.remove(0);
            as_a_host_does(header, records);
        });
        for (what, batch) in [("masked", masked), ("dropped", dropped)] {
            twins.target = whole.clone();
            twins.target[redacted].batch = batch;
            let (found, _) = twins.judge(rules);
            let Walked::Undecided(why) = found else { panic!("{what} {compacted} {redacted}: {found:?}") };
            assert!(why.contains("compacted") && why.contains("redacted"), "{why}");
            let (strict, _) = twins.judge(Rules { rewriting: Rewriting::Allowed, ..rules });
            assert!(matches!(strict, Walked::Differs(_)), "{what} {compacted} {redacted}: {strict:?}");
        }
    }
}

#[test]
fn a_batch_that_was_only_packed_anew_counts_and_is_told_at_its_base() {
    let mut random = Random(5);
    let mut log = Log::default();
    log.data(&[(1, Some(1)), (2, Some(2))], None, &mut random);
    log.entries[0].codec = Codec::Gzip;
    let source = heads(&log);
    let mut target = source.clone();
    let mut bytes = target[0].batch.bytes.to_vec();
    // A gzip member's time of modification.
    bytes[HEADER_LEN + 4] ^= 1;
    verbatim_batch::reseal(&mut bytes).unwrap();
    target[0].batch = read(bytes);
    let twins =
        Twins { source, target, count: Redaction { batches: 1, ..Redaction::default() }, first: Some(0) };
    let (walked, comparison) = twins.judge(ACCEPTED);
    assert_eq!((walked, comparison.redaction), (Walked::Equal, twins.count));
    assert_eq!(differs_at(&twins.judge(ALLOWED).0), Some(0));
}

#[test]
fn records_larger_than_may_be_looked_at_leave_it_open() {
    let mut random = Random(5);
    let twins =
        std::iter::repeat_with(|| Twins::random(&mut random)).find(|twins| twins.count.batches > 3).unwrap();
    let (walked, _) = twins.judge(Rules { inflate_bytes_max: 1, ..ACCEPTED });
    assert!(matches!(walked, Walked::Undecided(_)), "{walked:?}");
    let (walked, _) = twins.judge(Rules { inflate_bytes_max: 1, ..ALLOWED });
    assert!(matches!(walked, Walked::Differs(_)), "they differ for certain: {walked:?}");
}
