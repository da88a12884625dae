//! The whole story, shown: a topic of a real Kafka is mirrored while it grows, a consumer moves from the source to the copy in the
//! middle, and the copy is proven exact. `make demo` runs it.
//!
//! Nothing is needed from outside: the source is a host that holds a log captured from Apache Kafka. Source and destination
//! are real hosts on free loopback ports, with their data in a temporary folder; everything speaks to them over TCP.

mod source;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use verbatim::Modules;
use verbatim::broker::{Broker, Config};
use verbatim::mirror::cluster::{Cluster, ClusterConfig, Partition};
use verbatim::mirror::mirror::state::State;
use verbatim::mirror::mirror::{Mirror, MirrorConfig};
use verbatim::mirror::reader::{Position, Reader, ReaderConfig, Record, Seek};
use verbatim::mirror::verify::{Options, PartitionReport, Verdict, Verifier, whole_name};

use source::{Captured, TOPIC};

/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(30);
/// Records of each partition that the consumer has read when it moves.
const BEFORE_THE_MOVE: usize = 150;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let began = Instant::now();
    let folder = tempfile::tempdir()?;
    let modules = Arc::new(Modules::bundled(folder.path())?);
    let digest = modules.iter().next().map(|(_, module)| module.digest().to_string()).unwrap_or_default();
    let short = digest.get(..12).unwrap_or_default();
    say(&format!("verbatim {}, judged by module exact-mirroring sha256:{short}\n", verbatim::VERSION));
    let source = start(&folder.path().join("source"), &modules).await?;
    let copy = start(&folder.path().join("copy"), &modules).await?;
    let captured = Captured::read()?;

    chapter(1, "A source that holds a log of Apache Kafka");
    let mut writer = source::Writer::start(&source, &captured).await?;
    writer.write_first_half().await?;
    table(&["PARTITION", "OFFSETS", "BATCHES", "LEADER EPOCHS", "TRANSACTIONS"], &captured.rows());

    chapter(2, "A mirror, while the source goes on");
    let mut config = MirrorConfig::new(at(&source), at(&copy));
    config.topics = vec![whole_name(TOPIC)?];
    let mirror = Mirror::start(config);
    let behind = caught_up(&mirror, &writer.ends()).await?;
    say(&format!("caught up: {behind}"));
    writer.write_the_rest().await?;
    say("and the source got the rest");

    chapter(3, "A consumer that moves");
    let (positions, read) = read_at_the_source(&source).await?;
    let left = captured.records().saturating_sub(read.len());
    let read_on = read_on_at_the_copy(&copy, &positions, left).await?;
    table(&["PARTITION", "LAST AT THE SOURCE", "FIRST AT THE COPY"], &seams(&positions, &read, &read_on)?);
    let all = read.len().saturating_add(read_on.len());
    say(&format!(
        "{} records at the source, {} at the copy, {all} in all: none lost, none twice",
        read.len(),
        read_on.len()
    ));

    chapter(4, "The proof");
    caught_up(&mirror, &writer.ends()).await?;
    let report = Verifier::new(Options::new(at(&source), at(&copy), vec![whole_name(TOPIC)?]))?.run().await?;
    let rows: Vec<_> = report.partitions.iter().map(verdict).collect();
    table(&["PARTITION", "VERDICT", "OFFSETS", "BATCHES", "BYTES", "DIGEST"], &rows);
    ensure!(report.partitions.iter().all(|partition| partition.verdict == Verdict::Identical), "{report:?}");

    mirror.stop().await;
    source.shutdown().await;
    copy.shutdown().await;
    say(&format!("\ndone in {} ms", began.elapsed().as_millis()));
    Ok(())
}

async fn start(data: &Path, modules: &Arc<Modules>) -> anyhow::Result<Broker> {
    let config = Config::new(data.to_path_buf(), ([127, 0, 0, 1], 0).into());
    Ok(Broker::start(config, modules.clone()).await?)
}

fn at(broker: &Broker) -> ClusterConfig {
    ClusterConfig::new([broker.local_addr()])
}

/// Waits until the copy ends where the source does; tells the ends.
async fn caught_up(mirror: &Mirror, ends: &[i64]) -> anyhow::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let partitions = mirror.snapshot().partitions;
        let is_there = |(partition, end): (&verbatim::mirror::mirror::state::PartitionStatus, &i64)| {
            partition.state == State::CaughtUp && partition.end == *end
        };
        if partitions.len() == ends.len() && partitions.iter().zip(ends).all(is_there) {
            let ends = partitions.iter().map(|one| format!("{TOPIC}-{} ends at {}", one.partition, one.end));
            return Ok(ends.collect::<Vec<_>>().join(", "));
        }
        ensure!(Instant::now() < deadline, "the mirror does not catch up: {partitions:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn reader(broker: &Broker) -> Reader {
    Reader::new(Cluster::new(at(broker)), ReaderConfig::default())
}

/// Reads each partition from its beginning and stops somewhere: returns where, and what was read.
async fn read_at_the_source(source: &Broker) -> anyhow::Result<(BTreeMap<Partition, Position>, Vec<Record>)> {
    let mut reader = reader(source);
    let (mut positions, mut records) = (BTreeMap::new(), Vec::new());
    for index in 0..source::PARTITIONS {
        let partition = Partition { topic: TOPIC.to_owned(), index };
        reader.assign(&partition, Seek::Beginning);
        for _ in 0..BEFORE_THE_MOVE {
            records.push(tokio::time::timeout(PATIENCE, reader.next()).await??);
        }
        let position = reader.position(&partition).context("no position after a record")?;
        positions.insert(partition.clone(), position);
        reader.unassign(&partition);
    }
    Ok((positions, records))
}

/// Goes on at the copy, at the same offsets and leader epochs, until so many records have come.
async fn read_on_at_the_copy(
    copy: &Broker,
    positions: &BTreeMap<Partition, Position>,
    count: usize,
) -> anyhow::Result<Vec<Record>> {
    let mut reader = reader(copy);
    for (partition, position) in positions {
        reader.assign(partition, Seek::To(*position));
    }
    let mut records = Vec::new();
    while records.len() < count {
        let next = tokio::time::timeout(PATIENCE, reader.next()).await;
        records.push(next.with_context(|| format!("{} of {count} records at the copy", records.len()))??);
    }
    Ok(records)
}

/// For each partition the last record before the move and the first one behind it. Offsets must rise through all of it.
fn seams(
    positions: &BTreeMap<Partition, Position>,
    before: &[Record],
    behind: &[Record],
) -> anyhow::Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for partition in positions.keys() {
        let of = |records: &[Record]| -> Vec<Record> {
            records.iter().filter(|record| *record.partition == *partition).cloned().collect()
        };
        let (before, behind) = (of(before), of(behind));
        let offsets: Vec<i64> = before.iter().chain(&behind).map(|record| record.offset).collect();
        ensure!(offsets.is_sorted_by(|a, b| a < b), "{partition}: {offsets:?}");
        rows.push(vec![partition.to_string(), shown(before.last()), shown(behind.first())]);
    }
    Ok(rows)
}

fn shown(record: Option<&Record>) -> String {
    let Some(record) = record else { return "none".to_owned() };
    let value = record.value.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    let value: String = value.chars().take(24).collect();
    format!("offset {}, epoch {}, {value}", record.offset, record.leader_epoch.unwrap_or(-1))
}

fn verdict(partition: &PartitionReport) -> Vec<String> {
    let range = partition.range.map_or_else(String::new, |range| format!("{} to {}", range.from, range.to));
    let digest = partition.digest.target.map(|digest| digest.short()).unwrap_or_default();
    vec![
        format!("{}-{}", partition.topic, partition.partition),
        partition.verdict.to_string(),
        range,
        partition.count.target.batches.to_string(),
        partition.count.target.bytes.to_string(),
        digest,
    ]
}

fn chapter(number: u32, title: &str) {
    say(&format!("{}{number}. {title}", if number > 1 { "\n" } else { "" }));
}

/// Prints a table with a column as wide as its widest cell.
fn table(head: &[&str], rows: &[Vec<String>]) {
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let all = || std::iter::once(&head).chain(rows);
    let width = |column: usize| all().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    for row in all() {
        let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column)));
        say(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn say(line: &str) {
    println!("{line}");
}
