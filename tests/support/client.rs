//! A client that writes exactly and reads raw: verbatim-wire's connection, one request at a time, without async.

use anyhow::{Context, ensure};
use bytes::Bytes;
use std::net::SocketAddr;
use tokio::runtime::Runtime;
use verbatim_wire::ApiKey;
use verbatim_wire::client::{ClientConfig, Connection};
use verbatim_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use verbatim_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use verbatim_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use verbatim_wire::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use verbatim_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use verbatim_wire::messages::{
    CreateTopicsRequest, FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest, ProduceRequest,
    TopicName,
};
use verbatim_wire::protocol::{Request, StrBytes};
use verbatim_wire::tag::{AnswerTag, RequestTag, answer_tag, set_request_tag};

/// The highest versions that name topics instead of giving ids, and Produce's lowest with tagged fields.
const PRODUCE_VERSIONS: (i16, i16) = (9, 12);
pub(crate) const FETCH_VERSIONS: (i16, i16) = (12, 12);

/// `ListOffsets` timestamps.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

/// One connection to a broker.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    connection: Connection,
}

/// What is written to one partition: batches as any producer sends them (no tag), or exactly.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// Topic and partition.
    pub partition: (&'a str, i32),
    /// The exact order, which a plain producer has not.
    pub tag: Option<&'a RequestTag>,
    /// Whole batches.
    pub batches: &'a [u8],
}

/// What a broker answered to a Produce request, for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Kafka's error code, 0 for success.
    pub error_code: i16,
    /// The error's text; empty without one.
    pub error_message: String,
    /// Where the first batch is.
    pub base_offset: i64,
    /// The exact answer, which only those get who sent a tag.
    pub tag: Option<AnswerTag>,
}

/// What a broker answered to a Fetch request, for its one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Kafka's error code, 0 for success.
    pub error_code: i16,
    /// The partition's high watermark.
    pub high_watermark: i64,
    /// Whole batches, as they are stored.
    pub records: Bytes,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// If the broker does not answer.
    pub fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let config = ClientConfig { client_id: "verbatim-tests".to_owned(), ..ClientConfig::default() };
        let connection = runtime.block_on(Connection::connect(address, config))?;
        Ok(Self { runtime, connection })
    }

    /// Creates a topic with one replica.
    ///
    /// # Errors
    /// If there is no answer or an error.
    pub fn create_topic(&self, topic: &str, partitions: i32, configs: &[(&str, &str)]) -> anyhow::Result<()> {
        let configs = configs.iter().map(|(key, value)| {
            CreatableTopicConfig::default().with_name(text(key)).with_value(Some(text(value)))
        });
        let topic = CreatableTopic::default()
            .with_name(name(topic))
            .with_num_partitions(partitions)
            .with_replication_factor(1)
            .with_configs(configs.collect());
        let request = CreateTopicsRequest::default().with_timeout_ms(30_000).with_topics(vec![topic]);
        let answer = self.call(&request)?;
        let topic = answer.topics.first().context("no topic in the answer")?;
        let message = topic.error_message.as_ref().map(ToString::to_string).unwrap_or_default();
        ensure!(topic.error_code == 0, "CreateTopics answered {}: {message}", topic.error_code);
        Ok(())
    }

    /// Writes batches with acks = all, as any producer does (no tag) or exactly.
    ///
    /// # Errors
    /// If there is no answer; what the broker refuses is in the answer.
    pub fn produce(
        &self,
        (topic, partition): (&str, i32),
        tag: Option<&RequestTag>,
        batches: &[u8],
    ) -> anyhow::Result<Answer> {
        let answers = self.produce_together(&[Write { partition: (topic, partition), tag, batches }])?;
        answers.into_iter().next().context("no partition in the answer")
    }

    /// Writes to several partitions in one request with acks = all; the answers are in the same order.
    ///
    /// # Errors
    /// If there is no answer; what the broker refuses is in the answers.
    pub fn produce_together(&self, writes: &[Write<'_>]) -> anyhow::Result<Vec<Answer>> {
        let mut topics: Vec<TopicProduceData> = Vec::new();
        for write in writes {
            let (topic, partition) = write.partition;
            let records = (!write.batches.is_empty()).then(|| Bytes::copy_from_slice(write.batches));
            let mut data = PartitionProduceData::default().with_index(partition).with_records(records);
            if let Some(tag) = write.tag {
                set_request_tag(&mut data, tag)?;
            }
            match topics.iter_mut().find(|known| known.name == name(topic)) {
                Some(known) => known.partition_data.push(data),
                None => topics
                    .push(TopicProduceData::default().with_name(name(topic)).with_partition_data(vec![data])),
            }
        }
        let request = ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(topics);
        let answer = self.send(PRODUCE_VERSIONS, &request)?;
        let one = |write: &Write<'_>| {
            let (topic, partition) = write.partition;
            let topic = answer.responses.iter().find(|answered| answered.name == name(topic));
            let mut partitions = topic.into_iter().flat_map(|topic| &topic.partition_responses);
            let answered = partitions.find(|answered| answered.index == partition);
            let answered = answered.with_context(|| format!("no answer for {:?}", write.partition))?;
            let error_message = answered.error_message.as_ref().map(ToString::to_string).unwrap_or_default();
            Ok(Answer {
                error_code: answered.error_code,
                error_message,
                base_offset: answered.base_offset,
                tag: answer_tag(answered)?,
            })
        };
        writes.iter().map(one).collect()
    }

    /// Reads batches from an offset on, a megabyte at most, without waiting for more.
    ///
    /// # Errors
    /// If there is no answer; what the broker refuses is in the answer.
    pub fn fetch(&self, (topic, partition): (&str, i32), offset: i64) -> anyhow::Result<Fetched> {
        let partition = FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(1 << 20);
        let topic = FetchTopic::default().with_topic(name(topic)).with_partitions(vec![partition]);
        let request = FetchRequest::default().with_max_bytes(1 << 20).with_topics(vec![topic]);
        let answer = self.send(FETCH_VERSIONS, &request)?;
        ensure!(answer.error_code == 0, "Fetch answered {}", answer.error_code);
        let topic = answer.responses.into_iter().next().context("no topic in the answer")?;
        let partition = topic.partitions.into_iter().next().context("no partition in the answer")?;
        Ok(Fetched {
            error_code: partition.error_code,
            high_watermark: partition.high_watermark,
            records: partition.records.unwrap_or_default(),
        })
    }

    /// Reads everything from an offset to the high watermark. Batches that the first read repeats are not cut off: a
    /// fetch inside a batch gives the whole batch.
    ///
    /// # Errors
    /// If a fetch is refused.
    pub fn fetch_all(&self, partition: (&str, i32), mut offset: i64) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let fetched = self.fetch(partition, offset)?;
            ensure!(fetched.error_code == 0, "Fetch at {offset} answered {}", fetched.error_code);
            let headers = crate::segments::headers(&fetched.records)?;
            let Some(next) = headers.last().and_then(verbatim_batch::Header::next_offset) else {
                return Ok(bytes);
            };
            bytes.extend_from_slice(&fetched.records);
            offset = next;
        }
    }

    /// The partition's high watermark and the leader epoch that goes with it.
    ///
    /// # Errors
    /// If there is no answer or an error.
    pub fn latest(&self, partition: (&str, i32)) -> anyhow::Result<(i64, i32)> {
        self.list_offset(partition, LATEST)
    }

    /// The partition's log start and the leader epoch that goes with it.
    ///
    /// # Errors
    /// If there is no answer or an error.
    pub fn earliest(&self, partition: (&str, i32)) -> anyhow::Result<(i64, i32)> {
        self.list_offset(partition, EARLIEST)
    }

    /// The answer of OffsetForLeaderEpoch: epoch and end offset.
    ///
    /// # Errors
    /// If there is no answer or an error.
    pub fn epoch_end(&self, (topic, partition): (&str, i32), epoch: i32) -> anyhow::Result<(i32, i64)> {
        let partition =
            OffsetForLeaderPartition::default().with_partition(partition).with_leader_epoch(epoch);
        let topic = OffsetForLeaderTopic::default().with_topic(name(topic)).with_partitions(vec![partition]);
        let answer = self.call(&OffsetForLeaderEpochRequest::default().with_topics(vec![topic]))?;
        let topic = answer.topics.first().context("no topic in the answer")?;
        let partition = topic.partitions.first().context("no partition in the answer")?;
        ensure!(partition.error_code == 0, "OffsetForLeaderEpoch answered {}", partition.error_code);
        Ok((partition.leader_epoch, partition.end_offset))
    }

    /// Sends any request in its highest common version.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn call<R: Request>(&self, request: &R) -> anyhow::Result<R::Response> {
        Ok(self.runtime.block_on(self.connection.call(request))?)
    }

    pub(crate) fn send<R: Request>(
        &self,
        (least, most): (i16, i16),
        request: &R,
    ) -> anyhow::Result<R::Response> {
        let key = ApiKey::from_number(R::KEY).context("unknown API")?;
        let version = self.connection.versions().highest(key, least, most)?;
        Ok(self.runtime.block_on(self.connection.send(version, request))?)
    }

    fn list_offset(&self, (topic, partition): (&str, i32), timestamp: i64) -> anyhow::Result<(i64, i32)> {
        let partition =
            ListOffsetsPartition::default().with_partition_index(partition).with_timestamp(timestamp);
        let topic = ListOffsetsTopic::default().with_name(name(topic)).with_partitions(vec![partition]);
        let answer =
            self.call(&ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![topic]))?;
        let topic = answer.topics.first().context("no topic in the answer")?;
        let partition = topic.partitions.first().context("no partition in the answer")?;
        ensure!(partition.error_code == 0, "ListOffsets answered {}", partition.error_code);
        Ok((partition.offset, partition.leader_epoch))
    }
}

fn name(topic: &str) -> TopicName {
    TopicName(text(topic))
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
