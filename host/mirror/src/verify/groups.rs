//! Committed offsets of consumer groups on both sides.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use verbatim_wire::error::describe;
use verbatim_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use verbatim_wire::messages::{
    GroupId, ListGroupsRequest, ListGroupsResponse, OffsetFetchRequest, OffsetFetchResponse,
};
use verbatim_wire::protocol::StrBytes;

use super::report::{Both, Committed, GroupReport, Verdict};
use crate::cluster::{Cluster, ClusterError};

/// From this version on a question names several groups.
const SEVERAL_FROM: i16 = 8;
/// From this version on leaving out topics asks for all there are.
const ALL_FROM: i16 = 2;
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

/// A group is listed by the broker that coordinates it, so that broker is asked for its offsets.
async fn commits(cluster: &Cluster, wanted: &Wanted<'_>) -> Result<Commits, ClusterError> {
    let mut commits = Commits::new();
    for broker in cluster.brokers().await? {
        let code = |answer: &ListGroupsResponse| answer.error_code;
        let what = format!("groups of broker {}", broker.id);
        let answer = cluster.call_broker(broker.id, &what, 0, &ListGroupsRequest::default(), code).await?;
        refused(&what, answer.error_code)?;
        let groups = answer.groups.into_iter().map(|group| group.group_id.to_string());
        for group in groups.filter(|group| wanted.groups.iter().any(|pattern| pattern.is_match(group))) {
            let found = offsets(cluster, broker.id, &group).await?;
            let found = found.into_iter().filter(|((_, topic, _), _)| wanted.topics.contains(topic));
            commits.extend(found);
        }
    }
    Ok(commits)
}

async fn offsets(cluster: &Cluster, broker: i32, group: &str) -> Result<Commits, ClusterError> {
    let what = format!("offsets of group {group}");
    let id = GroupId(StrBytes::from_string(group.to_owned()));
    let asked = OffsetFetchRequestGroup::default().with_group_id(id.clone()).with_topics(None);
    let request = OffsetFetchRequest::default().with_groups(vec![asked]);
    let answer = cluster.call_broker(broker, &what, SEVERAL_FROM, &request, code).await;
    let answer = match answer {
        Err(ClusterError::Unsupported(_)) => {
            let request = OffsetFetchRequest::default().with_group_id(id).with_topics(None);
            cluster.call_broker(broker, &what, ALL_FROM, &request, code).await?
        }
        answer => answer?,
    };
    refused(&what, code(&answer))?;
    Ok(found(group, answer))
}

fn code(answer: &OffsetFetchResponse) -> i16 {
    let groups = answer.groups.iter().map(|group| group.error_code);
    groups.chain([answer.error_code]).find(|code| *code != 0).unwrap_or(0)
}

fn refused(what: &str, code: i16) -> Result<(), ClusterError> {
    if code == 0 {
        return Ok(());
    }
    Err(ClusterError::Refused { what: format!("{what} ({})", describe(code)), code })
}

/// Both shapes of the answer; a negative offset is no commit.
fn found(group: &str, answer: OffsetFetchResponse) -> Commits {
    let several = answer.groups.into_iter().flat_map(|group| group.topics).flat_map(|topic| {
        let name = topic.name.to_string();
        topic.partitions.into_iter().map(move |one| {
            (
                name.clone(),
                one.partition_index,
                one.committed_offset,
                one.committed_leader_epoch,
                one.metadata,
            )
        })
    });
    let one = answer.topics.into_iter().flat_map(|topic| {
        let name = topic.name.to_string();
        topic.partitions.into_iter().map(move |one| {
            (
                name.clone(),
                one.partition_index,
                one.committed_offset,
                one.committed_leader_epoch,
                one.metadata,
            )
        })
    });
    let committed = several.chain(one).filter(|(_, _, offset, ..)| *offset >= 0);
    committed
        .map(|(topic, partition, offset, leader_epoch, metadata)| {
            let metadata = metadata.map(|text| text.to_string()).unwrap_or_default();
            ((group.to_owned(), topic, partition), Committed { offset, leader_epoch, metadata })
        })
        .collect()
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
