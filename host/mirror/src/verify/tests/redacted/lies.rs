//! What no module can have done, planted into a redacted target, and the offset at which each must be found.

use verbatim_batch::Codec;

use super::super::super::compare::Head;
use super::super::super::records::Batch;
use super::super::model::Random;
use super::{Mine, Twins, as_a_host_does, is_control, read, remade};

/// How many kinds there are.
pub(super) const KINDS: usize = 10;

/// Those that compaction of neither side can have made, so that a mirror must stop.
pub(super) const IS_NO_COMPACTION: [bool; KINDS] =
    [false, true, false, true, false, true, false, false, false, true];

/// Plants one; `None` if these logs have no place for it.
pub(super) fn plant(kind: usize, twins: &mut Twins, random: &mut Random) -> Option<i64> {
    match kind {
        0 => in_record(twins, random, |_, last, mine| {
            // Behind every offset that the source's batch has.
            mine.record.offset_delta = last + 1;
            mine.record.offset_delta
        }),
        1 => in_record(twins, random, |_, _, mine| {
            mine.record.timestamp_delta += 1;
            mine.record.offset_delta
        }),
        2 => extra_record(twins, random),
        3 => control_batch(twins, random),
        4 => header_field(twins, random),
        5 => checksum(twins, random),
        6 => emptied_with_a_codec(twins, random),
        7 => max_timestamp(twins, random),
        8 => lost_batch(twins, random),
        _ => in_record(twins, random, |_, _, mine| {
            mine.record.attributes ^= 1;
            mine.record.offset_delta
        }),
    }
}

fn is_data(head: &Head) -> bool {
    !is_control(head)
}

fn has_records(head: &Head) -> bool {
    is_data(head) && head.batch.header.record_count > 0
}

fn pick(twins: &Twins, random: &mut Random, fits: impl Fn(&Head) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..twins.target.len()).filter(|index| fits(&twins.target[*index])).collect();
    (!fitting.is_empty()).then(|| fitting[random.below(fitting.len())])
}

/// Changes the last record of a batch; the rest is as a host would make it. The change tells the offset delta.
fn in_record(
    twins: &mut Twins,
    random: &mut Random,
    change: impl Fn(usize, i32, &mut Mine<'_>) -> i32,
) -> Option<i64> {
    let index = pick(twins, random, has_records)?;
    let last = twins.source[index].batch.header.last_offset_delta;
    let mut delta = 0;
    let batch = remade(&twins.target[index].batch, |header, records| {
        let at = records.len() - 1;
        delta = change(at, last, &mut records[at]);
        as_a_host_does(header, records);
    });
    Some(replaced(twins, index, batch) + i64::from(delta))
}

/// The last record of a batch twice.
fn extra_record(twins: &mut Twins, random: &mut Random) -> Option<i64> {
    let index = pick(twins, random, has_records)?;
    let mut delta = 0;
    let batch = remade(&twins.target[index].batch, |_, records| {
        let record = records[records.len() - 1].record;
        delta = record.offset_delta;
        records.push(Mine { record, masked: false });
    });
    Some(replaced(twins, index, batch) + i64::from(delta))
}

fn control_batch(twins: &mut Twins, random: &mut Random) -> Option<i64> {
    let index = pick(twins, random, |head| is_control(head) && head.batch.header.record_count > 0)?;
    let batch =
        remade(&twins.target[index].batch, |_, records| records[0].record.value = Some(b"\0\0\0\0\0\x07"));
    Some(replaced(twins, index, batch))
}

fn header_field(twins: &mut Twins, random: &mut Random) -> Option<i64> {
    let index = pick(twins, random, is_data)?;
    let is_emptied = twins.target[index].batch.header.record_count == 0;
    let field = random.below(if is_emptied { 7 } else { 8 });
    let batch = remade(&twins.target[index].batch, |header, _| match field {
        0 => header.leader_epoch += 1,
        1 => header.last_offset_delta += 1,
        2 => header.base_timestamp += 1,
        3 => header.producer_id += 1,
        4 => header.producer_epoch += 1,
        5 => header.base_sequence += 1,
        6 => header.attributes = header.attributes.with_delete_horizon(true),
        _ => {
            let other = Codec::ALL.into_iter().find(|codec| header.attributes.codec() != Ok(*codec));
            header.attributes = header.attributes.with_codec(other.unwrap());
        }
    });
    Some(replaced(twins, index, batch))
}

fn checksum(twins: &mut Twins, random: &mut Random) -> Option<i64> {
    let index = pick(twins, random, is_data)?;
    let mut bytes = twins.target[index].batch.bytes.to_vec();
    bytes[17] ^= 1;
    Some(replaced(twins, index, read(bytes)))
}

fn emptied_with_a_codec(twins: &mut Twins, random: &mut Random) -> Option<i64> {
    let index = pick(twins, random, is_data)?;
    let batch = remade(&twins.target[index].batch, |header, records| {
        records.clear();
        header.attributes = header.attributes.with_codec(Codec::Lz4);
    });
    Some(replaced(twins, index, batch))
}

fn max_timestamp(twins: &mut Twins, random: &mut Random) -> Option<i64> {
    let index = pick(twins, random, is_data)?;
    let batch = remade(&twins.target[index].batch, |header, _| header.max_timestamp += 1);
    Some(replaced(twins, index, batch))
}

fn lost_batch(twins: &mut Twins, random: &mut Random) -> Option<i64> {
    let index = pick(twins, random, |_| true)?;
    Some(twins.target.remove(index).batch.header.base_offset)
}

/// Puts a batch in a target's place, and tells its base offset.
fn replaced(twins: &mut Twins, index: usize, batch: Batch) -> i64 {
    twins.target[index].batch = batch;
    twins.target[index].batch.header.base_offset
}

#[test]
fn every_kind_is_planted_often_enough() {
    let mut seen = [0; KINDS];
    for seed in 0..300 {
        for (kind, count) in seen.iter_mut().enumerate() {
            let mut random = Random(seed);
            let mut twins = Twins::random(&mut random);
            *count += u32::from(plant(kind, &mut twins, &mut random).is_some());
        }
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}
