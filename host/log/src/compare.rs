//! Comparing a batch with what is stored, and looking at a cut before it is made.

use verbatim_batch::Header;
use verbatim_contract::{Comparison, CutPreview};

use crate::LogError;
use crate::io::read_full;
use crate::log::Log;
use crate::segment::Segment;
use crate::view::floor;
use crate::walk::Stored;

/// Bytes compared at once.
const CHUNK_LEN: usize = 64 * 1024;
/// Batches larger than this that differ are not searched for the record that differs.
const DIFFERENCE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of the base offset, which is compared as a number.
const BASE_OFFSET_LEN: usize = 8;

/// What is stored where a batch is to lie.
enum Place<'a> {
    /// A batch that begins at the same offset.
    Batch(&'a Segment, Stored),
    /// Nothing of that kind, and what is told of it.
    Other(Comparison),
}

pub(crate) fn compare(log: &Log, head: &[u8], payload: &[u8], base: i64) -> Result<Comparison, LogError> {
    let header = Header::read(head).map(|header| Header { base_offset: base, ..header });
    let (segment, stored) = match place(log, header.as_ref())? {
        Place::Batch(segment, stored) => (segment, stored),
        Place::Other(comparison) => return Ok(comparison),
    };
    let length = head.len().saturating_add(payload.len());
    if Some(stored.header) != header
        || u64::try_from(length) != Ok(stored.length)
        || !same_bytes(segment, &stored, head, payload)?
    {
        return Ok(Comparison::Differs(first_difference(segment, &stored, head, payload)?));
    }
    Ok(Comparison::Same)
}

/// The same by the digest of what was received, where the log keeps it.
pub(crate) fn compare_received(
    log: &Log,
    batch: &[u8],
    digest: &[u8; 32],
    base: i64,
) -> Result<Comparison, LogError> {
    if !log.facts.keeps_received {
        return compare(log, batch, &[], base);
    }
    let header = Header::read(batch).map(|header| Header { base_offset: base, ..header });
    let (segment, stored) = match place(log, header.as_ref())? {
        Place::Batch(segment, stored) => (segment, stored),
        Place::Other(comparison) => return Ok(comparison),
    };
    let same_end = header.is_some_and(|header| header.last_offset() == Some(stored.last_offset()));
    let same = same_end && segment.received()?.digest(&stored)? == *digest;
    Ok(if same { Comparison::Same } else { Comparison::Differs(base) })
}

fn place<'a>(log: &'a Log, placed: Option<&Header>) -> Result<Place<'a>, LogError> {
    let absent = Place::Other(Comparison::Absent);
    let Some(placed) = placed else { return Ok(absent) };
    let Some(last) = placed.last_offset().filter(|last| *last >= log.facts.start) else { return Ok(absent) };
    let base = placed.base_offset;
    // A batch that lies below the start as a whole is as good as deleted.
    let Some((segment, stored)) = find(log, base.max(log.facts.start))? else { return Ok(absent) };
    let found = stored.header.base_offset;
    Ok(match found {
        _ if found > last => absent,
        _ if found != base => Place::Other(Comparison::Overlaps(found.max(base))),
        _ => Place::Batch(segment, stored),
    })
}

/// The first offset in dispute between a stored batch and one with the same base offset (R23).
fn first_difference(
    segment: &Segment,
    stored: &Stored,
    head: &[u8],
    payload: &[u8],
) -> Result<i64, LogError> {
    let length = usize::try_from(stored.length).unwrap_or(usize::MAX);
    if length > DIFFERENCE_BYTES_MAX {
        return Ok(stored.header.base_offset);
    }
    let mut there = vec![0; length];
    let filled = read_full(&*segment.file, &mut there, stored.position)
        .map_err(LogError::io("read", &segment.names.log))?;
    there.truncate(filled);
    let mut received = [head, payload].concat();
    // A batch that is compared at another place than its own says so only here.
    if let Some(own) = received.first_chunk_mut() {
        *own = stored.header.base_offset.to_be_bytes();
    }
    Ok(verbatim_batch::first_difference(&there, &received))
}

pub(crate) fn cut_preview(log: &Log, to: i64) -> Result<CutPreview, LogError> {
    // What lies below the start is as good as deleted.
    let mut stored = find(log, to.max(log.facts.start))?.map(|(_, stored)| stored);
    let inside = stored.filter(|stored| stored.header.base_offset < to);
    let at_boundary = (log.facts.start..=log.end).contains(&to) && inside.is_none();
    if let Some(inside) = inside {
        // No cut takes away a part of a batch.
        stored = find(log, inside.next_offset())?.map(|(_, stored)| stored);
    }
    let mut epochs = log.facts.epochs.as_ref().clone();
    epochs.truncate(to);
    let last = log.facts.epochs.last();
    // Batches and entries rise together: what is cut has the last entry's epoch, if anything is.
    let cuts = stored.is_some() || last.is_some_and(|last| last.start >= to);
    let stored_epoch = stored.map(|stored| stored.header.leader_epoch);
    let highest = last.map(|last| last.epoch).max(stored_epoch).filter(|_| cuts);
    Ok(CutPreview { at_boundary, last_entry: epochs.last(), highest_epoch_cut: highest })
}

/// The first stored batch whose last offset is `offset` or later.
fn find(log: &Log, offset: i64) -> Result<Option<(&Segment, Stored)>, LogError> {
    for segment in log.segments.get(floor(&log.segments, offset)..).unwrap_or_default() {
        if let Some(stored) = segment.find(offset, segment.length())? {
            return Ok(Some((segment, stored)));
        }
    }
    Ok(None)
}

fn same_bytes(segment: &Segment, stored: &Stored, head: &[u8], payload: &[u8]) -> Result<bool, LogError> {
    let mut position = stored.position;
    let mut buffer = vec![0; CHUNK_LEN.min(head.len().max(payload.len()))];
    for (part, skip) in [(head, BASE_OFFSET_LEN), (payload, 0)] {
        position = position.saturating_add(u64::try_from(skip).unwrap_or(0));
        for chunk in part.get(skip..).unwrap_or_default().chunks(CHUNK_LEN) {
            let there = buffer.get_mut(..chunk.len()).unwrap_or_default();
            let filled = read_full(&*segment.file, there, position)
                .map_err(LogError::io("read", &segment.names.log))?;
            if filled != chunk.len() || there != chunk {
                return Ok(false);
            }
            position = position.saturating_add(u64::try_from(chunk.len()).unwrap_or(0));
        }
    }
    Ok(true)
}
