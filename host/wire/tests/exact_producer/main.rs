//! The exact producer against a model host: what it refuses, how it goes on after faults, and what it leaves to its caller.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod align;
mod faults;
mod model;
mod random;
mod refusals;
mod source;
mod stops;
mod work;

use std::net::SocketAddr;
use std::time::Duration;

use verbatim_wire::client::ClientConfig;
use verbatim_wire::exact_producer::{Config, Retry};

/// A producer's settings for a host that fails often.
fn config(address: SocketAddr) -> Config {
    Config {
        retry: Retry {
            attempts_max: 1_000,
            pause_min: Duration::from_millis(1),
            pause_max: Duration::from_millis(4),
        },
        client: ClientConfig { answer_max: Duration::from_secs(20), ..ClientConfig::default() },
        ..Config::new(address)
    }
}
