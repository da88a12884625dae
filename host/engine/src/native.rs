//! A policy that runs as plain Rust, without a sandbox: for tests, and as the yardstick of the component.

use verbatim_contract::{Batch, Description, Membership, Position, ProducePath, Replica};

use crate::stage::{Stage, TraceBudget};
use crate::{Call, Judge, Judged, NotJoined, Partition};

/// Judges by a policy that is compiled in. What it stages is verified as that of a module is.
#[derive(Debug)]
pub struct Native<R> {
    policy: R,
    description: Description,
    facts: Vec<Batch>,
    trace: TraceBudget,
}

impl<R: ProducePath + Membership> Native<R> {
    /// A judge of this policy.
    pub fn new(policy: R) -> Self {
        let description = policy.describe();
        Self { policy, description, facts: Vec::new(), trace: TraceBudget::default() }
    }
}

impl<P: Partition, R: ProducePath + Membership> Judge<P> for Native<R> {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn judge(&mut self, call: Call, partition: P) -> Judged<P> {
        let (policy, position, request) = (call.policy.clone(), call.position, call.request);
        let entries = call.entries.clone();
        self.facts.clear();
        self.facts.extend(call.batches.iter().map(|batch| batch.facts));
        let mut stage = Stage::new(call, partition, self.trace);
        let answer = self.policy.produce(&policy, &position, &request, &entries, &self.facts, &mut stage);
        self.trace = stage.trace_budget();
        stage.finish(Ok(answer))
    }

    fn may_join(
        &mut self,
        replica: &Replica,
        replica_end: i64,
        position: &Position,
    ) -> Result<(), NotJoined> {
        self.policy.may_join(replica, replica_end, position).map_err(NotJoined::Refused)
    }
}
