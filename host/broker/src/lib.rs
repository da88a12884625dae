//! The broker front end: one file per API key; produce path from wire to engine to log; topics.
//!
//! [`Broker::start`] opens a data folder, starts the append threads, binds the address and serves. A request's way:
//! `api/` decodes what the wire hands over; `produce` judges and applies on the partition's append thread (`append`), which
//! answers after one flush for all that waited; `fetch` reads beside it. `groups` knows who reads what, and keeps offsets. `topics` and `promotion` change what there is,
//! through the `catalogue`. Modules come in through [`Judges`], so that a broker can be tested without a sandbox.

mod api;
mod append;
mod broker;
mod catalogue;
mod config;
mod errors;
mod fetch;
mod groups;
mod judges;
pub mod metrics;
mod module_keys;
mod partition;
mod produce;
mod promotion;
pub mod properties;
mod quotas;
mod retention;
mod room;
mod sessions;
mod settings;
mod shared;
mod throttle;
mod topic_id;
mod topics;

pub use broker::{Broker, StartError};
pub use catalogue::CatalogueError;
pub use config::{Config, FlushPolicy, Limits};
pub use judges::{Choosing, Judges, NativeJudges};
pub use partition::OwnPartition;
pub use topic_id::{format as format_topic_id, parse as parse_topic_id};
