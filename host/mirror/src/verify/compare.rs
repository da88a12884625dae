//! Two logs, batch by batch. Knows no cluster: it is given the next batch of each side and says which were used up.

use bytes::Bytes;
use verbatim_batch::{Header, crc_matches};

use super::compaction::{Compaction, Rules};
use super::digest::Digest;
use super::records::{Batch, Inflated, Unreadable};
use super::redaction::{MIXED, Redaction, Rewriting, redacted};
use super::report::{Both, Count, Difference, Side};
use super::words;

/// Times that are kept to ask for later, at most.
const TIMES_MAX: usize = 16;

/// The next batch of a side, and what is known of its transaction.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) batch: Batch,
    /// It belongs to a transaction that was aborted.
    pub(super) aborted: bool,
    /// It belongs to a transaction of which the end is not known.
    pub(super) unstable: bool,
}

impl Head {
    /// True if its records make earlier ones of their keys superfluous.
    pub(super) fn supersedes(&self) -> bool {
        !self.aborted && !self.unstable && !self.batch.header.attributes.is_control()
    }
}

/// Which batches were compared and are done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Both,
    Only(Side),
    End,
}

/// Why comparing ended before the end.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stop {
    Differs(Difference),
    Undecided(String),
}

impl From<Unreadable> for Stop {
    fn from(why: Unreadable) -> Self {
        Self::Undecided(why.to_string())
    }
}

/// What differs between batches that cover one offset and that compaction of either side cannot have made; nor a module, where
/// the target's topic allows it to rewrite.
pub(crate) fn certain_difference(source: &Bytes, target: &Bytes, may_rewrite: bool) -> Option<Difference> {
    let head = |bytes: &Bytes| {
        let batch = Batch { bytes: bytes.clone(), header: Header::read(bytes)? };
        Some(Head { batch, aborted: false, unstable: false })
    };
    let rules = Rules {
        may_compact: true,
        rewriting: if may_rewrite { Rewriting::Accepted } else { Rewriting::Refused },
        from: i64::MIN,
        keys_max: usize::MAX,
        inflate_bytes_max: verbatim_compression::DEFAULT_LIMIT_BYTES,
    };
    match Comparison::new(rules).step(head(source).as_ref(), head(target).as_ref()) {
        Err(Stop::Differs(difference)) => Some(difference),
        _ => None,
    }
}

/// A comparison under way.
#[derive(Debug)]
pub(super) struct Comparison {
    rules: Rules,
    pub(super) compaction: Compaction,
    pub(super) redaction: Redaction,
    pub(super) count: Both<Count>,
    pub(super) digest: Both<Digest>,
    /// Largest timestamps of some batches: the first, and then each time that twice as many were seen.
    pub(super) times: Vec<i64>,
    /// The leader epoch of the last batch that both sides have; -1 = none.
    pub(super) last_epoch: i32,
}

impl Comparison {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            compaction: Compaction::new(rules),
            redaction: Redaction::default(),
            count: Both::default(),
            digest: Both::default(),
            times: Vec::new(),
            last_epoch: -1,
        }
    }

    /// True while neither side lacks what compaction may have taken away.
    pub(super) fn is_whole(&self) -> bool {
        self.compaction.side.is_none()
    }

    /// Compares the next batches; `None` stands for the end of a side.
    pub(super) fn step(&mut self, source: Option<&Head>, target: Option<&Head>) -> Result<Step, Stop> {
        let base = |head: &Head| head.batch.header.base_offset;
        let step = match (source, target) {
            (None, None) => Step::End,
            (Some(s), Some(t)) if base(s) == base(t) => self.same_place(s, t).map(|()| Step::Both)?,
            (Some(s), t) if t.is_none_or(|t| base(s) < base(t)) => self.one_sided(Side::Target, s, t)?,
            (s, Some(t)) => self.one_sided(Side::Source, t, s)?,
            // The guards above leave nothing else.
            (Some(s), None) => self.one_sided(Side::Target, s, None)?,
        };
        if self.redaction.batches > 0 && !self.is_whole() {
            return Err(Stop::Undecided(MIXED.to_owned()));
        }
        Ok(step)
    }

    fn same_place(&mut self, source: &Head, target: &Head) -> Result<(), Stop> {
        if source.batch.bytes == target.batch.bytes {
            self.equal(source, target)?;
        } else {
            let told = |stop| with_headers(stop, Some(source), Some(target));
            self.unequal(source, target).map_err(told)?;
        }
        let were_equal = self.digest.source == self.digest.target;
        self.passed(Side::Source, source);
        if were_equal && source.batch.bytes == target.batch.bytes {
            self.count(Side::Target, target);
            self.digest.target = self.digest.source;
        } else {
            self.passed(Side::Target, target);
        }
        Ok(())
    }

    fn equal(&mut self, source: &Head, target: &Head) -> Result<(), Stop> {
        let header = &source.batch.header;
        if !crc_matches(&source.batch.bytes) {
            let what = "both sides hold the same damaged batch: its checksum is wrong";
            let damaged = Stop::Differs(Difference::new(header.base_offset, what));
            return Err(with_headers(damaged, Some(source), Some(target)));
        }
        let full = if self.compaction.side == Some(Side::Source) { target } else { source };
        self.compaction.supersede(full)?;
        self.done_with(header);
        Ok(())
    }

    /// The target's batch may be redacted, or one of them what compaction leaves of the other.
    fn unequal(&mut self, source: &Head, target: &Head) -> Result<(), Stop> {
        let is_accepted = match self.rules.rewriting {
            Rewriting::Refused => return self.compaction.rewritten(source, target),
            Rewriting::Allowed => false,
            Rewriting::Accepted => true,
        };
        match redacted(&source.batch, &target.batch, self.rules.inflate_bytes_max) {
            Ok(redacted) if is_accepted => {
                self.redaction.add(redacted.count);
                self.done_with(&source.batch.header);
                Ok(())
            }
            Ok(redacted) => Err(Stop::Differs(redacted.not_accepted())),
            Err(why @ Stop::Undecided(_)) if is_accepted => Err(why),
            Err(why) => self.compaction.rewritten(source, target).map_err(|stop| match stop {
                // What compaction cannot have made, told by what a module cannot: what it can is no difference.
                Stop::Differs(_) if is_accepted => why,
                stop => stop,
            }),
        }
    }

    /// Both sides have a batch of this header.
    fn done_with(&mut self, header: &Header) {
        self.compaction.holds(Side::Source, header);
        self.compaction.holds(Side::Target, header);
        self.last_epoch = header.leader_epoch;
    }

    /// `head` has no counterpart on the side `lacks`, which has `next` behind it.
    fn one_sided(&mut self, lacks: Side, head: &Head, next: Option<&Head>) -> Result<Step, Stop> {
        let (source, target) = if lacks == Side::Target { (Some(head), next) } else { (next, Some(head)) };
        let told = |stop| with_headers(stop, source, target);
        if let Some(next) = next
            && next.batch.header.base_offset <= head.batch.last()
        {
            return Err(told(Stop::Differs(words::lacking(lacks, &head.batch, Some(&next.batch)))));
        }
        self.compaction.whole_missing(lacks, head, next).map_err(told)?;
        self.passed(lacks.other(), head);
        Ok(Step::Only(lacks.other()))
    }

    fn passed(&mut self, side: Side, head: &Head) {
        self.count(side, head);
        self.digest.of_mut(side).add(&head.batch.bytes);
    }

    fn count(&mut self, side: Side, head: &Head) {
        let count = self.count.of_mut(side);
        let header = &head.batch.header;
        count.add(header, head.batch.bytes.len());
        if side == Side::Source && count.batches.is_power_of_two() {
            if self.times.len() == TIMES_MAX {
                self.times.remove(1);
            }
            self.times.push(header.max_timestamp);
        }
    }

    /// A batch's plain records, within the bound.
    pub(super) fn inflate(&self, batch: &Batch) -> Result<Inflated, Unreadable> {
        batch.inflated(self.rules.inflate_bytes_max)
    }

    /// Begins anew at an offset: what lies below it is gone on a side.
    pub(super) fn restart(&mut self, from: i64) {
        *self = Self::new(Rules { from, ..self.rules });
    }
}

fn with_headers(stop: Stop, source: Option<&Head>, target: Option<&Head>) -> Stop {
    match stop {
        Stop::Differs(difference) => {
            let batch = |head: Option<&Head>| head.map(|head| head.batch.clone());
            let (source, target) = (batch(source), batch(target));
            Stop::Differs(words::beside(difference, source.as_ref(), target.as_ref()))
        }
        undecided @ Stop::Undecided(_) => undecided,
    }
}
