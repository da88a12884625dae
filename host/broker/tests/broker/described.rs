//! What tools ask: folders, producers, resources, topics page by page, what one may do.

use verbatim_batch::BatchBuilder;
use verbatim_batch::NewRecord;
use verbatim_wire::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use verbatim_wire::messages::*;
use verbatim_wire::{APIS, ApiKey};

use crate::support::{Host, TIME_MS, batch, order, text, topic};

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_is_described_with_what_lies_in_it() {
    use describe_log_dirs_request::DescribableLogDirTopic;
    let host = Host::start().await;
    host.create("a", 2, &[]).await;
    host.create("b", 1, &[]).await;
    let sent = batch(0, 0, &["x"]);
    host.produce("a", &sent, None).await;
    let api = ApiKey::DescribeLogDirs.api();
    for version in api.min..=api.max {
        let all = DescribeLogDirsRequest::default().with_topics(None);
        let mut answer = host.client.send(version, &all).await.unwrap();
        let folder = answer.results.remove(0);
        assert_eq!((answer.error_code, answer.results.len(), folder.error_code), (0, 0, 0));
        assert_eq!(*folder.log_dir, *host.data().display().to_string());
        assert!(host.data().is_absolute());
        let sizes: Vec<_> = folder
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|part| (&*topic.name.0, part.partition_size)))
            .collect();
        let length = i64::try_from(sent.len()).unwrap();
        assert_eq!(sizes, [("a", length), ("a", 0), ("b", 0)], "v{version}");
        if version >= 4 {
            assert!(0 < folder.usable_bytes && folder.usable_bytes <= folder.total_bytes, "{folder:?}");
        }
        let named = |name, partitions| {
            DescribableLogDirTopic::default().with_topic(topic(name)).with_partitions(partitions)
        };
        let some = vec![named("a", vec![1, 1, 7, -1]), named("none", vec![0]), named("a", vec![1])];
        let request = DescribeLogDirsRequest::default().with_topics(Some(some));
        let answer = host.client.send(version, &request).await.unwrap();
        let topics = &answer.results[0].topics;
        assert_eq!((topics.len(), topics[0].partitions.len()), (1, 1), "v{version}");
        assert_eq!(topics[0].partitions[0].partition_index, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn producers_are_described_with_their_open_transactions() {
    use describe_producers_request::TopicRequest;
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    host.exact("copy", &[]).await;
    let id = host.client.call(&InitProducerIdRequest::default().with_transactional_id(None)).await.unwrap();
    let id = id.producer_id.0;
    let record = |delta| NewRecord::new(delta, TIME_MS + i64::from(delta)).value(b"x");
    let plain = BatchBuilder::new(0).producer(id, 0, 0).record(record(0)).record(record(1));
    assert_eq!(host.produce("t", &plain.build().unwrap(), None).await.error_code, 0);
    let open = BatchBuilder::new(40).leader_epoch(5).producer(7, 3, 11).transactional().record(record(0));
    host.write("copy", &open.build().unwrap(), &order((0, -1), (41, 5))).await;
    let asked =
        |name, indices| TopicRequest::default().with_name(topic(name)).with_partition_indexes(indices);
    let request = DescribeProducersRequest::default().with_topics(vec![
        asked("t", vec![0, 0, 1]),
        asked("copy", vec![0]),
        asked("none", vec![0]),
        asked("a/b", vec![0]),
    ]);
    let answer = host.client.send(0, &request).await.unwrap();
    let codes: Vec<_> = answer
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|part| (&*topic.name.0, part.error_code)))
        .collect();
    assert_eq!(codes, [("a/b", 17), ("copy", 0), ("none", 3), ("t", 0), ("t", 3)]);
    assert!(answer.topics[2].partitions[0].error_message.as_ref().is_some_and(|text| text.contains("none")));
    let told = |index: usize| {
        let producers = &answer.topics[index].partitions[0].active_producers;
        assert_eq!(producers.len(), 1);
        let one = &producers[0];
        let state = (one.producer_id.0, one.producer_epoch, one.last_sequence, one.last_timestamp);
        (state, one.coordinator_epoch, one.current_txn_start_offset)
    };
    assert_eq!(told(3), ((id, 0, 1, TIME_MS + 1), -1, -1));
    assert_eq!(told(1), ((7, 3, 11, TIME_MS), -1, 40));
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_listed_by_type() {
    let host = Host::start().await;
    host.create("b", 1, &[]).await;
    host.create("a", 1, &[]).await;
    let list = async |version, types: &[i8]| {
        let request = ListConfigResourcesRequest::default().with_resource_types(types.to_vec());
        let answer = host.client.send(version, &request).await.unwrap();
        let listed = answer.config_resources.iter();
        let listed = listed.map(|one| (one.resource_type, one.resource_name.to_string())).collect::<Vec<_>>();
        (answer.error_code, listed)
    };
    let named = |kind: i8, name: &str| (kind, name.to_owned());
    let topics = [named(2, "a"), named(2, "b")];
    let all = [&topics[..], &[named(4, "1"), named(8, "1")]].concat();
    assert_eq!(list(0, &[]).await, (0, vec![]));
    assert_eq!(list(1, &[]).await, (0, all));
    assert_eq!(list(1, &[2, 16, 32]).await, (0, topics.to_vec()));
    assert_eq!(list(1, &[2, 3]).await, (35, vec![]));
}

/// Topics with their partitions, and the next cursor.
type Page = (Vec<(String, i16, Vec<i32>)>, Option<(String, i32)>);

async fn page(host: &Host, names: &[&str], limit: i32, cursor: Option<(&str, i32)>) -> Page {
    let cursor = cursor.map(|(name, partition)| {
        Cursor::default().with_topic_name(topic(name)).with_partition_index(partition)
    });
    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(names.iter().map(|name| TopicRequest::default().with_name(topic(name))).collect())
        .with_response_partition_limit(limit)
        .with_cursor(cursor);
    let answer = host.client.send(0, &request).await.unwrap();
    let topics = answer.topics.iter().map(|topic| {
        let indices = topic.partitions.iter().map(|part| part.partition_index).collect();
        assert_eq!(topic.topic_id.is_nil(), topic.error_code != 0);
        assert_eq!(topic.topic_authorized_operations, 3_576);
        (topic.name.as_ref().unwrap().to_string(), topic.error_code, indices)
    });
    let next = answer.next_cursor.map(|next| (next.topic_name.to_string(), next.partition_index));
    (topics.collect(), next)
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_described_page_by_page() {
    let host = Host::start().await;
    for (name, partitions) in [("c", 2), ("a", 3), ("b", 1)] {
        host.create(name, partitions, &[]).await;
    }
    let of = |name: &str, indices: &[i32]| (name.to_owned(), 0, indices.to_vec());
    let at = |name: &str, index| Some((name.to_owned(), index));
    let (a, b, c) = (of("a", &[0, 1, 2]), of("b", &[0]), of("c", &[0, 1]));
    assert_eq!(page(&host, &[], 2_000, None).await, (vec![a.clone(), b.clone(), c.clone()], None));
    assert_eq!(page(&host, &[], 2, None).await, (vec![of("a", &[0, 1])], at("a", 2)));
    let second = (vec![of("a", &[2]), b.clone()], at("c", 0));
    assert_eq!(page(&host, &[], 2, Some(("a", 2))).await, second);
    assert_eq!(page(&host, &[], 2, Some(("c", 0))).await, (vec![c.clone()], None));
    // Whoever asks for none gets one; a topic that is gone goes on with the next; a partition that is not there is none.
    assert_eq!(page(&host, &[], -5, None).await, (vec![of("a", &[0])], at("a", 1)));
    assert_eq!(page(&host, &[], 9, Some(("aa", 1))).await, (vec![b.clone(), c.clone()], None));
    assert_eq!(page(&host, &[], 9, Some(("c", 7))).await, (vec![of("c", &[])], None));
    // Named ones, sorted and once each.
    let unknown = ("d".to_owned(), 3, vec![]);
    let named = page(&host, &["d", "c", "a", "c"], 9, None).await;
    assert_eq!(named, (vec![a, c.clone(), unknown.clone()], None));
    assert_eq!(page(&host, &["d", "c", "a"], 9, Some(("c", 0))).await, (vec![c, unknown], None));
    assert_eq!(page(&host, &["a/b"], 9, None).await.0, [("a/b".to_owned(), 17, vec![])]);
    // Cursors that cannot be.
    assert_eq!(page(&host, &["a"], 9, Some(("b", 0))).await, (vec![("a".to_owned(), 42, vec![])], None));
    assert_eq!(page(&host, &["a"], 9, Some(("a", -1))).await, (vec![("a".to_owned(), 42, vec![])], None));
    assert_eq!(page(&host, &[], 9, Some(("a", -1))).await, (vec![], None));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_describes_2000_partitions_at_most() {
    let host = Host::start().await;
    host.create("t", 2_003, &[]).await;
    let (topics, next) = page(&host, &[], i32::MAX, None).await;
    assert_eq!((topics[0].2.len(), next), (2_000, Some(("t".to_owned(), 2_000))));
    assert_eq!(page(&host, &[], i32::MAX, Some(("t", 2_000))).await.0[0].2, [2_000, 2_001, 2_002]);
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_are_told_to_those_who_ask() {
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    for version in 8..=ApiKey::Metadata.api().max {
        for asked in [false, true] {
            let request = MetadataRequest::default()
                .with_topics(None)
                .with_include_topic_authorized_operations(asked)
                .with_include_cluster_authorized_operations(asked && version <= 10);
            let answer = host.client.send(version, &request).await.unwrap();
            let expected = if asked { 3_576 } else { i32::MIN };
            assert_eq!(answer.topics[0].topic_authorized_operations, expected, "Metadata v{version}");
            let expected = if asked && version <= 10 { 8_096 } else { i32::MIN };
            assert_eq!(answer.cluster_authorized_operations, expected, "Metadata v{version}");
        }
    }
    let api = ApiKey::DescribeCluster.api();
    for version in api.min..=api.max {
        let request = DescribeClusterRequest::default().with_include_cluster_authorized_operations(true);
        let answer = host.client.send(version, &request).await.unwrap();
        assert_eq!((answer.error_code, answer.cluster_authorized_operations), (0, 8_096), "v{version}");
        if version >= 1 {
            for (kind, code) in [(2, 114), (3, 115)] {
                let request = DescribeClusterRequest::default().with_endpoint_type(kind);
                let answer = host.client.send(version, &request).await.unwrap();
                assert_eq!((answer.error_code, answer.endpoint_type, answer.brokers.len()), (code, 1, 0));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_are_not_altered_and_the_refusal_names_the_property() {
    use incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let host = Host::start().await;
    let config =
        AlterableConfig::default().with_name(text("log.retention.ms")).with_value(Some(text("1000")));
    let resource = AlterConfigsResource::default()
        .with_resource_type(4)
        .with_resource_name(text("1"))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let answer = host.client.call(&request).await.unwrap().responses.remove(0);
    assert_eq!(answer.error_code, 42);
    assert!(answer.error_message.unwrap().contains("log.retention.ms"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_api_of_the_table_is_told_to_clients() {
    let host = Host::start().await;
    let answer = host.client.call(&ApiVersionsRequest::default()).await.unwrap();
    let told: Vec<i16> = answer.api_keys.iter().map(|api| api.api_key).collect();
    assert_eq!(told, APIS.iter().map(|api| api.key.number()).collect::<Vec<_>>());
}
