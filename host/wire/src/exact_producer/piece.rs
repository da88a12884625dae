//! A write cut into pieces that fit a request each, with the position that each expects and leaves.

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use verbatim_batch::{FramesEnd, Header, frames};

use super::write::{Source, Target, Truncate, Write, Written};
use super::{BATCHES_MAX, ExactError};
use crate::tag::{EpochEntry, RequestTag};

/// Where a partition stands between two pieces, as far as its writer can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) end: i64,
    /// The epoch at `end` - 1.
    pub(super) epoch_before: i32,
    /// The last entry's epoch; above `epoch_before` if that entry begins at `end`.
    pub(super) last_epoch: i32,
}

impl Position {
    /// The position after an epoch that begins at `start` was declared, or came with a batch.
    fn begin_epoch(&mut self, epoch: i32, start: i64, end: i64) {
        self.last_epoch = self.last_epoch.max(epoch);
        if start < end {
            self.epoch_before = self.epoch_before.max(epoch);
        }
    }

    /// The position after the end has moved.
    fn move_to(&mut self, end: i64) {
        if end > self.end {
            // Whatever was declared at the old end lies below the new one.
            self.epoch_before = self.last_epoch;
            self.end = end;
        }
    }
}

/// What a piece does, which decides how it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Appends batches: repeated as it was, since the host knows stored bytes again (R21).
    Data,
    /// Tells where the source stands: needless once the end is beyond it.
    Source,
    /// Moves the end without batches (R26b).
    Advance,
    /// Declares epochs at the end. Nothing is sent behind it before its answer: if it failed and a later piece did not,
    /// the epochs would be missing for ever.
    Declare,
    /// Cuts the log. Sent alone, for the same reason and because a lost answer leaves two possible ends.
    Truncate,
}

impl Kind {
    /// True if it must be the only one under way.
    pub(super) const fn is_alone(self) -> bool {
        matches!(self, Self::Declare | Self::Truncate)
    }
}

/// What is owed to the caller once the last piece of a call is acknowledged.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) receipt: oneshot::Sender<Result<Written, ExactError>>,
    /// Its share of the bytes in flight.
    pub(super) room: OwnedSemaphorePermit,
}

/// A part of a request, for one partition.
#[derive(Debug)]
pub(super) struct Piece {
    /// Rises with every sending, so that an answer finds its piece.
    pub(super) serial: u64,
    pub(super) kind: Kind,
    pub(super) tag: RequestTag,
    pub(super) records: Option<Bytes>,
    pub(super) begin: Position,
    pub(super) end: Position,
    /// Only the last piece of a call has it: if one fails, all behind it do.
    pub(super) due: Option<Due>,
}

impl Piece {
    /// The position at `end`, if that is a batch boundary behind the first byte of this piece or its end.
    pub(super) fn boundary(&self, end: i64) -> Option<Position> {
        if end == self.end.end {
            return Some(self.end);
        }
        let mut position = self.begin;
        for frame in frames(self.records.as_deref().unwrap_or_default()) {
            let header = frame.header()?;
            let next = header.next_offset()?;
            step(&mut position, &self.tag.entries, &header, next);
            if next == end {
                return Some(position);
            }
        }
        None
    }

    /// True if it declares this epoch or has a batch of it.
    pub(super) fn knows_epoch(&self, epoch: i32) -> bool {
        self.tag.entries.iter().any(|entry| entry.epoch == epoch)
            || frames(self.records.as_deref().unwrap_or_default())
                .any(|frame| frame.prefix().leader_epoch == epoch)
    }

    /// What it takes in a request.
    pub(super) fn bytes(&self) -> usize {
        self.records.as_ref().map_or(0, Bytes::len)
    }

    fn new(kind: Kind, target: &Target, source: Source, begin: Position) -> Self {
        let tag = RequestTag {
            source_topic_id: target.source_topic_id,
            expected_end: begin.end,
            epoch_before: begin.epoch_before,
            source_start: source.start,
            source_end: source.end,
            source_epoch: source.epoch,
            end_to: None,
            truncate_to: None,
            entries: Vec::new(),
        };
        Self { serial: 0, kind, tag, records: None, begin, end: begin, due: None }
    }
}

/// The pieces of a write that goes on at `at`; the last one has no `due` yet. Never empty.
///
/// # Errors
/// What is wrong with the write, in words.
pub(super) fn split(
    write: &Write,
    at: Position,
    target: &Target,
    request_bytes_max: usize,
) -> Result<Vec<Piece>, String> {
    continues(write.from, at)?;
    entries_rise(write, at)?;
    let mut entries = write.entries.as_slice();
    let mut pieces = Vec::new();
    let mut begin = at;
    for range in ranges(&write.batches, at.end, request_bytes_max)? {
        let mut piece = Piece::new(Kind::Data, target, write.source, begin);
        let records = write.batches.slice(range.bytes);
        let own = entries.iter().take_while(|entry| entry.start < range.end).count();
        let (own, rest) = entries.split_at_checked(own).unwrap_or((entries, &[]));
        own.clone_into(&mut piece.tag.entries);
        entries = rest;
        for header in frames(&records).filter_map(|frame| frame.header()) {
            step(&mut piece.end, own, &header, header.next_offset().unwrap_or(range.end));
            // No history holds an epoch that another replaces at once, so no repetition could be known by it.
            let replaced =
                |entry: &EpochEntry| entry.start == header.base_offset && entry.epoch < header.leader_epoch;
            piece.tag.entries.retain(|entry| !replaced(entry));
        }
        begin = piece.end;
        piece.records = Some(records);
        pieces.push(piece);
    }
    finish(write, target, entries, begin, &mut pieces)?;
    for piece in &pieces {
        piece.tag.encode().map_err(|error| error.to_string())?;
    }
    Ok(pieces)
}

/// The piece of a truncation at `at`, without `due`.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn truncation(cut: &Truncate, at: Position, target: &Target) -> Result<Piece, String> {
    continues(cut.from, at)?;
    if cut.to > at.end {
        return Err(format!("a log that ends at {} cannot be truncated to={}", at.end, cut.to));
    }
    let mut piece = Piece::new(Kind::Truncate, target, cut.source, at);
    piece.tag.epoch_before = cut.epoch_before;
    piece.tag.truncate_to = Some(cut.to);
    piece.end = Position { end: cut.to, epoch_before: cut.epoch_before, last_epoch: cut.epoch_before };
    piece.tag.encode().map_err(|error| error.to_string())?;
    Ok(piece)
}

/// What shows the first difference: the batches of `piece` against what is stored up to `at`. Nothing else is declared.
pub(super) fn comparison(piece: &Piece, target: &Target, at: Position) -> Piece {
    let source =
        Source { start: piece.tag.source_start, end: piece.tag.source_end, epoch: piece.tag.source_epoch };
    Piece { records: piece.records.clone(), ..Piece::new(Kind::Data, target, source, at) }
}

/// Puts what comes behind the last batch onto the last piece, which is made if there are no batches.
fn finish(
    write: &Write,
    target: &Target,
    entries: &[EpochEntry],
    begin: Position,
    pieces: &mut Vec<Piece>,
) -> Result<(), String> {
    let end = write.end_to.unwrap_or(begin.end);
    if end < begin.end {
        return Err(format!("end to must be at least {}, end to={end}", begin.end));
    }
    if let Some(entry) = entries.iter().find(|entry| entry.start > end) {
        return Err(format!("epoch {} begins at {}, above the end {end}", entry.epoch, entry.start));
    }
    if pieces.is_empty() {
        let kind = match (end > begin.end, entries.is_empty()) {
            (true, _) => Kind::Advance,
            (false, false) => Kind::Declare,
            (false, true) => Kind::Source,
        };
        pieces.push(Piece::new(kind, target, write.source, begin));
    }
    let Some(piece) = pieces.last_mut() else { return Ok(()) };
    piece.tag.entries.extend_from_slice(entries);
    // Declared epochs come with an end, even one that is reached: so a repetition is known as one (R26b).
    piece.tag.end_to = (end > begin.end || piece.kind == Kind::Declare).then_some(end);
    piece.end.move_to(end);
    for entry in entries {
        piece.end.begin_epoch(entry.epoch, entry.start, end);
    }
    Ok(())
}

/// Moves a position over one batch and the epochs that begin below its end.
fn step(position: &mut Position, entries: &[EpochEntry], header: &Header, next: i64) {
    let before = position.end;
    position.move_to(next);
    for entry in entries.iter().filter(|entry| entry.start >= before && entry.start < next) {
        position.begin_epoch(entry.epoch, entry.start, next);
    }
    position.begin_epoch(header.leader_epoch, header.base_offset, next);
}

fn continues(from: i64, at: Position) -> Result<(), String> {
    if from == at.end {
        return Ok(());
    }
    Err(format!("the call before leaves the end {}, from={from}", at.end))
}

fn entries_rise(write: &Write, at: Position) -> Result<(), String> {
    let mut least = EpochEntry { epoch: at.epoch_before, start: -1 };
    for entry in &write.entries {
        if entry.epoch < least.epoch || entry.start <= least.start {
            return Err(format!(
                "epoch {} from {} does not rise above the one before it",
                entry.epoch, entry.start
            ));
        }
        least = *entry;
    }
    Ok(())
}

/// The bytes of one request, and the end that its batches leave.
struct Run {
    bytes: std::ops::Range<usize>,
    end: i64,
}

/// Cuts batches into runs of a request each.
fn ranges(batches: &[u8], from: i64, bytes_max: usize) -> Result<Vec<Run>, String> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut end, mut count) = (from, 0_usize);
    let mut all = frames(batches);
    for frame in all.by_ref() {
        let next = follow(frame.header(), frame.prefix().magic, end, runs.is_empty())?;
        let range = frame.range();
        match runs.last_mut() {
            Some(run) if count < BATCHES_MAX && range.end.saturating_sub(run.bytes.start) <= bytes_max => {
                run.bytes.end = range.end;
                run.end = next;
                count = count.saturating_add(1);
            }
            _ => {
                runs.push(Run { bytes: range, end: next });
                count = 1;
            }
        }
        end = next;
    }
    match all.end() {
        None | Some(FramesEnd::Complete) => Ok(runs),
        Some(bad) => Err(format!("the batches end with {bad:?}")),
    }
}

/// The end after a batch that follows `end`; the first one of a write may reach below it, which is for the host to judge.
fn follow(header: Option<Header>, magic: i8, end: i64, first: bool) -> Result<i64, String> {
    if magic != 2 {
        return Err(format!("batches must be of format v2, magic={magic}"));
    }
    let header = header.ok_or("a batch is shorter than its header")?;
    let base = header.base_offset;
    let next = header.next_offset().filter(|next| base >= 0 && *next > base);
    let next = next.ok_or_else(|| {
        format!("a batch has no last offset, baseOffset={base}, lastOffsetDelta={}", header.last_offset_delta)
    })?;
    if base < end && !(first && next > end) {
        return Err(format!("a batch must begin at {end} or above, baseOffset={base}"));
    }
    Ok(next)
}
