//! How far a verification has come, in a file, so that one that was ended goes on there.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::aborted::Aborted;
use super::compare::Comparison;
use super::digest::Digest;
use super::options::Options;
use super::plan::Planned;
use super::redaction::Redaction;
use super::report::{Both, Bounds, Count, PartitionReport, Range, Verdict};
use crate::cluster::{Partition, id_text};

/// The format of the file.
const VERSION: u32 = 3;

/// What must be the same for a file to be gone on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Call {
    version: u32,
    source: Vec<String>,
    target: Vec<String>,
    from_offset: Option<i64>,
    to_offset: Option<i64>,
    allow_redacted: bool,
}

/// The file's content.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Content {
    call: Call,
    partitions: Vec<Entry>,
}

/// Where both sides of a partition stood when it was first looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stood {
    topic_ids: Both<String>,
    /// Those of the leaders.
    leader_epochs: Both<i32>,
    bounds: Both<Bounds>,
    /// The module that the target's topic allowed to rewrite.
    rewriting_by: Option<String>,
}

/// One partition's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    topic: String,
    partition: i32,
    /// What was compared.
    #[serde(flatten)]
    stood: Stood,
    /// Where it came to.
    pub(super) saved: Option<Saved>,
    /// What it came to.
    pub(super) report: Option<PartitionReport>,
}

/// A comparison under way, up to which both sides are equal but for what was redacted. What compaction leaves owed is not kept: a
/// partition goes on where the first record was missing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Saved {
    pub(super) range: Range,
    pub(super) at: i64,
    /// The leader epoch of the last batch below `at`; -1 = none.
    pub(super) last_epoch: i32,
    pub(super) digest: Both<Digest>,
    pub(super) count: Both<Count>,
    redaction: Redaction,
    times: Vec<i64>,
    transactions: BTreeSet<i64>,
    pub(super) aborted: Aborted,
}

impl Saved {
    /// For a comparison that has come to `at`; `None` once a side lacks something.
    pub(super) fn of(comparison: &Comparison, aborted: &Aborted, range: Range, at: i64) -> Option<Self> {
        comparison.is_whole().then(|| Self {
            range,
            at,
            last_epoch: comparison.last_epoch,
            digest: comparison.digest,
            count: comparison.count,
            redaction: comparison.redaction,
            times: comparison.times.clone(),
            transactions: comparison.compaction.open.source.clone(),
            aborted: aborted.clone(),
        })
    }

    /// Puts a comparison where this one was.
    pub(super) fn restore(&self, comparison: &mut Comparison) {
        comparison.digest = self.digest;
        comparison.count = self.count;
        comparison.redaction = self.redaction;
        comparison.times.clone_from(&self.times);
        comparison.last_epoch = self.last_epoch;
        let transactions = self.transactions.clone();
        comparison.compaction.open = Both { source: transactions.clone(), target: transactions };
    }
}

/// Where progress is noted. Without a file nothing is written.
#[derive(Debug)]
pub(super) struct Store {
    path: Option<PathBuf>,
    content: Mutex<Content>,
}

impl Store {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or belongs to another call; which field, its value, and what was expected.
    pub(super) fn open(options: &Options) -> Result<Self, String> {
        let call = Call {
            version: VERSION,
            source: options.source.bootstrap.clone(),
            target: options.target.as_ref().map(|target| target.bootstrap.clone()).unwrap_or_default(),
            from_offset: options.from_offset,
            to_offset: options.to_offset,
            allow_redacted: options.allow_redacted,
        };
        let fresh = Content { call: call.clone(), partitions: Vec::new() };
        let content = match &options.state {
            Some(path) => read(path)?.unwrap_or(fresh),
            None => fresh,
        };
        differs(&content.call, &call)?;
        Ok(Self { path: options.state.clone(), content: Mutex::new(content) })
    }

    /// Takes up the partitions that there are now. Those that are under way go on within the bounds they had; what was found of
    /// those that are decided holds if both sides still stand as they did, else they are verified anew, as is everything in a
    /// topic that was created anew or is judged by another module that may rewrite.
    ///
    /// # Errors
    /// The file has a partition that is not among them.
    pub(super) fn take_up<'a>(
        &self,
        partitions: impl Iterator<Item = &'a Planned>,
    ) -> Result<Vec<Entry>, String> {
        let mut content = self.content();
        let mut known = std::mem::take(&mut content.partitions);
        for planned in partitions {
            let index = known.iter().position(|entry| entry.is_of(&planned.partition));
            let before = index.map(|index| known.swap_remove(index));
            let entry = match before.filter(|before| before.holds(&Stood::of(planned))) {
                Some(before) => before,
                None => Entry::new(planned),
            };
            content.partitions.push(entry);
        }
        match known.first() {
            Some(entry) => Err(format!(
                "it has partition {} of topic `{}`, which is not among those to verify",
                entry.partition, entry.topic
            )),
            None => Ok(content.partitions.clone()),
        }
    }

    /// Notes how far a partition has come.
    pub(super) fn save(&self, partition: &Partition, saved: Saved) {
        self.change(partition, |entry| entry.saved = Some(saved));
    }

    /// Notes what a partition came to.
    pub(super) fn done(&self, partition: &Partition, report: PartitionReport) {
        self.change(partition, |entry| entry.report = Some(report));
    }

    /// True if there is a file to be kept up to date.
    pub(super) fn is_kept(&self) -> bool {
        self.path.is_some()
    }

    /// Writes the file: beside it first, then in its place.
    ///
    /// # Errors
    /// The disk's, naming the file.
    pub(super) fn write(&self) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        let content = self.content().clone();
        write(path, &content).map_err(|error| format!("cannot be written: {error}"))
    }

    /// Removes the file, as there is nothing left to go on with.
    ///
    /// # Errors
    /// The disk's, naming the file.
    pub(super) fn remove(&self) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("cannot be removed: {error}"))
            }
            _ => Ok(()),
        }
    }

    fn change(&self, partition: &Partition, change: impl FnOnce(&mut Entry)) {
        let mut content = self.content();
        if let Some(entry) = content.partitions.iter_mut().find(|entry| entry.is_of(partition)) {
            change(entry);
        }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stood {
    fn of(planned: &Planned) -> Self {
        let Both { source, target } = planned.topic_ids;
        Self {
            topic_ids: Both { source: id_text(source), target: id_text(target) },
            leader_epochs: planned.leader_epochs,
            bounds: planned.bounds,
            rewriting_by: planned.permits.rewriting_by.clone(),
        }
    }

    fn is_of_same_topics(&self, other: &Self) -> bool {
        self.topic_ids == other.topic_ids && self.rewriting_by == other.rewriting_by
    }
}

impl Entry {
    fn new(planned: &Planned) -> Self {
        let Partition { topic, index } = planned.partition.clone();
        Self { topic, partition: index, stood: Stood::of(planned), saved: None, report: None }
    }

    /// Where the logs stood.
    pub(super) fn bounds(&self) -> Both<Bounds> {
        self.stood.bounds
    }

    /// What it came to, unless that is still open: what could not be decided then may be now.
    pub(super) fn decided(&self) -> Option<&PartitionReport> {
        self.report.as_ref().filter(|report| report.verdict != Verdict::Undecided)
    }

    /// True if it can be gone on from, or is done, as the two sides stand now.
    fn holds(&self, now: &Stood) -> bool {
        if self.decided().is_some() { self.stood == *now } else { self.stood.is_of_same_topics(now) }
    }

    fn is_of(&self, partition: &Partition) -> bool {
        self.partition == partition.index && self.topic == partition.topic
    }
}

fn read(path: &Path) -> Result<Option<Content>, String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    let unknown = |error: serde_json::Error| format!("is no state of a verification: {error}");
    // Another version has other fields, so that comes first.
    let content: serde_json::Value = serde_json::from_str(&text).map_err(unknown)?;
    match content.pointer("/call/version") {
        Some(version) if *version != VERSION => {
            Err(format!("is of another version: its version is `{version}`, expected `{VERSION}`"))
        }
        _ => serde_json::from_value(content).map(Some).map_err(unknown),
    }
}

fn write(path: &Path, content: &Content) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let mut file = File::create(&beside)?;
    serde_json::to_writer(&mut file, content)?;
    file.flush()?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

fn differs(found: &Call, asked: &Call) -> Result<(), String> {
    let offset = |offset: Option<i64>| offset.map_or_else(|| "none".to_owned(), |offset| offset.to_string());
    let fields = [
        ("version", found.version.to_string(), asked.version.to_string()),
        ("source", found.source.join(","), asked.source.join(",")),
        ("target", found.target.join(","), asked.target.join(",")),
        ("from-offset", offset(found.from_offset), offset(asked.from_offset)),
        ("to-offset", offset(found.to_offset), offset(asked.to_offset)),
        ("allow-redacted", found.allow_redacted.to_string(), asked.allow_redacted.to_string()),
    ];
    let differing = fields.into_iter().find(|(_, found, asked)| found != asked);
    differing.map_or(Ok(()), |(name, found, asked)| {
        Err(format!("is of another call: its {name} is `{found}`, expected `{asked}`"))
    })
}
