//! A topic of Apache Kafka's is redacted on its way into a copy: clients see what is left as beside a compacted source, and what
//! a promoted copy takes is redacted too.

#![expect(clippy::indexing_slicing, reason = "a JSON value without such a field is null")]

use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use verbatim_batch::{Header, frames};
use verbatim_tests::BesideLog as _;
use verbatim_tests::client::Client;
use verbatim_tests::exact::EXACT;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::random::Random;
use verbatim_tests::tools::{self, Tool};
use verbatim_tests::{programs, run, segments};

use super::source::{PARTITIONS, RULES, Source, TOPIC, TRANSACTIONS, by_kcat, redacted};
use super::{ALLOW, MODULE, home};

#[test]
fn clients_read_what_is_left_of_a_source_at_its_place() -> anyhow::Result<()> {
    let mut random = Random::announced("clients_read_what_is_left_of_a_source_at_its_place")?;
    let Some(mut source) = Source::start(random.below(1 << 31))? else { return Ok(()) };
    let Some(clients) = Clients::find()? else { return Ok(()) };
    let home = home()?;
    let host = home.start()?;
    host.create_topic(TOPIC, PARTITIONS.unsigned_abs(), &[&[EXACT, MODULE, ALLOW], &RULES[..]].concat())?;
    let copied = is_copied(&mut source, &home, &host, &clients).beside("the host", || host.log());
    copied.beside("Kafka", || source.kafka.log())?;
    is_redacted_when_promoted(&host, &clients).beside("the host", || host.log())?;
    host.stop()
}

fn is_copied(source: &mut Source, home: &Home, host: &Host, clients: &Clients) -> anyhow::Result<()> {
    source.write(1)?;
    mirror(source, host)?;
    // Another leader epoch, and a copy that goes on.
    source.restart()?;
    source.write(2)?;
    mirror(source, host)?;
    let described = host.verbatim(&["topic", "describe", TOPIC], b"")?.success()?;
    ensure!(
        RULES.iter().all(|rule| described.contains(rule)),
        "the mirror leaves the rules alone: {described}"
    );
    let kafka = source.kafka.bootstrap();
    let mut kinds = Kinds::default();
    for partition in 0..PARTITIONS {
        kinds.add(&batches_keep_their_frame(source, home, partition).with_context(|| partition.to_string())?);
        ends_are_equal(source, host, partition)?;
        clients.see_what_is_left((&kafka, host), partition, "read_uncommitted")?;
    }
    clients.see_what_is_left((&kafka, host), TRANSACTIONS, "read_committed")?;
    // A round: a batch by librdkafka in each codec is emptied and one is as it came; four transactions end.
    ensure!(kinds.emptied >= 10 && kinds.same >= 10 && kinds.control == 6, "{kinds:?}");
    ensure!(kinds.rewritten.iter().all(|count| *count >= 4), "batches of each codec: {kinds:?}");
    the_verifier_says_so(source, host)
}

fn mirror(source: &Source, host: &Host) -> anyhow::Result<()> {
    let arguments = ["mirror", "--source", &source.kafka.bootstrap(), "--target", &host.bootstrap()];
    let mut command = Command::new(programs::verbatim()?);
    run::run(command.args(arguments).args(["--topics", TOPIC, "--once"]), b"")?.success().map(drop)
}

/// Redacted where the caller allows that, diverged where not.
fn the_verifier_says_so(source: &Source, host: &Host) -> anyhow::Result<()> {
    for (flags, verdict, code) in [(&["--allow-redacted"][..], "redacted", 0), (&[], "diverged", 1)] {
        let sides = ["--source", &source.kafka.bootstrap(), "--target", &host.bootstrap()];
        let mut command = Command::new(programs::verbatim()?);
        command.args(["verify", "--output", "json", "--topics", TOPIC]).args(sides).args(flags);
        let ended = run::run(&mut command, b"")?;
        let report: Value = serde_json::from_str(&ended.stdout).with_context(|| ended.to_string())?;
        let partitions = report["partitions"].as_array().context("no partitions")?;
        let verdicts = partitions.iter().filter(|partition| partition["verdict"] == verdict);
        ensure!(ended.status.code() == Some(code) && verdicts.count() == 6, "{ended}");
        let module = |partition: &Value| partition["redacted"]["module"] == "redact";
        ensure!(code != 0 || partitions.iter().all(module), "{ended}");
    }
    Ok(())
}

/// What became of batches.
#[derive(Debug, Default)]
struct Kinds {
    same: usize,
    control: usize,
    emptied: usize,
    /// By codec.
    rewritten: [usize; 5],
}

impl Kinds {
    fn add(&mut self, other: &Self) {
        self.same += other.same;
        self.control += other.control;
        self.emptied += other.emptied;
        self.rewritten.iter_mut().zip(other.rewritten).for_each(|(sum, count)| *sum += count);
    }
}

/// Batch by batch: the same headers outside length, checksum, number of records and maxTimestamp; an empty one has no codec.
fn batches_keep_their_frame(source: &Source, home: &Home, partition: i32) -> anyhow::Result<Kinds> {
    let number = partition.unsigned_abs();
    let theirs = segments::log_bytes(&source.kafka.data(), TOPIC, number)?;
    let ours = segments::log_bytes(&home.data(), TOPIC, number)?;
    let count = segments::headers(&theirs)?.len();
    ensure!(segments::headers(&ours)?.len() == count, "{count} batches in the source");
    let mut kinds = Kinds::default();
    for (came, is) in frames(&theirs).zip(frames(&ours)) {
        let (Some(before), Some(after)) = (came.header(), is.header()) else { anyhow::bail!("no header") };
        let attributes = if after.record_count == 0 { before.attributes } else { after.attributes };
        let put_back = Header {
            batch_length: before.batch_length,
            crc: before.crc,
            record_count: before.record_count,
            max_timestamp: before.max_timestamp,
            attributes,
            ..after
        };
        ensure!(put_back == before && after.max_timestamp <= before.max_timestamp, "{before:?}\n{after:?}");
        let same = came.bytes() == is.bytes();
        ensure!(same || !before.attributes.is_control(), "a control batch: {before:?}\n{after:?}");
        match (same, after.record_count) {
            (true, _) if before.attributes.is_control() => kinds.control += 1,
            (true, _) => kinds.same += 1,
            (false, 0) => {
                ensure!(is.bytes().len() == verbatim_batch::HEADER_LEN, "{after:?}");
                kinds.emptied += 1;
            }
            (false, count) => {
                ensure!(count <= before.record_count, "{before:?}\n{after:?}");
                let codec = usize::try_from(after.attributes.bits() & 7)?;
                *kinds.rewritten.get_mut(codec).context("a codec")? += 1;
            }
        }
    }
    Ok(kinds)
}

fn ends_are_equal(source: &Source, host: &Host, partition: i32) -> anyhow::Result<()> {
    let kafka = Client::connect(*source.kafka.addresses().first().context("no broker")?)?;
    let copy = Client::connect(host.address())?;
    let name = (TOPIC, partition);
    let (end, epoch) = kafka.latest(name)?;
    assert_eq!(copy.latest(name)?.0, end, "partition {partition}");
    for epoch in 0..=epoch {
        assert_eq!(copy.epoch_end(name, epoch)?, kafka.epoch_end(name, epoch)?, "partition {partition}");
    }
    Ok(())
}

/// A promoted copy takes what ordinary producers send, under the same rules.
fn is_redacted_when_promoted(host: &Host, clients: &Clients) -> anyhow::Result<()> {
    let bootstrap = host.bootstrap();
    let topic = ["--bootstrap-server", &bootstrap, "--entity-type", "topics", "--entity-name", TOPIC];
    clients.configs.succeed(&[&topic[..], &["--alter", "--delete-config", "produce.at.offset"]].concat())?;
    let (_, epoch) = Client::connect(host.address())?.latest((TOPIC, 3))?;
    let before = by_kcat(&clients.kcat, &bootstrap, 3, "read_committed")?;
    let to = ["-P", "-b", &bootstrap, "-t", TOPIC, "-p", "3", "-K", "|", "-z", "lz4", "-X", "linger.ms=300"];
    let sent = "a|{\"card\":{\"number\":1}}\nb|{\"secret\":1}\nc|{}\n";
    clients.kcat.succeed_with(&[&to[..], &["-X", "enable.idempotence=true"]].concat(), sent.as_bytes())?;
    let after = by_kcat(&clients.kcat, &bootstrap, 3, "read_committed")?;
    let new: Vec<_> = after.iter().skip(before.len()).map(|record| record["payload"].clone()).collect();
    ensure!(new == [json!("{\"card\":{\"number\":\"***\"}}"), json!("{}")], "{new:?}");
    let last = after.last().context("no record")?;
    let read = clients.java.json_lines(&[&bootstrap, TOPIC, "3", &last["offset"].to_string(), "1"])?;
    ensure!(read.first().is_some_and(|record| record["leaderEpoch"] == epoch), "{read:?}");
    Ok(())
}

struct Clients {
    kcat: Tool,
    java: Tool,
    python: Tool,
    configs: Tool,
}

impl Clients {
    fn find() -> anyhow::Result<Option<Self>> {
        let (Some(kcat), Some(java), Some(python), Some(configs)) = (
            tools::find("kcat")?,
            tools::find("java-read-records")?,
            tools::python("read.py")?,
            tools::find("kafka-configs")?,
        ) else {
            return Ok(None);
        };
        Ok(Some(Self { kcat, java, python, configs }))
    }

    /// librdkafka with headers, librdkafka and Java with leader epochs.
    fn see_what_is_left(
        &self,
        (kafka, host): (&str, &Host),
        partition: i32,
        isolation: &str,
    ) -> anyhow::Result<()> {
        let told = || format!("partition {partition}, {isolation}");
        let host = host.bootstrap();
        let source = by_kcat(&self.kcat, kafka, partition, isolation)?;
        let count = source.len();
        let left: Vec<Value> = source.into_iter().filter_map(redacted).collect();
        ensure!(!left.is_empty() && left.len() < count, "{}: {} of {count} records", told(), left.len());
        same(&by_kcat(&self.kcat, &host, partition, isolation)?, &left).with_context(told)?;

        let level = format!("isolation.level={isolation}");
        let read = |bootstrap: &str, count: usize| -> anyhow::Result<Vec<Value>> {
            let (partition, count) = (partition.to_string(), count.to_string());
            let arguments = [bootstrap, TOPIC, &partition, "0", &count];
            self.java.json_lines(&[&arguments[..], &[&level]].concat())
        };
        let theirs = read(kafka, count)?;
        let expected =
            left.iter().map(|record| described(record, &theirs)).collect::<anyhow::Result<Vec<_>>>()?;
        same(&read(&host, left.len())?, &expected).with_context(told)?;
        if isolation == "read_committed" || partition != TRANSACTIONS {
            let (partition, count) = (partition.to_string(), left.len().to_string());
            let ours = self.python.json_lines(&[&host, TOPIC, &partition, "0", &count])?;
            same(&ours, &expected).with_context(told)?;
        }
        Ok(())
    }
}

/// A record of [`by_kcat`]'s as `java-read-records` and `read.py` describe it; the leader epoch is the source's.
fn described(record: &Value, source: &[Value]) -> anyhow::Result<Value> {
    let at = |other: &&Value| other["offset"] == record["offset"];
    let original = source.iter().find(at).with_context(|| format!("not in the source: {record}"))?;
    let hex = |text: &Value| {
        text.as_str().map(|text| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>())
    };
    Ok(json!({
        "offset": record["offset"],
        "leaderEpoch": original["leaderEpoch"],
        "timestamp": original["timestamp"],
        "key": hex(&record["key"]),
        "value": hex(&record["payload"]),
    }))
}

fn same(found: &[Value], expected: &[Value]) -> anyhow::Result<()> {
    let differing = found.iter().zip(expected).find(|(found, expected)| found != expected);
    ensure!(
        differing.is_none() && found.len() == expected.len(),
        "{} records, expected {}: {differing:?}",
        found.len(),
        expected.len()
    );
    Ok(())
}
