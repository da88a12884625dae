//! One partition's part of a Fetch: what the rules allow to be read, and the reading.

pub(crate) mod find;
pub(crate) mod poll;

use std::sync::Arc;

use bytes::Bytes;
use verbatim_batch::{Codec, frames};
use verbatim_contract::EpochAnswer;
use verbatim_log::{AbortedTransaction, ReadError, View};
use verbatim_wire::error::ErrorCode;

use crate::errors::ApiError;
use crate::partition::Reader;

/// The first Fetch version whose readers know zstd (R47).
const ZSTD_FROM: i16 = 10;

/// The first Fetch version that names topics by id.
pub(crate) const IDS_FROM: i16 = 13;

/// What a reader asks of one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    /// The Fetch version.
    pub(crate) version: i16,
    /// The leader epoch that the reader knows; -1 = none.
    pub(crate) current_epoch: i32,
    /// The first offset wanted.
    pub(crate) offset: i64,
    /// The leader epoch of the last batch that the reader has; -1 = none.
    pub(crate) last_epoch: i32,
    /// About as many bytes.
    pub(crate) max_bytes: usize,
    /// Up to the stable offset only, with aborted transactions.
    pub(crate) committed: bool,
}

impl Ask {
    /// Where reading ends.
    pub(crate) fn bound(&self, view: &View) -> i64 {
        if self.committed { view.stable_offset } else { view.high_watermark }
    }
}

/// What a partition has for a reader.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Where the log stood.
    pub(crate) view: Arc<View>,
    /// Whole batches.
    pub(crate) records: Bytes,
    /// Aborted transactions among them, with read_committed.
    pub(crate) aborted: Option<Vec<AbortedTransaction>>,
    /// Where the reader's history and this one part.
    pub(crate) diverging: Option<EpochAnswer>,
}

impl Part {
    fn empty(view: Arc<View>, ask: Ask) -> Self {
        Self { view, records: Bytes::new(), aborted: ask.committed.then(Vec::new), diverging: None }
    }
}

/// What the rules say before anything is read.
#[derive(Debug)]
pub(crate) enum Ruled {
    /// This is all there is to say.
    Done(Part),
    /// Batches below this bound may be read.
    Read(i64),
}

/// R32, R43, R43b, R46. The topic may have been deleted, or the partition gone offline, while the reader waited.
///
/// # Errors
/// 3 or 100, 56, 74, 75, 1 or 78.
pub(crate) fn rule(reader: &Reader, ask: Ask) -> Result<Ruled, ApiError> {
    if reader.is_deleted() {
        let code = if ask.version < IDS_FROM {
            ErrorCode::UnknownTopicOrPartition
        } else {
            ErrorCode::UnknownTopicId
        };
        return Err(ApiError::new(code, "the topic was deleted"));
    }
    let view = reader.view();
    if let Some(reason) = &view.offline {
        return Err(ApiError::storage(format!("partition is offline: {reason}")));
    }
    crate::api::check_leader_epoch(&view, ask.current_epoch)?;
    if ask.offset < view.start {
        return Err(out_of_range(&view, ask.offset));
    }
    if ask.last_epoch >= 0 {
        let answer = reader.log.epoch_end(ask.last_epoch);
        if answer == EpochAnswer::UNDEFINED {
            return Err(out_of_range(&view, ask.offset));
        }
        if answer.epoch < ask.last_epoch || answer.end < ask.offset {
            return Ok(Ruled::Done(Part { diverging: Some(answer), ..Part::empty(view, ask) }));
        }
    }
    if ask.offset > view.high_watermark {
        let declared = view.source.filter(|_| view.exact).map(|source| source.end);
        if declared.is_some_and(|end| ask.offset <= end) {
            let text = format!("the source has this offset, its copy has not yet, offset=`{}`", ask.offset);
            return Err(ApiError::new(ErrorCode::OffsetNotAvailable, text));
        }
        return Err(out_of_range(&view, ask.offset));
    }
    let bound = ask.bound(&view);
    Ok(if ask.offset >= bound { Ruled::Done(Part::empty(view, ask)) } else { Ruled::Read(bound) })
}

/// Reads stored batches below `bound`; blocks on the disk. The first batch is given whole if `min_one`, however large.
///
/// # Errors
/// 1, 56 or 76.
pub(crate) fn read(reader: &Reader, ask: Ask, bound: i64, min_one: bool) -> Result<Part, ApiError> {
    let fetched =
        reader.log.read(ask.offset, ask.max_bytes, bound, min_one).map_err(|error| match error {
            ReadError::OutOfRange { .. } => ApiError::new(ErrorCode::OffsetOutOfRange, error.to_string()),
            other => {
                tracing::error!(error = %other, "stored data cannot be read");
                ApiError::storage(other.to_string())
            }
        })?;
    let (mut end, mut zstd) = (ask.offset, false);
    for frame in frames(&fetched.bytes) {
        let Some(header) = frame.header() else { continue };
        end = header.next_offset().unwrap_or(end);
        zstd |= header.attributes.codec() == Ok(Codec::Zstd);
    }
    if zstd && ask.version < ZSTD_FROM {
        let text = format!(
            "the data is compressed with zstd, which needs Fetch v{ZSTD_FROM}, version=`{}`",
            ask.version
        );
        return Err(ApiError::new(ErrorCode::UnsupportedCompressionType, text));
    }
    let aborted = ask.committed.then(|| reader.log.aborted(ask.offset, end));
    // What was read beyond the bound was cut off but is still held: a small rest is not worth that.
    let wasteful = fetched.bytes.len() < ask.max_bytes / 4;
    let records = if wasteful { Bytes::copy_from_slice(&fetched.bytes) } else { fetched.bytes };
    Ok(Part { view: fetched.view, records, aborted, diverging: None })
}

fn out_of_range(view: &View, offset: i64) -> ApiError {
    let text = format!("offset must be {} to {}, offset=`{offset}`", view.start, view.high_watermark);
    ApiError::new(ErrorCode::OffsetOutOfRange, text)
}
