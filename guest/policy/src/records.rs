//! What is inside a batch (R14 to R16), read piece by piece as the host inflates it.

use core::fmt::{Display, Formatter, Result as Written};
use core::ops::{ControlFlow, RangeInclusive};

use verbatim_batch::{Header, RecordError, RecordMeta, RecordScanner, TimestampType};
use verbatim_contract::{Batch, Callbacks, Reason, Refusal, Unreadable};

use crate::case::Case;
use crate::refuse;

/// How many bytes are asked for at once.
const PIECE_BYTES_MAX: u32 = 64 * 1024;

/// "No timestamp".
const NO_TIMESTAMP: i64 = -1;

/// What a normal topic writes over a batch's timestamp fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) log_append_time: bool,
    pub(crate) max_timestamp: i64,
}

/// Why records are not as they should be (R14).
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// They cannot be inflated.
    Unreadable(Unreadable),
    /// They do not parse.
    Malformed(RecordError),
    /// A record's offset is not one that its place allows.
    OffsetDelta {
        /// Which record, counted from 0.
        record: u32,
        /// Its offset minus the batch's base offset.
        delta: i32,
        /// The least that its place allows.
        least: i64,
        /// The most.
        most: i64,
    },
    /// A record's time is outside what a timestamp can hold.
    TimestampOverflow {
        /// Which record, counted from 0.
        record: u32,
        /// The batch's base timestamp.
        base: i64,
        /// What the record adds to it.
        delta: i64,
    },
}

/// R14 to R16 on a normal topic. All records are looked at, so the rule with the lowest number is the one
/// that is named.
pub(crate) fn normal(case: &Case<'_>, batch: &Batch, log: &mut dyn Callbacks) -> Result<Stamp, Refusal> {
    let mut look = Look::new(case, &batch.header);
    scan(0, batch, log, |meta| {
        look.at(meta);
        ControlFlow::Continue(())
    })
    .map_err(|fault| refusal(0, fault))?;
    look.verdict()
}

/// R14 on an exact topic, where the policy asks for it: offsets rise within the batch's range, gaps are
/// compaction's, and any timestamp is legal.
pub(crate) fn exact(index: u32, batch: &Batch, log: &mut dyn Callbacks) -> Result<(), Refusal> {
    let mut offsets = RisingOffsets::new(batch);
    let scanned = scan(index, batch, log, |meta| {
        offsets.at(meta);
        ControlFlow::Continue(())
    });
    scanned.and_then(|()| offsets.verdict()).map_err(|fault| refusal(index, fault))
}

/// The refusal of batch `index`, whose records are at fault (R14).
#[must_use]
pub fn refusal(index: u32, fault: Fault) -> Refusal {
    refuse::batch(Reason::MalformedRecords, index, None, format_args!("{fault}"))
}

/// Shows each record of batch `index` without its data; on `Break` no further piece is asked for. It holds one piece.
///
/// # Errors
/// The records cannot be inflated, or do not parse.
pub fn scan(
    index: u32,
    batch: &Batch,
    log: &mut dyn Callbacks,
    mut on_record: impl FnMut(RecordMeta) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let mut scanner = RecordScanner::new(batch.header.record_count);
    let mut flow = ControlFlow::Continue(());
    while flow.is_continue() {
        let piece = log.records(index, PIECE_BYTES_MAX).map_err(Fault::Unreadable)?;
        if piece.is_empty() {
            return scanner.finish().map_err(Fault::Malformed);
        }
        scanner.feed(&piece, |meta| flow = on_record(meta)).map_err(Fault::Malformed)?;
    }
    Ok(())
}

/// R14 in exact mode, offsets only: they rise within the batch's range. Kept between records, so that whoever walks them can
/// ask for it.
#[derive(Clone, Debug)]
pub struct RisingOffsets {
    record: u32,
    least: i64,
    most: i32,
    fault: Option<Fault>,
}

impl RisingOffsets {
    /// Before the first record of this batch.
    #[must_use]
    pub fn new(batch: &Batch) -> Self {
        Self { record: 0, least: 0, most: batch.header.last_offset_delta, fault: None }
    }

    /// The next record.
    pub fn at(&mut self, meta: RecordMeta) {
        let delta = meta.offset_delta;
        if self.fault.is_none() && (i64::from(delta) < self.least || delta > self.most) {
            let (record, least, most) = (self.record, self.least, i64::from(self.most));
            self.fault = Some(Fault::OffsetDelta { record, delta, least, most });
        }
        self.least = i64::from(delta).saturating_add(1);
        self.record = self.record.saturating_add(1);
    }

    /// What there is to say of the records so far.
    ///
    /// # Errors
    /// The first offset that its place did not allow.
    pub fn verdict(&self) -> Result<(), Fault> {
        self.fault.map_or(Ok(()), Err)
    }
}

/// What was seen of a normal topic's records: the first break of each rule, and the largest timestamp.
struct Look<'a> {
    case: &'a Case<'a>,
    header: &'a Header,
    range: RangeInclusive<i64>,
    record: u32,
    max_timestamp: i64,
    fault: Option<Fault>,
    null_key: Option<u32>,
    timestamp: Option<Refusal>,
}

impl<'a> Look<'a> {
    fn new(case: &'a Case<'a>, header: &'a Header) -> Self {
        let now = case.request.now_ms;
        let earliest = now.saturating_sub(case.policy.before_max_ms);
        let latest = now.saturating_add(case.policy.after_max_ms);
        Self {
            case,
            header,
            range: earliest..=latest,
            record: 0,
            max_timestamp: NO_TIMESTAMP,
            fault: None,
            null_key: None,
            timestamp: None,
        }
    }

    fn at(&mut self, meta: RecordMeta) {
        let record = self.record;
        self.record = record.saturating_add(1);
        if i64::from(meta.offset_delta) != i64::from(record) {
            let (delta, place) = (meta.offset_delta, i64::from(record));
            self.fault.get_or_insert(Fault::OffsetDelta { record, delta, least: place, most: place });
        }
        if self.case.policy.compacted && meta.key_is_null() {
            self.null_key.get_or_insert(record);
        }
        match self.read_timestamp(meta) {
            Some(timestamp) => {
                self.max_timestamp = self.max_timestamp.max(timestamp);
                self.judge_timestamp(record, timestamp);
            }
            None => {
                let (base, delta) = (self.header.base_timestamp, meta.timestamp_delta);
                self.fault.get_or_insert(Fault::TimestampOverflow { record, base, delta });
            }
        }
    }

    /// The record's time as a reader sees it.
    fn read_timestamp(&self, meta: RecordMeta) -> Option<i64> {
        match self.header.attributes.timestamp_type() {
            TimestampType::LogAppendTime => Some(self.header.max_timestamp),
            TimestampType::CreateTime => self.header.base_timestamp.checked_add(meta.timestamp_delta),
        }
    }

    /// R16, as Apache Kafka judges each record.
    fn judge_timestamp(&mut self, record: u32, timestamp: i64) {
        if self.timestamp.is_some() {
            return;
        }
        let claims_log_time = self.header.attributes.timestamp_type() == TimestampType::LogAppendTime;
        if !self.case.policy.log_append_time && timestamp != NO_TIMESTAMP {
            if !self.range.contains(&timestamp) {
                let (earliest, latest) = (self.range.start(), self.range.end());
                self.timestamp = Some(refuse::batch(
                    Reason::Timestamp,
                    0,
                    None,
                    format_args!(
                        "record {record}: the timestamp must be within {earliest} to {latest}, \
                         timestamp=`{timestamp}`"
                    ),
                ));
            }
        } else if claims_log_time {
            self.timestamp = Some(refuse::batch(
                Reason::Timestamp,
                0,
                None,
                format_args!(
                    "record {record}: a producer must not set the timestamp type, timestampType=`LogAppendTime`"
                ),
            ));
        }
    }

    fn verdict(self) -> Result<Stamp, Refusal> {
        if let Some(fault) = self.fault {
            return Err(refusal(0, fault));
        }
        if let Some(record) = self.null_key {
            return Err(refuse::batch(
                Reason::NullKey,
                0,
                None,
                format_args!("record {record}: a compacted topic needs a key, key=`null`"),
            ));
        }
        if let Some(refusal) = self.timestamp {
            return Err(refusal);
        }
        let log_append_time = self.case.policy.log_append_time;
        let max_timestamp = if log_append_time { self.case.request.now_ms } else { self.max_timestamp };
        Ok(Stamp { log_append_time, max_timestamp })
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        match self {
            Self::Unreadable(Unreadable::Corrupt) => {
                f.write_str("the records must inflate, reason=`the compressed bytes are damaged`")
            }
            Self::Unreadable(Unreadable::TooLarge) => {
                f.write_str("the records must inflate within the broker's limit, reason=`they are larger`")
            }
            Self::Unreadable(Unreadable::UnknownCodec) => {
                f.write_str("the records must inflate, reason=`no such codec`")
            }
            Self::Malformed(error) => write!(f, "the records must parse, {error}"),
            Self::OffsetDelta { record, delta, least, most } if least == most => {
                write!(f, "record {record}: the offset must be {least} in the batch, offsetDelta=`{delta}`")
            }
            // The one before it took the last offset, or a later one.
            Self::OffsetDelta { record, delta, least, most } if least > most => write!(
                f,
                "record {record}: the batch has no offset left, lastOffsetDelta={most}, offsetDelta=`{delta}`"
            ),
            Self::OffsetDelta { record, delta, least, most } => write!(
                f,
                "record {record}: the offset must be within {least} to {most} in the batch, offsetDelta=`{delta}`"
            ),
            Self::TimestampOverflow { record, base, delta } => write!(
                f,
                "record {record}: the timestamp must fit 64 bits, baseTimestamp={base}, timestampDelta=`{delta}`"
            ),
        }
    }
}
