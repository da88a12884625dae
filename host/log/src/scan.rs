//! Start-up: finding where the last segment's whole batches end, and whether a crash explains what follows.

use std::path::Path;
use std::sync::Arc;

use verbatim_batch::HEADER_LEN;
use verbatim_contract::EpochHistory;

use crate::index::Growing;
use crate::io::read_full;
use crate::producers::Producers;
use crate::segment::{self, Names, Segment};
use crate::view::floor;
use crate::walk::{LARGE_WINDOW, SMALL_WINDOW, Step, Stored, Walk};
use crate::{Config, File, Io, LogError, snapshot};

/// Lost writes read as zeros up to a multiple of this.
const SECTOR: u64 = 512;

/// What a scan of a segment found.
pub(crate) struct Scan {
    pub(crate) index: Growing,
    /// Where the whole, rising batches with right checksums end.
    pub(crate) length: u64,
    /// The offset after the last of them; that given to the scan without any.
    pub(crate) end: i64,
    /// Leader epochs of the batches with the base offset of the first batch of each.
    pub(crate) epochs: EpochHistory,
    /// What is wrong at `length`, if it is not the file's end.
    pub(crate) bad: Option<Bad>,
}

/// A place that is no whole, sound batch.
pub(crate) struct Bad {
    pub(crate) detail: String,
    /// Up to here the damage may reach.
    until: u64,
}

/// Reads a segment of `limit` bytes from its first to its last, with checksums if asked for; its batches begin at or
/// after `from`. Epochs are those of batches that reach beyond `start`: others are dead and may have been cut.
pub(crate) fn scan(
    segment: &Segment,
    limit: u64,
    from: i64,
    start: i64,
    config: &Config,
    checked: bool,
) -> Result<Scan, LogError> {
    let window = if checked { LARGE_WINDOW } else { SMALL_WINDOW };
    let mut walk = segment.walk(0, limit, window);
    let mut found =
        Scan { index: Growing::default(), length: 0, end: from, epochs: EpochHistory::new(), bad: None };
    loop {
        match walk.step()? {
            Step::End => return Ok(found),
            Step::Bad(detail) => {
                let header_end = walk.at().saturating_add(SECTOR).min(limit);
                found.bad = Some(Bad { detail, until: header_end });
                return Ok(found);
            }
            Step::Batch(stored) => {
                found.bad = judge(&mut walk, &stored, found.end, checked)?;
                if found.bad.is_some() {
                    return Ok(found);
                }
                found.index.add(segment.base, &stored, config.index_interval_bytes);
                found.length = stored.end();
                found.end = stored.next_offset();
                let epoch = stored.header.leader_epoch;
                let lives = stored.next_offset() > start;
                if lives && epoch >= 0 && found.epochs.last().is_none_or(|last| epoch > last.epoch) {
                    found.epochs.assign(epoch, stored.header.base_offset);
                }
            }
        }
    }
}

fn judge(walk: &mut Walk<'_>, stored: &Stored, end: i64, checked: bool) -> Result<Option<Bad>, LogError> {
    let base = stored.header.base_offset;
    let detail = if base < end {
        format!(
            "a batch's offset is not above the one before it, expected at least {end}, baseOffset=`{base}`"
        )
    } else if checked && !walk.crc_ok(stored)? {
        format!("a batch's checksum is wrong, baseOffset=`{base}`")
    } else {
        return Ok(None);
    };
    Ok(Some(Bad { detail, until: stored.end() }))
}

/// Whether a crash explains the bad place: nothing whole follows it, or writes in it were lost, which reads as zeros.
pub(crate) fn is_torn(segment: &Segment, scan: &Scan, bad: &Bad, limit: u64) -> Result<bool, LogError> {
    let (file, path) = (&*segment.file, &segment.names.log);
    Ok(reads_as_lost(file, path, scan.length, bad.until, limit)? || !valid_follows(segment, scan, limit)?)
}

/// Whether what lies in `from..until` of a file of `limit` bytes is all zeros in one of its sectors, up to the sector's end.
pub(crate) fn reads_as_lost(
    file: &dyn File,
    path: &Path,
    from: u64,
    until: u64,
    limit: u64,
) -> Result<bool, LogError> {
    let until = until.div_ceil(SECTOR).saturating_mul(SECTOR).min(limit);
    let mut sector = [0; 512];
    let mut at = from;
    while at < until {
        let next = (at / SECTOR).saturating_add(1).saturating_mul(SECTOR).min(until);
        let wanted = usize::try_from(next.saturating_sub(at)).unwrap_or(0);
        let part = sector.get_mut(..wanted).unwrap_or_default();
        let filled = read_full(file, part, at).map_err(LogError::io("read", path))?;
        let zeros = part.iter().take(filled).all(|byte| *byte == 0);
        if zeros {
            return Ok(true);
        }
        at = next;
    }
    Ok(false)
}

/// Whether anywhere after the bad place there is a whole batch with a later offset and the right checksum.
fn valid_follows(segment: &Segment, scan: &Scan, limit: u64) -> Result<bool, LogError> {
    const MAGIC_AT: u64 = 16;
    let (mut at, mut window) = (scan.length.saturating_add(1), vec![0; LARGE_WINDOW]);
    while at.saturating_add(MAGIC_AT) < limit {
        let from = at.saturating_add(MAGIC_AT);
        let filled =
            read_full(&*segment.file, &mut window, from).map_err(LogError::io("read", &segment.names.log))?;
        let candidates = window.iter().take(filled).enumerate().filter(|(_, byte)| **byte == 2);
        for (index, _) in candidates {
            let place = at.saturating_add(u64::try_from(index).unwrap_or(0));
            let mut walk = segment.walk(place, limit, HEADER_LEN);
            if let Step::Batch(stored) = walk.step()?
                && stored.header.base_offset >= scan.end
                && walk.crc_ok(&stored)?
            {
                return Ok(true);
            }
        }
        if filled == 0 {
            break;
        }
        at = at.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
    }
    Ok(false)
}

/// Producers at `end`: the nearest snapshot at or before the last segment's base (or `end` without any segment), and all
/// batches since. The last segment's aborted transactions are found anew on the way.
///
/// Where the last segment ends, at `last_end`, at or below `start`, it is a dead one that a power loss brought back or left,
/// and those after it may be gone: the snapshot at or before the start knows them.
pub(crate) fn replay(
    io: &dyn Io,
    folder: &Path,
    segments: &[Arc<Segment>],
    (start, last_end, end): (i64, i64, i64),
) -> Result<Producers, LogError> {
    let at = segments.last().map_or(end, |last| if last_end <= start { start } else { last.base });
    let (mut producers, from) = nearest_snapshot(io, folder, at)?;
    let Some(last) = segments.last() else { return Ok(producers) };
    last.aborted_mut().clear();
    for segment in segments.get(floor(segments, from)..).unwrap_or_default() {
        let mut walk = segment.walk(segment.position_near(from)?, segment.length(), SMALL_WINDOW);
        while let Some(stored) = walk.next_batch()? {
            if stored.header.base_offset < from || !stored.header.has_producer() {
                continue;
            }
            let control = stored.header.attributes.is_control();
            let payload = if control { walk.bytes(&stored)?.get(HEADER_LEN..) } else { None };
            let aborted = producers.observe(&stored.header, payload.unwrap_or_default());
            if let Some(aborted) = aborted.filter(|_| Arc::ptr_eq(segment, last)) {
                last.aborted_mut().push(aborted);
            }
        }
    }
    Ok(producers)
}

fn nearest_snapshot(io: &dyn Io, folder: &Path, at: i64) -> Result<(Producers, i64), LogError> {
    let offsets = segment::named(io, folder, ".snapshot")?;
    for offset in offsets.into_iter().rev().filter(|offset| *offset <= at) {
        if let Some(states) = snapshot::read(io, &Names::new(folder, offset).producers)? {
            return Ok((Producers::from_states(states), offset));
        }
    }
    Ok((Producers::default(), i64::MIN))
}
