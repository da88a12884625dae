//! Topics and their properties: creation, description, change, deletion, and what a restart keeps.

use verbatim_wire::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
use verbatim_wire::messages::create_partitions_request::CreatePartitionsTopic;
use verbatim_wire::messages::create_topics_request::CreatableTopic;
use verbatim_wire::messages::delete_topics_request::DeleteTopicState;
use verbatim_wire::messages::describe_configs_request::DescribeConfigsResource;
use verbatim_wire::messages::metadata_request::MetadataRequestTopic;
use verbatim_wire::messages::{
    AlterConfigsRequest, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeConfigsRequest, MetadataRequest,
};
use verbatim_wire::tag::Marked as _;

use crate::support::{APPEND, DELETE, EXACT, Fetch, Host, SET, SUBTRACT, batch, order, text, topic};

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_created_is_refused_by_name() {
    let host = Host::start().await;
    assert_eq!(host.create("there", 1, &[]).await.0, 0);
    for (name, partitions, config, code, part) in [
        ("there", 1, None, 36, "there"),
        ("a/b", 1, None, 17, "a/b"),
        ("n", 0, None, 37, "`0`"),
        ("n", -2, None, 37, "`-2`"),
        ("n", 10_001, None, 37, "10000"),
        ("n", 1, Some(("no.such.property", "1")), 40, "no.such.property"),
        ("n", 1, Some(("retention.ms", "x")), 40, "retention.ms"),
        ("n", 1, Some(("compression.type", "zstd")), 40, "producer"),
        ("n", 1, Some(("produce.module", "nobody")), 40, "nobody"),
        ("n", 1, Some(("produce.at.offset", "maybe")), 40, "true or false"),
    ] {
        let (found, text) = host.create(name, partitions, config.as_slice()).await;
        assert_eq!(found, code, "{name} {partitions} {config:?}: {text}");
        assert!(text.contains(part), "{text} lacks {part}");
    }
    assert_eq!(host.metadata("n").await.error_code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_and_assignments_beyond_one_node_are_refused() {
    let host = Host::start().await;
    let new = |factor| {
        CreatableTopic::default().with_name(topic("n")).with_num_partitions(1).with_replication_factor(factor)
    };
    let assigned = new(-1).with_assignments(vec![Default::default()]);
    for (asked, code) in [(vec![new(2)], 38), (vec![assigned], 39), (vec![new(1), new(1)], 42)] {
        let answer = host.client.call(&CreateTopicsRequest::default().with_topics(asked)).await.unwrap();
        assert!(answer.topics.iter().all(|topic| topic.error_code == code), "{answer:?}");
    }
    assert_eq!(host.create_as("n", 3, &[], true).await.0, 0);
    assert_eq!(host.metadata("n").await.error_code, 3, "only validated");
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_are_described_with_their_sources_and_survive_a_restart() {
    let host = Host::start().await;
    assert_eq!(host.create("t", 2, &[("retention.ms", "1000"), ("cleanup.policy", "compact")]).await.0, 0);
    let host = host.restart().await;
    let rows = host.describe("t").await;
    assert_eq!(rows["retention.ms"], ("1000".to_owned(), 1));
    assert_eq!(rows["cleanup.policy"], ("compact".to_owned(), 1));
    assert_eq!(rows["segment.bytes"], ("1073741824".to_owned(), 5));
    assert_eq!(rows["produce.at.offset"], ("false".to_owned(), 5));
    let found = host.metadata("t").await;
    assert_eq!((found.error_code, found.partitions.len()), (0, 2));
    let by_id = MetadataRequestTopic::default().with_topic_id(found.topic_id).with_name(None);
    let answer = host.client.call(&MetadataRequest::default().with_topics(Some(vec![by_id]))).await.unwrap();
    assert_eq!(answer.topics[0].name, Some(topic("t")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_broker_describes_itself_with_types_synonyms_and_words() {
    let host = Host::start().await;
    let ask = |kind, name: &str| {
        DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_configuration_keys(None)
    };
    let request = DescribeConfigsRequest::default()
        .with_include_synonyms(true)
        .with_include_documentation(true)
        .with_resources(vec![ask(4, "1"), ask(4, "2"), ask(2, "none"), ask(8, "1")]);
    let answer = host.client.call(&request).await.unwrap();
    let codes: Vec<i16> = answer.results.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [0, 42, 3, 42]);
    let row = answer.results[0].configs.iter().find(|row| row.name.as_str() == "message.max.bytes").unwrap();
    assert!(row.read_only && row.config_type == 3 && !row.synonyms.is_empty());
    assert!(row.documentation.as_ref().is_some_and(|doc| doc.contains("batch")));
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_of_normal_topics_change_together_or_not_at_all() {
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    let changes = [("cleanup.policy", APPEND, Some("compact")), ("retention.ms", SET, Some("5"))];
    assert_eq!(host.alter("t", &changes, false).await.0, 0);
    let rows = host.describe("t").await;
    assert_eq!((rows["cleanup.policy"].0.as_str(), rows["retention.ms"].0.as_str()), ("delete,compact", "5"));
    let changes = [("cleanup.policy", SUBTRACT, Some("delete")), ("retention.ms", DELETE, None)];
    assert_eq!(host.alter("t", &changes, false).await.0, 0);
    let rows = host.describe("t").await;
    assert_eq!((rows["cleanup.policy"].0.as_str(), rows["retention.ms"].1), ("compact", 5));
    // R15 holds from now on.
    assert_eq!(host.produce("t", &batch(0, 0, &["no key"]), None).await.error_code, 87);
    for (changes, code) in [
        (vec![("max.message.bytes", SET, Some("10")), ("retention.ms", SET, Some("x"))], 40),
        (vec![("retention.ms", APPEND, Some("1"))], 40),
        (vec![("compression.type", SET, Some("gzip"))], 40),
        (vec![("produce.at.offset", SET, Some("true"))], 40),
        (vec![("produce.at.offset.rewrite", SET, Some("allow"))], 40),
        (vec![("produce.module", SET, Some("nobody"))], 40),
        (vec![("retention.ms", 9, Some("1"))], 42),
    ] {
        assert_eq!(host.alter("t", &changes, false).await.0, code, "{changes:?}");
    }
    assert_eq!(host.describe("t").await["max.message.bytes"].1, 5, "nothing of a refused change is kept");
    assert_eq!(
        host.alter("t", &[("produce.at.offset", DELETE, None)], false).await.0,
        0,
        "there is nothing to remove"
    );
    assert_eq!(host.alter("none", &[("retention.ms", DELETE, None)], false).await.0, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_shapes_the_data_of_an_exact_topic_is_its_mirrors() {
    let host = Host::start().await;
    host.exact("copy", &[("compression.type", "zstd")]).await;
    for (changes, marked, code) in [
        (vec![("retention.ms", SET, Some("5"))], false, 44),
        (vec![("retention.ms", SET, Some("5"))], true, 0),
        (vec![("min.insync.replicas", SET, Some("2"))], false, 0),
        (vec![("produce.at.offset.validation", SET, Some("records"))], false, 0),
        (vec![("produce.at.offset", SET, Some("true"))], true, 40),
        (vec![("produce.at.offset.rewrite", SET, Some("allow"))], true, 40),
    ] {
        assert_eq!(host.alter("copy", &changes, marked).await.0, code, "{changes:?} marked {marked}");
    }
    // R41: two replicas are asked for, one is there.
    let answer = host.produce("copy", &batch(0, 0, &["a"]), Some(&order((0, -1), (1, 0)))).await;
    assert_eq!(answer.error_code, 19);
}

#[tokio::test(flavor = "multi_thread")]
async fn replacing_all_properties_never_removes_exactness_by_silence() {
    let host = Host::start().await;
    host.exact("copy", &[("min.insync.replicas", "1")]).await;
    host.create("plain", 1, &[("retention.ms", "7")]).await;
    let replace = async |name: &str, configs: &[(&str, &str)]| {
        let config = |(name, value): &(&str, &str)| {
            AlterableConfig::default().with_name(text(name)).with_value(Some(text(value)))
        };
        let resource = AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text(name))
            .with_configs(configs.iter().map(config).collect());
        let request = AlterConfigsRequest::default().with_resources(vec![resource]);
        host.client.call(&request).await.unwrap().responses[0].error_code
    };
    assert_eq!(replace("copy", &[("min.insync.replicas", "1")]).await, 40);
    assert_eq!(replace("copy", &[EXACT, ("min.insync.replicas", "1")]).await, 0);
    assert_eq!(host.describe("copy").await["produce.at.offset"].0, "true");
    assert_eq!(replace("plain", &[("segment.bytes", "2000000")]).await, 0);
    let rows = host.describe("plain").await;
    assert_eq!((rows["retention.ms"].1, rows["segment.bytes"].0.as_str()), (5, "2000000"));
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_added_and_those_of_a_copy_by_its_mirror_only() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.create("plain", 2, &[]).await;
    let grow = async |name: &str, count, marked| {
        let asked =
            CreatePartitionsTopic::default().with_name(topic(name)).with_count(count).with_assignments(None);
        let mut request = CreatePartitionsRequest::default().with_topics(vec![asked]);
        if marked {
            request.set_mark();
        }
        host.client.call(&request).await.unwrap().results[0].error_code
    };
    for (name, count, marked, code) in [
        ("copy", 2, false, 44),
        ("copy", 2, true, 0),
        ("plain", 2, false, 37),
        ("plain", 3, false, 0),
        ("none", 3, false, 3),
    ] {
        assert_eq!(grow(name, count, marked).await, code, "{name} {count} {marked}");
    }
    let host = host.restart().await;
    assert_eq!(host.metadata("copy").await.partitions.len(), 2);
    let codes: Vec<i16> =
        host.metadata("plain").await.partitions.iter().map(|part| part.error_code).collect();
    assert_eq!(codes, [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_topic_is_gone_with_its_data_and_its_name_is_free() {
    let host = Host::start().await;
    host.create("t", 2, &[]).await;
    host.produce("t", &batch(0, 0, &["old"]), None).await;
    let id = host.metadata("t").await.topic_id;
    let delete = async |state| {
        let answer =
            host.client.call(&DeleteTopicsRequest::default().with_topics(vec![state])).await.unwrap();
        answer.responses[0].error_code
    };
    let by_id = DeleteTopicState::default().with_name(None).with_topic_id(id);
    assert_eq!(delete(by_id.clone()).await, 0);
    assert_eq!(delete(by_id).await, 100);
    assert_eq!(delete(DeleteTopicState::default().with_name(Some(topic("t")))).await, 3);
    assert_eq!(delete(DeleteTopicState::default().with_name(None)).await, 42);
    assert!(!host.data().join("t-0").exists() && !host.data().join("t-1").exists());
    assert_eq!(host.fetch("t", Fetch::at(0)).await.error_code, 3);
    assert_eq!(host.create("t", 1, &[]).await.0, 0);
    assert_ne!(host.metadata("t").await.topic_id, id);
    assert_eq!(host.list("t", -1, false).await.1, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_partition_is_offline_by_name_and_the_others_serve() {
    let host = Host::start().await;
    host.create("good", 1, &[]).await;
    host.create("bad", 1, &[]).await;
    host.produce("bad", &batch(0, 0, &["x"]), None).await;
    let folder = host.data().join("bad-0");
    let left = host.stop().await;
    std::fs::rename(&folder, folder.with_extension("gone")).unwrap();
    let host = Host::start_in(left).await;
    let answer = host.produce("bad", &batch(0, 0, &["y"]), None).await;
    assert_eq!(answer.error_code, 56);
    assert!(answer.error_message.unwrap().contains("bad"));
    let partition = &host.metadata("bad").await.partitions[0];
    assert_eq!((partition.error_code, partition.leader_id.0, partition.offline_replicas.len()), (5, -1, 1));
    assert_eq!(host.fetch("bad", Fetch::at(0)).await.error_code, 56);
    assert_eq!(host.produce("good", &batch(0, 0, &["y"]), None).await.error_code, 0);
}
