//! Requests as a whole: what is in them besides one batch, and topics and logs at the edges of their numbers.

use verbatim_batch::place;
use verbatim_engine::contract::{EpochHistory, Replica};
use verbatim_engine::{MAX_BATCHES, Memory};

use super::Make;
use super::ask::{Ask, built, fitting};
use super::header::EDGES_64;
use crate::format::BatchSpec;

pub(super) const KINDS: &[(&str, Make)] = &[
    ("no batch at all", nothing),
    ("bytes that are no batch", garbage),
    ("many batches", many),
    ("4,097 batches", too_many),
    ("batches that are stored already", stored),
    ("acks, versions and clocks", requests),
    ("settings at the edges", settings),
    ("replicas", replicas),
    ("logs at the edges", logs),
];

fn nothing(log: &Memory) -> Result<Vec<Ask>, String> {
    Ok(vec![Ask::new(log, "no bytes", Vec::new())])
}

fn garbage(log: &Memory) -> Result<Vec<Ask>, String> {
    let good = built(&fitting(log))?;
    let mut asks = Vec::new();
    for byte in [0, 0xff] {
        for len in [1, 11, 12, 13, 25, 26, 30, 60, 61, 100] {
            let tail = vec![byte; len];
            asks.push(Ask::new(
                log,
                format!("{len} bytes of {byte}, behind a batch"),
                [good.clone(), tail.clone()].concat(),
            ));
            asks.push(Ask::new(log, format!("{len} bytes of {byte}"), tail));
        }
    }
    let cut = (1..good.len()).map(|len| {
        Ask::new(log, format!("the first {len} bytes of a batch"), good.iter().copied().take(len).collect())
    });
    Ok(asks.into_iter().chain(cut).collect())
}

fn many(log: &Memory) -> Result<Vec<Ask>, String> {
    let of = |times| built(&BatchSpec { repeat: Some(times), ..fitting(log) });
    let mut asks = Vec::new();
    for times in [2, 16, 500] {
        asks.push(Ask::new(log, format!("{times} that follow each other"), of(times)?));
    }
    let good = built(&fitting(log))?;
    let mut falling = good.clone();
    place(&mut falling, log.end.saturating_add(5), 9).map_err(|error| error.to_string())?;
    asks.push(Ask::new(log, "the same batch twice", good.repeat(2)));
    asks.push(Ask::new(log, "a later one first", [falling, good].concat()));
    Ok(asks)
}

fn too_many(log: &Memory) -> Result<Vec<Ask>, String> {
    let most = u32::try_from(MAX_BATCHES).unwrap_or(u32::MAX);
    let mut asks = Vec::new();
    for times in [most, most.saturating_add(1), most.saturating_mul(2)] {
        let follow = built(&BatchSpec { repeat: Some(times), ..fitting(log) })?;
        asks.push(Ask::new(log, format!("{times} that follow each other"), follow));
    }
    let short = built(&BatchSpec { short: Some(26), ..fitting(log) })?;
    asks.push(Ask::new(log, "as many, shorter than headers", short.repeat(MAX_BATCHES.saturating_add(1))));
    Ok(asks)
}

fn stored(log: &Memory) -> Result<Vec<Ask>, String> {
    let good = built(&fitting(log))?;
    let all = log.stored.bytes();
    let mut asks = vec![
        Ask::new(log, "all of them", all.clone()),
        Ask::new(log, "all of them, and one more", [all.clone(), good].concat()),
        Ask::new(log, "all of them, from an earlier end", all).edited(|ask| {
            (ask.request.expected_end, ask.request.epoch_before) = (0, -1);
        }),
    ];
    for (header, bytes) in log.stored.batches() {
        let base = header.base_offset;
        asks.push(Ask::new(log, format!("the one at {base}"), bytes.to_vec()));
        let spec = BatchSpec { base: Some(base), epoch: Some(header.leader_epoch), ..BatchSpec::default() };
        asks.push(Ask::new(log, format!("another one at {base}"), built(&spec)?));
    }
    Ok(asks)
}

fn requests(log: &Memory) -> Result<Vec<Ask>, String> {
    let good = built(&fitting(log))?;
    let ask = |what: String| Ask::new(log, what, good.clone());
    let mut asks = Vec::new();
    for acks in [i16::MIN, -2, 0, 1, 2, i16::MAX] {
        asks.push(ask(format!("acks=`{acks}`")).edited(|ask| ask.request.acks = acks));
    }
    for version in [i16::MIN, -1, 0, 3, 7, 9, i16::MAX] {
        asks.push(ask(format!("version=`{version}`")).edited(|ask| ask.request.api_version = version));
    }
    for now in EDGES_64 {
        asks.push(ask(format!("the clock at `{now}`")).edited(|ask| ask.request.now_ms = now));
    }
    asks.push(ask("a transactional id".to_owned()).edited(|ask| ask.request.transactional = true));
    Ok(asks)
}

/// Something about a topic or its log, in words and done.
type Edit = (&'static str, fn(&mut Memory));

/// Each of a topic's settings at an edge.
const SETTINGS: &[Edit] = &[
    ("max.message.bytes=`0`", |log| log.policy.max_message_bytes = 0),
    ("max.message.bytes=`4294967295`", |log| log.policy.max_message_bytes = u32::MAX),
    ("segment.bytes=`0`", |log| log.policy.segment_bytes = 0),
    ("segment.bytes=`4294967295`", |log| log.policy.segment_bytes = u32::MAX),
    ("before.max.ms=`0`", |log| log.policy.before_max_ms = 0),
    ("before.max.ms below 0", |log| log.policy.before_max_ms = i64::MIN),
    ("after.max.ms=`0`", |log| log.policy.after_max_ms = 0),
    ("after.max.ms below 0", |log| log.policy.after_max_ms = i64::MIN),
    ("after.max.ms without limit", |log| log.policy.after_max_ms = i64::MAX),
    ("min.insync.replicas=`0`", |log| log.policy.min_insync = 0),
    ("min.insync.replicas=`4294967295`", |log| log.policy.min_insync = u32::MAX),
    ("LogAppendTime", |log| log.policy.log_append_time = true),
    ("compaction", |log| log.policy.compacted = true),
    ("records validated", |log| log.policy.validate_records = true),
    ("rewinds refused", |log| log.policy.rewind_truncate = false),
    ("generation and id at the edge", |log| {
        (log.policy.config_generation, log.policy.topic_id) = (u64::MAX, (u64::MAX, u64::MAX));
    }),
];

fn settings(log: &Memory) -> Result<Vec<Ask>, String> {
    on_logs(log, SETTINGS)
}

fn replicas(log: &Memory) -> Result<Vec<Ask>, String> {
    let replica = |id| Replica { id, in_sync: true, online: true };
    let mut asks = Vec::new();
    for (what, list) in [
        ("none", Vec::new()),
        ("all offline", (1..=3).map(|id| Replica { online: false, ..replica(id) }).collect()),
        ("none in sync", (1..=3).map(|id| Replica { in_sync: false, ..replica(id) }).collect()),
        ("1,000 of them", (0..1000).map(replica).collect()),
        ("the same again and again", vec![replica(i32::MIN); 5]),
    ] {
        let mut log = log.clone();
        log.replicas = list;
        asks.push(Ask::new(&log, what, built(&fitting(&log))?));
    }
    Ok(asks)
}

/// A log's own numbers at an edge.
const LOGS: &[Edit] = &[
    ("it ends at the last offset", |log| (log.end, log.high_watermark) = (i64::MAX, i64::MAX)),
    ("one offset is left", |log| {
        (log.end, log.high_watermark) = (i64::MAX.saturating_sub(1), i64::MAX.saturating_sub(1));
    }),
    ("nothing is above the high watermark's beginning", |log| log.high_watermark = log.start),
    ("the shown epoch is the last there is", |log| log.shown_epoch = i32::MAX.saturating_sub(1)),
    // A normal one always has some.
    ("an exact one has no epochs", |log| {
        if log.policy.exact {
            (log.epochs, log.shown_epoch) = (EpochHistory::default(), -1);
        }
    }),
];

fn logs(log: &Memory) -> Result<Vec<Ask>, String> {
    on_logs(log, LOGS)
}

fn on_logs(log: &Memory, edits: &[Edit]) -> Result<Vec<Ask>, String> {
    let one = |&(what, edit): &Edit| {
        let mut log = log.clone();
        edit(&mut log);
        let records = built(&fitting(&log))?;
        Ok(Ask::new(&log, what, records))
    };
    edits.iter().map(one).collect()
}
