//! From batches to records.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use verbatim_batch::{Attributes, BatchBuilder, Codec, ControlType, NewRecord, TimestampType, reseal};
use verbatim_compression::{InflateError, deflate};

use crate::cluster::Partition;
use crate::reader::aborted::AbortedTransactions;
use crate::reader::records::Walk;
use crate::reader::{Position, ReadErrorKind, Record};

const LIMIT: usize = 1 << 20;

fn walk(from: i64, aborted: Option<&[(i64, i64)]>, batches: &[Vec<u8>]) -> Walk {
    let partition = Arc::new(Partition { topic: "walked".to_owned(), index: 3 });
    let aborted = aborted.map(AbortedTransactions::new);
    Walk::new(partition, Position::new(from, None), Bytes::from(batches.concat()), aborted, LIMIT)
}

fn all(mut walk: Walk) -> (Vec<Record>, Position) {
    let mut records = Vec::new();
    while let Some(record) = walk.next().expect("nothing is wrong with it") {
        assert_eq!(walk.position(), record.next_position());
        records.push(record);
    }
    (records, walk.position())
}

fn offsets(records: &[Record]) -> Vec<i64> {
    records.iter().map(|record| record.offset).collect()
}

fn data(base: i64, deltas: &[i32]) -> BatchBuilder<'static> {
    let records = deltas.iter().map(|delta| NewRecord::new(*delta, 1_000 + i64::from(*delta)).value(b"v"));
    records.fold(BatchBuilder::new(base).leader_epoch(4), BatchBuilder::record)
}

fn built(builder: &BatchBuilder<'_>) -> Vec<u8> {
    builder.build().expect("a batch")
}

#[test]
fn a_record_has_all_that_its_batch_says_of_it() {
    let first = NewRecord::new(0, 1_000).key(b"k").value(b"").header(b"h", None).header(b"h", Some(b"1"));
    let batch = built(&BatchBuilder::new(70).leader_epoch(4).record(first).record(NewRecord::new(2, 900)));
    let (records, position) = all(walk(70, None, &[batch]));
    assert_eq!((offsets(&records), position), (vec![70, 72], Position::new(73, Some(4))));
    let [first, second] = &records[..] else { panic!("two records") };
    assert_eq!((first.partition.to_string(), first.leader_epoch), ("walked-3".to_owned(), Some(4)));
    assert_eq!((first.timestamp, first.timestamp_type), (1_000, TimestampType::CreateTime));
    assert_eq!((first.key.as_deref(), first.value.as_deref()), (Some(&b"k"[..]), Some(&b""[..])));
    let headers: Vec<_> = first.headers().map(|one| (one.key, one.value)).collect();
    let key = Bytes::from_static(b"h");
    assert_eq!(headers, [(key.clone(), None), (key, Some(Bytes::from_static(b"1")))]);
    assert_eq!(second.headers().count(), 0);
    assert_eq!((second.timestamp, &second.key, &second.value), (900, &None, &None));
}

#[test]
fn reading_begins_inside_a_batch_and_leaves_out_what_a_compaction_did() {
    // A gap inside the first, its last record gone; then an emptied batch, a gap, and one that has lost its first record.
    let emptied = BatchBuilder::new(20).leader_epoch(5).producer(7, 0, 0).last_offset_delta(9);
    let run = [built(&data(10, &[0, 3, 4]).last_offset_delta(9)), built(&emptied), built(&data(40, &[2]))];
    let (records, position) = all(walk(13, None, &run));
    assert_eq!((offsets(&records), position), (vec![13, 14, 42], Position::new(43, Some(4))));
    let (records, position) = all(walk(15, None, &run[..2]));
    assert_eq!((offsets(&records), position), (vec![], Position::new(30, Some(5))));
    // What lies below the position is not even looked at.
    let (records, position) = all(walk(30, None, &[run[0].clone(), built(&data(30, &[0]))]));
    assert_eq!((offsets(&records), position), (vec![30], Position::new(31, Some(4))));
}

#[test]
fn times_are_the_brokers_where_the_batch_says_so_and_count_from_the_horizon_where_there_is_one() {
    let broker = built(&data(0, &[0, 1]).log_append_time(5_000));
    let (records, _) = all(walk(0, None, &[broker]));
    let times: Vec<_> = records.iter().map(|record| (record.timestamp, record.timestamp_type)).collect();
    assert_eq!(times, [(5_000, TimestampType::LogAppendTime); 2]);
    // The builder counts the deltas from the horizon, as the cleaner does: times stay what they were.
    let horizon = built(&data(0, &[0, 1]).delete_horizon(9_000_000));
    let (records, _) = all(walk(0, None, &[horizon]));
    assert_eq!(records.iter().map(|record| record.timestamp).collect::<Vec<_>>(), [1_000, 1_001]);
}

#[test]
fn only_read_committed_leaves_out_what_was_aborted() {
    let of = |producer, base: i64| built(&data(base, &[0, 1]).producer(producer, 0, 0).transactional());
    let end = |producer, at, kind| BatchBuilder::marker(at, (producer, 0), 2_000, kind, 0).expect("a marker");
    let run = [
        of(1, 0),                                // 0, 1: aborted
        of(2, 2),                                // 2, 3: committed
        built(&data(4, &[0]).producer(1, 0, 0)), // 4: by the same producer, in no transaction
        end(1, 5, ControlType::Abort),
        of(1, 6), // 6, 7: committed
        end(1, 8, ControlType::Commit),
        of(1, 9), // 9, 10: aborted
        end(2, 11, ControlType::Commit),
        end(1, 12, ControlType::Abort),
        of(1, 13), // 13, 14: committed later
    ];
    let (records, position) = all(walk(0, None, &run));
    assert_eq!(offsets(&records), [0, 1, 2, 3, 4, 6, 7, 9, 10, 13, 14]);
    assert_eq!(position.offset, 15);
    let (records, position) = all(walk(0, Some(&[(1, 9), (1, 0)]), &run));
    assert_eq!(offsets(&records), [2, 3, 4, 6, 7, 13, 14]);
    assert_eq!(position.offset, 15);
    // An answer lists those that began before its first batch as well.
    let (records, _) = all(walk(10, Some(&[(1, 9)]), &run[6..]));
    assert_eq!(offsets(&records), [13, 14]);
    let (records, position) = all(walk(0, Some(&[(1, 0)]), &run[..1]));
    assert_eq!((offsets(&records), position), (vec![], Position::new(2, Some(4))));
}

#[test]
fn every_codec_is_read_and_plain_records_are_not_copied() {
    for codec in Codec::ALL {
        let builder = data(0, &[0, 1, 2]).attributes(Attributes::default().with_codec(codec));
        let plain = builder.plain_records().expect("records");
        let batch = match codec {
            Codec::None => built(&builder),
            codec => {
                builder.build_compressed(codec, &deflate(codec, &plain).expect("deflated")).expect("a batch")
            }
        };
        let batches = Bytes::from(batch);
        let partition = Arc::new(Partition { topic: "walked".to_owned(), index: 0 });
        let walk = Walk::new(partition, Position::new(0, None), batches.clone(), None, LIMIT);
        let (records, _) = all(walk);
        assert_eq!(offsets(&records), [0, 1, 2], "{codec}");
        let value = records[0].value.clone().expect("a value");
        assert_eq!(batches.as_ptr_range().contains(&value.as_ptr()), codec == Codec::None, "{codec}");
    }
}

#[test]
fn what_cannot_be_read_is_named_and_ends_the_walk() {
    let zeros = deflate(Codec::Gzip, &vec![0; LIMIT + 1]).expect("deflated");
    let bomb = data(10, &[0, 4]).build_compressed(Codec::Gzip, &zeros).expect("a batch");
    let good = built(&data(8, &[0, 1]));
    let mut bombed = walk(8, None, &[good.clone(), bomb, built(&data(15, &[0]))]);
    assert_eq!(bombed.next().expect("good").map(|record| record.offset), Some(8));
    assert_eq!(bombed.next().expect("good").map(|record| record.offset), Some(9));
    let error = bombed.next().expect_err("too large");
    let ReadErrorKind::Inflate { offset: 10, next: 15, reason } = error else { panic!("{error}") };
    assert_eq!(reason, InflateError::TooLarge { codec: Codec::Gzip, limit_bytes: LIMIT });
    assert!(bombed.next().expect("nothing more").is_none());
    assert_eq!(bombed.position().offset, 10);

    let unordered = built(&data(10, &[3, 3]));
    let mut unordered = walk(10, None, &[unordered]);
    assert_eq!(unordered.next().expect("the first").map(|record| record.offset), Some(13));
    let error = unordered.next().expect_err("the second").to_string();
    assert!(error.contains("record 1: offset delta must be above 3 and at most 3, delta=`3`"), "{error}");

    let more = built(&data(10, &[0]).record_count(2));
    let mut more = walk(10, None, &[more]);
    assert!(more.next().is_ok());
    let error = more.next().expect_err("no second").to_string();
    assert!(error.contains("offset 10 cannot be read, offset 11 is behind it: record 1"), "{error}");

    let mut damaged = good;
    *damaged.last_mut().expect("bytes") ^= 1;
    let error = walk(8, None, &[damaged]).next().expect_err("a false checksum");
    assert!(matches!(error, ReadErrorKind::Corrupt { offset: 8, .. }), "{error}");
}

proptest! {
    #![proptest_config(crate::testing::cases(256))]

    #[test]
    fn no_payload_makes_it_panic_or_go_on_for_ever(
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        count in -2_i32..40,
        damage in proptest::collection::vec((61_usize..200, any::<u8>()), 0..4),
        codec in 0_i16..8,
    ) {
        let mut batch = built(&data(0, &[0, 1, 2, 3, 4, 5]).record_count(count).last_offset_delta(40));
        for (at, byte) in damage {
            if let Some(place) = batch.get_mut(at) {
                *place = byte;
            }
        }
        if payload.len() % 2 == 0 {
            let attributes = Attributes::from_bits(codec);
            batch = BatchBuilder::new(0).attributes(attributes).record_count(count).last_offset_delta(40)
                .build_compressed(Codec::None, &payload).expect("a batch");
        }
        reseal(&mut batch).expect("a header");
        let mut walk = walk(0, Some(&[]), &[batch]);
        let mut last = -1;
        while let Ok(Some(record)) = walk.next() {
            prop_assert!(record.offset > last && record.offset <= 40);
            last = record.offset;
        }
    }
}
