//! What size costs: a partition of 1,000 segments against one of 10, and a topic of 10,000 partitions against one of 100.
//!
//! For each, in one run against the real command: start after a clean stop and after a kill, offsets by time, and fetches from
//! the middle. Times are printed as they are and as ratios of the large to the small; take the ratios.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use verbatim_tests::client::{Client, Write};
use verbatim_tests::exact;
use verbatim_tests::host::{Home, Host};
use verbatim_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use verbatim_wire::messages::{ListOffsetsRequest, TopicName};
use verbatim_wire::protocol::StrBytes;

const TOPIC: &str = "large";
const SEGMENT_BYTES: usize = 256 * 1024;
/// Batches of a segment.
const BATCHES: usize = 8;
/// Single requests that are timed.
const ROUNDS: u32 = 200;

/// A subject of a given size; what is measured of it, in milliseconds.
struct Measured {
    size: usize,
    figures: Vec<(&'static str, f64)>,
}

fn main() -> anyhow::Result<()> {
    let segments = [10, 1_000].map(segments).into_iter().collect::<Result<Vec<_>, _>>()?;
    report("segments of one partition", &segments);
    let partitions = [100, 10_000].map(partitions).into_iter().collect::<Result<Vec<_>, _>>()?;
    report("partitions of one topic", &partitions);
    Ok(())
}

/// A partition of so many segments, written exactly, many batches a request.
fn segments(size: usize) -> anyhow::Result<Measured> {
    let home = Home::new()?;
    let host = home.start()?;
    let bytes = format!("segment.bytes={SEGMENT_BYTES}");
    host.create_topic(TOPIC, 1, &[exact::EXACT, &bytes])?;
    let end = fill(&Client::connect(host.address())?, size)?;
    let mut figures = Vec::new();
    let host = restarts(&home, host, &mut figures)?;
    let client = Client::connect(host.address())?;
    let last_ms = exact::TIMESTAMP_MS.saturating_add(end);
    figures.push((
        "offset by time",
        each(|round| {
            let time = exact::TIMESTAMP_MS.saturating_add(spread(end, round));
            let (offset, _) =
                by_time(&client, &[0], time.min(last_ms))?.first().copied().context("no answer")?;
            ensure!((0..end).contains(&offset), "offset {offset} for time {time}, end {end}");
            Ok(())
        })?,
    ));
    figures.push((
        "fetch from the middle",
        each(|round| {
            let fetched = client.fetch((TOPIC, 0), spread(end, round))?;
            ensure!(fetched.error_code == 0 && !fetched.records.is_empty(), "{fetched:?}");
            Ok(())
        })?,
    ));
    figures.push(("memory, MiB", mebibytes(&host)?));
    Ok(Measured { size, figures })
}

/// A topic of so many partitions, a batch in each hundredth.
fn partitions(size: usize) -> anyhow::Result<Measured> {
    let home = Home::new()?;
    let host = home.start()?;
    let count = u32::try_from(size)?;
    let began = Instant::now();
    host.create_topic(TOPIC, count, &[])?;
    let mut figures = vec![("create", millis(began.elapsed()))];
    let client = Client::connect(host.address())?;
    let batch = exact::batch(0, 0, &["one", "two", "three"])?;
    for index in (0..i32::try_from(size)?).step_by(100) {
        let answer = client.produce((TOPIC, index), None, &batch)?;
        ensure!(answer.error_code == 0, "partition {index}: {answer:?}");
    }
    drop(client);
    let host = restarts(&home, host, &mut figures)?;
    let client = Client::connect(host.address())?;
    let all: Vec<i32> = (0..i32::try_from(size)?).collect();
    let began = Instant::now();
    let answers = by_time(&client, &all, exact::TIMESTAMP_MS)?;
    figures.push(("offsets by time, all partitions", millis(began.elapsed())));
    let found = answers.iter().filter(|(offset, _)| *offset == 0).count();
    ensure!(found == size.div_ceil(100), "{found} partitions have an offset at that time");
    figures.push((
        "fetch from the middle",
        each(|_| {
            let middle = i32::try_from(size / 200 * 100)?;
            let fetched = client.fetch((TOPIC, middle), 1)?;
            ensure!(fetched.error_code == 0 && !fetched.records.is_empty(), "{fetched:?}");
            Ok(())
        })?,
    ));
    figures.push(("memory, MiB", mebibytes(&host)?));
    Ok(Measured { size, figures })
}

/// Stops and kills the host, and times the stop and the starts, each until the first answer.
fn restarts(home: &Home, host: Host, figures: &mut Vec<(&'static str, f64)>) -> anyhow::Result<Host> {
    let mut timed = |name, began: Instant| figures.push((name, millis(began.elapsed())));
    let began = Instant::now();
    host.stop()?;
    timed("clean stop", began);
    let began = Instant::now();
    let host = home.start()?;
    drop(Client::connect(host.address())?);
    timed("start after a clean stop", began);
    host.kill()?;
    let began = Instant::now();
    let host = home.start()?;
    drop(Client::connect(host.address())?);
    timed("start after a kill", began);
    Ok(host)
}

/// Writes `size` segments of [`BATCHES`] batches with rising times; the end afterwards.
fn fill(client: &Client, size: usize) -> anyhow::Result<i64> {
    let value = "x".repeat(SEGMENT_BYTES / BATCHES - 200);
    let mut end = 0_i64;
    for _ in 0..size {
        let mut batches = Vec::new();
        let mut order = exact::order((end, if end == 0 { -1 } else { 0 }), (0, end), 0);
        for _ in 0..BATCHES {
            batches.extend(batch(end, &value)?);
            end = end.saturating_add(1);
        }
        order.source_end = end;
        let write = Write { partition: (TOPIC, 0), tag: Some(&order), batches: &batches };
        let answers = client.produce_together(&[write])?;
        ensure!(answers.iter().all(|answer| answer.error_code == 0), "{answers:?}");
    }
    Ok(end)
}

/// A batch of one record whose time says its offset.
fn batch(offset: i64, value: &str) -> anyhow::Result<Vec<u8>> {
    let record = verbatim_batch::NewRecord::new(0, exact::TIMESTAMP_MS.saturating_add(offset));
    let builder =
        verbatim_batch::BatchBuilder::new(offset).leader_epoch(0).record(record.value(value.as_bytes()));
    builder.build().map_err(|error| anyhow::anyhow!("{error:?}"))
}

/// Offset and leader epoch of the first record at or after a time, of each partition.
fn by_time(client: &Client, partitions: &[i32], time_ms: i64) -> anyhow::Result<Vec<(i64, i32)>> {
    let asked = partitions
        .iter()
        .map(|index| ListOffsetsPartition::default().with_partition_index(*index).with_timestamp(time_ms));
    let name = TopicName(StrBytes::from_static_str(TOPIC));
    let topic = ListOffsetsTopic::default().with_name(name).with_partitions(asked.collect());
    let answer = client.call(&ListOffsetsRequest::default().with_topics(vec![topic]))?;
    let topic = answer.topics.into_iter().next().context("no topic in the answer")?;
    for partition in &topic.partitions {
        ensure!(
            partition.error_code == 0,
            "partition {}: {}",
            partition.partition_index,
            partition.error_code
        );
    }
    Ok(topic.partitions.iter().map(|partition| (partition.offset, partition.leader_epoch)).collect())
}

/// The median time of one round.
fn each(mut round: impl FnMut(u32) -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for index in 0..ROUNDS {
        let began = Instant::now();
        round(index)?;
        times.push(began.elapsed());
    }
    times.sort();
    times.get(times.len() / 2).copied().map(millis).context("no rounds")
}

/// An offset below `end`, another one each round, all over the log.
fn spread(end: i64, round: u32) -> i64 {
    i64::from(round).saturating_mul(7_919).saturating_mul(end / 3 + 1).checked_rem(end).unwrap_or(0)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn mebibytes(host: &Host) -> anyhow::Result<f64> {
    let kibibytes = u32::try_from(host.status_kib("VmRSS")?)?;
    Ok(f64::from(kibibytes) / 1_024.0)
}

fn report(subject: &str, measured: &[Measured]) {
    let [small, large] = measured else { return };
    println!("\n{subject}, ms        {:>10} {:>10} {:>8}", small.size, large.size, "ratio");
    for ((name, small), (_, large)) in small.figures.iter().zip(&large.figures) {
        println!("{name:<34} {small:>10.2} {large:>10.2} {:>8.1}", large / small);
    }
}
