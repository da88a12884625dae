//! Committed offsets of consumer groups on both sides.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use super::report::{Both, Committed, GroupReport, Verdict};
use crate::cluster::{Cluster, ClusterError, GroupOffset};

/// Group, topic, partition.
type Place = (String, String, i32);
type Commits = BTreeMap<Place, Committed>;

/// What is looked at.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) groups: &'a [Regex],
    pub(super) topics: &'a BTreeSet<String>,
}

/// Compares what groups have committed to these topics.
pub(super) async fn compare(clusters: Both<&Cluster>, wanted: &Wanted<'_>) -> Vec<GroupReport> {
    let (source, target) = tokio::join!(commits(clusters.source, wanted), commits(clusters.target, wanted));
    match (source, target) {
        (Ok(source), Ok(target)) => reports(&source, &target),
        (source, target) => {
            let undecided = |side: &str, error: ClusterError| GroupReport {
                group: "*".to_owned(),
                topic: "*".to_owned(),
                partition: -1,
                verdict: Verdict::Undecided,
                reason: format!("the {side} does not tell its groups' offsets: {error}"),
                committed: Both::default(),
            };
            let failed = [source.err().map(|error| undecided("source", error))];
            failed
                .into_iter()
                .chain([target.err().map(|error| undecided("target", error))])
                .flatten()
                .collect()
        }
    }
}

fn reports(source: &Commits, target: &Commits) -> Vec<GroupReport> {
    let places: BTreeSet<&Place> = source.keys().chain(target.keys()).collect();
    let report = |place: &Place| {
        let committed = Both { source: source.get(place).cloned(), target: target.get(place).cloned() };
        let (verdict, reason) = judge(committed.source.as_ref(), committed.target.as_ref());
        let (group, topic, partition) = place.clone();
        GroupReport { group, topic, partition, verdict, reason, committed }
    };
    places.into_iter().map(report).collect()
}

fn judge(source: Option<&Committed>, target: Option<&Committed>) -> (Verdict, String) {
    match (source, target) {
        (Some(s), Some(t)) if s == t => (Verdict::Identical, String::new()),
        (Some(s), Some(t)) => (Verdict::Diverged, format!("source {}; target {}", told(s), told(t))),
        (Some(s), None) => (Verdict::Missing, format!("only the source has a commit: {}", told(s))),
        (None, t) => {
            let what = t.map(told).unwrap_or_default();
            (Verdict::Missing, format!("only the target has a commit: {what}"))
        }
    }
}

fn told(committed: &Committed) -> String {
    let Committed { offset, leader_epoch, metadata } = committed;
    format!("offset {offset}, leader epoch {leader_epoch}, metadata `{metadata}`")
}

async fn commits(cluster: &Cluster, wanted: &Wanted<'_>) -> Result<Commits, ClusterError> {
    let mut commits = Commits::new();
    let groups = cluster.groups().await?.into_iter();
    for (group, node) in groups.filter(|(group, _)| wanted.groups.iter().any(|one| one.is_match(group))) {
        for GroupOffset { partition, offset, leader_epoch, metadata } in
            cluster.group_offsets(node, &group).await?
        {
            if wanted.topics.contains(&partition.topic) {
                let place = (group.clone(), partition.topic, partition.index);
                commits.insert(place, Committed { offset, leader_epoch, metadata });
            }
        }
    }
    Ok(commits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_equal_in_offset_epoch_and_metadata_or_named() {
        let commit = |offset, leader_epoch| Committed { offset, leader_epoch, metadata: "m".to_owned() };
        let (one, other) = (commit(5, 1), commit(5, 2));
        assert_eq!(judge(Some(&one), Some(&one)).0, Verdict::Identical);
        assert_eq!(judge(Some(&one), Some(&other)).0, Verdict::Diverged);
        assert_eq!(judge(Some(&one), None).0, Verdict::Missing);
        let (verdict, reason) = judge(None, Some(&other));
        assert_eq!(verdict, Verdict::Missing);
        assert!(reason.contains("only the target") && reason.contains("leader epoch 2"), "{reason}");
    }
}
