//! Every version of every API that is advertised is answered, in a form that its clients can read.

use verbatim_wire::messages::*;
use verbatim_wire::{APIS, ApiKey};

use crate::support::{Fetch, Host, batch, order, text, topic};

#[tokio::test(flavor = "multi_thread")]
async fn reads_and_writes_are_answered_in_every_version() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.create("plain", 1, &[]).await;
    host.write("copy", &batch(100, 5, &["a"]), &order((0, -1), (120, 5))).await;
    let id = host.metadata("plain").await.topic_id;
    for version in versions(ApiKey::Produce) {
        for (name, code) in [("plain", 0), ("copy", 44), ("none", if version >= 13 { 100 } else { 3 })] {
            let partition = produce_request::PartitionProduceData::default()
                .with_records(Some(batch(0, 0, &["x"]).into()));
            let mut data = produce_request::TopicProduceData::default()
                .with_name(topic(name))
                .with_partition_data(vec![partition]);
            if version >= 13 {
                data.topic_id = match name {
                    "plain" => id,
                    "copy" => host.metadata("copy").await.topic_id,
                    _ => uuid::Uuid::from_u128(1),
                };
                data.name = TopicName::default();
            }
            let request = ProduceRequest::default().with_acks(-1).with_topic_data(vec![data]);
            let answer = host.client.send(version, &request).await.unwrap();
            assert_eq!(
                answer.responses[0].partition_responses[0].error_code, code,
                "Produce v{version} {name}"
            );
        }
    }
    for version in versions(ApiKey::Fetch).filter(|version| *version <= 12) {
        let last = if version >= 12 { 9 } else { -1 };
        for (ask, code) in [
            (Fetch { version, ..Fetch::at(100) }, 0),
            (Fetch { version, committed: true, ..Fetch::at(100) }, 0),
            (Fetch { version, ..Fetch::at(110) }, 78),
            (Fetch { version, last, ..Fetch::at(140) }, 1),
        ] {
            assert_eq!(host.fetch("copy", ask).await.error_code, code, "Fetch v{version} {}", ask.offset);
        }
    }
    for version in versions(ApiKey::Fetch).filter(|version| *version >= 13) {
        let ask = |id| {
            let partition = fetch_request::FetchPartition::default().with_partition_max_bytes(1_000);
            fetch_request::FetchTopic::default().with_topic_id(id).with_partitions(vec![partition])
        };
        let request = FetchRequest::default().with_topics(vec![ask(id), ask(uuid::Uuid::from_u128(1))]);
        let answer = host.client.send(version, &request).await.unwrap();
        let codes: Vec<i16> = answer.responses.iter().map(|topic| topic.partitions[0].error_code).collect();
        assert_eq!(codes, [0, 100], "Fetch v{version}");
        assert!(
            answer.responses[0].partitions[0].records.as_ref().is_some_and(|records| !records.is_empty())
        );
    }
    let session = FetchRequest::default().with_session_id(5).with_session_epoch(1);
    assert_eq!(host.client.send(12, &session).await.unwrap().error_code, 70);
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_are_answered_in_every_version() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.write("copy", &batch(100, 5, &["a"]), &order((0, -1), (120, 5))).await;
    for version in versions(ApiKey::ListOffsets) {
        for name in ["copy", "none"] {
            let partition = list_offsets_request::ListOffsetsPartition::default().with_timestamp(-1);
            let asked = list_offsets_request::ListOffsetsTopic::default()
                .with_name(topic(name))
                .with_partitions(vec![partition]);
            let request =
                ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![asked]);
            let answer = host.client.send(version, &request).await.unwrap();
            let expected = if name == "copy" { (0, 101) } else { (3, -1) };
            let found = &answer.topics[0].partitions[0];
            assert_eq!((found.error_code, found.offset), expected, "ListOffsets v{version} {name}");
        }
    }
    for version in versions(ApiKey::OffsetForLeaderEpoch) {
        let partition =
            offset_for_leader_epoch_request::OffsetForLeaderPartition::default().with_leader_epoch(5);
        let asked = offset_for_leader_epoch_request::OffsetForLeaderTopic::default()
            .with_topic(topic("copy"))
            .with_partitions(vec![partition]);
        let request = OffsetForLeaderEpochRequest::default().with_topics(vec![asked]);
        let answer = host.client.send(version, &request).await.unwrap();
        assert_eq!(answer.topics[0].partitions[0].end_offset, 120, "OffsetForLeaderEpoch v{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_there_is_is_told_in_every_version() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    for version in versions(ApiKey::Metadata) {
        let ask = |name: &str| metadata_request::MetadataRequestTopic::default().with_name(Some(topic(name)));
        let named = MetadataRequest::default().with_topics(Some(vec![ask("plain"), ask("none"), ask("a/b")]));
        let answer = host.client.send(version, &named).await.unwrap();
        let codes: Vec<i16> = answer.topics.iter().map(|topic| topic.error_code).collect();
        assert_eq!(codes, [0, 3, 17], "Metadata v{version}");
        let all = MetadataRequest::default().with_topics((version == 0).then(Vec::new));
        let answer = host.client.send(version, &all).await.unwrap();
        assert_eq!((answer.topics.len(), answer.brokers.len()), (1, 1), "Metadata v{version}");
        assert!(version < 2 || answer.cluster_id.is_some());
    }
    for version in versions(ApiKey::DescribeConfigs) {
        let ask = |kind, name: &str| {
            describe_configs_request::DescribeConfigsResource::default()
                .with_resource_type(kind)
                .with_resource_name(text(name))
                .with_configuration_keys(None)
        };
        let request = DescribeConfigsRequest::default()
            .with_include_synonyms(true)
            .with_resources(vec![ask(2, "plain"), ask(4, "1")]);
        let answer = host.client.send(version, &request).await.unwrap();
        assert!(answer.results.iter().all(|result| result.error_code == 0 && !result.configs.is_empty()));
    }
    for version in versions(ApiKey::DescribeCluster) {
        let answer = host.client.send(version, &DescribeClusterRequest::default()).await.unwrap();
        assert_eq!((answer.error_code, answer.brokers.len()), (0, 1), "DescribeCluster v{version}");
    }
    for version in versions(ApiKey::ApiVersions) {
        let answer = host.client.send(version, &ApiVersionsRequest::default()).await.unwrap();
        assert_eq!((answer.error_code, answer.api_keys.len()), (0, APIS.len()), "ApiVersions v{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_answered_in_every_version() {
    let host = Host::start().await;
    for version in versions(ApiKey::CreateTopics) {
        let ask = |name: &str, partitions| {
            create_topics_request::CreatableTopic::default()
                .with_name(topic(name))
                .with_num_partitions(partitions)
                .with_replication_factor(1)
        };
        let request =
            CreateTopicsRequest::default().with_topics(vec![ask(&format!("t{version}"), 1), ask("bad", 0)]);
        let answer = host.client.send(version, &request).await.unwrap();
        let codes: Vec<i16> = answer.topics.iter().map(|topic| topic.error_code).collect();
        assert_eq!(codes, [0, 37], "CreateTopics v{version}");
    }
    for version in versions(ApiKey::CreatePartitions) {
        let asked = create_partitions_request::CreatePartitionsTopic::default()
            .with_name(topic("t2"))
            .with_count(i32::from(version) + 2)
            .with_assignments(None);
        let answer =
            host.client.send(version, &CreatePartitionsRequest::default().with_topics(vec![asked])).await;
        assert_eq!(answer.unwrap().results[0].error_code, 0, "CreatePartitions v{version}");
    }
    for version in versions(ApiKey::AlterConfigs) {
        let resource = alter_configs_request::AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text("t2"));
        let answer =
            host.client.send(version, &AlterConfigsRequest::default().with_resources(vec![resource])).await;
        assert_eq!(answer.unwrap().responses[0].error_code, 0, "AlterConfigs v{version}");
    }
    for version in versions(ApiKey::IncrementalAlterConfigs) {
        let resource = |kind| {
            incremental_alter_configs_request::AlterConfigsResource::default()
                .with_resource_type(kind)
                .with_resource_name(text("t2"))
        };
        let request =
            IncrementalAlterConfigsRequest::default().with_resources(vec![resource(2), resource(4)]);
        let answer = host.client.send(version, &request).await.unwrap();
        let codes: Vec<i16> = answer.responses.iter().map(|one| one.error_code).collect();
        assert_eq!(codes, [0, 42], "IncrementalAlterConfigs v{version}");
    }
    for version in versions(ApiKey::DeleteTopics) {
        let mut request = DeleteTopicsRequest::default();
        let name = topic(&format!("t{}", version + 1));
        if version >= 6 {
            request.topics = vec![delete_topics_request::DeleteTopicState::default().with_name(Some(name))];
        } else {
            request.topic_names = vec![name, topic("none")];
        }
        let answer = host.client.send(version, &request).await.unwrap();
        assert_eq!(
            answer.responses[0].error_code,
            if version == 0 { 3 } else { 0 },
            "DeleteTopics v{version}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn coordinators_and_producer_ids_are_answered_in_every_version() {
    let host = Host::start().await;
    for version in versions(ApiKey::FindCoordinator) {
        let mut request = FindCoordinatorRequest::default();
        if version >= 4 {
            request.coordinator_keys = vec![text("group")];
        } else {
            request.key = text("group");
        }
        let answer = host.client.send(version, &request).await.unwrap();
        let one = answer.coordinators.first().map_or((answer.error_code, answer.node_id), |one| {
            assert_eq!(one.key, text("group"));
            (one.error_code, one.node_id)
        });
        assert_eq!(one, (0, BrokerId(1)), "FindCoordinator v{version}");
    }
    let mut seen = std::collections::HashSet::new();
    for version in versions(ApiKey::InitProducerId) {
        let answer = host
            .client
            .send(version, &InitProducerIdRequest::default().with_transactional_id(None))
            .await
            .unwrap();
        assert_eq!(answer.error_code, 0, "InitProducerId v{version}");
        assert!(seen.insert(answer.producer_id.0));
        let transactional =
            InitProducerIdRequest::default().with_transactional_id(Some(TransactionalId(text("t"))));
        assert_eq!(host.client.send(version, &transactional).await.unwrap().error_code, 53);
    }
    assert!(seen.iter().all(|id| id >> 32 == seen.iter().next().unwrap() >> 32));
}

fn versions(key: ApiKey) -> std::ops::RangeInclusive<i16> {
    key.api().min..=key.api().max
}
