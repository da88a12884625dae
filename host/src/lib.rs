//! Mirrors Kafka topics verbatim: the library facade and the `verbatim` command.
//!
//! What an embedder needs is re-exported under one roof: [`broker`] to run a host, [`engine`] to judge requests in a broker
//! of one's own, [`wire`] to speak to either, [`mirror`] to copy and read topics of any Kafka, [`log`] to read partition
//! folders, [`batch`] for the record format, [`harness`] to test and measure modules.
//! [`Modules`] holds compiled modules and gives a broker its judges.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use verbatim::Modules;
//! use verbatim::broker::{Broker, Config};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::new("data".into(), "127.0.0.1:9092".parse()?);
//! let modules = Arc::new(Modules::bundled("data".as_ref())?);
//! let broker = Broker::start(config, modules).await?;
//! println!("serves on {}", broker.local_addr());
//! broker.shutdown().await;
//! # Ok(())
//! # }
//! ```

pub mod modules;

pub use modules::{Modules, ModulesError};
pub use verbatim_batch as batch;
pub use verbatim_broker as broker;
pub use verbatim_compression as compression;
pub use verbatim_engine as engine;
pub use verbatim_harness as harness;
pub use verbatim_log as log;
pub use verbatim_mirror as mirror;
pub use verbatim_wire as wire;

/// This version of the software.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
