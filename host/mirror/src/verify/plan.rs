//! Which partitions there are to compare, and where they stand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::error::VerifyError;
use super::options::Options;
use super::partition::bounds;
use super::redaction::REWRITE;
use super::report::{Both, Bounds, PartitionReport, Side, Verdict};
use super::shared::Shared;
use crate::cluster::{Cluster, ClusterError, Partition, TopicConfig, TopicInfo, Topics};

/// Partitions whose bounds are asked for at the same time.
const ASKED_MAX: usize = 32;
/// The setting that says whether a topic is compacted, and its value if so.
const CLEANUP: (&str, &str) = ("cleanup.policy", "compact");
/// The setting that names the module that judges what is written to a topic.
const MODULE: &str = "produce.module";

/// A partition that both sides have.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) partition: Partition,
    pub(super) topic_ids: Both<Uuid>,
    pub(super) leader_epochs: Both<i32>,
    pub(super) bounds: Both<Bounds>,
    pub(super) permits: Permits,
}

/// In what both sides' topics allow that their logs differ.
#[derive(Debug, Clone, Default)]
pub(super) struct Permits {
    /// A side may be compacted.
    pub(super) compaction: bool,
    /// The module that may have rewritten records of the target; `None` if its topic allows none to.
    pub(super) rewriting_by: Option<String>,
}

/// What is to be done, and what is known already.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) planned: Vec<Planned>,
    /// Missing on a side, or not to be reached.
    pub(super) reports: Vec<PartitionReport>,
}

type TopicsByName = BTreeMap<String, TopicInfo>;

/// The topics of a side that are asked for.
pub(super) async fn topics(
    options: &Options,
    side: Side,
    cluster: &Cluster,
) -> Result<TopicsByName, VerifyError> {
    let all =
        cluster.topics(Topics::All).await.map_err(|error| VerifyError::cluster(side, cluster, error))?;
    let asked = all.into_iter().filter(|topic| is_asked_for(options, topic));
    Ok(asked.map(|topic| (topic.name.clone(), topic)).collect())
}

fn is_asked_for(options: &Options, topic: &TopicInfo) -> bool {
    let literal = |pattern: &str| {
        let inner = pattern.strip_prefix("^(?:").and_then(|rest| rest.strip_suffix(")$"));
        inner.unwrap_or(pattern) == topic.name
    };
    options
        .topics
        .iter()
        .any(|pattern| if topic.internal { literal(pattern.as_str()) } else { pattern.is_match(&topic.name) })
}

/// Sorts out what both sides have, and asks where it stands: the target first, as it follows the source.
pub(super) async fn plan(
    shared: &Arc<Shared>,
    target: &Cluster,
    topics: Both<TopicsByName>,
) -> Result<Plan, VerifyError> {
    let mut plan = Plan::default();
    let names: BTreeSet<&String> = topics.source.keys().chain(topics.target.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        let (source, target_topic) = (topics.source.get(name), topics.target.get(name));
        let permits = match (source, target_topic) {
            (Some(_), Some(_)) => Permits::ask(&shared.source, target, name).await,
            _ => Permits::default(),
        };
        let indexes = |topic: Option<&TopicInfo>| -> BTreeSet<i32> {
            topic.into_iter().flat_map(|topic| &topic.partitions).map(|one| one.index).collect()
        };
        let (of_source, of_target) = (indexes(source), indexes(target_topic));
        for index in of_source.union(&of_target) {
            let lacks = match (of_source.contains(index), of_target.contains(index)) {
                (true, true) => {
                    let partition = Partition { topic: name.clone(), index: *index };
                    let about = Both { source: about(source, *index), target: about(target_topic, *index) };
                    found.push((partition, about, permits.clone()));
                    continue;
                }
                (true, false) => (Side::Target, target_topic.is_some()),
                (false, _) => (Side::Source, source.is_some()),
            };
            let what = if lacks.1 { "partition" } else { "topic" };
            let reason = format!("the {} does not have this {what}", lacks.0);
            plan.reports.push(PartitionReport::new(name, *index).with_verdict(Verdict::Missing, reason));
        }
    }
    let sides = Both { source: shared.source.clone(), target: target.clone() };
    let asked = ask_bounds(&sides, found.iter().map(|(partition, ..)| partition.clone())).await;
    for ((partition, about, permits), bounds) in found.into_iter().zip(asked) {
        let topic_ids = Both { source: about.source.0, target: about.target.0 };
        let leader_epochs = Both { source: about.source.1, target: about.target.1 };
        match bounds {
            Ok(bounds) => {
                plan.planned.push(Planned { partition, topic_ids, leader_epochs, bounds, permits });
            }
            Err((side, error)) => {
                let report = PartitionReport::new(&partition.topic, partition.index);
                let reason = format!("the {side} does not tell where it stands: {error}");
                plan.reports.push(report.with_verdict(Verdict::Undecided, reason));
            }
        }
    }
    Ok(plan)
}

/// A topic's id, and a partition's leader epoch.
fn about(topic: Option<&TopicInfo>, index: i32) -> (Uuid, i32) {
    let Some(topic) = topic else { return (Uuid::nil(), -1) };
    let found = topic.partitions.iter().find(|one| one.index == index);
    (topic.id, found.map_or(-1, |one| one.leader_epoch))
}

impl Permits {
    /// A topic whose settings are not told may be compacted, and not rewritten.
    async fn ask(source: &Cluster, target: &Cluster, topic: &str) -> Self {
        let (source, target) = tokio::join!(source.topic_configs(topic), target.topic_configs(topic));
        Self::of(&source.unwrap_or_default(), &target.unwrap_or_default())
    }

    fn of(source: &Settings, target: &Settings) -> Self {
        let may_compact = |settings: &Settings| {
            let policies = value(settings, CLEANUP.0);
            policies.is_none_or(|policies| policies.split(',').any(|policy| policy.trim() == CLEANUP.1))
        };
        let module = value(target, MODULE).unwrap_or("unknown").to_owned();
        Self {
            compaction: may_compact(source) || may_compact(target),
            rewriting_by: (value(target, REWRITE.0) == Some(REWRITE.1)).then_some(module),
        }
    }
}

type Settings = BTreeMap<String, TopicConfig>;

fn value<'a>(settings: &'a Settings, name: &str) -> Option<&'a str> {
    settings.get(name).and_then(|config| config.value.as_deref())
}

type Asked = Result<Both<Bounds>, (Side, ClusterError)>;

async fn ask_bounds(clusters: &Both<Cluster>, partitions: impl Iterator<Item = Partition>) -> Vec<Asked> {
    let room = Arc::new(Semaphore::new(ASKED_MAX));
    let mut asking = JoinSet::new();
    for (index, partition) in partitions.enumerate() {
        let (clusters, room) = (clusters.clone(), Arc::clone(&room));
        asking.spawn(async move {
            // The semaphore is never closed.
            let _room = room.acquire_owned().await;
            let target = bounds(&clusters.target, &partition).await.map_err(|error| (Side::Target, error));
            let source = bounds(&clusters.source, &partition).await.map_err(|error| (Side::Source, error));
            (index, source.and_then(|source| Ok(Both { source, target: target? })))
        });
    }
    let mut asked = asking.join_all().await;
    asked.sort_by_key(|(index, _)| *index);
    asked.into_iter().map(|(_, bounds)| bounds).collect()
}
