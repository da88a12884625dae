//! What a module in Rust needs. One line makes a component of a policy:
//!
//! ```
//! use verbatim_kit::{
//!     Batch, Callbacks, Description, EpochEntry, ExactMirroring, Policy, Position, ProducePath, Reason, Refusal, Request,
//!     description, numbered, refuse,
//! };
//!
//! /// Kafka's rules, and one of our own before them: a batch holds one record.
//! struct OneRecord;
//!
//! impl ProducePath for OneRecord {
//!     fn produce(
//!         &self,
//!         policy: &Policy,
//!         position: &Position,
//!         request: &Request,
//!         entries: &[EpochEntry],
//!         batches: &[Batch],
//!         log: &mut dyn Callbacks,
//!     ) -> Result<(), Refusal> {
//!         for (index, batch) in numbered(batches) {
//!             let count = batch.header.record_count;
//!             if count > 1 {
//!                 let refusal = refuse(Reason::Other(87), "a batch must hold one record", "recordCount", count);
//!                 return Err(refusal.of_batch(index).expecting(1));
//!             }
//!         }
//!         ExactMirroring.produce(policy, position, request, entries, batches, log)
//!     }
//!
//!     fn describe(&self) -> Description {
//!         description!()
//!     }
//! }
//!
//! verbatim_kit::module!(OneRecord);
//!
//! // Tested as it is, without WebAssembly:
//! use verbatim_kit::testing::Call;
//! use verbatim_kit::batch::{BatchBuilder, NewRecord};
//!
//! let one = BatchBuilder::new(0).record(NewRecord::new(0, 0).value(b"a"));
//! let two = one.clone().record(NewRecord::new(1, 0).value(b"b"));
//! assert!(Call::normal().batch(&one.build()?).judge(&OneRecord).verdict.is_ok());
//! let refusal = Call::normal().batch(&two.build()?).judge(&OneRecord).verdict.unwrap_err();
//! assert_eq!(refusal.text, "a batch must hold one record, recordCount=`2`");
//! # Ok::<(), verbatim_kit::batch::BuildError>(())
//! ```
//!
//! [`ProducePath`] is all that there is to implement, [`Membership`] for a module that also decides who may join the in-sync
//! set, and [`Configuration`] for one that refuses wrong keys of its own as they are set. A rule that looks into records asks for them piece by piece ([`scan`], [`for_each_record`]); as a host gives
//! them only once, [`Again`] lets the rules behind it read them too.
//!
//! How a module is made, tested and given to a host stands in this folder's README.
#![no_std]

extern crate alloc;

mod again;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod component;
mod config;
mod export;
mod records;
mod refuse;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;

pub use verbatim_batch as batch;
pub use verbatim_contract::*;
pub use verbatim_policy::ExactMirroring;
pub use verbatim_policy::records::{Fault, RisingOffsets, refusal as malformed_records};

pub use again::Again;
pub use config::{items, list, setting};
pub use records::{for_each_record, plain_records, reserve_within, scan};
pub use refuse::{numbered, refuse};
