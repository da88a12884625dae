//! Reading beside the append thread.
//!
//! A read works on one published view. Appended bytes never change, and deleted files stay readable while they are held;
//! only a cut lets other bytes take a place. It publishes the shorter end under a new generation before it touches a
//! file, so whoever finds the generation unchanged after reading has read bytes of the view's own history, and whoever
//! finds it changed reads again.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use verbatim_batch::{Codec, HEADER_LEN, Header, Records, TimestampType};
use verbatim_contract::EpochAnswer;

use crate::io::read_full;
use crate::view::Published;
use crate::walk::{SMALL_WINDOW, Stored};
use crate::{AbortedTransaction, LogError, ReadError, View};

/// Whole batches as they are stored.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The batches, the first of which contains the offset asked for or is the first after it; empty when there is none
    /// below the bound.
    pub bytes: Bytes,
    /// The view that the bytes were read under: start, high watermark and stable offset for the answer.
    pub view: Arc<View>,
}

/// A record found by its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampHit {
    /// The record's offset.
    pub offset: i64,
    /// Its timestamp, milliseconds since 1970.
    pub timestamp: i64,
    /// The leader epoch of its batch.
    pub leader_epoch: i32,
}

/// Inflates a batch's payload; the text says why it cannot.
pub type Inflate<'a> = &'a dyn Fn(Codec, &[u8]) -> Result<Bytes, String>;

/// A handle for reading one log; cheap to clone and to send to other threads.
#[derive(Clone)]
pub struct LogReader {
    shared: Arc<ArcSwap<Published>>,
}

impl LogReader {
    pub(crate) fn new(shared: Arc<ArcSwap<Published>>) -> Self {
        Self { shared }
    }

    /// Where the log stands now.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.shared.load().view)
    }

    /// Bytes of all segments, as they are published.
    #[must_use]
    pub fn size(&self) -> u64 {
        let published = self.shared.load();
        published.sealed_bytes.saturating_add(published.last_length)
    }

    /// How many segments there are.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.shared.load().segments.len()
    }

    /// Reads whole batches that lie below `bound`, from the one that contains `offset` on (R44), about `max_bytes` of
    /// them: never more, but for a first batch that alone is larger and is given if `min_one`. `bound` is the high
    /// watermark or the stable offset of a [`Self::view`], or anything else; it is lowered to the log's end.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] where `offset` is below the start or above the end; between the bound and the end there
    /// is nothing to read and no error.
    pub fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        bound: i64,
        min_one: bool,
    ) -> Result<Fetched, ReadError> {
        self.consistent(|published| {
            let view = &published.view;
            if offset < view.start || offset > view.end {
                return Err(ReadError::OutOfRange { offset, start: view.start, end: view.end });
            }
            let bytes = read_batches(published, offset, max_bytes, bound.min(view.end), min_one)?;
            Ok(Fetched { bytes, view: Arc::clone(view) })
        })
    }

    /// Transactions that were aborted and have records in `from..to`.
    #[must_use]
    pub fn aborted(&self, from: i64, to: i64) -> Vec<AbortedTransaction> {
        let published = self.shared.load();
        let mut found = Vec::new();
        for segment in published.segments.get(published.floor(from)..).unwrap_or_default() {
            for transaction in segment.aborted().iter().filter(|transaction| transaction.last_offset >= from)
            {
                if transaction.first_offset < to {
                    found.push(*transaction);
                }
                // Whatever is aborted later began at or after this one's stable offset.
                if transaction.last_stable_offset >= to {
                    return found;
                }
            }
        }
        found
    }

    /// Where the asked leader epoch ends, as readers are told (R42): never past the high watermark, or on an exact
    /// partition the source's declared end if that is larger.
    #[must_use]
    pub fn epoch_end(&self, asked: i32) -> EpochAnswer {
        let view = self.view();
        let end = view.high_watermark.max(view.source.map_or(-1, |source| source.end));
        let answer = view.epochs.end_for(asked, view.shown_epoch, end);
        EpochAnswer { end: answer.end.min(end), ..answer }
    }

    /// The first record at or after the start, below `bound`, whose timestamp is `timestamp` or later.
    ///
    /// # Errors
    /// What cannot be read or inflated.
    pub fn offset_for_timestamp(
        &self,
        timestamp: i64,
        bound: i64,
        inflate: Inflate<'_>,
    ) -> Result<Option<TimestampHit>, LogError> {
        self.consistent(|published| {
            let search = Search { published, bound, inflate };
            let first = published.first_reaching(timestamp);
            for (index, segment) in published.segments.iter().enumerate().skip(first) {
                if segment.latest().is_some_and(|(latest, _)| latest >= timestamp) {
                    let from = segment.offset_near_time(timestamp)?.max(published.view.start);
                    if let Some(hit) = search.first(index, from, timestamp)? {
                        return Ok(Some(hit));
                    }
                }
            }
            Ok(None)
        })
    }

    /// The record with the largest timestamp, the first of several, below `bound` (KIP-734).
    ///
    /// # Errors
    /// What cannot be read or inflated.
    pub fn max_timestamp(&self, bound: i64, inflate: Inflate<'_>) -> Result<Option<TimestampHit>, LogError> {
        self.consistent(|published| {
            let search = Search { published, bound, inflate };
            // Segments in the order of their largest timestamp: the first that gives a record has it, but for a batch
            // beyond the bound, or one whose header promises more than its records hold.
            let mut order: Vec<_> = published
                .segments
                .iter()
                .enumerate()
                .filter_map(|(index, segment)| Some((segment.latest()?.0, index)))
                .collect();
            order.sort_unstable_by_key(|(latest, index)| (std::cmp::Reverse(*latest), *index));
            let mut best: Option<TimestampHit> = None;
            for (latest, index) in order {
                if best.is_some_and(|best| latest < best.timestamp) {
                    break;
                }
                let hit = search.largest(index)?;
                let beats = |hit: &TimestampHit| {
                    best.is_none_or(|best| (hit.timestamp, best.offset) > (best.timestamp, hit.offset))
                };
                best = hit.filter(beats).or(best);
            }
            Ok(best)
        })
    }

    /// Runs a read again until no cut came in between, and it did not fail beside a start that moved.
    fn consistent<T, E>(&self, read: impl Fn(&Published) -> Result<T, E>) -> Result<T, E> {
        loop {
            let published: Guard<Arc<Published>> = self.shared.load();
            let result = read(&published);
            let now = self.shared.load();
            // Retention may have removed a file that was to be read; then the start has moved on.
            let overtaken = result.is_err() && now.view.start > published.view.start;
            if now.generation == published.generation && !overtaken {
                return result;
            }
        }
    }
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogReader").field("view", &self.view()).finish()
    }
}

fn read_batches(
    published: &Published,
    offset: i64,
    max_bytes: usize,
    bound: i64,
    min_one: bool,
) -> Result<Bytes, LogError> {
    if offset >= bound {
        return Ok(Bytes::new());
    }
    for (index, segment) in published.segments.iter().enumerate().skip(published.floor(offset)) {
        let limit = published.limit(index);
        let Some(first) = segment.find(offset, limit)? else { continue };
        let first_len = usize::try_from(first.length).unwrap_or(usize::MAX);
        if first.next_offset() > bound || (first_len > max_bytes && !min_one) {
            return Ok(Bytes::new());
        }
        let left = usize::try_from(limit.saturating_sub(first.position)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; max_bytes.max(first_len).min(left)];
        let path = &segment.names.log;
        let filled =
            read_full(&*segment.file, &mut bytes, first.position).map_err(LogError::io("read", path))?;
        bytes.truncate(filled);
        bytes.truncate(whole_below(&bytes, bound));
        // What was asked for may be far more than there is; a reader that is slow must not hold it.
        bytes.shrink_to_fit();
        return Ok(Bytes::from(bytes));
    }
    Ok(Bytes::new())
}

/// Length of the leading whole batches that end at or below `bound`.
fn whole_below(bytes: &[u8], bound: i64) -> usize {
    let mut frames = verbatim_batch::frames(bytes);
    let mut length = 0;
    while let Some(header) = frames.next().and_then(|frame| frame.header()) {
        if header.next_offset().is_none_or(|next| next > bound) {
            break;
        }
        length = frames.framed_len();
    }
    length
}

/// Takes a record; whether more are wanted.
type Visit<'a> = &'a mut dyn FnMut(TimestampHit) -> bool;

/// Keeps the record if its timestamp is larger than those before it; wants all.
fn larger(record: TimestampHit, best: &mut Option<TimestampHit>) -> bool {
    if best.is_none_or(|best| record.timestamp > best.timestamp) {
        *best = Some(record);
    }
    true
}

/// A search for records by timestamp.
struct Search<'a> {
    published: &'a Published,
    bound: i64,
    inflate: Inflate<'a>,
}

impl Search<'_> {
    /// The first record of a segment at or after `from` whose timestamp is `timestamp` or later.
    fn first(&self, index: usize, from: i64, timestamp: i64) -> Result<Option<TimestampHit>, LogError> {
        let mut hit = None;
        self.batches(index, from, |stored, records| {
            if stored.header.max_timestamp >= timestamp {
                records(&mut |record| {
                    hit = Some(record).filter(|record| record.timestamp >= timestamp);
                    hit.is_none()
                })?;
            }
            Ok(hit.is_none())
        })?;
        Ok(hit)
    }

    /// The first record of a segment with the largest timestamp. Headers say in which batch it is, so that one batch is
    /// inflated; more only where its record lies below the start or its header says too much.
    fn largest(&self, index: usize) -> Result<Option<TimestampHit>, LogError> {
        let start = self.published.view.start;
        let mut promised: Option<(i64, i64)> = None;
        self.batches(index, start, |stored, _| {
            let header = &stored.header;
            if promised.is_none_or(|(timestamp, _)| header.max_timestamp > timestamp) {
                promised = Some((header.max_timestamp, header.base_offset));
            }
            Ok(true)
        })?;
        let Some((timestamp, base)) = promised else { return Ok(None) };
        let mut best = None;
        self.batches(index, base.max(start), |_, records| {
            records(&mut |record| larger(record, &mut best))?;
            Ok(false)
        })?;
        if best.is_some_and(|best| best.timestamp == timestamp) {
            return Ok(best);
        }
        best = None;
        self.batches(index, start, |stored, records| {
            if best.is_none_or(|best| stored.header.max_timestamp > best.timestamp) {
                records(&mut |record| larger(record, &mut best))?;
            }
            Ok(true)
        })?;
        Ok(best)
    }

    /// Walks the batches of a segment below the bound while `visit` wants more; it may ask for a batch's records.
    fn batches(
        &self,
        index: usize,
        from: i64,
        mut visit: impl FnMut(
            &Stored,
            &mut dyn FnMut(Visit<'_>) -> Result<(), LogError>,
        ) -> Result<bool, LogError>,
    ) -> Result<(), LogError> {
        let Some(segment) = self.published.segments.get(index) else { return Ok(()) };
        let limit = self.published.limit(index);
        let mut walk = segment.walk(segment.position_near(from)?, limit, SMALL_WINDOW);
        while let Some(stored) = walk.next_batch()? {
            if stored.next_offset() > self.bound {
                break;
            }
            if stored.last_offset() < from {
                continue;
            }
            let mut records = |record: Visit<'_>| {
                let payload = walk.bytes(&stored)?.get(HEADER_LEN..).unwrap_or_default();
                self.records(&stored.header, payload, record).map_err(|detail| {
                    LogError::corrupt(
                        &segment.names.log,
                        stored.position,
                        format!("records cannot be read: {detail}"),
                    )
                })
            };
            if !visit(&stored, &mut records)? {
                break;
            }
        }
        Ok(())
    }

    /// Visits offsets and timestamps of a batch's records at or after the start, while more are wanted.
    fn records(&self, header: &Header, payload: &[u8], visit: Visit<'_>) -> Result<(), String> {
        let codec = header
            .attributes
            .codec()
            .map_err(|codec| format!("no codec has this number, codec=`{codec}`"))?;
        let inflated = if codec == Codec::None { None } else { Some((self.inflate)(codec, payload)?) };
        let plain = inflated.as_deref().unwrap_or(payload);
        for record in Records::new(plain, header.record_count) {
            let record = record.map_err(|error| error.to_string())?;
            let created = header.base_timestamp.saturating_add(record.timestamp_delta);
            let appended = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
            let hit = TimestampHit {
                offset: header.base_offset.saturating_add(i64::from(record.offset_delta)),
                timestamp: if appended { header.max_timestamp } else { created },
                leader_epoch: header.leader_epoch,
            };
            if hit.offset >= self.published.view.start && !visit(hit) {
                break;
            }
        }
        Ok(())
    }
}
