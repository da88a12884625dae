//! Batches on which a module fails again and again: they must neither wedge a client nor stay hidden.

use std::collections::HashMap;
use std::collections::VecDeque;

use sha2::{Digest as _, Sha256};

use crate::{Call, Digest, Stamp};

/// How often a module may fail on the same request before it counts as poisoned data.
pub const MAX_FAILURES: u8 = 3;
/// How many requests are remembered; the oldest give way.
pub const MAX_REMEMBERED: usize = 1024;
/// A client is held back for this long after a first failure, milliseconds; twice as long after each further one.
pub const FIRST_THROTTLE_MS: u32 = 100;
/// A client is never held back for longer, milliseconds.
pub const MAX_THROTTLE_MS: u32 = 30_000;

/// Counts failures by generation, partition and the request's batches, so that a swap begins anew. One table serves a whole host; it holds no more than
/// [`MAX_REMEMBERED`] entries, so nobody can make it grow.
#[derive(Debug, Default)]
pub struct Poison {
    counts: HashMap<Key, u8>,
    oldest_first: VecDeque<Key>,
    throttle_ms: u32,
}

/// What failures are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    module: Stamp,
    topic_id: (u64, u64),
    partition: u32,
    batches: Digest,
}

impl Key {
    /// The key of a request that `module` failed on. It reads every byte of it: do this after a failure, or when
    /// [`Poison::is_empty`] is false.
    #[must_use]
    pub fn new(module: Stamp, call: &Call) -> Self {
        let mut batches = Sha256::new();
        for batch in &call.batches {
            batches.update(&batch.bytes);
        }
        let batches = Digest::from_bytes(batches.finalize().into());
        Self { module, topic_id: call.policy.topic_id, partition: call.policy.partition, batches }
    }
}

impl Poison {
    /// True while nothing failed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// True if the module failed on this request [`MAX_FAILURES`] times: refuse it and do not call the module.
    #[must_use]
    pub fn is_poisoned(&self, key: &Key) -> bool {
        self.counts.get(key).is_some_and(|&count| count >= MAX_FAILURES)
    }

    /// Counts a failure. Gives how long to hold the client back, in milliseconds.
    pub fn failed(&mut self, key: Key) -> u32 {
        if !self.counts.contains_key(&key) {
            while self.counts.len() >= MAX_REMEMBERED {
                let Some(oldest) = self.oldest_first.pop_front() else { break };
                self.counts.remove(&oldest);
            }
            self.oldest_first.push_back(key);
        }
        let count = self.counts.entry(key).or_insert(0);
        *count = count.saturating_add(1);
        self.throttle_ms = self.throttle_ms.saturating_mul(2).clamp(FIRST_THROTTLE_MS, MAX_THROTTLE_MS);
        self.throttle_ms
    }

    /// A request was judged: the next failure is held back for the shortest time again.
    pub fn judged(&mut self) {
        self.throttle_ms = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(module: u8, partition: u32, batches: u8) -> Key {
        let module = Stamp { digest: Digest::of(b"module"), generation: u64::from(module) };
        Key { module, topic_id: (1, 2), partition, batches: Digest::of(&[batches]) }
    }

    #[test]
    fn the_third_failure_poisons_one_request_for_one_generation() {
        let mut poison = Poison::default();
        let throttles = [(); 3].map(|()| {
            assert!(!poison.is_poisoned(&key(1, 0, 1)));
            poison.failed(key(1, 0, 1))
        });
        assert_eq!(throttles, [100, 200, 400]);
        assert!(poison.is_poisoned(&key(1, 0, 1)));
        for other in [key(2, 0, 1), key(1, 1, 1), key(1, 0, 2)] {
            assert!(!poison.is_poisoned(&other));
        }
        poison.judged();
        assert_eq!(poison.failed(key(1, 0, 2)), FIRST_THROTTLE_MS);
    }

    #[test]
    fn the_table_and_the_throttle_are_bounded() {
        let mut poison = Poison::default();
        let longest = (0..5000).map(|partition| poison.failed(key(1, partition, 1))).max();
        assert_eq!(longest, Some(MAX_THROTTLE_MS));
        assert_eq!((poison.counts.len(), poison.oldest_first.len()), (MAX_REMEMBERED, MAX_REMEMBERED));
        poison.failed(key(1, 4999, 1));
        assert_eq!(poison.counts.get(&key(1, 4999, 1)), Some(&2), "the newest are the ones that are kept");
        assert_eq!(poison.counts.get(&key(1, 0, 1)), None);
    }
}
