//! Refusals with texts of one form: what must hold, then field=`value`.

use alloc::format;
use core::fmt::Display;

use verbatim_contract::{Batch, Reason, Refusal};

/// A refusal that says what must hold, and which field has which value instead. [`Refusal::of_batch`] says of which batch,
/// [`Refusal::expecting`] adds the number that would have been accepted.
///
/// ```
/// use verbatim_kit::{Reason, refuse};
///
/// let refusal = refuse(Reason::Other(87), "a batch holds 10 records at most", "recordCount", 12).of_batch(0).expecting(10);
/// assert_eq!(refusal.text, "a batch holds 10 records at most, recordCount=`12`");
/// assert_eq!((refusal.batch, refusal.expected), (Some(0), Some(10)));
/// ```
#[must_use]
pub fn refuse(reason: Reason, expectation: impl Display, field: &str, value: impl Display) -> Refusal {
    Refusal::new(reason, format!("{expectation}, {field}=`{value}`"))
}

/// The batches of a request with the index that callbacks and refusals know them by.
pub fn numbered(batches: &[Batch]) -> impl Iterator<Item = (u32, &Batch)> {
    (0..).zip(batches)
}
