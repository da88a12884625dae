//! The exact-produce tag with numbers that contradict each other, or the log.

use verbatim_engine::Memory;
use verbatim_engine::contract::EpochEntry;

use super::Make;
use super::ask::{Ask, built, fitting};
use super::header::{EDGES_32, EDGES_64};

pub(super) const KINDS: &[(&str, Make)] = &[
    ("a tag where there must be none, and none where there must be one", presence),
    ("the tag's offsets at the edges", offsets),
    ("the tag's leader epochs at the edges", epochs),
    ("a tag that cuts the log and moves its end", moves),
    ("the tag's epoch entries", entries),
    ("65,535 epoch entries", many_entries),
];

fn presence(log: &Memory) -> Result<Vec<Ask>, String> {
    let mut asks = Vec::new();
    for (has_tag, matches) in [(true, true), (true, false), (false, true), (false, false)] {
        asks.extend(with_and_without_batch(
            log,
            &format!("tag {has_tag}, topic matches {matches}"),
            |ask| {
                (ask.request.has_tag, ask.request.source_topic_matches) = (has_tag, matches);
            },
        )?);
    }
    Ok(asks)
}

/// Sets a number of the tag.
type Set = fn(&mut Ask, i64);

/// Each of the offsets of a tag.
const OFFSETS: &[(&str, Set)] = &[
    ("expectedEnd", |ask, value| ask.request.expected_end = value),
    ("sourceStart", |ask, value| ask.request.source_start = value),
    ("sourceEnd", |ask, value| ask.request.source_end = value),
    ("endTo", |ask, value| ask.request.end_to = Some(value)),
    ("truncateTo", |ask, value| ask.request.truncate_to = Some(value)),
];

fn offsets(log: &Memory) -> Result<Vec<Ask>, String> {
    let mut asks = Vec::new();
    for &(name, set) in OFFSETS {
        for value in interesting(log) {
            asks.extend(with_and_without_batch(log, &format!("{name}=`{value}`"), |ask| set(ask, value))?);
        }
    }
    Ok(asks)
}

fn epochs(log: &Memory) -> Result<Vec<Ask>, String> {
    let mut asks = Vec::new();
    for value in EDGES_32.into_iter().chain(2..8) {
        asks.extend(with_and_without_batch(log, &format!("epochBefore=`{value}`"), |ask| {
            ask.request.epoch_before = value;
        })?);
        asks.extend(with_and_without_batch(log, &format!("sourceEpoch=`{value}`"), |ask| {
            ask.request.source_epoch = value;
        })?);
    }
    Ok(asks)
}

fn moves(log: &Memory) -> Result<Vec<Ask>, String> {
    let mut asks = Vec::new();
    for cut in interesting(log) {
        for end in interesting(log) {
            asks.extend(with_and_without_batch(log, &format!("truncateTo=`{cut}`, endTo=`{end}`"), |ask| {
                (ask.request.truncate_to, ask.request.end_to) = (Some(cut), Some(end));
                ask.request.epoch_before = ask.log.epochs.before(cut);
            })?);
        }
    }
    Ok(asks)
}

fn entries(log: &Memory) -> Result<Vec<Ask>, String> {
    let mut asks = Vec::new();
    let mut lists: Vec<Vec<(i32, i64)>> = vec![
        vec![(9, log.end)],
        vec![(9, log.end), (9, log.end)],
        vec![(9, log.end), (8, log.end.saturating_add(1))],
        vec![(9, log.end.saturating_add(1)), (10, log.end)],
        log.epochs.entries().iter().map(|entry| (entry.epoch, entry.start)).collect(),
    ];
    lists.extend(EDGES_32.map(|epoch| vec![(epoch, log.end)]));
    lists.extend(interesting(log).into_iter().map(|start| vec![(9, start)]));
    for list in lists {
        asks.extend(with_and_without_batch(log, &format!("{list:?}"), |ask| {
            ask.entries = entry_list(&list)
        })?);
    }
    Ok(asks)
}

fn many_entries(log: &Memory) -> Result<Vec<Ask>, String> {
    let most = i32::from(u16::MAX);
    let rising: Vec<_> = (0..most).map(|epoch| (epoch, i64::from(epoch))).collect();
    let falling: Vec<_> = rising.iter().copied().rev().collect();
    let same = rising.iter().map(|_| (9, log.end)).collect();
    let above: Vec<_> = rising.iter().map(|&(epoch, start)| (epoch.saturating_add(6), start)).collect();
    let mut asks = Vec::new();
    for (what, list) in [("rising", rising), ("falling", falling), ("the same", same), ("later", above)] {
        asks.extend(with_and_without_batch(log, what, |ask| {
            ask.entries = entry_list(&list);
            ask.request.end_to = Some(1 << 20);
            ask.request.source_epoch = i32::MAX.saturating_sub(1);
        })?);
    }
    Ok(asks)
}

fn entry_list(pairs: &[(i32, i64)]) -> Vec<EpochEntry> {
    pairs.iter().map(|&(epoch, start)| EpochEntry { epoch, start }).collect()
}

/// Edges of the number, and of the log.
fn interesting(log: &Memory) -> Vec<i64> {
    let near = (-2_i64..=2).map(|by| log.end.saturating_add(by));
    EDGES_64.into_iter().chain([0, log.start, 5]).chain(near).collect()
}

/// The same request with one batch, and with the tag alone; with a tag also where there must be none.
fn with_and_without_batch(log: &Memory, what: &str, edit: impl Fn(&mut Ask)) -> Result<[Ask; 2], String> {
    let one = |records| Ask::new(log, what, records).edited(|ask| ask.request.has_tag = true).edited(&edit);
    Ok([one(built(&fitting(log))?), one(Vec::new())])
}
