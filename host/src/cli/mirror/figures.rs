//! What all partitions come to, and how fast it grows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use verbatim::mirror::mirror::state::{PartitionStatus, State};

/// Several partitions together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Totals {
    /// How many there are.
    pub(super) partitions: u64,
    /// How many are in which state.
    pub(super) states: BTreeMap<State, u64>,
    /// The sum of what they are behind.
    pub(super) lag_records: i64,
    /// The longest time that one of them has been behind.
    pub(super) lag_ms: i64,
    /// Acknowledged since the start.
    pub(super) batches: u64,
    pub(super) records: u64,
    pub(super) bytes: u64,
    /// Since the last look.
    pub(super) records_per_second: u64,
    pub(super) bytes_per_second: u64,
}

impl Totals {
    /// Of these partitions, without rates.
    pub(super) fn of<'a>(partitions: impl IntoIterator<Item = &'a PartitionStatus>) -> Self {
        let mut all = Self::default();
        for one in partitions {
            all.partitions = all.partitions.saturating_add(1);
            let count = all.states.entry(one.state).or_default();
            *count = count.saturating_add(1);
            all.lag_records = all.lag_records.saturating_add(one.lag_records.max(0));
            all.lag_ms = all.lag_ms.max(one.lag_ms);
            all.batches = all.batches.saturating_add(one.batches);
            all.records = all.records.saturating_add(one.records);
            all.bytes = all.bytes.saturating_add(one.bytes);
        }
        all
    }

    /// `10 caught-up, 1 mirroring`.
    pub(super) fn states_text(&self) -> String {
        let told: Vec<String> = self.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        told.join(", ")
    }

    /// `lag 12 records, 40 ms`.
    pub(super) fn lag_text(&self) -> String {
        format!("lag {} records, {} ms", self.lag_records, self.lag_ms)
    }

    /// `100 records/s, 1.5 MB/s`.
    pub(super) fn rates_text(&self) -> String {
        format!("{} records/s, {}/s", self.records_per_second, megabytes(self.bytes_per_second))
    }
}

/// Rates between one look and the next.
#[derive(Debug)]
pub(super) struct Meter {
    at: Instant,
    records: u64,
    bytes: u64,
}

impl Meter {
    pub(super) fn new(at: Instant) -> Self {
        Self { at, records: 0, bytes: 0 }
    }

    /// Adds the rates since the last look.
    pub(super) fn measure(&mut self, totals: &mut Totals, now: Instant) {
        let passed = now.saturating_duration_since(self.at);
        totals.records_per_second = per_second(totals.records.saturating_sub(self.records), passed);
        totals.bytes_per_second = per_second(totals.bytes.saturating_sub(self.bytes), passed);
        *self = Self { at: now, records: totals.records, bytes: totals.bytes };
    }
}

fn per_second(count: u64, passed: Duration) -> u64 {
    let per_ms = u128::from(count).saturating_mul(1_000).checked_div(passed.as_millis());
    per_ms.and_then(|rate| u64::try_from(rate).ok()).unwrap_or_default()
}

/// `1.5 MB`, of a million bytes each.
pub(super) fn megabytes(bytes: u64) -> String {
    let tenths = bytes.saturating_add(50_000) / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn status(topic: &str, partition: i32, state: State) -> PartitionStatus {
        PartitionStatus {
            topic: topic.to_owned(),
            partition,
            state,
            reason: None,
            remedy: None,
            end: 90,
            source_start: 10,
            source_end: 100,
            source_epoch: 3,
            lag_records: 10,
            lag_ms: 40,
            batches: 8,
            records: 80,
            bytes: 1_500_000,
            skipped: Vec::new(),
        }
    }

    #[test]
    fn partitions_are_summed_and_rates_measured() {
        let all = [
            status("a", 0, State::CaughtUp),
            status("a", 1, State::CaughtUp),
            PartitionStatus { lag_ms: 900, lag_records: -1, ..status("b", 0, State::Diverged) },
        ];
        let mut totals = Totals::of(&all);
        assert_eq!((totals.partitions, totals.lag_records, totals.lag_ms), (3, 20, 900));
        assert_eq!(totals.states_text(), "2 caught-up, 1 diverged");
        let start = Instant::now();
        let mut meter = Meter::new(start);
        meter.measure(&mut totals, start + Duration::from_secs(2));
        assert_eq!(totals.rates_text(), "120 records/s, 2.3 MB/s");
        meter.measure(&mut totals, start + Duration::from_secs(2));
        assert_eq!(totals.rates_text(), "0 records/s, 0.0 MB/s");
    }

    #[test]
    fn bytes_are_shown_in_millions() {
        assert_eq!(
            [0, 49_999, 50_000, 1_949_999, u64::MAX].map(megabytes),
            ["0.0 MB", "0.0 MB", "0.1 MB", "1.9 MB", "18446744073709.5 MB"]
        );
    }
}
