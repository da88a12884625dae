//! Tests any admission policy: native, component, somebody else's.
//!
//! Three suites come with it ([`Shipped`]): *contract*, which any policy passes, *kafka*, which is every rule of this
//! project, and *kip-320*, which is those about leader epochs. [`assert_passes`] holds a module to them in a test of one's
//! own; [`Shipped::run`] gives the [`Report`] instead, which shows as text, as [JUnit's XML](junit()), or by serde.
//!
//! A module that judges otherwise on purpose has scenarios of its own: what a topic is set to, what its log holds, which
//! requests come, and what must become of each. The files are TOML, as in `tests/conformance`, where their format is
//! described. Each scenario runs against the engine's in-memory broker, so what is compared is what a broker would do:
//! placements, duplicates, the whole refusal, and the log afterwards.
//!
//! ```no_run
//! use verbatim_harness::{Subject, load, run};
//!
//! let module = Subject::component(&std::fs::read("my-module.wasm")?)?;
//! let report = run(&load("my-scenarios".as_ref())?, module.judge()?.as_mut());
//! println!("{report}");
//! assert!(report.is_success());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`random`] makes topics and requests to compare two policies on, and [`bench()`] measures what judging costs.

mod batch;
mod bench;
mod check;
mod contract;
mod format;
mod hex;
mod junit;
pub mod random;
mod reason;
mod report;
mod run;
mod shipped;
mod state;
mod subject;
mod suite;

pub use bench::{BENCH_RECORDS, Measured, Timing, bench};
pub use contract::{DEFAULT_SEED, contract};
pub use format::Mode;
pub use junit::junit;
pub use reason::reason_name;
pub use report::{Difference, LeftOut, Outcome, Report};
pub use run::run;
pub use shipped::{Shipped, assert_passes};
pub use state::{compress, inflate};
pub use subject::Subject;
pub use suite::{LoadError, Scenario, Suite, load};
