//! Walking a batch's records as the host hands them over.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use verbatim_batch::{Record, RecordError, RecordErrorKind, RecordMeta, Records};
use verbatim_contract::{Batch, Callbacks, Reason, Refusal, Unreadable};
use verbatim_policy::records::{self, Fault};

use crate::refuse;

/// How many bytes are asked for at once.
const PIECE_BYTES_MAX: u32 = 64 * 1024;

/// Shows each record of batch `index` without its data, in the memory of one piece. `Break` ends the walk, and what lies
/// behind is not looked at.
///
/// # Errors
/// The refusal (R14) of records that cannot be inflated or do not parse.
pub fn scan(
    index: u32,
    batch: &Batch,
    log: &mut dyn Callbacks,
    on_record: impl FnMut(RecordMeta) -> ControlFlow<()>,
) -> Result<(), Refusal> {
    records::scan(index, batch, log, on_record).map_err(|fault| records::refusal(index, fault))
}

/// Shows each record of batch `index` with its data, in the memory of its largest record and a piece. A refusal by
/// `on_record` ends the walk.
///
/// ```
/// use verbatim_kit::testing::Call;
/// use verbatim_kit::{Batch, Callbacks, Reason, Refusal, for_each_record, refuse};
///
/// fn no_empty_values(index: u32, batch: &Batch, log: &mut dyn Callbacks) -> Result<(), Refusal> {
///     for_each_record(index, batch, log, |record| match record.value {
///         Some([]) => Err(refuse(Reason::Other(87), "a value is null or has bytes", "offsetDelta", record.offset_delta)),
///         _ => Ok(()),
///     })
/// }
/// ```
///
/// # Errors
/// The refusal (R14) of records that cannot be inflated or do not parse, or that of `on_record`.
pub fn for_each_record(
    index: u32,
    batch: &Batch,
    log: &mut dyn Callbacks,
    mut on_record: impl FnMut(&Record<'_>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let count = batch.header.record_count;
    let mut unread = Vec::new();
    let mut seen: i32 = 0;
    loop {
        let piece = piece(index, log)?;
        let is_end = piece.is_empty();
        unread.extend_from_slice(&piece);
        let mut records = Records::new(&unread, count.saturating_sub(seen));
        let mut whole = unread.len();
        loop {
            let left = records.rest().len();
            match records.next() {
                Some(Ok(record)) => {
                    seen = seen.saturating_add(1);
                    on_record(&record)?;
                }
                Some(Err(RecordError { kind: RecordErrorKind::Cut { .. }, .. })) if !is_end => {
                    whole = unread.len().saturating_sub(left);
                    break;
                }
                Some(Err(error)) => {
                    let index_in_batch = u32::try_from(seen).unwrap_or(0);
                    let error = RecordError { index: index_in_batch, ..error };
                    return Err(records::refusal(index, Fault::Malformed(error)));
                }
                None if is_end => return Ok(()),
                None => break,
            }
        }
        unread.drain(..whole);
    }
}

/// All records of batch `index` as one piece of memory; [`Records`] walks them.
///
/// # Errors
/// The refusal of records that cannot be inflated (R14), and MESSAGE_TOO_LARGE (10) where they have more than `bytes_max`
/// bytes.
pub fn plain_records(index: u32, log: &mut dyn Callbacks, bytes_max: usize) -> Result<Vec<u8>, Refusal> {
    rest_of_records(index, Vec::new(), log, bytes_max)
}

/// [`plain_records`] of which these were read before.
pub(crate) fn rest_of_records(
    index: u32,
    mut plain: Vec<u8>,
    log: &mut dyn Callbacks,
    bytes_max: usize,
) -> Result<Vec<u8>, Refusal> {
    loop {
        let piece = match log.records(index, PIECE_BYTES_MAX) {
            Err(Unreadable::TooLarge) => return Err(too_large(index, bytes_max)),
            other => other.map_err(|why| records::refusal(index, Fault::Unreadable(why)))?,
        };
        if piece.is_empty() {
            return Ok(plain);
        }
        reserve_within(&mut plain, piece.len(), bytes_max).ok_or_else(|| too_large(index, bytes_max))?;
        plain.extend_from_slice(&piece);
    }
}

/// Makes room for `more` bytes behind those that are there; `None` where there would be more than `bytes_max`. The capacity
/// doubles as that of any vector, but not beyond those: a module's memory is small, and a trap is worse than a refusal.
#[must_use]
pub fn reserve_within(bytes: &mut Vec<u8>, more: usize, bytes_max: usize) -> Option<()> {
    let len = bytes.len().checked_add(more).filter(|len| *len <= bytes_max)?;
    if len > bytes.capacity() {
        let capacity = bytes.capacity().saturating_mul(2).clamp(len, bytes_max);
        bytes.reserve_exact(capacity.saturating_sub(bytes.len()));
    }
    Some(())
}

fn too_large(index: u32, bytes_max: usize) -> Refusal {
    let expectation = alloc::format!("batch {index}: the records may inflate to {bytes_max} bytes");
    let refusal = refuse(Reason::BatchTooLarge, expectation, "length", "more").of_batch(index);
    i64::try_from(bytes_max).map_or(refusal.clone(), |max| refusal.expecting(max))
}

fn piece(index: u32, log: &mut dyn Callbacks) -> Result<Vec<u8>, Refusal> {
    log.records(index, PIECE_BYTES_MAX).map_err(|why| records::refusal(index, Fault::Unreadable(why)))
}
