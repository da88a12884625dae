//! The invariants I1 to I8, checked on the host's side whatever the module says.

mod base;
mod exact;
mod normal;

use verbatim_batch::HEADER_LEN;

use crate::stage::Settlement;
use crate::{Broken, Call, Incoming, Invariant, Partition, Plan};

/// The magic of record batch v2, the only format that is stored.
const MAGIC: i8 = 2;

/// A settled batch of the request.
#[derive(Clone, Copy)]
struct Settled<'a> {
    index: u32,
    batch: &'a Incoming,
    settlement: &'a Settlement,
}

/// Turns what was staged into a plan.
pub(crate) fn plan<P: Partition>(
    call: &Call,
    settled: &[Option<Settlement>],
    partition: &mut P,
) -> Result<Plan, Broken> {
    let settled = all_settled(call, settled)?;
    if call.policy.exact {
        exact::plan(call, &settled, partition)
    } else {
        normal::plan(call, &settled, partition)
    }
}

/// I8: every batch is settled; that none is settled twice was seen when it happened.
fn all_settled<'a>(call: &'a Call, settled: &'a [Option<Settlement>]) -> Result<Vec<Settled<'a>>, Broken> {
    let pairs = call.batches.iter().zip(settled).zip(0_u32..);
    let pairs = pairs.map(|((batch, settlement), index)| match settlement {
        Some(settlement) => Ok(Settled { index, batch, settlement }),
        None => Err(Broken::new(Invariant::Settled, format!("batch {index} is not settled"))),
    });
    pairs.collect()
}

/// I5: what is appended has a whole header of this format, its own length, the right checksum, and offsets. Gives the
/// offset span: last minus base, plus one.
fn validated(Settled { index, batch, .. }: Settled<'_>) -> Result<i64, Broken> {
    let facts = &batch.facts;
    let broken = |text: String| Err(Broken::new(Invariant::Validated, format!("batch {index}: {text}")));
    if facts.short_header || batch.bytes.len() < HEADER_LEN {
        return broken(format!("shorter than its header, length=`{}`", facts.length));
    }
    if facts.header.magic != MAGIC {
        return broken(format!("expected {MAGIC}, magic=`{}`", facts.header.magic));
    }
    if facts.header.total_len() != Some(batch.bytes.len()) {
        return broken(format!(
            "expected the length of its {} bytes, batchLength=`{}`",
            batch.bytes.len(),
            facts.header.batch_length
        ));
    }
    if !facts.crc_ok {
        return broken(format!("the checksum is not that of its bytes, crc=`{}`", facts.header.crc));
    }
    if facts.header.last_offset_delta < 0 {
        return broken(format!("expected 0 or more, lastOffsetDelta=`{}`", facts.header.last_offset_delta));
    }
    Ok(i64::from(facts.header.last_offset_delta).saturating_add(1))
}

/// I1: the offset after a batch of `span` offsets at `base`.
fn next_offset(index: u32, base: i64, span: i64) -> Result<i64, Broken> {
    let next = if base < 0 { None } else { base.checked_add(span) };
    next.ok_or_else(|| {
        Broken::new(Invariant::Offsets, format!("batch {index} has no place there, base offset=`{base}`"))
    })
}

/// The 61 bytes and the rest; the length was checked before.
fn parts(batch: &Incoming) -> Option<([u8; HEADER_LEN], bytes::Bytes)> {
    let head = *batch.bytes.first_chunk()?;
    Some((head, batch.bytes.slice(HEADER_LEN..)))
}
