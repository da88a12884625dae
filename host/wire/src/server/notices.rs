//! Lines about peers, so few that a flood of peers does not become a flood of lines.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Lines that may come at once.
const BURST: u32 = 20;
/// After that, one in this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// Who may write a line now.
#[derive(Debug)]
pub(super) struct Notices(Mutex<Said>);

#[derive(Debug)]
struct Said {
    left: u32,
    counted: Instant,
    unsaid: u64,
}

impl Notices {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Said { left: BURST, counted: Instant::now(), unsaid: 0 }))
    }

    /// If a line may be written: with how many that were not written before it, if any.
    pub(super) fn next(&self) -> Option<Option<u64>> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = said.counted.elapsed().as_secs() / INTERVAL.as_secs().max(1);
        if seconds > 0 {
            said.left = said.left.saturating_add(u32::try_from(seconds).unwrap_or(BURST)).min(BURST);
            said.counted = Instant::now();
        }
        let Some(left) = said.left.checked_sub(1) else {
            said.unsaid = said.unsaid.saturating_add(1);
            return None;
        };
        said.left = left;
        let unsaid = std::mem::take(&mut said.unsaid);
        Some((unsaid > 0).then_some(unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_told_by_its_number() {
        let notices = Notices::new();
        let said = (0..1_000).filter(|_| notices.next().is_some()).count();
        assert_eq!(said, 20);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(notices.next(), Some(Some(980)));
        assert_eq!(notices.next(), None);
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(notices.next(), Some(Some(1)));
        assert_eq!(notices.next(), Some(None));
    }
}
