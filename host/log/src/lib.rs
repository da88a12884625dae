//! One partition's log on disk in Kafka's segment format, with epochs, producers, transactions and recovery.
//!
//! A [`Log`] is owned by one thread, which applies what a judged request asks for ([`Log::apply`]) and makes it durable
//! ([`Log::flush`]); any number of [`LogReader`]s read beside it. Where the folder's bytes mean what, what is durable
//! when, and how a start recovers is drawn in this folder's README.
//!
//! A partition's folder holds its segments (`.log`, `.index`, `.timeindex`, `.txnindex`, `.snapshot`, and `.received` where
//! digests of received batches are kept), `leader-epoch-checkpoint`, `partition.metadata`, `verbatim.facts` and
//! `verbatim.source`.
//!
//! What may be appended is judged elsewhere: the log takes batches as they are and only refuses what would make its own
//! files contradict themselves. [`folder`] holds what a whole data folder needs (its lock, its format version, checked
//! files), [`dump`] lists a partition folder without opening it.

pub mod dump;
pub mod folder;

mod aborted;
mod append;
mod checked;
mod commit;
mod compare;
mod config;
mod cut;
mod error;
mod facts;
mod index;
mod io;
mod log;
mod open;
mod parked;
mod producers;
mod reader;
mod received;
mod retain;
mod roll;
mod scan;
mod segment;
mod settle;
mod snapshot;
mod source;
mod together;
mod view;
mod walk;

pub use commit::{Commit, Placed, SourcePosition};
pub use config::{Config, Flush};
pub use error::{ApplyError, LogError, ReadError};
pub use io::{DiskIo, File, Io, Lock, read_full, write_all};
pub use log::{Log, Recovery};
pub use reader::{Fetched, Inflate, LogReader, TimestampHit};
pub use retain::{Reason, Removed, RemovedSegment, Retention};
pub use together::Together;
pub use view::{AbortedTransaction, View};
