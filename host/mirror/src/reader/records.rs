//! From batches to records.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use verbatim_batch::{Batch, HEADER_LEN, Header as BatchHeader, RecordError, Records, TimestampType, frames};
use verbatim_compression::inflate;

use super::aborted::{AbortedTransactions, Verdict};
use super::{Position, ReadErrorKind, Record};
use crate::cluster::Partition;

/// A walk over the records of fetched batches, of which at most one is inflated at a time.
#[derive(Debug)]
pub(super) struct Walk {
    partition: Arc<Partition>,
    /// What is not yet begun.
    batches: Bytes,
    open: Option<OpenBatch>,
    position: Position,
    aborted: Option<AbortedTransactions>,
    inflated_bytes_max: usize,
    opened_bytes: usize,
}

/// A batch whose records are being given out.
#[derive(Debug)]
struct OpenBatch {
    header: BatchHeader,
    next_offset: i64,
    /// Plain records that were not given out yet.
    plain: Bytes,
    index: u32,
    last_delta: i32,
}

impl Walk {
    /// A walk that begins at a position. With `aborted`, transactional batches are left out as that says (read_committed).
    pub(super) fn new(
        partition: Arc<Partition>,
        position: Position,
        batches: Bytes,
        aborted: Option<AbortedTransactions>,
        inflated_bytes_max: usize,
    ) -> Self {
        Self { partition, batches, open: None, position, aborted, inflated_bytes_max, opened_bytes: 0 }
    }

    /// Behind the last record that was given out, and behind what lies between it and the next one as far as that was looked at.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Plain bytes of all batches opened so far.
    pub(super) fn opened_bytes(&self) -> usize {
        self.opened_bytes
    }

    /// The next record; `None` at the end. After an error nothing more comes.
    pub(super) fn next(&mut self) -> Result<Option<Record>, ReadErrorKind> {
        loop {
            let Some(open) = &mut self.open else {
                if self.open_next()? {
                    continue;
                }
                return Ok(None);
            };
            let record = open.next(&self.partition);
            match record {
                Ok(Some(record)) if record.offset < self.position.offset => {}
                Ok(Some(record)) => {
                    self.position = record.next_position();
                    return Ok(Some(record));
                }
                Ok(None) => {
                    self.position = behind(&open.header, open.next_offset);
                    self.open = None;
                }
                Err(reason) => {
                    let (offset, next) = (open.header.base_offset, open.next_offset);
                    self.end();
                    return Err(ReadErrorKind::Malformed { offset, next, reason });
                }
            }
        }
    }

    /// Opens the next batch, or passes over it; false if there is none.
    fn open_next(&mut self) -> Result<bool, ReadErrorKind> {
        let Some(frame) = frames(&self.batches).next().map(|frame| frame.range()) else {
            return Ok(false);
        };
        let bytes = self.batches.split_to(frame.end);
        let opened = self.judge(&bytes);
        if opened.is_err() {
            self.end();
        }
        self.open = opened?;
        Ok(true)
    }

    /// A batch to give records of, or `None` if it has none for us.
    fn judge(&mut self, bytes: &Bytes) -> Result<Option<OpenBatch>, ReadErrorKind> {
        let batch = Batch::parse(bytes).map_err(|error| ReadErrorKind::Corrupt {
            offset: self.position.offset,
            reason: error.to_string(),
        })?;
        let header = *batch.header();
        let next_offset = header.next_offset().ok_or_else(|| ReadErrorKind::Corrupt {
            offset: self.position.offset,
            reason: format!("lastOffsetDelta=`{}` does not fit its base offset", header.last_offset_delta),
        })?;
        let verdict = self.aborted.as_mut().map_or(Verdict::of(&header), |aborted| aborted.enter(&header));
        if verdict == Verdict::Hidden || next_offset <= self.position.offset || header.record_count == 0 {
            self.pass(&header, next_offset);
            return Ok(None);
        }
        let mut open = self.open(header, next_offset, bytes.slice(HEADER_LEN.min(bytes.len())..))?;
        if verdict == Verdict::Marker {
            let marker = open.next(&self.partition);
            let marker = marker.map_err(|reason| malformed(&header, next_offset, reason))?;
            if let (Some(aborted), Some(marker)) = (&mut self.aborted, marker) {
                aborted.marker(&header, marker.key.as_deref());
            }
            self.pass(&header, next_offset);
            return Ok(None);
        }
        Ok(Some(open))
    }

    fn open(&mut self, header: BatchHeader, next: i64, payload: Bytes) -> Result<OpenBatch, ReadErrorKind> {
        let plain = inflate(header.attributes, payload, self.inflated_bytes_max);
        let offset = header.base_offset;
        let plain = plain.map_err(|reason| ReadErrorKind::Inflate { offset, next, reason })?;
        self.opened_bytes = self.opened_bytes.saturating_add(plain.len());
        Ok(OpenBatch { header, next_offset: next, plain, index: 0, last_delta: -1 })
    }

    fn pass(&mut self, header: &BatchHeader, next_offset: i64) {
        if next_offset > self.position.offset {
            self.position = behind(header, next_offset);
        }
    }

    fn end(&mut self) {
        self.open = None;
        self.batches.clear();
    }
}

impl OpenBatch {
    /// The next record, or what is wrong with it.
    fn next(&mut self, partition: &Arc<Partition>) -> Result<Option<Record>, String> {
        let count = self.header.record_count;
        let left = u32::try_from(count).map(|count| count.saturating_sub(self.index));
        let (whole, count) = match left {
            // Whole bytes and the true count give the precise error.
            Err(_) => (self.plain.clone(), count),
            Ok(0) => (self.plain.clone(), 0),
            Ok(_) => (self.plain.slice(..record_len(&self.plain).min(self.plain.len())), 1),
        };
        let record = match Records::new(&whole, count).next() {
            None => return Ok(None),
            Some(Ok(record)) => record,
            Some(Err(RecordError { kind, .. })) => {
                return Err(RecordError { index: self.index, kind }.to_string());
            }
        };
        let (delta, least, most) = (record.offset_delta, self.last_delta, self.header.last_offset_delta);
        if delta <= least || delta > most {
            return Err(format!(
                "record {}: offset delta must be above {least} and at most {most}, delta=`{delta}`",
                self.index
            ));
        }
        let whole_record = self.record(partition, &whole, &record);
        self.plain.advance(whole.len());
        self.index = self.index.saturating_add(1);
        self.last_delta = delta;
        Ok(Some(whole_record))
    }

    fn record(
        &self,
        partition: &Arc<Partition>,
        plain: &Bytes,
        record: &verbatim_batch::Record<'_>,
    ) -> Record {
        let timestamp_type = self.header.attributes.timestamp_type();
        Record {
            partition: Arc::clone(partition),
            offset: self.header.base_offset.saturating_add(i64::from(record.offset_delta)),
            leader_epoch: epoch(&self.header),
            timestamp: match timestamp_type {
                TimestampType::LogAppendTime => self.header.max_timestamp,
                // With a delete horizon too: a compaction that sets one counts the deltas anew (R18).
                TimestampType::CreateTime => self.header.base_timestamp.wrapping_add(record.timestamp_delta),
            },
            timestamp_type,
            key: record.key.map(|key| plain.slice_ref(key)),
            value: record.value.map(|value| plain.slice_ref(value)),
            bytes: plain.clone(),
        }
    }
}

fn behind(header: &BatchHeader, next_offset: i64) -> Position {
    Position::new(next_offset, epoch(header))
}

fn epoch(header: &BatchHeader) -> Option<i32> {
    (header.leader_epoch >= 0).then_some(header.leader_epoch)
}

fn malformed(header: &BatchHeader, next: i64, reason: String) -> ReadErrorKind {
    ReadErrorKind::Malformed { offset: header.base_offset, next, reason }
}

/// Bytes of the first record by its own length, a zigzag varint of at most five bytes; all there are if that is no length, as
/// the walk over them says what is wrong with it.
fn record_len(plain: &[u8]) -> usize {
    let mut value = 0_u64;
    for (at, byte) in plain.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << at.saturating_mul(7);
        if byte & 0x80 == 0 {
            let odd = value & 1 == 1;
            let len = usize::try_from(value >> 1).unwrap_or(usize::MAX);
            return if odd { plain.len() } else { len.saturating_add(at).saturating_add(1) };
        }
    }
    plain.len()
}
