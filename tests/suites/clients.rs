//! Six client families take the same steps, each by a program of `tests/tools`, and must see the same. What they must see
//! stands here; against Apache Kafka itself they must see it too.
//!
//! The steps are described in `tests/compat/README.md`, with a table of those that a client cannot take: a program that
//! takes fewer or more than the table says fails.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use verbatim_tests::BesideLog as _;
use verbatim_tests::host::Home;
use verbatim_tests::kafka::Kafka;
use verbatim_tests::tools::{self, Tool};
use verbatim_tests::workspace;

/// The families, as the table names them.
const FAMILIES: &[&str] = &["librdkafka", "Java", "franz-go", "kafka-python", "aiokafka", "kafkajs"];

/// One partition for each codec, and one for an idempotent producer.
const PRODUCED: &[&str] =
    &["produce-none", "produce-gzip", "produce-snappy", "produce-lz4", "produce-zstd", "produce-idempotent"];
const CONSUMED: &[&str] =
    &["consume-none", "consume-gzip", "consume-snappy", "consume-lz4", "consume-zstd", "consume-idempotent"];

#[test]
fn every_client_family_sees_the_same() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    for family in FAMILIES {
        takes_the_steps(family, &host.bootstrap()).beside("the host", || host.log())?;
    }
    host.stop()
}

#[test]
fn every_client_family_sees_that_of_apache_kafka() -> anyhow::Result<()> {
    let Some(kafka) = Kafka::start()? else { return Ok(()) };
    for family in FAMILIES {
        takes_the_steps(family, &kafka.bootstrap()).beside("Kafka", || kafka.log())?;
    }
    Ok(())
}

fn takes_the_steps(family: &str, bootstrap: &str) -> anyhow::Result<()> {
    let Some(program) = program(family)? else { return Ok(()) };
    let topic = format!("by-{family}");
    let expected = expected();
    let missing = missing(family)?;
    let mut taken = BTreeSet::new();
    for mut seen in program.json_lines(&[bootstrap, &topic])? {
        let step = seen.as_object_mut().and_then(|seen| seen.remove("step"));
        let step = step.as_ref().and_then(Value::as_str).context("a line without its step")?.to_owned();
        let wanted = expected.get(step.as_str()).with_context(|| format!("{family}: no step {step}"))?;
        ensure!(seen == *wanted, "{family}: {step}: saw {seen}, expected {wanted}");
        ensure!(taken.insert(step.clone()), "{family}: {step} was taken twice");
    }
    let untaken: BTreeSet<String> =
        expected.keys().filter(|step| !taken.contains(**step)).map(|step| (*step).to_owned()).collect();
    ensure!(
        untaken == missing,
        "{family} did not take {untaken:?}, and according to the table does not take {missing:?}"
    );
    Ok(())
}

fn program(family: &str) -> anyhow::Result<Option<Tool>> {
    match family {
        "Java" => tools::find("java-client"),
        "franz-go" => tools::find("go-client"),
        "kafkajs" => tools::find("node-client"),
        "librdkafka" => tools::python("clients/confluent.py"),
        "kafka-python" => tools::python("clients/kafka_py.py"),
        _ => tools::python("clients/aio.py"),
    }
}

/// The steps that a family cannot take: rows of the table `| step, step | family, family | reason |`.
fn missing(family: &str) -> anyhow::Result<BTreeSet<String>> {
    let text = fs::read_to_string(workspace().join("tests/compat/README.md"))?;
    let (_, table) = text.split_once("<!-- missing -->").context("no table of missing steps")?;
    let mut steps = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [named, families, reason] = cells[..] else { anyhow::bail!("three cells in {row}") };
        ensure!(!reason.is_empty(), "no reason in {row}");
        for one in families.split(", ") {
            ensure!(FAMILIES.contains(&one), "{one} is no family, in {row}");
            if one == family {
                steps.extend(named.split(", ").map(|step| step.trim_matches('`').to_owned()));
            }
        }
    }
    Ok(steps)
}

/// What every client sees, by step.
fn expected() -> BTreeMap<&'static str, Value> {
    let records = json!({"records": [
        [0, 1_700_000_000_000_i64, "key-0", "value-0", "0"],
        [1, 1_700_000_001_000_i64, "key-1", "value-1", "1"],
        [2, 1_700_000_004_000_i64, "key-2", "value-2", "2"],
        [3, 1_700_000_003_000_i64, "key-3", null, "3"],
        [4, 1_700_000_002_000_i64, null, "value-4", "4"],
    ]});
    let mut expected = BTreeMap::from([
        ("create", json!({"partitions": 6})),
        ("create-again", json!({"error": 36})),
        ("consume-middle", json!({"offsets": [2, 3, 4]})),
        ("consume-time", json!({"offsets": [1, 2, 3, 4]})),
        ("list-offsets", json!({"ends": [0, 5]})),
        ("list-offsets-time", json!({"offsets": [0, 1, 1, 2]})),
        ("list-offsets-after", json!({"offset": -1})),
        ("list-offsets-max", json!({"found": [2, 1_700_000_004_000_i64]})),
        ("delete-records", json!({"low": 2})),
        ("list-offsets-deleted", json!({"ends": [2, 5]})),
        ("consume-deleted", json!({"offsets": [2, 3, 4]})),
        ("consume-below", json!({"error": 1})),
        ("delete-records-all", json!({"low": 5})),
        ("delete-records-beyond", json!({"error": 1})),
        ("alter-incremental", json!({"property": ["2000000", false]})),
        ("alter-remove", json!({"property": ["1048588", true]})),
        ("alter-refused", json!({"error": 40})),
        ("alter-full", json!({"property": ["3000000", false]})),
        ("describe-cluster", json!({"nodes": 1})),
        ("describe-log-dirs", json!({"found": [6, true]})),
        ("describe-producers", json!({"sequences": [4]})),
        ("describe-topic-partitions", json!({"partitions": 6})),
        ("list-config-resources", json!({"listed": true})),
        ("create-partitions", json!({"partitions": 8})),
        ("create-partitions-fewer", json!({"error": 37})),
        ("quota-set", json!({"rate": 1_000_000})),
        ("quota-remove", json!({"rate": null})),
        ("delete-topic", json!({"listed": false})),
        ("delete-topic-again", json!({"error": 3})),
    ]);
    for step in PRODUCED {
        expected.insert(step, json!({"offsets": [0, 1, 2, 3, 4]}));
    }
    for step in CONSUMED {
        expected.insert(step, records.clone());
    }
    expected
}
