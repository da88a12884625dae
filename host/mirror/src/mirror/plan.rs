//! What a mirror would do, found out without changing anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::MirrorError;
use super::admin::Admin;
use super::config::{MirrorConfig, OnDataLost};
use super::discover::{Selection, Treatment};
use super::progress::Board;
use super::settings;
use super::target::Keeper;
use super::trouble::Trouble;
use crate::cluster::{At, Cluster, ClusterError, Partition, TopicInfo, Topics, id_text};

/// Partitions that are asked about at the same time.
const ASKING_MAX: usize = 64;

/// What is done with a topic first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// It is created at the destination, as an exact topic.
    Create,
    /// It is there already: the copy goes on, with more partitions if the source has more.
    GoOn,
    /// It is shown, and not copied.
    Pause,
    /// It cannot be mirrored.
    Stop,
}

/// What a mirror would do with one topic of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedTopic {
    /// Its name.
    pub topic: String,
    /// Its id at the source, as Kafka writes it.
    pub source_topic_id: String,
    /// What is done with it.
    pub step: Step,
    /// The destination's topic of that name, if there is one.
    pub copy: Option<PlannedCopy>,
    /// Why it cannot be mirrored, or would have to wait.
    pub reason: Option<String>,
    /// What an operator can do about that.
    pub remedy: Option<String>,
    /// Settings that the copy gets; `None` for those that it has and loses.
    pub settings: BTreeMap<String, Option<String>>,
    /// Settings whose values the source keeps secret, which are not carried over.
    pub secret: Vec<String>,
    /// What else an operator should know beforehand.
    pub notes: Vec<String>,
    /// Its partitions, by index.
    pub partitions: Vec<PlannedPartition>,
}

/// What the destination has of a topic before anything is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedCopy {
    /// It is an exact topic.
    pub exact: bool,
    /// How many partitions it has; those that the source has more are added.
    pub partitions: usize,
}

/// Where one partition stands before anything is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedPartition {
    /// Its index.
    pub partition: i32,
    /// The source's log start offset.
    pub source_start: i64,
    /// The source's high watermark.
    pub source_end: i64,
    /// Where the copy ends, as its readers see it; -1 where there is none yet.
    pub end: i64,
}

/// What a mirror with this configuration would do at first. Only asks; of the destination, too.
///
/// # Errors
/// One of the clusters does not answer, or no topic matches.
pub async fn plan(config: &MirrorConfig) -> Result<Vec<PlannedTopic>, MirrorError> {
    let (source, target) = (Cluster::new(config.source.clone()), Cluster::new(config.target.clone()));
    let selection = Selection::new(config);
    let all = source.topics(Topics::All).await.map_err(MirrorError::Source)?;
    let wanted: Vec<(TopicInfo, Treatment)> = all
        .into_iter()
        .map(|topic| (selection.treatment(&topic), topic))
        .filter(|(treatment, _)| *treatment != Treatment::Ignored)
        .map(|(treatment, topic)| (topic, treatment))
        .collect();
    if wanted.is_empty() {
        return Err(MirrorError::NoTopic { patterns: selection.patterns() });
    }
    let clusters =
        Clusters { source, target, config, admin: Admin::new(config.target.clone()), board: Board::new().0 };
    let mut planned = Vec::new();
    for (topic, treatment) in wanted {
        planned.push(clusters.topic(&topic, treatment).await?);
    }
    planned.sort_by(|one, other| one.topic.cmp(&other.topic));
    Ok(planned)
}

/// Both sides, and what a keeper needs beside.
struct Clusters<'a> {
    source: Cluster,
    target: Cluster,
    config: &'a MirrorConfig,
    admin: Admin,
    board: Board,
}

impl Clusters<'_> {
    async fn topic(&self, info: &TopicInfo, treatment: Treatment) -> Result<PlannedTopic, MirrorError> {
        let wanted = &self.config.target_config;
        let keeper = Keeper { admin: &self.admin, target: &self.target, board: &self.board, wanted };
        let mut planned = PlannedTopic {
            topic: info.name.clone(),
            source_topic_id: id_text(info.id),
            step: if treatment == Treatment::Paused { Step::Pause } else { Step::GoOn },
            copy: self.copy(&info.name).await?,
            reason: None,
            remedy: None,
            settings: BTreeMap::new(),
            secret: Vec::new(),
            notes: Vec::new(),
            partitions: Vec::new(),
        };
        let copied = planned.copy.map_or(0, |copy| copy.partitions);
        planned.partitions = self.partitions(info, copied).await?;
        if treatment == Treatment::Paused {
            return Ok(planned);
        }
        if planned.copy.is_none() {
            planned.step = Step::Create;
        } else {
            match keeper.check(info).await {
                Ok(()) => {}
                Err(Trouble::Pass(reason) | Trouble::Realign(reason)) => planned.reason = Some(reason),
                Err(Trouble::Halt(halt)) => {
                    planned.step = Step::Stop;
                    (planned.reason, planned.remedy) = (Some(halt.reason), Some(halt.remedy.to_owned()));
                    return Ok(planned);
                }
            }
        }
        self.settings(&mut planned).await?;
        self.notes(&mut planned);
        Ok(planned)
    }

    async fn copy(&self, topic: &str) -> Result<Option<PlannedCopy>, MirrorError> {
        let named = [topic.to_owned()];
        let found = self.target.topics(Topics::Named(&named)).await.map_err(MirrorError::Target)?;
        let Some(found) = found.first() else { return Ok(None) };
        let set = self.target.topic_configs(topic).await.map_err(MirrorError::Target)?;
        Ok(Some(PlannedCopy { exact: settings::is_copy(&set), partitions: found.partitions.len() }))
    }

    fn notes(&self, planned: &mut PlannedTopic) {
        let told = self.board.snapshot().notes.into_iter().filter(|note| note.topic == planned.topic);
        planned.notes.extend(told.map(|note| note.text));
        let comes = match self.config.on_data_lost {
            OnDataLost::Stop => "the partition would stop",
            OnDataLost::Skip => "they would be skipped",
        };
        // A copy that holds nothing begins where the source does.
        let lacking = planned.partitions.iter().filter(|one| one.end > 0 && one.source_start > one.end);
        planned.notes.extend(lacking.map(|one| {
            format!(
                "partition {}: the source deleted offsets {} to {} before they were copied, {comes}",
                one.partition, one.end, one.source_start
            )
        }));
    }

    async fn settings(&self, planned: &mut PlannedTopic) -> Result<(), MirrorError> {
        let source = self.source.topic_configs(&planned.topic).await.map_err(MirrorError::Source)?;
        let carried = settings::carried(&source, &self.config.target_config);
        let copy = match planned.step {
            Step::Create => settings::Settings::new(),
            _ => self.target.topic_configs(&planned.topic).await.map_err(MirrorError::Target)?,
        };
        planned.settings = settings::changes(&carried, &copy).into_iter().collect();
        if planned.step == Step::Create {
            let own = self.config.target_config.iter();
            planned.settings.extend(own.map(|(key, value)| (key.to_owned(), Some(value.to_owned()))));
        }
        planned.secret = carried.secret().map(str::to_owned).collect();
        Ok(())
    }

    /// Where all partitions stand; the copy has so many of them.
    async fn partitions(
        &self,
        info: &TopicInfo,
        copied: usize,
    ) -> Result<Vec<PlannedPartition>, MirrorError> {
        let room = Arc::new(Semaphore::new(ASKING_MAX));
        let mut asking = JoinSet::new();
        for (place, partition) in info.partitions.iter().enumerate() {
            let partition = Partition { topic: info.name.clone(), index: partition.index };
            let (source, room) = (self.source.clone(), Arc::clone(&room));
            let target = (place < copied).then(|| self.target.clone());
            asking.spawn(async move {
                // It is never closed.
                let _permit = room.acquire().await;
                look(&source, target.as_ref(), &partition).await
            });
        }
        let mut partitions = Vec::new();
        while let Some(asked) = asking.join_next().await {
            partitions.push(asked.map_err(|error| MirrorError::Ended(error.to_string()))??);
        }
        partitions.sort_by_key(|partition| partition.partition);
        Ok(partitions)
    }
}

async fn look(
    source: &Cluster,
    target: Option<&Cluster>,
    partition: &Partition,
) -> Result<PlannedPartition, MirrorError> {
    let source_start = offset(source, partition, At::Earliest).await.map_err(MirrorError::Source)?;
    let source_end = offset(source, partition, At::Latest).await.map_err(MirrorError::Source)?;
    let end = match target {
        Some(target) => offset(target, partition, At::Latest).await.map_err(MirrorError::Target)?,
        None => -1,
    };
    Ok(PlannedPartition { partition: partition.index, source_start, source_end, end })
}

async fn offset(cluster: &Cluster, partition: &Partition, at: At) -> Result<i64, ClusterError> {
    Ok(cluster.list_offset(partition, at, false).await?.map_or(-1, |listed| listed.offset))
}
