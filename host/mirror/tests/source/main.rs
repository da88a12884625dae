//! Source access against scripted brokers: who is asked what, what a fetcher makes of each answer, and what it never does.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod brokers;
mod ends;
mod fetching;
mod log;
mod moves;
mod odd;
mod property;
mod questions;
#[path = "../../../wire/tests/exact_producer/random.rs"]
mod random;
mod verifying;

use std::time::Duration;

use verbatim_mirror::cluster::{Cluster, ClusterConfig, Partition};
use verbatim_mirror::fetch::{FetchConfig, Fetcher, Followed, Piece, Place, Stop};
use verbatim_wire::client::ClientConfig;

use brokers::Brokers;

const TOPIC: &str = "t";

fn partition(index: i32) -> Partition {
    Partition { topic: TOPIC.to_owned(), index }
}

/// A cluster of these brokers, with short pauses.
fn cluster(brokers: &Brokers) -> Cluster {
    Cluster::new(ClusterConfig {
        client: ClientConfig { answer_max: Duration::from_secs(20), ..ClientConfig::default() },
        attempts_max: 12,
        pause_min: Duration::from_millis(2),
        pause_max: Duration::from_millis(100),
        ..ClusterConfig::new(brokers.addresses())
    })
}

fn fetch_config() -> FetchConfig {
    FetchConfig {
        wait_max: Duration::from_millis(200),
        answer_bytes_max: 64 * 1024,
        partition_bytes_max: 16 * 1024,
        buffered_bytes_max: 1024 * 1024,
    }
}

fn fetcher(brokers: &Brokers) -> Fetcher {
    Fetcher::start(cluster(brokers), fetch_config())
}

/// A reader that has nothing, at this offset.
fn place(offset: i64) -> Place {
    Place { offset, last_epoch: -1 }
}

/// The next piece that holds batches.
async fn data(followed: &mut Followed) -> Piece {
    loop {
        let piece = followed.next().await.unwrap();
        if !piece.batches.is_empty() {
            return piece;
        }
    }
}

/// The next stop, whatever pieces come before it.
async fn stop(followed: &mut Followed) -> Stop {
    loop {
        if let Err(stop) = followed.next().await {
            return stop;
        }
    }
}

/// Everything up to this offset, as one run of bytes.
async fn read_to(followed: &mut Followed, end: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = i64::MIN;
    while at < end {
        let piece = data(followed).await;
        let last = verbatim_batch::frames(&piece.batches).last().unwrap().header().unwrap();
        at = last.next_offset().unwrap();
        bytes.extend_from_slice(&piece.batches);
    }
    bytes
}
