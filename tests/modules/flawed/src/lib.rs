//! The module `exact-mirroring` with two flaws, for tests of hosts: one rule is forgotten, which scenarios and a shadow period
//! find; and it panics where no suite looks, so that only service shows it.

use verbatim_kit::{
    Batch, Callbacks, Description, EpochEntry, ExactMirroring, Membership, Policy, Position, ProducePath,
    Refusal, Replica, Request,
};

/// A producer whose batches make the module panic.
pub const PANICS_ON_PRODUCER: i64 = 0x0066_6c61_7765_6421;

/// All rules but R15: records without a key are taken on compacted topics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flawed;

verbatim_kit::module!(Flawed, membership);

impl ProducePath for Flawed {
    fn produce(
        &self,
        policy: &Policy,
        position: &Position,
        request: &Request,
        entries: &[EpochEntry],
        batches: &[Batch],
        callbacks: &mut dyn Callbacks,
    ) -> Result<(), Refusal> {
        for batch in batches {
            assert!(batch.header.producer_id != PANICS_ON_PRODUCER, "nobody thought of this producer");
        }
        let forgetful = Policy { compacted: false, ..policy.clone() };
        ExactMirroring.produce(&forgetful, position, request, entries, batches, callbacks)
    }

    fn describe(&self) -> Description {
        Description { name: "flawed".to_owned(), ..ExactMirroring.describe() }
    }
}

impl Membership for Flawed {
    fn may_join(&self, replica: &Replica, replica_end: i64, position: &Position) -> Result<(), String> {
        ExactMirroring.may_join(replica, replica_end, position)
    }
}
