//! Ordinary clients work unchanged against a normal topic. Each check also runs against Apache Kafka itself, which keeps
//! the checks honest.

use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use verbatim_batch::Codec;
use verbatim_tests::BesideLog as _;
use verbatim_tests::client::Client;
use verbatim_tests::host::Home;
use verbatim_tests::kafka::Kafka;
use verbatim_tests::{segments, tools, wait_for};

/// A broker and where it keeps its segments.
struct Broker {
    bootstrap: String,
    data: PathBuf,
}

type Check = fn(&Broker) -> anyhow::Result<()>;

const CHECKS: &[(&str, Check)] = &[
    ("kcat", kcat),
    ("confluent-kafka", confluent_kafka_in_every_codec),
    ("console tools", java_console_producer_and_consumer),
    ("kafka-topics", kafka_topics),
    ("kafka-configs", kafka_configs),
    ("kafka-get-offsets", kafka_get_offsets),
];

#[test]
fn kcat_writes_reads_lists_and_queries() -> anyhow::Result<()> {
    on_a_host(kcat)
}

#[test]
fn confluent_kafka_writes_idempotently_in_every_codec() -> anyhow::Result<()> {
    on_a_host(confluent_kafka_in_every_codec)
}

#[test]
fn java_console_producer_and_consumer_by_partition_and_offset() -> anyhow::Result<()> {
    on_a_host(java_console_producer_and_consumer)
}

#[test]
fn kafka_topics_creates_lists_describes_and_deletes() -> anyhow::Result<()> {
    on_a_host(kafka_topics)
}

#[test]
fn kafka_configs_shows_sets_and_removes() -> anyhow::Result<()> {
    on_a_host(kafka_configs)
}

#[test]
fn kafka_get_offsets_shows_start_and_end() -> anyhow::Result<()> {
    on_a_host(kafka_get_offsets)
}

#[test]
fn the_same_checks_pass_against_apache_kafka() -> anyhow::Result<()> {
    let Some(kafka) = Kafka::start()? else { return Ok(()) };
    let broker = Broker { bootstrap: kafka.bootstrap(), data: kafka.data() };
    for (name, check) in CHECKS {
        check(&broker).context(*name).beside("Kafka", || kafka.log())?;
    }
    Ok(())
}

fn on_a_host(check: Check) -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    let broker = Broker { bootstrap: host.bootstrap(), data: home.data() };
    check(&broker).beside("the host", || host.log())?;
    host.stop()
}

impl Broker {
    /// Creates a topic and waits until each partition has its leader, which Kafka does not do before it answers.
    fn create(&self, topic: &str, partitions: i32) -> anyhow::Result<()> {
        let client = self.client()?;
        client.create_topic(topic, partitions, &[])?;
        wait_for("leader of each partition", Duration::from_secs(30), || {
            Ok((0..partitions).all(|partition| client.latest((topic, partition)).is_ok()).then_some(()))
        })
    }

    fn client(&self) -> anyhow::Result<Client> {
        Client::connect(self.bootstrap.parse::<SocketAddr>()?)
    }
}

fn kcat(broker: &Broker) -> anyhow::Result<()> {
    let Some(kcat) = tools::find("kcat")? else { return Ok(()) };
    broker.create("by-kcat", 2)?;
    let b = broker.bootstrap.as_str();
    kcat.succeed_with(
        &["-P", "-b", b, "-t", "by-kcat", "-p", "1", "-K", ":", "-H", "h=1"],
        b"a:1\nb:2\nc:3\n",
    )?;

    let all =
        ["-C", "-b", b, "-t", "by-kcat", "-p", "1", "-o", "beginning", "-e", "-q", "-f", "%o %k=%s %h\n"];
    assert_eq!(kcat.succeed(&all)?, "0 a=1 h=1\n1 b=2 h=1\n2 c=3 h=1\n");
    let from = ["-C", "-b", b, "-t", "by-kcat", "-p", "1", "-o", "2", "-e", "-q", "-f", "%o %k=%s\n"];
    assert_eq!(kcat.succeed(&from)?, "2 c=3\n");

    let listed = kcat.succeed(&["-L", "-b", b, "-t", "by-kcat", "-J"])?;
    let listed: serde_json::Value = serde_json::from_str(&listed)?;
    assert_eq!(listed.pointer("/topics/0/topic").context("topic")?, "by-kcat");
    assert_eq!(
        listed.pointer("/topics/0/partitions").and_then(|list| list.as_array()).map(Vec::len),
        Some(2)
    );

    let end = kcat.succeed(&["-Q", "-b", b, "-t", "by-kcat:1:-1"])?;
    ensure!(end.contains("offset 3"), "the end is not 3: {end}");
    Ok(())
}

fn confluent_kafka_in_every_codec(broker: &Broker) -> anyhow::Result<()> {
    let (Some(produce), Some(read)) = (tools::python("produce.py")?, tools::python("read.py")?) else {
        return Ok(());
    };
    let codecs = [
        ("none", Codec::None),
        ("gzip", Codec::Gzip),
        ("snappy", Codec::Snappy),
        ("lz4", Codec::Lz4),
        ("zstd", Codec::Zstd),
    ];
    for (name, codec) in codecs {
        let topic = format!("in-{name}");
        broker.create(&topic, 1)?;
        let offsets = produce.json_lines(&[&broker.bootstrap, &topic, "0", name, "50"])?;
        let expected: Vec<serde_json::Value> = (0..50).map(serde_json::Value::from).collect();
        assert_eq!(offsets, expected, "{name}: offsets of the acknowledged records");

        let records = read.json_lines(&[&broker.bootstrap, &topic, "0", "0", "50"])?;
        for (i, record) in records.iter().enumerate() {
            assert_eq!(
                record.get("offset").and_then(serde_json::Value::as_u64),
                u64::try_from(i).ok(),
                "{name}"
            );
            assert_eq!(record.get("leaderEpoch"), Some(&0.into()), "{name}: record {i}");
            let (key, value) = (format!("key-{i}"), format!("{:x<400}", format!("value-{i}-")));
            assert_eq!(record.get("key"), Some(&hex(key.as_bytes()).into()), "{name}: record {i}");
            assert_eq!(record.get("value"), Some(&hex(value.as_bytes()).into()), "{name}: record {i}");
        }

        let stored = segments::headers(&segments::log_bytes(&broker.data, &topic, 0)?)?;
        ensure!(!stored.is_empty(), "{name}: nothing is stored");
        for header in stored {
            assert_eq!(header.attributes.codec(), Ok(codec), "{name}: the stored batch's codec bits");
            ensure!(header.producer_id >= 0, "{name}: no producer id, so it was not idempotent");
        }
    }
    Ok(())
}

fn java_console_producer_and_consumer(broker: &Broker) -> anyhow::Result<()> {
    let (Some(producer), Some(consumer)) =
        (tools::find("kafka-console-producer")?, tools::find("kafka-console-consumer")?)
    else {
        return Ok(());
    };
    broker.create("console", 1)?;
    let server = ["--bootstrap-server", broker.bootstrap.as_str(), "--topic", "console"];
    let produce =
        [&server[..], &["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]];
    producer.succeed_with(&produce.concat(), b"a:1\nb:2\nc:3\nd:4\n")?;

    let from = ["--partition", "0", "--offset", "1", "--max-messages", "2", "--timeout-ms", "20000"];
    let shown = ["--formatter-property", "print.offset=true", "--formatter-property", "print.key=true"];
    let read = consumer.succeed(&[&server[..], &from[..], &shown[..]].concat())?;
    assert_eq!(read, "Offset:1\tb\t2\nOffset:2\tc\t3\n");
    Ok(())
}

fn kafka_topics(broker: &Broker) -> anyhow::Result<()> {
    let Some(topics) = tools::find("kafka-topics")? else { return Ok(()) };
    let server = ["--bootstrap-server", broker.bootstrap.as_str()];
    let with = |arguments: &[&str]| topics.succeed(&[&server[..], arguments].concat());

    with(&["--create", "--topic", "made", "--partitions", "3", "--config", "retention.ms=1000"])?;
    ensure!(with(&["--list"])?.lines().any(|line| line == "made"), "the topic is not listed");
    let shown = with(&["--describe", "--topic", "made"])?;
    ensure!(shown.contains("PartitionCount: 3") && shown.contains("retention.ms=1000"), "{shown}");
    let again = topics.output(&[&server[..], &["--create", "--topic", "made"]].concat(), b"")?;
    ensure!(!again.status.success() && again.to_string().contains("TopicExistsException"), "{again}");

    with(&["--delete", "--topic", "made"])?;
    ensure!(!with(&["--list"])?.lines().any(|line| line == "made"), "the topic is still listed");
    Ok(())
}

fn kafka_configs(broker: &Broker) -> anyhow::Result<()> {
    let Some(configs) = tools::find("kafka-configs")? else { return Ok(()) };
    broker.create("tuned", 1)?;
    let topic =
        ["--bootstrap-server", &broker.bootstrap, "--entity-type", "topics", "--entity-name", "tuned"];
    let with = |arguments: &[&str]| configs.succeed(&[&topic[..], arguments].concat());

    with(&["--alter", "--add-config", "retention.ms=1000,max.message.bytes=2000"])?;
    let shown = with(&["--describe"])?;
    ensure!(shown.contains("retention.ms=1000") && shown.contains("max.message.bytes=2000"), "{shown}");
    with(&["--alter", "--delete-config", "retention.ms"])?;
    let shown = with(&["--describe"])?;
    ensure!(!shown.contains("retention.ms=1000") && shown.contains("max.message.bytes=2000"), "{shown}");
    let refused =
        configs.output(&[&topic[..], &["--alter", "--add-config", "retention.ms=soon"]].concat(), b"")?;
    ensure!(!refused.status.success() && refused.to_string().contains("InvalidConfig"), "{refused}");
    Ok(())
}

fn kafka_get_offsets(broker: &Broker) -> anyhow::Result<()> {
    let Some(get_offsets) = tools::find("kafka-get-offsets")? else { return Ok(()) };
    broker.create("counted", 2)?;
    let batch = verbatim_batch::BatchBuilder::new(0)
        .record(verbatim_batch::NewRecord::new(0, 1_700_000_000_000).value(b"1"))
        .record(verbatim_batch::NewRecord::new(1, 1_700_000_000_000).value(b"2"))
        .build();
    let batch = batch.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let answer = broker.client()?.produce(("counted", 1), None, &batch)?;
    assert_eq!(answer.error_code, 0, "{answer:?}");

    let offsets = |time: &str| -> anyhow::Result<BTreeMap<String, String>> {
        let server = ["--bootstrap-server", &broker.bootstrap, "--topic", "counted", "--time", time];
        let text = get_offsets.succeed(&server)?;
        Ok(text.lines().filter_map(|line| line.rsplit_once(':')).map(|(p, o)| (p.into(), o.into())).collect())
    };
    let of = |first: &str, second: &str| {
        BTreeMap::from([("counted:0".into(), first.into()), ("counted:1".into(), second.into())])
    };
    assert_eq!(offsets("-1")?, of("0", "2"));
    assert_eq!(offsets("-2")?, of("0", "0"));
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
