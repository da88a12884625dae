//! Other records for a batch (`log.rewrite`): checked against those that came, compressed, and put under its header.
//!
//! What a compaction could have left is accepted, and nothing else: fewer records, each at its own offset with its own
//! timestamp. Key, value and headers may be others.

use bytes::Bytes;
use verbatim_batch::{
    CRC_START, Codec, HEADER_LEN, Header, OVERHEAD_LEN, Record, RecordError, Records, TimestampType, crc32c,
    crc32c_append,
};
use verbatim_contract::{Reason, Refusal, Unreadable};

use crate::{Broken, Incoming, Invariant, Partition};

/// Bytes of plain records, those that came as well as those that are left, of a batch that is rewritten: a quarter of the
/// memory that a module has by default.
pub const MAX_REWRITTEN_LEN: usize = 16 << 20;

/// A batch with other records, which has no place yet.
#[derive(Clone, Debug)]
pub(crate) struct Rewritten {
    /// The header that came, but for length, number of records, maxTimestamp and, of an empty batch, the codec. The
    /// checksum is none yet.
    header: Header,
    /// The records as they are stored.
    payload: Bytes,
}

/// Why a batch is not rewritten.
#[derive(Debug)]
pub(crate) enum NotRewritten {
    /// The module handed back what is never stored.
    Broken(Broken),
    /// The batch is too large to be rewritten, whatever the module says.
    Refused(Refusal),
}

impl From<Broken> for NotRewritten {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl Rewritten {
    /// `records`, plain, in the place of those of `batch`.
    pub(crate) fn new<P: Partition>(
        index: u32,
        batch: &Incoming,
        records: &[u8],
        partition: &mut P,
    ) -> Result<Self, NotRewritten> {
        let received = batch.facts.header;
        if received.attributes.is_control() {
            let text = format!(
                "control batch {index} cannot be rewritten, attributes=`{}`",
                received.attributes.bits()
            );
            return Err(Broken::new(Invariant::Bytes, text).into());
        }
        let plain = partition.inflated(index, batch).map_err(|why| unreadable(index, why))?;
        if plain.len().max(records.len()) > MAX_REWRITTEN_LEN {
            return Err(too_large(index, Some(plain.len().max(records.len()))));
        }
        let left = Left::of(index, &received, &plain, records)?;
        let codec = received.attributes.codec().map_err(|_| unreadable(index, Unreadable::UnknownCodec))?;
        let codec = if left.count == 0 { Codec::None } else { codec };
        let payload = match codec {
            Codec::None => Bytes::copy_from_slice(records),
            codec => partition.compress(codec, records).map(Bytes::from).map_err(|text| {
                Broken::new(Invariant::Limits, format!("batch {index} cannot be compressed: {text}"))
            })?,
        };
        let length = HEADER_LEN.saturating_sub(OVERHEAD_LEN).saturating_add(payload.len());
        let keeps_time = received.attributes.timestamp_type() == TimestampType::LogAppendTime;
        let header = Header {
            batch_length: i32::try_from(length).map_err(|_| too_large(index, Some(payload.len())))?,
            record_count: left.count,
            attributes: received.attributes.with_codec(codec),
            max_timestamp: left.max_timestamp.filter(|_| !keeps_time).unwrap_or(received.max_timestamp),
            ..received
        };
        Ok(Self { header, payload })
    }

    /// The header, whose checksum is none yet.
    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// The records as they are stored.
    pub(crate) fn payload(&self) -> &Bytes {
        &self.payload
    }
}

/// The header with the checksum that it gives with these records.
pub(crate) fn sealed(header: Header, payload: &[u8]) -> Header {
    let head = header.to_bytes();
    let crc = crc32c_append(crc32c(head.get(CRC_START..).unwrap_or_default()), payload);
    Header { crc, ..header }
}

/// What is left of a batch's records.
struct Left {
    count: i32,
    /// The largest timestamp, in ms since 1970; none without records.
    max_timestamp: Option<i64>,
}

impl Left {
    /// Holds `records` against those that came, `plain`: each must be one of them by offset and timestamp, in their order.
    fn of(index: u32, received: &Header, plain: &[u8], records: &[u8]) -> Result<Self, Broken> {
        let mut came = Records::new(plain, received.record_count);
        let mut walk = Records::new(records, i32::MAX);
        let mut left = Self { count: 0, max_timestamp: None };
        while !walk.rest().is_empty() {
            let Some(record) = walk.next() else { break };
            let record = record.map_err(|error| malformed(index, "handed back", error))?;
            let original = find(index, &mut came, &record)?;
            let kept = [
                ("timestampDelta", original.timestamp_delta, record.timestamp_delta),
                ("attributes", original.attributes.into(), record.attributes.into()),
            ];
            if let Some((field, from, to)) = kept.into_iter().find(|(_, from, to)| from != to) {
                let offset = record.offset_delta;
                let text = format!(
                    "batch {index}: the record with offsetDelta {offset} keeps its {from}, {field}=`{to}`"
                );
                return Err(Broken::new(Invariant::Bytes, text));
            }
            left.count = left.count.saturating_add(1);
            let timestamp = received.base_timestamp.saturating_add(record.timestamp_delta);
            left.max_timestamp = left.max_timestamp.max(Some(timestamp));
        }
        Ok(left)
    }
}

/// The record that came with the same offset; what lies before it was dropped.
fn find<'a>(index: u32, came: &mut Records<'a>, record: &Record<'_>) -> Result<Record<'a>, Broken> {
    for original in came {
        let original = original.map_err(|error| malformed(index, "received", error))?;
        if original.offset_delta == record.offset_delta {
            return Ok(original);
        }
    }
    let text = format!(
        "batch {index}: no more record was received with that offset, offsetDelta=`{}`",
        record.offset_delta
    );
    Err(Broken::new(Invariant::Bytes, text))
}

fn malformed(index: u32, which: &str, error: RecordError) -> Broken {
    Broken::new(Invariant::Bytes, format!("batch {index}: the records {which} are malformed: {error}"))
}

fn unreadable(index: u32, why: Unreadable) -> NotRewritten {
    let (invariant, text) = match why {
        Unreadable::TooLarge => return too_large(index, None),
        Unreadable::Corrupt => (Invariant::Validated, "its records cannot be inflated"),
        Unreadable::UnknownCodec => (Invariant::Validated, "its codec is unknown"),
    };
    Broken::new(invariant, format!("batch {index} cannot be rewritten: {text}")).into()
}

fn too_large(index: u32, len: Option<usize>) -> NotRewritten {
    let len = len.map_or_else(|| "more".to_owned(), |len| len.to_string());
    NotRewritten::Refused(Refusal {
        reason: Reason::BatchTooLarge,
        batch: Some(index),
        expected: i64::try_from(MAX_REWRITTEN_LEN).ok(),
        text: format!(
            "batch {index}: records that are rewritten may have {MAX_REWRITTEN_LEN} bytes, inflated, length=`{len}`"
        ),
    })
}
