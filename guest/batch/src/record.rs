use core::fmt;

use crate::control::{ControlKey, ControlKeyError};
use crate::varint::{self, Decoder, Step, Width};

/// One record of a batch, borrowed from plain (inflated) record bytes that are known to be well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Unused by Kafka; kept as it came.
    pub attributes: i8,
    /// Timestamp minus the batch's base timestamp, in ms; may be negative.
    pub timestamp_delta: i64,
    /// Offset minus the batch's base offset; not contiguous after a compaction.
    pub offset_delta: i32,
    /// `None` for a null key, which is not an empty one.
    pub key: Option<&'a [u8]>,
    /// `None` for a null value (a tombstone), which is not an empty one.
    pub value: Option<&'a [u8]>,
    /// The headers; keys may repeat.
    pub headers: RecordHeaders<'a>,
}

/// A record without its data: what judging a batch needs, small enough to be told while bytes still arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordMeta {
    /// Unused by Kafka; kept as it came.
    pub attributes: i8,
    /// Timestamp minus the batch's base timestamp, in ms; may be negative.
    pub timestamp_delta: i64,
    /// Offset minus the batch's base offset.
    pub offset_delta: i32,
    /// Bytes of the key; `None` for a null key.
    pub key_len: Option<usize>,
    /// The key's first bytes, filled up with 0; enough for [`RecordMeta::control_key`].
    pub key_start: [u8; ControlKey::LEN],
}

/// One header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    /// The key; UTF-8 by convention, which is not checked, as Kafka does not check it.
    pub key: &'a [u8],
    /// `None` for a null value, which is not an empty one.
    pub value: Option<&'a [u8]>,
}

/// A record's headers in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordHeaders<'a> {
    bytes: &'a [u8],
    left: usize,
}

/// Why records are malformed (R14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Which record, counted from 0; the record count itself for bytes after the last one.
    pub index: u32,
    /// What is wrong with it.
    pub kind: RecordErrorKind,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordErrorKind {
    /// The batch's record count is negative.
    NegativeCount {
        /// That count.
        value: i32,
    },
    /// All bytes end within this field.
    Cut {
        /// The field.
        field: RecordField,
    },
    /// This field goes beyond the record's own length.
    Overrun {
        /// The field.
        field: RecordField,
    },
    /// A varint has too many bytes or bits for its field.
    Varint {
        /// The field.
        field: RecordField,
    },
    /// A length or count is negative where null has no meaning.
    Negative {
        /// The field.
        field: RecordField,
        /// Its value.
        value: i64,
    },
    /// The record's own length goes beyond its last field.
    Unread {
        /// Bytes left over.
        bytes: usize,
    },
    /// There are bytes after the last record.
    Trailing,
}

/// The fields of a record, in their order.
#[expect(missing_docs, reason = "the names are those of the format page")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordField {
    Length,
    Attributes,
    TimestampDelta,
    OffsetDelta,
    KeyLength,
    Key,
    ValueLength,
    Value,
    HeaderCount,
    HeaderKeyLength,
    HeaderKey,
    HeaderValueLength,
    HeaderValue,
}

/// Walks the plain records of a batch: well-formed ones in their order, then at most one error, then nothing.
///
/// Exactly the stated number of records must fill the bytes exactly. Offsets and timestamps are not judged. Like Kafka
/// it takes any negative key or value length for null.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    index: u32,
    count: Result<u32, i32>,
    ended: bool,
}

impl<'a> Records<'a> {
    /// A walk over `plain`, the inflated records, of which the batch's header states `count`.
    pub fn new(plain: &'a [u8], count: i32) -> Self {
        Self { rest: plain, index: 0, count: u32::try_from(count).map_err(|_| count), ended: false }
    }

    /// The bytes behind the records told so far.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn step(&mut self) -> Result<Option<Record<'a>>, RecordErrorKind> {
        let count = self.count.map_err(|value| RecordErrorKind::NegativeCount { value })?;
        if self.index == count {
            return if self.rest.is_empty() { Ok(None) } else { Err(RecordErrorKind::Trailing) };
        }
        let (record, rest) = read_record(self.rest)?;
        self.rest = rest;
        self.index = self.index.saturating_add(1);
        Ok(Some(record))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let index = self.index;
        let item = self.step().map_err(|kind| RecordError { index, kind }).transpose();
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }
}

impl core::iter::FusedIterator for Records<'_> {}

impl Record<'_> {
    /// The record without its data.
    pub fn meta(&self) -> RecordMeta {
        let mut meta = RecordMeta {
            attributes: self.attributes,
            timestamp_delta: self.timestamp_delta,
            offset_delta: self.offset_delta,
            key_len: self.key.map(<[u8]>::len),
            key_start: [0; ControlKey::LEN],
        };
        for (to, from) in meta.key_start.iter_mut().zip(self.key.unwrap_or_default()) {
            *to = *from;
        }
        meta
    }
}

impl RecordMeta {
    /// Whether the key is null (R15).
    pub fn key_is_null(&self) -> bool {
        self.key_len.is_none()
    }

    /// The key read as that of a control record (R8, R38).
    ///
    /// # Errors
    /// The key is null or too short.
    pub fn control_key(&self) -> Result<ControlKey, ControlKeyError> {
        let len = self.key_len.unwrap_or(0).min(ControlKey::LEN);
        ControlKey::parse(self.key_start.get(..len).unwrap_or_default())
    }
}

impl RecordHeaders<'_> {
    /// How many are left.
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for RecordHeaders<'a> {
    type Item = RecordHeader<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut cursor = Cursor { rest: self.bytes, declared: self.bytes.len() };
        // The walk has read these very bytes before, so this does not fail.
        let header = cursor.header().ok()?;
        self.bytes = cursor.rest;
        Some(header)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

pub(crate) fn read_record(bytes: &[u8]) -> Result<(Record<'_>, &[u8]), RecordErrorKind> {
    let mut cursor = Cursor { rest: bytes, declared: usize::MAX };
    let length = cursor.int(RecordField::Length)?;
    cursor.declared = not_negative(RecordField::Length, length)?;
    let attributes = i8::from_be_bytes([cursor.byte(RecordField::Attributes)?]);
    let timestamp_delta = cursor.long(RecordField::TimestampDelta)?;
    let offset_delta = cursor.int(RecordField::OffsetDelta)?;
    let key = cursor.nullable(RecordField::KeyLength, RecordField::Key)?;
    let value = cursor.nullable(RecordField::ValueLength, RecordField::Value)?;
    let count = cursor.int(RecordField::HeaderCount)?;
    let count = not_negative(RecordField::HeaderCount, count)?;
    let at_headers = cursor.rest;
    for _ in 0..count {
        cursor.header()?;
    }
    if cursor.declared != 0 {
        return Err(RecordErrorKind::Unread { bytes: cursor.declared });
    }
    let headers_len = at_headers.len().saturating_sub(cursor.rest.len());
    let headers = RecordHeaders { bytes: at_headers.get(..headers_len).unwrap_or_default(), left: count };
    Ok((Record { attributes, timestamp_delta, offset_delta, key, value, headers }, cursor.rest))
}

pub(crate) fn not_negative(field: RecordField, value: i32) -> Result<usize, RecordErrorKind> {
    usize::try_from(value).map_err(|_| RecordErrorKind::Negative { field, value: i64::from(value) })
}

/// Reads fields from `rest`, of which the record claims the next `declared` bytes, be they there or not.
struct Cursor<'a> {
    rest: &'a [u8],
    declared: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize, field: RecordField) -> Result<&'a [u8], RecordErrorKind> {
        self.declared = self.declared.checked_sub(len).ok_or(RecordErrorKind::Overrun { field })?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(RecordErrorKind::Cut { field })?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self, field: RecordField) -> Result<u8, RecordErrorKind> {
        self.declared = self.declared.checked_sub(1).ok_or(RecordErrorKind::Overrun { field })?;
        let (byte, rest) = self.rest.split_first().ok_or(RecordErrorKind::Cut { field })?;
        self.rest = rest;
        Ok(*byte)
    }

    fn varint(&mut self, width: Width, field: RecordField) -> Result<i64, RecordErrorKind> {
        // Most are that short.
        if let (Some((&byte @ ..0x80, rest)), Some(declared)) =
            (self.rest.split_first(), self.declared.checked_sub(1))
        {
            (self.rest, self.declared) = (rest, declared);
            return Ok(varint::of_byte(byte));
        }
        let mut decoder = Decoder::new(width);
        loop {
            match decoder.push(self.byte(field)?) {
                Step::More => {}
                Step::Done(value) => return Ok(value),
                Step::Invalid => return Err(RecordErrorKind::Varint { field }),
            }
        }
    }

    fn long(&mut self, field: RecordField) -> Result<i64, RecordErrorKind> {
        self.varint(Width::Long, field)
    }

    fn int(&mut self, field: RecordField) -> Result<i32, RecordErrorKind> {
        i32::try_from(self.varint(Width::Int, field)?).map_err(|_| RecordErrorKind::Varint { field })
    }

    fn nullable(
        &mut self,
        length: RecordField,
        data: RecordField,
    ) -> Result<Option<&'a [u8]>, RecordErrorKind> {
        match usize::try_from(self.int(length)?) {
            Ok(len) => self.take(len, data).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn header(&mut self) -> Result<RecordHeader<'a>, RecordErrorKind> {
        let len = self.int(RecordField::HeaderKeyLength)?;
        let len = not_negative(RecordField::HeaderKeyLength, len)?;
        let key = self.take(len, RecordField::HeaderKey)?;
        let value = self.nullable(RecordField::HeaderValueLength, RecordField::HeaderValue)?;
        Ok(RecordHeader { key, value })
    }
}

impl fmt::Display for RecordField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "length",
            Self::Attributes => "attributes",
            Self::TimestampDelta => "timestampDelta",
            Self::OffsetDelta => "offsetDelta",
            Self::KeyLength => "keyLength",
            Self::Key => "key",
            Self::ValueLength => "valueLength",
            Self::Value => "value",
            Self::HeaderCount => "headersCount",
            Self::HeaderKeyLength => "headerKeyLength",
            Self::HeaderKey => "headerKey",
            Self::HeaderValueLength => "headerValueLength",
            Self::HeaderValue => "headerValue",
        })
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.index;
        match self.kind {
            RecordErrorKind::NegativeCount { value } => {
                write!(f, "record count is negative, count=`{value}`")
            }
            RecordErrorKind::Cut { field } => {
                write!(f, "record {index}: all bytes end inside a field, field=`{field}`")
            }
            RecordErrorKind::Overrun { field } => {
                write!(f, "record {index}: a field goes beyond the record's own length, field=`{field}`")
            }
            RecordErrorKind::Varint { field } => {
                write!(f, "record {index}: a varint is too long or too large for its field, field=`{field}`")
            }
            RecordErrorKind::Negative { field, value } => {
                write!(f, "record {index}: negative, {field}=`{value}`")
            }
            RecordErrorKind::Unread { bytes } => {
                write!(f, "record {index}: its length goes {bytes} bytes beyond its last field")
            }
            RecordErrorKind::Trailing => write!(f, "bytes after the last record, records=`{index}`"),
        }
    }
}

impl core::error::Error for RecordError {}
