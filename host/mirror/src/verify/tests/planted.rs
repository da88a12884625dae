//! Single differences, planted into a compacted log, and the offset at which each must be found.

use std::collections::BTreeMap;

use super::model::{Entry, Kept, Log, Random};

type Last = BTreeMap<Option<u32>, i64>;

/// How many kinds there are.
pub(super) const KINDS: usize = 7;

/// Plants one; gives the spoiled log and where it differs. `None` if this log has no place for it.
pub(super) fn plant(kind: usize, full: &Log, compacted: &Log, random: &mut Random) -> Option<(Log, i64)> {
    let mut log = compacted.clone();
    let at = match kind {
        0 => flip(&mut log, random),
        1 => shift(full, &mut log, random),
        2 => pick(&log, random, |_| true).map(|index| {
            log.entries[index].epoch += 1;
            log.entries[index].base
        }),
        3 => lose_batch(full, &mut log, random),
        4 => lose_marker(full, &mut log, random),
        5 => add_batch(full, &mut log, random),
        _ => lose_record(full, &mut log, random),
    };
    at.map(|at| (log, at))
}

/// A payload byte, under a right checksum.
fn flip(log: &mut Log, random: &mut Random) -> Option<i64> {
    let index = pick(log, random, |entry| entry.marker.is_none() && !entry.records.is_empty())?;
    let entry = &mut log.entries[index];
    let at = random.below(entry.records.len());
    let record = &mut entry.records[at];
    record.value = Some(record.value.map_or(1, |value| value ^ 1));
    Some(entry.offset(&entry.records[at]))
}

/// An offset, where there is room behind the batch.
fn shift(full: &Log, log: &mut Log, random: &mut Random) -> Option<i64> {
    let last = last_of_keys(full);
    let index = pick(log, random, |entry| {
        let first = entry.records.first();
        is_data(entry) && first.is_some_and(|record| record.delta == 0 && is_last(&last, entry, record))
    })?;
    let end = log.entries[index].last() + 1;
    let has_room = log.entries.get(index + 1).is_none_or(|next| next.base > end) && end < log.end();
    if !has_room {
        return None;
    }
    log.entries[index].base += 1;
    Some(log.entries[index].base - 1)
}

/// A batch that is not there.
fn lose_batch(full: &Log, log: &mut Log, random: &mut Random) -> Option<i64> {
    let last = last_of_keys(full);
    let index = pick_last(&last, log, random)?;
    let entry = log.entries.remove(index);
    let first = entry.records.iter().find(|record| is_last(&last, &entry, record))?;
    Some(entry.offset(first))
}

/// The last record of its key.
fn lose_record(full: &Log, log: &mut Log, random: &mut Random) -> Option<i64> {
    let last = last_of_keys(full);
    let index = pick_last(&last, log, random)?;
    let entry = &mut log.entries[index];
    let at = entry.records.iter().position(|record| is_last(&last, entry, record))?;
    let offset = entry.offset(&entry.records[at]);
    entry.records.remove(at);
    // As the cleaner would, so that this one record is all that differs.
    let left = entry.records.iter().map(|record| record.timestamp).max();
    if let Some(largest) = left.filter(|_| !entry.stamped) {
        entry.max_timestamp = largest;
    }
    Some(offset)
}

/// A marker that is not there, while batches of its transaction are.
fn lose_marker(full: &Log, log: &mut Log, random: &mut Random) -> Option<i64> {
    let index = pick(log, random, |entry| entry.marker.is_some() && !entry.records.is_empty())?;
    let id = |entry: &Entry| entry.producer.map(|(id, _)| id);
    let before = log.entries[..index].iter().rev().find(|entry| id(entry) == id(&log.entries[index]))?;
    if before.marker.is_some() || full_has_marker_between(full, before, &log.entries[index]) {
        return None;
    }
    Some(log.entries.remove(index).base)
}

/// A batch too many, in a hole, with a key of its own that no later record supersedes.
fn add_batch(full: &Log, log: &mut Log, random: &mut Random) -> Option<i64> {
    let base = hole(full, random)?;
    let index = log.entries.iter().position(|entry| entry.base > base)?;
    if index > 0 && log.entries[index - 1].last() >= base {
        return None;
    }
    let mut extra = full.entries.iter().find(|entry| is_data(entry))?.clone();
    (extra.base, extra.last_delta) = (base, 0);
    extra.records.truncate(1);
    let record = &mut extra.records[0];
    (record.delta, record.key, record.value) = (0, Some(77), Some(1));
    (extra.transactional, extra.producer) = (false, None);
    log.entries.insert(index, extra);
    Some(base)
}

fn is_data(entry: &Entry) -> bool {
    entry.marker.is_none() && !entry.aborted && !entry.unstable
}

fn is_last(last: &Last, entry: &Entry, record: &Kept) -> bool {
    record.value.is_some() && last.get(&record.key) == Some(&entry.offset(record))
}

/// A batch with the last record of a key.
fn pick_last(last: &Last, log: &Log, random: &mut Random) -> Option<usize> {
    pick(log, random, |entry| is_data(entry) && entry.records.iter().any(|one| is_last(last, entry, one)))
}

fn pick(log: &Log, random: &mut Random, fits: impl Fn(&Entry) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..log.entries.len()).filter(|index| fits(&log.entries[*index])).collect();
    (!fitting.is_empty()).then(|| fitting[random.below(fitting.len())])
}

/// The last offset of each key that counts.
fn last_of_keys(log: &Log) -> Last {
    let counts = |entry: &&Entry| is_data(entry);
    let pairs = |entry: &Entry| {
        let pairs = entry.records.iter().map(|record| (record.key, entry.offset(record)));
        pairs.collect::<Vec<_>>()
    };
    log.entries.iter().filter(counts).flat_map(pairs).collect()
}

fn full_has_marker_between(full: &Log, before: &Entry, marker: &Entry) -> bool {
    let id = |entry: &Entry| entry.producer.map(|(id, _)| id);
    full.entries.iter().any(|entry| {
        entry.marker.is_some()
            && id(entry) == id(marker)
            && entry.base > before.base
            && entry.base < marker.base
    })
}

/// An offset that lies between two batches.
fn hole(full: &Log, random: &mut Random) -> Option<i64> {
    let holes: Vec<i64> = full
        .entries
        .windows(2)
        .filter(|pair| pair[1].base > pair[0].last() + 1)
        .map(|pair| pair[0].last() + 1)
        .collect();
    (!holes.is_empty()).then(|| holes[random.below(holes.len())])
}
