//! What compaction may take away, and what it may not.
//!
//! Kafka's cleaner keeps of each key the last record that is not aborted; it drops records without a key, aborted
//! records, tombstones after a while, a transaction's marker once all of its batches are gone, and batches left empty. Where it
//! takes a part of a batch away the rest keeps first and last offset, producer, sequence, leader epoch and transaction.
//!
//! So a record that one side lacks is *owed* until a later one of its key is seen on the side that has it. Only owed keys are
//! held, by 128 bits of their SHA-256. A tombstone may stay owed: then the compacted side must not have an
//! earlier record of that key, which a second walk over it shows.

use std::collections::{BTreeSet, HashMap};

use sha2::{Digest as _, Sha256};
use verbatim_batch::{Codec, ControlKey, ControlType, Header, TimestampType, crc_matches};

use super::compare::{Head, Stop};
use super::records::{Inflated, Pair, Placed, Unreadable, differing, pairs};
use super::redaction::{MIXED, Rewriting};
use super::report::{Both, Difference, Side};
use super::words;

/// Bounds, and where judging begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// False if neither side's topic is compacted: then nothing may be missing.
    pub(super) may_compact: bool,
    /// Whether the target may be redacted.
    pub(super) rewriting: Rewriting,
    /// The first offset that matters; a batch may begin below it.
    pub(super) from: i64,
    /// Owed keys at most.
    pub(super) keys_max: usize,
    /// Bytes of a batch's plain records at most.
    pub(super) inflate_bytes_max: usize,
}

/// The last record of a key that one side lacks, while no later one is known.
#[derive(Debug, Clone, Copy)]
struct Owed {
    offset: i64,
    tombstone: bool,
}

/// What one side lacks of the other.
#[derive(Debug)]
pub(super) struct Compaction {
    rules: Rules,
    /// The side that lacks records, once one does.
    pub(super) side: Option<Side>,
    owed: HashMap<u128, Owed>,
    /// Producers of which a side has batches of a transaction since their last marker.
    pub(super) open: Both<BTreeSet<i64>>,
    /// Records that are lacking.
    pub(super) records: u64,
    /// Batches that are gone whole.
    pub(super) batches: u64,
}

impl Compaction {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            side: None,
            owed: HashMap::new(),
            open: Both { source: BTreeSet::new(), target: BTreeSet::new() },
            records: 0,
            batches: 0,
        }
    }

    /// A batch that a side has: remembers the producers of transactions.
    pub(super) fn holds(&mut self, side: Side, header: &Header) {
        let open = self.open.of_mut(side);
        if header.attributes.is_control() {
            open.remove(&header.producer_id);
        } else if header.attributes.is_transactional() {
            open.insert(header.producer_id);
        }
    }

    /// A batch that `lacks` has nothing of.
    pub(super) fn whole_missing(
        &mut self,
        lacks: Side,
        head: &Head,
        next: Option<&Head>,
    ) -> Result<(), Stop> {
        // The cleaner does not go beyond the last stable offset.
        if !self.rules.may_compact || head.unstable {
            return Err(Stop::Differs(words::lacking(lacks, &head.batch, next.map(|head| &head.batch))));
        }
        self.set_side(lacks, head.batch.header.base_offset)?;
        let records = head.batch.inflated(self.rules.inflate_bytes_max).map_err(Stop::from)?;
        records.records().try_for_each(|placed| self.missing(lacks, head, &placed))?;
        self.batches = self.batches.saturating_add(1);
        self.holds(lacks.other(), &head.batch.header);
        if head.batch.header.attributes.is_control() {
            self.open.of_mut(lacks).remove(&head.batch.header.producer_id);
        }
        Ok(())
    }

    /// Two batches of one place that are not equal byte for byte: one may be what is left of the other.
    pub(super) fn rewritten(&mut self, source: &Head, target: &Head) -> Result<(), Stop> {
        let max = self.rules.inflate_bytes_max;
        let unequal = || Stop::Differs(words::unequal(&source.batch, &target.batch, max));
        let (s, t) = (&source.batch.header, &target.batch.header);
        if !self.rules.may_compact || kept(s) != kept(t) {
            return Err(unequal());
        }
        if !crc_matches(&source.batch.bytes) || !crc_matches(&target.batch.bytes) {
            return Err(unequal());
        }
        let inflated = |head: &Head| {
            head.batch.inflated(max).map_err(|why| match why {
                Unreadable::TooLarge(why) => Stop::Undecided(why),
                Unreadable::Malformed(_) => unequal(),
            })
        };
        let (left, right) = (inflated(source)?, inflated(target)?);
        let is_mixed =
            self.rules.rewriting == Rewriting::Accepted && source_seems_compacted((s, &left), (t, &right));
        let (before, mut is_redacted) = (self.records, false);
        for pair in pairs(&left, &right) {
            match pair {
                Pair::Both(s, t) => match differing(&s, &t).as_slice() {
                    [] => self.present(source, &s),
                    fields if self.may_redact(fields) => is_redacted = true,
                    _ => return Err(Stop::Differs(words::unequal_records(&s, &t))),
                },
                // A module dropped it: no run of a cleaner takes from both sides.
                Pair::Left(_) if is_mixed => return Err(Stop::Undecided(MIXED.to_owned())),
                Pair::Left(s) => self.missing(Side::Target, source, &s)?,
                Pair::Right(t) => self.missing(Side::Source, target, &t)?,
            }
        }
        if self.records == before {
            // Every record is left: then all that compaction can have done is to set the delete horizon.
            let horizons = [s, t].map(|header| header.attributes.has_delete_horizon());
            match horizons {
                [true, false] => self.set_side(Side::Source, s.base_offset)?,
                [false, true] => self.set_side(Side::Target, s.base_offset)?,
                _ => return Err(unequal()),
            }
        }
        let sides = ((s, &left), (t, &right));
        let (compacted, full) = if self.side == Some(Side::Source) { sides } else { (sides.1, sides.0) };
        if !max_timestamp_fits(compacted, full) {
            return Err(unequal());
        }
        if is_redacted {
            return Err(Stop::Undecided(MIXED.to_owned()));
        }
        self.holds(Side::Source, s);
        self.holds(Side::Target, t);
        Ok(())
    }

    /// True if a module may have changed these fields of a record.
    fn may_redact(&self, fields: &[&str]) -> bool {
        let is_content = |field: &&str| ["key", "value", "headers"].contains(field);
        self.rules.rewriting == Rewriting::Accepted && fields.iter().all(is_content)
    }

    /// A batch that both sides have: what it supersedes is no longer owed.
    pub(super) fn supersede(&mut self, head: &Head) -> Result<(), Stop> {
        if self.owed.is_empty() || !head.supersedes() {
            return Ok(());
        }
        let records = head.batch.inflated(self.rules.inflate_bytes_max).map_err(Stop::from)?;
        records.records().for_each(|placed| self.present(head, &placed));
        Ok(())
    }

    /// True if records are owed that are no tombstones.
    pub(super) fn is_owing(&self) -> bool {
        self.owed.values().any(|owed| !owed.tombstone)
    }

    /// The first record that is owed and no tombstone.
    pub(super) fn first_owed(&self) -> Option<Difference> {
        let offset = self.owed.values().filter(|owed| !owed.tombstone).map(|owed| owed.offset).min()?;
        let side = self.side.unwrap_or(Side::Target);
        Some(Difference::new(
            offset,
            format!("the {side} lacks the record at offset {offset}, which is the last of its key"),
        ))
    }

    /// The tombstones that are gone, by key, and the last one's offset.
    pub(super) fn tombstones(&self) -> (HashMap<u128, i64>, i64) {
        let tombstones = self.owed.iter().filter(|(_, owed)| owed.tombstone);
        let tombstones: HashMap<u128, i64> = tombstones.map(|(key, owed)| (*key, owed.offset)).collect();
        let last = tombstones.values().max().copied().unwrap_or(-1);
        (tombstones, last)
    }

    fn set_side(&mut self, lacks: Side, offset: i64) -> Result<(), Stop> {
        match *self.side.get_or_insert(lacks) {
            side if side == lacks => Ok(()),
            side => Err(Stop::Differs(Difference::new(
                offset,
                format!("the {lacks} lacks offset {offset}, while below it is the {side} that was compacted"),
            ))),
        }
    }

    fn present(&mut self, head: &Head, placed: &Placed<'_>) {
        if let Some(key) = placed.record.key
            && !self.owed.is_empty()
            && head.supersedes()
        {
            self.owed.remove(&hash(key));
        }
    }

    fn missing(&mut self, lacks: Side, head: &Head, placed: &Placed<'_>) -> Result<(), Stop> {
        if placed.offset < self.rules.from {
            return Ok(());
        }
        self.set_side(lacks, placed.offset)?;
        self.records = self.records.saturating_add(1);
        let header = &head.batch.header;
        if header.attributes.is_control() {
            return self.marker_missing(lacks, header, placed);
        }
        let Some(key) = placed.record.key else { return Ok(()) };
        if head.aborted {
            return Ok(());
        }
        let owed = Owed { offset: placed.offset, tombstone: placed.record.value.is_none() };
        self.owed.insert(hash(key), owed);
        if self.owed.len() <= self.rules.keys_max {
            return Ok(());
        }
        Err(Stop::Undecided(format!(
            "more keys are missing on the {lacks} than may be held, up to offset {}, keys-max=`{}`",
            placed.offset, self.rules.keys_max
        )))
    }

    fn marker_missing(&self, lacks: Side, header: &Header, placed: &Placed<'_>) -> Result<(), Stop> {
        let key = ControlKey::parse(placed.record.key.unwrap_or_default());
        let ends = key.is_ok_and(|key| !matches!(key.kind, ControlType::Other(_)));
        let offset = placed.offset;
        let what = match () {
            () if !ends => format!("the {lacks} lacks the control record at offset {offset}"),
            () if self.open.of(lacks).contains(&header.producer_id) => format!(
                "the {lacks} lacks the marker at offset {offset}, while it has batches of that transaction, producerId=`{}`",
                header.producer_id
            ),
            () => return Ok(()),
        };
        Err(Stop::Differs(Difference::new(offset, what)))
    }
}

/// The key of a record as it is remembered.
pub(super) fn hash(key: &[u8]) -> u128 {
    let digest: [u8; 32] = Sha256::digest(key).into();
    let (first, _) = digest.split_first_chunk().unwrap_or((&[0; 16], &[]));
    u128::from_be_bytes(*first)
}

/// What of a header compaction leaves as it is.
fn kept(header: &Header) -> Header {
    let attributes = header.attributes.with_codec(Codec::None).with_delete_horizon(false);
    let stamped = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
    Header {
        attributes,
        batch_length: 0,
        crc: 0,
        base_timestamp: 0,
        max_timestamp: if stamped { header.max_timestamp } else { 0 },
        record_count: 0,
        ..*header
    }
}

/// The source lacks a record that the target has, or compaction has marked the source's batch alone.
fn source_seems_compacted((s, held): (&Header, &Inflated), (t, left): (&Header, &Inflated)) -> bool {
    let is_marked = s.attributes.has_delete_horizon() && !t.attributes.has_delete_horizon();
    is_marked || pairs(held, left).any(|pair| matches!(pair, Pair::Right(_)))
}

/// Compaction sets the largest timestamp anew from what is left, and keeps it where nothing is: then it is that of what was left
/// before, by another run.
fn max_timestamp_fits((compacted, left): (&Header, &Inflated), (full, held): (&Header, &Inflated)) -> bool {
    let told = compacted.max_timestamp;
    let fits = match left.records().map(|placed| placed.timestamp).max() {
        Some(largest) => told == largest,
        None => held.records().any(|placed| placed.timestamp == told),
    };
    fits || told == full.max_timestamp
}
