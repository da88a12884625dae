//! Requests that are legal on the wire and meant to hurt.

use std::time::Duration;

use verbatim_wire::ApiKey;
use verbatim_wire::messages::*;

use crate::support::{Fetch, Host, SET, batch, fetch_request, order, produce_request, text, told, topic};

#[tokio::test(flavor = "multi_thread")]
async fn a_long_value_is_refused_in_versions_whose_strings_are_short() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let long = "x".repeat(32_767);
    for version in [2, 4, 7] {
        let config = create_topics_request::CreatableTopicConfig::default()
            .with_name(text("cleanup.policy"))
            .with_value(Some(text(&long)));
        let asked = create_topics_request::CreatableTopic::default()
            .with_name(topic("long"))
            .with_num_partitions(1)
            .with_replication_factor(1)
            .with_configs(vec![config]);
        let request = CreateTopicsRequest::default().with_topics(vec![asked]);
        let answer = host.client.send(version, &request).await.unwrap();
        assert_eq!(answer.topics[0].error_code, 40, "CreateTopics v{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_named_many_times_is_described_once() {
    let host = Host::start().await;
    host.create("wide", 100, &[]).await;
    let asked = metadata_request::MetadataRequestTopic::default().with_name(Some(topic("wide")));
    let request = MetadataRequest::default().with_topics(Some(vec![asked; 50_000]));
    let answer = host.client.call(&request).await.unwrap();
    assert_eq!(answer.topics.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_behind_a_change_finds_it_made() {
    let host = Host::start().await;
    let create = create("new", 1);
    let created = host.client.submit(7, &create).await.unwrap();
    let produced = host.client.submit(12, &produce_request("new", batch(0, 0, &["a"]))).await.unwrap();
    let deleted = host.client.submit(6, &delete(Some("new"), uuid::Uuid::nil())).await.unwrap();
    let refused = host.client.submit(12, &produce_request("new", batch(0, 0, &["a"]))).await.unwrap();
    assert_eq!(created.await.unwrap().topics[0].error_code, 0);
    assert_eq!(produced.await.unwrap().responses[0].partition_responses[0].error_code, 0);
    assert_eq!(deleted.await.unwrap().responses[0].error_code, 0);
    assert_eq!(refused.await.unwrap().responses[0].partition_responses[0].error_code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_fetch_learns_that_its_topic_was_deleted() {
    let host = Host::start().await;
    host.create("gone", 1, &[]).await;
    let other = host.connect().await;
    let ask = Fetch { min_bytes: 1, wait_ms: 20_000, ..Fetch::at(0) };
    let request = fetch_request(&[("gone", ask)], ask);
    let waiting = tokio::spawn(async move { other.send(12, &request).await.unwrap() });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = host.client.call(&delete(Some("gone"), uuid::Uuid::nil())).await.unwrap();
    assert_eq!(answer.responses[0].error_code, 0);
    let answer = waiting.await.unwrap();
    assert_eq!(answer.responses[0].partitions[0].error_code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_named_twice_in_a_fetch_is_read_once() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    host.produce("plain", &batch(0, 0, &["a"]), None).await;
    let answers = host.fetch_all(&[("plain", Fetch::at(0)), ("plain", Fetch::at(0))], Fetch::at(0)).await;
    let codes: Vec<i16> = answers.iter().map(|part| part.error_code).collect();
    assert_eq!(codes, [0, 42]);
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_fields_are_judged_and_answered() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.write("copy", &batch(100, 5, &["a"]), &order((0, -1), (120, 5))).await;
    for (offset, code) in [(i64::MIN, 1), (-1, 1), (i64::MAX, 1), (121, 1), (120, 78), (101, 0)] {
        for (max, all) in [(0, 0), (-1, -1), (i32::MAX, i32::MAX)] {
            let ask = Fetch { max_bytes: max, max_bytes_in_all: all, ..Fetch::at(offset) };
            assert_eq!(host.fetch("copy", ask).await.error_code, code, "{offset} {max}");
        }
    }
    for (last, code) in [(i32::MAX, 1), (i32::MIN, 0), (6, 1)] {
        assert_eq!(host.fetch("copy", Fetch { last, ..Fetch::at(101) }).await.error_code, code, "{last}");
    }
    for (current, code) in [(i32::MAX, 75), (i32::MIN, 0), (4, 74)] {
        assert_eq!(host.fetch("copy", Fetch { current, ..Fetch::at(101) }).await.error_code, code);
    }
    for zero in [0, -1] {
        let ask = Fetch { max_bytes: zero, max_bytes_in_all: zero, ..Fetch::at(100) };
        assert!(!host.fetch("copy", ask).await.records.unwrap().is_empty());
    }
    let isolation = fetch_request(&[("copy", Fetch::at(100))], Fetch::at(100)).with_isolation_level(7);
    let answer = host.client.send(12, &isolation).await.unwrap();
    assert_eq!(answer.responses[0].partitions[0].error_code, 42);
    assert_eq!(host.alter("copy", &[("retention.ms", SET, Some("1e9"))], true).await.0, 40);
    assert_eq!(host.alter("copy", &[("retention.ms", SET, Some(" 1"))], true).await.0, 0);
    assert_eq!(host.alter("copy", &[("retention.ms", SET, Some("\u{663}"))], true).await.0, 40);
    assert_eq!(host.alter("copy", &[("retention.ms", SET, Some("-2"))], true).await.0, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_never_deletes_a_later_topic_of_the_same_name() {
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    let id = host.metadata("t").await.topic_id;
    // Changes wait for one another in the order they came, and this one takes long enough for the others to come.
    let (slow, first, second, third) =
        (host.connect().await, host.connect().await, host.connect().await, host.connect().await);
    let slow = slow.submit(7, &create("wide", 300)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let deleted = first.submit(6, &delete(Some("t"), uuid::Uuid::nil())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let created = second.submit(7, &create("t", 1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let late = third.submit(6, &delete(None, id)).await.unwrap();
    assert_eq!(slow.await.unwrap().topics[0].error_code, 0);
    assert_eq!(deleted.await.unwrap().responses[0].error_code, 0);
    assert_eq!(created.await.unwrap().topics[0].error_code, 0);
    assert_eq!(late.await.unwrap().responses[0].error_code, 100);
    assert_ne!(host.metadata("t").await.topic_id, id);
    assert_eq!(host.metadata("t").await.error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_named_twice_is_answered_in_full_once() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let resource = describe_configs_request::DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text("plain"))
        .with_configuration_keys(None);
    let request = DescribeConfigsRequest::default().with_resources(vec![resource; 2]);
    let answer = host.client.call(&request).await.unwrap();
    let codes: Vec<i16> = answer.results.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [0, 42]);
    let partition = list_offsets_request::ListOffsetsPartition::default().with_timestamp(-1);
    let asked = list_offsets_request::ListOffsetsTopic::default()
        .with_name(topic("plain"))
        .with_partitions(vec![partition; 2]);
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![asked]);
    let answer = host.client.call(&request).await.unwrap();
    let codes: Vec<i16> = answer.topics[0].partitions.iter().map(|part| part.error_code).collect();
    assert_eq!(codes, [0, 42]);
    let answer = host.client.call(&request.with_isolation_level(2)).await.unwrap();
    assert_eq!(answer.topics[0].partitions[0].error_code, 42);
}

fn create(name: &str, partitions: i32) -> CreateTopicsRequest {
    let asked = create_topics_request::CreatableTopic::default()
        .with_name(topic(name))
        .with_num_partitions(partitions)
        .with_replication_factor(1);
    CreateTopicsRequest::default().with_topics(vec![asked])
}

fn delete(name: Option<&str>, id: uuid::Uuid) -> DeleteTopicsRequest {
    let asked =
        delete_topics_request::DeleteTopicState::default().with_name(name.map(topic)).with_topic_id(id);
    DeleteTopicsRequest::default().with_topics(vec![asked])
}

#[tokio::test(flavor = "multi_thread")]
async fn nulls_are_answered_in_every_version() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let odd = uuid::Uuid::from_u128(u128::MAX);
    for version in versions(ApiKey::Metadata).filter(|version| *version >= 10) {
        for id in [odd, uuid::Uuid::nil()] {
            // Only from v12 on a name may be null.
            let name = (version < 12).then(|| topic(""));
            let asked = metadata_request::MetadataRequestTopic::default().with_name(name).with_topic_id(id);
            let request = MetadataRequest::default().with_topics(Some(vec![asked]));
            let code = host.client.send(version, &request).await.unwrap().topics[0].error_code;
            assert!([17, 100].contains(&code), "Metadata v{version} {id}: {code}");
        }
    }
    for version in versions(ApiKey::DeleteTopics).filter(|version| *version >= 6) {
        for (name, id, code) in
            [(None, uuid::Uuid::nil(), 42), (Some("plain"), odd, 42), (None, odd, 100), (Some(""), odd, 42)]
        {
            let answer = host.client.send(version, &delete(name, id)).await.unwrap();
            assert_eq!(answer.responses[0].error_code, code, "DeleteTopics v{version} {name:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn extreme_positions_are_answered_in_every_version() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    for version in versions(ApiKey::OffsetForLeaderEpoch) {
        for (index, epoch, code) in [(-1, 0, 3), (i32::MAX, 0, 3), (0, i32::MAX, 0), (0, i32::MIN, 0)] {
            let partition = offset_for_leader_epoch_request::OffsetForLeaderPartition::default()
                .with_partition(index)
                .with_leader_epoch(epoch);
            let asked = offset_for_leader_epoch_request::OffsetForLeaderTopic::default()
                .with_topic(topic("plain"))
                .with_partitions(vec![partition]);
            let request = OffsetForLeaderEpochRequest::default().with_topics(vec![asked]);
            let found =
                host.client.send(version, &request).await.unwrap().topics.remove(0).partitions.remove(0);
            assert_eq!((found.error_code, found.end_offset), (code, -1), "v{version} {index} {epoch}");
        }
    }
    for version in versions(ApiKey::ListOffsets) {
        let since = |first| if version >= first { 0 } else { 35 };
        for (index, timestamp, code) in [
            (-1, -1, 3),
            (0, i64::MAX, 0),
            (0, i64::MIN, 35),
            (0, -3, since(7)),
            (0, -4, since(8)),
            (0, -5, since(9)),
            (0, -6, since(11)),
        ] {
            let partition = list_offsets_request::ListOffsetsPartition::default()
                .with_partition_index(index)
                .with_timestamp(timestamp);
            let asked = list_offsets_request::ListOffsetsTopic::default()
                .with_name(topic("plain"))
                .with_partitions(vec![partition]);
            let request = ListOffsetsRequest::default().with_topics(vec![asked]);
            let answer = host.client.send(version, &request).await.unwrap();
            assert_eq!(answer.topics[0].partitions[0].error_code, code, "ListOffsets v{version} {timestamp}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn extreme_writes_and_names_are_answered_in_every_version() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    for version in versions(ApiKey::Produce).filter(|version| *version < 13) {
        for (index, records, code) in
            [(-1, None, 3), (i32::MAX, None, 3), (0, None, 87), (0, Some(vec![]), 87)]
        {
            let partition = produce_request::PartitionProduceData::default()
                .with_index(index)
                .with_records(records.map(bytes::Bytes::from));
            let data = produce_request::TopicProduceData::default()
                .with_name(topic("plain"))
                .with_partition_data(vec![partition]);
            let request = ProduceRequest::default().with_acks(-1).with_topic_data(vec![data]);
            let answer = host.client.send(version, &request).await.unwrap();
            let found = &answer.responses[0].partition_responses[0];
            assert_eq!((found.error_code, found.base_offset), (code, -1), "Produce v{version} {index}");
        }
        let strange = ProduceRequest::default().with_acks(i16::MIN);
        assert!(host.client.send(version, &strange).await.unwrap().responses.is_empty());
    }
    for version in versions(ApiKey::CreateTopics) {
        for (name, code) in [("", 17), ("..", 17), ("a/b", 17), ("\u{e4}", 17), ("plain", 36)] {
            let answer = host.client.send(version, &create(name, 1)).await.unwrap();
            assert_eq!(answer.topics[0].error_code, code, "CreateTopics v{version} {name}");
        }
        for partitions in [0, -2, i32::MIN, i32::MAX, 100_000] {
            let answer = host.client.send(version, &create("t", partitions)).await.unwrap();
            assert_eq!(answer.topics[0].error_code, 37, "CreateTopics v{version} {partitions}");
        }
        let longest = format!("{:0>249}", version);
        assert_eq!(host.client.send(version, &create(&longest, 2)).await.unwrap().topics[0].error_code, 0);
        let longer = "x".repeat(250);
        assert_eq!(host.client.send(version, &create(&longer, 1)).await.unwrap().topics[0].error_code, 17);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_run_into_partition_numbers_keep_their_folders_apart() {
    let host = Host::start().await;
    for name in ["n", "n-1", "n-1-0", "n.1", "n_1"] {
        assert_eq!(host.create(name, 11, &[]).await.0, 0);
    }
    let removed = host.client.call(&delete(Some("n-1"), uuid::Uuid::nil())).await.unwrap();
    assert_eq!(removed.responses[0].error_code, 0);
    let host = host.restart().await;
    for name in ["n", "n-1-0", "n.1", "n_1"] {
        assert_eq!(host.produce(name, &batch(0, 0, &["a"]), None).await.error_code, 0, "{name}");
    }
}

fn versions(key: ApiKey) -> std::ops::RangeInclusive<i16> {
    key.api().min..=key.api().max
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_and_readers_survive_deletion_and_creation_under_the_same_name() {
    let host = Host::start().await;
    host.create("t", 2, &[]).await;
    let mut busy = Vec::new();
    for _ in 0..3 {
        let (writer, reader) = (host.connect().await, host.connect().await);
        busy.push(tokio::spawn(async move {
            let mut codes = Vec::new();
            for _ in 0..200 {
                let produced = writer.send(12, &produce_request("t", batch(0, 0, &["a"]))).await.unwrap();
                codes.push(produced.responses[0].partition_responses[0].error_code);
            }
            codes
        }));
        busy.push(tokio::spawn(async move {
            let mut codes = Vec::new();
            let ask = Fetch { wait_ms: 5, min_bytes: 1 << 20, ..Fetch::at(0) };
            for _ in 0..200 {
                let fetched = reader.send(12, &fetch_request(&[("t", ask)], ask)).await.unwrap();
                codes.push(fetched.responses[0].partitions[0].error_code);
            }
            codes
        }));
    }
    for _ in 0..20 {
        let deleted = host.client.call(&delete(Some("t"), uuid::Uuid::nil())).await.unwrap();
        assert_eq!(deleted.responses[0].error_code, 0);
        assert_eq!(host.create("t", 2, &[]).await, (0, String::new()));
    }
    for codes in busy {
        let codes = codes.await.unwrap();
        assert!(codes.iter().all(|code| [0, 3].contains(code)), "{codes:?}");
    }
    let end = host.list("t", -1, false).await.1;
    let host = host.restart().await;
    assert_eq!(host.list("t", -1, false).await.1, end);
    assert_eq!(host.produce("t", &batch(0, 0, &["a"]), None).await.base_offset, end);
}

#[tokio::test(flavor = "multi_thread")]
async fn misused_tags_are_told_where_the_partition_stands() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.create("plain", 1, &[]).await;
    let first = batch(100, 5, &["a", "b"]);
    let tag = order((0, -1), (102, 5));
    host.write("copy", &first, &tag).await;
    let host = host.restart().await;
    let again = host.produce("copy", &first, Some(&tag)).await;
    assert_eq!((again.error_code, again.base_offset, told(&again).end), (0, 100, 102));
    let next = batch(102, 5, &["c"]);
    for (expected, before, code) in
        [(101, 5, 1), (103, 5, 1), (102, 4, 1), (102, 6, 1), (i64::MAX, 5, 1), (102, i32::MAX, 1)]
    {
        let answer = host.produce("copy", &next, Some(&order((expected, before), (103, 5)))).await;
        let tag = told(&answer);
        assert_eq!((answer.error_code, tag.end, tag.last_epoch, tag.shown_epoch), (code, 102, 5, 5));
    }
    let (answer, _) = host.produce_as(12, 1, "copy", &next, Some(&order((102, 5), (103, 5)))).await;
    assert_eq!((answer.error_code, told(&answer).end), (44, 102));
    let lost = host.produce("plain", &batch(0, 0, &["a"]), Some(&order((0, -1), (1, 0)))).await;
    assert_eq!(lost.error_code, 44);
    let other = batch(100, 5, &["a", "x"]);
    let diverged = host.produce("copy", &other, Some(&order((102, 5), (103, 5)))).await;
    assert_eq!((diverged.error_code, told(&diverged).diverged.is_some()), (87, true));
    assert_eq!(host.list("copy", -1, false).await.1, 102);
}
