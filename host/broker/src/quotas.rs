//! Client quotas (KIP-13, KIP-219): how many bytes a second a client id may write and read, and how long it is told to wait.
//!
//! The rates stand in the catalogue; where there is none, nothing is counted. A client is measured as in Kafka, over
//! [`window`]s of eleven seconds, each client id for itself, also under the default of all. Client ids are the peers'
//! own words: at most [`METERS_MAX`] are measured at a time, the one that was quiet for the longest makes room.

pub(crate) mod rates;
mod window;

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::quotas::rates::{Direction, Rates};
use crate::quotas::window::Window;

/// Clients that are measured at a time, in each direction.
const METERS_MAX: usize = 1_024;

/// What clients wrote and read of late.
#[derive(Debug)]
pub(crate) struct Meters {
    begun: Instant,
    /// Client ids are kept by their keyed hash: they may be long.
    hasher: RandomState,
    windows: Mutex<HashMap<u64, Window>>,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), hasher: RandomState::new(), windows: Mutex::default() }
    }

    /// Counts what a client wrote; how many milliseconds it has to wait until its rate is what it may be.
    pub(crate) fn wrote(&self, rates: &Rates, client: &str, bytes: u64) -> i32 {
        let Some(rate) = rates.of(Direction::Write, client) else { return 0 };
        self.at(Direction::Write, client, |window, now_ms| {
            window.count(now_ms, bytes);
            window.wait_ms(now_ms, rate)
        })
    }

    /// The most bytes that a client may be given at once: what fits into a window in which nothing was read yet.
    pub(crate) fn readable(rates: &Rates, client: &str) -> Option<u64> {
        rates.of(Direction::Read, client).map(window::capacity)
    }

    /// Counts what a client is about to be given. If that is too much it gets nothing (`Verdict::given` is false) and has to
    /// wait. Who read nothing of late is always given something, so that a batch larger than a window's bytes gets through.
    pub(crate) fn reads(&self, rates: &Rates, client: &str, bytes: u64) -> Verdict {
        let Some(rate) = rates.of(Direction::Read, client).filter(|_| bytes > 0) else {
            return Verdict { given: true, wait_ms: 0 };
        };
        self.at(Direction::Read, client, |window, now_ms| {
            let first = window.is_empty(now_ms);
            window.count(now_ms, bytes);
            let wait_ms = window.wait_ms(now_ms, rate);
            let given = first || wait_ms == 0;
            if !given {
                window.uncount(bytes);
            }
            Verdict { given, wait_ms }
        })
    }

    fn at<T>(&self, direction: Direction, client: &str, measure: impl FnOnce(&mut Window, u64) -> T) -> T {
        let now_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let key = self.hasher.hash_one((direction, client));
        make_room(&mut windows, key);
        measure(windows.entry(key).or_default(), now_ms)
    }
}

/// What becomes of an answer with records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The records are sent.
    pub(crate) given: bool,
    /// The client has to wait for so many milliseconds.
    pub(crate) wait_ms: i32,
}

fn make_room(windows: &mut HashMap<u64, Window>, key: u64) {
    if windows.len() < 2 * METERS_MAX || windows.contains_key(&key) {
        return;
    }
    let quiet = windows.iter().min_by_key(|(_, window)| window.latest()).map(|(key, _)| *key);
    if let Some(quiet) = quiet {
        windows.remove(&quiet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_quota_is_set_nothing_is_counted() {
        let meters = Meters::new();
        assert_eq!(meters.wrote(&Rates::default(), "a", u64::MAX), 0);
        assert_eq!(meters.reads(&Rates::default(), "a", 1), Verdict { given: true, wait_ms: 0 });
        assert!(meters.windows.lock().is_ok_and(|windows| windows.is_empty()));
    }

    #[test]
    fn clients_are_measured_one_by_one_and_directions_too() {
        let (meters, mut rates) = (Meters::new(), Rates::default());
        rates.set(None, Direction::Write, Some(1_000));
        rates.set(None, Direction::Read, Some(1_000));
        assert!(meters.wrote(&rates, "a", 100_000) > 0);
        assert_eq!(meters.wrote(&rates, "b", 1_000), 0);
        assert_eq!(meters.reads(&rates, "a", 1_000), Verdict { given: true, wait_ms: 0 });
        rates.set(None, Direction::Write, None);
        assert_eq!(meters.wrote(&rates, "a", 100_000), 0);
    }

    #[test]
    fn too_much_is_not_given_unless_it_is_the_first() {
        let (meters, mut rates) = (Meters::new(), Rates::default());
        rates.set(Some("a"), Direction::Read, Some(1_000));
        assert_eq!(Meters::readable(&rates, "a"), Some(10_000));
        assert_eq!(Meters::readable(&rates, "b"), None);
        let first = meters.reads(&rates, "a", 100_000);
        assert!(first.given && first.wait_ms > 0);
        let second = meters.reads(&rates, "a", 1);
        assert!(!second.given && second.wait_ms > 0);
        // Nothing given is nothing to wait for.
        assert_eq!(meters.reads(&rates, "a", 0), Verdict { given: true, wait_ms: 0 });
    }

    #[test]
    fn the_meters_are_bounded() {
        let (meters, mut rates) = (Meters::new(), Rates::default());
        rates.set(None, Direction::Write, Some(1));
        for client in 0..3 * METERS_MAX {
            meters.wrote(&rates, &client.to_string(), 1_000);
        }
        assert!(meters.windows.lock().is_ok_and(|windows| windows.len() == 2 * METERS_MAX));
    }
}
