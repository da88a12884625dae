//! A batch's records, redacted.

use std::ops::Range;

use verbatim_kit::batch::{Record, RecordHeader, Records};
use verbatim_kit::{Batch, Fault, Reason, Refusal, RisingOffsets, malformed_records, refuse, reserve_within};

use crate::BATCH_BYTES_MAX;
use crate::json::{DEPTH_MAX, NotJson};
use crate::rules::{Fate, INVALID_JSON, JSON_MASK, MASK, Rules, Value};

/// Kafka's code for a record that breaks a rule.
const INVALID_RECORD: u16 = 87;

/// More than the varints of a record's length and its value's can have.
const LENGTHS_BYTES_MAX: usize = 16;

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

/// Redacts the records of batch `index`. All of them are validated too, whatever is found in one of them, so that none that
/// breaks R14 is left.
///
/// # Errors
/// R14, a value that is no JSON where the rules want that refused, or more than [`BATCH_BYTES_MAX`] bytes to be left.
pub(crate) fn redact(rules: &Rules, index: u32, batch: &Batch, plain: &[u8]) -> Result<Redacted, Refusal> {
    let mut offsets = RisingOffsets::new(batch);
    let mut left = Left::new(batch, plain);
    let mut unfit = None;
    let mut records = Records::new(plain, batch.header.record_count);
    loop {
        let start = plain.len().saturating_sub(records.rest().len());
        let Some(record) = records.next() else { break };
        let record = record.map_err(|error| malformed_records(index, Fault::Malformed(error)))?;
        offsets.at(record.meta());
        if unfit.is_none() {
            let at = start..plain.len().saturating_sub(records.rest().len());
            unfit = left.take(rules, &record, at).err().map(|why| refusal((index, batch), &record, why));
        }
    }
    offsets.verdict().map_err(|fault| malformed_records(index, fault))?;
    match unfit {
        Some(refusal) => Err(refusal),
        None => left.finish().map_err(|TooLarge| too_large(index)),
    }
}

/// Why a record cannot be redacted.
enum Unfit {
    /// Its value is no JSON, and the configuration says that this is refused.
    NotJson,
    /// The batch becomes larger than the limit.
    TooLarge,
}

/// The batch becomes larger than [`BATCH_BYTES_MAX`].
struct TooLarge;

impl From<NotJson> for Unfit {
    fn from(NotJson: NotJson) -> Self {
        Self::NotJson
    }
}

impl From<TooLarge> for Unfit {
    fn from(TooLarge: TooLarge) -> Self {
        Self::TooLarge
    }
}

/// The records that are left; until one is redacted, none is copied.
struct Left<'a> {
    batch: &'a Batch,
    plain: &'a [u8],
    /// The plain records up to here are copied, or gone.
    done: usize,
    records: Vec<u8>,
    is_redacted: bool,
    max_timestamp: Option<i64>,
}

impl<'a> Left<'a> {
    fn new(batch: &'a Batch, plain: &'a [u8]) -> Self {
        Self { batch, plain, done: 0, records: Vec::new(), is_redacted: false, max_timestamp: None }
    }

    /// The next record, which lies at `at`.
    fn take(&mut self, rules: &Rules, record: &Record<'_>, at: Range<usize>) -> Result<(), Unfit> {
        let mut masked = MaskedValue { value: record.value.unwrap_or_default(), copied: 0, begins: None };
        let mut fits = Ok(());
        let fate = rules.judge(record, |field| {
            if fits.is_ok() {
                fits = self.mask_field(&mut masked, field, at.start);
            }
        })?;
        if let (Some(begins), false) = (masked.begins, fate == Fate::Masked(Value::Fields)) {
            // It was no JSON, or is dropped.
            self.records.truncate(begins);
        } else {
            fits?;
        }
        match fate {
            Fate::Kept => self.note(record),
            Fate::Dropped => {
                self.copy(at.start)?;
                self.redacted(at.end);
            }
            Fate::Masked(value) => {
                self.note(record);
                self.mask(rules, record, &at, value, masked)?;
                self.redacted(at.end);
            }
        }
        Ok(())
    }

    /// The value up to the end of this field, with a mask in the field's place, of a record that begins at `start`.
    fn mask_field(
        &mut self,
        masked: &mut MaskedValue<'_>,
        field: Range<usize>,
        start: usize,
    ) -> Result<(), TooLarge> {
        if masked.begins.is_none() {
            self.copy(start)?;
            masked.begins = Some(self.records.len());
        }
        let before = masked.value.get(masked.copied..field.start).unwrap_or_default();
        self.reserve(before.len().saturating_add(JSON_MASK.len()))?;
        append(&mut self.records, before);
        self.records.extend_from_slice(JSON_MASK);
        masked.copied = field.end;
        Ok(())
    }

    fn mask(
        &mut self,
        rules: &Rules,
        record: &Record<'_>,
        at: &Range<usize>,
        value: Value,
        masked: MaskedValue<'_>,
    ) -> Result<(), TooLarge> {
        let header =
            |header| if rules.masks(&header) { RecordHeader { value: Some(MASK), ..header } } else { header };
        let came = record.value.map_or(0, <[u8]>::len);
        let others = at.len().saturating_sub(came).saturating_add(LENGTHS_BYTES_MAX);
        // The most that headers can grow by. Where that leaves too little room, what they do grow by is counted.
        let most = record.headers.len().saturating_mul(MASK.len());
        let room = BATCH_BYTES_MAX.saturating_sub(self.records.len()).saturating_sub(at.len());
        let growth = if most <= room / 2 { most } else { headers_growth(rules, record) };
        let others = others.saturating_add(growth);
        let written = if let (Value::Fields, Some(begins)) = (value, masked.begins) {
            let rest = masked.value.get(masked.copied..).unwrap_or_default();
            self.reserve(rest.len().saturating_add(others))?;
            append(&mut self.records, rest);
            record.write_around(begins, header, &mut self.records)
        } else {
            self.copy(at.start)?;
            let value = if value == Value::Whole { Some(MASK) } else { record.value };
            self.reserve(value.map_or(0, <[u8]>::len).saturating_add(others))?;
            record.write(value, header, &mut self.records)
        };
        written.map_err(|_| TooLarge)?;
        if self.records.len() > BATCH_BYTES_MAX { Err(TooLarge) } else { Ok(()) }
    }

    /// Copies the plain records that end at `end`, as far as they are not done.
    fn copy(&mut self, end: usize) -> Result<(), TooLarge> {
        if self.records.capacity() == 0 {
            self.records.reserve_exact(self.plain.len());
        }
        let kept = self.plain.get(self.done..end).unwrap_or_default();
        self.reserve(kept.len())?;
        append(&mut self.records, kept);
        self.done = end;
        Ok(())
    }

    fn redacted(&mut self, end: usize) {
        self.is_redacted = true;
        self.done = end;
    }

    fn reserve(&mut self, more: usize) -> Result<(), TooLarge> {
        if self.records.capacity().saturating_sub(self.records.len()) >= more {
            return Ok(());
        }
        let bytes_max = BATCH_BYTES_MAX.saturating_add(LENGTHS_BYTES_MAX);
        reserve_within(&mut self.records, more, bytes_max).ok_or(TooLarge)
    }

    fn note(&mut self, record: &Record<'_>) {
        let timestamp = self.batch.header.base_timestamp.saturating_add(record.timestamp_delta);
        self.max_timestamp = self.max_timestamp.max(Some(timestamp));
    }

    fn finish(mut self) -> Result<Redacted, TooLarge> {
        if !self.is_redacted {
            return Ok(Redacted::Untouched);
        }
        self.copy(self.plain.len())?;
        if self.records.len() > BATCH_BYTES_MAX {
            return Err(TooLarge);
        }
        Ok(Redacted::Records { records: self.records, max_timestamp: self.max_timestamp })
    }
}

/// How many bytes longer the masks of a record's headers are than what they stand for.
fn headers_growth(rules: &Rules, record: &Record<'_>) -> usize {
    let masked = record.headers.filter(|header| rules.masks(header));
    let growth = masked.map(|header| MASK.len().saturating_sub(header.value.map_or(0, <[u8]>::len)));
    growth.fold(0, usize::saturating_add)
}

/// A value that is being masked: it lies at the end of what is left, and what belongs in front of it is not there yet.
struct MaskedValue<'a> {
    value: &'a [u8],
    /// So much of it is copied, or masked.
    copied: usize,
    /// Where it begins; none as long as no field is masked.
    begins: Option<usize>,
}

/// A few bytes are quicker pushed than copied by a call.
fn append(to: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() > 16 {
        to.extend_from_slice(bytes);
    } else {
        bytes.iter().for_each(|byte| to.push(*byte));
    }
}

fn refusal((index, batch): (u32, &Batch), record: &Record<'_>, why: Unfit) -> Refusal {
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
