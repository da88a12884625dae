//! Committed offsets: kept exactly, over any end of the host, and gone with what they belong to.

use std::sync::Arc;

use verbatim_test_disk::{Fault, Kind, Loss, SimDisk};
use verbatim_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use verbatim_wire::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use verbatim_wire::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};

use super::*;
use crate::support::{DELETE, EXACT, batch, order, topic};

/// Offset, leader epoch and metadata.
type Kept = (i64, i32, String);

fn nothing() -> Kept {
    (-1, -1, String::new())
}

fn commit_request(
    id: &str,
    name: &str,
    partition: i32,
    (offset, epoch, metadata): (i64, i32, &str),
) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(partition)
        .with_committed_offset(offset)
        .with_committed_leader_epoch(epoch)
        .with_committed_metadata(Some(text(metadata)));
    let topic = OffsetCommitRequestTopic::default().with_name(topic(name)).with_partitions(vec![partition]);
    OffsetCommitRequest::default()
        .with_group_id(group(id))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic])
}

async fn commit(host: &Host, id: &str, name: &str, partition: i32, what: (i64, i32, &str)) -> i16 {
    let answer = host.client.call(&commit_request(id, name, partition, what)).await.unwrap();
    answer.topics[0].partitions[0].error_code
}

async fn committed(host: &Host, id: &str, name: &str, partition: i32) -> Kept {
    let asked =
        OffsetFetchRequestTopics::default().with_name(topic(name)).with_partition_indexes(vec![partition]);
    let of_group = OffsetFetchRequestGroup::default().with_group_id(group(id)).with_topics(Some(vec![asked]));
    let answer = host.client.call(&OffsetFetchRequest::default().with_groups(vec![of_group])).await.unwrap();
    let found = &answer.groups[0].topics[0].partitions[0];
    assert_eq!((answer.groups[0].error_code, found.error_code), (0, 0));
    (found.committed_offset, found.committed_leader_epoch, found.metadata.clone().unwrap().to_string())
}

async fn remove(host: &Host, name: &str) {
    let named = delete_topics_request::DeleteTopicState::default().with_name(Some(topic(name)));
    let answer = host.client.call(&DeleteTopicsRequest::default().with_topics(vec![named])).await.unwrap();
    assert_eq!(answer.responses[0].error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_are_kept_with_epoch_and_metadata_in_every_version() {
    let host = host().await;
    host.create("plain", 2, &[]).await;
    for version in versions(ApiKey::OffsetCommit) {
        let epoch = if version >= 6 { 7 } else { -1 };
        let id = format!("group-{version}");
        let mut request = commit_request(&id, "plain", 1, (i64::from(version) + 40, epoch, "note"));
        request.topics.push(commit_request("", "none", 0, (1, -1, "")).topics.remove(0));
        request.topics.push(commit_request("", "plain", 2, (1, -1, "")).topics.remove(0));
        request.topics.push(commit_request("", "plain", 0, (1, -1, &"x".repeat(4_097))).topics.remove(0));
        let answer = host.client.send(version, &request).await.unwrap();
        let codes: Vec<i16> = answer.topics.iter().map(|topic| topic.partitions[0].error_code).collect();
        assert_eq!(codes, [0, 3, 3, 12], "OffsetCommit v{version}");
        assert_eq!(
            committed(&host, &id, "plain", 1).await,
            (i64::from(version) + 40, epoch, "note".to_owned())
        );
        assert_eq!(committed(&host, &id, "plain", 0).await, nothing());
    }
    for version in versions(ApiKey::OffsetFetch) {
        for all in [false, true].into_iter().filter(|all| !all || version >= 2) {
            fetch_in(&host, version, all).await;
        }
    }
    assert_eq!(list(&host, &["Empty"]).await.len(), 8);
    assert_eq!(describe(&host, "group-9").await.group_state.as_str(), "Empty");
}

/// A group that committed for one partition, asked for that and another one, or for all there are.
async fn fetch_in(host: &Host, version: i16, all: bool) {
    let mut request = OffsetFetchRequest::default();
    if version >= 8 {
        let asked =
            OffsetFetchRequestTopics::default().with_name(topic("plain")).with_partition_indexes(vec![1, 0]);
        let topics = (!all).then(|| vec![asked]);
        request.groups =
            vec![OffsetFetchRequestGroup::default().with_group_id(group("group-9")).with_topics(topics)];
    } else {
        let asked =
            OffsetFetchRequestTopic::default().with_name(topic("plain")).with_partition_indexes(vec![1, 0]);
        request.group_id = group("group-9");
        request.topics = (!all).then(|| vec![asked]);
    }
    let answer = host.client.send(version, &request).await.unwrap();
    let old = answer.topics.iter().flat_map(|topic| &topic.partitions);
    let new = answer.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| &topic.partitions);
    let found: Vec<_> = old
        .map(|one| (one.partition_index, one.committed_offset, one.committed_leader_epoch))
        .chain(new.map(|one| (one.partition_index, one.committed_offset, one.committed_leader_epoch)))
        .collect();
    let epoch = if version >= 5 { 7 } else { -1 };
    let expected = [(1, 49, epoch), (0, -1, -1)];
    assert_eq!(found, expected[..if all { 1 } else { 2 }], "OffsetFetch v{version} all={all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_moves_the_offsets_of_a_group_under_its_members() {
    let host = host().await;
    host.create("plain", 1, &[]).await;
    assert_eq!(commit(&host, "g", "plain", 0, (5, 1, "")).await, 0);
    let joined = join(&host.client, 9, "g", &text("")).await;
    assert_eq!(commit(&host, "g", "plain", 0, (6, 1, "")).await, 25);
    sync(&host.client, 5, "g", &joined).await;
    assert_eq!(commit(&host, "g", "plain", 0, (6, 1, "")).await, 25);
    let by = |generation| {
        commit_request("g", "plain", 0, (7, 2, "mine"))
            .with_generation_id_or_member_epoch(generation)
            .with_member_id(joined.member_id.clone())
    };
    for (generation, code) in [(joined.generation_id + 1, 22), (joined.generation_id, 0)] {
        let answer = host.client.call(&by(generation)).await.unwrap();
        assert_eq!(answer.topics[0].partitions[0].error_code, code);
    }
    assert_eq!(committed(&host, "g", "plain", 0).await, (7, 2, "mine".to_owned()));
    let forget = |name| {
        let partition = OffsetDeleteRequestPartition::default();
        let asked =
            OffsetDeleteRequestTopic::default().with_name(topic(name)).with_partitions(vec![partition]);
        OffsetDeleteRequest::default().with_group_id(group("g")).with_topics(vec![asked])
    };
    host.create("other", 1, &[]).await;
    for (name, code) in [("plain", 86), ("other", 0), ("none", 3)] {
        let answer = host.client.call(&forget(name)).await.unwrap();
        assert_eq!((answer.error_code, answer.topics[0].partitions[0].error_code), (0, code), "{name}");
    }
    leave(&host.client, 5, "g", &joined.member_id).await;
    assert_eq!(host.client.call(&forget("plain")).await.unwrap().topics[0].partitions[0].error_code, 0);
    assert_eq!(committed(&host, "g", "plain", 0).await, nothing());
    let unknown = forget("plain").with_group_id(group("none"));
    assert_eq!(host.client.call(&unknown).await.unwrap().error_code, 69);
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_outlive_every_end_of_the_host_but_not_their_topic_or_group() {
    let host = host().await;
    for name in ["plain", "gone"] {
        host.create(name, 1, &[]).await;
        for id in ["a", "b"] {
            assert_eq!(commit(&host, id, name, 0, (5, 3, id)).await, 0);
        }
    }
    let host = host.restart().await;
    assert_eq!(committed(&host, "a", "plain", 0).await, (5, 3, "a".to_owned()));
    remove(&host, "gone").await;
    host.create("gone", 1, &[]).await;
    assert_eq!(committed(&host, "a", "gone", 0).await, nothing(), "another topic of that name");
    assert_eq!(delete(&host, "b").await, 0);
    assert_eq!(committed(&host, "b", "plain", 0).await, nothing());
    let host = host.restart().await;
    assert_eq!(committed(&host, "a", "plain", 0).await, (5, 3, "a".to_owned()));
    assert_eq!(committed(&host, "a", "gone", 0).await, nothing());
    assert_eq!(list(&host, &[]).await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_loss_takes_no_offset_that_was_acknowledged() {
    let disk = SimDisk::new(3);
    let mut host = Host::on(disk.process()).await;
    host.create("plain", 1, &[]).await;
    for round in 0..10 {
        let mut last = 0;
        for offset in 0..20 {
            last = round * 100 + offset;
            assert_eq!(commit(&host, "g", "plain", 0, (last, 3, "note")).await, 0);
        }
        disk.power_loss(if round % 2 == 0 { Loss::Everything } else { Loss::Random });
        host = host.crash(disk.process()).await;
        assert_eq!(committed(&host, "g", "plain", 0).await, (last, 3, "note".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_is_told_and_nothing_is_taken_for_kept() {
    let disk = Arc::new(SimDisk::new(3));
    let host = Host::on(Arc::clone(&disk) as _).await;
    host.create("plain", 1, &[]).await;
    assert_eq!(commit(&host, "g", "plain", 0, (5, 3, "")).await, 0);
    disk.set_rule(|operation| {
        let is_ours = operation.path.to_string_lossy().contains("group-offsets");
        (is_ours && operation.kind == Kind::Write).then_some(Fault::Tear)
    });
    assert_eq!(commit(&host, "g", "plain", 0, (6, 3, "")).await, 15);
    assert_eq!(committed(&host, "g", "plain", 0).await.0, 5);
    disk.clear_faults();
    assert_eq!(commit(&host, "g", "plain", 0, (7, 3, "")).await, 0);
    let host = host.restart().await;
    assert_eq!(committed(&host, "g", "plain", 0).await.0, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_are_bounded_by_their_bytes() {
    let host = Host::with_config(|config| config.limits.group_offsets_bytes_max = 2_000).await;
    host.create("plain", 1, &[]).await;
    let mut kept = 0;
    while commit(&host, &format!("group-{kept}"), "plain", 0, (1, 0, "")).await == 0 {
        kept += 1;
        assert!(kept < 20, "never refused");
    }
    assert!(kept > 2);
    assert_eq!(commit(&host, "one-more", "plain", 0, (1, 0, "")).await, 28);
    assert_eq!(commit(&host, "group-0", "plain", 0, (2, 0, "")).await, 0, "what is there can move");
    assert_eq!(delete(&host, "group-1").await, 0);
    assert_eq!(commit(&host, "one-more", "plain", 0, (1, 0, "")).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_partition_is_above_every_epoch_that_was_committed() {
    let host = host().await;
    host.create("copy", 2, &[EXACT]).await;
    host.write("copy", &batch(0, 5, &["a", "b"]), &order((0, -1), (2, 5))).await;
    for (id, epoch) in [("a", 12), ("b", 9), ("hostile", i32::MAX - 1)] {
        let partition = i32::from(id == "hostile");
        assert_eq!(commit(&host, id, "copy", partition, (1, epoch, "")).await, 0);
    }
    assert_eq!(host.alter("copy", &[("produce.at.offset", DELETE, None)], false).await.0, 0);
    let epochs: Vec<i32> =
        host.metadata("copy").await.partitions.iter().map(|partition| partition.leader_epoch).collect();
    assert_eq!(epochs, [13, 0]);
    assert_eq!(host.epoch_end("copy", 12, -1).await, (0, 5, 2));
    assert_eq!(committed(&host, "a", "copy", 0).await.1, 12);
}
