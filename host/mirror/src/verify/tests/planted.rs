//! Single differences, planted into a compacted log, and the offset at which each must be found.

use std::collections::BTreeMap;

use super::model::{Entry, Kept, Log, Random};

/// How many kinds there are.
pub(super) const KINDS: usize = 7;

/// Plants one; gives the spoiled log and where it differs. `None` if this log has no place for it.
pub(super) fn plant(kind: usize, full: &Log, compacted: &Log, random: &mut Random) -> Option<(Log, i64)> {
    let mut log = compacted.clone();
    let last = last_of_keys(full);
    let is_last = |entry: &Entry, record: &Kept| {
        record.value.is_some() && last.get(&record.key) == Some(&entry.offset(record))
    };
    let data = |entry: &Entry| entry.marker.is_none() && !entry.aborted && !entry.unstable;
    let at = match kind {
        // A payload byte, under a right checksum.
        0 => {
            let index = pick(&log, random, |entry| entry.marker.is_none() && !entry.records.is_empty())?;
            let entry = &mut log.entries[index];
            let at = random.below(entry.records.len());
            let offset = entry.offset(&entry.records[at]);
            let record = &mut entry.records[at];
            record.value = Some(record.value.map_or(1, |value| value ^ 1));
            offset
        }
        // A shifted offset.
        1 => {
            let index = pick(&log, random, |entry| {
                data(entry)
                    && entry.records.first().is_some_and(|record| record.delta == 0 && is_last(entry, record))
            })?;
            let room =
                log.entries.get(index + 1).is_none_or(|next| next.base > log.entries[index].last() + 1);
            if !room || log.entries[index].last() + 1 >= log.end() {
                return None;
            }
            log.entries[index].base += 1;
            log.entries[index].base - 1
        }
        // A leader epoch.
        2 => {
            let index = pick(&log, random, |_| true)?;
            log.entries[index].epoch += 1;
            log.entries[index].base
        }
        // A batch that is not there.
        3 => {
            let index = pick(&log, random, |entry| {
                data(entry) && entry.records.iter().any(|one| is_last(entry, one))
            })?;
            let entry = log.entries.remove(index);
            let first = entry.records.iter().find(|record| is_last(&entry, record))?;
            entry.offset(first)
        }
        // A marker that is not there, while batches of its transaction are.
        4 => {
            let index = pick(&log, random, |entry| entry.marker.is_some() && !entry.records.is_empty())?;
            let id = |entry: &Entry| entry.producer.map(|(id, _)| id);
            let before =
                log.entries[..index].iter().rev().find(|entry| id(entry) == id(&log.entries[index]))?;
            if before.marker.is_some() || full_has_marker_between(full, before, &log.entries[index]) {
                return None;
            }
            log.entries.remove(index).base
        }
        // A batch too many, in a hole.
        5 => {
            let base = hole(full, random)?;
            let index = log.entries.iter().position(|entry| entry.base > base)?;
            if index > 0 && log.entries[index - 1].last() >= base {
                return None;
            }
            let mut extra = full.entries.iter().find(|entry| data(entry))?.clone();
            extra.base = base;
            extra.last_delta = 0;
            extra.records.truncate(1);
            extra.records[0].delta = 0;
            // A key of its own: no later record supersedes it.
            extra.records[0].key = Some(77);
            extra.records[0].value = Some(1);
            extra.transactional = false;
            extra.producer = None;
            log.entries.insert(index, extra);
            base
        }
        // The last record of its key.
        _ => {
            let index = pick(&log, random, |entry| {
                data(entry) && entry.records.iter().any(|one| is_last(entry, one))
            })?;
            let entry = &mut log.entries[index];
            let at = entry.records.iter().position(|record| is_last(entry, record))?;
            let offset = entry.offset(&entry.records[at]);
            entry.records.remove(at);
            offset
        }
    };
    Some((log, at))
}

fn pick(log: &Log, random: &mut Random, fits: impl Fn(&Entry) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..log.entries.len()).filter(|index| fits(&log.entries[*index])).collect();
    (!fitting.is_empty()).then(|| fitting[random.below(fitting.len())])
}

/// The last offset of each key that counts.
fn last_of_keys(log: &Log) -> BTreeMap<Option<u32>, i64> {
    let counts = |entry: &&Entry| !entry.aborted && !entry.unstable && entry.marker.is_none();
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
