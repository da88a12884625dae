//! How long clients are told to wait after the module failed on their requests: doubling, per client.
//!
//! Who throttles a client says so twice (KIP-219): in the answer's `throttle_time_ms`, and by [`Reply::muted`] with [`mute`] of
//! the same figure, so that the connection is not read from for as long as the client was told to wait. Of several reasons
//! to throttle the longest counts.
//!
//! [`Reply::muted`]: verbatim_wire::server::Reply::muted

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The first wait.
const FIRST_MS: u32 = verbatim_engine::FIRST_THROTTLE_MS;
/// Clients that are remembered; beyond that the memory is cleared, which only makes waits short again.
const CLIENTS_MAX: usize = 1_024;

/// Who is throttled: the peer's address and what it calls itself.
pub(crate) type Client<'a> = (IpAddr, &'a str);

/// For how long to mute the connection of a client that was told to wait so many milliseconds.
pub(crate) fn mute(throttle_ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(throttle_ms).unwrap_or(0))
}

/// Waits by client.
#[derive(Debug)]
pub(crate) struct Throttle {
    most_ms: i32,
    /// Clients are kept by their keyed hash: what they call themselves may be long.
    hasher: RandomState,
    waits: Mutex<HashMap<u64, i32>>,
}

impl Throttle {
    pub(crate) fn new(most_ms: i32) -> Self {
        Self { most_ms, hasher: RandomState::new(), waits: Mutex::default() }
    }

    /// The wait to tell `client` after a request on which the module failed, or did not; milliseconds.
    pub(crate) fn after(&self, client: Client<'_>, failed: bool) -> i32 {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if !failed {
            if !waits.is_empty() {
                waits.remove(&self.hasher.hash_one(client));
            }
            return 0;
        }
        let key = self.hasher.hash_one(client);
        if waits.len() >= CLIENTS_MAX && !waits.contains_key(&key) {
            waits.clear();
        }
        let wait = waits.entry(key).or_default();
        let first = i32::try_from(FIRST_MS).unwrap_or(i32::MAX).min(self.most_ms);
        *wait = wait.saturating_mul(2).clamp(first, self.most_ms);
        *wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most_and_end_with_a_request_that_went_well() {
        let throttle = Throttle::new(1_000);
        let client = |name| (IpAddr::from([127, 0, 0, 1]), name);
        let waits: Vec<i32> = (0..6).map(|_| throttle.after(client("a"), true)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(throttle.after(client("b"), true), 100);
        assert_eq!(throttle.after((IpAddr::from([127, 0, 0, 2]), "a"), true), 100);
        assert_eq!(throttle.after(client("a"), false), 0);
        assert_eq!(throttle.after(client("a"), true), 100);
    }

    #[test]
    fn the_memory_is_bounded() {
        let throttle = Throttle::new(1_000);
        for index in 0..3 * CLIENTS_MAX {
            throttle.after((IpAddr::from([127, 0, 0, 1]), &index.to_string()), true);
        }
        assert!(throttle.waits.lock().is_ok_and(|waits| waits.len() <= CLIENTS_MAX));
    }
}
