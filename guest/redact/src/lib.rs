//! The module `redact`: masks or drops records by key, header or JSON field, as its README says.
//!
//! Every rule of `exact-mirroring` is judged first. Then each batch that would be appended is read, one at a time, and
//! handed back by `rewrite` if a record in it is to be masked or dropped, else appended as it came. What is left keeps
//! offset, leader epoch and timestamp: a batch looks as if a compaction had been there.

mod batch;
mod held;
mod json;
mod names;
mod paths;
mod rules;

use verbatim_kit::{
    Again, Batch, Callbacks, Configuration, Description, EpochEntry, ExactMirroring, Membership, Placement,
    Policy, Position, ProducePath, Reason, Refusal, Replica, Request, description, refuse,
};

use batch::Redacted;
use held::Held;
use rules::Rules;

/// The most bytes that a batch's records may inflate to where anything is to be redacted: a quarter of the memory that a host
/// gives a module, as the records lie there twice while they are redacted.
pub const BATCH_BYTES_MAX: usize = 16 << 20;

/// Kafka's code for what a topic's policy forbids.
const POLICY_VIOLATION: u16 = 44;

/// The policy of the module `redact`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redact;

verbatim_kit::module!(Redact, membership, configuration);

impl ProducePath for Redact {
    fn produce(
        &self,
        policy: &Policy,
        position: &Position,
        request: &Request,
        entries: &[EpochEntry],
        batches: &[Batch],
        log: &mut dyn Callbacks,
    ) -> Result<(), Refusal> {
        let Some(rules) = Rules::read(|key| log.config(key))? else {
            return ExactMirroring.produce(policy, position, request, entries, batches, log);
        };
        // Records are given once. On an exact topic they are validated here, as they are redacted: batch by batch, so that
        // one at a time lies in memory. A normal topic has one batch a request.
        let standard = Policy { validate_records: !policy.exact, ..policy.clone() };
        let mut held = Held::new(log, BATCH_BYTES_MAX);
        let verdict = ExactMirroring.produce(&standard, position, request, entries, batches, &mut held);
        held.too_large().map_or(verdict, |index| Err(batch::too_large(index)))?;
        let (mut log, placements) = held.into_parts();
        for (index, placement) in placements {
            let place = usize::try_from(index).ok().and_then(|index| batches.get(index));
            let Some(batch) = place else { continue };
            redact(&rules, policy, (index, batch), placement, &mut log)?;
        }
        Ok(())
    }

    fn describe(&self) -> Description {
        Description { rewrites: true, ..description!() }
    }
}

impl Membership for Redact {
    fn may_join(&self, replica: &Replica, replica_end: i64, position: &Position) -> Result<(), String> {
        ExactMirroring.may_join(replica, replica_end, position)
    }
}

impl Configuration for Redact {
    fn check(&self, keys: &[(String, String)]) -> Result<(), String> {
        rules::check(keys).map_err(|refusal| refusal.text)
    }
}

/// Settles one batch that is to be placed.
fn redact(
    rules: &Rules,
    policy: &Policy,
    (index, batch): (u32, &Batch),
    placement: Placement,
    log: &mut Again<'_>,
) -> Result<(), Refusal> {
    let is_control = batch.header.attributes.is_control();
    if batch.header.record_count == 0 || (is_control && !policy.validate_records) {
        log.append(index, placement);
        return Ok(());
    }
    let plain = log.take(index, BATCH_BYTES_MAX)?;
    let redacted = if is_control {
        batch::validate(index, batch, &plain)?;
        Redacted::Untouched
    } else {
        batch::redact(rules, index, batch, &plain)?
    };
    match redacted {
        Redacted::Untouched => log.append(index, placement),
        Redacted::Records { .. } if !policy.may_rewrite => return Err(may_not_rewrite(index)),
        Redacted::Records { records, max_timestamp } => {
            let largest = max_timestamp.filter(|_| !placement.log_append_time);
            let max_timestamp = largest.unwrap_or(placement.max_timestamp);
            log.rewrite(index, Placement { max_timestamp, ..placement }, records);
        }
    }
    Ok(())
}

fn may_not_rewrite(index: u32) -> Refusal {
    let expectation =
        "the batch has records to be redacted, which the topic must have allowed as it was created";
    let refusal = refuse(Reason::Other(POLICY_VIOLATION), expectation, "produce.at.offset.rewrite", "refuse");
    refusal.of_batch(index)
}
