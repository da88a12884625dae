//! Records come to a rule as they are in the batch, however the host cuts them into pieces, and as often as it asks.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use verbatim_kit::batch::{BatchBuilder, HEADER_LEN, NewRecord, Record, Records};
use verbatim_kit::testing::{Call, Log};
use verbatim_kit::{
    Again, Callbacks, ExactMirroring, Fault, Reason, Refusal, Unreadable, for_each_record, malformed_records,
    plain_records, refuse,
};

type Data = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

fn data() -> impl Strategy<Value = Vec<Data>> {
    let bytes = || vec(any::<u8>(), 0..40);
    let nullable = move || proptest::option::of(bytes());
    vec((nullable(), nullable(), vec((bytes(), nullable()), 0..3)), 1..12)
}

/// The bytes of a batch with these records.
fn batch(data: &[Data]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0);
    for (offset, (key, value, headers)) in (0..).zip(data) {
        let mut record = NewRecord::new(offset, i64::from(offset) * 7);
        (record.key, record.value) = (key.as_deref(), value.as_deref());
        for (name, value) in headers {
            record = record.header(name, value.as_deref());
        }
        builder = builder.record(record);
    }
    builder.build().expect("the records are small")
}

fn shown(record: &Record<'_>) -> String {
    let headers: Vec<_> = record.headers.collect();
    format!(
        "{} {} {:?} {:?} {headers:?}",
        record.offset_delta, record.timestamp_delta, record.key, record.value
    )
}

/// The same, giving its records in pieces of at most this size.
fn in_pieces(log: &Log, piece_bytes_max: usize) -> Log {
    let mut log = log.clone();
    log.piece_bytes_max = piece_bytes_max;
    log
}

/// What `for_each_record` shows of the only batch, in pieces of this size.
fn walked(call: &Call, piece_bytes_max: usize) -> (Vec<String>, Result<(), Refusal>) {
    let mut log = in_pieces(&call.log, piece_bytes_max);
    let mut seen = Vec::new();
    let end = for_each_record(0, &call.batches[0], &mut log, |record| {
        seen.push(shown(record));
        Ok(())
    });
    (seen, end)
}

proptest! {
    #[test]
    fn every_record_is_shown_whole_whatever_the_pieces(data in data(), piece in 1_usize..80) {
        let bytes = batch(&data);
        let call = Call::normal().batch(&bytes);
        let expected: Vec<String> = Records::new(&bytes[HEADER_LEN..], call.batches[0].header.record_count)
            .map(|record| shown(&record.expect("well formed")))
            .collect();
        prop_assert_eq!(walked(&call, piece), (expected, Ok(())));
    }

    #[test]
    fn a_fault_is_named_as_the_walk_over_the_whole_names_it(
        data in data(), piece in 1_usize..80, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let mut bytes = batch(&data);
        let at = HEADER_LEN + at.index(bytes.len() - HEADER_LEN);
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let call = Call::normal().batch(&bytes);
        let count = call.batches[0].header.record_count;
        let expected = Records::new(&bytes[HEADER_LEN..], count).find_map(Result::err);
        let (seen, end) = walked(&call, piece);
        prop_assert_eq!(end.err(), expected.map(|error| malformed_records(0, Fault::Malformed(error))));
        let well_formed = Records::new(&bytes[HEADER_LEN..], count).filter(Result::is_ok).count();
        prop_assert_eq!(seen.len(), well_formed);
    }

    #[test]
    fn what_was_read_is_read_again(plain in vec(any::<u8>(), 0..200), piece in 1_usize..50, first in 0_u32..150) {
        let mut log = in_pieces(&Log::default().plain_records(&plain), piece);
        let mut again = Again::new(&mut log, plain.len());
        let some = again.records(0, first).expect("readable");
        prop_assert!(plain.starts_with(&some));
        for _ in 0..2 {
            again.from_the_start();
            let all = plain_records(0, &mut again, plain.len());
            prop_assert_eq!(all.as_deref(), Ok(plain.as_slice()));
        }
    }
}

#[test]
fn no_more_is_kept_and_read_than_was_allowed() {
    let log = Log::default().plain_records(&[7; 100]);
    let mut read = log.clone();
    assert_eq!(plain_records(0, &mut read, 100).map(|plain| plain.len()), Ok(100));
    let refusal = plain_records(0, &mut log.clone(), 99).expect_err("one byte too many");
    assert_eq!((refusal.reason, refusal.batch, refusal.expected), (Reason::BatchTooLarge, Some(0), Some(99)));
    let mut inner = log.clone();
    let mut again = Again::new(&mut inner, 99);
    assert_eq!(again.records(0, 1000), Err(Unreadable::TooLarge));
}

#[test]
fn a_rule_of_ones_own_comes_before_the_others_and_both_read_the_records() {
    let key_of = |bytes: &[u8], wanted: &[u8]| {
        let call = Call::normal().batch(bytes);
        let mut log = call.log.clone();
        let mut log = Again::new(&mut log, 1 << 20);
        for_each_record(0, &call.batches[0], &mut log, |record| match record.key {
            Some(key) if key == wanted => Ok(()),
            _ => Err(refuse(Reason::Other(87), "each key is the tenant's", "key", "another").of_batch(0)),
        })?;
        log.from_the_start();
        let standard = verbatim_kit::ProducePath::produce;
        standard(&ExactMirroring, &call.policy, &call.position, &call.request, &[], &call.batches, &mut log)
    };
    let good = BatchBuilder::new(0).record(NewRecord::new(0, 1).key(b"a").value(b"1"));
    let good = good.build().expect("small");
    assert_eq!(key_of(&good, b"a"), Ok(()));
    assert_eq!(key_of(&good, b"b").map_err(|refusal| refusal.reason), Err(Reason::Other(87)));
    // Offset 1 in the first place breaks R14, which the standard rules see though the own rule has read the records.
    let gap = BatchBuilder::new(0)
        .record(NewRecord::new(1, 1).key(b"a"))
        .last_offset_delta(0)
        .build()
        .expect("small");
    assert_eq!(key_of(&gap, b"a").map_err(|refusal| refusal.reason), Err(Reason::MalformedRecords));
}
