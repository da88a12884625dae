//! The same partition twice.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use proptest::test_runner::TestCaseError;
use uuid::Uuid;
use verbatim_batch::{HEADER_LEN, Header};
use verbatim_contract::{EpochEntry, Policy, Replica};
use verbatim_engine::{
    self as engine, Aborted, Call, Digest, Incoming, Judge as _, Memory, Native, Partition as _, Plan,
};
use verbatim_harness::random::{self, Sent, Tape};
use verbatim_log::{Commit, Config, Log, LogReader, Placed};
use verbatim_policy::ExactMirroring;
use verbatim_test_disk::SimDisk;

use crate::catalogue::{State, Topic};
use crate::partition::OwnPartition;
use crate::settings::{Settings, Values};
use crate::shared::PartitionId;

const NODE: i32 = 1;
const INFLATED_BYTES_MAX: usize = 1 << 20;
const FOLDER: &str = "partition";

/// A broker in memory and a partition with a log, which are to be the same.
pub(super) struct Twins {
    memory: Memory,
    /// None only while it is judged.
    partition: Option<OwnPartition>,
    judge: Native<ExactMirroring>,
    disk: Arc<SimDisk>,
    config: Config,
    topic: Arc<Topic>,
    /// Batches that were sent, to compare with what is stored.
    seen: Vec<Incoming>,
}

impl Twins {
    /// A random log, stored in both.
    pub(super) fn new(tape: &mut Tape<'_>) -> Result<Self, TestCaseError> {
        let mut memory = random::log(tape);
        memory.replicas = vec![Replica { id: NODE, in_sync: true, online: true }];
        // What was deleted below the start before now is not known to either.
        let batches = std::mem::take(&mut memory.stored).batches().to_vec();
        let keeps_received = memory.policy.exact && memory.policy.may_rewrite;
        for (header, bytes) in batches {
            let received = keeps_received.then(|| Digest::of(&bytes));
            let head = *bytes.first_chunk().unwrap();
            let payload = bytes.slice(HEADER_LEN..);
            memory.stored.append(&engine::Placed { index: 0, header, head, payload, received });
        }
        if !memory.policy.exact && memory.epochs.last().is_none() {
            memory.epochs.assign(memory.shown_epoch, memory.start);
        }
        let topic = Arc::new(topic(&memory.policy));
        let config = Config {
            exact: memory.policy.exact,
            keeps_received,
            segment_bytes: tape.one(&[300, 150, 100, 1000]),
            index_interval_bytes: tape.one(&[100, 0, 4096]),
            ..Config::default()
        };
        let disk = Arc::new(SimDisk::default());
        let mut log = Log::create(Path::new(FOLDER), config.clone(), disk.clone()).unwrap();
        store(&memory, &mut log)?;
        let partition = partition(&topic, log);
        memory.policy = partition.policy().clone();
        let judge = Native::new(ExactMirroring);
        Ok(Self { memory, partition: Some(partition), judge, disk, config, topic, seen: Vec::new() })
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Sends a request to both.
    pub(super) fn produce(
        &mut self,
        (request, entries, records): Sent,
        waits: bool,
        note: &mut impl FnMut(&'static str),
    ) -> Result<(), TestCaseError> {
        let partition = self.partition.take().unwrap();
        let log = partition.log();
        let producer = |id| log.producer(id).map(verbatim_contract::ProducerState::last);
        let (policy, position) = (partition.policy().clone(), log.position());
        let call = Call::new(policy, position, request, entries.clone(), &records, producer);
        let is_whole = |batch: &&Incoming| {
            let header = &batch.facts.header;
            batch.facts.crc_ok && header.last_offset_delta >= 0 && header.next_offset().is_some()
        };
        self.seen.extend(call.batches.iter().filter(is_whole).cloned());
        let before = self.memory.clone();
        let judged = self.judge.judge(call, partition);
        let (memory, verdict) = before.clone().produce(&mut self.judge, request, entries, &records);
        self.memory = memory;
        let mut partition = judged.partition;
        let told = format!("{:#?}\non {before:?}", judged.call);
        same("verdict", &verdict, &judged.verdict, &told)?;
        same("unreadable", &None, &partition.end_call(), &told)?;
        if let Ok(plan) = &judged.verdict {
            let id = PartitionId { topic: self.topic.id, index: 0 };
            let outcome = super::super::apply(&mut partition, id, &judged.call.request, plan);
            let done = outcome.result.map(|done| (done.base_offset, done.start));
            let done = done.map_err(|refused| refused.error.text);
            same("outcome", &Ok((plan.base_offset().unwrap_or(-1), plan.start())), &done, &told)?;
            happenings(plan, &before, note);
        }
        if !waits {
            partition.log_mut().flush().unwrap();
        }
        self.partition = Some(partition);
        self.agree(&told)
    }

    /// The log is closed, or dropped as by a crash, and opened again.
    pub(super) fn open_again(&mut self, closes: bool) -> Result<(), TestCaseError> {
        let log = self.partition.take().unwrap().into_log();
        let dump = format!("opened again, closed: {closes}, before: {log:?}");
        if closes {
            log.close().unwrap();
        } else {
            drop(log);
        }
        let opened = Log::open(Path::new(FOLDER), self.config.clone(), self.disk.clone());
        let (log, _) = opened.map_err(|error| TestCaseError::fail(format!("{dump}: {error}")))?;
        self.partition = Some(partition(&self.topic, log));
        if !self.memory.policy.exact {
            // A new life of a normal partition is a new epoch.
            let memory = &mut self.memory;
            memory.shown_epoch += 1;
            memory.epochs.truncate(memory.end);
            memory.epochs.assign(memory.shown_epoch, memory.end);
        }
        self.agree(&dump)
    }

    /// All that can be seen of both is the same.
    pub(super) fn agree(&mut self, told: &str) -> Result<(), TestCaseError> {
        let (memory, partition) = (&mut self.memory, self.partition.as_mut().unwrap());
        let log = partition.log();
        let (mut position, waits) = (log.position(), log.position().high_watermark < memory.end);
        if waits {
            let stable_offset = memory.position().stable_offset;
            position = verbatim_contract::Position { high_watermark: memory.end, stable_offset, ..position };
        }
        same("position", &memory.position(), &position, told)?;
        same("epochs", &memory.epochs, log.epochs(), told)?;
        let source = memory.source.map(|source| (source.start, source.end, source.epoch));
        same("source", &source, &log.source().map(|source| (source.start, source.end, source.epoch)), told)?;
        let known: BTreeMap<_, _> = memory.stored.producers().iter().collect();
        same("producers", &known, &log.producers().collect(), told)?;
        same("offline", &None, &log.offline(), told)?;
        let (start, end) = (memory.start, memory.end);
        let reader = log.reader();
        // An end may be far away.
        let near = start..=end.min(start + 30);
        for offset in near.clone().chain([end]) {
            let is_left = |(header, _): &&(Header, bytes::Bytes)| header.last_offset().unwrap() >= offset;
            let left = memory.stored.batches().iter().filter(is_left).flat_map(|(_, bytes)| bytes.to_vec());
            same("bytes", &Ok(left.collect()), &all(&reader, offset), &format!("from {offset}: {told}"))?;
        }
        let aborted =
            memory.stored.producers().aborted().iter().filter(|aborted| aborted.last_offset >= start);
        let listed = reader.aborted(start, end).into_iter().map(|it| Aborted {
            producer_id: it.producer_id,
            first_offset: it.first_offset,
            last_offset: it.last_offset,
        });
        same("aborted", &aborted.copied().collect::<Vec<_>>(), &listed.collect(), told)?;
        for to in near.chain([start - 1, end - 1, end, end.saturating_add(1)]) {
            same("preview", &memory.cut(to), &partition.cut(to), &format!("cut to {to}: {told}"))?;
        }
        for batch in &self.seen {
            let base = batch.facts.header.base_offset;
            let told = format!("{batch:?}\n{told}");
            same("comparison", &memory.compare(batch, base), &partition.compare(batch, base), &told)?;
        }
        same("unreadable", &None, &partition.end_call(), told)
    }
}

/// The topic that has these settings.
fn topic(policy: &Policy) -> Topic {
    let settings = Settings {
        exact: policy.exact,
        rewind_truncate: policy.rewind_truncate,
        validate_exact_records: policy.validate_records,
        may_rewrite: policy.may_rewrite,
        compacted: policy.compacted,
        log_append_time: policy.log_append_time,
        max_message_bytes: policy.max_message_bytes,
        segment_bytes: policy.segment_bytes,
        before_max_ms: policy.before_max_ms,
        after_max_ms: policy.after_max_ms,
        min_insync: policy.min_insync,
        ..Settings::read(&Values::new()).unwrap()
    };
    let id = Uuid::from_u64_pair(policy.topic_id.0, policy.topic_id.1);
    let (name, values) = ("twins".to_owned(), Values::new());
    Topic { name, id, partitions: 1, values, settings, generation: 0, state: State::Live }
}

fn partition(topic: &Arc<Topic>, log: Log) -> OwnPartition {
    let id = PartitionId { topic: topic.id, index: 0 };
    OwnPartition::new(id, Arc::clone(topic), log, NODE, INFLATED_BYTES_MAX)
}

/// Stores in an empty log what the other one holds.
fn store(memory: &Memory, log: &mut Log) -> Result<(), TestCaseError> {
    let batches = memory.stored.batches();
    let split = |(_, bytes): &'_ (Header, bytes::Bytes)| bytes.clone();
    let bytes: Vec<_> = batches.iter().map(split).collect();
    let placed: Vec<_> = bytes
        .iter()
        .map(|bytes| Placed {
            head: &bytes[..HEADER_LEN],
            payload: &bytes[HEADER_LEN..],
            received: log.keeps_received().then(|| *Digest::of(bytes).as_bytes()),
        })
        .collect();
    // An entry that begins with a batch of its epoch, or at the start after one, comes with that batch.
    let comes = |entry: &EpochEntry| {
        let brings = |(header, _): &(Header, _)| {
            header.leader_epoch == entry.epoch && header.base_offset <= entry.start
        };
        !log.is_exact() || batches.iter().any(brings)
    };
    let entries: Vec<_> = memory.epochs.entries().iter().copied().filter(|entry| !comes(entry)).collect();
    let commit = Commit {
        entries: &entries,
        batches: &placed,
        end: Some(memory.end),
        start: Some(memory.start),
        shown_epoch: Some(memory.shown_epoch),
        ..Commit::default()
    };
    log.apply(&commit).map_err(|error| TestCaseError::fail(format!("{error}: {commit:?} {memory:?}")))?;
    log.flush().unwrap();
    Ok(())
}

/// All stored bytes from `offset` on.
fn all(reader: &LogReader, mut offset: i64) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    loop {
        let read = reader.read(offset, 1 << 20, i64::MAX, true).map_err(|error| error.to_string())?.bytes;
        let Some(last) = verbatim_batch::frames(&read).last() else { return Ok(all) };
        offset = Header::read(last.bytes()).and_then(|header| header.next_offset()).unwrap();
        all.extend_from_slice(&read);
    }
}

fn happenings(plan: &Plan, before: &Memory, note: &mut impl FnMut(&'static str)) {
    let appends = plan.appends();
    let first = appends.first().map(|batch| batch.header.base_offset);
    let from = plan.cut().unwrap_or(before.end);
    let mut epochs: Vec<_> = appends.iter().map(|batch| batch.header.leader_epoch).collect();
    epochs.dedup();
    let brought = |entry: &EpochEntry| appends.iter().any(|batch| batch.header.base_offset == entry.start);
    let next = appends.last().and_then(|batch| batch.header.next_offset()).unwrap_or(from);
    let happened = [
        plan.cut().is_some(),
        first.is_some_and(|first| first > from),
        plan.end() > next,
        !plan.entries().iter().all(brought),
        epochs.len() > 1,
        first.is_some_and(|first| first < from),
        plan.start() > before.start,
        before.policy.exact && !plan.duplicates().is_empty(),
        !before.policy.exact && !plan.duplicates().is_empty(),
    ];
    super::HAPPENINGS
        .into_iter()
        .zip(happened)
        .filter(|(_, happened)| *happened)
        .for_each(|(name, _)| note(name));
}

fn same<T: PartialEq + Debug>(what: &str, memory: &T, log: &T, told: &str) -> Result<(), TestCaseError> {
    if memory == log {
        return Ok(());
    }
    Err(TestCaseError::fail(format!("{what}:\nin memory {memory:?}\nin a log {log:?}\n{told}")))
}
