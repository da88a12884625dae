//! Carrying out a commit: check, cut, write, and undo on failure.

use std::io::IoSlice;
use std::sync::Arc;

use verbatim_batch::{HEADER_LEN, Header};
use verbatim_contract::{EpochEntry, EpochHistory};

use crate::checked::{remove_file, sync_parent};
use crate::facts::Facts;
use crate::index::{Mark as IndexMark, relative};
use crate::io::write_all;
use crate::log::Log;
use crate::open::remove_segment;
use crate::received::{self, Entry, Received};
use crate::segment::{self, Index, Names, Segment, remove_snapshots_above};
use crate::walk::Stored;
use crate::{ApplyError, Commit, Flush, LogError, Placed, cut};

/// A commit that fits the log.
struct Plan<'a> {
    epochs: Arc<EpochHistory>,
    shown_epoch: i32,
    batches: Vec<Item<'a>>,
    /// The first batch begins below the end of an empty log (R25).
    restarts: bool,
    end: Option<i64>,
    start: Option<i64>,
    keeps_received: bool,
    /// Facts are declared that must not outlive the batches before them.
    declares: bool,
    now_ms: Option<i64>,
}

struct Item<'a> {
    header: Header,
    length: u64,
    head: &'a [u8],
    payload: &'a [u8],
    /// As [`Placed::received`], on a log that keeps it.
    received: Option<[u8; 32]>,
}

/// How the log was, to go back there.
struct Mark {
    count: usize,
    last: Arc<Segment>,
    length: u64,
    index: Option<IndexMark>,
    aborted: usize,
    /// Bytes of the digests of received batches.
    received: u64,
    end: i64,
    dirty: bool,
    facts: Facts,
}

pub(crate) fn apply(log: &mut Log, commit: &Commit<'_>) -> Result<(), ApplyError> {
    check_online(log)?;
    let plan = Plan::new(log, commit)?;
    log.pay().map_err(|error| log.failure(None, error))?;
    if let Some(to) = commit.cut {
        cut::cut(log, to)?;
        log.pay().map_err(|error| log.failure(commit.cut, error))?;
    }
    if plan.restarts {
        // A segment that begins below the end must not meet one that lies there.
        let deleted = log.delete_dead();
        log.relist();
        if let Err(error) = deleted {
            return Err(log.failure(commit.cut, error));
        }
    }
    let mark = Mark::take(log).map_err(|error| log.failure(commit.cut, error))?;
    log.producers.begin();
    if let Err(error) = append(log, &plan) {
        if let Err(undo) = mark.go_back(log) {
            log.go_offline(&undo);
        }
        return Err(log.failure(commit.cut, error));
    }
    log.producers.keep();
    if let Some(source) = commit.source
        && let Err(error) = log.source.set(&*log.io, source)
    {
        tracing::warn!(%error, "the source's position is kept in memory only");
    }
    if log.config.flush != Flush::Always {
        log.high_watermark = log.end;
    }
    let rolled = log.segments.len() != mark.count
        || !log.segments.last().is_some_and(|last| Arc::ptr_eq(last, &mark.last));
    let relists = rolled || plan.start.is_some();
    if relists {
        log.relist();
    }
    log.publish();
    if relists {
        log.tidy();
    }
    Ok(())
}

pub(crate) fn promote(log: &mut Log, epoch_floor: i32) -> Result<i32, ApplyError> {
    check_online(log)?;
    if !log.facts.exact {
        return Ok(log.facts.shown_epoch);
    }
    let invalid =
        || ApplyError::Invalid { detail: format!("leader epochs are used up, epoch=`{}`", i32::MAX) };
    let last = log.facts.epochs.last().map_or(-1, |last| last.epoch);
    let epoch = log.facts.shown_epoch.max(epoch_floor).max(last).checked_add(1).ok_or_else(invalid)?;
    let (kept, exact, keeps_received) = (log.facts.keeps_received, false, false);
    let mut facts = Facts { exact, keeps_received, shown_epoch: epoch, ..log.facts.clone() };
    facts.epochs_mut().assign(epoch, log.end);
    if let Err(source) = log.pay().and_then(|()| log.sync_last()).and_then(|()| log.persist(facts)) {
        return Err(log.failure(None, source));
    }
    if let Err(error) = log.source.forget(&*log.io) {
        tracing::warn!(%error, "the source's position is forgotten at the next start");
    }
    if kept && let Err(error) = received::remove_others(&*log.io, &log.folder, &[]) {
        tracing::warn!(%error, "digests of received batches are removed at the next start");
    }
    log.publish();
    Ok(epoch)
}

fn check_online(log: &Log) -> Result<(), ApplyError> {
    log.offline
        .as_ref()
        .map_or(Ok(()), |reason| Err(ApplyError::Offline { reason: reason.as_ref().to_owned() }))
}

impl<'a> Plan<'a> {
    fn new(log: &Log, commit: &Commit<'a>) -> Result<Self, ApplyError> {
        let mut plan = Plan {
            epochs: Arc::clone(&log.facts.epochs),
            shown_epoch: log.facts.shown_epoch.max(commit.shown_epoch.unwrap_or(-1)),
            batches: Vec::with_capacity(commit.batches.len()),
            restarts: false,
            end: None,
            start: None,
            keeps_received: log.facts.keeps_received,
            declares: !commit.entries.is_empty(),
            now_ms: commit.now_ms,
        };
        let mut end = log.end;
        if let Some(to) = commit.cut {
            if to < log.facts.start || to > log.end {
                let (start, end) = (log.facts.start, log.end);
                return Err(invalid(format!(
                    "a cut lies outside the log, expected {start}..={end}, cut=`{to}`"
                )));
            }
            let preview = log.cut_preview(to).map_err(|source| ApplyError::Failed { cut: None, source })?;
            if !preview.at_boundary {
                return Err(invalid(format!("a cut is not at a batch boundary, cut=`{to}`")));
            }
            Arc::make_mut(&mut plan.epochs).truncate(to);
            end = to;
        }
        let mut entries = commit.entries;
        for placed in commit.batches {
            // Those that lie above a batch are the later batches', or the end's: it does not come after them.
            let base = Header::read(placed.head).map_or(i64::MAX, |header| header.base_offset);
            let below = entries.iter().take_while(|entry| entry.start <= base).count();
            let (declared, rest) = entries.split_at_checked(below).unwrap_or((entries, &[]));
            plan.declare(declared, commit, (log.facts.start, end))?;
            entries = rest;
            end = plan.place(placed, log.facts.start, end)?;
        }
        plan.declare(entries, commit, (log.facts.start, end))?;
        if plan.restarts {
            Arc::make_mut(&mut plan.epochs).advance_start(log.facts.start);
        }
        plan.end = commit.end.filter(|to| *to > end);
        end = plan.end.unwrap_or(end);
        plan.start = commit.start.map(|to| to.min(end)).filter(|to| *to > log.facts.start);
        plan.declares |= plan.end.is_some() || plan.start.is_some();
        Ok(plan)
    }

    fn declare(
        &mut self,
        entries: &[EpochEntry],
        commit: &Commit<'_>,
        (start, end): (i64, i64),
    ) -> Result<(), ApplyError> {
        let first = commit.batches.first().and_then(|placed| Header::read(placed.head));
        // An empty log that restarts below its end (R25) may take its latest entry down with it.
        let restarts = self.batches.is_empty() && first.is_some_and(|first| restarts(&first, start, end));
        for entry in entries {
            if self.epochs.entries().contains(entry) {
                continue;
            }
            let last = self.epochs.last();
            let rises = last.is_none_or(|last| match restarts {
                true => entry.epoch >= last.epoch,
                false => entry.epoch > last.epoch && entry.start >= last.start,
            });
            if !rises || entry.epoch < 0 || entry.start < 0 {
                return Err(invalid(format!(
                    "an epoch entry does not rise above {last:?}, entry=`{entry:?}`"
                )));
            }
            Arc::make_mut(&mut self.epochs).assign(entry.epoch, entry.start);
            self.shown_epoch = self.shown_epoch.max(entry.epoch);
        }
        Ok(())
    }

    /// Takes a batch in; the end after it.
    fn place(&mut self, placed: &Placed<'a>, start: i64, end: i64) -> Result<i64, ApplyError> {
        let header = Header::read(placed.head).filter(|_| placed.head.len() == HEADER_LEN);
        let header = header.ok_or_else(|| invalid(format!("a head is not {HEADER_LEN} bytes long")))?;
        let length = placed.head.len().saturating_add(placed.payload.len());
        let base = header.base_offset;
        let next = header
            .next_offset()
            .filter(|_| base >= 0 && header.magic == 2 && header.total_len() == Some(length));
        let next =
            next.ok_or_else(|| invalid(format!("a header contradicts itself, header=`{header:?}`")))?;
        let restarts = self.batches.is_empty() && restarts(&header, start, end);
        if base < end && !restarts {
            return Err(invalid(format!(
                "a batch begins below the end, expected at least {end}, baseOffset=`{base}`"
            )));
        }
        let (epoch, last) = (header.leader_epoch, self.epochs.last());
        if epoch < 0 || last.is_some_and(|last| epoch < last.epoch) {
            return Err(invalid(format!(
                "a batch's leader epoch falls below {last:?}, leaderEpoch=`{epoch}`"
            )));
        }
        if restarts || last.is_none_or(|last| epoch > last.epoch) {
            Arc::make_mut(&mut self.epochs).assign(epoch, base);
        }
        self.restarts |= restarts;
        self.shown_epoch = self.shown_epoch.max(epoch);
        let received = placed.received.filter(|_| self.keeps_received);
        if self.keeps_received && received.is_none() {
            return Err(invalid(format!(
                "a batch lacks the digest of what was received, expected 32 bytes, received=`none`, baseOffset=`{base}`"
            )));
        }
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        self.batches.push(Item { header, length, head: placed.head, payload: placed.payload, received });
        Ok(next)
    }
}

/// An empty log begins anew with a batch that reaches from below its end across it (R25).
fn restarts(first: &Header, start: i64, end: i64) -> bool {
    start == end && first.base_offset < end && first.next_offset().is_some_and(|next| next > end)
}

/// Facts that batches rely on first, then batches, then what relies on the batches.
fn append(log: &mut Log, plan: &Plan<'_>) -> Result<(), LogError> {
    let mut facts =
        Facts { epochs: Arc::clone(&plan.epochs), shown_epoch: plan.shown_epoch, ..log.facts.clone() };
    if let Some(first) = plan.batches.first() {
        log.persist(facts.clone())?;
        if plan.restarts {
            log.roll(first.header.base_offset)?;
        }
        write_batches(log, &plan.batches, plan.now_ms)?;
    }
    if plan.declares {
        log.sync_last()?;
    }
    if let Some(end) = plan.end {
        log.roll(end)?;
        (log.end, facts.end) = (end, end);
    }
    if let Some(start) = plan.start {
        // An empty log has an empty segment: a restart below the end finds nothing in its way.
        if start == log.end {
            log.roll(start)?;
        }
        facts.start = start;
        facts.epochs_mut().advance_start(start);
    }
    log.persist(facts)
}

fn write_batches(log: &mut Log, batches: &[Item<'_>], now_ms: Option<i64>) -> Result<(), LogError> {
    let mut left = batches;
    while let Some(first) = left.first() {
        let Some(last) = log.segments.last().cloned() else { return Ok(()) };
        let count = how_many_fit(log, &last, left, now_ms);
        if count == 0 {
            log.roll(first.header.base_offset)?;
            continue;
        }
        let (group, rest) = left.split_at_checked(count).unwrap_or((left, &[]));
        write_group(log, &last, group, now_ms)?;
        left = rest;
    }
    Ok(())
}

/// How many of the batches the last segment takes, by Kafka's rules for rolling; an empty one takes any batch within
/// reach of its relative offsets.
fn how_many_fit(log: &Log, last: &Segment, batches: &[Item<'_>], now_ms: Option<i64>) -> usize {
    let limit = u64::from(log.config.segment_bytes.min(i32::MAX.unsigned_abs()));
    let longest = log.segment_ms(last.base);
    let (mut age, room) = match &*last.index() {
        Index::Growing(index) => (index.age(), index.room(log.config.segment_index_bytes)),
        Index::Sealed(_) => return 0,
    };
    let mut length = last.length();
    let fits = |item: &&Item<'_>| {
        let after = length.saturating_add(item.length);
        let reach = item.header.last_offset().and_then(|offset| relative(last.base, offset));
        let timestamp = item.header.max_timestamp;
        let grown = age.at(timestamp, now_ms).is_some_and(|grown| grown > longest);
        let fits = reach.is_some()
            && item.header.base_offset >= last.base
            && (length == 0 || (after <= limit && !grown));
        age.begin(timestamp, now_ms);
        length = after;
        fits
    };
    // Each batch brings at most one entry.
    let most = if last.length() == 0 { room.max(1) } else { room };
    batches.iter().take(most).take_while(fits).count()
}

/// One vectored write, behind that of the digests where they are kept, then what follows from the batches.
fn write_group(
    log: &mut Log,
    last: &Arc<Segment>,
    group: &[Item<'_>],
    now_ms: Option<i64>,
) -> Result<(), LogError> {
    let mut slices: Vec<IoSlice<'_>> = group
        .iter()
        .flat_map(|item| [item.head, item.payload])
        .filter(|part| !part.is_empty())
        .map(IoSlice::new)
        .collect();
    let mut position = last.length();
    log.dirty = true;
    if log.facts.keeps_received {
        last.received()?.append(group.iter().filter_map(Item::entry))?;
    }
    write_all(&*last.file, &mut slices, position).map_err(LogError::io("write", &last.names.log))?;
    for item in group {
        let stored = Stored { position, length: item.length, header: item.header };
        if let Index::Growing(index) = &mut *last.index_mut() {
            index.age_mut().begin(item.header.max_timestamp, now_ms);
            index.add(last.base, &stored, log.config.index_interval_bytes);
        }
        if let Some(aborted) = log.producers.observe(&item.header, item.payload) {
            last.aborted_mut().push(aborted);
        }
        position = stored.end();
        log.end = stored.next_offset();
    }
    last.set_length(position);
    Ok(())
}

impl Item<'_> {
    fn entry(&self) -> Option<Entry> {
        let (base_offset, batch_crc) = (self.header.base_offset, self.header.crc);
        self.received.map(|digest| Entry { digest, base_offset, batch_crc })
    }
}

impl Mark {
    fn take(log: &Log) -> Result<Self, LogError> {
        let offline = || LogError::Offline { reason: "the log has no segment".to_owned() };
        let last = Arc::clone(log.segments.last().ok_or_else(offline)?);
        let index = match &*last.index() {
            Index::Growing(index) => Some(index.mark()),
            Index::Sealed(_) => None,
        };
        let aborted = last.aborted().len();
        let received = if log.facts.keeps_received { last.received()?.length() } else { 0 };
        Ok(Self {
            count: log.segments.len(),
            length: last.length(),
            index,
            aborted,
            received,
            end: log.end,
            dirty: log.dirty,
            facts: log.facts.clone(),
            last,
        })
    }

    /// Undoes an append that failed (I6); a failure here leaves the partition in an unknown state.
    fn go_back(self, log: &mut Log) -> Result<(), LogError> {
        log.check_online()?;
        log.producers.rollback();
        log.unused.clear();
        log.end = self.end;
        let kept = self.count.saturating_sub(1);
        log.segments.truncate(kept);
        log.segments.push(Arc::clone(&self.last));
        // One that was just being made is not in the list yet.
        let mut made = segment::list(&*log.io, &log.folder)?;
        made.retain(|base| !log.segments.iter().any(|segment| segment.base == *base));
        remove_snapshots_above(&*log.io, &log.folder, self.end)?;
        // The last first, each for good: a power loss could bring back what was refused, or some of it without the rest.
        for base in made.iter().rev() {
            remove_segment(&*log.io, &Names::new(&log.folder, *base))?;
            sync_parent(&*log.io, &self.last.names.log)?;
        }
        if log.facts.keeps_received {
            for base in &made {
                received::remove(&*log.io, &Names::new(&log.folder, *base).log)?;
            }
        }
        let last = &self.last;
        if let (Index::Growing(index), Some(mark)) = (&mut *last.index_mut(), &self.index) {
            index.go_back(mark);
        }
        last.aborted_mut().truncate(self.aborted);
        last.set_length(self.length);
        self.shorten(log)?;
        log.settle_facts(self.facts);
        Ok(())
    }

    /// Cuts off what was written to the last segment's files.
    fn shorten(&self, log: &mut Log) -> Result<(), LogError> {
        let last = &self.last;
        let received = if log.facts.keeps_received { Some(last.received()?) } else { None };
        let length = last.file.len().map_err(LogError::io("read the length", &last.names.log))?;
        let entries = received.map(Received::stored).transpose()?.unwrap_or(self.received);
        if (length, entries) == (self.length, self.received) {
            log.dirty |= self.dirty;
            return Ok(());
        }
        if self.length == 0 {
            // It may have been sealed meanwhile, and an empty segment with an index counts as damaged.
            remove_file(&*log.io, &last.names.offsets)?;
            sync_parent(&*log.io, &last.names.log)?;
        }
        last.file.set_len(self.length).map_err(LogError::io("truncate", &last.names.log))?;
        // A power loss could bring back what was refused, here too.
        last.file.sync().map_err(LogError::io("sync", &last.names.log))?;
        received.map_or(Ok(()), |received| received.cut(self.received))?;
        log.dirty = false;
        Ok(())
    }
}

fn invalid(detail: String) -> ApplyError {
    ApplyError::Invalid { detail }
}
