//! What a module may make of a batch where the target's topic allows rewriting, and what it may not.
//!
//! It may drop records, and give others another key, value or headers. The batch keeps its header but for length, checksum,
//! number of records and maxTimestamp, which becomes the largest that is left; it stays where nothing is left, and where the
//! broker's clock has stamped it. Each record that is left keeps its offset and timestamp. A batch of which nothing is left has
//! no codec. Control batches are never rewritten.

use serde::{Deserialize, Serialize};
use verbatim_batch::{Codec, Header, TimestampType, crc_matches};

use super::compare::Stop;
use super::records::{Batch, Inflated, Pair, Placed, Unreadable, differing, pairs};
use super::report::{Difference, Side};
use super::words;

/// The setting by which a topic allows a module to rewrite, and its value if so.
pub(crate) const REWRITE: (&str, &str) = ("produce.at.offset.rewrite", "allow");

/// Why a target that was redacted and a source that was compacted are not told apart.
pub(super) const MIXED: &str = "the source seems to be compacted and the target is redacted: which of them took or changed \
                                what cannot be told, as compaction is judged by keys, which a module may change";

/// Whether batches of the target may be redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rewriting {
    /// The target's topic does not allow it.
    Refused,
    /// The topic does; whoever asks does not.
    Allowed,
    /// Both do.
    Accepted,
}

/// What was redacted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Redaction {
    pub(super) batches: u64,
    pub(super) records_dropped: u64,
    pub(super) records_changed: u64,
}

impl Redaction {
    pub(super) fn add(&mut self, more: Self) {
        self.batches = self.batches.saturating_add(more.batches);
        self.records_dropped = self.records_dropped.saturating_add(more.records_dropped);
        self.records_changed = self.records_changed.saturating_add(more.records_changed);
    }
}

/// A batch that is not the source's, but may be what a module made of it.
#[derive(Debug)]
pub(super) struct Redacted {
    pub(super) count: Redaction,
    /// The first record that was dropped or changed.
    first: Option<Difference>,
    base: i64,
}

impl Redacted {
    /// What is said where nobody has accepted it.
    pub(super) fn not_accepted(self) -> Difference {
        let first = self.first.unwrap_or_else(|| Difference::new(self.base, "the packed records differ"));
        let (name, value) = REWRITE;
        let what = format!(
            "{}; the target's topic allows a module to rewrite records ({name}={value}), so --allow-redacted would accept this \
             if all the rest holds",
            first.what
        );
        Difference { what, ..first }
    }
}

/// Judges two batches of one place that are not equal byte for byte.
///
/// # Errors
/// The first thing that no module may have done; or the records are larger than may be looked at.
pub(super) fn redacted(source: &Batch, target: &Batch, inflate_bytes_max: usize) -> Result<Redacted, Stop> {
    let (s, t) = (&source.header, &target.header);
    let base = s.base_offset;
    header_kept(s, t).map_err(|what| differs(base, what))?;
    let inflated = |side, batch: &Batch| inflated(side, batch, inflate_bytes_max);
    let (held, left) = (inflated(Side::Source, source)?, inflated(Side::Target, target)?);
    let mut redacted =
        Redacted { count: Redaction { batches: 1, ..Redaction::default() }, first: None, base };
    for pair in pairs(&held, &left) {
        redacted.judge(pair)?;
    }
    let expected = max_timestamp(s, &left);
    if t.max_timestamp != expected {
        let found = t.max_timestamp;
        return Err(differs(
            base,
            format!("the target's maxTimestamp is {found}, by what is left {expected}"),
        ));
    }
    Ok(redacted)
}

impl Redacted {
    fn judge(&mut self, pair: Pair<'_>) -> Result<(), Stop> {
        let count = &mut self.count;
        let told = match pair {
            Pair::Both(s, t) => {
                if let Some(field) = moved(&s, &t) {
                    let what = format!("the record at offset {} differs in {field}", s.offset);
                    return Err(differs(s.offset, format!("{what}, which no module may change")));
                }
                if differing(&s, &t).is_empty() {
                    return Ok(());
                }
                count.records_changed = count.records_changed.saturating_add(1);
                words::unequal_records(&s, &t)
            }
            Pair::Left(s) => {
                count.records_dropped = count.records_dropped.saturating_add(1);
                Difference::new(s.offset, format!("the target lacks the record at offset {}", s.offset))
            }
            Pair::Right(t) => {
                let what =
                    format!("the source's batch has no record at offset {}, which the target has", t.offset);
                return Err(differs(t.offset, what));
            }
        };
        self.first.get_or_insert(told);
        Ok(())
    }
}

/// What of a record that is left is not as it was, though it must be.
fn moved(source: &Placed<'_>, target: &Placed<'_>) -> Option<&'static str> {
    let (s, t) = (&source.record, &target.record);
    let fields =
        [("timestamp", s.timestamp_delta != t.timestamp_delta), ("attributes", s.attributes != t.attributes)];
    fields.into_iter().find(|(_, differs)| *differs).map(|(name, _)| name)
}

/// The two headers agree where they must; else in what they do not.
fn header_kept(source: &Header, target: &Header) -> Result<(), String> {
    if source.attributes.is_control() {
        return Err("a control batch differs, which no module may change".to_owned());
    }
    let is_emptied = target.record_count == 0;
    let codec = target.attributes.codec();
    if is_emptied && codec != Ok(Codec::None) {
        return Err("the target's batch is left without records, and has a codec".to_owned());
    }
    let kept = Header {
        batch_length: target.batch_length,
        crc: target.crc,
        record_count: target.record_count,
        max_timestamp: target.max_timestamp,
        attributes: if is_emptied { source.attributes.with_codec(Codec::None) } else { source.attributes },
        ..*source
    };
    let fields = words::header_fields(&kept, target);
    if fields.is_empty() { Ok(()) } else { Err(format!("{}, which no module may change", fields.join("; "))) }
}

fn inflated(side: Side, batch: &Batch, inflate_bytes_max: usize) -> Result<Inflated, Stop> {
    let base = batch.header.base_offset;
    if !crc_matches(&batch.bytes) {
        let what = format!("the {side}'s batch at offset {base} is damaged: its checksum is wrong");
        return Err(differs(base, what));
    }
    batch.inflated(inflate_bytes_max).map_err(|why| match why {
        Unreadable::TooLarge(why) => Stop::Undecided(format!("the {side}: {why}")),
        Unreadable::Malformed(why) => differs(base, format!("the {side}: {why}")),
    })
}

/// What maxTimestamp must be by what is left.
fn max_timestamp(source: &Header, left: &Inflated) -> i64 {
    let largest = match source.attributes.timestamp_type() {
        TimestampType::CreateTime => left.records().map(|placed| placed.timestamp).max(),
        TimestampType::LogAppendTime => None,
    };
    largest.unwrap_or(source.max_timestamp)
}

fn differs(offset: i64, what: impl Into<String>) -> Stop {
    Stop::Differs(Difference::new(offset, what))
}
