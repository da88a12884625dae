//! Loads an admission module, calls it once per partition and request, and checks what it staged.
//!
//! A broker that wants produce-at-offset implements [`Partition`] for its log, fills a [`Call`] for each partition of a
//! produce request, and hands both to a [`Judge`]. What comes back is a [`Plan`], which says in which order to cut, note
//! leader epochs and append, or [`Denied`], which [`refusal_code`] turns into a Kafka error code. A plan exists only for
//! a request whose result was verified on this side, whatever the module says.
//!
//! [`Memory`] is a whole broker in memory and the example of how the parts go together.

mod call;
mod component;
mod digest;
mod failure;
mod judge;
mod memory;
mod native;
mod partition;
mod plan;
mod poison;
mod records;
mod refusal_code;
mod stage;
mod verify;

pub use verbatim_contract as contract;

pub use call::{Call, Incoming, MAX_BATCHES};
pub use component::{
    CONTRACT_VERSION, Engine, Inspection, Instance, Limits, LoadError, MAX_MODULE_LEN, Module,
};
pub use digest::Digest;
pub use failure::{Broken, Denied, Failure, Invariant};
pub use judge::{Judge, Judged, NotJoined, may_join};
pub use memory::{Aborted, Memory, Producers, Stored};
pub use native::Native;
pub use partition::Partition;
pub use plan::{Duplicate, Placed, Plan, Source};
pub use poison::{
    FIRST_THROTTLE_MS, Key as PoisonKey, MAX_FAILURES, MAX_REMEMBERED, MAX_THROTTLE_MS, Poison,
};
pub use records::{Inflate, RecordReader};
pub use refusal_code::{Code, denied_code, failure_code, poisoned_code, refusal_code};
pub use stage::{MAX_KEY_LEN, MAX_PIECE_LEN, MAX_TRACE_LEN, MAX_TRACE_LINES};
