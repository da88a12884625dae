//! The eight reference batches: every field and record as described there, and each rebuilt byte for byte.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use verbatim_batch::{
    Attributes, Batch, BatchBuilder, BuildError, Codec, ControlKey, ControlType, Header, NewRecord,
    RecordScanner, TimestampType, crc_matches, first_difference, frames, place, reseal, restamp,
};

const TIME: i64 = 1_700_000_000_000;

fn vector(name: &str) -> Vec<u8> {
    let text = include_str!("data/batches.txt");
    let mut lines = text.lines().skip_while(|line| line.split(' ').next() != Some(name));
    let hex = lines.nth(1).unwrap_or_else(|| panic!("no vector {name}"));
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn all() -> Vec<Vec<u8>> {
    (1..=8).map(|number| vector(&format!("V{number}"))).collect()
}

/// What the vectors have in common: no producer, CreateTime, nothing special.
fn plain_header(base_offset: i64, leader_epoch: i32) -> Header {
    Header {
        base_offset,
        batch_length: 0,
        leader_epoch,
        magic: 2,
        crc: 0,
        attributes: Attributes::default(),
        last_offset_delta: 0,
        base_timestamp: TIME,
        max_timestamp: TIME,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: 1,
    }
}

/// Checks header and records (in a builder's terms) of one vector, and that the builder writes the same bytes.
fn check(name: &str, header: Header, built: Result<Vec<u8>, BuildError>, records: &[NewRecord<'_>]) {
    let bytes = vector(name);
    let batch = Batch::parse(&bytes).unwrap();
    assert_eq!(*batch.header(), header, "{name}");
    assert_eq!(batch.header().total_len(), Some(bytes.len()), "{name}");
    assert_eq!(batch.header().attributes.codec(), Ok(Codec::None), "{name}");
    let found: Vec<NewRecord<'_>> = batch
        .plain_records()
        .unwrap()
        .map(|record| {
            let record = record.unwrap();
            assert_eq!(record.attributes, 0, "{name}");
            NewRecord {
                offset_delta: record.offset_delta,
                timestamp: header.base_timestamp + record.timestamp_delta,
                key: record.key,
                value: record.value,
                headers: record.headers.map(|header| (header.key, header.value)).collect(),
            }
        })
        .collect();
    assert_eq!(found, records, "{name}");
    assert_eq!(built.unwrap(), bytes, "{name}");
    let mut metas = Vec::new();
    let mut scanner = RecordScanner::new(header.record_count);
    batch.payload().chunks(1).for_each(|piece| scanner.feed(piece, |meta| metas.push(meta)).unwrap());
    scanner.finish().unwrap();
    let walked: Vec<_> = batch.plain_records().unwrap().map(|record| record.unwrap().meta()).collect();
    assert_eq!(metas, walked, "{name}");
}

fn builder<'a>(base_offset: i64, leader_epoch: i32, records: &[NewRecord<'a>]) -> BatchBuilder<'a> {
    let start = BatchBuilder::new(base_offset).leader_epoch(leader_epoch);
    records.iter().cloned().fold(start, BatchBuilder::record)
}

#[test]
fn v1_compacted() {
    let records = [
        NewRecord::new(0, TIME).key(b"a").value(b"1"),
        NewRecord::new(4, TIME + 4).key(b"b").value(b"2"),
        NewRecord::new(7, TIME + 7).key(b"c").value(b"3"),
    ];
    let header = Header {
        batch_length: 76,
        crc: 0x6fe7_ca14,
        last_offset_delta: 9,
        max_timestamp: TIME + 7,
        record_count: 3,
        ..plain_header(100, 5)
    };
    assert_eq!((header.last_offset(), header.next_offset()), (Some(109), Some(110)));
    check("V1", header, builder(100, 5, &records).last_offset_delta(9).build(), &records);
}

#[test]
fn v2_empty() {
    let header = Header {
        batch_length: 49,
        crc: 0x0767_28b7,
        last_offset_delta: 4,
        base_timestamp: -1,
        max_timestamp: TIME + 100,
        producer_id: 7,
        producer_epoch: 0,
        base_sequence: 10,
        record_count: 0,
        ..plain_header(110, 5)
    };
    assert_eq!((header.next_offset(), header.last_sequence(), header.has_producer()), (Some(115), 14, true));
    let built =
        builder(110, 5, &[]).producer(7, 0, 10).last_offset_delta(4).max_timestamp(TIME + 100).build();
    check("V2", header, built, &[]);
}

#[test]
fn v3_and_v4_transaction_markers() {
    for (name, base_offset, producer_id, kind, crc, key) in [
        ("V3", 115, 7, ControlType::Commit, 0xedd6_83a7, [0, 0, 0, 1]),
        ("V4", 116, 8, ControlType::Abort, 0x7b45_8be5, [0, 0, 0, 0]),
    ] {
        let header = Header {
            batch_length: 66,
            crc,
            attributes: Attributes::from_bits(0x30),
            producer_id,
            producer_epoch: 0,
            ..plain_header(base_offset, 5)
        };
        assert!(header.attributes.is_control() && header.attributes.is_transactional());
        let mut marker = BatchBuilder::marker(0, (producer_id, 0), TIME, kind, 0).unwrap();
        place(&mut marker, base_offset, 5).unwrap();
        let records = [NewRecord::new(0, TIME).key(&key).value(&[0; 6])];
        check(name, header, Ok(marker), &records);
        assert_eq!(control_key(name), ControlKey { version: 0, kind });
    }
}

#[test]
fn v5_tombstone_with_delete_horizon() {
    let horizon = 1_700_000_600_000;
    let records = [NewRecord::new(0, TIME).key(b"k")];
    let header = Header {
        batch_length: 59,
        crc: 0x6ca1_64a3,
        attributes: Attributes::from_bits(0x40),
        base_timestamp: horizon,
        ..plain_header(120, 6)
    };
    assert_eq!(header.delete_horizon(), Some(horizon));
    check("V5", header, builder(120, 6, &records).delete_horizon(horizon).build(), &records);
}

#[test]
fn v6_log_append_time() {
    let records =
        [NewRecord::new(0, TIME).key(b"x").value(b"1"), NewRecord::new(1, TIME + 5).key(b"y").value(b"2")];
    let header = Header {
        batch_length: 67,
        crc: 0x038a_0219,
        attributes: Attributes::from_bits(0x08),
        last_offset_delta: 1,
        max_timestamp: TIME + 9_999,
        record_count: 2,
        ..plain_header(121, 6)
    };
    assert_eq!(header.attributes.timestamp_type(), TimestampType::LogAppendTime);
    check("V6", header, builder(121, 6, &records).log_append_time(TIME + 9_999).build(), &records);
}

#[test]
fn v7_null_and_empty_differ() {
    let records = [
        NewRecord::new(0, TIME).key(b"k").header(b"h", None),
        NewRecord::new(1, TIME).key(b"k").value(b"").header(b"h", Some(b"")).header(b"h", Some(b"2")),
    ];
    let header = Header {
        batch_length: 75,
        crc: 0xe697_e118,
        last_offset_delta: 1,
        record_count: 2,
        ..plain_header(123, 6)
    };
    check("V7", header, builder(123, 6, &records).build(), &records);
}

#[test]
fn v8_unknown_control_type() {
    let records = [NewRecord::new(0, TIME).key(&[0, 0, 0, 99]).value(b"")];
    let header = Header {
        batch_length: 60,
        crc: 0xc9c0_a919,
        attributes: Attributes::from_bits(0x20),
        ..plain_header(125, 6)
    };
    check("V8", header, builder(125, 6, &records).control().build(), &records);
    assert_eq!(control_key("V8"), ControlKey { version: 0, kind: ControlType::Other(99) });
}

fn control_key(name: &str) -> ControlKey {
    let bytes = vector(name);
    let mut records = Batch::parse(&bytes).unwrap().plain_records().unwrap();
    let record = records.next().unwrap().unwrap();
    let from_meta = record.meta().control_key().unwrap();
    assert_eq!(ControlKey::parse(record.key.unwrap()), Ok(from_meta));
    from_meta
}

#[test]
fn the_run_of_all_is_framed_and_each_place_keeps_the_checksum() {
    let run = all().concat();
    let framed: Vec<Vec<u8>> = frames(&run).map(|frame| frame.bytes().to_vec()).collect();
    assert_eq!(framed, all());
    for (mut batch, before) in all().into_iter().zip(all()) {
        place(&mut batch, 5_000_000_000, 7).unwrap();
        assert!(crc_matches(&batch));
        let header = Header::read(&batch).unwrap();
        assert_eq!((header.base_offset, header.leader_epoch), (5_000_000_000, 7));
        let before_header = Header::read(&before).unwrap();
        place(&mut batch, before_header.base_offset, before_header.leader_epoch).unwrap();
        assert_eq!(batch, before);
    }
}

#[test]
fn clearing_log_append_time_makes_a_new_checksum() {
    let mut batch = vector("V6");
    assert_eq!(restamp(&mut batch, TIME + 5, false), Ok(true));
    let records =
        [NewRecord::new(0, TIME).key(b"x").value(b"1"), NewRecord::new(1, TIME + 5).key(b"y").value(b"2")];
    assert_eq!(batch, builder(121, 6, &records).build().unwrap());
    assert_eq!(restamp(&mut batch, TIME + 5, false), Ok(false));
}

#[test]
fn v1_with_its_second_record_changed_differs_from_104_on() {
    let stored = vector("V1");
    let mut received = stored.clone();
    let value = received.iter_mut().skip(77).find(|byte| **byte == b'2').unwrap();
    *value = b'9';
    reseal(&mut received).unwrap();
    assert_eq!(first_difference(&stored, &received), 104);
}
