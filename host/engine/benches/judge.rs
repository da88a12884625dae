//! What judging costs per batch, natively and in the module, and where the time goes.
//!
//! Divide a figure by the batches in its name for the cost per batch. Take ratios, not absolutes.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main, measurement::WallTime};
use verbatim_batch::{BatchBuilder, Codec, NewRecord};
use verbatim_contract::{
    Batch, Callbacks, Comparison, CutPreview, Description, EpochEntry, Framing, Membership, Placement,
    Policy, Position, ProducePath, ProducerState, Refusal, Replica, Request, Unreadable,
};
use verbatim_engine::{
    Bound, Call, Cause, Engine, Incoming, Judge, Limits, Module, Native, Partition, RecordReader, Slot,
    plain_records,
};
use verbatim_policy::ExactMirroring;

const RECORD_LEN: usize = 100;
const RECORDS: i32 = 160;
const COUNTS: [i64; 2] = [1, 16];

criterion_group!(benches, judging, parts, swaps);
criterion_main!(benches);

/// Whole calls, by the native policy and by the module.
fn judging(criterion: &mut Criterion) {
    let engine = Engine::new(Limits::default()).unwrap();
    let module = Module::load(&engine, verbatim_artifact::exact_mirroring().unwrap()).unwrap();
    for (name, exact, validate_records, count) in [
        ("exact, headers only, 1 batch", true, false, 1),
        ("exact, headers only, 16 batches", true, false, 16),
        ("normal, records validated, 1 batch", false, true, 1),
        ("exact, records validated, 1 batch", true, true, 1),
        ("exact, records validated, 16 batches", true, true, 16),
    ] {
        let mut group = criterion.benchmark_group(name);
        let call = call(exact, validate_records, count);
        bench(&mut group, "native", &mut Native::new(ExactMirroring), call.clone());
        bench(&mut group, "component", &mut module.instance().unwrap(), call.clone());
        bench(&mut group, "follower", &mut Slot::new("", module.clone()).follower(), call);
        group.finish();
    }
}

/// The checksum; staging and verifying, by a native policy that looks at nothing; crossing into a module, by one that
/// looks at nothing.
fn parts(criterion: &mut Criterion) {
    let engine = Engine::new(Limits::default()).unwrap();
    let idle = Module::load(&engine, verbatim_artifact::hostile().unwrap()).unwrap();
    let mut group = criterion.benchmark_group("parts");
    let bytes = batch(0);
    group.bench_function(format!("header and checksum of {} bytes", bytes.len()), |bencher| {
        bencher.iter(|| Incoming::new(black_box(bytes.clone())));
    });
    for count in COUNTS {
        let call = call(true, false, count);
        bench(&mut group, &format!("stage and verify, {count}"), &mut Native::new(AppendsAll), call.clone());
        bench(&mut group, &format!("the same in a module, {count}"), &mut idle.instance().unwrap(), call);
    }
    group.finish();
}

/// Loading, an instance from parts that are linked, a swap with the first call after it, and a call that is recorded for a
/// shadow run that takes all it can.
fn swaps(criterion: &mut Criterion) {
    let engine = Engine::new(Limits::default()).unwrap();
    let file = verbatim_artifact::exact_mirroring().unwrap();
    let module = Module::load(&engine, file).unwrap();
    let mut group = criterion.benchmark_group("swaps");
    group.sample_size(20);
    group.bench_function("load", |bencher| bencher.iter(|| Module::load(&engine, file).unwrap()));
    #[cfg(feature = "cache")]
    {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::with_cache(Limits::default(), folder.path()).unwrap();
        group.bench_function("load, compiled before", |bencher| {
            bencher.iter(|| Module::load(&engine, file).unwrap());
        });
    }
    group.bench_function("instance", |bencher| bencher.iter(|| module.instance::<Log>().unwrap()));

    let slot = Slot::new("policy", module.clone());
    let mut follower = slot.follower();
    let mut parts = Some((call(true, false, 1), Log(RecordReader::default())));
    group.bench_function("swap and first call", |bencher| {
        bencher.iter(|| {
            slot.switch(module.clone(), Cause::Swap);
            let (call, partition) = parts.take().unwrap();
            let judged = follower.judge(call, partition);
            judged.verdict.unwrap();
            parts = Some((judged.call, judged.partition));
        });
    });
    let shadow = slot.begin_shadow(module, Bound::Requests(u64::MAX), 64).unwrap();
    bench(&mut group, "call in a shadow run", &mut follower, call(true, false, 1));
    bench(&mut group, "call in a shadow run, records validated", &mut follower, call(true, true, 1));
    drop(shadow);
    group.finish();
}

fn bench(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, judge: &mut dyn Judge<Log>, call: Call) {
    let mut parts = Some((call, Log(RecordReader::default())));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let (call, partition) = parts.take().unwrap();
            let mut judged = judge.judge(call, partition);
            judged.verdict.unwrap();
            judged.partition.0.clear();
            parts = Some((judged.call, judged.partition));
        });
    });
}

fn batch(base: i64) -> Bytes {
    let value = [7; RECORD_LEN];
    let record = |delta| NewRecord::new(delta, 1_700_000_000_000).key(b"key").value(&value);
    let builder = BatchBuilder::new(base).leader_epoch(3);
    (0..RECORDS).fold(builder, |builder, delta| builder.record(record(delta))).build().unwrap().into()
}

fn call(exact: bool, validate_records: bool, count: i64) -> Call {
    let batches = (0..count).map(|index| Incoming::new(batch(index * i64::from(RECORDS)))).collect();
    let last_entry = Some(EpochEntry { epoch: 3, start: 0 });
    Call {
        policy: Policy {
            exact,
            rewind_truncate: false,
            validate_records,
            may_rewrite: false,
            compacted: false,
            log_append_time: false,
            max_message_bytes: 1 << 20,
            segment_bytes: 1 << 30,
            before_max_ms: i64::MAX,
            after_max_ms: i64::MAX,
            min_insync: 1,
            topic_id: (1, 2),
            partition: 0,
            config_generation: 1,
        },
        position: Position {
            start: 0,
            end: 0,
            high_watermark: 0,
            stable_offset: 0,
            last_entry,
            epoch_before_end: -1,
            shown_epoch: 3,
        },
        request: Request {
            now_ms: 1_700_000_000_000,
            acks: -1,
            api_version: 11,
            transactional: false,
            framing: Framing::Complete,
            has_tag: exact,
            source_topic_matches: true,
            expected_end: 0,
            epoch_before: -1,
            source_start: 0,
            source_end: 0,
            source_epoch: 3,
            end_to: None,
            truncate_to: None,
        },
        entries: Vec::new(),
        batches,
    }
}

/// An empty log.
struct Log(RecordReader);

impl Partition for Log {
    fn compare(&mut self, _batch: &Incoming, _base_offset: i64) -> Comparison {
        Comparison::Absent
    }

    fn cut(&mut self, _to: i64) -> CutPreview {
        CutPreview { at_boundary: true, last_entry: None, highest_epoch_cut: None }
    }

    fn producer(&mut self, _producer_id: i64) -> Option<ProducerState> {
        None
    }

    fn replicas(&mut self) -> Vec<Replica> {
        vec![Replica { id: 1, in_sync: true, online: true }]
    }

    fn records(&mut self, index: u32, batch: &Incoming, max: u32) -> Result<Vec<u8>, Unreadable> {
        self.0.next(index, batch, max, |_, _| Err(Unreadable::UnknownCodec))
    }

    fn inflated(&mut self, _index: u32, batch: &Incoming) -> Result<Bytes, Unreadable> {
        plain_records(batch, |_, _| Err(Unreadable::UnknownCodec))
    }

    fn compress(&mut self, codec: Codec, _plain: &[u8]) -> Result<Vec<u8>, String> {
        Err(format!("no such codec here, codec=`{codec}`"))
    }

    fn start_over(&mut self) {
        self.0.clear();
    }

    fn config(&mut self, _key: &str) -> Option<String> {
        None
    }

    fn trace(&mut self, _line: &str) {}
}

/// Places every batch where it says and looks at nothing.
struct AppendsAll;

impl ProducePath for AppendsAll {
    fn produce(
        &self,
        _policy: &Policy,
        _position: &Position,
        _request: &Request,
        _entries: &[EpochEntry],
        batches: &[Batch],
        callbacks: &mut dyn Callbacks,
    ) -> Result<(), Refusal> {
        for (index, batch) in (0..).zip(batches) {
            let placement = Placement {
                base_offset: batch.header.base_offset,
                leader_epoch: batch.header.leader_epoch,
                log_append_time: false,
                max_timestamp: batch.header.max_timestamp,
            };
            callbacks.append(index, placement);
        }
        Ok(())
    }

    fn describe(&self) -> Description {
        Description {
            name: "appends-all".to_owned(),
            version: "1".to_owned(),
            supports_exact: true,
            supports_normal: false,
            rewrites: false,
        }
    }
}

impl Membership for AppendsAll {
    fn may_join(&self, replica: &Replica, replica_end: i64, position: &Position) -> Result<(), String> {
        verbatim_engine::may_join(replica, replica_end, position)
    }
}
