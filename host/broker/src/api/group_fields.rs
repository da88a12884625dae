//! What requests of groups have in common.

use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

/// Bytes of a protocol's or an instance's name.
const NAME_BYTES_MAX: usize = 255;

/// Whether names can be told again to clients of every version.
pub(super) fn are_short<'a>(names: impl IntoIterator<Item = &'a StrBytes>) -> bool {
    names.into_iter().all(|name| name.len() <= NAME_BYTES_MAX)
}

/// The code of an answer.
pub(super) fn code(outcome: Result<(), ErrorCode>) -> i16 {
    outcome.err().unwrap_or(ErrorCode::None).number()
}
