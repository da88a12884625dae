//! What a broker, Kafka or a host, answers about a partition: the same questions on both sides, comparable and kept as JSON.

use crate::client::Client;
use crate::segments;
use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::SocketAddr;
use verbatim_batch::{Header, frames};
use verbatim_wire::messages::describe_producers_request::TopicRequest;
use verbatim_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use verbatim_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use verbatim_wire::messages::metadata_request::MetadataRequestTopic;
use verbatim_wire::messages::{
    DescribeProducersRequest, FetchRequest, ListOffsetsRequest, MetadataRequest, TopicName,
};
use verbatim_wire::protocol::StrBytes;

/// `ListOffsets` stand-ins for a time.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;

const READ_COMMITTED: i8 = 1;

/// Everything that is asked about one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// The leader epoch (Metadata).
    pub leader_epoch: i32,
    /// The log start (ListOffsets).
    pub earliest: Listed,
    /// ListOffsets for each time, and for the end and the largest timestamp.
    pub listed: Vec<AtTime>,
    /// OffsetForLeaderEpoch for every epoch from -1 to one above the leader's.
    pub epochs: Vec<EpochAnswer>,
    /// The last stable offset, from a fetch.
    pub last_stable_offset: i64,
    /// The high watermark, from a fetch.
    pub high_watermark: i64,
    /// The aborted transactions that a read_committed fetch over the whole log names, by first offset.
    pub aborted: BTreeSet<Aborted>,
    /// DescribeProducers.
    pub producers: BTreeSet<Producer>,
}

/// An answer of ListOffsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The offset; -1 = none.
    pub offset: i64,
    /// The record's time; -1 = none.
    pub timestamp: i64,
    /// The leader epoch; -1 = none.
    pub leader_epoch: i32,
}

/// What both isolation levels find at a time; -1 = the end, -3 = the largest timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtTime {
    /// The time asked for.
    pub time: i64,
    /// At read_uncommitted.
    pub uncommitted: Listed,
    /// At read_committed.
    pub committed: Listed,
}

/// An answer of OffsetForLeaderEpoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochAnswer {
    /// The epoch asked for.
    pub asked: i32,
    /// The epoch answered.
    pub epoch: i32,
    /// Where that ends.
    pub end: i64,
}

/// An aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Aborted {
    /// Its first offset.
    pub first_offset: i64,
    /// Its producer.
    pub producer_id: i64,
}

/// An active producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Producer {
    /// Its id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i32,
    /// Its last sequence.
    pub last_sequence: i32,
    /// The time of its last batch.
    pub last_timestamp: i64,
    /// The coordinator's epoch of its last marker.
    pub coordinator_epoch: i32,
    /// Where its open transaction begins; -1 = none is open.
    pub transaction_start: i64,
}

impl Answers {
    /// Asks a cluster about a partition; times are in milliseconds since 1970.
    ///
    /// # Errors
    /// If a question is not answered, or with an error.
    pub fn ask(addresses: &[SocketAddr], (topic, index): (&str, i32), times: &[i64]) -> anyhow::Result<Self> {
        let (leader, leader_epoch) = leader(addresses, (topic, index))?;
        Asking { client: Client::connect(leader)?, partition: (topic, index) }
            .all(leader_epoch, times)
            .with_context(|| format!("{topic}-{index} at {leader}"))
    }

    /// The last stable offset and the high watermark as ListOffsets tells them.
    ///
    /// # Errors
    /// If it was not asked for.
    pub fn ends(&self) -> anyhow::Result<(i64, i64)> {
        let found = self.listed.iter().find(|listed| listed.time == LATEST).context("not asked")?;
        Ok((found.committed.offset, found.uncommitted.offset))
    }

    /// In what a copy answers otherwise, in words. With `left`, the batches that the source still holds, it is a log whose
    /// start was moved or that was cleaned, and a copy of it cannot know of what was there before:
    /// - of aborted transactions, those are compared that still have data, each by its first offset that is left;
    /// - of producers, those that both tell of;
    /// - of times, those at which the source finds a record that is left. Kafka itself looks into one segment alone, and finds
    ///   nothing if the records that made it choose that one are gone.
    pub fn differences(&self, copy: &Self, left: Option<&[Header]>) -> Vec<String> {
        let (ours, theirs) = match left {
            None => (self.clone(), copy.clone()),
            Some(left) => (self.as_left(left, self, copy), copy.as_left(left, self, self)),
        };
        let mut all = Differences::default();
        all.look("leader epoch", &ours.leader_epoch, &theirs.leader_epoch);
        all.look("earliest", &ours.earliest, &theirs.earliest);
        all.each("ListOffsets", &ours.listed, &theirs.listed);
        all.each("OffsetForLeaderEpoch", &ours.epochs, &theirs.epochs);
        all.look("last stable offset", &ours.last_stable_offset, &theirs.last_stable_offset);
        all.look("high watermark", &ours.high_watermark, &theirs.high_watermark);
        all.each("aborted", &ours.aborted, &theirs.aborted);
        all.each("producers", &ours.producers, &theirs.producers);
        all.found
    }

    fn as_left(&self, left: &[Header], source: &Self, other: &Self) -> Self {
        let mut seen = self.clone();
        let start = self.earliest.offset;
        seen.aborted = self.aborted.iter().filter_map(|aborted| aborted.left_in(left, start)).collect();
        seen.producers.retain(|producer| other.producers.iter().any(|theirs| theirs.id == producer.id));
        let finds = |time: i64| {
            let mut found = source.listed.iter().filter(|listed| listed.time == time);
            found.all(|listed| listed.uncommitted.offset >= start && listed.committed.offset >= start)
        };
        seen.listed.retain(|listed| finds(listed.time));
        seen
    }
}

impl Aborted {
    /// The same from the first offset on that is left of it; nothing if all of its data is gone.
    fn left_in(self, left: &[Header], start: i64) -> Option<Self> {
        let of_producer = |header: &&Header| {
            header.producer_id == self.producer_id
                && header.attributes.is_transactional()
                && header.next_offset().is_some_and(|next| next > self.first_offset)
        };
        let first = left.iter().find(of_producer).filter(|header| !header.attributes.is_control())?;
        Some(Self { first_offset: self.first_offset.max(first.base_offset).max(start), ..self })
    }
}

#[derive(Debug, Default)]
struct Differences {
    found: Vec<String>,
}

impl Differences {
    fn look<T: PartialEq + Debug>(&mut self, what: &str, source: &T, copy: &T) {
        if source != copy {
            self.found.push(format!("{what}: the source says {source:?}, the copy {copy:?}"));
        }
    }

    fn each<'a, T: PartialEq + Debug + 'a, L>(&mut self, what: &str, source: &'a L, copy: &'a L)
    where
        &'a L: IntoIterator<Item = &'a T>,
    {
        let (source, copy) = (source.into_iter().collect::<Vec<_>>(), copy.into_iter().collect::<Vec<_>>());
        let missing = |from: &[&T], other: &[&T]| -> Vec<String> {
            from.iter().filter(|one| !other.contains(one)).map(|one| format!("{one:?}")).collect()
        };
        let (only_source, only_copy) = (missing(&source, &copy), missing(&copy, &source));
        self.found.extend(only_source.iter().map(|one| format!("{what}: only the source says {one}")));
        self.found.extend(only_copy.iter().map(|one| format!("{what}: only the copy says {one}")));
    }
}

/// The address of a partition's leader, and the leader epoch.
///
/// # Errors
/// If there is none.
pub fn leader(addresses: &[SocketAddr], (topic, index): (&str, i32)) -> anyhow::Result<(SocketAddr, i32)> {
    let client = addresses.iter().find_map(|address| Client::connect(*address).ok()).context("no broker")?;
    let wanted = MetadataRequestTopic::default().with_name(Some(name(topic)));
    let answer = client.call(&MetadataRequest::default().with_topics(Some(vec![wanted])))?;
    let topic = answer.topics.first().context("no topic in the answer")?;
    let partition = topic.partitions.iter().find(|partition| partition.partition_index == index);
    let partition = partition.context("no such partition")?;
    ensure!(partition.error_code == 0, "Metadata answered {}", partition.error_code);
    let broker = answer.brokers.iter().find(|broker| broker.node_id == partition.leader_id);
    let broker = broker.context("no leader")?;
    Ok((format!("{}:{}", broker.host.as_str(), broker.port).parse()?, partition.leader_epoch))
}

/// Times worth asking for in a log: just at and between its batches' timestamps, a dozen at most.
///
/// # Errors
/// If a batch is not whole.
pub fn times_of(log: &[u8]) -> anyhow::Result<Vec<i64>> {
    let headers = segments::headers(log)?;
    let of = |header: &Header| [header.base_timestamp, header.max_timestamp.saturating_sub(1)];
    let all: BTreeSet<i64> = headers.iter().flat_map(of).filter(|time| *time >= 0).collect();
    let latest = headers.iter().map(|header| header.max_timestamp).max().unwrap_or(0);
    let step = (all.len() / 8).max(1);
    let mut times = vec![0];
    times.extend(all.into_iter().step_by(step));
    times.extend([latest, latest.saturating_add(1)]);
    Ok(times)
}

struct Asking<'a> {
    client: Client,
    partition: (&'a str, i32),
}

impl Asking<'_> {
    fn all(&self, leader_epoch: i32, times: &[i64]) -> anyhow::Result<Answers> {
        let earliest = self.list(EARLIEST, 0)?;
        let at = |time: &i64| {
            Ok(AtTime {
                time: *time,
                uncommitted: self.list(*time, 0)?,
                committed: self.list(*time, READ_COMMITTED)?,
            })
        };
        let listed: Vec<AtTime> =
            [LATEST, MAX_TIMESTAMP].iter().chain(times).map(at).collect::<anyhow::Result<_>>()?;
        let epochs = (-1..=leader_epoch.saturating_add(1)).map(|asked| {
            let (epoch, end) = self.client.epoch_end(self.partition, asked)?;
            Ok(EpochAnswer { asked, epoch, end })
        });
        let epochs = epochs.collect::<anyhow::Result<_>>()?;
        let (high_watermark, last_stable_offset, aborted) = self.read_committed(earliest.offset)?;
        Ok(Answers {
            leader_epoch,
            earliest,
            listed,
            epochs,
            last_stable_offset,
            high_watermark,
            aborted,
            producers: self.producers()?,
        })
    }

    fn list(&self, time: i64, isolation: i8) -> anyhow::Result<Listed> {
        let (topic, index) = self.partition;
        let asked = ListOffsetsPartition::default().with_partition_index(index).with_timestamp(time);
        let topic = ListOffsetsTopic::default().with_name(name(topic)).with_partitions(vec![asked]);
        // To Kafka everybody else is a follower, who is told where its log ends.
        let request = ListOffsetsRequest::default().with_replica_id((-1).into());
        let request = request.with_isolation_level(isolation).with_topics(vec![topic]);
        let answer = self.client.call(&request)?;
        let topic = answer.topics.first().context("no topic in the answer")?;
        let found = topic.partitions.first().context("no partition in the answer")?;
        ensure!(found.error_code == 0, "ListOffsets at {time} answered {}", found.error_code);
        Ok(Listed { offset: found.offset, timestamp: found.timestamp, leader_epoch: found.leader_epoch })
    }

    /// High watermark, last stable offset, and all aborted transactions from an offset on.
    fn read_committed(&self, mut offset: i64) -> anyhow::Result<(i64, i64, BTreeSet<Aborted>)> {
        let (topic, index) = self.partition;
        let mut all = BTreeSet::new();
        loop {
            let asked = FetchPartition::default()
                .with_partition(index)
                .with_fetch_offset(offset)
                .with_partition_max_bytes(1 << 20);
            let topic = FetchTopic::default().with_topic(name(topic)).with_partitions(vec![asked]);
            let request = FetchRequest::default().with_max_bytes(1 << 20).with_topics(vec![topic]);
            let request = request.with_isolation_level(READ_COMMITTED);
            let answer = self.client.send(crate::client::FETCH_VERSIONS, &request)?;
            let topic = answer.responses.into_iter().next().context("no topic in the answer")?;
            let found = topic.partitions.into_iter().next().context("no partition in the answer")?;
            ensure!(found.error_code == 0, "Fetch at {offset} answered {}", found.error_code);
            let aborted = found.aborted_transactions.unwrap_or_default().into_iter();
            all.extend(aborted.map(|aborted| Aborted {
                first_offset: aborted.first_offset,
                producer_id: aborted.producer_id.0,
            }));
            // Kafka ends an answer where its size does, be it within a batch.
            let records = found.records.unwrap_or_default();
            let last = frames(&records).filter_map(|frame| frame.header()).last();
            let Some(next) = last.as_ref().and_then(Header::next_offset) else {
                return Ok((found.high_watermark, found.last_stable_offset, all));
            };
            offset = next;
        }
    }

    fn producers(&self) -> anyhow::Result<BTreeSet<Producer>> {
        let (topic, index) = self.partition;
        let topic = TopicRequest::default().with_name(name(topic)).with_partition_indexes(vec![index]);
        let answer = self.client.call(&DescribeProducersRequest::default().with_topics(vec![topic]))?;
        let topic = answer.topics.first().context("no topic in the answer")?;
        let found = topic.partitions.first().context("no partition in the answer")?;
        ensure!(found.error_code == 0, "DescribeProducers answered {}", found.error_code);
        let told = found.active_producers.iter().map(|producer| Producer {
            id: producer.producer_id.0,
            epoch: producer.producer_epoch,
            last_sequence: producer.last_sequence,
            last_timestamp: producer.last_timestamp,
            coordinator_epoch: producer.coordinator_epoch,
            transaction_start: producer.current_txn_start_offset,
        });
        Ok(told.collect())
    }
}

fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}
