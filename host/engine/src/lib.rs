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
//! along, else it loads any module's file, such as `verbatim module export exact-mirroring -o FILE` writes. Judges are called
//! synchronously and not shared: one for each thread that appends.
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
//!
//! # Swapping
//!
//! A [`Slot`] is a named place for a module; [`Slot::follower`] gives each append thread its judge, a [`Follower`], which
//! judges by whatever is in service as a call begins. [`Slot::switch`] takes another module into service: no call is lost, none
//! is judged twice, and once it returned every call that begins is judged by the new one.
//!
//! ```
//! use verbatim_engine::{Bound, Cause, Engine, Limits, Memory, Module, Slot};
//! # use verbatim_batch::{BatchBuilder, NewRecord};
//! # use verbatim_engine::contract::{Framing, Policy, Request};
//! # let policy = Policy { exact: true, rewind_truncate: false, validate_records: false, may_rewrite: false,
//! #     compacted: false, log_append_time: false, max_message_bytes: 1 << 20, segment_bytes: 1 << 30,
//! #     before_max_ms: i64::MAX, after_max_ms: i64::MAX, min_insync: 1, topic_id: (0, 1), partition: 0,
//! #     config_generation: 0 };
//! # let request = Request { now_ms: 0, acks: -1, api_version: 9, transactional: false, framing: Framing::Complete,
//! #     has_tag: true, source_topic_matches: true, expected_end: 0, epoch_before: -1, source_start: 0, source_end: 101,
//! #     source_epoch: 5, end_to: None, truncate_to: None };
//! # let batch = BatchBuilder::new(100).leader_epoch(5).record(NewRecord::new(0, 1_700_000_000_000).value(b"hello"));
//! # let records = bytes::Bytes::from(batch.build()?);
//! # let (first_file, second_file) = (verbatim_artifact::exact_mirroring()?, verbatim_artifact::hostile()?);
//!
//! let engine = Engine::new(Limits::default())?;
//! let slot = Slot::new("policy", Module::load(&engine, first_file)?);
//! let mut judge = slot.follower();
//! let (partition, verdict) = Memory::new(policy.clone()).produce(&mut judge, request, vec![], &records);
//! verdict?;
//!
//! // The candidate is compiled and checked here, beside those who judge.
//! let candidate = Module::load(&engine, second_file)?;
//! // It may judge live calls for a while, without effect.
//! let shadow = slot.begin_shadow(candidate.clone(), Bound::Requests(1), 16)?;
//! let (partition, verdict) = Memory::new(policy.clone()).produce(&mut judge, request, vec![], &records);
//! let report = shadow.wait();
//! assert_eq!((report.judged, report.different), (1, 0), "{:?}", report.differences);
//!
//! let generation = slot.switch(candidate, Cause::Swap);
//! let (partition, verdict) = Memory::new(policy).produce(&mut judge, request, vec![], &records);
//! verdict?;
//! assert_eq!((generation.number(), generation.counts().calls), (2, 1));
//! slot.roll_back("second thoughts")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - **Checked** is what [`Module::load`] checks. Which rules a candidate must keep, a host finds out by the scenarios of
//!   `verbatim-harness`, or by its own, before it swaps. Nor does a slot know topics: that a candidate judges the kind of each topic
//!   that it is to serve, exact or normal, a host looks up in [`Inspection::description`]; calls of another kind are denied.
//! - **A shadow run** compares plans and refusals (not their words). A candidate's question that was not asked live has no
//!   answer, and its verdict counts as inconclusive; what is too much for its queue is dropped and counted. The calls in the
//!   queue keep the requests alive that their batches are slices of.
//! - **By itself** a slot goes back within [`ROLLBACK_WINDOW`] after a swap, once, when the new generation fails on three
//!   requests from two partitions that share no batch and that the one before judges without failing ([`Witness`]): each
//!   is judged again at once, in place, and what comes of that is dropped. A host hears of it by [`SlotSettings::observer`].
//! - **What is counted** of each generation, [`Generation::counts`] tells at any time.
//!
//! # What a module cannot do
//!
//! A module can neither stop the host nor grow it. Time: 2 ms of its thread's processor time, 1 ms more for each 32 KiB
//! handed over and 200 ns for each record in them, its start included ([`Failure::Deadline`]); what the host inflates and
//! compresses meanwhile does not count. Memory, tables, and what it hands over in one call: [`Limits`]. Lines for the log:
//! [`MAX_TRACE_LINES`] of [`MAX_TRACE_LEN`] bytes, and ten a second. When it fails, only its own store goes; the
//! partition comes back as it was, and the next call has a new instance. [`Poison`] keeps count of requests that a module
//! fails on, so that bad data cannot hold up a client for ever.

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
mod rewrite;
mod stage;
mod swap;
mod verify;

pub use verbatim_contract as contract;

pub use call::{Call, Incoming, MAX_BATCHES};
pub use component::{
    CONTRACT_VERSION, Engine, Inspection, Instance, Limits, LoadError, MAX_MODULE_LEN, Module,
};
pub use digest::Digest;
pub use failure::{Broken, Denied, Failure, Invariant, Misconfigured};
pub use judge::{Judge, Judged, NotJoined, may_join};
pub use labels::{FAILURE_LABELS, REASON_LABELS, failure_place, reason_label, reason_place};
pub use memory::{Aborted, Memory, Producers, Stored};
pub use native::Native;
pub use partition::Partition;
pub use plan::{Duplicate, Placed, Plan, Source};
pub use poison::{
    FIRST_THROTTLE_MS, Key as PoisonKey, MAX_FAILURES, MAX_REMEMBERED, MAX_THROTTLE_MS, Poison,
};
pub use records::{Compress, Inflate, RecordReader, plain_records};
pub use refusal_code::{Code, denied_code, failure_code, poisoned_code, refusal_code};
pub use rewrite::MAX_REWRITTEN_LEN;
pub use stage::{MAX_KEY_LEN, MAX_PIECE_LEN, MAX_TRACE_LEN, MAX_TRACE_LINES};
pub(crate) use swap::TopicId;
pub use swap::{
    Before, Bound, Cause, Counts, Difference, Event, Follower, Generation, MAX_DIFFERENCES, MAX_HISTORY,
    MAX_PROBES, MAX_QUEUED_BYTES, MAX_TAPE_LEN, NoRollback, ROLLBACK_WINDOW, Recorded, Replay, RolledBack,
    Said, Shadow, ShadowEnd, ShadowError, ShadowReport, Slot, SlotSettings, Stamp, TIME_BOUNDS_NS, TakenBack,
    Tape, Times, Witness,
};
