//! Bars for a terminal: one a partition, or a topic if there are many partitions; of many topics those most in need.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use anyhow::Context as _;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use verbatim::mirror::mirror::state::{Event, PartitionStatus, Snapshot};

use super::super::logging;
use super::View;
use super::figures::{Meter, Totals};
use super::lines;
use super::news::News;

/// Bars at a time.
const BARS_MAX: usize = 16;
/// Name, how much of the source's log is there, and in words.
const STYLE: &str = "{prefix:30!} [{bar:24}] {msg}";

/// Bars on stdout, and lines above them.
pub(super) struct Bars {
    all: MultiProgress,
    style: ProgressStyle,
    bars: Vec<ProgressBar>,
    summary: ProgressBar,
    news: News,
    meter: Meter,
    meters: HashMap<String, Meter>,
}

/// What a bar shows.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    is_stopped: bool,
    done: u64,
    whole: u64,
    totals: Totals,
}

impl Bars {
    pub(super) fn new() -> anyhow::Result<Self> {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        let summary = all.add(ProgressBar::no_length());
        summary.set_style(ProgressStyle::with_template("{msg}").context("bars")?);
        logging::give_way(all.clone());
        Ok(Self {
            all,
            style: ProgressStyle::with_template(STYLE).context("bars")?.progress_chars("=> "),
            bars: Vec::new(),
            summary,
            news: News::default(),
            meter: Meter::new(Instant::now()),
            meters: HashMap::new(),
        })
    }

    fn show(&mut self, rows: &[Row], now: Instant) {
        for (place, row) in rows.iter().enumerate() {
            if place >= self.bars.len() {
                let bar = self.all.insert_before(&self.summary, ProgressBar::new(0));
                bar.set_style(self.style.clone());
                self.bars.push(bar);
            }
            let Some(bar) = self.bars.get(place) else { continue };
            let mut totals = row.totals.clone();
            let meter = self.meters.entry(row.name.clone()).or_insert_with(|| Meter::new(now));
            meter.measure(&mut totals, now);
            bar.set_prefix(row.name.clone());
            bar.set_length(row.whole);
            bar.set_position(row.done);
            bar.set_message(format!(
                "{}, {}, {}",
                totals.states_text(),
                totals.lag_text(),
                totals.rates_text()
            ));
        }
        for bar in self.bars.drain(rows.len().min(self.bars.len())..) {
            self.all.remove(&bar);
        }
    }
}

impl View for Bars {
    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        match lines::told(&mut self.news, event) {
            Some(line) => Ok(self.all.println(line)?),
            None => Ok(()),
        }
    }

    fn look(&mut self, snapshot: &Snapshot) -> anyhow::Result<()> {
        let now = Instant::now();
        let (rows, left_out) = rows(&snapshot.partitions);
        self.show(&rows, now);
        let mut totals = Totals::of(&snapshot.partitions);
        self.meter.measure(&mut totals, now);
        let more = if left_out > 0 { format!(" ({left_out} topics more)") } else { String::new() };
        self.summary.set_message(format!("{}{more}", lines::summary(&totals)));
        Ok(())
    }

    fn end(&mut self, snapshot: &Snapshot) -> anyhow::Result<()> {
        self.all.clear()?;
        // Bars draw once more when they are dropped.
        self.all.set_draw_target(ProgressDrawTarget::hidden());
        lines::print(&lines::report(snapshot))
    }
}

/// The bars to show, and how many topics there are without one.
fn rows(partitions: &[PartitionStatus]) -> (Vec<Row>, usize) {
    if partitions.len() <= BARS_MAX {
        let name = |status: &PartitionStatus| format!("{}-{}", status.topic, status.partition);
        return (partitions.iter().map(|status| Row::of(name(status), &[status])).collect(), 0);
    }
    let mut topics: BTreeMap<&str, Vec<&PartitionStatus>> = BTreeMap::new();
    for status in partitions {
        topics.entry(&status.topic).or_default().push(status);
    }
    let mut rows: Vec<Row> = topics.iter().map(|(topic, all)| Row::of((*topic).to_owned(), all)).collect();
    let left_out = rows.len().saturating_sub(BARS_MAX);
    if left_out > 0 {
        // Stopped ones first, then those that are furthest behind.
        rows.sort_by_key(|row| (!row.is_stopped, -row.totals.lag_records));
        rows.truncate(BARS_MAX);
        rows.sort_by(|one, other| one.name.cmp(&other.name));
    }
    (rows, left_out)
}

impl Row {
    fn of(name: String, partitions: &[&PartitionStatus]) -> Self {
        let offsets = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or_default();
        let sum = |one: fn(&PartitionStatus) -> i64| {
            partitions
                .iter()
                .map(|status| offsets(status.source_start, one(status)))
                .fold(0_u64, u64::saturating_add)
        };
        Self {
            name,
            is_stopped: partitions.iter().any(|status| status.state.is_stopped()),
            done: sum(|status| status.end),
            whole: sum(|status| status.source_end),
            totals: Totals::of(partitions.iter().copied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use verbatim::mirror::mirror::state::State;

    use super::super::figures::tests::status;
    use super::*;

    #[test]
    fn few_partitions_have_a_bar_each() {
        let all: Vec<_> = (0..16).map(|index| status("a", index, State::Mirroring)).collect();
        let (rows, left_out) = rows(&all);
        assert_eq!((rows.len(), left_out), (16, 0));
        assert!(rows.iter().all(|row| (row.done, row.whole) == (80, 90)));
        assert!(rows.iter().any(|row| row.name == "a-15"));
    }

    #[test]
    fn of_many_topics_those_most_in_need_are_shown() {
        let mut all: Vec<_> =
            (0..40).map(|index| status(&format!("t{:02}", index / 2), index % 2, State::CaughtUp)).collect();
        all.push(status("stopped", 0, State::Diverged));
        all.push(PartitionStatus { lag_records: 1_000_000, ..status("late", 0, State::Mirroring) });
        let (rows, left_out) = rows(&all);
        assert_eq!((rows.len(), left_out), (BARS_MAX, 6));
        for name in ["stopped", "late"] {
            assert!(rows.iter().any(|row| row.name == name), "{name}: {rows:?}");
        }
    }
}
