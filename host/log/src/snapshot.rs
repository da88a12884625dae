//! Producer snapshots: Kafka's format, version 1, followed by what Kafka forgets.
//!
//! Kafka keeps a producer's last batch; R33 needs five. The rest stands behind Kafka's array, within its checksum, where
//! Kafka's reader ignores it.

use std::collections::HashMap;
use std::path::Path;

use verbatim_batch::crc32c;
use verbatim_contract::{MAX_PRODUCER_BATCHES, ProducerBatch, ProducerState};

use crate::checked::{read_whole, replace_file};
use crate::{Io, LogError};

const VERSION: i16 = 1;
const TRAILER: &[u8; 4] = b"VBPS";
const TRAILER_VERSION: i16 = 1;

/// Writes the producers as they are at the offset that names the file, as a whole: once the segments below are deleted,
/// nothing else knows them.
pub(crate) fn write<'a>(
    io: &dyn Io,
    path: &Path,
    producers: impl Iterator<Item = (i64, &'a ProducerState)>,
) -> Result<(), LogError> {
    replace_file(io, path, &encode(producers), true)
}

/// Reads a snapshot; `None` where it is missing, damaged or of another version, as it can be rebuilt from the log.
pub(crate) fn read(io: &dyn Io, path: &Path) -> Result<Option<HashMap<i64, ProducerState>>, LogError> {
    let Some(bytes) = read_whole(io, path)? else { return Ok(None) };
    let states = decode(&bytes);
    if states.is_none() {
        tracing::warn!(file = %path.display(), "producer snapshot is damaged and is rebuilt from the log");
    }
    Ok(states)
}

fn encode<'a>(producers: impl Iterator<Item = (i64, &'a ProducerState)>) -> Vec<u8> {
    let mut sorted: Vec<_> = producers.collect();
    sorted.sort_unstable_by_key(|(id, _)| *id);
    let mut body = Vec::new();
    body.extend(u32::try_from(sorted.len()).unwrap_or(u32::MAX).to_be_bytes());
    for (id, state) in &sorted {
        let last = state.batches.last();
        let delta = last.map_or(0, |last| last.last_offset.saturating_sub(last.base_offset));
        body.extend(id.to_be_bytes());
        body.extend(state.producer_epoch.to_be_bytes());
        body.extend(last.map_or(-1, |last| last.last_sequence).to_be_bytes());
        body.extend(last.map_or(-1, |last| last.last_offset).to_be_bytes());
        body.extend(i32::try_from(delta).unwrap_or(i32::MAX).to_be_bytes());
        body.extend(state.last_timestamp.to_be_bytes());
        body.extend(state.coordinator_epoch.to_be_bytes());
        body.extend(state.open_transaction.unwrap_or(-1).to_be_bytes());
    }
    body.extend(TRAILER);
    body.extend(TRAILER_VERSION.to_be_bytes());
    for (_, state) in &sorted {
        body.push(u8::try_from(state.batches.len()).unwrap_or(u8::MAX));
        for batch in &state.batches {
            body.extend(batch.first_sequence.to_be_bytes());
            body.extend(batch.last_sequence.to_be_bytes());
            body.extend(batch.base_offset.to_be_bytes());
            body.extend(batch.last_offset.to_be_bytes());
            body.extend(batch.timestamp.to_be_bytes());
        }
    }
    let mut bytes = VERSION.to_be_bytes().to_vec();
    bytes.extend(crc32c(&body).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn decode(bytes: &[u8]) -> Option<HashMap<i64, ProducerState>> {
    let mut rest = bytes;
    let version = i16::from_be_bytes(take(&mut rest)?);
    let crc = u32::from_be_bytes(take(&mut rest)?);
    if version != VERSION || crc32c(rest) != crc {
        return None;
    }
    let count = usize::try_from(u32::from_be_bytes(take(&mut rest)?)).ok()?;
    let mut order = Vec::new();
    for _ in 0..count {
        order.push(read_entry(&mut rest)?);
    }
    // A snapshot without our part is Kafka's own: one batch each is all that it knows.
    if take(&mut rest) == Some(*TRAILER) && i16::from_be_bytes(take(&mut rest)?) == TRAILER_VERSION {
        for (_, state) in &mut order {
            state.batches = read_batches(&mut rest)?;
        }
    }
    Some(order.into_iter().collect())
}

fn read_entry(rest: &mut &[u8]) -> Option<(i64, ProducerState)> {
    let id = i64::from_be_bytes(take(rest)?);
    let producer_epoch = i16::from_be_bytes(take(rest)?);
    let last_sequence = i32::from_be_bytes(take(rest)?);
    let last_offset = i64::from_be_bytes(take(rest)?);
    let delta = i32::from_be_bytes(take(rest)?);
    let last_timestamp = i64::from_be_bytes(take(rest)?);
    let coordinator_epoch = i32::from_be_bytes(take(rest)?);
    let open = i64::from_be_bytes(take(rest)?);
    let batch = ProducerBatch {
        first_sequence: first_sequence(last_sequence, delta),
        last_sequence,
        base_offset: last_offset.saturating_sub(i64::from(delta)),
        last_offset,
        timestamp: last_timestamp,
    };
    let state = ProducerState {
        producer_epoch,
        coordinator_epoch,
        last_timestamp,
        open_transaction: (open >= 0).then_some(open),
        batches: if last_offset < 0 { Vec::new() } else { vec![batch] },
    };
    Some((id, state))
}

fn read_batches(rest: &mut &[u8]) -> Option<Vec<ProducerBatch>> {
    let [count] = take(rest)?;
    let mut batches = Vec::new();
    for _ in 0..usize::from(count).min(MAX_PRODUCER_BATCHES) {
        batches.push(ProducerBatch {
            first_sequence: i32::from_be_bytes(take(rest)?),
            last_sequence: i32::from_be_bytes(take(rest)?),
            base_offset: i64::from_be_bytes(take(rest)?),
            last_offset: i64::from_be_bytes(take(rest)?),
            timestamp: i64::from_be_bytes(take(rest)?),
        });
    }
    Some(batches)
}

/// Sequences wrap from 2147483647 to 0.
fn first_sequence(last: i32, delta: i32) -> i32 {
    if last < 0 || delta < 0 {
        return last;
    }
    let first = i64::from(last) - i64::from(delta);
    let wrapped = if first < 0 { first.saturating_add(i64::from(i32::MAX)).saturating_add(1) } else { first };
    i32::try_from(wrapped).unwrap_or(last)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*field)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;

    fn state(batches: i32, open: Option<i64>) -> ProducerState {
        let batch = |index: i32| ProducerBatch {
            first_sequence: index * 10,
            last_sequence: index * 10 + 9,
            base_offset: i64::from(index) * 10,
            last_offset: i64::from(index) * 10 + 9,
            timestamp: 1000 + i64::from(index),
        };
        ProducerState {
            producer_epoch: 3,
            coordinator_epoch: 7,
            last_timestamp: 999 + i64::from(batches),
            open_transaction: open,
            batches: (0..batches).map(batch).collect(),
        }
    }

    #[test]
    fn all_five_batches_come_back_and_any_flipped_bit_is_seen() {
        let states = HashMap::from([(5, state(5, Some(10))), (9, state(0, None)), (1 << 40, state(1, None))]);
        let bytes = encode(states.iter().map(|(id, state)| (*id, state)));
        assert_eq!(decode(&bytes).unwrap(), states);
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[index] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {index}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn a_snapshot_of_kafka_gives_the_last_batch() {
        let states = HashMap::from([(5, state(1, None))]);
        let ours = encode(states.iter().map(|(id, state)| (*id, state)));
        let body = &ours[6..6 + 4 + 46];
        let mut kafka = vec![0, 1];
        kafka.extend(crc32c(body).to_be_bytes());
        kafka.extend(body);
        assert_eq!(decode(&kafka).unwrap(), states);
    }

    #[test]
    fn sequences_wrap_backwards() {
        assert_eq!(first_sequence(9, 9), 0);
        assert_eq!(first_sequence(1, 3), i32::MAX - 1);
        assert_eq!(first_sequence(-1, 0), -1);
    }
}
