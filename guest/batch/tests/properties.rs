//! Random inputs: round trips, agreement of the two record walks, and that nothing panics.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use verbatim_batch::{
    Attributes, Batch, BatchBuilder, BatchError, BuildError, Codec, ControlKey, HEADER_LEN, Header,
    NewRecord, PatchError, Prefix, RecordError, RecordErrorKind, RecordField, RecordHeader, RecordMeta,
    RecordScanner, Records, assemble, compute_crc, crc_matches, frames, place, reseal, restamp,
};

#[derive(Clone, Debug)]
struct OwnedRecord {
    offset_delta: i32,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl OwnedRecord {
    fn borrowed(&self) -> NewRecord<'_> {
        NewRecord {
            offset_delta: self.offset_delta,
            timestamp: self.timestamp,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: self.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect(),
        }
    }
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![9 => vec(any::<u8>(), 0..40), 1 => vec(any::<u8>(), 100..300)]
}

fn record() -> impl Strategy<Value = OwnedRecord> {
    let headers = vec((data(), proptest::option::of(data())), 0..4);
    let timestamp = prop_oneof![0..2_000_000_000_000_i64, Just(-1), (i64::MIN / 2)..(i64::MAX / 2)];
    let offset_delta = prop_oneof![0..500, any::<i32>()];
    (offset_delta, timestamp, proptest::option::of(data()), proptest::option::of(data()), headers).prop_map(
        |(offset_delta, timestamp, key, value, headers)| OwnedRecord {
            offset_delta,
            timestamp,
            key,
            value,
            headers,
        },
    )
}

fn header() -> impl Strategy<Value = Header> {
    vec(any::<u8>(), HEADER_LEN).prop_map(|bytes| Header { magic: 2, ..Header::read(&bytes).unwrap() })
}

fn build(records: &[OwnedRecord], header: &Header) -> Result<Vec<u8>, BuildError> {
    let start = BatchBuilder::new(header.base_offset)
        .leader_epoch(header.leader_epoch)
        .attributes(header.attributes.with_codec(Codec::None))
        .producer(header.producer_id, header.producer_epoch, header.base_sequence)
        .last_offset_delta(header.last_offset_delta)
        .max_timestamp(header.max_timestamp);
    records.iter().fold(start, |builder, record| builder.record(record.borrowed())).build()
}

/// Bytes that look like records often enough to get past the first field.
fn nearly_records() -> impl Strategy<Value = (Vec<u8>, i32)> {
    let valid = vec(record(), 0..5).prop_map(|records| {
        let start = BatchBuilder::new(0);
        let builder = records.iter().fold(start, |builder, record| builder.record(record.borrowed()));
        (builder.plain_records().unwrap(), i32::try_from(records.len()).unwrap())
    });
    let mutated =
        (valid, vec((any::<Index>(), any::<u8>()), 0..3), -1..2_i32, proptest::option::of(any::<Index>()))
            .prop_map(|((mut bytes, count), changes, more, cut)| {
                if !bytes.is_empty() {
                    changes.iter().for_each(|(at, byte)| {
                        let at = at.index(bytes.len());
                        bytes[at] = *byte;
                    });
                }
                if let Some(cut) = cut {
                    bytes.truncate(cut.index(bytes.len() + 1));
                }
                (bytes, count + more)
            });
    let small = vec(prop_oneof![0..12_u8, any::<u8>()], 0..40);
    prop_oneof![mutated, (small, -1..4_i32)]
}

type Walk = (Vec<RecordMeta>, Result<(), RecordError>);

fn walk(plain: &[u8], count: i32) -> Walk {
    let mut metas = Vec::new();
    for record in Records::new(plain, count) {
        match record {
            Ok(record) => metas.push(record.meta()),
            Err(error) => return (metas, Err(error)),
        }
    }
    (metas, Ok(()))
}

fn scan(plain: &[u8], count: i32, mut cuts: Vec<usize>) -> Walk {
    let mut metas = Vec::new();
    let mut scanner = RecordScanner::new(count);
    cuts.extend([0, plain.len()]);
    cuts.sort_unstable();
    for ends in cuts.windows(2) {
        if let Err(error) = scanner.feed(&plain[ends[0]..ends[1]], |meta| metas.push(meta)) {
            assert_eq!(scanner.feed(&[0], |_| unreachable!("failed before")), Err(error));
            assert_eq!(scanner.finish(), Err(error));
            return (metas, Err(error));
        }
    }
    (metas, scanner.finish())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_record_is_written_as_it_was_read_but_for_what_is_changed(
        records in vec(record(), 1..5), value in proptest::option::of(data()), other in data(),
    ) {
        let start = BatchBuilder::new(0).base_timestamp(0);
        let plain = records.iter().fold(start, |builder, record| builder.record(record.borrowed())).plain_records();
        let plain = plain.unwrap();
        let count = i32::try_from(records.len()).unwrap();
        let (mut same, mut changed) = (Vec::new(), Vec::new());
        for record in Records::new(&plain, count).map(Result::unwrap) {
            record.write(record.value, |header| header, &mut same).unwrap();
            record.write(value.as_deref(), |header| RecordHeader { value: Some(&other), ..header }, &mut changed).unwrap();
        }
        prop_assert_eq!(&same, &plain);
        let expected = records.iter().map(|record| OwnedRecord {
            value: value.clone(),
            headers: record.headers.iter().map(|(key, _)| (key.clone(), Some(other.clone()))).collect(),
            ..record.clone()
        });
        let expected: Vec<OwnedRecord> = expected.collect();
        let start = BatchBuilder::new(0).base_timestamp(0);
        let expected = expected.iter().fold(start, |builder, record| builder.record(record.borrowed())).plain_records();
        prop_assert_eq!(Ok(changed), expected);
    }

    #[test]
    fn built_batches_read_back(records in vec(record(), 0..6), fields in header()) {
        let bytes = build(&records, &fields).unwrap();
        let batch = Batch::parse(&bytes).unwrap();
        let header = batch.header();
        let base_timestamp = records.first().map_or(-1, |record| record.timestamp);
        let expected = Header {
            batch_length: i32::try_from(bytes.len()).unwrap() - 12,
            crc: header.crc,
            attributes: fields.attributes.with_codec(Codec::None),
            base_timestamp,
            record_count: i32::try_from(records.len()).unwrap(),
            ..fields
        };
        prop_assert_eq!(*header, expected);
        let found: Vec<_> = batch.plain_records().unwrap().map(|record| record.unwrap()).collect();
        prop_assert_eq!(found.len(), records.len());
        for (found, written) in found.iter().zip(&records) {
            prop_assert_eq!(base_timestamp + found.timestamp_delta, written.timestamp);
            prop_assert_eq!(found.offset_delta, written.offset_delta);
            prop_assert_eq!(found.key, written.key.as_deref());
            prop_assert_eq!(found.value, written.value.as_deref());
            prop_assert_eq!(found.headers.len(), written.headers.len());
            let headers: Vec<_> = found.headers.map(|header| (header.key, header.value)).collect();
            prop_assert_eq!(headers, written.borrowed().headers);
        }
    }

    #[test]
    fn assembled_batches_keep_every_field(header in header(), payload in vec(any::<u8>(), 0..100)) {
        let bytes = assemble(&header, &payload).unwrap();
        let batch = Batch::parse(&bytes).unwrap();
        prop_assert_eq!(batch.payload(), &payload[..]);
        let rest = Header { crc: batch.header().crc, batch_length: batch.header().batch_length, ..header };
        prop_assert_eq!(*batch.header(), rest);
        prop_assert_eq!(batch.plain_records().is_some(), header.attributes.codec() == Ok(Codec::None));
        let framed: Vec<_> = frames(&bytes).map(|frame| frame.bytes()).collect();
        prop_assert_eq!(framed, [&bytes[..]]);
    }

    #[test]
    fn both_walks_agree((plain, count) in nearly_records(), cuts in vec(any::<Index>(), 0..12)) {
        let whole = walk(&plain, count);
        let cuts = cuts.iter().map(|cut| cut.index(plain.len() + 1)).collect();
        prop_assert_eq!(&scan(&plain, count, cuts), &whole);
        prop_assert_eq!(&scan(&plain, count, (0..plain.len()).collect()), &whole);
        prop_assert_eq!(&scan(&plain, count, Vec::new()), &whole);
    }

    #[test]
    fn a_changed_byte_never_passes(
        header in header(),
        payload in vec(any::<u8>(), 0..60),
        at in any::<Index>(),
        bit in 0..8_u32,
    ) {
        let good = assemble(&header, &payload).unwrap();
        let mut bad = good.clone();
        let at = at.index(bad.len());
        bad[at] ^= 1 << bit;
        match Batch::parse(&bad) {
            Ok(_) => prop_assert!((0..8).contains(&at) || (12..16).contains(&at)),
            Err(BatchError::Length { .. }) => prop_assert!((8..12).contains(&at)),
            Err(BatchError::Magic { .. }) => prop_assert_eq!(at, 16),
            Err(BatchError::Crc { .. }) => prop_assert!(at >= 17),
            Err(BatchError::ShortHeader { .. }) => prop_assert!(false, "no shorter"),
        }
    }

    #[test]
    fn patches_change_their_fields_only(
        header in header(),
        payload in vec(any::<u8>(), 0..60),
        offset: i64,
        epoch: i32,
        time: i64,
        append: bool,
    ) {
        let mut bytes = assemble(&header, &payload).unwrap();
        let before = *Batch::parse(&bytes).unwrap().header();
        place(&mut bytes, offset, epoch).unwrap();
        let placed = Header { base_offset: offset, leader_epoch: epoch, ..before };
        prop_assert_eq!(*Batch::parse(&bytes).unwrap().header(), placed);
        let same = time == before.max_timestamp && append == (before.attributes.bits() & 8 != 0);
        prop_assert_eq!(restamp(&mut bytes, time, append), Ok(!same));
        let batch = Batch::parse(&bytes).unwrap();
        let bits = if append { before.attributes.bits() | 8 } else { before.attributes.bits() & !8 };
        let restamped = Header {
            max_timestamp: time,
            attributes: Attributes::from_bits(bits),
            crc: batch.header().crc,
            ..placed
        };
        prop_assert_eq!(*batch.header(), restamped);
        prop_assert_eq!(batch.payload(), &payload[..]);
        prop_assert_eq!(restamp(&mut bytes, time, append), Ok(false));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200), count: i32) {
        let mut patched = bytes.clone();
        let short = bytes.len() < HEADER_LEN;
        let error = PatchError { len: bytes.len() };
        let expected = if short { Err(error) } else { Ok(()) };
        prop_assert_eq!(place(&mut patched, 1, 1), expected);
        prop_assert_eq!(restamp(&mut patched, 1, true).is_err(), short);
        prop_assert_eq!(reseal(&mut patched), expected);
        prop_assert_eq!(crc_matches(&patched), !short);
        prop_assert_eq!(compute_crc(&bytes).is_some(), bytes.len() >= 21);
        prop_assert_eq!(Prefix::read(&bytes).is_some(), bytes.len() >= 17);
        if let Some(header) = Header::read(&bytes) {
            let _ = (header.total_len(), header.next_offset(), header.last_sequence(), header.delete_horizon());
        }
        let _ = Batch::parse(&bytes).is_ok();
        let _ = ControlKey::parse(&bytes).is_ok();
        let _ = walk(&bytes, count);
    }
}

#[test]
fn each_way_to_be_malformed_is_named() {
    // One record: length, attributes, timestamp delta, offset delta, null key, null value, one header "h" null.
    let good = [18, 0, 0, 0, 1, 1, 2, 2, b'h', 1_u8];
    let with = |at: usize, byte: u8| {
        let mut bytes = good;
        bytes[at] = byte;
        bytes.to_vec()
    };
    let long_varint = [20, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 0];
    for (plain, count, index, kind) in [
        (good.to_vec(), -1, 0, RecordErrorKind::NegativeCount { value: -1 }),
        (good.to_vec(), 0, 0, RecordErrorKind::Trailing),
        (good.to_vec(), 2, 1, RecordErrorKind::Cut { field: RecordField::Length }),
        ([&good[..], &[0]].concat(), 1, 1, RecordErrorKind::Trailing),
        (vec![], 1, 0, RecordErrorKind::Cut { field: RecordField::Length }),
        (good[..9].to_vec(), 1, 0, RecordErrorKind::Cut { field: RecordField::HeaderValueLength }),
        (with(0, 1), 1, 0, RecordErrorKind::Negative { field: RecordField::Length, value: -1 }),
        (with(0, 16), 1, 0, RecordErrorKind::Overrun { field: RecordField::HeaderValueLength }),
        (with(0, 22), 1, 0, RecordErrorKind::Unread { bytes: 2 }),
        (with(4, 20), 1, 0, RecordErrorKind::Overrun { field: RecordField::Key }),
        (with(6, 1), 1, 0, RecordErrorKind::Negative { field: RecordField::HeaderCount, value: -1 }),
        (with(6, 4), 1, 0, RecordErrorKind::Overrun { field: RecordField::HeaderKeyLength }),
        (with(7, 1), 1, 0, RecordErrorKind::Negative { field: RecordField::HeaderKeyLength, value: -1 }),
        (long_varint.to_vec(), 1, 0, RecordErrorKind::Varint { field: RecordField::OffsetDelta }),
    ] {
        let (metas, verdict) = walk(&plain, count);
        assert_eq!(verdict, Err(RecordError { index, kind }), "{plain:?}");
        assert_eq!(scan(&plain, count, vec![]), (metas, verdict), "{plain:?}");
    }
    assert!(walk(&good, 1).1.is_ok());
}

#[test]
fn huge_claims_end_at_once() {
    // Lengths and counts of 2147483647 in a few bytes.
    let max = [0xFE, 0xFF, 0xFF, 0xFF, 0x0F_u8];
    let record = [&max[..], &[0, 0, 0, 1, 1], &max[..]].concat();
    let cut = RecordErrorKind::Cut { field: RecordField::HeaderKeyLength };
    assert_eq!(walk(&record, i32::MAX).1, Err(RecordError { index: 0, kind: cut }));
    assert_eq!(scan(&record, i32::MAX, vec![]).1, Err(RecordError { index: 0, kind: cut }));
}
