//! The `exact-mirroring` module: the rules of `verbatim-policy` behind the contract of `wit/`.
//!
//! There is nothing here but bindings, so on any other target than wasm32 this crate is empty.
#![cfg(target_arch = "wasm32")]

mod bindings;
mod callbacks;
mod convert;

use verbatim_contract::{Membership as _, ProducePath as _};
use verbatim_policy::ExactMirroring;

use bindings::exports::verbatim::produce::{membership, produce_path};
use bindings::verbatim::produce::types;
use callbacks::Imports;

/// What the host calls. It keeps no state.
struct Module;

impl produce_path::Guest for Module {
    fn produce(
        policy: types::Policy,
        position: types::Position,
        request: types::Request,
        entries: Vec<types::EpochEntry>,
        batches: Vec<types::Batch>,
    ) -> Result<(), types::Refusal> {
        let entries: Vec<_> = entries.into_iter().map(convert::epoch_entry).collect();
        let batches: Vec<_> = batches.into_iter().map(convert::batch).collect();
        ExactMirroring
            .produce(
                &convert::policy(policy),
                &convert::position(position),
                &convert::request(request),
                &entries,
                &batches,
                &mut Imports,
            )
            .map_err(convert::refusal)
    }

    fn describe() -> produce_path::Description {
        convert::description(ExactMirroring.describe())
    }
}

impl membership::Guest for Module {
    fn may_join(replica: types::Replica, replica_end: i64, position: types::Position) -> Result<(), String> {
        ExactMirroring.may_join(&convert::replica(replica), replica_end, &convert::position(position))
    }
}
