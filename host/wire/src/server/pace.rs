//! How fast a peer must be inside a frame.

use std::time::Duration;

use tokio::time::Instant;

/// The least that moves in a stall time, unless the frame is done before.
const STEP_BYTES: usize = 16 * 1024;
/// The most stall times that a frame takes.
const STEPS: usize = 16;

/// Until when the next step of a frame must be done.
#[derive(Debug)]
pub(super) struct Pace {
    stall: Duration,
    step: usize,
    left: usize,
    due: Instant,
}

impl Pace {
    /// A frame of `length` bytes begins now.
    pub(super) fn new(stall: Duration, length: usize) -> Self {
        let step = length.div_ceil(STEPS).max(STEP_BYTES);
        Self { stall, step, left: step, due: after(stall) }
    }

    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// So many bytes moved.
    pub(super) fn moved(&mut self, bytes: usize) {
        match self.left.checked_sub(bytes) {
            Some(left) if left > 0 => self.left = left,
            _ => (self.left, self.due) = (self.step, after(self.stall)),
        }
    }

    /// The peer was made to wait since then: that time is not its own.
    pub(super) fn waited(&mut self, since: Instant) {
        self.due = self.due.checked_add(since.elapsed()).unwrap_or(self.due);
    }
}

/// So long from now; a century if that is beyond what a clock can say.
pub(super) fn after(wait: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
    let now = Instant::now();
    now.checked_add(wait.min(CENTURY)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_step_and_not_a_byte_wins_time() {
        let stall = Duration::from_secs(30);
        for (length, step) in [(10, STEP_BYTES), (1 << 20, 1 << 16), (1 << 20 | 1, (1 << 16) + 1)] {
            let mut pace = Pace::new(stall, length);
            let first = pace.due();
            tokio::time::advance(Duration::from_secs(1)).await;
            pace.moved(step - 1);
            assert_eq!(pace.due(), first, "{length}");
            pace.moved(1);
            assert_eq!(pace.due(), first + Duration::from_secs(1), "{length}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_room_is_not_the_peers_fault() {
        let mut pace = Pace::new(Duration::from_secs(30), 10);
        let (first, since) = (pace.due(), Instant::now());
        tokio::time::advance(Duration::from_secs(7)).await;
        pace.waited(since);
        assert_eq!(pace.due(), first + Duration::from_secs(7));
        assert!(after(Duration::MAX) > Instant::now());
    }
}
