//! The contract of `wit/` as plain Rust types, without WebAssembly.
//!
//! A broker hands a module what every batch needs in one call ([`Policy`], [`Position`], [`Request`], epoch entries and
//! [`Batch`] facts); the module asks back through [`Callbacks`] for what is rare and settles each batch there. The same
//! types serve both sides: inside the module they are filled from the bindings, in the engine they are turned into them,
//! and a policy compiled natively uses them as they are. Each side converts in one file, naming every field.
#![no_std]

extern crate alloc;

mod callbacks;
mod epochs;
mod facts;
mod producer;
mod refusal;

pub use callbacks::{
    Callbacks, Comparison, Configuration, CutPreview, Description, Membership, Placement, ProducePath,
    Replica, Unreadable,
};
pub use epochs::{EpochAnswer, EpochEntry, EpochHistory};
pub use facts::{Batch, Framing, Policy, Position, Request};
pub use producer::{MAX_PRODUCER_BATCHES, ProducerBatch, ProducerLast, ProducerState};
pub use refusal::{MAX_TEXT_LEN, Reason, Refusal};
