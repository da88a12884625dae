//! kill -9 during writes with `flush = always`: no acknowledged batch is lost, and epochs and topics are what they must
//! be afterwards.
//!
//! Five kills in `make test`, fifty in `make soak`; `VERBATIM_SEED` replays the moments of the kills.

use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use verbatim_batch::{Batch, frames};
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::{Home, Host};
use verbatim_tests::random::Random;

const PLAIN: (&str, i32) = ("plain", 0);
const COPY: (&str, i32) = ("copy", 0);

/// What was acknowledged so far, and what the restarts showed.
#[derive(Default)]
struct Known {
    /// Value by offset, of the normal topic.
    plain: BTreeMap<i64, String>,
    /// Batches of the exact topic.
    copy_batches: i64,
    /// Topics created on the way.
    topics: Vec<String>,
    /// How often the host was started again.
    restarts: i32,
    /// The normal topic's epochs with their starts: where the log stood when the host started again. An epoch that saw
    /// no data leaves no entry.
    plain_epochs: Vec<(i32, i64)>,
}

#[test]
fn kill_9_loses_nothing_that_was_acknowledged() -> anyhow::Result<()> {
    let mut random = Random::announced("kill_9_loses_nothing_that_was_acknowledged")?;
    let kills = if verbatim_tests::soak() { 50 } else { 5 };
    let home = Home::new()?;
    let mut host = home.start()?;
    host.create_topic(PLAIN.0, 1, &[])?;
    host.create_topic(COPY.0, 1, &[EXACT])?;
    let mut known = Known { plain_epochs: vec![(0, 0)], ..Known::default() };
    for kill in 1..=kills {
        let context = || format!("kill {kill} of {kills}");
        write_until_killed(host, &mut random, &mut known).with_context(context)?;
        host = home.start().with_context(context)?;
        check(&host, &mut known).with_context(context)?;
    }
    ensure!(
        !known.plain.is_empty() && known.copy_batches > 0 && !known.topics.is_empty(),
        "nothing was written"
    );

    // An orderly end is a start like any other.
    host.stop()?;
    check(&home.start()?, &mut known).context("after SIGTERM")
}

/// Three writers at once; each goes on until its connection breaks.
fn write_until_killed(host: Host, random: &mut Random, known: &mut Known) -> anyhow::Result<()> {
    let address = host.address();
    let round = random.number();
    let copied = known.copy_batches;
    let (writing, begun) = mpsc::channel();
    let plain = thread::spawn(move || write_plain(address, round, &writing));
    let copy = thread::spawn(move || write_copy(address, copied));
    let topics = thread::spawn(move || create_topics(address, round));
    begun.recv_timeout(Duration::from_secs(30)).context("nothing is acknowledged")?;
    thread::sleep(random.millis(0, 300));
    host.kill()?;
    let ended = |_| anyhow::anyhow!("a writer panicked");
    known.plain.extend(plain.join().map_err(ended)??);
    known.copy_batches += copy.join().map_err(ended)??;
    known.topics.extend(topics.join().map_err(ended)??);
    Ok(())
}

/// Writes unique values to the normal topic, and tells of the first one acknowledged; returns all that were, by their
/// offsets.
fn write_plain(
    address: SocketAddr,
    round: u64,
    writing: &mpsc::Sender<()>,
) -> anyhow::Result<Vec<(i64, String)>> {
    let client = Client::connect(address)?;
    let mut acknowledged = Vec::new();
    for i in 0.. {
        let value = format!("{round:x}-{i}");
        let Ok(answer) = client.produce(PLAIN, None, &batch(0, 0, &[&value])?) else { break };
        ensure!(answer.error_code == 0, "{answer:?}");
        acknowledged.push((answer.base_offset, value));
        // Only the first is waited for.
        let _ = writing.send(());
    }
    Ok(acknowledged)
}

/// Goes on with the exact topic where it ends; returns how many batches are acknowledged beyond the first `from`.
fn write_copy(address: SocketAddr, from: i64) -> anyhow::Result<i64> {
    let client = Client::connect(address)?;
    // The last batch of the round before may be there although its acknowledgement was not seen.
    let mut next = batches_below(client.latest(COPY)?.0);
    loop {
        let before = (end_after(next - 1), if next == 0 { -1 } else { epoch_of(next - 1) });
        let order = order(before, (0, end_after(next)), epoch_of(next));
        let Ok(answer) = client.produce(COPY, Some(&order), &copy_batch(next)?) else { break };
        ensure!(answer.error_code == 0, "batch {next}: {answer:?}");
        next += 1;
    }
    Ok(next - from)
}

fn create_topics(address: SocketAddr, round: u64) -> anyhow::Result<Vec<String>> {
    let client = Client::connect(address)?;
    let mut created = Vec::new();
    // A few are enough; thousands would make the rest of the test about them.
    for i in 0..5 {
        let topic = format!("t-{round:x}-{i}");
        if client.create_topic(&topic, 1, &[]).is_err() {
            break;
        }
        created.push(topic);
    }
    Ok(created)
}

fn check(host: &Host, known: &mut Known) -> anyhow::Result<()> {
    let client = Client::connect(host.address())?;
    check_plain(&client, known).context("the normal topic")?;
    check_copy(&client, known).context("the exact topic")?;
    for topic in &known.topics {
        let end = client.latest((topic, 0)).with_context(|| format!("topic {topic}"))?;
        assert_eq!(end.0, 0, "topic {topic}");
    }
    Ok(())
}

fn check_plain(client: &Client, known: &mut Known) -> anyhow::Result<()> {
    let (end, epoch) = client.latest(PLAIN)?;
    known.restarts += 1;
    assert_eq!(epoch, known.restarts, "the epoch rises by one with each start");
    known.plain_epochs.retain(|(_, start)| *start < end);
    known.plain_epochs.push((epoch, end));
    for (entry, next) in known.plain_epochs.iter().zip(known.plain_epochs.iter().skip(1)) {
        assert_eq!(client.epoch_end(PLAIN, entry.0)?, (entry.0, next.1), "where epoch {} was cut", entry.0);
    }
    assert_eq!(client.epoch_end(PLAIN, epoch)?, (epoch, end), "the epoch that begins now");

    let bytes = client.fetch_all(PLAIN, 0)?;
    let mut stored = BTreeMap::new();
    for frame in frames(&bytes) {
        let batch = Batch::parse(frame.bytes()).map_err(|error| anyhow::anyhow!("{error}"))?;
        let header = batch.header();
        let entry = known.plain_epochs.iter().rfind(|(_, start)| *start <= header.base_offset);
        assert_eq!(entry.map(|(epoch, _)| *epoch), Some(header.leader_epoch), "{header:?}");
        for record in batch.plain_records().context("compressed")? {
            let record = record.map_err(|error| anyhow::anyhow!("{error}"))?;
            let value = String::from_utf8_lossy(record.value.unwrap_or_default()).into_owned();
            stored.insert(header.base_offset + i64::from(record.offset_delta), value);
        }
    }
    assert_eq!(i64::try_from(stored.len())?, end, "offsets without a hole");
    for (offset, value) in &known.plain {
        assert_eq!(stored.get(offset), Some(value), "acknowledged at offset {offset}");
    }
    Ok(())
}

fn check_copy(client: &Client, known: &mut Known) -> anyhow::Result<()> {
    let (end, epoch) = client.latest(COPY)?;
    let stored = batches_below(end);
    ensure!(stored >= known.copy_batches, "{} batches acknowledged, {stored} left", known.copy_batches);
    known.copy_batches = stored;
    if stored == 0 {
        return Ok(());
    }
    assert_eq!(end, end_after(stored - 1));
    // The batch under way at the kill has declared the source's epoch and end, which may be kept before the batch is.
    let declared = (epoch_of(stored), end_after(stored));
    let stored_epoch = epoch_of(stored - 1);
    ensure!(epoch == stored_epoch || epoch == declared.0, "epoch {epoch} is shown, {stored_epoch} is stored");
    let mut expected = Vec::new();
    for i in 0..stored {
        expected.extend(copy_batch(i)?);
    }
    ensure!(client.fetch_all(COPY, 0)? == expected, "the copy's bytes differ from what was written");
    for epoch in 1..stored_epoch {
        let next = i64::from(epoch) * BATCHES_PER_EPOCH;
        assert_eq!(client.epoch_end(COPY, epoch)?, (epoch, base_of(next)), "epochs are the source's");
    }
    let shown = client.epoch_end(COPY, epoch)?;
    ensure!(shown == (epoch, end) || shown == (epoch, declared.1), "{shown:?}, the log's end is {end}");
    Ok(())
}

// The exact topic's content: batch i holds two records, from offset 10 i on, under epoch 1 + i / 20.

const BATCHES_PER_EPOCH: i64 = 20;

fn base_of(i: i64) -> i64 {
    i * 10
}

fn end_after(i: i64) -> i64 {
    if i < 0 { 0 } else { base_of(i) + 2 }
}

fn epoch_of(i: i64) -> i32 {
    i32::try_from(1 + i / BATCHES_PER_EPOCH).unwrap_or(i32::MAX)
}

fn copy_batch(i: i64) -> anyhow::Result<Vec<u8>> {
    batch(base_of(i), epoch_of(i), &[&format!("value {i}"), "second"])
}

/// How many batches a log with this end holds.
fn batches_below(end: i64) -> i64 {
    (end + 8) / 10
}
