//! Creating a log and opening one.

use std::path::Path;
use std::sync::Arc;

use crate::checked::{remove_file, sync_parent};
use crate::facts::{self, Facts};
use crate::index::{Growing, Sealed};
use crate::log::{Log, Recovery};
use crate::parked::Parked;
use crate::producers::Producers;
use crate::received::{self, Received};
use crate::segment::{self, Index, Names, Segment};
use crate::source::SourceFile;
use crate::walk::SMALL_WINDOW;
use crate::{Config, Io, LogError, aborted, cut, scan, snapshot};

/// The segments that hold batches.
struct Stored {
    segments: Vec<Arc<Segment>>,
    /// The offset after the last batch of those before the last.
    sealed_end: i64,
}

/// Where the log ends by its batches.
struct Tail {
    producers: Producers,
    end: i64,
    recovery: Recovery,
}

pub(crate) fn exists(folder: &Path, io: &dyn Io) -> Result<bool, LogError> {
    let path = folder.join(facts::FILE);
    match io.open_read(&path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(LogError::io("open", &path)(error)),
    }
}

pub(crate) fn create(folder: &Path, config: Config, io: Arc<dyn Io>) -> Result<Log, LogError> {
    io.create_folder(folder).map_err(LogError::io("create the folder", folder))?;
    for base in segment::list(&*io, folder)? {
        let names = Names::new(folder, base);
        let (_, length) = open_file(&*io, &names.log)?;
        if length > 0 || exists(folder, &*io)? {
            let detail = "folder holds a log already".to_owned();
            return Err(LogError::Folder { folder: folder.to_owned(), detail });
        }
        remove_segment(&*io, &names)?;
        received::remove(&*io, &names.log)?;
    }
    facts::keep_metadata(&*io, folder, config.topic_id)?;
    let mut facts = Facts::new(config.exact, config.keeps_received);
    if !config.exact {
        facts.shown_epoch = 0;
        facts.epochs_mut().assign(0, 0);
    }
    let first = create_segment(&*io, folder, 0, facts.keeps_received)?;
    facts.write(&*io, folder)?;
    let source = SourceFile::read(&*io, folder)?;
    let log = Log::assemble(io, folder, config, (facts, source), vec![first], Producers::default(), 0);
    log.export_epochs();
    Ok(log)
}

pub(crate) fn open(folder: &Path, config: Config, io: Arc<dyn Io>) -> Result<(Log, Recovery), LogError> {
    let mut facts = read_facts(folder, &config, &*io)?;
    let source = SourceFile::read(&*io, folder)?;
    if let Some(to) = facts.cut {
        cut::cut_files(&*io, folder, to, 0, facts.keeps_received)?;
    }
    let closed = facts.checkpoint.is_some();
    let mut stored = open_segments(&io, folder, &config, &facts, closed)?;
    let tail = match clean_tail(&*io, folder, &facts, &stored)? {
        Some(tail) => tail,
        None => {
            if closed {
                stored = open_segments(&io, folder, &config, &facts, false)?;
            }
            scanned_tail(&*io, folder, &config, &mut facts, &mut stored)?
        }
    };
    let (exact, promoted) = (config.exact && facts.exact, config.exact && !facts.exact);
    let end = tail.end.max(facts.end).max(facts.start);
    let recovery = Recovery { end, promoted, ..tail.recovery };
    let goes_on = tail.end == end && stored.segments.last().is_some_and(|last| last.is_growing());
    if let Some(last) = stored.segments.last().filter(|last| last.is_growing()) {
        last.find_age()?;
    }
    let parts = (facts, source);
    let mut log = Log::assemble(io, folder, config, parts, stored.segments, tail.producers, end);
    if !goes_on {
        log.roll(end)?;
    }
    log.settle(exact)?;
    log.relist();
    log.publish();
    log.export_epochs();
    Ok((log, recovery))
}

/// The facts, as far as the configuration does not go back on them.
fn read_facts(folder: &Path, config: &Config, io: &dyn Io) -> Result<Facts, LogError> {
    let refused = |detail| LogError::Folder { folder: folder.to_owned(), detail };
    let facts = Facts::read(io, folder)?;
    let mut facts = facts.ok_or_else(|| refused(format!("folder holds no {}", facts::FILE)))?;
    facts::keep_metadata(io, folder, config.topic_id)?;
    if config.exact && facts.exact && config.keeps_received != facts.keeps_received {
        let (expected, found) = (facts.keeps_received, config.keeps_received);
        let detail = format!(
            "whether digests of received batches are kept is chosen when the log is made, expected {expected}, \
             keeps_received=`{found}`"
        );
        return Err(refused(detail));
    }
    // Opened as a normal one it is promoted, and needs them no more.
    facts.keeps_received &= config.exact;
    Ok(facts)
}

/// A new, empty segment, its name durable.
pub(crate) fn create_segment(
    io: &dyn Io,
    folder: &Path,
    base: i64,
    keeps_received: bool,
) -> Result<Arc<Segment>, LogError> {
    let names = Names::new(folder, base);
    for stray in [&names.offsets, &names.times, &names.aborted] {
        remove_file(io, stray)?;
    }
    let file = io.open(&names.log, true).map_err(LogError::io("create", &names.log))?;
    file.set_len(0).map_err(LogError::io("truncate", &names.log))?;
    let received = if keeps_received { Some(Received::create(io, &names.log)?) } else { None };
    sync_parent(io, &names.log)?;
    let segment = Segment::new(names, base, file, 0, Index::Growing(Growing::default()));
    Ok(Arc::new(segment.with_received(received)))
}

/// Removes a segment's files, the log first; its snapshot stays, and digests of received batches, which batches that a power
/// loss brings back must not lack.
pub(crate) fn remove_segment(io: &dyn Io, names: &Names) -> Result<(), LogError> {
    [&names.log, &names.offsets, &names.times, &names.aborted]
        .into_iter()
        .try_for_each(|path| remove_file(io, path))
}

pub(crate) fn open_file(io: &dyn Io, path: &Path) -> Result<(Arc<dyn crate::File>, u64), LogError> {
    let file = io.open(path, false).map_err(LogError::io("open", path))?;
    let length = file.len().map_err(LogError::io("read the length", path))?;
    Ok((file, length))
}

/// All segments with batches; those before the last are checked against their indexes and, unless the log was closed
/// cleanly, against their neighbours.
fn open_segments(
    io: &Arc<dyn Io>,
    folder: &Path,
    config: &Config,
    facts: &Facts,
    closed: bool,
) -> Result<Stored, LogError> {
    let keeps = facts.keeps_received;
    let mut stored = Stored { segments: Vec::new(), sealed_end: i64::MIN };
    for base in segment::list(&**io, folder)? {
        let names = Names::new(folder, base);
        let (_, length) = open_file(&**io, &names.log)?;
        if length == 0 {
            // Only a sealed segment has an index file; others that are empty were never used.
            if io.open_read(&names.offsets).is_ok() {
                return Err(LogError::corrupt(&names.log, 0, "a sealed segment is empty"));
            }
            remove_segment(&**io, &names)?;
            continue;
        }
        let file = Parked::park(io, &names.log);
        let index = Index::Growing(Growing::default());
        let received = if keeps { Received::open_parked(io, &names.log)? } else { None };
        let segment = Segment::new(names, base, file, length, index).with_received(received);
        stored.segments.push(Arc::new(segment));
    }
    if let Some(last) = stored.segments.last_mut() {
        let (file, length) = open_file(&**io, &last.names.log)?;
        let index = Index::Growing(Growing::default());
        let received = if keeps { Received::open(&**io, &last.names.log)? } else { None };
        let segment = Segment::new(last.names.clone(), last.base, file, length, index);
        *last = Arc::new(segment.with_received(received));
    }
    let nexts = stored.segments.iter().skip(1).map(|next| Some(next.base)).chain([None]);
    for (segment, next) in stored.segments.iter().zip(nexts) {
        if segment.base < stored.sealed_end {
            let detail = format!("a segment begins below the end {} of the one before it", stored.sealed_end);
            return Err(LogError::corrupt(&segment.names.log, 0, detail));
        }
        if let Some(next) = next {
            let needs_received = keeps && next > facts.start;
            stored.sealed_end = open_sealed(io, segment, config, closed, needs_received)?;
        }
    }
    Ok(stored)
}

/// Loads a sealed segment's indexes, or makes them anew; the offset after its last batch, which is not looked for if the
/// log was closed cleanly.
fn open_sealed(
    io: &Arc<dyn Io>,
    segment: &Segment,
    config: &Config,
    closed: bool,
    needs_received: bool,
) -> Result<i64, LogError> {
    let (names, length) = (&segment.names, segment.length());
    let mut sealed = Sealed::open(io, &names.offsets, &names.times, length)?;
    if sealed.is_none() {
        let found = scan::scan(segment, length, segment.base, i64::MAX, config, true)?;
        if let Some(bad) = found.bad {
            return Err(LogError::corrupt(&names.log, found.length, bad.detail));
        }
        if needs_received {
            segment.received()?.check_all(&mut segment.walk(0, length, SMALL_WINDOW))?;
        }
        found.index.write(&**io, &names.offsets, &names.times)?;
        sealed = Sealed::open(io, &names.offsets, &names.times, length)?;
    }
    let sealed =
        sealed.ok_or_else(|| LogError::corrupt(&names.offsets, 0, "the index does not fit its segment"))?;
    let mut last = None;
    if !closed {
        let mut walk = segment.walk(sealed.last_position()?, length, SMALL_WINDOW);
        while let Some(stored) = walk.next_batch()? {
            last = Some(stored);
        }
    }
    if needs_received {
        segment.received()?.check_end(last.as_ref())?;
    }
    *segment.index_mut() = Index::Sealed(sealed);
    *segment.aborted_mut() = aborted::read(&**io, &names.aborted)?;
    Ok(last.map_or(segment.base, |last| last.next_offset()))
}

/// The tail as a clean close left it; `None` where there was none or anything differs from it.
fn clean_tail(io: &dyn Io, folder: &Path, facts: &Facts, stored: &Stored) -> Result<Option<Tail>, LogError> {
    let Some(checkpoint) = facts.checkpoint else { return Ok(None) };
    let mut end = i64::MIN;
    if let Some(last) = stored.segments.last() {
        let (names, length) = (&last.names, last.length());
        let fits = checkpoint.length == 0 || (checkpoint.segment, checkpoint.length) == (last.base, length);
        let index = Growing::read(io, &names.offsets, &names.times, length)?;
        let Some(index) = index.filter(|_| fits) else { return Ok(None) };
        let mut walk = last.walk(index.position(i32::MAX), length, SMALL_WINDOW);
        let mut last_batch = None;
        while let crate::walk::Step::Batch(stored) = walk.step()? {
            last_batch = Some(stored);
            end = stored.next_offset();
        }
        if walk.at() != length {
            return Ok(None);
        }
        if facts.keeps_received && end > facts.start {
            last.received()?.check_end(last_batch.as_ref())?;
        }
        *last.index_mut() = Index::Growing(index);
        *last.aborted_mut() = aborted::read(io, &names.aborted)?;
    }
    if end.max(facts.end).max(facts.start) != checkpoint.end {
        return Ok(None);
    }
    let Some(states) = snapshot::read(io, &Names::new(folder, checkpoint.end).producers)? else {
        return Ok(None);
    };
    let recovery =
        Recovery { clean: true, scanned_bytes: 0, cut_bytes: 0, end: checkpoint.end, promoted: false };
    Ok(Some(Tail { producers: Producers::from_states(states), end, recovery }))
}

/// The tail after a crash: scanned with checksums, cut where its whole batches end, its producers replayed.
fn scanned_tail(
    io: &dyn Io,
    folder: &Path,
    config: &Config,
    facts: &mut Facts,
    stored: &mut Stored,
) -> Result<Tail, LogError> {
    let mut recovery = Recovery { clean: false, scanned_bytes: 0, cut_bytes: 0, end: 0, promoted: false };
    let mut end = stored.sealed_end;
    if let Some(last) = stored.segments.last().cloned() {
        let found = scan_last(&last, facts, config, &mut recovery)?;
        for entry in found.epochs.entries() {
            facts.shown_epoch = facts.shown_epoch.max(entry.epoch);
            if facts.epochs.last().is_none_or(|last| entry.epoch > last.epoch) {
                facts.epochs_mut().assign(entry.epoch, entry.start);
            }
        }
        if found.length == 0 {
            remove_segment(io, &last.names)?;
            stored.segments.pop();
        } else {
            end = found.end;
            *last.index_mut() = Index::Growing(found.index);
        }
    }
    let end_stated = end.max(facts.end).max(facts.start);
    let producers = scan::replay(io, folder, &stored.segments, (facts.start, end, end_stated))?;
    Ok(Tail { producers, end, recovery })
}

/// Scans the last segment and cuts it where its whole batches end, on a log that keeps digests of received batches where those
/// that have one end.
fn scan_last(
    last: &Segment,
    facts: &Facts,
    config: &Config,
    recovery: &mut Recovery,
) -> Result<scan::Scan, LogError> {
    let (path, length) = (&last.names.log, last.length());
    let mut found = scan::scan(last, length, last.base, facts.start, config, true)?;
    if let Some(bad) = &found.bad
        && !scan::is_torn(last, &found, bad, length)?
    {
        let detail = format!("{}, and whole batches follow", bad.detail);
        return Err(LogError::corrupt(path, found.length, detail));
    }
    let mut detail = found.bad.take().map(|bad| bad.detail);
    let mut entries = 0;
    if facts.keeps_received && found.length > 0 && found.end > facts.start {
        let checked = last.received()?.check(&mut last.walk(0, found.length, SMALL_WINDOW))?;
        entries = checked.length;
        if let Some(lacking) = checked.lacking {
            found = scan::scan(last, lacking.position, last.base, facts.start, config, false)?;
            detail = Some(lacking.detail);
        }
    }
    if let Some(detail) = detail {
        let (position, cut_bytes) = (found.length, length.saturating_sub(found.length));
        tracing::warn!(file = %path.display(), position, cut_bytes, %detail, "a torn tail was cut");
        last.file.set_len(position).map_err(LogError::io("truncate", path))?;
        last.set_length(position);
        recovery.cut_bytes = cut_bytes;
    }
    // What a killed process wrote may still be in memory alone; readers are told that it is durable.
    last.file.sync().map_err(LogError::io("sync", path))?;
    if facts.keeps_received && found.end > facts.start {
        last.received()?.cut(entries)?;
    }
    recovery.scanned_bytes = length;
    Ok(found)
}
