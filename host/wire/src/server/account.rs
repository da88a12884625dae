//! The bytes that connections hold: each for itself, and all together.
//!
//! A connection's first [`FREE_BYTES`] are its own; they are part of what a connection costs. What it holds beyond them is
//! drawn from one budget, of which it gets no more than is left for the others: one greedy connection ends up with half
//! of it, two with a third each, and the next one always finds something.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::pace::after;

/// Bytes that every connection may hold without drawing on the budget.
pub(super) const FREE_BYTES: usize = 16 * 1024;
/// The first and the longest pause between two looks for room. A wake-up for each of many waiting connections whenever
/// room comes back would cost more than it is worth.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(32));

/// Why there is no room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoRoom {
    #[error("a request holds {bytes} bytes with all its elements, a connection may hold {limit}")]
    TooLarge { bytes: usize, limit: usize },
    #[error("no room for {bytes} bytes within {waited:?}: the budget of all connections is drawn")]
    Drawn { bytes: usize, waited: Duration },
}

/// What all connections may hold together.
#[derive(Debug)]
pub(super) struct Budget(Mutex<usize>);

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Mutex::new(bytes))
    }

    /// Takes so many bytes for a connection that holds `held`, unless it had more then than is left.
    fn take(&self, held: usize, bytes: usize) -> bool {
        let mut free = self.free();
        match free.checked_sub(bytes) {
            Some(left) if held.saturating_add(bytes) <= left => {
                *free = left;
                true
            }
            _ => false,
        }
    }

    pub(super) fn left(&self) -> usize {
        *self.free()
    }

    fn give(&self, bytes: usize) {
        let mut free = self.free();
        *free = free.saturating_add(bytes);
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one connection holds. Dropping it gives everything back.
#[derive(Debug)]
pub(super) struct Account {
    budget: Arc<Budget>,
    own_max: usize,
    holding: Mutex<Holding>,
    given: Notify,
}

#[derive(Debug, Default)]
struct Holding {
    own: usize,
    drawn: usize,
}

impl Account {
    pub(super) fn new(budget: Arc<Budget>, own_max: usize) -> Self {
        let own_max = own_max.saturating_add(FREE_BYTES);
        Self { budget, own_max, holding: Mutex::default(), given: Notify::new() }
    }

    /// Takes room for `bytes` more of a request that holds `already`. While the connection holds anything else, its answers
    /// make room and there is no hurry; if it holds nothing else, `wait` is how long others may take to.
    pub(super) async fn take(&self, bytes: usize, already: usize, wait: Duration) -> Result<(), NoRoom> {
        let whole = already.saturating_add(bytes);
        if whole > self.own_max {
            return Err(NoRoom::TooLarge { bytes: whole, limit: self.own_max });
        }
        while self.own().saturating_add(bytes) > self.own_max {
            self.given.notified().await;
        }
        self.draw(bytes, already, wait).await
    }

    /// Takes room for an answer, which is made already: only the budget bounds it.
    pub(super) async fn take_answer(&self, bytes: usize, wait: Duration) -> Result<(), NoRoom> {
        self.draw(bytes, usize::MAX, wait).await
    }

    async fn draw(&self, bytes: usize, already: usize, wait: Duration) -> Result<(), NoRoom> {
        let (mut pause, longest) = PAUSES;
        let mut until = after(wait);
        while !self.try_draw(bytes) {
            if self.own() > already {
                until = after(wait);
            } else if Instant::now() >= until {
                return Err(NoRoom::Drawn { bytes, waited: wait });
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(longest);
        }
        Ok(())
    }

    fn try_draw(&self, bytes: usize) -> bool {
        let mut holding = self.holding();
        let own = holding.own.saturating_add(bytes);
        let more = own.saturating_sub(FREE_BYTES).saturating_sub(holding.drawn);
        if more > 0 && !self.budget.take(holding.drawn, more) {
            return false;
        }
        holding.own = own;
        holding.drawn = holding.drawn.saturating_add(more);
        true
    }

    pub(super) fn give(&self, bytes: usize) {
        let mut holding = self.holding();
        holding.own = holding.own.saturating_sub(bytes);
        let spare = holding.drawn.saturating_sub(holding.own.saturating_sub(FREE_BYTES));
        holding.drawn = holding.drawn.saturating_sub(spare);
        self.budget.give(spare);
        drop(holding);
        self.given.notify_one();
    }

    fn own(&self) -> usize {
        self.holding().own
    }

    fn holding(&self) -> MutexGuard<'_, Holding> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let drawn = self.holding().drawn;
        self.budget.give(drawn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(5);

    fn accounts(budget: usize, own_max: usize) -> (Arc<Budget>, Account, Account) {
        let budget = Arc::new(Budget::new(budget));
        let account = || Account::new(Arc::clone(&budget), own_max);
        (Arc::clone(&budget), account(), account())
    }

    #[tokio::test]
    async fn the_first_bytes_are_free_and_what_is_given_comes_back() {
        let (budget, one, other) = accounts(100, usize::MAX);
        assert_eq!(one.take(FREE_BYTES, 0, WAIT).await, Ok(()));
        assert_eq!(*budget.free(), 100);
        assert_eq!(one.take(30, 0, WAIT).await, Ok(()));
        assert_eq!(*budget.free(), 70);
        one.give(FREE_BYTES);
        assert_eq!(*budget.free(), 100, "what is left is within the free bytes");
        assert_eq!(other.take(FREE_BYTES + 50, 0, WAIT).await, Ok(()));
        drop(other);
        assert_eq!(*budget.free(), 100);
    }

    #[tokio::test]
    async fn a_connection_gets_no_more_than_is_left_for_others() {
        let (budget, greedy, other) = accounts(100, usize::MAX);
        let mut held = FREE_BYTES;
        assert_eq!(greedy.take(held, 0, WAIT).await, Ok(()));
        while greedy.take(1, held, WAIT).await.is_ok() {
            held += 1;
        }
        assert_eq!((held - FREE_BYTES, *budget.free()), (50, 50));
        assert_eq!(other.take(FREE_BYTES + 25, 0, WAIT).await, Ok(()));
        assert_eq!(
            other.take(1, FREE_BYTES + 25, WAIT).await,
            Err(NoRoom::Drawn { bytes: 1, waited: WAIT }),
            "the second gets half of what the first left"
        );
    }

    #[tokio::test]
    async fn a_full_connection_waits_for_its_own_answers_and_what_never_fits_is_refused() {
        let (_budget, one, _other) = accounts(1 << 20, 100);
        let limit = FREE_BYTES + 100;
        assert_eq!(one.take(limit, 0, WAIT).await, Ok(()));
        let (taken, ()) = tokio::join!(one.take(60, 0, WAIT), async {
            sleep(WAIT).await;
            one.give(60);
        });
        assert_eq!(taken, Ok(()));
        let never = one.take(1, limit, WAIT).await;
        assert_eq!(never, Err(NoRoom::TooLarge { bytes: limit + 1, limit }));
    }
}
