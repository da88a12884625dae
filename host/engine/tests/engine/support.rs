//! Partitions, requests and batches to test with.

use std::sync::LazyLock;

use bytes::Bytes;
use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_contract::{
    Batch, Callbacks, Description, EpochEntry, Framing, Membership, Policy, Position, ProducePath, Refusal,
    Replica, Request,
};
use verbatim_engine::{Engine, Limits, Memory, Module};

pub(crate) fn engine() -> Engine {
    Engine::new(Limits::default()).unwrap()
}

/// Compiled once for all tests.
pub(crate) fn exact_mirroring() -> &'static Module {
    static MODULE: LazyLock<Module> =
        LazyLock::new(|| Module::load(&engine(), verbatim_artifact::exact_mirroring().unwrap()).unwrap());
    &MODULE
}

/// Compiled once for all tests.
pub(crate) fn hostile() -> &'static Module {
    static MODULE: LazyLock<Module> =
        LazyLock::new(|| Module::load(&engine(), verbatim_artifact::hostile().unwrap()).unwrap());
    &MODULE
}

/// The same module from a file with another digest.
pub(crate) fn relabelled(module: &[u8], label: u8) -> Module {
    // A custom section: id 0, length 3, a name of one byte, one byte.
    let file = [module, &[0, 3, 1, b'l', label]].concat();
    Module::load(&engine(), &file).unwrap()
}

/// A module's file with one text in the place of another that is as long.
pub(crate) fn replaced(module: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = module.to_vec();
    let mut count = 0;
    for at in 0..bytes.len() - from.len() {
        if &bytes[at..at + from.len()] == from.as_bytes() {
            bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
            count += 1;
        }
    }
    assert!(count > 0, "{from} is in the module");
    bytes
}

pub(crate) fn policy(exact: bool) -> Policy {
    Policy {
        exact,
        rewind_truncate: true,
        validate_records: !exact,
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
    }
}

pub(crate) fn exact() -> Memory {
    Memory::new(policy(true))
}

pub(crate) fn normal() -> Memory {
    Memory::new(policy(false))
}

/// A plain request.
pub(crate) fn request() -> Request {
    Request {
        now_ms: 1_700_000_000_000,
        acks: -1,
        api_version: 11,
        transactional: false,
        framing: Framing::Complete,
        has_tag: false,
        source_topic_matches: true,
        expected_end: 0,
        epoch_before: -1,
        source_start: 0,
        source_end: 0,
        source_epoch: 0,
        end_to: None,
        truncate_to: None,
    }
}

/// A tagged request whose source is at `source` (its end and epoch) and that fits where `memory` stands.
pub(crate) fn tagged(memory: &Memory, source: (i64, i32)) -> Request {
    Request {
        has_tag: true,
        expected_end: memory.end,
        epoch_before: memory.epochs.before(memory.end),
        source_end: source.0,
        source_epoch: source.1,
        ..request()
    }
}

/// A batch of `count` records.
pub(crate) fn batch(base: i64, epoch: i32, count: i32) -> Vec<u8> {
    valued(base, epoch, count, b"value")
}

/// The same with a value of one's choice.
pub(crate) fn valued(base: i64, epoch: i32, count: i32, value: &[u8]) -> Vec<u8> {
    let builder = BatchBuilder::new(base).leader_epoch(epoch);
    let record = |delta| NewRecord::new(delta, 1_700_000_000_000).key(b"key").value(value);
    (0..count).fold(builder, |builder, delta| builder.record(record(delta))).build().unwrap()
}

pub(crate) fn run(batches: &[Vec<u8>]) -> Bytes {
    Bytes::from(batches.concat())
}

pub(crate) fn entry(epoch: i32, start: i64) -> EpochEntry {
    EpochEntry { epoch, start }
}

/// All of a partition's state that a request could change.
pub(crate) fn fingerprint(memory: &Memory) -> String {
    let Memory { start, end, high_watermark, epochs, shown_epoch, stored, source, .. } = memory;
    format!("{start} {end} {high_watermark} {epochs:?} {shown_epoch} {stored:?} {source:?}")
}

/// A policy that is a closure.
pub(crate) struct Script<F>(pub(crate) F);

impl<F> ProducePath for Script<F>
where
    F: Fn(&[Batch], &mut dyn Callbacks) -> Result<(), Refusal>,
{
    fn produce(
        &self,
        _policy: &Policy,
        _position: &Position,
        _request: &Request,
        _entries: &[EpochEntry],
        batches: &[Batch],
        callbacks: &mut dyn Callbacks,
    ) -> Result<(), Refusal> {
        (self.0)(batches, callbacks)
    }

    fn describe(&self) -> Description {
        Description {
            name: "script".to_owned(),
            version: "1".to_owned(),
            supports_exact: true,
            supports_normal: true,
            rewrites: false,
        }
    }
}

impl<F> Membership for Script<F> {
    fn may_join(&self, replica: &Replica, replica_end: i64, position: &Position) -> Result<(), String> {
        verbatim_engine::may_join(replica, replica_end, position)
    }
}

/// Random numbers (SplitMix64) that a printed seed brings back.
pub(crate) struct Random(u64);

impl Random {
    /// Seeded by VERBATIM_SEED, else by the clock; prints the seed.
    pub(crate) fn seeded() -> Self {
        let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
        let given =
            std::env::var("VERBATIM_SEED").ok().map(|seed| seed.parse().expect("VERBATIM_SEED is a number"));
        let seed = given.unwrap_or_else(|| u64::try_from(now()).unwrap());
        println!("VERBATIM_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `bound - 1`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// An index of something that has `len` elements.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(u64::try_from(len).unwrap())).unwrap()
    }

    /// From `-span` to `span`.
    pub(crate) fn near(&mut self, span: i64) -> i64 {
        i64::try_from(self.below(u64::try_from(2 * span + 1).unwrap())).unwrap() - span
    }
}
