//! The source of the demo: a topic as it lay on the disk of an Apache Kafka broker (`tests/captures`), written to a host exactly.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use verbatim::batch::{Header, frames};
use verbatim::broker::Broker;
use verbatim::wire::client::{ClientConfig, Connection};
use verbatim::wire::error::describe;
use verbatim::wire::exact_producer::{Config, ExactPartition, ExactProducer, Source, Target, Write};
use verbatim::wire::messages::CreateTopicsRequest;
use verbatim::wire::messages::TopicName;
use verbatim::wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use verbatim::wire::protocol::StrBytes;
use verbatim::wire::tag::EpochEntry;

pub(crate) const TOPIC: &str = "orders";
pub(crate) const PARTITIONS: i32 = 2;

/// Each partition's segments, one behind the other, and its leader epochs as the broker kept them.
const FILES: [(&[u8], &str); 2] = [
    (
        include_bytes!("../../../tests/captures/orders-0/log"),
        include_str!("../../../tests/captures/orders-0/leader-epoch-checkpoint"),
    ),
    (
        include_bytes!("../../../tests/captures/orders-1/log"),
        include_str!("../../../tests/captures/orders-1/leader-epoch-checkpoint"),
    ),
];

/// The captured topic.
pub(crate) struct Captured {
    partitions: Vec<CapturedPartition>,
}

struct CapturedPartition {
    batches: Vec<(Header, Bytes)>,
    epochs: Vec<EpochEntry>,
    end: i64,
}

impl Captured {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let partitions = FILES.iter().map(|(log, epochs)| CapturedPartition::read(log, epochs));
        Ok(Self { partitions: partitions.collect::<anyhow::Result<_>>()? })
    }

    /// Records of all partitions, without markers.
    pub(crate) fn records(&self) -> usize {
        let headers =
            self.partitions.iter().flat_map(|partition| &partition.batches).map(|(header, _)| header);
        let counts =
            headers.filter(|header| !header.attributes.is_control()).map(|header| header.record_count);
        counts.filter_map(|count| usize::try_from(count).ok()).sum()
    }

    /// A row for each partition, for a table.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let row = |(index, partition): (usize, &CapturedPartition)| {
            let headers = || partition.batches.iter().map(|(header, _)| header);
            let epochs: Vec<String> = partition.epochs.iter().map(|entry| entry.epoch.to_string()).collect();
            let ended = headers().filter(|header| header.attributes.is_control()).count();
            let producers: BTreeSet<i64> =
                headers().map(|header| header.producer_id).filter(|id| *id >= 0).collect();
            vec![
                format!("{TOPIC}-{index}"),
                format!("0 to {}", partition.end),
                partition.batches.len().to_string(),
                epochs.join(", "),
                format!("{ended} ended, of {} producers", producers.len()),
            ]
        };
        self.partitions.iter().enumerate().map(row).collect()
    }
}

impl CapturedPartition {
    fn read(log: &'static [u8], checkpoint: &str) -> anyhow::Result<Self> {
        let log = Bytes::from_static(log);
        let header = |frame: verbatim::batch::Frame<'_>| {
            Ok((frame.header().context("a batch without a header")?, log.slice_ref(frame.bytes())))
        };
        let batches = frames(&log).map(header).collect::<anyhow::Result<Vec<_>>>()?;
        let end = batches.last().and_then(|(header, _)| header.next_offset()).context("an empty capture")?;
        // A version, a count, then a line for each epoch.
        let entry = |line: &str| {
            let (epoch, start) = line.split_once(' ').context("no epoch entry")?;
            Ok(EpochEntry { epoch: epoch.parse()?, start: start.parse()? })
        };
        let epochs = checkpoint.lines().skip(2).map(entry).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { batches, epochs, end })
    }

    /// The epoch of the source's leader at the time when its log ended there.
    fn epoch_at(&self, end: i64) -> i32 {
        self.epochs.iter().rev().find(|entry| entry.start <= end).map_or(0, |entry| entry.epoch)
    }
}

/// Writes the captured topic to the source, half of it at first.
pub(crate) struct Writer<'a> {
    captured: &'a Captured,
    partitions: Vec<ExactPartition>,
    ends: Vec<i64>,
}

impl<'a> Writer<'a> {
    pub(crate) async fn start(host: &Broker, captured: &'a Captured) -> anyhow::Result<Self> {
        create(host).await?;
        let producer = ExactProducer::start(Config::new(host.local_addr()));
        let mut partitions = Vec::new();
        for index in 0..PARTITIONS {
            let mut partition = producer.open(Target::new(TOPIC, index)).await?;
            partition.resume_at(0, -1).await?;
            partitions.push(partition);
        }
        Ok(Self { captured, partitions, ends: vec![0; FILES.len()] })
    }

    /// Where each partition ends by now.
    pub(crate) fn ends(&self) -> Vec<i64> {
        self.ends.clone()
    }

    pub(crate) async fn write_first_half(&mut self) -> anyhow::Result<()> {
        self.write(|count| (0, count / 2)).await
    }

    pub(crate) async fn write_the_rest(&mut self) -> anyhow::Result<()> {
        self.write(|count| (count / 2, count)).await
    }

    /// Writes each partition's batches from one number to another, of so many.
    async fn write(&mut self, which: impl Fn(usize) -> (usize, usize)) -> anyhow::Result<()> {
        for ((captured, partition), end) in
            self.captured.partitions.iter().zip(&mut self.partitions).zip(&mut self.ends)
        {
            let (first, behind) = which(captured.batches.len());
            let batches = captured.batches.get(first..behind).context("no such batches")?;
            let last = batches.last().and_then(|(header, _)| header.next_offset()).context("no batches")?;
            let is_all = last == captured.end;
            let covered = |entry: &&EpochEntry| entry.start >= *end && (entry.start < last || is_all);
            let bytes: Vec<u8> = batches.iter().flat_map(|(_, batch)| batch).copied().collect();
            let write = Write {
                from: *end,
                batches: bytes.into(),
                entries: captured.epochs.iter().filter(covered).copied().collect(),
                end_to: is_all.then_some(last),
                source: Source {
                    start: 0,
                    end: last,
                    epoch: captured.epoch_at(if is_all { last } else { last - 1 }),
                },
            };
            let written = partition.write(write).await?.await?;
            ensure!(written.end == last, "{written:?}, expected the end {last}");
            *end = last;
        }
        Ok(())
    }
}

async fn create(host: &Broker) -> anyhow::Result<()> {
    let connection = Connection::connect(host.local_addr(), ClientConfig::default()).await?;
    let exact = CreatableTopicConfig::default()
        .with_name(StrBytes::from_static_str("produce.at.offset"))
        .with_value(Some(StrBytes::from_static_str("true")));
    let topic = CreatableTopic::default()
        .with_name(TopicName(StrBytes::from_static_str(TOPIC)))
        .with_num_partitions(PARTITIONS)
        .with_replication_factor(1)
        .with_configs(vec![exact]);
    let answer = connection.call(&CreateTopicsRequest::default().with_topics(vec![topic])).await?;
    let code = answer.topics.first().map_or(-1, |topic| topic.error_code);
    ensure!(code == 0, "creating the topic: {}", describe(code));
    Ok(())
}
