//! Cutting the log (R31), in steps that a start finishes if a crash comes between.
//!
//! 1. The facts say that a cut to here is under way, with the epochs that it leaves: from now on it happens.
//! 2. Readers see what stays, and by the generation that bytes read under another view are not to be trusted.
//! 3. Files are cut; producers, transactions and the last segment's indexes are found anew.
//! 4. The facts say that it is done.

use std::path::Path;
use std::sync::Arc;

use crate::checked::{remove_file, sync_parent};
use crate::facts::Facts;
use crate::log::Log;
use crate::open::{open_file, remove_segment};
use crate::received::{self, Received};
use crate::segment::{self, Index, Names, Segment};
use crate::walk::{SMALL_WINDOW, Step, Walk};
use crate::{ApplyError, Io, LogError, scan};

/// Cuts the log to an end that is a batch boundary between its start and its end. What stays is durable afterwards, and
/// the high watermark at the new end.
pub(crate) fn cut(log: &mut Log, to: i64) -> Result<(), ApplyError> {
    let mut facts = Facts { cut: Some(to), end: to, ..log.facts.clone() };
    facts.epochs_mut().truncate(to);
    let cuts = to != log.end || facts.epochs != log.facts.epochs;
    let prepared = log.remove_unused().and_then(|()| prepare(log, to)).and_then(|position| {
        // What stays is durable first: the end that the facts state must not be above the batches that a crash leaves.
        log.sync_last()?;
        if cuts {
            log.persist(facts)?;
        }
        Ok(position)
    });
    let position = prepared.map_err(|source| log.failure(None, source))?;
    (log.end, log.high_watermark) = (to, to);
    if !cuts {
        log.publish();
        return Ok(());
    }
    show(log, to, position);
    if let Err(error) = finish(log, to, position) {
        log.go_offline(&error);
        return Err(ApplyError::Offline { reason: error.to_string() });
    }
    Ok(())
}

/// Where in the last segment that begins below `to` the cut lies.
fn prepare(log: &Log, to: i64) -> Result<u64, LogError> {
    let Some(segment) = log.segments.iter().rev().find(|segment| segment.base < to) else { return Ok(0) };
    let length = segment.length();
    let mut walk = segment.walk(segment.position_near(to)?, length, SMALL_WINDOW);
    if log.facts.keeps_received && to > log.facts.start {
        // Damage is told before anything is begun.
        segment.received()?.first_from(to)?;
    }
    Ok(find_cut(&mut walk, to)?.unwrap_or(length))
}

/// Shows readers what stays, before a file is touched: they neither read nor trust anything else from now on.
fn show(log: &mut Log, to: i64, position: u64) {
    log.generation = log.generation.saturating_add(1);
    log.segments.retain(|segment| segment.base < to);
    log.relist();
    log.publish_up_to(position);
    // Only now: a reader that goes by the view before must not find its segments shorter while that view still holds.
    if let Some(last) = log.segments.last() {
        last.set_length(position);
        last.aborted_mut().retain(|transaction| transaction.last_offset < to);
    }
}

fn finish(log: &mut Log, to: i64, position: u64) -> Result<(), LogError> {
    cut_files(&*log.io, &log.folder, to, position, log.facts.keeps_received)?;
    let mut end = i64::MIN;
    if let Some(last) = log.segments.pop()
        && position > 0
    {
        let (file, length) = open_file(&*log.io, &last.names.log)?;
        let index = Index::Growing(crate::index::Growing::default());
        let kept = log.facts.keeps_received;
        let received = if kept { Received::open(&*log.io, &last.names.log)? } else { None };
        let reopened =
            Segment::new(last.names.clone(), last.base, file, length, index).with_received(received);
        let found = scan::scan(&reopened, length, last.base, i64::MAX, &log.config, false)?;
        if let Some(bad) = found.bad {
            return Err(LogError::corrupt(&last.names.log, found.length, bad.detail));
        }
        end = found.end;
        *reopened.index_mut() = Index::Growing(found.index);
        reopened.find_age()?;
        log.segments.push(Arc::new(reopened));
    }
    log.producers = scan::replay(&*log.io, &log.folder, &log.segments, (log.facts.start, end, to))?;
    if end < to || to == log.facts.start {
        log.roll(to)?;
    }
    log.dirty = false;
    log.settle_facts(Facts { cut: None, ..log.facts.clone() });
    log.tidy();
    log.relist();
    log.publish();
    Ok(())
}

/// Cuts the files of a folder: segments and snapshots above go, the segment in which the cut lies is cut at the batch
/// that begins there or later. `hint` is the position of a batch before it in that segment. Can be done again.
pub(crate) fn cut_files(
    io: &dyn Io,
    folder: &Path,
    to: i64,
    hint: u64,
    keeps_received: bool,
) -> Result<(), LogError> {
    let bases = segment::list(io, folder)?;
    for base in bases.iter().rev().filter(|base| **base >= to) {
        remove_segment(io, &Names::new(folder, *base))?;
    }
    segment::remove_snapshots_above(io, folder, to)?;
    for base in bases.iter().rev().filter(|base| **base < to) {
        let names = Names::new(folder, *base);
        let (file, length) = open_file(io, &names.log)?;
        if length == 0 {
            // Never used; a start removes it.
            continue;
        }
        let position = find_cut(&mut Walk::new(&*file, &names.log, hint, length, SMALL_WINDOW), to)?;
        // The indexes first, also where no byte goes: the segment becomes the last one, which has none. When it is sealed
        // again it gets new files, so readers that hold the old ones are not disturbed.
        for path in [&names.offsets, &names.times, &names.aborted] {
            remove_file(io, path)?;
        }
        sync_parent(io, &names.log)?;
        if position == Some(0) {
            remove_segment(io, &names)?;
            break;
        }
        if let Some(position) = position {
            file.set_len(position).map_err(LogError::io("truncate", &names.log))?;
            file.sync().map_err(LogError::io("sync", &names.log))?;
        }
        if let Some(received) = if keeps_received { Received::open(io, &names.log)? } else { None } {
            received.cut_to(to)?;
        }
        break;
    }
    io.sync_folder(folder).map_err(LogError::io("sync the folder", folder))?;
    if keeps_received {
        // Only now: batches that a power loss brings back need them.
        received::remove_others(io, folder, &segment::list(io, folder)?)?;
    }
    Ok(())
}

/// Position of the first batch that begins at `to` or later. A torn tail ends the search: the start's scan judges it.
fn find_cut(walk: &mut Walk<'_>, to: i64) -> Result<Option<u64>, LogError> {
    while let Step::Batch(stored) = walk.step()? {
        if stored.header.base_offset >= to {
            return Ok(Some(stored.position));
        }
    }
    Ok(None)
}
