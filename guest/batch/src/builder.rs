use alloc::vec::Vec;
use core::fmt;

use crate::attributes::{Attributes, Codec, TimestampType};
use crate::control::{ControlType, marker_key, marker_value};
use crate::header::{HEADER_LEN, Header, MAGIC_V2, OVERHEAD_LEN};
use crate::patch::reseal;
use crate::record::{Record, RecordHeader};
use crate::varint;

/// A record to be written, with borrowed data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewRecord<'a> {
    /// Offset minus the batch's base offset.
    pub offset_delta: i32,
    /// In ms since 1970.
    pub timestamp: i64,
    /// `None` for null.
    pub key: Option<&'a [u8]>,
    /// `None` for null.
    pub value: Option<&'a [u8]>,
    /// Key and value, `None` for null, in their order.
    pub headers: Vec<(&'a [u8], Option<&'a [u8]>)>,
}

impl<'a> NewRecord<'a> {
    /// A record with null key and null value.
    pub fn new(offset_delta: i32, timestamp: i64) -> Self {
        Self { offset_delta, timestamp, ..Self::default() }
    }

    /// The same with this key.
    #[must_use]
    pub fn key(mut self, key: &'a [u8]) -> Self {
        self.key = Some(key);
        self
    }

    /// The same with this value.
    #[must_use]
    pub fn value(mut self, value: &'a [u8]) -> Self {
        self.value = Some(value);
        self
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, key: &'a [u8], value: Option<&'a [u8]>) -> Self {
        self.headers.push((key, value));
        self
    }
}

/// Builds a batch byte for byte as Kafka does. What is not set follows from the records.
///
/// ```
/// use verbatim_batch::{Batch, BatchBuilder, NewRecord};
///
/// let bytes = BatchBuilder::new(100)
///     .leader_epoch(5)
///     .record(NewRecord::new(0, 1_700_000_000_000).key(b"a").value(b"1"))
///     .record(NewRecord::new(7, 1_700_000_000_007).key(b"b").value(b"2"))
///     .build()
///     .unwrap();
/// let batch = Batch::parse(&bytes).unwrap();
/// assert_eq!(batch.header().last_offset(), Some(107));
/// assert_eq!(batch.header().record_count, 2);
/// ```
#[derive(Clone, Debug)]
pub struct BatchBuilder<'a> {
    base_offset: i64,
    leader_epoch: i32,
    attributes: Attributes,
    producer: (i64, i16, i32),
    last_offset_delta: Option<i32>,
    base_timestamp: Option<i64>,
    max_timestamp: Option<i64>,
    record_count: Option<i32>,
    records: Vec<NewRecord<'a>>,
}

/// Why a batch cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A length or count is beyond what its field can hold.
    TooLarge {
        /// That length or count.
        value: usize,
    },
    /// A record's timestamp is too far from the base timestamp.
    TimestampDelta {
        /// The record's timestamp.
        timestamp: i64,
        /// The batch's base timestamp.
        base_timestamp: i64,
    },
}

impl<'a> BatchBuilder<'a> {
    /// An empty batch without producer, uncompressed, leader epoch 0.
    pub fn new(base_offset: i64) -> Self {
        Self {
            base_offset,
            leader_epoch: 0,
            attributes: Attributes::default(),
            producer: (-1, -1, -1),
            last_offset_delta: None,
            base_timestamp: None,
            max_timestamp: None,
            record_count: None,
            records: Vec::new(),
        }
    }

    /// A whole transaction marker: a control batch with one record, leader epoch 0 (see [`place`](crate::place)).
    ///
    /// # Errors
    /// None with these arguments; the type is that of every build.
    pub fn marker(
        base_offset: i64,
        (producer_id, producer_epoch): (i64, i16),
        timestamp: i64,
        kind: ControlType,
        coordinator_epoch: i32,
    ) -> Result<Vec<u8>, BuildError> {
        let (key, value) = (marker_key(kind), marker_value(coordinator_epoch));
        BatchBuilder::new(base_offset)
            .producer(producer_id, producer_epoch, -1)
            .transactional()
            .control()
            .record(NewRecord::new(0, timestamp).key(&key).value(&value))
            .build()
    }

    /// Sets `partitionLeaderEpoch`.
    #[must_use]
    pub fn leader_epoch(mut self, leader_epoch: i32) -> Self {
        self.leader_epoch = leader_epoch;
        self
    }

    /// Sets the idempotent producer, its epoch and the sequence of the first record.
    #[must_use]
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.producer = (id, epoch, base_sequence);
        self
    }

    /// Sets all attribute bits at once.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Sets the transactional bit.
    #[must_use]
    pub fn transactional(mut self) -> Self {
        self.attributes = self.attributes.with_transactional(true);
        self
    }

    /// Sets the control bit.
    #[must_use]
    pub fn control(mut self) -> Self {
        self.attributes = self.attributes.with_control(true);
        self
    }

    /// Makes the timestamp type LogAppendTime, and `timestamp` (ms since 1970) the batch's.
    #[must_use]
    pub fn log_append_time(mut self, timestamp: i64) -> Self {
        self.attributes = self.attributes.with_timestamp_type(TimestampType::LogAppendTime);
        self.max_timestamp = Some(timestamp);
        self
    }

    /// Sets the delete-horizon bit, and the base timestamp to that horizon (ms since 1970; R18).
    #[must_use]
    pub fn delete_horizon(mut self, horizon: i64) -> Self {
        self.attributes = self.attributes.with_delete_horizon(true);
        self.base_timestamp = Some(horizon);
        self
    }

    /// Sets the base timestamp; otherwise that of the first record, -1 without one.
    #[must_use]
    pub fn base_timestamp(mut self, timestamp: i64) -> Self {
        self.base_timestamp = Some(timestamp);
        self
    }

    /// Sets the maximal timestamp; otherwise the largest of the records', -1 without one.
    #[must_use]
    pub fn max_timestamp(mut self, timestamp: i64) -> Self {
        self.max_timestamp = Some(timestamp);
        self
    }

    /// Sets the last offset delta; otherwise the largest of the records', 0 without one.
    #[must_use]
    pub fn last_offset_delta(mut self, delta: i32) -> Self {
        self.last_offset_delta = Some(delta);
        self
    }

    /// Sets the record count; otherwise that of the records. A wrong one makes a batch to be refused.
    #[must_use]
    pub fn record_count(mut self, count: i32) -> Self {
        self.record_count = Some(count);
        self
    }

    /// Adds a record.
    #[must_use]
    pub fn record(mut self, record: NewRecord<'a>) -> Self {
        self.records.push(record);
        self
    }

    /// The batch with its records as they are; the codec bits are written as set, so leave them at none.
    ///
    /// # Errors
    /// A length, count or timestamp does not fit its field.
    pub fn build(&self) -> Result<Vec<u8>, BuildError> {
        assemble(&self.to_header()?, &self.plain_records()?)
    }

    /// The batch with `payload`, which is [`BatchBuilder::plain_records`] as compressed by `codec`.
    ///
    /// # Errors
    /// A length or count does not fit its field.
    pub fn build_compressed(&self, codec: Codec, payload: &[u8]) -> Result<Vec<u8>, BuildError> {
        let mut header = self.to_header()?;
        header.attributes = header.attributes.with_codec(codec);
        assemble(&header, payload)
    }

    /// The records alone, not compressed.
    ///
    /// # Errors
    /// A length or timestamp does not fit its field.
    pub fn plain_records(&self) -> Result<Vec<u8>, BuildError> {
        let base_timestamp = self.effective_base_timestamp();
        let mut out = Vec::new();
        let mut body = Vec::new();
        for record in &self.records {
            body.clear();
            write_body(&mut body, record, base_timestamp)?;
            write_len(&mut out, body.len())?;
            out.extend_from_slice(&body);
        }
        Ok(out)
    }

    fn effective_base_timestamp(&self) -> i64 {
        let first = self.records.first().map(|record| record.timestamp);
        self.base_timestamp.or(first).unwrap_or(-1)
    }

    fn to_header(&self) -> Result<Header, BuildError> {
        let (producer_id, producer_epoch, base_sequence) = self.producer;
        let largest_delta = self.records.iter().map(|record| record.offset_delta).max();
        let largest_timestamp = self.records.iter().map(|record| record.timestamp).max();
        let count = int(self.records.len())?;
        Ok(Header {
            base_offset: self.base_offset,
            batch_length: 0,
            leader_epoch: self.leader_epoch,
            magic: MAGIC_V2,
            crc: 0,
            attributes: self.attributes,
            last_offset_delta: self.last_offset_delta.or(largest_delta).unwrap_or(0),
            base_timestamp: self.effective_base_timestamp(),
            max_timestamp: self.max_timestamp.or(largest_timestamp).unwrap_or(-1),
            producer_id,
            producer_epoch,
            base_sequence,
            record_count: self.record_count.unwrap_or(count),
        })
    }
}

impl<'a> Record<'a> {
    /// Appends the record's bytes, its length in front, with `value` as its value and each header as `header` makes it; every
    /// other field is the record's own. It takes no more memory than the bytes that it appends.
    ///
    /// # Errors
    /// A length does not fit its field; then `out` has bytes of no use at its end.
    pub fn write(
        &self,
        value: Option<&[u8]>,
        header: impl Fn(RecordHeader<'a>) -> RecordHeader<'a>,
        out: &mut Vec<u8>,
    ) -> Result<(), BuildError> {
        let begins = out.len();
        append(out, value.unwrap_or_default());
        self.put_around(begins, value.map(<[u8]>::len), header, out)
    }

    /// The same with the value that lies at the end of `out`, from `begins` on: the other fields are put around it.
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub fn write_around(
        &self,
        begins: usize,
        header: impl Fn(RecordHeader<'a>) -> RecordHeader<'a>,
        out: &mut Vec<u8>,
    ) -> Result<(), BuildError> {
        self.put_around(begins, Some(out.len().saturating_sub(begins)), header, out)
    }

    fn put_around(
        &self,
        begins: usize,
        value_len: Option<usize>,
        header: impl Fn(RecordHeader<'a>) -> RecordHeader<'a>,
        out: &mut Vec<u8>,
    ) -> Result<(), BuildError> {
        let value_end = out.len();
        write_len(out, self.headers.len())?;
        for RecordHeader { key, value } in self.headers.map(header) {
            write_nullable(out, Some(key))?;
            write_nullable(out, value)?;
        }
        let body_end = out.len();
        self.write_head(value_len, body_end.saturating_sub(value_end), out)?;
        // Its length is known only now; it goes behind the body, then to its front.
        let head_len = out.len().saturating_sub(body_end);
        if let Some(record) = out.get_mut(begins..) {
            record.rotate_right(head_len);
        }
        Ok(())
    }

    /// All that is in front of a value of this length, which has so many bytes of headers behind it.
    fn write_head(
        &self,
        value_len: Option<usize>,
        headers_len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), BuildError> {
        let (timestamp_delta, offset_delta) = (self.timestamp_delta, i64::from(self.offset_delta));
        let fields = [
            1,
            varint::len(timestamp_delta),
            varint::len(offset_delta),
            nullable_len(self.key.map(<[u8]>::len)),
            nullable_len(value_len),
        ];
        write_len(out, fields.into_iter().fold(headers_len, usize::saturating_add))?;
        out.extend_from_slice(&self.attributes.to_be_bytes());
        varint::write(out, timestamp_delta);
        varint::write(out, offset_delta);
        write_nullable(out, self.key)?;
        match value_len {
            None => write_nullable(out, None),
            Some(len) => write_len(out, len),
        }
    }
}

/// Bytes of a nullable field with data of this length, its own length included.
fn nullable_len(data: Option<usize>) -> usize {
    data.map_or(1, |len| written_len(len).saturating_add(len))
}

/// Bytes of a length or a count.
fn written_len(len: usize) -> usize {
    varint::len(i64::try_from(len).unwrap_or(i64::MAX))
}

/// A batch of this header and payload; length and checksum are made to fit, every other field is written as it stands.
///
/// # Errors
/// The payload does not fit the length field.
pub fn assemble(header: &Header, payload: &[u8]) -> Result<Vec<u8>, BuildError> {
    let total = HEADER_LEN.saturating_add(payload.len());
    let batch_length = int(total.saturating_sub(OVERHEAD_LEN))?;
    let mut batch = Vec::with_capacity(total);
    batch.extend_from_slice(&Header { batch_length, ..*header }.to_bytes());
    batch.extend_from_slice(payload);
    reseal(&mut batch).map_err(|error| BuildError::TooLarge { value: error.len })?;
    Ok(batch)
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLarge { value } => write!(f, "length or count does not fit a batch, value=`{value}`"),
            Self::TimestampDelta { timestamp, base_timestamp } => {
                write!(f, "timestamp is too far from the base {base_timestamp}, timestamp=`{timestamp}`")
            }
        }
    }
}

impl core::error::Error for BuildError {}

fn write_body(out: &mut Vec<u8>, record: &NewRecord<'_>, base_timestamp: i64) -> Result<(), BuildError> {
    let timestamp = record.timestamp;
    let delta = timestamp
        .checked_sub(base_timestamp)
        .ok_or(BuildError::TimestampDelta { timestamp, base_timestamp })?;
    out.push(0);
    varint::write(out, delta);
    varint::write(out, i64::from(record.offset_delta));
    write_nullable(out, record.key)?;
    write_nullable(out, record.value)?;
    write_len(out, record.headers.len())?;
    for (key, value) in &record.headers {
        write_nullable(out, Some(key))?;
        write_nullable(out, *value)?;
    }
    Ok(())
}

fn write_nullable(out: &mut Vec<u8>, data: Option<&[u8]>) -> Result<(), BuildError> {
    match data {
        None => varint::write(out, -1),
        Some(data) => {
            write_len(out, data.len())?;
            append(out, data);
        }
    }
    Ok(())
}

/// A few bytes are quicker pushed than copied by a call.
fn append(out: &mut Vec<u8>, data: &[u8]) {
    if data.len() > 16 {
        out.extend_from_slice(data);
    } else {
        data.iter().for_each(|byte| out.push(*byte));
    }
}

fn write_len(out: &mut Vec<u8>, len: usize) -> Result<(), BuildError> {
    varint::write(out, i64::from(int(len)?));
    Ok(())
}

fn int(value: usize) -> Result<i32, BuildError> {
    i32::try_from(value).map_err(|_| BuildError::TooLarge { value })
}
