//! Runs scenario files against any admission policy: native, component, somebody else's.
//!
//! A scenario says what a topic is set to, what its log holds, which requests come, and what must become of
//! each. The files are TOML, in `tests/conformance`; their format is described there, for authors of modules.
//! Each scenario runs against the engine's in-memory broker, so what is compared is what a broker would do:
//! placements, duplicates, the whole refusal, and the log afterwards.
//!
//! ```no_run
//! # fn judge() -> Box<dyn verbatim_engine::Judge<verbatim_engine::Memory>> { unimplemented!() }
//! let suite = verbatim_harness::load("tests/conformance".as_ref())?;
//! let report = verbatim_harness::run(&suite, judge().as_mut());
//! println!("{report}");
//! assert!(report.is_success());
//! # Ok::<(), verbatim_harness::LoadError>(())
//! ```

mod batch;
mod check;
mod format;
mod hex;
mod reason;
mod report;
mod run;
mod state;
mod suite;

pub use format::Mode;
pub use reason::reason_name;
pub use report::{Mismatch, Report};
pub use run::run;
pub use state::inflate;
pub use suite::{LoadError, Scenario, Suite, load};
