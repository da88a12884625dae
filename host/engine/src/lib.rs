//! Loads an admission module, calls it once per partition and request, and checks what it staged.
//!
//! 1. **Compile.** An [`Engine`] turns a component into a [`Module`]: one that was checked against the contract in `wit/`,
//!    that starts, and that says what it is.
//! 2. **Instantiate.** Each append thread gets an [`Instance`], which is a [`Judge`]. [`Native`] is one too, for a policy
//!    that is compiled in.
//! 3. **Judge.** A broker implements [`Partition`] for its log, fills a [`Call`] for each partition of a produce request,
//!    and hands both to the judge. Back come the partition and a [`Plan`], which says what to cut, which leader epochs to
//!    note and which bytes to append; or [`Denied`], which [`denied_code`] turns into a Kafka error code. A plan exists only
//!    for a request whose result was verified on this side ([`Invariant`]), whatever the module says.
//! 4. **Apply.** That is the broker's own: only it knows what a failed write means. [`Plan`] says in which order;
//!    [`Memory::apply`] is all of it without a disk, and [`contract::EpochHistory`] does the epochs for any broker.
//! 5. **Answer.** [`Plan::base_offset`], or the error code with [`Denied`]'s text. The exact-produce tag of the answer
//!    (`docs/TAG.md`) is filled from where the log stands, and from [`contract::Refusal::expected`] where the reason is
//!    `Diverged`.
//!
//! A broker depends on this crate and on `verbatim-batch`; on `verbatim-artifact` too if it wants `exact-mirroring` built
//! along, else it loads any module's file. Judges are called synchronously and not shared: one for each thread that appends.
//!
//! A module can neither stop the host nor grow it: time ([`Failure::Deadline`]), memory ([`Limits`]) and what it hands over
//! are bounded, and when it fails only its own store goes. [`Poison`] keeps count of requests that a module fails on.
//!
//! [`Memory`] is a whole broker in memory, and the example of how the parts go together:
//!
//! ```
//! use bytes::Bytes;
//! use verbatim_batch::{BatchBuilder, NewRecord};
//! use verbatim_engine::contract::{Framing, Policy, Request};
//! use verbatim_engine::{Memory, Native};
//! use verbatim_policy::ExactMirroring;
//!
//! # let policy = Policy { exact: true, rewind_truncate: false, validate_records: false, may_rewrite: false,
//! #     compacted: false, log_append_time: false, max_message_bytes: 1 << 20, segment_bytes: 1 << 30,
//! #     before_max_ms: i64::MAX, after_max_ms: i64::MAX, min_insync: 1, topic_id: (0, 1), partition: 0,
//! #     config_generation: 0 };
//! # let request = Request { now_ms: 0, acks: -1, api_version: 9, transactional: false, framing: Framing::Complete,
//! #     has_tag: true, source_topic_matches: true, expected_end: 0, epoch_before: -1, source_start: 0, source_end: 101,
//! #     source_epoch: 5, end_to: None, truncate_to: None };
//! let batch = BatchBuilder::new(100).leader_epoch(5).record(NewRecord::new(0, 1_700_000_000_000).value(b"hello"));
//! let records = Bytes::from(batch.build()?);
//!
//! let mut judge = Native::new(ExactMirroring);
//! let (partition, verdict) = Memory::new(policy).produce(&mut judge, request, vec![], &records);
//! assert_eq!(verdict?.base_offset(), Some(100));
//! assert_eq!((partition.end, partition.shown_epoch), (101, 5));
//! assert_eq!(partition.stored.bytes(), records);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call;
mod component;
mod digest;
mod failure;
mod judge;
mod labels;
mod memory;
mod native;
mod partition;
mod plan;
mod poison;
mod records;
mod refusal_code;
mod stage;
mod swap;
mod verify;

pub use verbatim_contract as contract;

pub use call::{Call, Incoming, MAX_BATCHES};
pub use component::{
    CONTRACT_VERSION, Engine, Inspection, Instance, Limits, LoadError, MAX_MODULE_LEN, Module,
};
pub use digest::Digest;
pub use failure::{Broken, Denied, Failure, Invariant};
pub use judge::{Judge, Judged, NotJoined, may_join};
pub use labels::{FAILURE_LABELS, REASON_LABELS, failure_place, reason_label, reason_place};
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
pub use swap::{
    Bound, Cause, Counts, Difference, Event, Follower, Generation, MAX_DIFFERENCES, MAX_HISTORY, MAX_PROBES,
    MAX_QUEUED_BYTES, MAX_TAPE_LEN, NoRollback, ROLLBACK_WINDOW, Recorded, Replay, RolledBack, Said, Shadow,
    ShadowEnd, ShadowError, ShadowReport, Slot, SlotSettings, Stamp, TIME_BOUNDS_NS, Tape, Times, Witness,
};
