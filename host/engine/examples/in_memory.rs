//! The smallest host there is: the in-memory broker with the module `exact-mirroring`.
//!
//! ```text
//! cargo run --release --example in_memory
//! ```

use std::error::Error;

use bytes::Bytes;
use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_contract::{Framing, Policy, Request};
use verbatim_engine::{Engine, Judge, Limits, Memory, Module, denied_code};

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new(Limits::default())?;
    let module = Module::load(&engine, verbatim_artifact::exact_mirroring()?)?;
    println!("module {} {}", module.inspect().description.name, module.inspect().digest);
    let mut judge = module.instance()?;

    let mut partition = Memory::new(exact_topic());
    for (what, base, epoch) in [
        ("into the empty log", 100, 5),
        ("the same again", 100, 5),
        ("far above, next epoch", 5_000_000_000, 7),
        ("a lower epoch", 5_000_000_001, 6),
    ] {
        partition = write(partition, &mut judge, what, (base, epoch))?;
    }
    println!("two replicas fall out of the in-sync set");
    partition.replicas.iter_mut().skip(1).for_each(|replica| replica.in_sync = false);
    partition = write(partition, &mut judge, "with one replica left", (5_000_000_001, 7))?;
    println!("end {}, epochs {:?}", partition.end, partition.epochs.entries());
    Ok(())
}

/// Writes one batch at this offset and epoch, and tells what became of it.
fn write(
    partition: Memory,
    judge: &mut dyn Judge<Memory>,
    what: &str,
    (base, epoch): (i64, i32),
) -> Result<Memory, Box<dyn Error>> {
    let record = NewRecord::new(0, 1_700_000_000_000).value(b"hello");
    let batch = BatchBuilder::new(base).leader_epoch(epoch).record(record).build()?;
    let request = Request {
        now_ms: 1_700_000_000_000,
        acks: -1,
        api_version: 9,
        transactional: false,
        framing: Framing::Complete,
        has_tag: true,
        source_topic_matches: true,
        expected_end: partition.end,
        epoch_before: partition.epochs.before(partition.end),
        source_start: 0,
        source_end: base.saturating_add(1),
        source_epoch: 7,
        end_to: None,
        truncate_to: None,
    };
    let (partition, verdict) = partition.produce(judge, request, Vec::new(), &Bytes::from(batch));
    match verdict {
        Ok(plan) if plan.appends().is_empty() => println!("{what}: stored before, end {}", plan.end()),
        Ok(plan) => println!("{what}: appended, end {}", plan.end()),
        Err(denied) => println!("{what}: error {}: {denied}", denied_code(&denied).number),
    }
    Ok(partition)
}

fn exact_topic() -> Policy {
    Policy {
        exact: true,
        rewind_truncate: false,
        validate_records: false,
        may_rewrite: false,
        compacted: false,
        log_append_time: false,
        max_message_bytes: 1 << 20,
        segment_bytes: 1 << 30,
        before_max_ms: i64::MAX,
        after_max_ms: i64::MAX,
        min_insync: 2,
        topic_id: (0, 1),
        partition: 0,
        config_generation: 0,
    }
}
