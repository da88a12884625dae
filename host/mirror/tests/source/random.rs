//! Random numbers that one printed seed replays (SplitMix64).

use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// Seeded from `VERBATIM_SEED`, else from the clock; says so.
    pub(crate) fn announced(test: &str) -> Self {
        let clock = || u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos());
        let seed = std::env::var("VERBATIM_SEED").map_or_else(|_| clock(), |seed| seed.parse().unwrap());
        println!("{test}: replay with VERBATIM_SEED={seed}");
        Self(seed)
    }

    /// Another generator, for another thread.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.number())
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.number() % u64::try_from(bound).unwrap()).unwrap()
    }

    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
