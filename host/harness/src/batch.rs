//! Batches from their description.

use std::collections::BTreeMap;

use verbatim_batch::{
    Attributes, BatchBuilder, Codec, ControlType, HEADER_LEN, Header, NewRecord, OVERHEAD_LEN, Record,
    Records, assemble, marker_key, marker_value, place,
};

use crate::format::{BatchSpec, HeaderSpec, RecordSpec};
use crate::hex;

/// When records are made that do not say: 2023-11-14, a little before the requests' clock.
const TIMESTAMP_MS: i64 = 1_700_000_000_000;

/// How long a value of `value-bytes`, or what `repeat` makes, may be: Kafka's largest requests are shorter.
const BYTES_MAX: usize = 128 << 20;

/// Named batches of a file.
pub(crate) type Named = BTreeMap<String, BatchSpec>;

/// The batch or batches that `spec` describes.
pub(crate) fn build(spec: &BatchSpec, named: &Named) -> Result<Vec<Vec<u8>>, String> {
    let whole = edited(spec, source(spec, named)?)?;
    let Some(times) = spec.repeat else { return Ok(vec![whole]) };
    let header = Header::read(&whole).ok_or("only a whole batch can be repeated")?;
    let bytes = usize::try_from(times).unwrap_or(usize::MAX).saturating_mul(whole.len());
    if bytes > BYTES_MAX {
        return Err(format!(
            "repeated batches have at most {BYTES_MAX} bytes together, repeat=`{times}`, bytes=`{bytes}`"
        ));
    }
    let step = i64::from(header.last_offset_delta).saturating_add(1);
    (0..i64::from(times))
        .map(|index| {
            let mut batch = whole.clone();
            let base = header.base_offset.saturating_add(step.saturating_mul(index));
            place(&mut batch, base, header.leader_epoch).map_err(|error| error.to_string())?;
            Ok(batch)
        })
        .collect()
}

/// The batch before `header`, `payload` and the like are applied.
fn source(spec: &BatchSpec, named: &Named) -> Result<Vec<u8>, String> {
    let mut batch = match (&spec.hex, &spec.named) {
        (Some(_), Some(_)) => return Err("a batch has either hex or use".into()),
        (Some(digits), None) => hex::decode(digits)?,
        (None, Some(name)) => {
            let spec = named.get(name).ok_or_else(|| format!("no batch has this name, use=`{name}`"))?;
            if spec.named.is_some() {
                return Err(format!("a named batch does not use another, batch=`{name}`"));
            }
            edited(spec, source(spec, named)?)?
        }
        (None, None) => return built(spec),
    };
    if spec.records.is_some() || spec.codec.is_some() || spec.producer.is_some() || spec.control.is_some() {
        return Err("records, codec, producer and control belong to a batch without hex and use".into());
    }
    if spec.base.is_some() || spec.epoch.is_some() {
        let header = Header::read(&batch).ok_or("base and epoch need a whole header")?;
        let (base, epoch) =
            (spec.base.unwrap_or(header.base_offset), spec.epoch.unwrap_or(header.leader_epoch));
        place(&mut batch, base, epoch).map_err(|error| error.to_string())?;
    }
    Ok(batch)
}

fn built(spec: &BatchSpec) -> Result<Vec<u8>, String> {
    let records = Data::all(spec)?;
    let mut builder = BatchBuilder::new(spec.base.unwrap_or(0)).leader_epoch(spec.epoch.unwrap_or(0));
    builder = builder.attributes(
        Attributes::default().with_transactional(spec.transactional).with_control(spec.control.is_some()),
    );
    if let Some(producer) = spec.producer {
        builder = builder.producer(producer.id, producer.epoch, producer.sequence);
    }
    for record in &records {
        builder = builder.record(record.borrowed());
    }
    if let Some(time) = spec.log_append_time {
        builder = builder.log_append_time(time);
    }
    if let Some(horizon) = spec.delete_horizon {
        builder = builder.delete_horizon(horizon);
    }
    let codec = codec(spec.codec.as_deref().unwrap_or("none"))?;
    let plain = builder.plain_records().map_err(|error| error.to_string())?;
    let payload = verbatim_compression::deflate(codec, &plain).map_err(|error| error.to_string())?;
    builder.build_compressed(codec, &payload).map_err(|error| error.to_string())
}

/// Applies what no builder would do.
fn edited(spec: &BatchSpec, batch: Vec<u8>) -> Result<Vec<u8>, String> {
    let HeaderSpec { batch_length, .. } = spec.header;
    let Some(before) = Header::read(&batch) else {
        return Ok(batch);
    };
    let header = overridden(&spec.header, before);
    let payload = match &spec.payload {
        Some(digits) => hex::decode(digits)?,
        None => batch.get(HEADER_LEN..).unwrap_or_default().to_vec(),
    };
    let resized = assemble(&header, &payload).map_err(|error| error.to_string())?;
    let Some(mut header) = Header::read(&resized) else { return Ok(resized) };
    let is_raw = spec.hex.is_some() || spec.named.is_some();
    if !spec.sealed.unwrap_or(!is_raw) {
        header.crc = before.crc;
    }
    if spec.wrong_crc {
        header.crc ^= 1;
    }
    let length = spec.short.unwrap_or(resized.len());
    let fitting = length.checked_sub(OVERHEAD_LEN).and_then(|length| i32::try_from(length).ok());
    header.batch_length =
        batch_length.or(fitting).ok_or_else(|| format!("a batch is at least 26 bytes, short=`{length}`"))?;
    let bytes: Vec<u8> = header.to_bytes().into_iter().chain(payload).collect();
    Ok(bytes.into_iter().take(length).collect())
}

fn overridden(spec: &HeaderSpec, header: Header) -> Header {
    Header {
        magic: spec.magic.unwrap_or(header.magic),
        attributes: spec.attributes.map_or(header.attributes, Attributes::from_bits),
        last_offset_delta: spec.last_offset_delta.unwrap_or(header.last_offset_delta),
        base_timestamp: spec.base_timestamp.unwrap_or(header.base_timestamp),
        max_timestamp: spec.max_timestamp.unwrap_or(header.max_timestamp),
        record_count: spec.record_count.unwrap_or(header.record_count),
        ..header
    }
}

fn codec(name: &str) -> Result<Codec, String> {
    let found = Codec::ALL.into_iter().find(|codec| codec.name() == name);
    found.ok_or_else(|| format!("no such codec, codec=`{name}`"))
}

/// The records that `specs` describe, each in a line.
pub(crate) fn records_shown(specs: &[RecordSpec]) -> Result<Vec<String>, String> {
    let data = (0..).zip(specs).map(|(index, spec)| Data::new(index, spec));
    data.map(|data| data.map(|data| data.borrowed().shown())).collect()
}

/// The records of a batch, each in a line.
pub(crate) fn stored_records_shown(batch: &[u8]) -> Result<Vec<String>, String> {
    let header = Header::read(batch).ok_or("the batch is shorter than its header")?;
    let payload = batch.get(HEADER_LEN..).unwrap_or_default();
    let codec = header.attributes.codec().map_err(|codec| format!("no such codec, codec=`{codec}`"))?;
    let plain = match codec {
        Codec::None => payload.to_vec(),
        codec => crate::state::inflate(codec, payload).map_err(|why| format!("{why:?}"))?,
    };
    let records = Records::new(&plain, header.record_count);
    let shown = records.map(|record| {
        let record = record.map_err(|error| error.to_string())?;
        let headers = record.headers.map(|header| (header.key, header.value)).collect();
        let timestamp = header.base_timestamp.saturating_add(record.timestamp_delta);
        let Record { offset_delta, key, value, .. } = record;
        Ok(NewRecord { offset_delta, timestamp, key, value, headers }.shown())
    });
    shown.collect()
}

/// In words.
trait Shown {
    fn shown(&self) -> String;
}

impl Shown for NewRecord<'_> {
    fn shown(&self) -> String {
        let text = |bytes: Option<&[u8]>| {
            bytes.map_or("null".to_owned(), |bytes| format!("`{}`", bytes.escape_ascii()))
        };
        let headers =
            self.headers.iter().map(|(name, value)| format!(" {}={}", name.escape_ascii(), text(*value)));
        let (offset, timestamp, key, value) =
            (self.offset_delta, self.timestamp, text(self.key), text(self.value));
        format!(
            "offset {offset}, timestamp {timestamp}, key {key}, value {value},{}",
            headers.collect::<String>()
        )
    }
}

/// A record's own bytes.
struct Data {
    offset: i32,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, String)>,
}

impl Data {
    fn all(spec: &BatchSpec) -> Result<Vec<Self>, String> {
        match (&spec.records, spec.control) {
            (Some(records), _) => {
                (0..).zip(records).map(|(index, record)| Self::new(index, record)).collect()
            }
            (None, None) => Ok(vec![Self::new(0, &RecordSpec::default())?]),
            (None, Some(kind)) => Ok(vec![Self {
                offset: 0,
                timestamp: TIMESTAMP_MS,
                key: Some(marker_key(ControlType::from_number(kind)).to_vec()),
                value: Some(marker_value(0).to_vec()),
                headers: Vec::new(),
            }]),
        }
    }

    fn new(index: i32, spec: &RecordSpec) -> Result<Self, String> {
        let key = match &spec.key_hex {
            Some(digits) => hex::decode(digits)?,
            None => spec.key.as_deref().unwrap_or("k").as_bytes().to_vec(),
        };
        let value = match spec.value_bytes {
            Some(len) if len > BYTES_MAX => {
                return Err(format!("a value has at most {BYTES_MAX} bytes, value-bytes=`{len}`"));
            }
            Some(len) => vec![b'v'; len],
            None => spec.value.as_deref().unwrap_or("v").as_bytes().to_vec(),
        };
        Ok(Self {
            offset: spec.offset.unwrap_or(index),
            timestamp: spec.timestamp.unwrap_or(TIMESTAMP_MS),
            key: (!spec.null_key).then_some(key),
            value: (!spec.null_value).then_some(value),
            headers: spec.headers.clone(),
        })
    }

    fn borrowed(&self) -> NewRecord<'_> {
        NewRecord {
            offset_delta: self.offset,
            timestamp: self.timestamp,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (name.as_bytes(), Some(value.as_bytes())))
                .collect(),
        }
    }
}
