//! Random numbers that one printed seed replays.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A generator (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator seeded from `VERBATIM_SEED`, else from the clock; says which seed it took.
    ///
    /// # Errors
    /// When `VERBATIM_SEED` is not a number.
    pub fn announced(test: &str) -> anyhow::Result<Self> {
        let seed = match std::env::var("VERBATIM_SEED") {
            Ok(text) => {
                text.parse().map_err(|_| anyhow::anyhow!("VERBATIM_SEED={text}: must be a number"))?
            }
            Err(_) => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| u64::from(now.subsec_nanos()))
            }
        };
        crate::announce(&format!("{test}: replay with VERBATIM_SEED={seed}"));
        Ok(Self { state: seed })
    }

    /// A generator of this seed, for a part of a test whose own seed came from an announced one.
    pub fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }

    /// A length of time from `least` milliseconds to below `bound` more.
    pub fn millis(&mut self, least: u64, bound: u64) -> Duration {
        Duration::from_millis(least.saturating_add(self.below(bound)))
    }

    /// Random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len.saturating_add(8));
        while bytes.len() < len {
            bytes.extend(self.number().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}
