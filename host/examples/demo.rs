//! The main job, shown: batches land at the offsets and leader epochs that their writer chose, judged by the module in its
//! sandbox, and come back byte for byte over the Kafka protocol. `make demo` runs it.
//!
//! The host is a real one on a free loopback port, with its data in a temporary folder; everything below speaks to it over
//! TCP as any client does.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use verbatim::Modules;
use verbatim::batch::{BatchBuilder, ControlType, Header, NewRecord, frames, place};
use verbatim::broker::{Broker, Config};
use verbatim::wire::client::{ClientConfig, Connection};
use verbatim::wire::error::describe;
use verbatim::wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use verbatim::wire::messages::fetch_request::{FetchPartition, FetchTopic};
use verbatim::wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use verbatim::wire::messages::{CreateTopicsRequest, FetchRequest, ProduceRequest, TopicName};
use verbatim::wire::protocol::StrBytes;
use verbatim::wire::tag::{self, AnswerTag, RequestTag};

const TOPIC: &str = "orders";
/// The first record's time, milliseconds since 1970.
const TIME_MS: i64 = 1_700_000_000_000;
/// A producer at the source, as its transaction names it.
const PRODUCER: (i64, i16) = (4_242, 0);
/// The last Produce and Fetch versions that name topics by name.
const VERSION: i16 = 12;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let began = Instant::now();
    let folder = tempfile::tempdir()?;
    let modules = Modules::bundled()?;
    let digest = modules.iter().next().map(|(_, module)| module.digest.to_string()).unwrap_or_default();
    let config = Config::new(folder.path().join("data"), ([127, 0, 0, 1], 0).into());
    let broker = Broker::start(config, Arc::new(modules)).await?;
    let short = digest.get(..12).unwrap_or_default();
    say(&format!("verbatim {}, judged by module exact-mirroring sha256:{short}", verbatim::VERSION));
    let mut client = Client::connect(&broker).await?;
    client.create_exact_topic().await?;
    say(&format!("exact topic `{TOPIC}` created: its writer chooses offsets and leader epochs\n"));
    let written = write(&mut client).await?;
    refusals(&mut client, &written).await?;
    read_back(&client, &written).await?;
    say(&format!("\ndone in {} ms", began.elapsed().as_millis()));
    drop(client);
    broker.shutdown().await;
    Ok(())
}

/// Batches at chosen places: a hole before the first and one of billions, a transaction with its marker, a second epoch.
async fn write(client: &mut Client) -> anyhow::Result<Vec<Vec<u8>>> {
    row("OFFSETS", "EPOCH", "WRITTEN", "VERDICT");
    let transaction = records(103, 5, &["reserved"]).producer(PRODUCER.0, PRODUCER.1, 0).transactional();
    let mut marker = BatchBuilder::marker(104, PRODUCER, TIME_MS, ControlType::Commit, 0)?;
    place(&mut marker, 104, 5)?;
    let batches = [
        ("3 records, a hole below them", records(100, 5, &["one", "two", "three"]).build()?),
        ("1 record in a transaction", transaction.build()?),
        ("its commit marker", marker),
        ("2 records, a hole of 5 billion", records(5_000_000_000, 7, &["far", "away"]).build()?),
    ];
    for (what, batch) in &batches {
        let answer = client.produce(batch, true).await?;
        ensure!(answer.code == 0, "{what}: {}", answer.verdict());
        show(batch, what, &answer.verdict())?;
    }
    Ok(batches.into_iter().map(|(_, batch)| batch).collect())
}

/// What must not be taken, and what may be sent twice.
async fn refusals(client: &mut Client, written: &[Vec<u8>]) -> anyhow::Result<()> {
    let end = client.position.end;
    let lower = records(end, 6, &["late"]).build()?;
    let answer = client.produce(&lower, true).await?;
    ensure!(answer.code == 74, "a lower epoch: {}", answer.verdict());
    show(&lower, "a lower epoch", &answer.verdict())?;
    answer.explain();
    let plain = records(0, 0, &["plain"]).build()?;
    let answer = client.produce(&plain, false).await?;
    ensure!(answer.code == 44, "a plain producer: {}", answer.verdict());
    show(&plain, "a plain producer's batch", &answer.verdict())?;
    answer.explain();
    let again = written.last().context("nothing was written")?;
    let answer = client.produce(again, true).await?;
    ensure!(answer.code == 0 && client.position.end == end, "a retry: {}", answer.verdict());
    show(again, "the last batch again", &format!("accepted, stored once: the end is still {end}"))
}

/// What a reader gets: the very bytes.
async fn read_back(client: &Client, written: &[Vec<u8>]) -> anyhow::Result<()> {
    say("");
    row("OFFSETS", "EPOCH", "READ BACK", "VERDICT");
    let mut left = written.iter();
    let mut offset = 100;
    while offset < client.position.end {
        let fetched = client.fetch(offset).await?;
        ensure!(!fetched.is_empty(), "nothing to read at offset {offset}");
        for frame in frames(&fetched) {
            let expected = left.next().context("more was read than written")?;
            ensure!(frame.bytes() == expected.as_slice(), "other bytes at offset {offset}");
            let header = frame.header().context("a batch without a header")?;
            offset = header.next_offset().context("a batch without an end")?;
            show(frame.bytes(), &format!("{} bytes", expected.len()), "identical")?;
        }
    }
    ensure!(left.next().is_none(), "less was read than written");
    Ok(())
}

/// A connection, and what the last answer told of the partition.
struct Client {
    connection: Connection,
    position: AnswerTag,
}

/// A partition's answer.
struct Answer {
    code: i16,
    text: String,
}

impl Answer {
    fn verdict(&self) -> String {
        match self.code {
            0 => "accepted".to_owned(),
            code => format!("refused: {}", describe(code)),
        }
    }

    /// What the broker said beside the code.
    fn explain(&self) {
        say(&format!("  {}", self.text));
    }
}

impl Client {
    async fn connect(broker: &Broker) -> anyhow::Result<Self> {
        let connection = Connection::connect(broker.local_addr(), ClientConfig::default()).await?;
        let empty = AnswerTag { end: 0, shown_epoch: -1, last_epoch: -1, diverged: None };
        Ok(Self { connection, position: empty })
    }

    async fn create_exact_topic(&self) -> anyhow::Result<()> {
        let exact = CreatableTopicConfig::default()
            .with_name(StrBytes::from_static_str("produce.at.offset"))
            .with_value(Some(StrBytes::from_static_str("true")));
        let topic = CreatableTopic::default()
            .with_name(topic())
            .with_num_partitions(1)
            .with_replication_factor(1)
            .with_configs(vec![exact]);
        let answer = self.connection.call(&CreateTopicsRequest::default().with_topics(vec![topic])).await?;
        let code = answer.topics.first().map_or(-1, |topic| topic.error_code);
        ensure!(code == 0, "creating the topic: {}", describe(code));
        Ok(())
    }

    /// Writes one batch, with the tag that an exact topic wants or, as a plain producer does, without it.
    async fn produce(&mut self, batch: &[u8], exact: bool) -> anyhow::Result<Answer> {
        let mut partition = PartitionProduceData::default().with_records(Some(Bytes::copy_from_slice(batch)));
        if exact {
            tag::set_request_tag(&mut partition, &self.order(batch)?)?;
        }
        let topic = TopicProduceData::default().with_name(topic()).with_partition_data(vec![partition]);
        let request =
            ProduceRequest::default().with_acks(-1).with_timeout_ms(10_000).with_topic_data(vec![topic]);
        let answer = self.connection.send(VERSION, &request).await?;
        let part = answer.responses.first().and_then(|topic| topic.partition_responses.first());
        let part = part.context("an answer without a partition")?;
        if let Some(position) = tag::answer_tag(part)? {
            self.position = position;
        }
        let text = part.error_message.as_ref().map(ToString::to_string).unwrap_or_default();
        Ok(Answer { code: part.error_code, text })
    }

    /// Compare-and-append: where the log is expected to end, and under which epoch.
    fn order(&self, batch: &[u8]) -> anyhow::Result<RequestTag> {
        let header = Header::read(batch).context("a batch without a header")?;
        let end = header.next_offset().context("a batch without an end")?;
        Ok(RequestTag {
            source_topic_id: [0; 16],
            expected_end: self.position.end,
            epoch_before: self.position.last_epoch,
            source_start: 0,
            source_end: end.max(self.position.end),
            source_epoch: header.leader_epoch.max(self.position.shown_epoch),
            end_to: None,
            truncate_to: None,
            entries: Vec::new(),
        })
    }

    async fn fetch(&self, offset: i64) -> anyhow::Result<Bytes> {
        let partition = FetchPartition::default().with_fetch_offset(offset).with_partition_max_bytes(1 << 20);
        let topic = FetchTopic::default().with_topic(topic()).with_partitions(vec![partition]);
        let request =
            FetchRequest::default().with_max_wait_ms(500).with_min_bytes(1).with_topics(vec![topic]);
        let answer = self.connection.send(VERSION, &request).await?;
        let part = answer.responses.into_iter().next().and_then(|topic| topic.partitions.into_iter().next());
        let part = part.context("an answer without a partition")?;
        ensure!(part.error_code == 0, "reading at {offset}: {}", describe(part.error_code));
        Ok(part.records.unwrap_or_default())
    }
}

fn records<'a>(base: i64, epoch: i32, values: &[&'a str]) -> BatchBuilder<'a> {
    let builder = BatchBuilder::new(base).leader_epoch(epoch);
    (0_i32..).zip(values).fold(builder, |builder, (delta, value)| {
        builder.record(NewRecord::new(delta, TIME_MS).value(value.as_bytes()))
    })
}

fn topic() -> TopicName {
    TopicName(StrBytes::from_static_str(TOPIC))
}

fn show(batch: &[u8], what: &str, verdict: &str) -> anyhow::Result<()> {
    let header = Header::read(batch).context("a batch without a header")?;
    let last = header.last_offset().context("a batch without an end")?;
    let offsets = match last - header.base_offset {
        0 => last.to_string(),
        _ => format!("{}-{last}", header.base_offset),
    };
    row(&offsets, &header.leader_epoch.to_string(), what, verdict);
    Ok(())
}

fn row(offsets: &str, epoch: &str, what: &str, verdict: &str) {
    say(&format!("{offsets:<22} {epoch:<6} {what:<31} {verdict}"));
}

fn say(line: &str) {
    println!("{line}");
}
