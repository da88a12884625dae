//! How long is waited before something that failed is tried again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// Failures in a row, and the pauses between them: from 100 ms doubling to 30 s, each shortened by up to a quarter at random,
/// so that what failed together is not tried again together.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// One failure more: the pause after it.
    pub(super) fn fail(&mut self) -> Duration {
        let longest = FIRST.saturating_mul(1_u32 << self.failures.min(20)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let quarter = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX) / 4;
        let random = RandomState::new().build_hasher().finish();
        let less = random.checked_rem(quarter.saturating_add(1)).unwrap_or(0);
        longest.saturating_sub(Duration::from_millis(less))
    }

    /// Something came of it.
    pub(super) fn succeed(&mut self) {
        self.failures = 0;
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_begin_again_after_success() {
        let mut backoff = Backoff::default();
        let mut longest = FIRST;
        for _ in 0..40 {
            let pause = backoff.fail();
            assert!(pause <= longest && pause >= longest * 3 / 4, "{pause:?} of {longest:?}");
            longest = (longest * 2).min(LONGEST);
        }
        assert_eq!(backoff.failures(), 40);
        backoff.succeed();
        assert!(backoff.fail() <= FIRST);
    }
}
