//! One partition, from the bounds that were taken of it to its verdict.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::aborted::Aborted;
use super::compaction::Rules;
use super::compare::Comparison;
use super::facts::{self, Ask, Compared, Scope};
use super::feed::{Log, LogFeed, Pace};
use super::options::Options;
use super::plan::Permits;
use super::redaction::{REWRITE, Redaction, Rewriting};
use super::report::{
    Both, Bounds, Compacted, Difference, PartitionReport, Range, Redacted, Sampled, Side, Verdict,
};
use super::shared::Shared;
use super::span::Span;
use super::state::Saved;
use super::walk::{Logs, ReadError, Walked, walk};
use super::windows::windows;
use crate::cluster::{At, Cluster, ClusterError, Partition};

/// How often progress is noted.
const NOTED_EVERY: Duration = Duration::from_millis(250);
/// Times that offsets are asked for, at most.
const TIMES_MAX: usize = 5;

/// A partition to compare.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) partition: Partition,
    pub(super) bounds: Both<Bounds>,
    pub(super) permits: Permits,
    /// Where an earlier run came to.
    pub(super) saved: Option<Saved>,
}

/// Both logs of a partition.
struct Pair {
    logs: Both<Log>,
}

impl Logs for Pair {
    type Feed = LogFeed;

    fn open(&self, side: Side, range: Range) -> LogFeed {
        self.logs.of(side).feed(range)
    }

    async fn end(&self, side: Side) -> Result<i64, ReadError> {
        let log = self.logs.of(side);
        let end = log.cluster.list_offset(&log.partition, At::Latest, false).await;
        let end = end.map_err(|error| ReadError::Failed(error.to_string()))?;
        Ok(end.map_or(0, |listed| listed.offset))
    }
}

/// Where a log stands. The stable offset is asked for before the end, so that it is never one of a later time.
pub(super) async fn bounds(cluster: &Cluster, partition: &Partition) -> Result<Bounds, ClusterError> {
    let offset = |listed: Option<crate::cluster::ListedOffset>| listed.map_or(0, |listed| listed.offset);
    let start = offset(cluster.list_offset(partition, At::Earliest, false).await?);
    let stable = match cluster.list_offset(partition, At::Latest, true).await {
        Ok(stable) => Some(offset(stable)),
        Err(ClusterError::Unsupported(_)) => None,
        Err(error) => return Err(error),
    };
    let end = offset(cluster.list_offset(partition, At::Latest, false).await?);
    Ok(Bounds { start, end, last_stable_offset: stable.unwrap_or(end).min(end) })
}

pub(super) fn log(
    options: &Options,
    pace: &Arc<Pace>,
    cluster: &Cluster,
    partition: &Partition,
    bounds: Bounds,
) -> Log {
    Log {
        cluster: cluster.clone(),
        partition: partition.clone(),
        stable: bounds.last_stable_offset,
        fetch_bytes_max: options.fetch_bytes_max,
        pace: Arc::clone(pace),
    }
}

/// Compares a partition.
pub(super) async fn compare(shared: &Shared, target: &Cluster, job: Job) -> PartitionReport {
    let mut report = PartitionReport::new(&job.partition.topic, job.partition.index);
    report.bounds = Both { source: Some(job.bounds.source), target: Some(job.bounds.target) };
    let span = match Span::of(job.bounds, &shared.options) {
        Ok(span) => span,
        Err(why) => return report.with_verdict(Verdict::Undecided, why),
    };
    report.notes.clone_from(&span.notes);
    let log = |cluster, bounds| log(&shared.options, &shared.pace, cluster, &job.partition, bounds);
    let source = log(&shared.source, job.bounds.source);
    let pair = Pair { logs: Both { source, target: log(target, job.bounds.target) } };
    let mut work = Work {
        shared,
        job: &job,
        pair,
        range: span.range,
        report,
        times: Vec::new(),
        aborted: None,
        redaction: Redaction::default(),
    };
    let walked = match shared.options.sample {
        Some(sample) => {
            let windows = windows(sample, &job.partition, span.range);
            work.report.sampled = Some(Sampled { fraction: sample.fraction, seed: sample.seed, windows });
            work.sample().await
        }
        None => work.whole().await,
    };
    let scope = Scope {
        range: work.range,
        bounds: job.bounds,
        to_the_end: span.to_the_end,
        may_compact: job.permits.compaction,
        compacted: work.report.compacted.map(|compacted| compacted.side),
        redaction: work.redaction,
    };
    let facts = match walked {
        Walked::Equal => {
            let clusters = Both { source: &shared.source, target };
            facts::compare(&Ask { clusters, partition: &job.partition }, &scope, &work.times()).await
        }
        _ => Compared::default(),
    };
    let aborted = work.aborted.take();
    let mut report = work.report;
    report.range = Some(scope.range);
    report.redacted = job.permits.redacted(scope.redaction);
    let mut report = decide(report, walked, span, facts, aborted);
    if report.verdict == Verdict::Diverged && job.permits.rewriting(&shared.options) == Rewriting::Refused {
        report.notes.extend(shared.options.allow_redacted.then(not_allowed));
    }
    report
}

/// Why an option that was given does not count.
fn not_allowed() -> String {
    let (name, value) = REWRITE;
    format!("allow-redacted does not count here: the target's topic does not tell {name}={value}")
}

impl Permits {
    fn rewriting(&self, options: &Options) -> Rewriting {
        match (&self.rewriting_by, options.allow_redacted) {
            (None, _) => Rewriting::Refused,
            (Some(_), false) => Rewriting::Allowed,
            (Some(_), true) => Rewriting::Accepted,
        }
    }

    fn redacted(&self, found: Redaction) -> Option<Redacted> {
        let Redaction { batches, records_dropped, records_changed } = found;
        let module = self.rewriting_by.clone().filter(|_| batches > 0)?;
        Some(Redacted { module, batches, records_dropped, records_changed })
    }
}

/// A comparison under way.
struct Work<'a> {
    shared: &'a Shared,
    job: &'a Job,
    pair: Pair,
    range: Range,
    report: PartitionReport,
    times: Vec<i64>,
    /// Aborted transactions that are not the same.
    aborted: Option<Difference>,
    redaction: Redaction,
}

impl<'a> Work<'a> {
    fn rules(&self, from: i64) -> Rules {
        let options = &self.shared.options;
        Rules {
            may_compact: self.job.permits.compaction && options.sample.is_none(),
            rewriting: self.job.permits.rewriting(options),
            from,
            keys_max: options.keys_max,
            inflate_bytes_max: options.inflate_bytes_max,
        }
    }

    /// What an earlier run came to, unless a log was cut below it since.
    async fn saved(&mut self) -> Option<&'a Saved> {
        let saved = self.job.saved.as_ref()?;
        if saved.count.source.batches > 0 && !self.still_holds(saved).await {
            let at = saved.at;
            self.report.notes.push(format!(
                "an earlier run had come to offset {at}; a log may have been cut below it since, so all is compared anew"
            ));
            return None;
        }
        Some(saved)
    }

    /// True if both leaders tell that the epoch of the last batch compared still goes on up to there (KIP-320).
    async fn still_holds(&self, saved: &Saved) -> bool {
        for log in [&self.pair.logs.source, &self.pair.logs.target] {
            let told = log.cluster.epoch_end(&log.partition, saved.last_epoch).await;
            if !told.is_ok_and(|told| told.epoch == saved.last_epoch && told.end >= saved.at) {
                return false;
            }
        }
        true
    }

    /// Everything in the range, from where an earlier run came to.
    async fn whole(&mut self) -> Walked {
        let saved = self.saved().await;
        self.range = saved.map_or(self.range, |saved| saved.range);
        let mut comparison = Comparison::new(self.rules(self.range.from));
        let mut aborted = Aborted::default();
        let mut at = self.range.from;
        if let Some(saved) = saved {
            saved.restore(&mut comparison);
            aborted = saved.aborted.clone();
            at = saved.at;
            self.report.resumed_from = Some(at);
        }
        let walked = loop {
            let range = Range { from: at, to: self.range.to };
            let mut noted = Noted::new(self.shared, &self.job.partition, self.range, at);
            let passed =
                |comparison: &Comparison, aborted: &Aborted, at: i64| noted.passed(comparison, aborted, at);
            match walk(&self.pair, &mut comparison, &mut aborted, range, passed).await {
                Ok(walked) => break walked,
                Err((side, ReadError::Moved(start))) if start < self.range.to => {
                    self.report.notes.push(format!(
                        "the {side}'s log start moved to offset {start} meanwhile; nothing differed in what was read below it"
                    ));
                    comparison.restart(start);
                    aborted = Aborted::default();
                    (self.range.from, at) = (start, start);
                }
                Err((side, error)) => break unreadable(side, error),
            }
        };
        self.finish(&comparison, &walked);
        let stable = self.stable();
        self.aborted = aborted.difference(self.range, stable, comparison.compaction.side);
        walked
    }

    /// Some windows of the range.
    async fn sample(&mut self) -> Walked {
        let windows = self.report.sampled.as_ref().map(|sampled| sampled.windows.clone()).unwrap_or_default();
        for window in windows {
            let mut comparison = Comparison::new(self.rules(window.from));
            let mut aborted = Aborted::default();
            let mut noted = Noted::new(self.shared, &self.job.partition, window, window.from);
            let passed =
                |comparison: &Comparison, aborted: &Aborted, at: i64| noted.passed(comparison, aborted, at);
            let walked = walk(&self.pair, &mut comparison, &mut aborted, window, passed).await;
            let walked = walked.unwrap_or_else(|(side, error)| unreadable(side, error));
            self.finish(&comparison, &walked);
            self.report.digest = Both::default();
            if self.aborted.is_none() {
                self.aborted = aborted.difference(window, self.stable(), None);
            }
            match walked {
                Walked::Equal => {}
                Walked::Differs(difference) if self.job.permits.compaction => {
                    let why = "that may be compaction, which a sample cannot tell: verify it whole";
                    return Walked::Undecided(format!("{}; {why}", difference.what));
                }
                walked => return walked,
            }
        }
        Walked::Equal
    }

    fn stable(&self) -> i64 {
        let Both { source, target } = self.job.bounds;
        source.last_stable_offset.min(target.last_stable_offset)
    }

    fn finish(&mut self, comparison: &Comparison, walked: &Walked) {
        for side in [Side::Source, Side::Target] {
            let (all, more) = (self.report.count.of_mut(side), comparison.count.of(side));
            all.batches = all.batches.saturating_add(more.batches);
            all.records = all.records.saturating_add(more.records);
            all.bytes = all.bytes.saturating_add(more.bytes);
        }
        if *walked == Walked::Equal {
            let Both { source, target } = comparison.digest;
            self.report.digest = Both { source: Some(source), target: Some(target) };
        }
        self.redaction.add(comparison.redaction);
        let compaction = &comparison.compaction;
        self.report.compacted = compaction.side.map(|side| Compacted {
            side,
            records: compaction.records,
            batches: compaction.batches,
        });
        self.times.extend(&comparison.times);
    }

    /// Some of the times that were seen, and one behind the largest.
    fn times(&self) -> Vec<i64> {
        let mut times: Vec<i64> = self.times.iter().copied().filter(|time| *time >= 0).collect();
        times.sort_unstable();
        times.dedup();
        let behind = times.last().and_then(|last| last.checked_add(1));
        let step = times.len().div_ceil(TIMES_MAX).max(1);
        times.into_iter().step_by(step).chain(behind).collect()
    }
}

fn unreadable(side: Side, error: ReadError) -> Walked {
    match error {
        ReadError::Damaged(offset) => Walked::Differs(Difference::new(
            offset,
            format!("the {side}'s batch at offset {offset} is damaged: its checksum is wrong"),
        )),
        ReadError::Moved(start) => Walked::Undecided(format!(
            "the {side}'s log start moved to offset {start} while it was read, past what was to be compared"
        )),
        ReadError::Failed(why) => Walked::Undecided(format!("the {side} cannot be read: {why}")),
    }
}

/// Puts everything that was found together.
fn decide(
    mut report: PartitionReport,
    walked: Walked,
    span: Span,
    facts: Compared,
    aborted: Option<Difference>,
) -> PartitionReport {
    let mut undecided = facts.undecided;
    let mut differences = span.differences;
    match walked {
        Walked::Equal => differences.extend(aborted),
        Walked::Differs(difference) => differences.push(difference),
        Walked::Undecided(why) => undecided = Some(why),
    }
    differences.extend(facts.differences);
    differences.sort_by_key(|difference| difference.offset.unwrap_or(i64::MAX));
    report.notes.extend(facts.notes);
    report.behind = span.behind;
    let mut differences = differences.into_iter();
    if let Some(first) = differences.next() {
        report.notes.extend(differences.map(|difference| format!("also: {}", difference.what)));
        let reason = first.what.clone();
        report.difference = Some(first);
        return report.with_verdict(Verdict::Diverged, reason);
    }
    if let Some(why) = undecided {
        return report.with_verdict(Verdict::Undecided, why);
    }
    if span.behind > 0 {
        let reason = format!("the target lacks the last {} offsets", span.behind);
        return report.with_verdict(Verdict::Behind, reason);
    }
    if let Some(what) = facts.ahead.into_iter().next() {
        return report.with_verdict(Verdict::Behind, format!("{what}; the target does not know it yet"));
    }
    // Where both were seen, nothing is equal: a comparison stops there.
    if let Some(Compacted { side, records, batches }) = report.compacted {
        let reason =
            format!("compaction took {records} records from the {side}, {batches} batches of them whole");
        return report.with_verdict(Verdict::CompactedEqual, reason);
    }
    match report.redacted.as_ref().map(ToString::to_string) {
        Some(reason) => report.with_verdict(Verdict::Redacted, reason),
        None => report.with_verdict(Verdict::Identical, String::new()),
    }
}

/// Notes how far a comparison has come.
pub(super) struct Noted<'a> {
    shared: &'a Shared,
    partition: &'a Partition,
    range: Range,
    at: i64,
    bytes: u64,
    last: Instant,
}

impl<'a> Noted<'a> {
    pub(super) fn new(shared: &'a Shared, partition: &'a Partition, range: Range, at: i64) -> Self {
        Self { shared, partition, range, at, bytes: 0, last: Instant::now() }
    }

    fn passed(&mut self, comparison: &Comparison, aborted: &Aborted, at: i64) {
        let count = comparison.count;
        let bytes = count.source.bytes.saturating_add(count.target.bytes);
        if self.come_to(at, bytes)
            && let Some(saved) = Saved::of(comparison, aborted, self.range, at)
        {
            self.shared.store.save(self.partition, saved);
        }
    }

    /// True if it is time to note where it is.
    pub(super) fn come_to(&mut self, at: i64, bytes: u64) -> bool {
        let offsets = u64::try_from(at.saturating_sub(self.at)).unwrap_or(0);
        self.shared.progress.offsets.fetch_add(offsets, Ordering::Relaxed);
        self.shared.progress.bytes.fetch_add(bytes.saturating_sub(self.bytes), Ordering::Relaxed);
        (self.at, self.bytes) = (at, bytes);
        let due = self.shared.store.is_kept() && self.last.elapsed() >= NOTED_EVERY;
        if due {
            self.last = Instant::now();
        }
        due
    }
}
