//! A whole broker in memory, of one partition with three replicas: the example of how the engine is embedded.
//!
//! [`Memory::produce`] is all that a broker does for a request: split, describe, judge, apply.

mod producers;
mod stored;

use std::collections::BTreeMap;

use bytes::Bytes;
use verbatim_batch::Codec;
use verbatim_contract::{
    Comparison, CutPreview, EpochEntry, EpochHistory, Policy, Position, ProducerState, Replica, Request,
    Unreadable,
};

pub use producers::{Aborted, Producers};
pub use stored::Stored;

use crate::{
    Call, Compress, Denied, Incoming, Inflate, Judge, Partition, Plan, RecordReader, Source, plain_records,
};

/// The state of the partition. Every field may be set, so that a test can begin anywhere.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The topic's settings.
    pub policy: Policy,
    /// Log start offset.
    pub start: i64,
    /// Log end offset.
    pub end: i64,
    /// High watermark; moves to the end when a plan is applied.
    pub high_watermark: i64,
    /// Epoch history.
    pub epochs: EpochHistory,
    /// The epoch that readers are shown, -1 for none.
    pub shown_epoch: i32,
    /// What is stored, with its producers.
    pub stored: Stored,
    /// The replicas.
    pub replicas: Vec<Replica>,
    /// Where the source of an exact topic stands.
    pub source: Option<Source>,
    /// What the module wrote to the log.
    pub lines: Vec<String>,
    /// How compressed records are inflated; by itself the broker knows no codec.
    pub inflate: Inflate,
    /// How the records of a batch that is rewritten are compressed; by itself the broker knows no codec.
    pub compress: Compress,
    /// The module's own configuration.
    pub config: BTreeMap<String, String>,
    reader: RecordReader,
}

impl Memory {
    /// An empty partition with three replicas, all in sync and online. A normal one begins with epoch 0.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let first = (!policy.exact).then_some(EpochEntry { epoch: 0, start: 0 });
        Self {
            start: 0,
            end: 0,
            high_watermark: 0,
            shown_epoch: first.map_or(-1, |entry| entry.epoch),
            epochs: EpochHistory::from_entries(first.into_iter().collect()).unwrap_or_default(),
            stored: Stored::default(),
            replicas: (1..=3).map(|id| Replica { id, in_sync: true, online: true }).collect(),
            source: None,
            lines: Vec::new(),
            inflate: |_, _| Err(Unreadable::UnknownCodec),
            compress: |codec, _| Err(format!("no such codec here, codec=`{codec}`")),
            config: BTreeMap::new(),
            reader: RecordReader::default(),
            policy,
        }
    }

    /// Judges a request and carries it out. `records` are the batches as they came, one behind the other.
    pub fn produce(
        self,
        judge: &mut dyn Judge<Self>,
        request: Request,
        entries: Vec<EpochEntry>,
        records: &Bytes,
    ) -> (Self, Result<Plan, Denied>) {
        let call = self.call(request, entries, records);
        let mut judged = judge.judge(call, self);
        judged.partition.reader.clear();
        if let Ok(plan) = &judged.verdict {
            judged.partition.apply(plan);
        }
        (judged.partition, judged.verdict)
    }

    /// What a judge is told; `request.framing` is found out here.
    #[must_use]
    pub fn call(&self, request: Request, entries: Vec<EpochEntry>, records: &Bytes) -> Call {
        let producer = |id| self.stored.producers().get(id).map(ProducerState::last);
        Call::new(self.policy.clone(), self.position(), request, entries, records, producer)
    }

    /// Where the log stands.
    #[must_use]
    pub fn position(&self) -> Position {
        let open = self.stored.producers().first_open().unwrap_or(i64::MAX);
        Position {
            start: self.start,
            end: self.end,
            high_watermark: self.high_watermark,
            stable_offset: self.start.max(open.min(self.high_watermark)),
            last_entry: self.epochs.last(),
            epoch_before_end: self.epochs.before(self.end),
            shown_epoch: self.shown_epoch,
        }
    }

    /// Carries out a plan.
    pub fn apply(&mut self, plan: &Plan) {
        if let Some(to) = plan.cut() {
            self.stored.cut(to);
            self.epochs.truncate(to);
        }
        plan.entries().iter().for_each(|entry| self.epochs.assign(entry.epoch, entry.start));
        plan.appends().iter().for_each(|placed| self.stored.append(placed));
        (self.end, self.high_watermark, self.shown_epoch) = (plan.end(), plan.end(), plan.shown_epoch());
        // A log that restarts below its start has a history that begins there too (R25).
        let restarts = plan.appends().first().is_some_and(|batch| batch.header.base_offset < plan.start());
        if plan.start() > self.start || restarts {
            self.start = plan.start();
            self.stored.advance_start(self.start);
            self.epochs.advance_start(self.start);
        }
        self.source = plan.source().map(|now| now.after(self.source)).or(self.source);
    }
}

impl Partition for Memory {
    fn compare(&mut self, batch: &Incoming, base_offset: i64) -> Comparison {
        // A batch that lies below the start as a whole is as good as deleted.
        let last = base_offset.saturating_add(i64::from(batch.facts.header.last_offset_delta));
        if last < self.start { Comparison::Absent } else { self.stored.compare(batch, base_offset) }
    }
    fn cut(&mut self, to: i64) -> CutPreview {
        self.stored.preview(to, (self.start, self.end), &self.epochs)
    }
    fn producer(&mut self, producer_id: i64) -> Option<ProducerState> {
        self.stored.producers().get(producer_id).cloned()
    }
    fn replicas(&mut self) -> Vec<Replica> {
        self.replicas.clone()
    }
    fn records(&mut self, index: u32, batch: &Incoming, max: u32) -> Result<Vec<u8>, Unreadable> {
        self.reader.next(index, batch, max, self.inflate)
    }
    fn inflated(&mut self, _index: u32, batch: &Incoming) -> Result<Bytes, Unreadable> {
        plain_records(batch, self.inflate)
    }
    fn compress(&mut self, codec: Codec, plain: &[u8]) -> Result<Vec<u8>, String> {
        (self.compress)(codec, plain)
    }
    fn start_over(&mut self) {
        self.reader.clear();
    }
    fn config(&mut self, key: &str) -> Option<String> {
        self.config.get(key).cloned()
    }
    fn trace(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }
}
