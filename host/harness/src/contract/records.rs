//! Records that do not inflate, do not parse, or are not what the header says.

use verbatim_batch::{Codec, Header, assemble};
use verbatim_engine::Memory;

use super::Make;
use super::ask::{Ask, built, fitting, parts};
use super::header::EDGES_32;
use crate::format::{BatchSpec, RecordSpec};

pub(super) const KINDS: &[(&str, Make)] = &[
    ("records that do not inflate", damaged),
    ("records that inflate to too much", bombs),
    ("records that do not parse", malformed),
    ("records with odd offsets and sizes", odd),
    ("control batches", control),
    ("batches without records", empty),
];

fn damaged(log: &Memory) -> Result<Vec<Ask>, String> {
    let mut asks = Vec::new();
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let name = codec.name();
        let (header, right) = parts(&BatchSpec { codec: Some(name.to_owned()), ..fitting(log) })?;
        let mut payloads = vec![
            ("nothing".to_owned(), Vec::new()),
            ("zeros".to_owned(), vec![0; 64]),
            ("ones".to_owned(), vec![0xff; 64]),
        ];
        payloads.extend(
            (1..right.len())
                .map(|len| (format!("cut to {len} bytes"), right.iter().copied().take(len).collect())),
        );
        payloads
            .extend((0..right.len()).map(|place| (format!("byte {place} changed"), changed(&right, place))));
        for (what, payload) in payloads {
            asks.push(Ask::new(log, format!("{name}, {what}"), framed(&header, &payload)?));
        }
    }
    Ok(asks)
}

fn bombs(log: &Memory) -> Result<Vec<Ask>, String> {
    let record = RecordSpec { value_bytes: Some(300 << 10), ..RecordSpec::default() };
    let mut asks = Vec::new();
    for codec in Codec::ALL {
        let (codec, records) = (Some(codec.name().to_owned()), Some(vec![record.clone()]));
        let what = format!("300 KiB by {}", codec.as_deref().unwrap_or_default());
        asks.push(Ask::new(log, what, built(&BatchSpec { codec, records, ..fitting(log) })?));
    }
    Ok(asks)
}

fn malformed(log: &Memory) -> Result<Vec<Ask>, String> {
    let (header, right) = parts(&fitting(log))?;
    let endless = [0xff; 16].to_vec();
    let huge = [0xfe, 0xff, 0xff, 0xff, 0x0f].to_vec();
    let mut payloads = vec![
        ("nothing".to_owned(), Vec::new()),
        ("a length without an end".to_owned(), endless),
        ("a length of 2 GiB".to_owned(), huge.clone()),
        ("a negative length".to_owned(), vec![1, 0, 0]),
        ("a length of 0".to_owned(), vec![0]),
        ("a record, and a byte behind it".to_owned(), [right.clone(), vec![0]].concat()),
    ];
    payloads.extend(
        (1..right.len())
            .map(|len| (format!("cut to {len} bytes"), right.iter().copied().take(len).collect())),
    );
    for place in 0..right.len() {
        payloads.push((format!("byte {place} changed"), changed(&right, place)));
        let with_huge = right.iter().copied().take(place).chain(huge.iter().copied());
        payloads.push((format!("2 GiB at byte {place}"), with_huge.chain([0; 32]).collect()));
    }
    let ask = |(what, payload): (String, Vec<u8>)| Ok(Ask::new(log, what, framed(&header, &payload)?));
    payloads.into_iter().map(ask).collect()
}

fn odd(log: &Memory) -> Result<Vec<Ask>, String> {
    let at = |offset| RecordSpec { offset: Some(offset), ..RecordSpec::default() };
    let mut lists: Vec<(String, Vec<RecordSpec>)> =
        EDGES_32.map(|offset| (format!("offsetDelta {offset}"), vec![at(offset)])).to_vec();
    lists.push(("twice the same offset".to_owned(), vec![at(0), at(0)]));
    lists.push(("falling offsets".to_owned(), vec![at(1), at(0)]));
    lists.push(("a gap".to_owned(), vec![at(0), at(5)]));
    let null = RecordSpec { null_key: true, null_value: true, ..RecordSpec::default() };
    lists.push(("neither key nor value".to_owned(), vec![null]));
    let large = RecordSpec { value_bytes: Some(900 << 10), ..RecordSpec::default() };
    lists.push(("a value of 900 KiB".to_owned(), vec![large]));
    lists.push(("10,000 records".to_owned(), (0..10_000).map(at).collect()));
    for timestamp in [i64::MIN, -1, i64::MAX] {
        let record = RecordSpec { timestamp: Some(timestamp), ..RecordSpec::default() };
        lists.push((format!("timestamp {timestamp}"), vec![record]));
    }
    let ask = |(what, records): (String, Vec<RecordSpec>)| {
        Ok(Ask::new(log, what, built(&BatchSpec { records: Some(records), ..fitting(log) })?))
    };
    lists.into_iter().map(ask).collect()
}

fn control(log: &Memory) -> Result<Vec<Ask>, String> {
    let mut asks = Vec::new();
    for kind in [0, 1, 2, -1, i16::MAX, i16::MIN] {
        let spec = BatchSpec { control: Some(kind), transactional: true, ..fitting(log) };
        asks.push(Ask::new(log, format!("type {kind}"), built(&spec)?));
    }
    for key in ["", "00", "000000", "00000000", "ffffffffffffffff"] {
        let record = RecordSpec { key_hex: Some(key.to_owned()), ..RecordSpec::default() };
        let spec = BatchSpec { control: Some(0), records: Some(vec![record]), ..fitting(log) };
        asks.push(Ask::new(log, format!("key of bytes `{key}`"), built(&spec)?));
    }
    let null = RecordSpec { null_key: true, ..RecordSpec::default() };
    for records in [vec![null], Vec::new()] {
        let what = format!("no key, {} records", records.len());
        let spec = BatchSpec { control: Some(0), records: Some(records), ..fitting(log) };
        asks.push(Ask::new(log, what, built(&spec)?));
    }
    Ok(asks)
}

fn empty(log: &Memory) -> Result<Vec<Ask>, String> {
    let (header, _) = parts(&BatchSpec { records: Some(Vec::new()), ..fitting(log) })?;
    let mut asks = vec![Ask::new(log, "as a compaction leaves it", framed(&header, &[])?)];
    for codec in Codec::ALL {
        let mut header = header;
        header.attributes = header.attributes.with_codec(codec);
        let payload = verbatim_compression::deflate(codec, &[]).map_err(|error| error.to_string())?;
        asks.push(Ask::new(log, format!("none, by {}", codec.name()), framed(&header, &payload)?));
    }
    Ok(asks)
}

/// A batch of this header and payload, whose length and checksum fit.
fn framed(header: &Header, payload: &[u8]) -> Result<Vec<u8>, String> {
    assemble(header, payload).map_err(|error| error.to_string())
}

fn changed(bytes: &[u8], place: usize) -> Vec<u8> {
    bytes.iter().enumerate().map(|(at, &byte)| if at == place { byte ^ 0x81 } else { byte }).collect()
}
