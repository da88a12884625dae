//! Headers that no client writes.

use std::fmt::Debug;

use verbatim_batch::{Attributes, HEADER_LEN, Header, MIN_FRAME_LEN, OVERHEAD_LEN};
use verbatim_engine::Memory;

use super::Make;
use super::ask::{Ask, built, fitting, parts, sealed};
use crate::format::BatchSpec;

pub(super) const KINDS: &[(&str, Make)] = &[
    ("a plain batch", plain),
    ("a checksum that is not that of the bytes", checksums),
    ("a batch shorter than its header", short),
    ("lengths that are not the batch's", lengths),
    ("counts and offsets that do not fit", counts),
    ("codecs and attribute bits", attributes),
    ("magic bytes", magics),
    ("base offsets at the edges", base_offsets),
    ("leader epochs at the edges", leader_epochs),
    ("timestamps at the edges", timestamps),
    ("producers at the edges", producers),
];

pub(super) const EDGES_64: [i64; 8] =
    [i64::MIN, -2, -1, 1, 1 << 31, 1 << 32, i64::MAX.saturating_sub(1), i64::MAX];
pub(super) const EDGES_32: [i32; 8] = [i32::MIN, -2, -1, 0, 1, 1 << 16, i32::MAX.saturating_sub(1), i32::MAX];
const EDGES_16: [i16; 5] = [i16::MIN, -1, 0, 1, i16::MAX];

fn plain(log: &Memory) -> Result<Vec<Ask>, String> {
    Ok(vec![Ask::new(log, "as a client writes it", built(&fitting(log))?)])
}

fn checksums(log: &Memory) -> Result<Vec<Ask>, String> {
    let good = built(&fitting(log))?;
    // From the magic byte on; what lies before is outside the checksum.
    let flipped = (16..good.len()).map(|place| {
        let mut bytes = good.clone();
        bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 0x10);
        Ask::new(log, format!("a bit of byte {place} flipped"), bytes)
    });
    Ok(flipped.collect())
}

fn short(log: &Memory) -> Result<Vec<Ask>, String> {
    let of = |length| built(&BatchSpec { short: Some(length), ..fitting(log) });
    (MIN_FRAME_LEN..=HEADER_LEN)
        .map(|length| Ok(Ask::new(log, format!("{length} bytes"), of(length)?)))
        .collect()
}

fn lengths(log: &Memory) -> Result<Vec<Ask>, String> {
    let right = i32::try_from(built(&fitting(log))?.len().saturating_sub(OVERHEAD_LEN)).unwrap_or(0);
    let near = [right.saturating_sub(1), right.saturating_add(1), 13, 14, 48, 49, 50];
    each(log, "batchLength", EDGES_32.into_iter().chain(near), |header, value| header.batch_length = value)
}

fn counts(log: &Memory) -> Result<Vec<Ask>, String> {
    let pairs = EDGES_32.into_iter().flat_map(|count| EDGES_32.map(|delta| (count, delta)));
    each(log, "recordCount and lastOffsetDelta", pairs, |header, (count, delta)| {
        (header.record_count, header.last_offset_delta) = (count, delta);
    })
}

fn attributes(log: &Memory) -> Result<Vec<Ask>, String> {
    let bits = (0..256).chain([1 << 8, 1 << 12, 1 << 14, i16::MIN, -1]);
    each(log, "attributes", bits, |header, bits| header.attributes = Attributes::from_bits(bits))
}

fn magics(log: &Memory) -> Result<Vec<Ask>, String> {
    each(log, "magic", [i8::MIN, -1, 0, 1, 3, i8::MAX], |header, value| header.magic = value)
}

fn base_offsets(log: &Memory) -> Result<Vec<Ask>, String> {
    let near = (-3_i64..=3).map(|by| log.end.saturating_add(by));
    let values = EDGES_64.into_iter().chain(near).chain([log.start]);
    let pairs = values.flat_map(|base| [0, 1, i32::MAX].map(|delta| (base, delta)));
    each(log, "baseOffset and lastOffsetDelta", pairs, |header, (base, delta)| {
        (header.base_offset, header.last_offset_delta) = (base, delta);
    })
}

fn leader_epochs(log: &Memory) -> Result<Vec<Ask>, String> {
    each(log, "partitionLeaderEpoch", EDGES_32.into_iter().chain(2..8), |header, value| {
        header.leader_epoch = value
    })
}

fn timestamps(log: &Memory) -> Result<Vec<Ask>, String> {
    let pairs = EDGES_64.into_iter().flat_map(|base| EDGES_64.map(|max| (base, max)));
    each(log, "baseTimestamp and maxTimestamp", pairs, |header, (base, max)| {
        (header.base_timestamp, header.max_timestamp) = (base, max);
    })
}

fn producers(log: &Memory) -> Result<Vec<Ask>, String> {
    let ids = [i64::MIN, -1, 0, 7, 9, i64::MAX];
    let epochs = ids.into_iter().flat_map(|id| EDGES_16.map(|epoch| (id, epoch)));
    let sequences = [i32::MIN, -1, 0, 1, 2, i32::MAX];
    let all = epochs.flat_map(|(id, epoch)| sequences.map(|sequence| (id, epoch, sequence)));
    each(log, "producerId, producerEpoch and baseSequence", all, |header, (id, epoch, sequence)| {
        (header.producer_id, header.producer_epoch, header.base_sequence) = (id, epoch, sequence);
    })
}

/// A batch for each value, right but for what `edit` sets.
fn each<T: Debug + Copy>(
    log: &Memory,
    field: &str,
    values: impl IntoIterator<Item = T>,
    edit: fn(&mut Header, T),
) -> Result<Vec<Ask>, String> {
    let (right, payload) = parts(&fitting(log))?;
    let one = |value: T| {
        let mut header = right;
        edit(&mut header, value);
        Ok(Ask::new(log, format!("{field}=`{value:?}`"), sealed(&header, &payload)?))
    };
    values.into_iter().map(one).collect()
}
