//! What an exact producer is told about its broker, its memory and its patience.

use std::time::Duration;

use crate::client::ClientConfig;

/// Settings of an exact producer. All of its partitions share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Addresses (`host:port`) of the same host, tried in turn whenever a connection has to be made.
    pub bootstrap: Vec<String>,
    /// Produce requests sent and not answered, at least 1. A host reads no more than 64 ahead of its answers.
    pub in_flight_requests_max: usize,
    /// Bytes handed over and not settled, of all partitions together, counted in KiB and at least one for each write;
    /// beyond that [`ExactPartition::write`](super::ExactPartition::write) waits. One write that is larger than this goes
    /// alone. This is what bounds the producer's memory: about twice as much, since requests are copied to be framed.
    pub in_flight_bytes_max: usize,
    /// Bytes of batches in one request. A write is split at batches to fit, and a batch that is larger goes alone; the
    /// pieces of several partitions travel together as far as they fit.
    pub request_bytes_max: usize,
    /// What happens after a failure that may pass.
    pub retry: Retry,
    /// Client id, and how long connecting and answers may take. An answer that takes longer ends the connection.
    pub client: ClientConfig,
}

/// How often something that may pass is tried again, and how long is waited in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Failures in a row of one partition, with nothing acknowledged in between, after which its writes fail with
    /// [`ExactError::Unavailable`](super::ExactError::Unavailable).
    pub attempts_max: u32,
    /// The first pause; each further one in a row is twice as long.
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

impl Config {
    /// The defaults, for a host at this address: 16 requests, 32 MiB in flight, 1 MiB a request, and ten attempts with
    /// pauses from 50 ms to 5 s.
    pub fn new(address: impl ToString) -> Self {
        Self {
            bootstrap: vec![address.to_string()],
            in_flight_requests_max: 16,
            in_flight_bytes_max: 32 * 1024 * 1024,
            request_bytes_max: 1024 * 1024,
            retry: Retry::default(),
            client: ClientConfig::default(),
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts_max: 10, pause_min: Duration::from_millis(50), pause_max: Duration::from_secs(5) }
    }
}

impl Retry {
    /// The pause after so many failures in a row.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.pause_min.saturating_mul(1_u32 << doublings).min(self.pause_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let retry = Retry {
            attempts_max: 9,
            pause_min: Duration::from_millis(3),
            pause_max: Duration::from_millis(20),
        };
        let pauses: Vec<_> =
            [0, 1, 2, 3, 4, u32::MAX].map(|failures| retry.pause(failures).as_millis()).into();
        assert_eq!(pauses, [3, 3, 6, 12, 20, 20]);
    }
}
