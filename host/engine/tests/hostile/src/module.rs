//! The misbehaviour itself.

use std::hint::black_box;

use crate::Behaviour;
use crate::bindings::exports::verbatim::produce::{configuration, membership, produce_path};
use crate::bindings::verbatim::produce::{log, trace, types};
use crate::later;

/// What the host calls.
pub(crate) struct Module;

impl produce_path::Guest for Module {
    fn produce(
        policy: types::Policy,
        _position: types::Position,
        _request: types::Request,
        _entries: Vec<types::EpochEntry>,
        batches: Vec<types::Batch>,
    ) -> Result<(), types::Refusal> {
        behave(Behaviour::of(policy.partition), &batches)
    }

    fn describe() -> produce_path::Description {
        produce_path::Description {
            name: String::from("hostile"),
            version: String::from("1"),
            supports_exact: true,
            supports_normal: true,
            rewrites: false,
        }
    }
}

impl membership::Guest for Module {
    /// By the replica's id: 1 joins, 2 is refused, 3 traps, 4 spins, 5 calls what is not there outside `produce`.
    fn may_join(replica: types::Replica, _end: i64, _position: types::Position) -> Result<(), String> {
        match replica.id {
            1 => Ok(()),
            2 => Err("x".repeat(5000)),
            3 => trap(),
            4 => spin(),
            _ => {
                log::duplicate(0, 0);
                Ok(())
            }
        }
    }
}

impl configuration::Guest for Module {
    /// By the last key.
    fn check(keys: Vec<(String, String)>) -> Result<(), String> {
        match keys.last().map_or("", |(name, _)| name.as_str()) {
            "hostile.refuse" => Err("x".repeat(5000)),
            "hostile.trap" => trap(),
            "hostile.spin" => spin(),
            "hostile.tell" => Err(format!("{keys:?}")),
            "hostile.ask" => {
                log::duplicate(0, 0);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn behave(behaviour: Behaviour, batches: &[types::Batch]) -> Result<(), types::Refusal> {
    match behaviour {
        Behaviour::AppendsAll => place_all(batches),
        Behaviour::Traps => trap(),
        Behaviour::Spins => spin(),
        Behaviour::AsksForEver => loop {
            black_box(log::compare(0, 0));
        },
        Behaviour::GrowsMemory => grow(),
        Behaviour::Recurses => {
            black_box(recurse(black_box(1)));
        }
        Behaviour::SettlesNothing => {}
        Behaviour::SettlesTwice => {
            place_all(batches);
            place_all(batches.get(..1).unwrap_or_default());
        }
        Behaviour::PlacesElsewhere => place_by(batches, 1, 0),
        Behaviour::ChangesEpoch => place_by(batches, 0, 1),
        Behaviour::ClaimsDuplicates => {
            for (index, batch) in (0..).zip(batches) {
                log::duplicate(index, batch.base_offset);
            }
        }
        Behaviour::SettlesBeyond => {
            place_all(batches);
            log::duplicate(u32::MAX, 0);
        }
        Behaviour::AsksBeyond => {
            black_box(log::compare(u32::MAX, i64::MIN));
            black_box(log::records(u32::MAX, u32::MAX).is_ok());
            place_all(batches);
        }
        Behaviour::RefusesAfterPlacing => {
            place_all(batches);
            return refuse(String::from("changed my mind"));
        }
        Behaviour::RefusesAtLength => return refuse("x".repeat(200_000)),
        Behaviour::RefusesTooLong => return refuse("x".repeat(2 << 20)),
        Behaviour::RefusesEndlessly => return refuse("x".repeat(64 << 20)),
        Behaviour::FloodsLog => {
            let line = "x".repeat(1000);
            for _ in 0..10_000 {
                trace::line(&line);
            }
            place_all(batches);
        }
        Behaviour::WritesEndlessLine => trace::line(&"x".repeat(2 << 20)),
        Behaviour::Rewrites => rewrite_by(batches, |_| vec![0; 100]),
        Behaviour::RewritesTwice => {
            rewrite_by(batches, |index| log::records(index, u32::MAX).unwrap_or_default().repeat(2));
        }
        Behaviour::ReadsAndTraps => {
            let half = batches.first().map_or(0, |batch| batch.length / 2);
            black_box(log::records(0, half).is_ok());
            trace::line("read half,\nand no more");
            trap();
        }
        Behaviour::SettlesBackwards => settle_backwards(batches),
        Behaviour::SwapsPlaces => {
            for (index, batch) in (0..).zip(batches.iter().rev()) {
                log::append(index, placement(batch, 0, 0));
            }
        }
        Behaviour::CallsAfterRefusing => return refuse(later::calling_text()),
    }
    Ok(())
}

fn place_all(batches: &[types::Batch]) {
    place_by(batches, 0, 0);
}

fn place_by(batches: &[types::Batch], offset: i64, epoch: i32) {
    for (index, batch) in (0..).zip(batches) {
        log::append(index, placement(batch, offset, epoch));
    }
}

fn settle_backwards(batches: &[types::Batch]) {
    let mut indexed: Vec<_> = (0..).zip(batches).collect();
    indexed.reverse();
    for (index, batch) in indexed {
        log::append(index, placement(batch, 0, 0));
    }
}

fn rewrite_by(batches: &[types::Batch], records: impl Fn(u32) -> Vec<u8>) {
    for (index, batch) in (0..).zip(batches) {
        log::rewrite(index, placement(batch, 0, 0), &records(index));
    }
}

fn placement(batch: &types::Batch, offset: i64, epoch: i32) -> log::Placement {
    log::Placement {
        base_offset: batch.base_offset.wrapping_add(offset),
        leader_epoch: batch.leader_epoch.wrapping_add(epoch),
        log_append_time: false,
        max_timestamp: batch.max_timestamp,
    }
}

fn refuse(text: String) -> Result<(), types::Refusal> {
    Err(types::Refusal { reason: types::Reason::Other(42), batch: None, expected: Some(-1), text })
}

fn trap() -> ! {
    std::process::abort()
}

fn spin() -> ! {
    loop {
        black_box(0);
    }
}

fn grow() {
    loop {
        // Not touched, or the time would be up before the memory is.
        std::mem::forget(black_box(Vec::<u8>::with_capacity(1 << 20)));
    }
}

/// Ends only if the depth overflows.
fn recurse(depth: u64) -> u64 {
    if depth == 0 {
        return 0;
    }
    let frame = black_box([depth; 64]);
    recurse(black_box(depth + 1)) + frame.iter().sum::<u64>()
}
