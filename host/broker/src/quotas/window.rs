//! What one client moved in the last seconds, as Kafka's `Rate` over `quota.window.num` = 11 samples of
//! `quota.window.size.seconds` = 1.

/// Samples of a window: ten full seconds and the one that runs.
const SAMPLES: usize = 11;
const SAMPLE_MS: u64 = 1_000;
/// The full seconds.
const FULL_S: u64 = 10;

/// The bytes that a rate (bytes a second) has room for in an empty window.
pub(super) fn capacity(rate: u64) -> u64 {
    rate.saturating_mul(FULL_S)
}

/// Bytes by second. Times are milliseconds since some beginning; they do not run backwards.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// The second that runs, since the beginning.
    second: u64,
    /// Bytes by second, that of second n at n modulo their number.
    bytes: [u64; SAMPLES],
}

impl Window {
    /// Nothing was counted in the seconds that matter.
    pub(super) fn is_empty(&mut self, now_ms: u64) -> bool {
        self.go_on(now_ms);
        self.sum() == 0
    }

    /// The second in which something was counted or asked last.
    pub(super) fn latest(&self) -> u64 {
        self.second
    }

    /// Counts bytes now.
    pub(super) fn count(&mut self, now_ms: u64, bytes: u64) {
        self.go_on(now_ms);
        if let Some(sample) = self.running() {
            *sample = sample.saturating_add(bytes);
        }
    }

    /// Takes back bytes that were counted this second.
    pub(super) fn uncount(&mut self, bytes: u64) {
        if let Some(sample) = self.running() {
            *sample = sample.saturating_sub(bytes);
        }
    }

    /// Milliseconds until the bytes counted so far are no more than the rate (bytes a second) allows, at least one if they
    /// are now; 0 if they are not. Kafka's (observed - bound) / bound * window, rounded up.
    pub(super) fn wait_ms(&mut self, now_ms: u64, rate: u64) -> i32 {
        self.go_on(now_ms);
        let window_ms = FULL_S.saturating_mul(SAMPLE_MS).saturating_add(now_ms % SAMPLE_MS);
        let needed_ms =
            u128::from(self.sum()).saturating_mul(u128::from(SAMPLE_MS)).div_ceil(u128::from(rate.max(1)));
        i32::try_from(needed_ms.saturating_sub(u128::from(window_ms))).unwrap_or(i32::MAX)
    }

    fn sum(&self) -> u64 {
        self.bytes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Forgets the seconds that are over.
    fn go_on(&mut self, now_ms: u64) {
        let now = now_ms / SAMPLE_MS;
        let passed = usize::try_from(now.saturating_sub(self.second)).unwrap_or(SAMPLES).min(SAMPLES);
        for _ in 0..passed {
            self.second = self.second.saturating_add(1);
            if let Some(sample) = self.running() {
                *sample = 0;
            }
        }
        self.second = self.second.max(now);
    }

    fn running(&mut self) -> Option<&mut u64> {
        let samples = u64::try_from(SAMPLES).unwrap_or(1);
        usize::try_from(self.second % samples).ok().and_then(|index| self.bytes.get_mut(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_waits_until_its_window_holds_no_more_than_its_rate_allows() {
        let mut window = Window::default();
        window.count(500, 10_500);
        assert_eq!(window.wait_ms(500, 1_000), 0);
        window.count(500, 1);
        assert_eq!(window.wait_ms(500, 1_000), 1);
        window.count(999, 9_500);
        // 20,001 bytes at 1,000 a second are 20.001 seconds, of which the window has 10.999.
        assert_eq!(window.wait_ms(999, 1_000), 9_002);
        assert_eq!(window.wait_ms(999, 2_000), 0);
        // All of it counts until ten full seconds are over.
        assert_eq!(window.wait_ms(5_999, 1_000), 9_002);
        assert_eq!(window.wait_ms(10_999, 1_000), 9_002);
        assert_eq!(window.wait_ms(11_000, 1_000), 0);
        assert!(window.is_empty(11_000));
    }

    #[test]
    fn seconds_are_forgotten_one_by_one() {
        let mut window = Window::default();
        for second in 0..11 {
            window.count(second * 1_000, 100);
        }
        for second in 11..=21 {
            assert_eq!(window.sum(), 100 * (22 - second), "{second}");
            window.go_on(second * 1_000);
        }
        assert!(window.is_empty(21_000));
        // A long pause.
        window.count(22_000, 7);
        assert!(window.is_empty(u64::MAX));
    }

    #[test]
    fn what_is_taken_back_does_not_count() {
        let mut window = Window::default();
        window.count(100, 50);
        window.uncount(50);
        assert!(window.is_empty(100));
    }

    #[test]
    fn extremes_wait_long_and_never_overflow() {
        let mut window = Window::default();
        window.count(0, u64::MAX);
        window.count(0, u64::MAX);
        assert_eq!(window.wait_ms(0, 1), i32::MAX);
        assert_eq!(window.wait_ms(0, 0), i32::MAX);
        assert_eq!(capacity(u64::MAX), u64::MAX);
        assert_eq!(window.wait_ms(u64::MAX, 1), 0);
    }
}
