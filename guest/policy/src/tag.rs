//! The exact-produce tag: who may send it (R26), and whether it agrees with itself, with the request's
//! batches and with the log (R26a). Its bytes are decoded by the host.

use alloc::vec::Vec;

use verbatim_contract::{Callbacks, EpochEntry, Reason, Refusal};

use crate::case::Case;
use crate::ground::Ground;
use crate::{history, refuse, stored};

/// R26: an exact topic is written with a tag and acks = all (44), from the topic that it is the copy of
/// (103).
pub(crate) fn admits(case: &Case<'_>) -> Result<(), Refusal> {
    let request = case.request;
    if !request.has_tag {
        return Err(refuse::request(
            Reason::TagMissing,
            None,
            format_args!(
                "a topic with produce.at.offset takes requests with the exact-produce tag only, tag=`none`"
            ),
        ));
    }
    if request.acks != -1 {
        let acks = request.acks;
        return Err(refuse::request(
            Reason::AcksNotAll,
            -1,
            format_args!("a topic with produce.at.offset is written with acks=-1 only, acks=`{acks}`"),
        ));
    }
    if !request.source_topic_matches {
        return Err(refuse::request(
            Reason::SourceTopicChanged,
            None,
            format_args!(
                "the tag's source topic id must be the one that the topic was created for, source topic id=`another`"
            ),
        ));
    }
    Ok(())
}

/// R26a by the tag alone: numbers in their ranges, entries in order (42). Epochs are R27's.
pub(crate) fn agrees_with_itself(case: &Case<'_>) -> Result<(), Refusal> {
    let request = case.request;
    at_least("expected end", request.expected_end, 0)?;
    at_least("epoch before", i64::from(request.epoch_before), -1)?;
    at_least("source start", request.source_start, 0)?;
    at_least("source end", request.source_end, request.source_start)?;
    if let Some(target) = request.truncate_to {
        at_least("truncate to", target, 0)?;
        at_most("truncate to", target, request.expected_end)?;
    }
    if let Some(end_to) = request.end_to {
        at_least("end to", end_to, case.declared_end())?;
    }
    entries_rise(case.entries)
}

/// R26a with the batches, whose headers are sound and which follow each other: the end is not before theirs,
/// and entries begin where no batch or older epoch is in the way (42). Entries that may be clamped ones wait until the log
/// is asked.
pub(crate) fn agrees_with_batches(case: &Case<'_>) -> Result<(), Refusal> {
    if let Some(end_to) = case.request.end_to {
        at_least("end to", end_to, case.batches_end().unwrap_or(case.declared_end()))?;
    }
    in_nothings_way(case, case.entries.iter().filter(|entry| !history::is_clamped(entry, case)))
}

/// R26a for some of the request's entries, in their order: none begins inside a batch, behind an epoch that is not older,
/// or above the end.
fn in_nothings_way<'a>(
    case: &Case<'_>,
    entries: impl Iterator<Item = &'a EpochEntry>,
) -> Result<(), Refusal> {
    let request = case.request;
    let declared_end = case.declared_end();
    let end = request.end_to.or(case.batches_end()).unwrap_or(declared_end);
    // An empty log may restart below its end (R25).
    let first = case.batches.first().map_or(declared_end, |batch| batch.header.base_offset);
    let from = first.min(declared_end);
    let mut before = request.epoch_before;
    let mut batches = case.batches.iter().map(|batch| &batch.header).peekable();
    for entry in entries.filter(|entry| entry.start >= from) {
        while let Some(batch) = batches.next_if(|batch| batch.base_offset < entry.start) {
            before = before.max(batch.leader_epoch);
            let next = batch.next_offset().unwrap_or(i64::MAX);
            if next > entry.start {
                return Err(bad_entry(
                    entry,
                    next,
                    format_args!("begins inside a batch, which ends at {next}"),
                ));
            }
        }
        if entry.epoch <= before {
            return Err(bad_entry(entry, None, format_args!("begins after epoch {before}")));
        }
        if entry.start > end {
            return Err(bad_entry(
                entry,
                end,
                format_args!("begins behind the end {end} that the request asks for"),
            ));
        }
        before = entry.epoch;
    }
    Ok(())
}

/// R26a with the log that the request builds on: an entry below its end is one of the history's, one at its
/// end or above is newer than all of them (42). Below the start nothing is looked at. The first `run` batches are
/// stored.
pub(crate) fn agrees_with_log(
    case: &Case<'_>,
    run: usize,
    ground: &Ground,
    log: &mut dyn Callbacks,
) -> Result<(), Refusal> {
    let floor = stored::restart(case, ground).unwrap_or(ground.end);
    let mut not_clamped = Vec::new();
    for entry in case.entries {
        if entry.start < case.position.start.min(floor) || history::is_known(entry, case, run, ground, log) {
            continue;
        }
        if entry.start < floor {
            return Err(bad_entry(
                entry,
                floor,
                format_args!("begins below the end {floor}, where there was none"),
            ));
        }
        if let Some(last) = ground.last_entry.filter(|last| entry.epoch <= last.epoch) {
            return Err(bad_entry(
                entry,
                None,
                format_args!("begins after the log's epoch {} from {}", last.epoch, last.start),
            ));
        }
        if history::is_clamped(entry, case) {
            not_clamped.push(*entry);
        }
    }
    in_nothings_way(case, not_clamped.iter())
}

/// The log's history has all entries, or what replaced them since the request's batches were stored. Below the start
/// nothing is looked at.
pub(crate) fn entries_are_held(case: &Case<'_>, log: &mut dyn Callbacks) -> bool {
    let ground = Ground::of(case.position);
    let run = case.batches.len();
    case.entries.iter().all(|entry| {
        entry.start < case.position.start
            || history::is_known(entry, case, run, &ground, log)
            || (run > 0 && history::is_overtaken(entry, &ground, log))
    })
}

fn entries_rise(entries: &[EpochEntry]) -> Result<(), Refusal> {
    if let Some(first) = entries.first() {
        at_least("an entry's start", first.start, 0)?;
    }
    match entries.iter().zip(entries.iter().skip(1)).find(|(a, b)| b.epoch <= a.epoch || b.start <= a.start) {
        None => Ok(()),
        Some((before, entry)) => Err(bad_entry(
            entry,
            None,
            format_args!("must be above the one before it, epoch {} from {}", before.epoch, before.start),
        )),
    }
}

fn bad_entry(entry: &EpochEntry, expected: impl Into<Option<i64>>, why: core::fmt::Arguments<'_>) -> Refusal {
    refuse::request(
        Reason::TagInvalid,
        expected,
        format_args!("a declared leader epoch {why}, epoch={}, start=`{}`", entry.epoch, entry.start),
    )
}

fn at_least(field: &str, value: i64, least: i64) -> Result<(), Refusal> {
    if value < least {
        return Err(refuse::request(
            Reason::TagInvalid,
            least,
            format_args!("{field} must be at least {least}, {field}=`{value}`"),
        ));
    }
    Ok(())
}

fn at_most(field: &str, value: i64, most: i64) -> Result<(), Refusal> {
    if value > most {
        return Err(refuse::request(
            Reason::TagInvalid,
            most,
            format_args!("{field} must be at most {most}, {field}=`{value}`"),
        ));
    }
    Ok(())
}
