//! What readers see of a mirrored topic: the Java consumer and librdkafka see on both sides the same records; one that is ahead of
//! the copy waits; one that moves goes on at the very next record, wherever it stopped.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use verbatim_mirror::cluster::{Cluster, ClusterConfig, Topics};
use verbatim_tests::answers::Answers;
use verbatim_tests::client::Client;
use verbatim_tests::exact::order;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::maker::Maker;
use verbatim_tests::kafka::sources::{EveryKind, partitions};
use verbatim_tests::kafka::{Kafka, LIVELY};
use verbatim_tests::random::Random;
use verbatim_tests::tools::{self, Tool};
use verbatim_tests::{run, segments};

/// How long a reader may take for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// Partitions in which readers stop everywhere: emptied batches and gaps, markers, aborted and open transactions.
const STOPS_IN: &[(&str, i32)] = &[("compacted", 0), ("compacted", 1), ("compacted", 2), ("transactions", 0)];

/// A stretch of a partition as the programs take it: topic, partition, offset, leader epoch or `-`, end.
type Stretch = [String; 5];

#[test]
fn readers_see_the_same_on_both_sides_and_may_move_at_any_stop() -> anyhow::Result<()> {
    let Some(readers) = readers()? else { return Ok(()) };
    let Some(mover) = tools::find("java-move-at-each-stop")? else { return Ok(()) };
    let seed = Random::announced("readers_see_the_same_on_both_sides")?.number() >> 1;
    let Some(source) = EveryKind::make(seed)? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    mirror_once(&source.kafka, &host, ".*")?;
    for isolation in ["read_uncommitted", "read_committed"] {
        let stretches = whole_partitions(&source.kafka, isolation)?;
        for reader in &readers {
            let at_source = sequence(reader, &source.kafka.bootstrap(), isolation, &stretches)?;
            let copied = sequence(reader, &host.bootstrap(), isolation, &stretches)?;
            ensure!(at_source.len() > 1_000, "{} lines", at_source.len());
            same(&at_source, &copied).with_context(|| format!("{isolation} by {reader:?}"))?;
        }
        for place in STOPS_IN {
            moves_at_every_stop(&mover, &source.kafka, &host, isolation, *place)
                .with_context(|| format!("{place:?} at {isolation}"))?;
        }
    }
    host.stop()
}

#[test]
fn a_reader_ahead_of_the_copy_waits_and_goes_on_there() -> anyhow::Result<()> {
    let Some(readers) = readers()? else { return Ok(()) };
    let Some(mut kafka) = Kafka::start_with(1, LIVELY)? else { return Ok(()) };
    let Some(mut maker) = Maker::start(&kafka.bootstrap(), 1)? else { return Ok(()) };
    maker.run("create early 1 1 retention.ms=-1")?;
    maker.run("write early 0 1 4 5 enable.idempotence=false")?;
    let home = Home::new()?;
    let host = home.start()?;
    mirror_once(&kafka, &host, "early")?;
    for round in 2..=3 {
        kafka.stop(1)?;
        kafka.start_again(1)?;
        maker.run(&format!("write early 0 {round} 6 5 enable.idempotence=false"))?;
    }
    let source = Client::connect(first(&kafka)?)?;
    let (end, _) = source.latest(("early", 0))?;
    let copied = tell_where_the_source_ends(&kafka, &host)?;
    ensure!(copied + 10 < end, "the copy ends at {copied}, the source at {end}");

    // One position just behind what is copied, one deep in what is not; each with and without the epoch that was committed.
    let mut early = Vec::new();
    for position in [copied + 1, end - 3] {
        for epoch in ["-".to_owned(), epoch_at(&source, position - 1)?.to_string()] {
            let stretch = ["early".to_owned(), "0".to_owned(), position.to_string(), epoch, end.to_string()];
            for reader in &readers {
                early.push((position, Waiting::start(reader, &host.bootstrap(), &stretch)?));
            }
        }
    }
    for (position, reader) in &early {
        let told = reader.lines.recv_timeout(PATIENCE).with_context(|| format!("nothing at {position}"))?;
        let polled = serde_json::from_str::<Value>(&told).is_ok_and(|told| told == json!({"polled": true}));
        ensure!(polled, "at {position}, and the copy ends at {copied}: {told}");
    }
    for (position, reader) in &mut early {
        let ended = reader.child.try_wait()?;
        ensure!(ended.is_none(), "at {position}, and the copy ends at {copied}: {ended:?}");
    }
    mirror_once(&kafka, &host, "early")?;
    for (position, reader) in early {
        let lines = reader.finish()?;
        let offsets: Vec<i64> = lines.iter().filter_map(|line| line.get("offset")?.as_i64()).collect();
        ensure!(offsets == (position..end).collect::<Vec<_>>(), "at {position} of {end}: {offsets:?}");
    }
    host.stop()
}

/// A reader at work, which tells when a first poll brought nothing. Dropping it kills it.
struct Waiting {
    child: Child,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
}

impl Waiting {
    fn start(reader: &Tool, bootstrap: &str, stretch: &Stretch) -> anyhow::Result<Self> {
        let mut command = Command::new(reader.program());
        command.args(reader.script()).args([bootstrap, "read_uncommitted"]).args(stretch);
        command.env("TELL_POLLED", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut errors = child.stderr.take().context("no standard error")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let errors = thread::spawn(move || {
            let mut text = String::new();
            // What came before an error is still worth showing.
            let _ = errors.read_to_string(&mut text);
            text
        });
        Ok(Self { child, lines, errors: Some(errors) })
    }

    /// What else it prints to its end.
    fn finish(mut self) -> anyhow::Result<Vec<Value>> {
        let status = run::wait(&mut self.child, PATIENCE)?;
        let errors = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        let lines: Vec<String> = self.lines.iter().collect();
        ensure!(status.success(), "{status}: {lines:?}\n{errors}");
        lines.iter().map(|line| serde_json::from_str(line).with_context(|| line.clone())).collect()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every reader that is put to work here: the Java consumer, librdkafka.
fn readers() -> anyhow::Result<Option<[Tool; 2]>> {
    Ok(tools::find("java-sequence")?.zip(tools::python("sequence.py")?).map(<[Tool; 2]>::from))
}

/// What a reader prints of some stretches, one after the other.
fn sequence(
    reader: &Tool,
    bootstrap: &str,
    isolation: &str,
    stretches: &[Stretch],
) -> anyhow::Result<Vec<Value>> {
    let stretches = stretches.iter().flatten().map(String::as_str);
    reader.json_lines(&[bootstrap, isolation].into_iter().chain(stretches).collect::<Vec<_>>())
}

/// All partitions of the source from their start to where this isolation level ends.
fn whole_partitions(kafka: &Kafka, isolation: &str) -> anyhow::Result<Vec<Stretch>> {
    let mut stretches = Vec::new();
    for partition in partitions() {
        let (start, end) = bounds(kafka, isolation, (partition.topic, partition.index))?;
        if end > start {
            let index = partition.index.to_string();
            let (start, end) = (start.to_string(), end.to_string());
            stretches.push([partition.topic.to_owned(), index, start, "-".to_owned(), end]);
        }
    }
    Ok(stretches)
}

/// Log start, and where this isolation level ends.
fn bounds(kafka: &Kafka, isolation: &str, place: (&str, i32)) -> anyhow::Result<(i64, i64)> {
    let client = Client::connect(first(kafka)?)?;
    let end = match isolation {
        "read_committed" => Answers::ask(&kafka.addresses(), place, &[])?.last_stable_offset,
        _ => client.latest(place)?.0,
    };
    Ok((client.earliest(place)?.0, end))
}

fn same(source: &[Value], copy: &[Value]) -> anyhow::Result<()> {
    for (at, (source, copy)) in source.iter().zip(copy).enumerate() {
        ensure!(source == copy, "line {at}: {source} at the source, {copy} at the copy");
    }
    ensure!(source.len() == copy.len(), "{} lines at the source, {} at the copy", source.len(), copy.len());
    Ok(())
}

/// A consumer that moves to the copy gets the same as at the source, at whichever offset it stops.
fn moves_at_every_stop(
    mover: &Tool,
    kafka: &Kafka,
    host: &Host,
    isolation: &str,
    (topic, index): (&str, i32),
) -> anyhow::Result<()> {
    let (start, end) = bounds(kafka, isolation, (topic, index))?;
    let numbers = [i64::from(index), start, end].map(|number| number.to_string());
    let sides = [kafka.bootstrap(), host.bootstrap()];
    let mut arguments = vec![sides[0].as_str(), &sides[1], isolation, topic];
    arguments.extend(numbers.iter().map(String::as_str));
    let lines = mover.json_lines(&arguments)?;
    let (all, moves) = lines.split_first().context("no line")?;
    let all = all.get("offsets").and_then(Value::as_array).context("no offsets")?;
    let all: Vec<i64> = all.iter().filter_map(Value::as_i64).collect();
    ensure!(all.len() > 10, "{all:?}");
    let (mut stops, mut with_epoch) = (Vec::new(), 0);
    for line in moves {
        let number = |name: &str| line.get(name).and_then(Value::as_i64);
        ensure!(line.get("difference") == Some(&Value::Null), "{line}");
        let stop = number("position").context("no position")?;
        let left = all.iter().filter(|offset| **offset >= stop).count();
        ensure!(number("records") == Some(i64::try_from(left)?), "{left} records are left: {line}");
        stops.push(stop);
        with_epoch += i64::from(number("epoch").is_some());
    }
    stops.dedup();
    ensure!(stops == (start..=end).collect::<Vec<_>>(), "from {start} to {end}: {stops:?}");
    // A record lies before each stop but those up to the first.
    let first = all.first().context("no records")?;
    ensure!(with_epoch == end - first, "{with_epoch} stops with an epoch, from {first} to {end}");
    Ok(())
}

/// Tells the copy where its source ends by now, as a mirror does with every request; returns where the copy does.
fn tell_where_the_source_ends(kafka: &Kafka, host: &Host) -> anyhow::Result<i64> {
    let cluster = Cluster::new(ClusterConfig::new([kafka.bootstrap()]));
    let names = ["early".to_owned()];
    let topics = tokio::runtime::Runtime::new()?.block_on(cluster.topics(Topics::Named(&names)))?;
    let id = topics.first().context("no topic")?.id;
    let (source_end, source_epoch) = Client::connect(first(kafka)?)?.latest(("early", 0))?;
    let copy = Client::connect(host.address())?;
    let (end, _) = copy.latest(("early", 0))?;
    let mut tag = order((end, epoch_at(&copy, end - 1)?), (0, source_end), source_epoch);
    tag.source_topic_id = id.into_bytes();
    let answer = copy.produce(("early", 0), Some(&tag), &[])?;
    ensure!(answer.error_code == 0, "{answer:?}");
    Ok(end)
}

/// Runs the mirror until it has caught up.
fn mirror_once(kafka: &Kafka, host: &Host, topics: &str) -> anyhow::Result<()> {
    let source = kafka.bootstrap();
    host.verbatim(&["mirror", "--source", &source, "--topics", topics, "--once"], b"")?.success().map(drop)
}

fn first(kafka: &Kafka) -> anyhow::Result<SocketAddr> {
    kafka.addresses().first().copied().context("no broker")
}

/// The leader epoch of the batch that holds an offset.
fn epoch_at(client: &Client, offset: i64) -> anyhow::Result<i32> {
    let headers = segments::headers(&client.fetch(("early", 0), offset)?.records)?;
    Ok(headers.first().context("nothing there")?.leader_epoch)
}
