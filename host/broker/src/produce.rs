//! One partition's part of a Produce request on its append thread: judged, applied, and what is answered.

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
mod differential;

use std::collections::hash_map::Entry;
use std::time::Instant;

use tokio::sync::oneshot;
use verbatim_contract::{EpochEntry, Policy, Reason, Refusal, Request};
use verbatim_engine::{
    Call, Denied, Failure, Incoming, Judged, MAX_FAILURES, Plan, PoisonKey, Source, Stamp,
};
use verbatim_log::{Commit, Placed, SourcePosition};
use verbatim_wire::error::ErrorCode;
use verbatim_wire::tag::AnswerTag;

use crate::append::{Pending, Worker, report};
use crate::errors::{self, ApiError};
use crate::partition::OwnPartition;
use crate::shared::PartitionId;

/// A part of a request, framed and checked, on its way to the append thread.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) id: PartitionId,
    pub(crate) request: Request,
    pub(crate) entries: Vec<EpochEntry>,
    pub(crate) batches: Vec<Incoming>,
    pub(crate) answer: oneshot::Sender<Outcome>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) result: Result<Done, Refused>,
    /// Where the partition stands, for those who sent a tag.
    pub(crate) tag: Option<AnswerTag>,
    /// The module failed, or the disk did: the client is told to slow down.
    pub(crate) failed: bool,
}

/// A request that was carried out, or had been before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Offset of the first batch; -1 without batches.
    pub(crate) base_offset: i64,
    /// The broker's timestamp where the topic takes that, else -1.
    pub(crate) log_append_time: i64,
    /// Log start offset.
    pub(crate) start: i64,
}

/// A request that was not.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// Code and text.
    pub(crate) error: ApiError,
    /// The batch at fault.
    pub(crate) batch: Option<u32>,
}

impl Outcome {
    /// A refusal that says nothing of the partition.
    pub(crate) fn refused(error: ApiError) -> Self {
        Self { result: Err(Refused { error, batch: None }), tag: None, failed: false }
    }

    /// It was carried out.
    pub(crate) fn is_done(&self) -> bool {
        self.result.is_ok()
    }
}

impl Worker {
    /// Judges and applies; the answer waits for the flush.
    pub(crate) fn produce(&mut self, submission: Submission, taken: Instant) -> Pending {
        let Submission { id, request, entries, batches, answer } = submission;
        let outcome = match self.partitions.remove(&id) {
            Some(partition) => {
                let (outcome, partition) = self.judge(id, partition, request, entries, batches, taken);
                self.partitions.insert(id, partition);
                outcome
            }
            // It was deleted since the request was queued.
            None => Outcome::refused(ApiError::new(
                ErrorCode::UnknownTopicOrPartition,
                format!("the topic was deleted, partition=`{}`", id.index),
            )),
        };
        Pending { id, outcome, answer }
    }

    fn judge(
        &mut self,
        id: PartitionId,
        partition: OwnPartition,
        request: Request,
        entries: Vec<EpochEntry>,
        batches: Vec<Incoming>,
        mut since: Instant,
    ) -> (Outcome, OwnPartition) {
        if let Some(error) = closed(&partition, id, request.has_tag) {
            return (Outcome { tag: tag(&partition, &request, None), ..Outcome::refused(error) }, partition);
        }
        let module = partition.topic().settings.module.clone();
        let unswapped = self.setup.judges.digest(&module).map(|digest| Stamp { digest, generation: 0 });
        let judge = match self.judges.entry(module) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => match self.setup.judges.judge(entry.key()) {
                Ok(judge) => {
                    since = Instant::now();
                    entry.insert(judge)
                }
                Err(failure) => {
                    self.metrics.failed(&failure);
                    return (module_failed(&partition, &request, &batches, &failure, None), partition);
                }
            },
        };
        let call = Call {
            policy: partition.policy().clone(),
            position: partition.log().position(),
            request,
            entries,
            batches: with_producers(&partition, batches),
        };
        if !self.poison.is_empty()
            && let Some(stamp) = judge.follow().or(unswapped)
            && self.poison.is_poisoned(&PoisonKey::new(stamp, &call))
        {
            self.metrics.poisoned();
            return (poisoned(&partition, id, &call.request, stamp), partition);
        }
        let count = call.batches.len();
        let Judged { call, mut partition, verdict } = judge.judge(call, partition);
        self.metrics.judged(count, since);
        let stamp = judge.judged_by().or(unswapped);
        if let (Err(Denied::Failed(_)), Some(stamp)) = (&verdict, stamp) {
            self.poison.failed(PoisonKey::new(stamp, &call));
        }
        let (request, batches) = (call.request, call.batches);
        if let Some(reason) = partition.end_call() {
            let error = ApiError::storage(format!("stored data cannot be read: {reason}"));
            tracing::error!(topic = partition.topic().name, partition = id.index, reason, "disk failure");
            return (Outcome { failed: true, ..Outcome::refused(error) }, partition);
        }
        let outcome = match verdict {
            Ok(plan) => self.carry_out(&mut partition, id, &request, &batches, &plan),
            Err(Denied::Refused(refusal)) => {
                self.metrics.refused(refusal.reason);
                refused(&partition, &request, refusal)
            }
            Err(Denied::Failed(failure)) => {
                self.metrics.failed(&failure);
                module_failed(&partition, &request, &batches, &failure, stamp)
            }
        };
        (outcome, partition)
    }

    fn carry_out(
        &self,
        partition: &mut OwnPartition,
        id: PartitionId,
        request: &Request,
        batches: &[Incoming],
        plan: &Plan,
    ) -> Outcome {
        if let Some(refusal) = too_large(partition.policy(), plan, batches, self.setup.exact_batch_bytes_max)
        {
            self.metrics.refused(refusal.reason);
            return refused(partition, request, refusal);
        }
        let outcome = apply(partition, id, request, plan);
        if outcome.is_done() {
            self.metrics.appended(partition.policy().exact, plan, batches);
        }
        outcome
    }
}

/// Why the partition takes nothing at present, from anybody.
fn closed(partition: &OwnPartition, id: PartitionId, has_tag: bool) -> Option<ApiError> {
    let place = || format!("topic=`{}`, partition=`{}`", partition.topic().name, id.index);
    if let Some(reason) = partition.log().offline() {
        return Some(ApiError::storage(format!("partition is offline until restart: {reason}, {}", place())));
    }
    if !partition.is_sealed() {
        return None;
    }
    if has_tag {
        return Some(ApiError::policy(format!(
            "the topic is being promoted and takes no exact writes, {}",
            place()
        )));
    }
    let text = format!("the topic is being promoted, try again, {}", place());
    Some(ApiError::new(ErrorCode::NotLeaderOrFollower, text))
}

fn with_producers(partition: &OwnPartition, batches: Vec<Incoming>) -> Vec<Incoming> {
    let known = |batch: &Incoming| {
        let header = &batch.facts.header;
        let id = header.has_producer().then_some(header.producer_id)?;
        partition.log().producer(id).map(verbatim_contract::ProducerState::last)
    };
    batches
        .into_iter()
        .map(|batch| {
            let producer = known(&batch);
            batch.with_producer(producer)
        })
        .collect()
}

/// R12 for what would be stored. On an exact topic only the host's own cap counts; on a normal one the module has judged what
/// came, so what it made of it is left to judge.
fn too_large(policy: &Policy, plan: &Plan, batches: &[Incoming], cap: usize) -> Option<Refusal> {
    let exact = [(Reason::BatchTooLarge, "which is this host's limit for exact topics", cap)];
    let normal = [
        (Reason::BatchTooLarge, "which is max.message.bytes", bytes(policy.max_message_bytes)),
        (Reason::SegmentTooSmall, "which is segment.bytes", bytes(policy.segment_bytes)),
    ];
    let limits = if policy.exact { &exact[..] } else { &normal[..] };
    plan.appends().iter().find_map(|placed| {
        let length = placed.head.len().saturating_add(placed.payload.len());
        let received = batches.get(bytes(placed.index)).map(|batch| batch.bytes.len());
        let judged = !policy.exact && received == Some(length);
        let (reason, which, most) = limits.iter().find(|(_, _, most)| !judged && length > *most)?;
        Some(Refusal {
            reason: *reason,
            batch: Some(placed.index),
            expected: i64::try_from(*most).ok(),
            text: format!(
                "batch {}: what is stored must have at most {most} bytes, {which}, length=`{length}`",
                placed.index
            ),
        })
    })
}

fn bytes(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn apply(partition: &mut OwnPartition, id: PartitionId, request: &Request, plan: &Plan) -> Outcome {
    let batches: Vec<Placed<'_>> = plan
        .appends()
        .iter()
        .map(|placed| Placed {
            head: &placed.head,
            payload: &placed.payload,
            received: placed.received.map(|digest| *digest.as_bytes()),
        })
        .collect();
    let commit = Commit {
        cut: plan.cut(),
        entries: plan.entries(),
        batches: &batches,
        end: Some(plan.end()),
        start: Some(plan.start()),
        source: source(partition, plan),
        shown_epoch: Some(plan.shown_epoch()),
        now_ms: Some(request.now_ms),
    };
    if let Err(error) = partition.log_mut().apply(&commit) {
        let error = report(partition.topic(), id, &error);
        let tag = tag(partition, request, None);
        return Outcome { tag, failed: true, ..Outcome::refused(error) };
    }
    let policy = partition.policy();
    let stamped = !policy.exact && policy.log_append_time && !plan.appends().is_empty();
    let done = Done {
        base_offset: plan.base_offset().unwrap_or(-1),
        log_append_time: if stamped { request.now_ms } else { -1 },
        start: partition.log().position().start,
    };
    Outcome { result: Ok(done), tag: tag(partition, request, None), failed: false }
}

fn source(partition: &OwnPartition, plan: &Plan) -> Option<SourcePosition> {
    let known = partition.log().source().map(|known| Source {
        start: known.start,
        end: known.end,
        epoch: known.epoch,
        raise_only: false,
    });
    let now = plan.source()?.after(known);
    Some(SourcePosition { start: now.start, end: now.end, epoch: now.epoch })
}

fn refused(partition: &OwnPartition, request: &Request, refusal: Refusal) -> Outcome {
    let diverged = refusal.expected.filter(|_| refusal.reason == Reason::Diverged);
    let error = ApiError::new(errors::refusal_code(refusal.reason), refusal.text);
    let policy = partition.policy();
    tracing::debug!(topic = partition.topic().name, partition = policy.partition, %error, "request refused");
    let tag = tag(partition, request, diverged);
    Outcome { result: Err(Refused { error, batch: refusal.batch }), tag, failed: false }
}

fn poisoned(partition: &OwnPartition, id: PartitionId, request: &Request, stamp: Stamp) -> Outcome {
    let topic = &partition.topic().name;
    let Stamp { digest, generation } = stamp;
    tracing::error!(
        topic,
        partition = id.index,
        module = partition.topic().settings.module,
        %digest,
        generation,
        "request refused: the module failed on it {MAX_FAILURES} times"
    );
    let text = format!(
        "the module failed on these batches {MAX_FAILURES} times, topic=`{topic}`, partition=`{}`",
        id.index
    );
    let error = ApiError::new(errors::poisoned_code(), text);
    Outcome { tag: tag(partition, request, None), ..Outcome::refused(error) }
}

fn module_failed(
    partition: &OwnPartition,
    request: &Request,
    batches: &[Incoming],
    failure: &Failure,
    stamp: Option<Stamp>,
) -> Outcome {
    let (topic, index) = (&partition.topic().name, partition.policy().partition);
    // Where the first batch was to go.
    let chosen = batches.first().filter(|_| partition.policy().exact);
    let offset =
        chosen.map_or_else(|| partition.log().position().end, |batch| batch.facts.header.base_offset);
    tracing::error!(
        topic,
        partition = index,
        offset,
        module = partition.topic().settings.module,
        digest = stamp.map(|stamp| tracing::field::display(stamp.digest)),
        generation = stamp.map(|stamp| stamp.generation),
        %failure,
        "module failure: nothing was written"
    );
    let text = format!("{failure}, topic=`{topic}`, partition=`{index}`");
    let error = ApiError::new(errors::failure_code(failure), text);
    Outcome { tag: tag(partition, request, None), failed: true, ..Outcome::refused(error) }
}

fn tag(partition: &OwnPartition, request: &Request, diverged: Option<i64>) -> Option<AnswerTag> {
    let position = partition.log().position();
    request.has_tag.then(|| AnswerTag {
        end: position.end,
        shown_epoch: position.shown_epoch,
        last_epoch: partition.last_epoch(),
        diverged,
    })
}
