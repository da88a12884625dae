//! The exact-produce tag: tagged field 12486, which carries a compare-and-append order beside a partition's records.
//!
//! It sits on the partition entry of Produce v9 and later; the answer carries its own form under the same number on
//! the partition response, only for those who sent one. CreatePartitions (v2 on) and IncrementalAlterConfigs (v1 on)
//! carry a one-byte mark at their top level. All integers are big-endian. `docs/TAG.md` draws every byte with vectors.
//!
//! Decoding judges structure alone: version, length, count, and negative numbers other than -1 where -1 means absent.
//! Whether offsets and epochs make sense together (R26a and the rest) is the policy's to say.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::create_partitions_request::CreatePartitionsRequest;
use kafka_protocol::messages::incremental_alter_configs_request::IncrementalAlterConfigsRequest;
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::produce_response::PartitionProduceResponse;

/// The number of the tagged field.
pub const TAG: i32 = 12486;
/// The version of the tag's layout.
pub const TAG_VERSION: u8 = 1;
/// The lowest Produce version that can carry the tag: the first with tagged fields.
pub const PRODUCE_VERSION_MIN: i16 = 9;
/// Bytes of a request tag before its epoch entries.
pub const REQUEST_TAG_BYTES: usize = 67;
/// Bytes of one epoch entry.
pub const EPOCH_ENTRY_BYTES: usize = 12;
/// Bytes of an answer's tag.
pub const ANSWER_TAG_BYTES: usize = 25;

/// A leader epoch of the source and the offset where it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEntry {
    /// The leader epoch.
    pub epoch: i32,
    /// The first offset under it.
    pub start: i64,
}

/// What a writer orders for one exact partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTag {
    /// The source's topic id; all zero if unknown.
    pub source_topic_id: [u8; 16],
    /// The end the writer believes the log has.
    pub expected_end: i64,
    /// The source's leader epoch at N - 1, where N is `truncate_to` if given, else `expected_end`; -1 = nothing there.
    pub epoch_before: i32,
    /// The source's log start.
    pub source_start: i64,
    /// The source's high watermark.
    pub source_end: i64,
    /// The source's current leader epoch.
    pub source_epoch: i32,
    /// Where the end moves to after the batches.
    pub end_to: Option<i64>,
    /// Where the log is cut before anything else.
    pub truncate_to: Option<i64>,
    /// Leader epochs the writer declares with their starts, in rising order.
    pub entries: Vec<EpochEntry>,
}

/// What the host answers about one exact partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerTag {
    /// The log's end after the request.
    pub end: i64,
    /// The partition's shown epoch; -1 = none.
    pub shown_epoch: i32,
    /// The last epoch entry's epoch; -1 = none.
    pub last_epoch: i32,
    /// The first offset at which the stored bytes differ from those sent.
    pub diverged: Option<i64>,
}

/// A tag that cannot be read. Answered as INVALID_REQUEST (R26a).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    /// The first byte names a layout that is not known here.
    #[error("tag {TAG} version {found} is not known, expected {TAG_VERSION}")]
    Version {
        /// The version byte received.
        found: u8,
    },
    /// Fewer or more bytes than the layout has.
    #[error("tag {TAG} has {found} bytes, expected {expected}")]
    Length {
        /// Bytes received.
        found: usize,
        /// Bytes that the layout, with the count stated inside, has.
        expected: usize,
    },
    /// A number below what its field can hold.
    #[error("tag {TAG} field {field} is {found}, expected {least} or more")]
    Negative {
        /// The field's name.
        field: &'static str,
        /// The value received.
        found: i64,
        /// The least value allowed: 0, or -1 where that means absent.
        least: i64,
    },
    /// More epoch entries than a u16 can count.
    #[error("tag {TAG} cannot carry {found} epoch entries, at most 65535")]
    TooManyEntries {
        /// Entries given.
        found: usize,
    },
}

impl RequestTag {
    /// The tag's bytes.
    ///
    /// # Errors
    /// [`TagError::TooManyEntries`]; and [`TagError::Negative`] for a value that [`RequestTag::decode`] would refuse.
    pub fn encode(&self) -> Result<Bytes, TagError> {
        let count = u16::try_from(self.entries.len())
            .map_err(|_| TagError::TooManyEntries { found: self.entries.len() })?;
        self.check()?;
        let mut out = BytesMut::with_capacity(request_bytes(self.entries.len()));
        out.put_u8(TAG_VERSION);
        out.put_slice(&self.source_topic_id);
        out.put_i64(self.expected_end);
        out.put_i32(self.epoch_before);
        out.put_i64(self.source_start);
        out.put_i64(self.source_end);
        out.put_i32(self.source_epoch);
        out.put_i64(self.end_to.unwrap_or(-1));
        out.put_i64(self.truncate_to.unwrap_or(-1));
        out.put_u16(count);
        for entry in &self.entries {
            out.put_i32(entry.epoch);
            out.put_i64(entry.start);
        }
        Ok(out.freeze())
    }

    /// Reads a tag.
    ///
    /// # Errors
    /// [`TagError::Version`] first, then [`TagError::Length`] (also when the count inside does not match), then
    /// [`TagError::Negative`] for the first field that is out of bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, TagError> {
        check_version(bytes, REQUEST_TAG_BYTES)?;
        let mut cursor = Cursor { rest: bytes, total: bytes.len(), expected: REQUEST_TAG_BYTES };
        cursor.array::<1>()?;
        let mut tag = Self {
            source_topic_id: cursor.array()?,
            expected_end: cursor.i64()?,
            epoch_before: cursor.i32()?,
            source_start: cursor.i64()?,
            source_end: cursor.i64()?,
            source_epoch: cursor.i32()?,
            end_to: Some(cursor.i64()?).filter(|offset| *offset != -1),
            truncate_to: Some(cursor.i64()?).filter(|offset| *offset != -1),
            entries: Vec::new(),
        };
        let count = usize::from(u16::from_be_bytes(cursor.array()?));
        cursor.expected = request_bytes(count);
        if bytes.len() != cursor.expected {
            return Err(TagError::Length { found: bytes.len(), expected: cursor.expected });
        }
        tag.entries.reserve_exact(count);
        for _ in 0..count {
            tag.entries.push(EpochEntry { epoch: cursor.i32()?, start: cursor.i64()? });
        }
        tag.check()?;
        Ok(tag)
    }

    /// The bounds every tag keeps, whichever way it goes. An epoch of an entry is left to the policy (R27 is 87).
    fn check(&self) -> Result<(), TagError> {
        at_least("expected end", self.expected_end, 0)?;
        at_least("epoch before", i64::from(self.epoch_before), -1)?;
        at_least("source start", self.source_start, 0)?;
        at_least("source end", self.source_end, 0)?;
        at_least("source epoch", i64::from(self.source_epoch), -1)?;
        at_least("end to", self.end_to.unwrap_or(0), 0)?;
        at_least("truncate to", self.truncate_to.unwrap_or(0), 0)?;
        self.entries.iter().try_for_each(|entry| at_least("entry start", entry.start, 0))
    }
}

impl AnswerTag {
    /// The tag's bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(ANSWER_TAG_BYTES);
        out.put_u8(TAG_VERSION);
        out.put_i64(self.end);
        out.put_i32(self.shown_epoch);
        out.put_i32(self.last_epoch);
        out.put_i64(self.diverged.unwrap_or(-1));
        out.freeze()
    }

    /// Reads an answer's tag.
    ///
    /// # Errors
    /// [`TagError::Version`], [`TagError::Length`], or [`TagError::Negative`] for the first field below its least value.
    pub fn decode(bytes: &[u8]) -> Result<Self, TagError> {
        check_version(bytes, ANSWER_TAG_BYTES)?;
        if bytes.len() != ANSWER_TAG_BYTES {
            return Err(TagError::Length { found: bytes.len(), expected: ANSWER_TAG_BYTES });
        }
        let mut cursor = Cursor { rest: bytes, total: bytes.len(), expected: ANSWER_TAG_BYTES };
        cursor.array::<1>()?;
        let (end, shown_epoch, last_epoch) = (cursor.i64()?, cursor.i32()?, cursor.i32()?);
        let diverged = cursor.i64()?;
        at_least("end", end, 0)?;
        at_least("shown epoch", i64::from(shown_epoch), -1)?;
        at_least("last epoch", i64::from(last_epoch), -1)?;
        at_least("diverged", diverged, -1)?;
        Ok(Self { end, shown_epoch, last_epoch, diverged: Some(diverged).filter(|offset| *offset != -1) })
    }
}

/// The tag on a partition entry of a Produce request, if there is one.
///
/// # Errors
/// A tag that is there but cannot be read.
pub fn request_tag(partition: &PartitionProduceData) -> Result<Option<RequestTag>, TagError> {
    partition.unknown_tagged_fields.get(&TAG).map(|bytes| RequestTag::decode(bytes)).transpose()
}

/// Puts a tag on a partition entry of a Produce request, replacing one that is there.
///
/// # Errors
/// A tag that cannot be encoded; the entry is as it was.
pub fn set_request_tag(partition: &mut PartitionProduceData, tag: &RequestTag) -> Result<(), TagError> {
    partition.unknown_tagged_fields.insert(TAG, tag.encode()?);
    Ok(())
}

/// The tag on a partition's answer, if there is one.
///
/// # Errors
/// A tag that is there but cannot be read.
pub fn answer_tag(partition: &PartitionProduceResponse) -> Result<Option<AnswerTag>, TagError> {
    partition.unknown_tagged_fields.get(&TAG).map(|bytes| AnswerTag::decode(bytes)).transpose()
}

/// Puts a tag on a partition's answer, replacing one that is there.
pub fn set_answer_tag(partition: &mut PartitionProduceResponse, tag: &AnswerTag) {
    partition.unknown_tagged_fields.insert(TAG, tag.encode());
}

/// An admin request that can carry the one-byte mark at its top level, which says that the mirror itself speaks.
pub trait Marked {
    /// The lowest version of the API with tagged fields.
    const MARK_VERSION_MIN: i16;

    /// The request's tagged fields.
    fn tagged_fields(&self) -> &BTreeMap<i32, Bytes>;

    /// The request's tagged fields, to change.
    fn tagged_fields_mut(&mut self) -> &mut BTreeMap<i32, Bytes>;

    /// True if the mark is there.
    ///
    /// # Errors
    /// A mark of another version or length.
    fn mark(&self) -> Result<bool, TagError> {
        let Some(bytes) = self.tagged_fields().get(&TAG) else { return Ok(false) };
        check_version(bytes, 1)?;
        if bytes.len() == 1 { Ok(true) } else { Err(TagError::Length { found: bytes.len(), expected: 1 }) }
    }

    /// Sets the mark.
    fn set_mark(&mut self) {
        self.tagged_fields_mut().insert(TAG, Bytes::from_static(&[TAG_VERSION]));
    }
}

impl Marked for CreatePartitionsRequest {
    const MARK_VERSION_MIN: i16 = 2;

    fn tagged_fields(&self) -> &BTreeMap<i32, Bytes> {
        &self.unknown_tagged_fields
    }

    fn tagged_fields_mut(&mut self) -> &mut BTreeMap<i32, Bytes> {
        &mut self.unknown_tagged_fields
    }
}

impl Marked for IncrementalAlterConfigsRequest {
    const MARK_VERSION_MIN: i16 = 1;

    fn tagged_fields(&self) -> &BTreeMap<i32, Bytes> {
        &self.unknown_tagged_fields
    }

    fn tagged_fields_mut(&mut self) -> &mut BTreeMap<i32, Bytes> {
        &mut self.unknown_tagged_fields
    }
}

const fn request_bytes(entries: usize) -> usize {
    REQUEST_TAG_BYTES.saturating_add(entries.saturating_mul(EPOCH_ENTRY_BYTES))
}

fn check_version(bytes: &[u8], expected: usize) -> Result<(), TagError> {
    match bytes.first() {
        Some(&TAG_VERSION) => Ok(()),
        Some(&found) => Err(TagError::Version { found }),
        None => Err(TagError::Length { found: 0, expected }),
    }
}

fn at_least(field: &'static str, found: i64, least: i64) -> Result<(), TagError> {
    if found < least { Err(TagError::Negative { field, found, least }) } else { Ok(()) }
}

struct Cursor<'a> {
    rest: &'a [u8],
    total: usize,
    expected: usize,
}

impl Cursor<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], TagError> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(TagError::Length { found: self.total, expected: self.expected })?;
        self.rest = rest;
        Ok(*head)
    }

    fn i32(&mut self) -> Result<i32, TagError> {
        self.array().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, TagError> {
        self.array().map(i64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests;
