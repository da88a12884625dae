//! What a module settled so far: nothing of it is done before the whole was verified.

use std::collections::BTreeSet;

use verbatim_batch::Codec;
use verbatim_contract::{
    Callbacks, Comparison, CutPreview, MAX_TEXT_LEN, Placement, ProducerState, Refusal, Replica, Unreadable,
};

use crate::rewrite::{MAX_REWRITTEN_LEN, NotRewritten, Rewritten};
use crate::{Broken, Call, Denied, Failure, Incoming, Invariant, Judged, Partition, verify};

/// The longest trace line in bytes; what is longer is cut at a character boundary.
pub const MAX_TRACE_LEN: usize = 512;
/// Trace lines that a judge passes on at once; it regains ten a second, by the calls' own clock.
pub const MAX_TRACE_LINES: u32 = 100;
/// The longest piece of records handed over at once, in bytes.
pub const MAX_PIECE_LEN: u32 = 1 << 20;
/// The longest configuration key that is looked up, in bytes.
pub const MAX_KEY_LEN: usize = 255;

const TRACE_LINES_PER_SECOND: i64 = 10;

/// How one batch was settled.
#[derive(Clone, Debug)]
pub(crate) enum Settlement {
    Append(Placement),
    Duplicate(i64),
    Rewrite(Placement, Box<Rewritten>),
}

/// A call while it is judged: the call, the partition, and what was staged.
#[derive(Debug)]
pub(crate) struct Stage<P> {
    call: Call,
    partition: P,
    settled: Vec<Option<Settlement>>,
    broken: Option<Broken>,
    /// A batch that is too large for what the module wants of it.
    too_large: Option<Refusal>,
    /// Bytes of records that were rewritten, as they are stored.
    rewritten: usize,
    /// Batches whose records are being inflated.
    inflating: BTreeSet<u32>,
    handed_over: u64,
    trace: TraceBudget,
}

impl<P: Partition> Stage<P> {
    pub(crate) fn new(call: Call, partition: P, trace: TraceBudget) -> Self {
        let settled = vec![None; call.batches.len()];
        let trace = trace.refilled(call.request.now_ms);
        Self {
            call,
            partition,
            settled,
            broken: None,
            too_large: None,
            rewritten: 0,
            inflating: BTreeSet::new(),
            handed_over: 0,
            trace,
        }
    }

    /// The call that is judged.
    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    /// Bytes of records handed to the module so far.
    pub(crate) fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Whether the records of batch `index` are asked for the first time, and must be inflated.
    pub(crate) fn begins_to_inflate(&mut self, index: u32) -> bool {
        let codec = self.incoming(index).map(|batch| batch.facts.header.attributes.codec());
        codec.is_some_and(|codec| codec != Ok(Codec::None)) && self.inflating.insert(index)
    }

    /// Batch `index`, if a comparison of it needs its digest, which is not known yet.
    pub(crate) fn to_be_digested(&self, index: u32) -> Option<&Incoming> {
        let keeps = self.call.policy.exact && self.call.policy.may_rewrite;
        self.incoming(index).filter(|batch| keeps && !batch.is_digested())
    }

    pub(crate) fn trace_budget(&self) -> TraceBudget {
        self.trace
    }

    /// Ends the call: a refusal or a failure drops what was staged, an acceptance is verified.
    pub(crate) fn finish(mut self, answer: Result<Result<(), Refusal>, Failure>) -> Judged<P> {
        let verdict = match answer {
            Err(failure) => Err(Denied::Failed(failure)),
            Ok(Err(refusal)) => Err(Denied::Refused(bounded(refusal))),
            Ok(Ok(())) => match (self.broken, self.too_large) {
                (Some(broken), _) => Err(Denied::Failed(Failure::Invariant(broken))),
                (None, Some(refusal)) => Err(Denied::Refused(refusal)),
                (None, None) => verify::plan(&self.call, &self.settled, &mut self.partition)
                    .map_err(|broken| Denied::Failed(Failure::Invariant(broken))),
            },
        };
        Judged { call: self.call, partition: self.partition, verdict }
    }

    fn settle(&mut self, index: u32, settlement: Settlement) {
        let place = usize::try_from(index).ok().and_then(|index| self.settled.get_mut(index));
        match place {
            Some(place @ None) => *place = Some(settlement),
            Some(Some(_)) => {
                self.break_with(Invariant::Settled, || format!("batch {index} is settled twice"))
            }
            None => self.out_of_range(index),
        }
    }

    /// I7: all together may not become much more than what came.
    fn keep_rewritten(&mut self, index: u32, placement: Placement, rewritten: Rewritten) {
        self.rewritten = self.rewritten.saturating_add(rewritten.payload().len());
        let received = usize::try_from(self.call.len_bytes()).unwrap_or(usize::MAX);
        let most = received.saturating_mul(2).saturating_add(MAX_REWRITTEN_LEN);
        if self.rewritten > most {
            let len = self.rewritten;
            let text = || {
                format!(
                    "the rewritten records of a request of {received} bytes may have {most}, length=`{len}`"
                )
            };
            return self.break_with(Invariant::Limits, text);
        }
        self.settle(index, Settlement::Rewrite(placement, Box::new(rewritten)));
    }

    fn out_of_range(&mut self, index: u32) {
        let count = self.settled.len();
        self.break_with(Invariant::Settled, || format!("there are {count} batches, index=`{index}`"));
    }

    fn break_with(&mut self, which: Invariant, text: impl FnOnce() -> String) {
        // The first one tells the cause.
        self.broken.get_or_insert_with(|| Broken::new(which, text()));
    }

    fn incoming(&self, index: u32) -> Option<&Incoming> {
        usize::try_from(index).ok().and_then(|index| self.call.batches.get(index))
    }
}

impl<P: Partition> Callbacks for Stage<P> {
    fn append(&mut self, index: u32, placement: Placement) {
        self.settle(index, Settlement::Append(placement));
    }

    fn duplicate(&mut self, index: u32, base_offset: i64) {
        self.settle(index, Settlement::Duplicate(base_offset));
    }

    fn rewrite(&mut self, index: u32, placement: Placement, records: Vec<u8>) {
        // Each batch is inflated and compressed once at most, whatever a module asks for.
        let is_settled = usize::try_from(index)
            .ok()
            .and_then(|index| self.settled.get(index))
            .is_some_and(Option::is_some);
        let Some(batch) = self.incoming(index).filter(|_| !is_settled).cloned() else {
            return self.settle(index, Settlement::Append(placement));
        };
        if !self.call.policy.may_rewrite {
            let text = || format!("the topic does not allow rewriting, batch {index}");
            return self.break_with(Invariant::Bytes, text);
        }
        if self.broken.is_some() || self.too_large.is_some() {
            return;
        }
        match Rewritten::new(index, &batch, &records, &mut self.partition) {
            Ok(rewritten) => self.keep_rewritten(index, placement, rewritten),
            Err(NotRewritten::Broken(broken)) => self.broken = Some(broken),
            Err(NotRewritten::Refused(refusal)) => self.too_large = Some(refusal),
        }
    }

    fn compare(&mut self, index: u32, base_offset: i64) -> Comparison {
        let batch = usize::try_from(index).ok().and_then(|index| self.call.batches.get(index));
        match batch {
            Some(batch) => self.partition.compare(batch, base_offset),
            None => {
                self.out_of_range(index);
                Comparison::Absent
            }
        }
    }

    fn cut(&mut self, to: i64) -> CutPreview {
        self.partition.cut(to)
    }

    fn producer(&mut self, producer_id: i64) -> Option<ProducerState> {
        self.partition.producer(producer_id)
    }

    fn replicas(&mut self) -> Vec<Replica> {
        self.partition.replicas()
    }

    fn records(&mut self, index: u32, max: u32) -> Result<Vec<u8>, Unreadable> {
        let Some(batch) = self.incoming(index).cloned() else {
            self.out_of_range(index);
            return Err(Unreadable::Corrupt);
        };
        let piece = self.partition.records(index, &batch, max.min(MAX_PIECE_LEN))?;
        self.handed_over = self.handed_over.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        Ok(piece)
    }

    fn config(&mut self, key: &str) -> Option<String> {
        if key.len() > MAX_KEY_LEN { None } else { self.partition.config(key) }
    }

    fn trace(&mut self, line: &str) {
        if self.trace.take() {
            self.partition.trace(cut_text(line, MAX_TRACE_LEN));
        }
    }
}

/// How many trace lines a judge may still pass on. Its clock is that of the calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceBudget {
    lines: u32,
    refilled_ms: i64,
}

impl Default for TraceBudget {
    fn default() -> Self {
        Self { lines: MAX_TRACE_LINES, refilled_ms: i64::MIN }
    }
}

impl TraceBudget {
    fn refilled(self, now_ms: i64) -> Self {
        let elapsed_ms = now_ms.saturating_sub(self.refilled_ms).max(0);
        let gained = elapsed_ms.saturating_mul(TRACE_LINES_PER_SECOND) / 1000;
        if gained == 0 {
            return self;
        }
        let lines = self.lines.saturating_add(u32::try_from(gained).unwrap_or(u32::MAX)).min(MAX_TRACE_LINES);
        Self { lines, refilled_ms: now_ms }
    }

    fn take(&mut self) -> bool {
        let left = self.lines.checked_sub(1);
        self.lines = left.unwrap_or(0);
        left.is_some()
    }
}

fn bounded(mut refusal: Refusal) -> Refusal {
    let len = cut_text(&refusal.text, MAX_TEXT_LEN).len();
    refusal.text.truncate(len);
    refusal.text.shrink_to_fit();
    refusal
}

/// The longest start of `text` that has at most `max` bytes and whole characters.
pub(crate) fn cut_text(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}
