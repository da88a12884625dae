//! The machine ends at any operation: what was acknowledged is there with its digest, and nothing is there without.

use std::path::Path;
use std::sync::Arc;

use verbatim_contract::Comparison;
use verbatim_log::{Commit, Config, Log};

use super::{FOLDER, append_for, small, threes};
use crate::batches::{digest, header, next, placed_for};
use crate::cases::{create, try_open};
use crate::disk::{Disk, Fault, Loss};
use crate::model::read_all;

/// One step of a life: batches that are stored for one original each, flushed; a cut first.
struct Step {
    cut: Option<i64>,
    batches: Vec<Vec<u8>>,
    original: u64,
    start: Option<i64>,
}

fn life() -> Vec<Step> {
    let step =
        |cut, from, count, original, start| Step { cut, batches: threes(from, count), original, start };
    vec![
        step(None, 0, 3, 1, None),
        step(None, 9, 4, 1, Some(4)),
        // The same bytes for other originals.
        step(Some(9), 9, 3, 2, None),
        step(None, 18, 2, 2, Some(10)),
        step(Some(12), 12, 1, 3, None),
        step(None, 15, 1, 3, Some(18)),
        step(None, 18, 2, 3, None),
    ]
}

/// Batches with the original of each, as a step leaves them.
type Stored = Vec<(Vec<u8>, u64)>;

/// The states that a step goes through.
fn states(before: &Stored, step: &Step) -> Vec<Stored> {
    let mut now = before.clone();
    now.retain(|(batch, _)| step.cut.is_none_or(|to| next(batch) <= to));
    let mut states = vec![before.clone(), now.clone()];
    for batch in &step.batches {
        now.push((batch.clone(), step.original));
        states.push(now.clone());
    }
    states
}

/// Whether these are the batches of the log, each with its digest.
fn holds(log: &Log, stored: &Stored) -> bool {
    let start = log.position().start;
    let live = || stored.iter().filter(|(batch, _)| next(batch) > start);
    let bytes: Vec<u8> = live().flat_map(|(batch, _)| batch.clone()).collect();
    let end = live().map(|(batch, _)| next(batch)).max().unwrap_or(start);
    let compare = |batch: &[u8], original| {
        log.compare_received(batch, &digest(batch, original), header(batch).base_offset).unwrap()
    };
    end == log.position().end
        && bytes == read_all(log)
        && live().all(|(batch, original)| compare(batch, *original) == Comparison::Same)
        && live().all(|(batch, original)| {
            compare(batch, original + 1) == Comparison::Differs(header(batch).base_offset)
        })
}

/// Lives until the machine ends; what was acknowledged, and what may be there beside it.
fn live(disk: &Disk, config: &Config) -> (Vec<Stored>, bool) {
    let lives = disk.lives();
    let mut log = create(disk, config);
    let mut acked = Stored::new();
    for step in life() {
        let possible = states(&acked, &step);
        let batches: Vec<_> = step.batches.iter().map(|batch| placed_for(batch, step.original)).collect();
        let commit = Commit { cut: step.cut, batches: &batches, ..Commit::default() };
        let start = Commit { start: step.start, ..Commit::default() };
        let done = log.apply(&commit).is_ok() && log.flush().is_ok();
        acked = if done { possible[possible.len() - 1].clone() } else { acked };
        if !done || log.apply(&start).is_err() || disk.lives() != lives {
            return (if done { vec![acked] } else { possible }, false);
        }
    }
    (vec![acked], true)
}

#[test]
fn whatever_the_machine_ends_at() {
    let made = {
        let disk = Disk::default();
        drop(create(&disk, &small()));
        disk.operations()
    };
    for loss in [Loss::Everything, Loss::Random] {
        for operation in 0.. {
            let mut lived = false;
            // What is left of the rest is random.
            for seed in 0..if loss == Loss::Random { 24 } else { 1 } {
                let disk = Disk::new(seed * 7919 + operation);
                disk.set_power_loss(made + operation, loss);
                let (possible, whole) = live(&disk, &small());
                lived = whole;
                if whole {
                    disk.power_loss(loss);
                }
                let hint = format!("{loss:?} at {operation}, seed {seed}");
                // The first start may be one that does not come to its end, either.
                disk.set_power_loss(operation % 9, loss);
                drop(Log::open(Path::new(FOLDER), small(), Arc::new(disk.clone())));
                disk.clear_faults();
                let (mut log, _) =
                    try_open(&disk, &small()).unwrap_or_else(|error| panic!("{error}, {hint}"));
                assert!(possible.iter().any(|stored| holds(&log, stored)), "{:?}, {hint}", log.position());
                let end = log.position().end;
                append_for(&mut log, &threes(end, 2), 9);
                log.flush().unwrap();
                let more = threes(end, 2).into_iter().map(|batch| (batch, 9));
                let continued =
                    possible.iter().map(|stored| stored.iter().cloned().chain(more.clone()).collect());
                let continued: Vec<Stored> = continued.collect();
                disk.power_loss(loss);
                let (log, _) = try_open(&disk, &small()).unwrap_or_else(|error| panic!("{error}, {hint}"));
                assert!(continued.iter().any(|stored| holds(&log, stored)), "{:?}, {hint}", log.position());
            }
            if lived {
                assert!(operation > 60, "{operation} operations");
                break;
            }
        }
    }
}

/// The machine ends while a request that failed is being undone: of what it made, any part may come back.
#[test]
fn while_a_request_is_undone() {
    let tiny = Config { segment_bytes: 1, ..small() };
    let batches = threes(0, 4);
    let placed: Vec<_> = batches.iter().map(|batch| placed_for(batch, 1)).collect();
    let mut refused = 0;
    for failing in 0..45 {
        for (later, seed) in (1..16).flat_map(|later| (0..6).map(move |seed| (later, seed))) {
            let disk = Disk::new(seed * 7919 + later);
            let mut log = create(&disk, &tiny);
            log.apply(&Commit { batches: &placed[..1], ..Commit::default() }).unwrap();
            log.flush().unwrap();
            disk.set_fault(failing, Fault::Fail);
            disk.set_power_loss(failing + later, Loss::Random);
            refused += u32::from(log.apply(&Commit { batches: &placed[1..], ..Commit::default() }).is_err());
            drop(log);
            disk.power_loss(Loss::Random);
            let hint = format!("fails at {failing}, the machine {later} later, seed {seed}");
            let (log, _) = try_open(&disk, &tiny).unwrap_or_else(|error| panic!("{error}, {hint}"));
            let stored = |count: usize| batches[..count].iter().map(|batch| (batch.clone(), 1)).collect();
            assert!((1..=4).any(|count| holds(&log, &stored(count))), "{:?}, {hint}", log.position());
        }
    }
    assert!(refused > 1_000, "{refused} were refused");
}
