//! Apache Kafka's own command-line tools, on a host and on Apache Kafka alike.

use anyhow::{Context, ensure};
use std::fs;
use verbatim_tests::BesideLog as _;
use verbatim_tests::host::Home;
use verbatim_tests::kafka::Kafka;
use verbatim_tests::{tools, wait_for};

/// How long Apache Kafka may take until a change shows.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

const TOPIC: &str = "tooled";

#[test]
fn kafkas_command_line_tools_work_on_a_host() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    the_tools_work(&Tools { bootstrap: host.bootstrap() }).beside("the host", || host.log())?;
    host.stop()
}

#[test]
fn kafkas_command_line_tools_work_on_apache_kafka() -> anyhow::Result<()> {
    let Some(kafka) = Kafka::start()? else { return Ok(()) };
    the_tools_work(&Tools { bootstrap: kafka.bootstrap() }).beside("Kafka", || kafka.log())
}

fn the_tools_work(tools: &Tools) -> anyhow::Result<()> {
    if tools::find("kafka-topics")?.is_none() {
        return Ok(());
    }
    tools.run("kafka-topics", &["--create", "--topic", TOPIC, "--partitions", "1"])?;
    producer_perf_test_and_get_offsets(tools)?;
    delete_records(tools)?;
    log_dirs(tools)?;
    transactions(tools)?;
    quotas_by_configs(tools)?;
    versions_and_broker_configs(tools)
}

fn producer_perf_test_and_get_offsets(tools: &Tools) -> anyhow::Result<()> {
    let records = ["--num-records", "1000", "--record-size", "100", "--throughput", "-1"];
    let done = tools.run("kafka-producer-perf-test", &[&["--topic", TOPIC], &records[..]].concat())?;
    ensure!(done.contains("1000 records sent"), "{done}");
    let offsets = |time| tools.run("kafka-get-offsets", &["--topic", TOPIC, "--time", time]);
    assert_eq!(offsets("-1")?, "tooled:0:1000\n");
    assert_eq!(offsets("-2")?, "tooled:0:0\n");
    assert_eq!(offsets("1")?, "tooled:0:0\n", "the first record at or after the epoch's first millisecond");
    let latest = offsets("-3")?;
    let offset = latest.trim_end().strip_prefix("tooled:0:").and_then(|offset| offset.parse::<u32>().ok());
    ensure!(offset.is_some_and(|offset| offset < 1000), "the record of the largest timestamp: {latest}");
    Ok(())
}

fn delete_records(tools: &Tools) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("offsets.json");
    let before = |offset| -> anyhow::Result<String> {
        let partition = format!(r#"{{"topic":"{TOPIC}","partition":0,"offset":{offset}}}"#);
        fs::write(&file, format!(r#"{{"partitions":[{partition}],"version":1}}"#))?;
        tools.run("kafka-delete-records", &["--offset-json-file", &file.display().to_string()])
    };
    let done = before(3)?;
    ensure!(done.contains("partition: tooled-0\tlow_watermark: 3"), "{done}");
    assert_eq!(tools.run("kafka-get-offsets", &["--topic", TOPIC, "--time", "-2"])?, "tooled:0:3\n");
    let done = before(2_000)?;
    ensure!(done.contains("tooled-0") && done.contains("OffsetOutOfRange"), "{done}");
    Ok(())
}

fn log_dirs(tools: &Tools) -> anyhow::Result<()> {
    let shown = tools.run("kafka-log-dirs", &["--describe", "--topic-list", TOPIC])?;
    let line = shown.lines().last().context("no output")?;
    let described: serde_json::Value = serde_json::from_str(line)?;
    let folder = described.pointer("/brokers/0/logDirs/0").context("no folder")?;
    assert_eq!(folder.pointer("/error"), Some(&serde_json::Value::Null));
    assert_eq!(folder.pointer("/partitions/0/partition").context("no partition")?, "tooled-0");
    let size = folder.pointer("/partitions/0/size").and_then(serde_json::Value::as_u64);
    ensure!(size.is_some_and(|size| size > 100_000), "size of 1000 records of 100 bytes: {size:?}");
    Ok(())
}

fn transactions(tools: &Tools) -> anyhow::Result<()> {
    let shown =
        tools.run("kafka-transactions", &["describe-producers", "--topic", TOPIC, "--partition", "0"])?;
    let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    let [_, producer] = &rows[..] else { anyhow::bail!("a head and one producer: {shown}") };
    // Epoch, epoch of the coordinator, last sequence, and no transaction.
    let [_, "0", "-1", "999", _, "None"] = producer[..] else { anyhow::bail!("{shown}") };
    let hanging = tools.run("kafka-transactions", &["find-hanging", "--broker-id", "1"])?;
    ensure!(hanging.starts_with("Topic") && hanging.lines().count() == 1, "{hanging}");
    Ok(())
}

fn quotas_by_configs(tools: &Tools) -> anyhow::Result<()> {
    let client = ["--entity-type", "clients", "--entity-name", "tool"];
    let configs = |arguments: &[&str]| tools.run("kafka-configs", &[arguments, &client].concat());
    let shows = |wanted: bool| {
        wait_for("change of the quota", PATIENCE, || {
            let shown = configs(&["--describe"])?;
            Ok((shown.contains("producer_byte_rate=1000000.0") == wanted).then_some(()))
        })
    };
    configs(&["--alter", "--add-config", "producer_byte_rate=1000000"])?;
    shows(true)?;
    configs(&["--alter", "--delete-config", "producer_byte_rate"])?;
    shows(false)?;
    let refused =
        tools.output("kafka-configs", &[&["--alter", "--add-config", "speed=1"], &client[..]].concat())?;
    ensure!(!refused.status.success(), "{refused}");
    Ok(())
}

fn versions_and_broker_configs(tools: &Tools) -> anyhow::Result<()> {
    let shown = tools.run("kafka-broker-api-versions", &[])?;
    ensure!(shown.contains("Produce(0): 0 to 13 [usable: 13]"), "{shown}");
    let broker = ["--describe", "--all", "--entity-type", "brokers", "--entity-name", "1"];
    let shown = tools.run("kafka-configs", &broker)?;
    ensure!(shown.contains("advertised.listeners="), "{shown}");
    Ok(())
}

/// The tools, and the broker that they are told of.
struct Tools {
    bootstrap: String,
}

impl Tools {
    fn run(&self, name: &str, arguments: &[&str]) -> anyhow::Result<String> {
        self.output(name, arguments)?.success()
    }

    fn output(&self, name: &str, arguments: &[&str]) -> anyhow::Result<verbatim_tests::run::Output> {
        let tool = tools::find(name)?.with_context(|| format!("no {name}"))?;
        tool.output(&[&["--bootstrap-server", self.bootstrap.as_str()], arguments].concat(), b"")
    }
}
