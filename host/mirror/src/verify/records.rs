//! The records of a batch, inflated and walked, and how two batches' records differ.

use std::iter::Peekable;

use bytes::Bytes;
use verbatim_batch::{HEADER_LEN, Header, Record, Records, TimestampType};
use verbatim_compression::InflateError;

/// Why a batch's records cannot be looked at, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    /// They are larger than allowed.
    #[error("{0}")]
    TooLarge(String),
    /// They are none.
    #[error("{0}")]
    Malformed(String),
}

/// A whole batch, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) bytes: Bytes,
    pub(super) header: Header,
}

impl Batch {
    /// The last offset; the base offset where the header's delta is absurd.
    pub(super) fn last(&self) -> i64 {
        self.header.last_offset().unwrap_or(self.header.base_offset)
    }

    /// The plain records.
    pub(super) fn inflated(&self, inflate_bytes_max: usize) -> Result<Inflated, Unreadable> {
        let payload = self.bytes.slice(HEADER_LEN.min(self.bytes.len())..);
        let base = self.header.base_offset;
        let said =
            |error: &dyn std::error::Error| format!("the records of batch {base} cannot be read: {error}");
        let plain = verbatim_compression::inflate(self.header.attributes, payload, inflate_bytes_max);
        let plain = plain.map_err(|error| match error {
            InflateError::TooLarge { .. } => Unreadable::TooLarge(said(&error)),
            _ => Unreadable::Malformed(said(&error)),
        })?;
        if let Some(error) = Records::new(&plain, self.header.record_count).find_map(Result::err) {
            return Err(Unreadable::Malformed(said(&error)));
        }
        Ok(Inflated { plain, header: self.header })
    }
}

/// Records that are known to be well formed.
#[derive(Debug)]
pub(super) struct Inflated {
    plain: Bytes,
    header: Header,
}

/// A record at its offset, with the time that readers see.
#[derive(Debug, Clone)]
pub(super) struct Placed<'a> {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    pub(super) record: Record<'a>,
}

impl Inflated {
    pub(super) fn records(&self) -> impl Iterator<Item = Placed<'_>> {
        let header = self.header;
        Records::new(&self.plain, header.record_count).filter_map(Result::ok).map(move |record| Placed {
            offset: header.base_offset.saturating_add(i64::from(record.offset_delta)),
            timestamp: match header.attributes.timestamp_type() {
                TimestampType::CreateTime => header.base_timestamp.saturating_add(record.timestamp_delta),
                TimestampType::LogAppendTime => header.max_timestamp,
            },
            record,
        })
    }
}

/// What two batches have at one offset.
#[derive(Debug)]
pub(super) enum Pair<'a> {
    Both(Placed<'a>, Placed<'a>),
    Left(Placed<'a>),
    Right(Placed<'a>),
}

/// Goes through two batches' records side by side, by offset.
pub(super) fn pairs<'a>(left: &'a Inflated, right: &'a Inflated) -> impl Iterator<Item = Pair<'a>> {
    let (mut left, mut right) = (left.records().peekable(), right.records().peekable());
    std::iter::from_fn(move || next_pair(&mut left, &mut right))
}

fn next_pair<'a>(
    left: &mut Peekable<impl Iterator<Item = Placed<'a>>>,
    right: &mut Peekable<impl Iterator<Item = Placed<'a>>>,
) -> Option<Pair<'a>> {
    let (at_left, at_right) =
        (left.peek().map(|placed| placed.offset), right.peek().map(|placed| placed.offset));
    match (at_left, at_right) {
        (Some(l), Some(r)) if l == r => left.next().zip(right.next()).map(|(l, r)| Pair::Both(l, r)),
        (Some(l), r) if r.is_none_or(|r| l < r) => left.next().map(Pair::Left),
        _ => right.next().map(Pair::Right),
    }
}

/// The fields in which two records at one offset differ.
pub(super) fn differing(source: &Placed<'_>, target: &Placed<'_>) -> Vec<&'static str> {
    let (s, t) = (&source.record, &target.record);
    let fields = [
        ("attributes", s.attributes != t.attributes),
        ("timestamp", source.timestamp != target.timestamp),
        ("key", s.key != t.key),
        ("value", s.value != t.value),
        ("headers", !s.headers.eq(t.headers)),
    ];
    fields.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}
