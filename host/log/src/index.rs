//! The offset and the time index of a segment, in Kafka's formats.
//!
//! The last segment's indexes live in memory, where a start rebuilds them from its scan; they are written when a segment
//! is sealed or the log is closed. Those of sealed segments are looked up in their files, which are opened for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checked::write_file;
use crate::io::read_full;
use crate::parked::Parked;
use crate::walk::Stored;
use crate::{File, Io, LogError};

const OFFSET_ENTRY_LEN: usize = 8;
const TIME_ENTRY_LEN: usize = 12;

/// A timestamp and the last offset of the batch that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    pub(crate) timestamp: i64,
    /// Relative to the segment's base.
    pub(crate) offset: i32,
}

/// A batch's last offset, relative to the segment's base, and where the batch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OffsetEntry {
    offset: i32,
    position: i32,
}

/// When a segment began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Age {
    /// Largest timestamp of its first batch.
    first: Option<i64>,
    /// The wall clock when it was created, as far as is known.
    created_ms: Option<i64>,
}

/// Indexes that still grow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growing {
    age: Age,
    offsets: Vec<OffsetEntry>,
    times: Vec<TimeEntry>,
    /// The largest timestamp so far.
    latest: Option<TimeEntry>,
    bytes_since_entry: u64,
}

/// How far [`Growing`] was, to go back there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    age: Age,
    offsets: usize,
    times: usize,
    latest: Option<TimeEntry>,
    bytes_since_entry: u64,
}

/// Indexes in their files.
pub(crate) struct Sealed {
    offsets: Arc<dyn File>,
    offsets_path: PathBuf,
    offset_count: u64,
    times: Arc<dyn File>,
    times_path: PathBuf,
    time_count: u64,
    latest: Option<TimeEntry>,
}

impl Age {
    /// Without a first batch yet, `timestamp` is that of the first.
    pub(crate) fn begin(&mut self, timestamp: i64, created_ms: Option<i64>) {
        self.first.get_or_insert(timestamp);
        self.created_ms = self.created_ms.or(created_ms);
    }

    /// How long the segment has been growing when a batch with this largest timestamp comes.
    pub(crate) fn at(&self, timestamp: i64, now_ms: Option<i64>) -> Option<i64> {
        match self.first.filter(|first| *first >= 0) {
            Some(first) => Some(timestamp.saturating_sub(first)),
            None => Some(now_ms?.saturating_sub(self.created_ms?)),
        }
    }
}

impl Growing {
    /// Takes note of a batch of a segment that begins at `base`; its last offset is within reach of relative offsets.
    pub(crate) fn add(&mut self, base: i64, stored: &Stored, interval: u32) {
        let Some(offset) = relative(base, stored.last_offset()) else { return };
        let Ok(position) = i32::try_from(stored.position) else { return };
        let timestamp = stored.header.max_timestamp;
        self.age.first.get_or_insert(timestamp);
        if timestamp > self.latest.map_or(-1, |latest| latest.timestamp) {
            self.latest = Some(TimeEntry { timestamp, offset });
        }
        if self.bytes_since_entry > u64::from(interval) {
            self.offsets.push(OffsetEntry { offset, position });
            self.add_time();
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry = self.bytes_since_entry.saturating_add(stored.length);
    }

    pub(crate) fn mark(&self) -> Mark {
        let (offsets, times) = (self.offsets.len(), self.times.len());
        Mark { age: self.age, offsets, times, latest: self.latest, bytes_since_entry: self.bytes_since_entry }
    }

    pub(crate) fn go_back(&mut self, mark: &Mark) {
        self.age = mark.age;
        self.offsets.truncate(mark.offsets);
        self.times.truncate(mark.times);
        self.latest = mark.latest;
        self.bytes_since_entry = mark.bytes_since_entry;
    }

    /// The position of a batch at or before the one that holds a relative offset.
    pub(crate) fn position(&self, offset: i32) -> u64 {
        let after = self.offsets.partition_point(|entry| entry.offset <= offset);
        let entry = after.checked_sub(1).and_then(|index| self.offsets.get(index));
        entry.map_or(0, OffsetEntry::position)
    }

    /// The latest entry that is not after `timestamp`.
    pub(crate) fn time(&self, timestamp: i64) -> Option<TimeEntry> {
        let after = self.times.partition_point(|entry| entry.timestamp <= timestamp);
        after.checked_sub(1).and_then(|index| self.times.get(index)).copied()
    }

    pub(crate) fn latest(&self) -> Option<TimeEntry> {
        self.latest
    }

    pub(crate) fn age(&self) -> Age {
        self.age
    }

    pub(crate) fn age_mut(&mut self) -> &mut Age {
        &mut self.age
    }

    /// How many batches can still be added until an index file of `bytes` is full; the last entry of the time index is
    /// kept for the end of the segment.
    pub(crate) fn room(&self, bytes: u32) -> usize {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let offsets = (bytes / OFFSET_ENTRY_LEN).saturating_sub(self.offsets.len());
        let times = (bytes / TIME_ENTRY_LEN).saturating_sub(1).saturating_sub(self.times.len());
        offsets.min(times)
    }

    /// Writes both files as they are now, durably.
    pub(crate) fn write(&self, io: &dyn Io, offsets: &Path, times: &Path) -> Result<(), LogError> {
        let mut bytes = Vec::with_capacity(self.offsets.len().saturating_mul(OFFSET_ENTRY_LEN));
        for entry in &self.offsets {
            bytes.extend(entry.offset.to_be_bytes());
            bytes.extend(entry.position.to_be_bytes());
        }
        write_file(io, offsets, &bytes, true)?;
        let last = self.times.last().copied();
        let closing = self.latest.filter(|latest| last.is_none_or(|last| last.timestamp < latest.timestamp));
        let mut bytes = Vec::with_capacity(self.times.len().saturating_add(1).saturating_mul(TIME_ENTRY_LEN));
        for entry in self.times.iter().chain(&closing) {
            bytes.extend(entry.timestamp.to_be_bytes());
            bytes.extend(entry.offset.to_be_bytes());
        }
        write_file(io, times, &bytes, true)
    }

    /// The indexes of a last segment as [`Self::write`] left them; `log_len` is that of the segment. `None` where the
    /// files do not fit it.
    pub(crate) fn read(
        io: &dyn Io,
        offsets: &Path,
        times: &Path,
        log_len: u64,
    ) -> Result<Option<Self>, LogError> {
        let (Some(offset_bytes), Some(time_bytes)) =
            (crate::checked::read_whole(io, offsets)?, crate::checked::read_whole(io, times)?)
        else {
            return Ok(None);
        };
        let (offset_entries, offset_rest) = offset_bytes.as_chunks::<OFFSET_ENTRY_LEN>();
        let (time_entries, time_rest) = time_bytes.as_chunks::<TIME_ENTRY_LEN>();
        let offsets: Vec<_> = offset_entries.iter().map(OffsetEntry::read).collect();
        let times: Vec<_> = time_entries.iter().map(TimeEntry::read).collect();
        let rising = offsets
            .iter()
            .zip(offsets.iter().skip(1))
            .all(|(a, b)| a.offset < b.offset && a.position < b.position)
            && times
                .iter()
                .zip(times.iter().skip(1))
                .all(|(a, b)| a.timestamp < b.timestamp && a.offset <= b.offset);
        let last = offsets.last().map_or(0, OffsetEntry::position);
        if !offset_rest.is_empty() || !time_rest.is_empty() || !rising || (last >= log_len && last > 0) {
            return Ok(None);
        }
        let latest = times.last().copied();
        let age = Age::default();
        Ok(Some(Self { age, offsets, times, latest, bytes_since_entry: log_len.saturating_sub(last) }))
    }

    fn add_time(&mut self) {
        let last = self.times.last().copied();
        if let Some(latest) =
            self.latest.filter(|latest| last.is_none_or(|last| last.timestamp < latest.timestamp))
        {
            self.times.push(latest);
        }
    }
}

impl Sealed {
    /// The indexes of a sealed segment of `log_len` bytes; `None` where the files are missing or do not fit it.
    pub(crate) fn open(
        io: &Arc<dyn Io>,
        offsets: &Path,
        times: &Path,
        log_len: u64,
    ) -> Result<Option<Self>, LogError> {
        let Some((offset_file, offset_count)) = open_entries(&**io, offsets, OFFSET_ENTRY_LEN)? else {
            return Ok(None);
        };
        let Some((time_file, time_count)) = open_entries(&**io, times, TIME_ENTRY_LEN)? else {
            return Ok(None);
        };
        let mut sealed = Self {
            offsets: offset_file,
            offsets_path: offsets.to_owned(),
            offset_count,
            times: time_file,
            times_path: times.to_owned(),
            time_count,
            latest: None,
        };
        if let Some(last) = offset_count.checked_sub(1) {
            let last = sealed.offset_entry(last)?;
            if last.position <= 0 || last.position() >= log_len {
                return Ok(None);
            }
        }
        if let Some(last) = time_count.checked_sub(1) {
            sealed.latest = Some(sealed.time_entry(last)?);
        }
        (sealed.offsets, sealed.times) = (Parked::park(io, offsets), Parked::park(io, times));
        Ok(Some(sealed))
    }

    pub(crate) fn position(&self, offset: i32) -> Result<u64, LogError> {
        let after =
            partition_point(self.offset_count, |index| Ok(self.offset_entry(index)?.offset <= offset))?;
        let entry = after.checked_sub(1).map(|index| self.offset_entry(index)).transpose()?;
        Ok(entry.as_ref().map_or(0, OffsetEntry::position))
    }

    /// Position of the last batch that has an entry, 0 without one.
    pub(crate) fn last_position(&self) -> Result<u64, LogError> {
        self.position(i32::MAX)
    }

    pub(crate) fn time(&self, timestamp: i64) -> Result<Option<TimeEntry>, LogError> {
        let after =
            partition_point(self.time_count, |index| Ok(self.time_entry(index)?.timestamp <= timestamp))?;
        after.checked_sub(1).map(|index| self.time_entry(index)).transpose()
    }

    pub(crate) fn latest(&self) -> Option<TimeEntry> {
        self.latest
    }

    fn offset_entry(&self, index: u64) -> Result<OffsetEntry, LogError> {
        entry(&*self.offsets, &self.offsets_path, index).map(|bytes| OffsetEntry::read(&bytes))
    }

    fn time_entry(&self, index: u64) -> Result<TimeEntry, LogError> {
        entry(&*self.times, &self.times_path, index).map(|bytes| TimeEntry::read(&bytes))
    }
}

impl OffsetEntry {
    fn read(bytes: &[u8; OFFSET_ENTRY_LEN]) -> Self {
        let [o0, o1, o2, o3, p0, p1, p2, p3] = *bytes;
        Self { offset: i32::from_be_bytes([o0, o1, o2, o3]), position: i32::from_be_bytes([p0, p1, p2, p3]) }
    }

    fn position(&self) -> u64 {
        u64::try_from(self.position).unwrap_or(0)
    }
}

impl TimeEntry {
    fn read(bytes: &[u8; TIME_ENTRY_LEN]) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, t7, o0, o1, o2, o3] = *bytes;
        Self {
            timestamp: i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            offset: i32::from_be_bytes([o0, o1, o2, o3]),
        }
    }
}

/// A file of entries and how many it holds.
type Entries = (Arc<dyn File>, u64);

/// An offset as index entries of a segment hold it; `None` where it is out of their reach.
pub(crate) fn relative(base: i64, offset: i64) -> Option<i32> {
    offset
        .checked_sub(base)
        .and_then(|relative| i32::try_from(relative).ok())
        .filter(|relative| *relative >= 0)
}

fn open_entries(io: &dyn Io, path: &Path, entry_len: usize) -> Result<Option<Entries>, LogError> {
    let file = match io.open_read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(LogError::io("open", path))?,
    };
    let length = file.len().map_err(LogError::io("read the length", path))?;
    let entry_len = u64::try_from(entry_len).unwrap_or(1);
    Ok((length % entry_len == 0).then_some((file, length / entry_len)))
}

/// The entry of that number in a file of entries of `N` bytes.
pub(crate) fn entry<const N: usize>(file: &dyn File, path: &Path, index: u64) -> Result<[u8; N], LogError> {
    let position = index.saturating_mul(u64::try_from(N).unwrap_or(u64::MAX));
    let mut bytes = [0; N];
    let filled = read_full(file, &mut bytes, position).map_err(LogError::io("read", path))?;
    if filled < N { Err(LogError::corrupt(path, position, "an entry is cut off")) } else { Ok(bytes) }
}

/// How many of `count` entries, which come first, are accepted.
pub(crate) fn partition_point(
    count: u64,
    accept: impl Fn(u64) -> Result<bool, LogError>,
) -> Result<u64, LogError> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if accept(middle)? { low = middle.saturating_add(1) } else { high = middle }
    }
    Ok(low)
}
