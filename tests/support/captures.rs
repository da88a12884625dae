//! Captured logs of a real Kafka, in `tests/captures` (its README says how they were made), and what that broker answered
//! about them.

use crate::answers::{Answers, times_of};
use crate::kafka::premise::Files;
use crate::kafka::sources::{EveryKind, SourcePartition, partitions};
use crate::segments;
use anyhow::Context;
use bytes::Bytes;
use std::fs;
use std::path::{Path, PathBuf};
use verbatim_wire::exact_producer::{ExactProducer, Source, Target, Write};
use verbatim_wire::tag::EpochEntry;

/// Topics that are too large to be kept.
const NOT_KEPT: &[&str] = &["large", "huge"];

/// A partition of a real Kafka.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Which one.
    pub partition: SourcePartition,
    /// Its `.log` files, one after the other.
    pub log: Bytes,
    /// Its leader epochs, from its `leader-epoch-checkpoint`.
    pub epochs: Vec<EpochEntry>,
    /// What the broker answered.
    pub answers: Answers,
}

/// All captures, by topic and partition.
///
/// # Errors
/// If one cannot be read.
pub fn all() -> anyhow::Result<Vec<Capture>> {
    kept()
        .map(|partition| Capture::load(partition).with_context(|| folder(partition).display().to_string()))
        .collect()
}

/// Captures everything anew from a source of every kind.
///
/// # Errors
/// If a file cannot be read or written, or the source does not answer.
pub fn make(source: &EveryKind) -> anyhow::Result<()> {
    for partition in kept() {
        let (folder, index) = (folder(partition), u32::try_from(partition.index)?);
        let log = segments::log_bytes(&source.kafka.data(), partition.topic, index)?;
        let name = (partition.topic, partition.index);
        let answers = Answers::ask(&source.kafka.addresses(), name, &times_of(&log)?)?;
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("log"), log)?;
        let checkpoint = segments::folder(&source.kafka.data(), partition.topic, index)?;
        fs::copy(checkpoint.join("leader-epoch-checkpoint"), folder.join("leader-epoch-checkpoint"))?;
        fs::write(folder.join("answers.json"), serde_json::to_string_pretty(&answers)? + "\n")?;
    }
    Ok(())
}

impl Capture {
    /// Writes it to a host as a mirror would: its batches, epochs, start and end. The topic is there.
    ///
    /// # Errors
    /// If the host does not take it.
    pub async fn write(&self, producer: &ExactProducer) -> anyhow::Result<()> {
        let mut copy = producer.open(Target::new(self.partition.topic, self.partition.index)).await?;
        let found = copy.found();
        copy.resume_at(found.end, found.last_epoch).await?;
        let (_, end) = self.answers.ends()?;
        let source = Source { start: self.answers.earliest.offset, end, epoch: self.answers.leader_epoch };
        let write = Write {
            from: found.end,
            batches: self.log.clone(),
            entries: self.epochs.clone(),
            end_to: Some(end),
            source,
        };
        copy.write(write).await?.await?;
        Ok(())
    }

    /// The times that were asked for.
    pub fn times(&self) -> Vec<i64> {
        self.answers.listed.iter().map(|listed| listed.time).filter(|time| *time >= 0).collect()
    }

    /// The same as the files it was made of.
    pub fn files(&self) -> Files {
        Files {
            partition: self.partition,
            log: self.log.clone(),
            epochs: self.epochs.clone(),
            start: self.answers.earliest.offset,
        }
    }

    fn load(partition: SourcePartition) -> anyhow::Result<Self> {
        let folder = folder(partition);
        let log = fs::read(folder.join("log"))?.into();
        let epochs = segments::leader_epochs(&folder)?;
        let answers = serde_json::from_str(&fs::read_to_string(folder.join("answers.json"))?)?;
        Ok(Self { partition, log, epochs, answers })
    }
}

fn kept() -> impl Iterator<Item = SourcePartition> {
    partitions().into_iter().filter(|partition| !NOT_KEPT.contains(&partition.topic))
}

fn folder(partition: SourcePartition) -> PathBuf {
    let captures: &Path = &crate::workspace().join("tests/captures");
    captures.join(format!("{}-{}", partition.topic, partition.index))
}
