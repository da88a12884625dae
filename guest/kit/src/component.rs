//! A policy as a component: what [`module!`](crate::module) expands to calls these functions.

pub mod bindings;
mod convert;
mod imports;
mod panics;

use alloc::string::String;
use alloc::vec::Vec;

use verbatim_contract::{Configuration, Membership, ProducePath};

pub use bindings::exports::verbatim::produce::produce_path;
pub use bindings::verbatim::produce::types;
pub use bindings::with_configuration::exports::verbatim::produce::configuration;
pub use bindings::with_membership::exports::verbatim::produce::membership;

use imports::Imports;

/// The export `produce`.
///
/// # Errors
/// The policy's refusal.
pub fn produce(
    judge: &impl ProducePath,
    policy: types::Policy,
    position: types::Position,
    request: types::Request,
    entries: Vec<types::EpochEntry>,
    batches: Vec<types::Batch>,
) -> Result<(), types::Refusal> {
    panics::are_told();
    let entries: Vec<_> = entries.into_iter().map(convert::epoch_entry).collect();
    let batches: Vec<_> = batches.into_iter().map(convert::batch).collect();
    judge
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

/// The export `describe`.
pub fn describe(judge: &impl ProducePath) -> produce_path::Description {
    panics::are_told();
    convert::description(judge.describe())
}

/// The export `may-join`.
///
/// # Errors
/// The policy's reason.
pub fn may_join(
    judge: &impl Membership,
    replica: types::Replica,
    replica_end: i64,
    position: types::Position,
) -> Result<(), String> {
    panics::are_told();
    judge.may_join(&convert::replica(replica), replica_end, &convert::position(position))
}

/// The export `check`.
///
/// # Errors
/// The policy's reason.
pub fn check(judge: &impl Configuration, keys: &[(String, String)]) -> Result<(), String> {
    panics::are_told();
    judge.check(keys)
}
