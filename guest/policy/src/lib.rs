//! Every admission rule, normal and exact mode, in plain Rust.
//!
//! [`ExactMirroring`] judges one partition's part of a Produce request. It compiles natively and into the
//! module of the same name, and keeps no state. The two modes read top-down in `normal.rs` and `exact.rs`:
//! one line a rule, in the order in which rules are judged; each line leads to the file that holds that idea.
//! Rule numbers (R4, R19) are those of `docs/RULES.md`, which says what each rule is; numbers in brackets are Kafka
//! error codes.
#![no_std]

extern crate alloc;

mod case;
mod control;
mod epochs;
mod exact;
mod framing;
mod ground;
mod header;
mod history;
mod membership;
mod normal;
mod producers;
pub mod records;
mod refuse;
mod replicas;
mod request;
mod rewind;
mod stored;
mod tag;

use alloc::string::String;

use verbatim_contract::{
    Batch, Callbacks, Configuration, Description, EpochEntry, Membership, Policy, Position, ProducePath,
    Refusal, Replica, Request,
};

use crate::case::Case;

/// The most batches that an exact topic takes for a partition in one request (R12a).
pub const MAX_BATCHES: usize = 4096;

/// The largest leader epoch that is accepted (R27): a promotion needs one more.
pub const MAX_LEADER_EPOCH: i32 = i32::MAX - 1;

/// The policy of the module `exact-mirroring`: Apache Kafka's own rules for normal topics, and for exact ones
/// what a follower must take, made strict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactMirroring;

impl ProducePath for ExactMirroring {
    fn produce(
        &self,
        policy: &Policy,
        position: &Position,
        request: &Request,
        entries: &[EpochEntry],
        batches: &[Batch],
        callbacks: &mut dyn Callbacks,
    ) -> Result<(), Refusal> {
        let case = Case { policy, position, request, entries, batches };
        if policy.exact { exact::produce(&case, callbacks) } else { normal::produce(&case, callbacks) }
    }

    fn describe(&self) -> Description {
        Description {
            name: String::from("exact-mirroring"),
            version: String::from(env!("CARGO_PKG_VERSION")),
            supports_exact: true,
            supports_normal: true,
            rewrites: false,
        }
    }
}

impl Membership for ExactMirroring {
    fn may_join(&self, replica: &Replica, replica_end: i64, position: &Position) -> Result<(), String> {
        membership::may_join(replica, replica_end, position)
    }
}

/// It has no keys of its own.
impl Configuration for ExactMirroring {}
