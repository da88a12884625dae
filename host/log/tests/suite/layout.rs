//! Which segments a normal log must have: predicted batch by batch, compared with the files.

use std::path::{Path, PathBuf};

use verbatim_batch::{crc32c, crc32c_append};
use verbatim_log::{Config, Io as _, Reason, Retention};

use crate::batches::{header, next};
use crate::disk::Disk;

#[derive(Clone, Debug)]
struct Segment {
    base: i64,
    length: u64,
    /// The first batch's timestamp.
    first: Option<i64>,
    created: Option<i64>,
    largest: i64,
    /// Entries of the offset index, of the time index, the latter's last timestamp, bytes since.
    offsets: usize,
    times: usize,
    last_time: i64,
    since: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    folder: PathBuf,
    config: Config,
    segments: Vec<Segment>,
}

impl Segment {
    fn new(base: i64) -> Self {
        let (first, created, largest, last_time) = (None, None, -1, -1);
        Self { base, length: 0, first, created, largest, offsets: 0, times: 0, last_time, since: 0 }
    }

    fn add(&mut self, batch: &[u8], interval: u32, now: Option<i64>) {
        let timestamp = header(batch).max_timestamp;
        if self.length == 0 {
            (self.first, self.created) = (Some(timestamp), now);
        }
        // After a restart the creation counts from the first append that needs it.
        self.created = self.created.or(now);
        self.largest = self.largest.max(timestamp);
        if self.since > u64::from(interval) {
            self.offsets += 1;
            if self.largest > self.last_time {
                self.times += 1;
                self.last_time = self.largest;
            }
            self.since = 0;
        }
        self.since += batch.len() as u64;
        self.length += batch.len() as u64;
    }
}

impl Layout {
    /// What the files say.
    pub(crate) fn read(disk: &Disk, folder: &Path, config: &Config) -> Self {
        let mut names = disk.list(folder).unwrap();
        names.retain(|name| name.ends_with(".log"));
        names.sort();
        let segments = names.iter().map(|name| {
            let mut segment = Segment::new(name[..20].parse().unwrap());
            let bytes = disk.bytes(&folder.join(name));
            for frame in verbatim_batch::frames(&bytes) {
                segment.add(frame.bytes(), config.index_interval_bytes, None);
            }
            segment
        });
        Self { folder: folder.to_owned(), config: config.clone(), segments: segments.collect() }
    }

    /// Base and length of each segment that does not lie below the start as a whole.
    pub(crate) fn alive(&self, start: i64) -> Vec<(i64, u64)> {
        let dead = self.segments.iter().skip(1).take_while(|next| next.base <= start).count();
        self.segments[dead..].iter().map(|segment| (segment.base, segment.length)).collect()
    }

    /// A clean close ends the time index with the largest timestamp. The start drops an empty segment, so that the one
    /// before it grows on, and forgets when that was made.
    pub(crate) fn reopen(&mut self, start: i64, end: i64) {
        if self.segments.len() > 1 {
            self.segments.pop_if(|last| last.length == 0);
        }
        let last = self.segments.last_mut().unwrap();
        last.created = None;
        if last.largest > last.last_time {
            (last.times, last.last_time) = (last.times + 1, last.largest);
        }
        self.advance_start(start, end);
    }

    pub(crate) fn append(&mut self, batch: &[u8], now: i64) {
        let (config, base, timestamp) =
            (&self.config, header(batch).base_offset, header(batch).max_timestamp);
        let last = self.segments.last().unwrap();
        let name = self.folder.file_name().unwrap().as_encoded_bytes();
        let jitter = match config.segment_jitter_ms.min(config.segment_ms) {
            0 => 0,
            most => i64::from(crc32c_append(crc32c(name), &last.base.to_be_bytes())) % most,
        };
        let waited = match last.first.filter(|first| *first >= 0) {
            Some(first) => timestamp - first,
            None => last.created.map_or(0, |created| now - created),
        };
        let full = last.offsets >= config.segment_index_bytes as usize / 8
            || last.times + 1 >= config.segment_index_bytes as usize / 12;
        let large = last.length + batch.len() as u64 > u64::from(config.segment_bytes);
        let wide = next(batch) - 1 - last.base > i64::from(i32::MAX);
        if wide || last.length > 0 && (large || full || waited > config.segment_ms - jitter) {
            self.segments.push(Segment::new(base));
        }
        let interval = self.config.index_interval_bytes;
        self.segments.last_mut().unwrap().add(batch, interval, Some(now));
    }

    /// The start moved; whole segments below it are gone.
    pub(crate) fn advance_start(&mut self, start: i64, end: i64) {
        if start == end && self.segments.last().unwrap().length > 0 {
            self.segments.push(Segment::new(end));
        }
        while self.segments.get(1).is_some_and(|next| next.base <= start) {
            self.segments.remove(0);
        }
    }

    /// What retention must remove: bases with their reasons, and the start afterwards if it moves.
    pub(crate) fn due(
        &self,
        retention: &Retention,
        now: i64,
        (high_watermark, end): (i64, i64),
    ) -> (Vec<(i64, Reason)>, Option<i64>) {
        let ends: Vec<i64> = self.segments.iter().skip(1).map(|next| next.base).chain([end]).collect();
        let may_go = |index: usize| {
            let is_last_and_empty = index + 1 == ends.len() && self.segments[index].length == 0;
            index < ends.len() && ends[index] <= high_watermark && !is_last_and_empty
        };
        let (mut due, mut at) = (Vec::new(), 0);
        let mut left: u64 = self.segments.iter().map(|segment| segment.length).sum();
        while let Some(bytes) = retention.bytes.filter(|_| may_go(at)) {
            if left < bytes + self.segments[at].length {
                break;
            }
            left -= self.segments[at].length;
            due.push((self.segments[at].base, Reason::Size));
            at += 1;
        }
        while let Some(ms) = retention.ms.filter(|_| may_go(at)) {
            // This disk does not know when a file was written: without timestamps a segment stays.
            if self.segments[at].largest < 0 || now - self.segments[at].largest <= ms {
                break;
            }
            due.push((self.segments[at].base, Reason::Time));
            at += 1;
        }
        due.truncate(retention.segments_max);
        let start = due.len().checked_sub(1).map(|last| ends[last]);
        (due, start)
    }
}
