//! The judge that goes with a slot.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::{ArcSwap, Cache};
use verbatim_contract::{Description, Position, Replica};

use super::counters::Tally;
use super::shadow::Tap;
use super::slot::Service;
use super::{Event, Generation, Recorded, Slot, Stamp, Witness};
use crate::{Call, Denied, Failure, Instance, Judge, Judged, NotJoined, Partition};

/// Judges by whatever is in a slot's service: one atomic load a call tells whether that changed. Belongs to one thread, as any
/// judge; has an instance of its own. A new generation's first call makes the instance, from parts that are linked already.
pub struct Follower<P: Partition> {
    slot: Slot,
    service: Cache<Arc<ArcSwap<Service>>, Arc<Service>>,
    serving: Serving<P>,
    /// Of the generation before, once it was needed.
    former: Option<Serving<P>>,
}

/// A generation and this follower's instance of it.
struct Serving<P: Partition> {
    generation: Arc<Generation>,
    instance: Option<Instance<Recorded<P>>>,
    tally: Arc<Tally>,
}

impl<P: Partition> Follower<P> {
    pub(super) fn new(slot: Slot) -> Self {
        let serving = Serving::new(slot.current());
        Self { service: slot.watch(), slot, serving, former: None }
    }

    /// The slot that is followed.
    #[must_use]
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Looks what is in service. Gives who wants the call recorded.
    fn catch_up(&mut self) -> Option<Arc<Tap>> {
        let service = self.service.load();
        let tap = service.tap.clone();
        if service.generation.number() != self.serving.generation.number() {
            self.serving = Serving::new(Arc::clone(&service.generation));
            self.former = None;
        }
        tap
    }

    /// The module failed: is that because it is the new one?
    fn examine(&mut self, call: Call, partition: P, failure: &Failure) -> (Call, P) {
        let service = Arc::clone(self.service.load());
        let failing = &self.serving.generation;
        // It was swapped meanwhile, or has nothing to be compared with.
        if service.generation.number() != failing.number() || !failing.evidence().is_open() {
            return (call, partition);
        }
        let Some(before) = self.slot.fallback(&service) else { return (call, partition) };
        if !failing.evidence().begin(&call) {
            return (call, partition);
        }
        self.serving.tally.probed();
        let former = match self.former.take() {
            Some(former) if former.generation.number() == before.number() => former,
            _ => Serving::new(before),
        };
        let (former, Judged { call, partition, verdict }) = former.probe(call, partition);
        if !matches!(verdict, Err(Denied::Failed(_))) {
            self.testify(Witness::new(&call, failure.clone()), &former.generation);
        }
        self.former = Some(former);
        (call, partition)
    }

    /// Adds to the evidence, and takes the generation back if it is enough.
    fn testify(&self, witness: Witness, former: &Generation) {
        let failing = &self.serving.generation;
        let slot = self.slot.name().to_owned();
        let why = failing.evidence().add(witness.clone());
        self.slot.tell(&Event::Evidence { slot, generation: Arc::clone(failing), witness });
        if let Some(why) = why {
            self.slot.roll_back_from(failing, former, why);
        }
    }
}

impl<P: Partition> Judge<P> for Follower<P> {
    fn describe(&self) -> &Description {
        &self.serving.generation.module().inspect().description
    }

    fn judge(&mut self, call: Call, partition: P) -> Judged<P> {
        let tap = self.catch_up();
        let wanted = tap.as_ref().is_some_and(|tap| tap.wants(&call));
        let partition = if wanted { Recorded::recording(partition) } else { Recorded::plain(partition) };
        let Judged { call, partition, verdict } = self.serving.judge(call, partition);
        let (partition, tape) = partition.into_parts();
        if let (Some(tap), Some(tape)) = (tap, tape) {
            tap.offer(&call, *tape, &verdict);
        }
        let (call, partition) = match &verdict {
            Err(Denied::Failed(failure)) => self.examine(call, partition, failure),
            _ => (call, partition),
        };
        Judged { call, partition, verdict }
    }

    fn may_join(
        &mut self,
        replica: &Replica,
        replica_end: i64,
        position: &Position,
    ) -> Result<(), NotJoined> {
        self.catch_up();
        let joined = match self.serving.instance() {
            Ok(instance) => instance.may_join(replica, replica_end, position),
            Err(failure) => Err(failure.into()),
        };
        if let Err(NotJoined::Failed(failure)) = &joined {
            self.serving.tally.failed(failure);
        }
        joined
    }

    fn follow(&mut self) -> Option<Stamp> {
        self.catch_up();
        self.judged_by()
    }

    fn judged_by(&self) -> Option<Stamp> {
        Some(self.serving.generation.stamp())
    }
}

impl<P: Partition> Serving<P> {
    fn new(generation: Arc<Generation>) -> Self {
        let tally = generation.counters.open();
        Self { generation, instance: None, tally }
    }

    fn instance(&mut self) -> Result<&mut Instance<Recorded<P>>, Failure> {
        let instance = match self.instance.take() {
            Some(instance) => instance,
            None => self.generation.module().instance()?,
        };
        Ok(self.instance.insert(instance))
    }

    fn judge(&mut self, call: Call, partition: Recorded<P>) -> Judged<Recorded<P>> {
        let timed = self.tally.begin(call.batches.len());
        let instance = match self.instance() {
            Ok(instance) => instance,
            Err(failure) => {
                self.tally.failed(&failure);
                return Judged { call, partition, verdict: Err(Denied::Failed(failure)) };
            }
        };
        let since = timed.then(Instant::now);
        let judged = instance.judge(call, partition);
        let memory_bytes = instance.memory_bytes();
        if let Some(since) = since {
            self.tally.took(since.elapsed());
        }
        self.tally.memory(memory_bytes);
        self.tally.judged(&judged.verdict);
        judged
    }

    /// Judges a call that another generation failed on, and counts nothing. The partition comes back as it would have been.
    fn probe(mut self, call: Call, mut partition: P) -> (Self, Judged<P>) {
        partition.start_over();
        let judged = match self.instance() {
            Ok(instance) => instance.judge(call, Recorded::muted(partition)),
            Err(failure) => {
                Judged { call, partition: Recorded::muted(partition), verdict: Err(Denied::Failed(failure)) }
            }
        };
        let (partition, _) = judged.partition.into_parts();
        (self, Judged { call: judged.call, partition, verdict: judged.verdict })
    }
}

impl<P: Partition> std::fmt::Debug for Follower<P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Follower")
            .field("generation", &self.serving.generation)
            .finish_non_exhaustive()
    }
}
