//! Refusals with texts of one form: what must hold, then field=`value`.

use alloc::format;
use core::fmt::Arguments;

use verbatim_contract::{Reason, Refusal};

/// A refusal of the request as a whole.
pub(crate) fn request(reason: Reason, expected: impl Into<Option<i64>>, text: Arguments<'_>) -> Refusal {
    Refusal { reason, batch: None, expected: expected.into(), text: format!("{text}") }
}

/// A refusal for what is wrong with batch `index`.
pub(crate) fn batch(
    reason: Reason,
    index: u32,
    expected: impl Into<Option<i64>>,
    text: Arguments<'_>,
) -> Refusal {
    Refusal { reason, batch: Some(index), expected: expected.into(), text: format!("batch {index}: {text}") }
}
