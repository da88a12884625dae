//! Those who write exactly: the exact producer of verbatim-wire, through kills of the host, and the example in Python that
//! knows docs/TAG.md alone. Both copy bytes, end and epochs; neither writes anything to a broker that is not exact.

use anyhow::{Context, ensure};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch};
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::Kafka;
use verbatim_tests::random::Random;
use verbatim_tests::run::Output;
use verbatim_tests::{segments, tools};
use verbatim_wire::exact_producer::{
    Config, ExactError, ExactPartition, ExactProducer, Retry, Source, Target, Truncate, Write,
};
use verbatim_wire::tag::EpochEntry;

const PARTITIONS: i32 = 2;

#[test]
fn the_exact_producer_goes_on_through_kills_of_the_host() -> anyhow::Result<()> {
    let mut random = Random::announced("the_exact_producer_goes_on_through_kills_of_the_host")?;
    let (kills, writes) = if verbatim_tests::soak() { (30, 6_000) } else { (3, 600) };
    let home = Home::new()?;
    let mut host = home.start()?;
    host.create_topic("copy", u32::try_from(PARTITIONS)?, &[EXACT])?;
    let runtime = Runtime::new()?;
    let producer = runtime.block_on(async { ExactProducer::start(config(&host)) });
    let acknowledged = Arc::new(AtomicI64::new(0));
    let mut writers = Vec::new();
    for partition in 0..PARTITIONS {
        let (producer, acknowledged) = (producer.clone(), Arc::clone(&acknowledged));
        writers.push(runtime.spawn(copy(producer, partition, writes, acknowledged)));
    }
    for kill in 1..=kills {
        let share = i64::from(PARTITIONS) * writes * kill / (kills + 1);
        verbatim_tests::wait_for("acknowledgements", Duration::from_secs(120), || {
            ensure!(!writers.iter().any(|writer| writer.is_finished()) || share == 0, "a writer has ended");
            Ok((acknowledged.load(Ordering::Relaxed) >= share).then_some(()))
        })?;
        std::thread::sleep(random.millis(0, 30));
        host.kill()?;
        host = home.start()?;
    }
    for writer in writers {
        runtime.block_on(writer)??;
    }
    let client = Client::connect(host.address())?;
    for partition in 0..PARTITIONS {
        check(&client, partition, writes).with_context(|| format!("partition {partition}"))?;
    }
    drop(client);
    host.stop()
}

/// Writes that are acknowledged late, up to 64 behind; counts them.
async fn copy(
    producer: ExactProducer,
    partition: i32,
    writes: i64,
    acknowledged: Arc<AtomicI64>,
) -> anyhow::Result<()> {
    let mut copy = producer.open(Target::new("copy", partition)).await?;
    copy.resume_at(0, -1).await?;
    let mut receipts = std::collections::VecDeque::new();
    for i in 0..writes {
        let write = write(partition, i)?;
        if i % 7 == 0 {
            receipts.push_back((i, copy.declare_source(write.source).await?));
        }
        receipts.push_back((i + 1, copy.write(write).await?));
        while receipts.len() > 64 {
            settle(&mut receipts, &acknowledged).await?;
        }
    }
    while !receipts.is_empty() {
        settle(&mut receipts, &acknowledged).await?;
    }
    Ok(())
}

async fn settle(
    receipts: &mut std::collections::VecDeque<(i64, verbatim_wire::exact_producer::Receipt)>,
    acknowledged: &AtomicI64,
) -> anyhow::Result<()> {
    if let Some((i, receipt)) = receipts.pop_front() {
        let written = receipt.await?;
        ensure!(written.end == end_before(i), "write {i}: {written:?}");
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

// The source: write i brings offsets from 20 i on, two batches with a hole between them, under epoch 2 i / 25. Odd
// epochs begin with the write; even ones begin in its hole, and are declared.

fn end_before(i: i64) -> i64 {
    20 * i
}

fn epoch_before(i: i64) -> anyhow::Result<i32> {
    Ok(i32::try_from((i + 24) / 25)? * 2)
}

fn write(partition: i32, i: i64) -> anyhow::Result<Write> {
    let (from, before) = (end_before(i), epoch_before(i)?);
    let after = epoch_before(i + 1)?;
    // With an odd epoch the first batch begins it; the even one behind it is declared in the hole.
    let first = if after > before { after - 1 } else { after };
    let values = [format!("{partition} {i}"), "x".repeat(usize::try_from(i % 50)?)];
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let batches = [batch(from, first, &values)?, batch(from + 9, after, &values)?].concat();
    let declared = EpochEntry { epoch: after, start: from + 5 };
    Ok(Write {
        from,
        batches: batches.into(),
        entries: if after > before { vec![declared] } else { Vec::new() },
        end_to: Some(end_before(i + 1)),
        source: Source { start: 0, end: end_before(i + 1), epoch: after },
    })
}

fn check(client: &Client, partition: i32, writes: i64) -> anyhow::Result<()> {
    let copy = ("copy", partition);
    let mut expected = Vec::new();
    for i in 0..writes {
        expected.extend_from_slice(&write(partition, i)?.batches);
    }
    ensure!(client.fetch_all(copy, 0)? == expected, "the bytes differ");
    assert_eq!(client.latest(copy)?, (end_before(writes), epoch_before(writes)?));
    for i in (0..writes).step_by(25) {
        let even = epoch_before(i + 1)?;
        assert_eq!(client.epoch_end(copy, even - 1)?, (even - 1, end_before(i) + 5), "odd epoch");
        assert_eq!(client.epoch_end(copy, even)?, (even, end_before(writes.min(i + 25))), "even epoch");
    }
    Ok(())
}

#[test]
fn the_exact_producer_truncates_stops_at_another_history_and_names_what_diverged() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("copy", 1, &[EXACT, "produce.at.offset.rewind=truncate"])?;
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let producer = ExactProducer::start(config(&host));
        let mut copy = producer.open(Target::new("copy", 0)).await?;
        copy.resume_at(0, -1).await?;
        let source = |end, epoch| Source { start: 0, end, epoch };
        let first = write_of(0, &[batch(0, 1, &["a", "b"])?, batch(2, 2, &["c"])?], source(3, 2));
        copy.write(first).await?.await?;
        let cut = Truncate { from: 3, to: 2, epoch_before: 1, source: source(2, 4) };
        let cut = copy.truncate(cut).await?;
        let behind = copy.write(write_of(2, &[batch(2, 4, &["C"])?], source(3, 4))).await?;
        ensure!(cut.await?.end == 2 && behind.await?.end == 3, "the ends differ");

        // Its caller takes the end for another one, or the epoch, or the place for an empty one.
        ensure!(matches!(copy.resume_at(2, 1).await, Err(ExactError::Realign { found }) if found.end == 3));
        copy.resume_at(3, 1).await?;
        let refused = copy.write(write_of(3, &[batch(3, 4, &["d"])?], source(4, 4))).await?.await;
        ensure!(
            matches!(refused, Err(ExactError::Realign { found }) if found.last_epoch == 4),
            "{refused:?}"
        );
        copy.resume_at(3, 4).await?;
        let overlaps = write_of(3, &[batch(2, 4, &["C", "d"])?], source(4, 4));
        let refused = copy.write(overlaps).await?.await;
        ensure!(matches!(refused, Err(ExactError::Diverged { offset: 2, .. })), "{refused:?}");
        Ok(())
    })?;
    let client = Client::connect(host.address())?;
    let expected = [batch(0, 1, &["a", "b"])?, batch(2, 4, &["C"])?].concat();
    ensure!(client.fetch_all(("copy", 0), 0)? == expected, "the bytes differ");
    drop(client);
    host.stop()
}

#[test]
fn the_exact_producer_opens_no_normal_topic() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("normal", 1, &[])?;
    let runtime = Runtime::new()?;
    let error = runtime.block_on(open(config(&host), "normal")).err().context("opened")?;
    ensure!(matches!(error, ExactError::NotExact { .. }), "{error}");
    let error = runtime.block_on(open(config(&host), "nobody")).err().context("opened")?;
    ensure!(matches!(error, ExactError::UnknownPartition { .. }), "{error}");
    host.stop()
}

#[test]
fn neither_writes_anything_to_apache_kafka() -> anyhow::Result<()> {
    let (Some(kafka), Some(topics)) = (Kafka::start()?, tools::find("kafka-topics")?) else { return Ok(()) };
    let bootstrap = kafka.bootstrap();
    topics.succeed(&[
        "--bootstrap-server",
        &bootstrap,
        "--create",
        "--topic",
        "copy",
        "--partitions",
        "1",
    ])?;
    let runtime = Runtime::new()?;
    let error = runtime.block_on(open(Config::new(&bootstrap), "copy")).err().context("opened")?;
    ensure!(matches!(error, ExactError::NotExact { .. }), "{error}");
    let error = runtime.block_on(open(Config::new(&bootstrap), "nobody")).err().context("opened")?;
    ensure!(matches!(error, ExactError::UnknownPartition { .. }), "{error}");
    if let Some(written) = python_writer(&bootstrap, "copy", &source_file()?)? {
        ensure!(!written.status.success() && written.stderr.contains("not be an exact topic"), "{written}");
    }
    ensure!(segments::log_bytes(&kafka.data(), "copy", 0)?.is_empty(), "something was written");
    let listed = topics.succeed(&["--bootstrap-server", &bootstrap, "--list"])?;
    assert_eq!(listed.trim(), "copy", "no topic was made by asking for it");
    Ok(())
}

#[test]
fn the_python_example_copies_a_segment_and_goes_on_where_it_was_stopped() -> anyhow::Result<()> {
    let home = Home::new()?;
    let mut host = home.start()?;
    host.create_topic("copy", 1, &[EXACT])?;
    let file = source_file()?;
    let bytes = fs::read(&file.path)?;
    let end =
        segments::headers(&bytes)?.last().and_then(verbatim_batch::Header::next_offset).context("no end")?;
    // A part first, as if it had been stopped; then all, also after a restart; then nothing is left to do.
    let part = segments::headers(&bytes)?.iter().take(3).filter_map(verbatim_batch::Header::total_len).sum();
    let first = TempFile::new(bytes.get(..part).context("no three batches")?)?;
    for (time, file) in [&first, &file, &file].into_iter().enumerate() {
        let Some(written) = python_writer(&host.bootstrap(), "copy", file)? else { return Ok(()) };
        let said = written.success()?;
        ensure!(time == 0 || said.trim() == format!("the log ends at {end}"), "{said}");
        let client = Client::connect(host.address())?;
        ensure!(client.fetch_all(("copy", 0), 0)? == fs::read(&file.path)?, "time {time}: the bytes differ");
        drop(client);
        host.stop()?;
        host = home.start()?;
    }
    // A file of another history is refused, be it behind the end or below it, and a topic that is not exact too.
    let behind = batch(end, 1, &["another history"])?;
    let changed = batch(5, 2, &["value", "ANOTHER"])?;
    let (before, rest) = bytes.split_at_checked(changed.len()).context("no first batch")?;
    let below = [before, &changed, rest.get(changed.len()..).context("no second batch")?].concat();
    for (history, error) in [(behind, "error 74"), (below, "error 87: batch 1: diverged")] {
        let other = TempFile::new(&history)?;
        let refused = python_writer(&host.bootstrap(), "copy", &other)?.context("no python")?;
        ensure!(!refused.status.success() && refused.stderr.contains(error), "{refused}");
    }
    host.create_topic("normal", 1, &[])?;
    let refused = python_writer(&host.bootstrap(), "normal", &file)?.context("no python")?;
    ensure!(!refused.status.success() && !refused.stderr.contains("Traceback"), "{refused}");
    let client = Client::connect(host.address())?;
    assert_eq!((client.latest(("copy", 0))?.0, client.latest(("normal", 0))?.0), (end, 0));
    drop(client);
    host.stop()
}

#[test]
fn the_python_example_is_short_and_needs_nothing_but_the_page() -> anyhow::Result<()> {
    let text = fs::read_to_string(example())?;
    ensure!(text.lines().count() <= 60, "{} lines", text.lines().count());
    let imports: Vec<&str> = text.lines().filter(|line| line.contains("import ")).collect();
    assert_eq!(imports, ["import socket, struct, sys"]);
    let page = fs::read_to_string(verbatim_tests::workspace().join("docs/TAG.md"))?;
    for said in
        ["12486", "version 9", "2^63 - 1", "seven bits a byte", "Length plus 1", "partitionLeaderEpoch"]
    {
        ensure!(page.to_lowercase().contains(&said.to_lowercase()), "docs/TAG.md does not say {said}");
    }
    ensure!(page.contains("(examples/exact_writer.py)"), "docs/TAG.md does not name the example");
    Ok(())
}

fn config(host: &Host) -> Config {
    let retry = Retry { attempts_max: 1_000, pause_max: Duration::from_millis(200), ..Retry::default() };
    Config { retry, ..Config::new(host.address()) }
}

async fn open(config: Config, topic: &str) -> Result<ExactPartition, ExactError> {
    ExactProducer::start(config).open(Target::new(topic, 0)).await
}

fn write_of(from: i64, batches: &[Vec<u8>], source: Source) -> Write {
    Write { from, batches: batches.concat().into(), entries: Vec::new(), end_to: None, source }
}

/// A file that goes when it is dropped.
struct TempFile {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl TempFile {
    fn new(bytes: &[u8]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("00000000000000000000.log");
        fs::write(&path, bytes)?;
        Ok(Self { path, _folder: folder })
    }
}

/// A segment of 300 batches, with holes and several epochs, more than a request of the example takes.
fn source_file() -> anyhow::Result<TempFile> {
    let mut bytes = Vec::new();
    for i in 0..300 {
        bytes.extend(batch(i * 5, i32::try_from(2 + i / 70)?, &["value", "another"])?);
    }
    TempFile::new(&bytes)
}

fn example() -> PathBuf {
    verbatim_tests::workspace().join("docs/examples/exact_writer.py")
}

/// Runs the example; `None` without Python.
fn python_writer(bootstrap: &str, topic: &str, file: &TempFile) -> anyhow::Result<Option<Output>> {
    let Some(python) = tools::find("python3")? else { return Ok(None) };
    let (script, file) = (example().display().to_string(), file.path.display().to_string());
    Ok(Some(python.output(&[&script, bootstrap, topic, "0", &file], b"")?))
}
