//! Where numbers are kept: counters and histograms of atomics.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
pub(super) trait Cell: Default {
    /// Adds to it; wraps around after 2^64.
    fn add(&self, more: u64);

    /// Reads it.
    fn get(&self) -> u64;
}

/// Written by any thread.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Cell for Count {
    fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Written by one thread alone, which makes it as cheap as a plain number; read by any.
#[derive(Debug, Default)]
pub(super) struct Own(AtomicU64);

impl Cell for Own {
    fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How often a value fell into each of `N` buckets or beyond them, in whole units: nanoseconds, or things.
#[derive(Debug)]
pub(super) struct Histogram<C, const N: usize> {
    bounds: &'static [u64; N],
    buckets: [C; N],
    beyond: C,
    sum: C,
}

/// What a histogram, or several of the same bounds together, held at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sums<const N: usize> {
    /// Upper bound and how many values lie in the bucket that it ends.
    pub(super) buckets: [(u64, u64); N],
    /// Values above the last bound.
    pub(super) beyond: u64,
    /// The sum of all values.
    pub(super) sum: u64,
}

impl<C: Cell, const N: usize> Histogram<C, N> {
    /// An empty one; bounds rise, and each belongs to its bucket.
    pub(super) fn new(bounds: &'static [u64; N]) -> Self {
        let buckets = std::array::from_fn(|_| C::default());
        Self { bounds, buckets, beyond: C::default(), sum: C::default() }
    }

    /// Counts a value.
    pub(super) fn record(&self, value: u64) {
        let index = self.bounds.partition_point(|bound| *bound < value);
        self.buckets.get(index).unwrap_or(&self.beyond).add(1);
        self.sum.add(value);
    }

    /// What it holds. Values that are counted meanwhile may be missing in part; the next look has them.
    pub(super) fn sums(&self) -> Sums<N> {
        let mut counts = self.bounds.iter().zip(&self.buckets).map(|(bound, count)| (*bound, count.get()));
        let buckets = std::array::from_fn(|_| counts.next().unwrap_or_default());
        Sums { buckets, beyond: self.beyond.get(), sum: self.sum.get() }
    }
}

impl<const N: usize> Sums<N> {
    /// Nothing, within these bounds.
    pub(super) fn empty(bounds: &'static [u64; N]) -> Self {
        Self { buckets: bounds.map(|bound| (bound, 0)), beyond: 0, sum: 0 }
    }

    /// Both together.
    pub(super) fn and(mut self, other: &Self) -> Self {
        for ((_, count), (_, more)) in self.buckets.iter_mut().zip(&other.buckets) {
            *count = count.wrapping_add(*more);
        }
        self.beyond = self.beyond.wrapping_add(other.beyond);
        self.sum = self.sum.wrapping_add(other.sum);
        self
    }

    /// Values in all.
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().fold(self.beyond, |sum, (_, count)| sum.wrapping_add(*count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: [u64; 3] = [1, 10, 100];

    #[test]
    fn a_bound_belongs_to_its_bucket_and_histograms_add_up() {
        let (one, other) = (Histogram::<Own, 3>::new(&BOUNDS), Histogram::<Own, 3>::new(&BOUNDS));
        for value in [0, 1, 2, 10, 11, 100, 101, 5_000] {
            one.record(value);
        }
        other.record(7);
        let sums = Sums::empty(&BOUNDS).and(&one.sums()).and(&other.sums());
        assert_eq!(sums.buckets, [(1, 2), (10, 3), (100, 2)]);
        assert_eq!((sums.beyond, sums.sum, sums.count()), (2, 5_232, 9));
    }

    #[test]
    fn many_threads_lose_nothing() {
        let shared = Histogram::<Count, 3>::new(&BOUNDS);
        std::thread::scope(|scope| {
            for value in 0..4 {
                let shared = &shared;
                scope.spawn(move || (0..1_000).for_each(|_| shared.record(value)));
            }
        });
        assert_eq!((shared.sums().count(), shared.sums().sum), (4_000, 6_000));
    }
}
