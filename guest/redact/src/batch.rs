//! A batch's records, redacted.

use std::ops::Range;

use verbatim_kit::batch::{Record, RecordHeader, Records};
use verbatim_kit::{Batch, Fault, Reason, Refusal, RisingOffsets, malformed_records, refuse, reserve_within};

use crate::BATCH_BYTES_MAX;
use crate::json::DEPTH_MAX;
use crate::rules::{Fate, INVALID_JSON, MASK, Rules, Unfit};

/// Kafka's code for a record that breaks a rule.
const INVALID_RECORD: u16 = 87;

/// What is left of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redacted {
    /// There is nothing to redact.
    Untouched,
    /// Other records.
    Records {
        /// Those that are left, not compressed.
        records: Vec<u8>,
        /// The largest timestamp of those, in ms since 1970; none without any.
        max_timestamp: Option<i64>,
    },
}

/// R14 for records that are not redacted.
///
/// # Errors
/// They do not parse, or their offsets do not rise within the batch's range.
pub(crate) fn validate(index: u32, batch: &Batch, plain: &[u8]) -> Result<(), Refusal> {
    let mut offsets = RisingOffsets::new(batch);
    let mut records = Records::new(plain, batch.header.record_count);
    let read = records.try_for_each(|record| record.map(|record| offsets.at(record.meta())));
    let read = read.map_err(Fault::Malformed).and_then(|()| offsets.verdict());
    read.map_err(|fault| malformed_records(index, fault))
}

/// Redacts the records of batch `index`. All of them are validated first, so that none that breaks R14 is left.
///
/// # Errors
/// R14, a value that is no JSON where the rules want that refused, or more than [`BATCH_BYTES_MAX`] bytes to be left.
pub(crate) fn redact(rules: &Rules, index: u32, batch: &Batch, plain: &[u8]) -> Result<Redacted, Refusal> {
    validate(index, batch, plain)?;
    let mut left = Left::new(index, batch, plain);
    let mut records = Records::new(plain, batch.header.record_count);
    loop {
        let start = plain.len().saturating_sub(records.rest().len());
        let Some(record) = records.next() else { return Ok(left.finish()) };
        let record = record.map_err(|error| malformed_records(index, Fault::Malformed(error)))?;
        let at = start..plain.len().saturating_sub(records.rest().len());
        match rules.judge(&record, BATCH_BYTES_MAX).map_err(|why| unfit((index, batch), &record, why))? {
            Fate::Kept => left.keep(&record, at)?,
            Fate::Dropped => drop(left.copied(start)),
            Fate::Masked(value) => left.mask(&record, at, value.as_deref(), |header| rules.masks(header))?,
        }
    }
}

/// The records that are left; until one is redacted, none is copied.
struct Left<'a> {
    index: u32,
    batch: &'a Batch,
    plain: &'a [u8],
    records: Option<Vec<u8>>,
    max_timestamp: Option<i64>,
}

impl<'a> Left<'a> {
    fn new(index: u32, batch: &'a Batch, plain: &'a [u8]) -> Self {
        Self { index, batch, plain, records: None, max_timestamp: None }
    }

    /// The records that are left, from now on copied one by one: those before the one that begins at `at` are, at once.
    fn copied(&mut self, at: usize) -> &mut Vec<u8> {
        self.records.get_or_insert_with(|| {
            let mut records = Vec::with_capacity(self.plain.len());
            records.extend_from_slice(self.plain.get(..at).unwrap_or_default());
            records
        })
    }

    fn keep(&mut self, record: &Record<'_>, at: Range<usize>) -> Result<(), Refusal> {
        self.note(record);
        let Some(records) = &mut self.records else { return Ok(()) };
        reserve_within(records, at.len(), BATCH_BYTES_MAX).ok_or_else(|| too_large(self.index))?;
        records.extend_from_slice(self.plain.get(at).unwrap_or_default());
        Ok(())
    }

    fn mask(
        &mut self,
        record: &Record<'_>,
        at: Range<usize>,
        value: Option<&[u8]>,
        masks: impl Fn(&RecordHeader<'_>) -> bool,
    ) -> Result<(), Refusal> {
        self.note(record);
        let index = self.index;
        let growth = |from: Option<&[u8]>, to: usize| to.saturating_sub(from.map_or(0, <[u8]>::len));
        let value_growth = value.map_or(0, |value| growth(record.value, value.len()));
        let headers_growth = record.headers.filter(&masks).map(|header| growth(header.value, MASK.len()));
        let len = headers_growth.fold(at.len().saturating_add(value_growth), usize::saturating_add);
        let records = self.copied(at.start);
        // The varints of the record's length and the value's may grow too.
        reserve_within(records, len.saturating_add(8), BATCH_BYTES_MAX).ok_or_else(|| too_large(index))?;
        let header =
            |header| if masks(&header) { RecordHeader { value: Some(MASK), ..header } } else { header };
        record.write(value.or(record.value), header, records).map_err(|_| too_large(index))
    }

    fn note(&mut self, record: &Record<'_>) {
        let timestamp = self.batch.header.base_timestamp.saturating_add(record.timestamp_delta);
        self.max_timestamp = self.max_timestamp.max(Some(timestamp));
    }

    fn finish(self) -> Redacted {
        match self.records {
            None => Redacted::Untouched,
            Some(records) => Redacted::Records { records, max_timestamp: self.max_timestamp },
        }
    }
}

fn unfit((index, batch): (u32, &Batch), record: &Record<'_>, why: Unfit) -> Refusal {
    match why {
        Unfit::TooLarge => too_large(index),
        Unfit::NotJson => {
            let (base, delta) = (batch.header.base_offset, record.offset_delta);
            let expectation = format!(
                "batch {index}: where fields are redacted a value must be JSON of at most {DEPTH_MAX} levels, unless the topic \
                 has {INVALID_JSON}=keep or drop, baseOffset={base}, offsetDelta={delta}"
            );
            refuse(Reason::Other(INVALID_RECORD), expectation, "value", "not JSON").of_batch(index)
        }
    }
}

/// The refusal of a batch that is larger than [`BATCH_BYTES_MAX`], before or after.
pub(crate) fn too_large(index: u32) -> Refusal {
    let expectation =
        format!("batch {index}: records that are redacted may inflate to {BATCH_BYTES_MAX} bytes");
    let refusal = refuse(Reason::BatchTooLarge, expectation, "length", "more").of_batch(index);
    i64::try_from(BATCH_BYTES_MAX).map_or(refusal.clone(), |max| refusal.expecting(max))
}
