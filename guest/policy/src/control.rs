//! Control batches on an exact topic (R8): accepted, if their first record says what it is.

use alloc::string::ToString;
use core::ops::ControlFlow;

use verbatim_batch::ControlKey;
use verbatim_contract::{Batch, Callbacks, Reason, Refusal};

use crate::records::{self, RisingOffsets};
use crate::refuse;

/// R8: a control key has at least four bytes (87). A batch's records can be read only once, so where they are
/// validated the rest is read here too: the inner result is R14's, for when its turn comes.
pub(crate) fn key(
    index: u32,
    batch: &Batch,
    validate: bool,
    log: &mut dyn Callbacks,
) -> Result<Result<(), Refusal>, Refusal> {
    if !batch.header.attributes.is_control() || batch.header.record_count == 0 {
        return Ok(Ok(()));
    }
    let mut first = None;
    let mut offsets = RisingOffsets::new(batch);
    let scanned = records::scan(index, batch, log, |meta| {
        first.get_or_insert(meta);
        offsets.at(meta);
        if validate { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let Some(first) = first else {
        let why = scanned.err().map(|fault| fault.to_string()).unwrap_or_default();
        return Err(refuse::batch(
            Reason::ControlKey,
            index,
            None,
            format_args!("a control batch must begin with a record; {why}"),
        ));
    };
    if let Err(error) = first.control_key() {
        let least = ControlKey::LEN;
        return Err(refuse::batch(
            Reason::ControlKey,
            index,
            i64::try_from(least).ok(),
            format_args!(
                "a control record's key must have at least {least} bytes, keyLength=`{}`",
                error.len
            ),
        ));
    }
    let sound = scanned.and_then(|()| offsets.verdict());
    Ok(if validate { sound.map_err(|fault| records::refusal(index, fault)) } else { Ok(()) })
}
