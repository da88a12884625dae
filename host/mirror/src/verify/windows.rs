//! Which offsets a sample looks at.

use sha2::{Digest as _, Sha256};

use super::options::Sample;
use super::report::Range;
use crate::cluster::Partition;

/// Equal parts that a range is cut into, at most; each is looked at or not.
const PARTS_MAX: i64 = 1024;

/// The windows of a range that a sample looks at, at least one, in rising order.
pub(super) fn windows(sample: Sample, partition: &Partition, range: Range) -> Vec<Range> {
    let length = range.to.saturating_sub(range.from).max(0);
    let parts = length.min(PARTS_MAX);
    let width =
        length.checked_add(parts.saturating_sub(1)).and_then(|sum| sum.checked_div(parts)).unwrap_or(0);
    let part = |index: i64| {
        let from = range.from.saturating_add(index.saturating_mul(width));
        Range { from, to: from.saturating_add(width).min(range.to) }
    };
    let mut random = Random::new(sample.seed, partition);
    let chosen = (0..parts).map(part).filter(|part| part.from < part.to);
    let mut windows: Vec<Range> = Vec::new();
    for window in chosen.filter(|_| random.fraction() < sample.fraction) {
        match windows.last_mut() {
            Some(before) if before.to == window.from => before.to = window.to,
            _ => windows.push(window),
        }
    }
    if windows.is_empty() && length > 0 {
        let index = i64::try_from(random.number() >> 1).unwrap_or(0).checked_rem(parts).unwrap_or(0);
        // The last parts may be empty where the width was rounded up.
        windows.extend([part(index), part(0)].into_iter().find(|part| part.from < part.to));
    }
    windows
}

/// SplitMix64, seeded for each partition anew.
struct Random(u64);

impl Random {
    fn new(seed: u64, partition: &Partition) -> Self {
        let digest = Sha256::new().chain_update(seed.to_be_bytes()).chain_update(partition.to_string());
        let digest: [u8; 32] = digest.finalize().into();
        Self(digest.first_chunk().map_or(seed, |first| u64::from_be_bytes(*first)))
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below 1.
    fn fraction(&mut self) -> f64 {
        let bits = u32::try_from(self.number() >> 32).unwrap_or(0);
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::testing::cases(256))]

        #[test]
        fn windows_rise_lie_in_the_range_and_follow_from_the_seed(
            seed in any::<u64>(), from in 0_i64..1_000_000, length in 0_i64..i64::MAX / 2, fraction in 0.0..1.0_f64,
        ) {
            let sample = Sample { fraction, seed };
            let partition = Partition { topic: "t".to_owned(), index: 1 };
            let range = Range { from, to: from + length };
            let chosen = windows(sample, &partition, range);
            prop_assert_eq!(chosen.is_empty(), length == 0);
            prop_assert!(chosen.iter().all(|one| one.from < one.to && one.from >= range.from && one.to <= range.to));
            prop_assert!(chosen.windows(2).all(|pair| pair[0].to < pair[1].from));
            prop_assert_eq!(&windows(sample, &partition, range), &chosen);
            let whole = windows(Sample { fraction: 1.0, seed }, &partition, range);
            prop_assert!(length == 0 || whole == [range]);
        }
    }
}
