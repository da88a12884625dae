//! Proves that two clusters hold the same, batch by batch.
//!
//! A [`Verifier`] works between any two Kafka-speaking clusters and changes nothing on either. It reads both sides of a partition
//! over the offsets that both have and compares every batch byte for byte, and besides that leader epochs, log start and
//! end, last stable offset, aborted transactions, active producers and offsets by time. Memory is bounded however large the
//! partitions are. Ends are taken once, at the start, so that it comes to an end also while the source is written to.
//!
//! ```no_run
//! use verbatim_mirror::cluster::ClusterConfig;
//! use verbatim_mirror::verify::{Options, Verifier, whole_name};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let source = ClusterConfig::new(["source:9092"]);
//! let target = ClusterConfig::new(["target:9092"]);
//! let options = Options::new(source, target, vec![whole_name("orders.*")?]);
//! let report = Verifier::new(options)?.run().await?;
//! for partition in &report.partitions {
//!     println!("{}-{} {} {}", partition.topic, partition.partition, partition.verdict, partition.reason);
//! }
//! std::process::exit(report.exit_code().into());
//! # }
//! ```
//!
//! | verdict | means |
//! |---|---|
//! | [`Identical`](Verdict::Identical) | everything compared is equal |
//! | [`CompactedEqual`](Verdict::CompactedEqual) | what one side lacks, compaction may take away; the rest is equal |
//! | [`Redacted`](Verdict::Redacted) | the target's records are what a module left of the source's; the rest is equal |
//! | [`Behind`](Verdict::Behind) | equal as far as the target goes; [`PartitionReport::behind`] says how far it does not |
//! | [`Diverged`](Verdict::Diverged) | [`PartitionReport::difference`] says where first, and in what |
//! | [`Missing`](Verdict::Missing) | one side does not have it |
//! | [`Undecided`](Verdict::Undecided) | a side could not be read, or a bound was reached |
//!
//! What is lacking is taken for compaction only where `cleanup.policy` holds `compact` on a side, or is not told. A difference is
//! taken for redaction only where the target's topic says `produce.at.offset.rewrite=allow` and
//! [`Options::allow_redacted`] is set. Both together are [`Undecided`](Verdict::Undecided).

mod aborted;
mod alone;
mod ask;
mod compaction;
mod compare;
mod digest;
mod error;
mod facts;
mod feed;
mod groups;
mod options;
mod partition;
mod plan;
mod records;
mod redaction;
mod report;
mod shared;
mod span;
mod state;
#[cfg(test)]
mod tests;
mod walk;
mod windows;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub(crate) use compare::certain_difference;
pub use digest::Digest;
pub use error::VerifyError;
pub use options::{Options, Sample, whole_name};
pub(crate) use redaction::REWRITE;
pub use report::{
    BatchHeader, Both, Bounds, Committed, Compacted, Count, Difference, GroupReport, PartitionReport, Range,
    Redacted, Report, Sampled, Side, Verdict,
};

use crate::cluster::{Cluster, Partition};
use feed::Pace;
use partition::Job;
use shared::{Counters, Shared};
use state::Store;

/// How often the state file is written.
const WRITTEN_EVERY: Duration = Duration::from_secs(1);

/// A verification.
#[derive(Debug, Clone)]
pub struct Verifier {
    shared: Arc<Shared>,
}

/// How far a verification has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Partitions that both sides have.
    pub partitions: u64,
    /// Those that are done.
    pub partitions_done: u64,
    /// Offsets that are to be compared.
    pub offsets_total: u64,
    /// Those that were.
    pub offsets: u64,
    /// Bytes read of both sides.
    pub bytes: u64,
}

impl Verifier {
    /// Makes one. Nothing is connected yet; a state file is read.
    ///
    /// # Errors
    /// [`VerifyError::Options`], [`VerifyError::State`].
    pub fn new(options: Options) -> Result<Self, VerifyError> {
        check(&options)?;
        let store = Store::open(&options).map_err(|what| state_error(&options, what))?;
        let shared = Shared {
            source: Cluster::new(options.source.clone()),
            target: options.target.clone().map(Cluster::new),
            pace: Arc::new(Pace::new(options.bytes_per_second)),
            store,
            progress: Counters::default(),
            options,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// How far it has come. A clone can be asked while another runs.
    pub fn progress(&self) -> Progress {
        let counters = &self.shared.progress;
        Progress {
            partitions: counters.partitions.load(Ordering::Relaxed),
            partitions_done: counters.partitions_done.load(Ordering::Relaxed),
            offsets_total: counters.offsets_total.load(Ordering::Relaxed),
            offsets: counters.offsets.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
        }
    }

    /// Verifies. A partition that cannot be read is [`Verdict::Undecided`]; the others go on.
    ///
    /// # Errors
    /// No cluster to ask, no topic to look at, a state file that cannot be kept.
    pub async fn run(&self) -> Result<Report, VerifyError> {
        let mut report = match &self.shared.target {
            Some(target) => self.both(target).await?,
            None => self.alone().await?,
        };
        report.partitions.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        Ok(report)
    }

    async fn both(&self, target: &Cluster) -> Result<Report, VerifyError> {
        let shared = &self.shared;
        let (of_source, of_target) = tokio::join!(
            plan::topics(&shared.options, Side::Source, &shared.source),
            plan::topics(&shared.options, Side::Target, target),
        );
        let topics = Both { source: of_source?, target: of_target? };
        if topics.source.is_empty() && topics.target.is_empty() {
            return Err(no_topics(&shared.options));
        }
        let names: BTreeSet<String> = topics.source.keys().chain(topics.target.keys()).cloned().collect();
        let plan = plan::plan(shared, target, topics).await?;
        let entries = shared.store.take_up(plan.planned.iter());
        let entries = entries.map_err(|what| state_error(&shared.options, what))?;
        let mut partitions = plan.reports;
        let mut jobs = Vec::new();
        for (planned, entry) in plan.planned.into_iter().zip(entries) {
            match entry.decided() {
                Some(report) => partitions.push(report.clone()),
                None => jobs.push(Job {
                    partition: planned.partition,
                    bounds: entry.bounds(),
                    permits: planned.permits,
                    saved: entry.saved,
                }),
            }
        }
        let lengths = jobs.iter().map(|job| job.bounds.source.end.saturating_sub(job.bounds.source.start));
        self.expect(lengths);
        let work = |job: Job| {
            let (shared, target) = (Arc::clone(shared), target.clone());
            async move { partition::compare(&shared, &target, job).await }
        };
        let writing = self.keep_state();
        partitions.extend(self.all(jobs.into_iter().map(|job| (job.partition.clone(), work(job)))).await);
        drop(writing);
        let is_open = partitions.iter().any(|report| report.verdict == Verdict::Undecided);
        let kept = if is_open { shared.store.write() } else { shared.store.remove() };
        kept.map_err(|what| state_error(&shared.options, what))?;
        Ok(Report { partitions, groups: self.groups(target, &names).await })
    }

    async fn groups(&self, target: &Cluster, topics: &BTreeSet<String>) -> Vec<GroupReport> {
        let groups = self.shared.options.groups.as_slice();
        if groups.is_empty() {
            return Vec::new();
        }
        let clusters = Both { source: &self.shared.source, target };
        groups::compare(clusters, &groups::Wanted { groups, topics }).await
    }

    async fn alone(&self) -> Result<Report, VerifyError> {
        let shared = &self.shared;
        let topics = plan::topics(&shared.options, Side::Source, &shared.source).await?;
        if topics.is_empty() {
            return Err(no_topics(&shared.options));
        }
        let mut work = BTreeMap::new();
        for topic in topics.values() {
            for one in &topic.partitions {
                let partition = Partition { topic: topic.name.clone(), index: one.index };
                let bounds = partition::bounds(&shared.source, &partition).await;
                let bounds =
                    bounds.map_err(|error| VerifyError::cluster(Side::Source, &shared.source, error))?;
                work.insert(partition, bounds);
            }
        }
        self.expect(work.values().map(|bounds| bounds.end.saturating_sub(bounds.start)));
        let work = work.into_iter().map(|(partition, bounds)| {
            let shared = Arc::clone(shared);
            let of = partition.clone();
            (of, async move { alone::digest(&shared, &partition, bounds).await })
        });
        Ok(Report { partitions: self.all(work).await, groups: Vec::new() })
    }

    /// Says how much there is to do.
    fn expect(&self, lengths: impl Iterator<Item = i64>) {
        let counters = &self.shared.progress;
        let lengths: Vec<u64> = lengths.map(|length| u64::try_from(length).unwrap_or(0)).collect();
        counters.partitions.store(u64::try_from(lengths.len()).unwrap_or(0), Ordering::Relaxed);
        let total = lengths.into_iter().fold(0_u64, u64::saturating_add);
        counters.offsets_total.store(total, Ordering::Relaxed);
    }

    /// Does all of this, some at a time.
    async fn all<W>(&self, work: impl Iterator<Item = (Partition, W)>) -> Vec<PartitionReport>
    where
        W: Future<Output = PartitionReport> + Send + 'static,
    {
        let room = Arc::new(Semaphore::new(self.shared.options.concurrency));
        let mut tasks = JoinSet::new();
        for (partition, work) in work {
            let (shared, room) = (Arc::clone(&self.shared), Arc::clone(&room));
            tasks.spawn(async move {
                // The semaphore is never closed.
                let _room = room.acquire_owned().await;
                let report = work.await;
                shared.store.done(&partition, report.clone());
                shared.progress.partitions_done.fetch_add(1, Ordering::Relaxed);
                report
            });
        }
        tasks.join_all().await
    }

    /// Writes the state file again and again until it is dropped.
    fn keep_state(&self) -> tokio_util::task::AbortOnDropHandle<()> {
        let shared = Arc::clone(&self.shared);
        tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
            while shared.store.is_kept() {
                tokio::time::sleep(WRITTEN_EVERY).await;
                // The last write, which tells its error, is made at the end.
                if let Err(what) = shared.store.write() {
                    tracing::warn!("state file {what}");
                }
            }
        }))
    }
}

fn check(options: &Options) -> Result<(), VerifyError> {
    let wrong = |what: String| Err(VerifyError::Options(what));
    if let Some(sample) = options.sample {
        if !(sample.fraction > 0.0 && sample.fraction <= 1.0) {
            return wrong(format!("a sample is above 0 and at most 1, sample=`{}`", sample.fraction));
        }
        if options.target.is_none() {
            return wrong("a sample has no digest: sample needs two clusters".to_owned());
        }
        if options.state.is_some() {
            return wrong("a sample is not gone on with: leave out sample or state".to_owned());
        }
    }
    if options.target.is_none() && options.allow_redacted {
        return wrong("a digest alone is of one cluster: leave out digest-only or allow-redacted".to_owned());
    }
    if options.target.is_none() && options.state.is_some() {
        return wrong("a digest alone is not gone on with: leave out digest-only or state".to_owned());
    }
    if options.concurrency == 0 {
        return wrong("at least one partition at a time, concurrency=`0`".to_owned());
    }
    match (options.from_offset, options.to_offset) {
        (Some(from), Some(to)) if from >= to => {
            wrong(format!("to-offset is above from-offset, from-offset=`{from}`, to-offset=`{to}`"))
        }
        _ => Ok(()),
    }
}

fn no_topics(options: &Options) -> VerifyError {
    let patterns: Vec<&str> = options.topics.iter().map(regex::Regex::as_str).collect();
    VerifyError::NoTopics { patterns: patterns.join(" ") }
}

fn state_error(options: &Options, what: String) -> VerifyError {
    VerifyError::State { file: options.state.clone().unwrap_or_default(), what }
}
