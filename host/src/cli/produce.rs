//! `verbatim produce`: lines from stdin, written to an exact topic at an offset and a leader epoch of choice.
//!
//! For trying things by hand. Where the partition stands is learnt from the answer to a request that cannot be right: it
//! expects an end that no log has, changes nothing, and its refusal carries the true end and last epoch. The lines go out
//! in batches, one request each; an offset above the end declares the hole between them.

use std::io::BufRead as _;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use verbatim::batch::{BatchBuilder, NewRecord};
use verbatim::wire::ApiKey;
use verbatim::wire::client::Connection;
use verbatim::wire::messages::metadata_request::MetadataRequestTopic;
use verbatim::wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use verbatim::wire::messages::produce_response::PartitionProduceResponse;
use verbatim::wire::messages::{MetadataRequest, ProduceRequest, TopicName};
use verbatim::wire::protocol::StrBytes;
use verbatim::wire::tag::{self, AnswerTag, RequestTag};

use super::connect::{check, connect};
use super::output::Output;

const TIMEOUT_MS: i32 = 30_000;
/// Lines in a batch at most.
const LINES_MAX: usize = 1_000;
/// Bytes of lines in a batch at most, but for the last line.
const BYTES_MAX: usize = 512 * 1024;
/// Produce versions that carry the tag and name topics by name.
const VERSIONS: (i16, i16) = (tag::PRODUCE_VERSION_MIN, 12);

#[derive(Debug, Args)]
pub(super) struct Produce {
    /// The topic, which must have produce.at.offset=true
    #[arg(long)]
    topic: String,
    /// The partition
    #[arg(long, default_value_t = 0)]
    partition: i32,
    /// The first line's offset
    #[arg(long)]
    offset: i64,
    /// The leader epoch of all lines
    #[arg(long)]
    epoch: i32,
}

/// What was written.
#[derive(Debug, Serialize)]
struct Written {
    topic: String,
    partition: i32,
    records: i64,
    first_offset: i64,
    end: i64,
    epoch: i32,
}

impl Produce {
    pub(super) async fn run(self, bootstrap: &str, output: Output) -> anyhow::Result<()> {
        let broker = connect(bootstrap).await?;
        let target = Target::find(&broker, &self).await?;
        let mut position = target.learn().await?;
        let mut next = self.offset;
        let mut lines = std::io::stdin().lock().lines();
        loop {
            let batch = next_lines(&mut lines)?;
            let Some(count) = i64::try_from(batch.len()).ok().filter(|count| *count > 0) else { break };
            position = target.write(&position, next, &batch).await?;
            next = next.checked_add(count).context("the offset is too large")?;
        }
        let written = Written {
            topic: self.topic,
            partition: self.partition,
            records: next.saturating_sub(self.offset),
            first_offset: self.offset,
            end: position.end,
            epoch: self.epoch,
        };
        output.write(&written, || written.text())
    }
}

impl Written {
    fn text(&self) -> String {
        let place = format!("{}-{}", self.topic, self.partition);
        match self.records {
            0 => format!("wrote nothing to {place}, its end is {}", self.end),
            1 => format!(
                "wrote 1 record to {place} at offset {} under epoch {}, its end is {}",
                self.first_offset, self.epoch, self.end
            ),
            records => format!(
                "wrote {records} records to {place} at offsets {}..={} under epoch {}, its end is {}",
                self.first_offset,
                self.first_offset.saturating_add(records).saturating_sub(1),
                self.epoch,
                self.end
            ),
        }
    }
}

/// The partition to write to.
struct Target<'a> {
    broker: &'a Connection,
    asked: &'a Produce,
    version: i16,
}

impl<'a> Target<'a> {
    async fn find(broker: &'a Connection, asked: &'a Produce) -> anyhow::Result<Self> {
        let named = MetadataRequestTopic::default().with_name(Some(topic_name(&asked.topic)));
        let answer = broker.call(&MetadataRequest::default().with_topics(Some(vec![named]))).await?;
        let topic = answer.topics.first().context("the broker's answer names no topic")?;
        check(topic.error_code, None).with_context(|| format!("topic `{}`", asked.topic))?;
        let known = topic.partitions.iter().any(|partition| partition.partition_index == asked.partition);
        anyhow::ensure!(
            known,
            "topic `{}` has no such partition, partition=`{}`",
            asked.topic,
            asked.partition
        );
        let version = broker.versions().highest(ApiKey::Produce, VERSIONS.0, VERSIONS.1)?;
        Ok(Self { broker, asked, version })
    }

    async fn learn(&self) -> anyhow::Result<AnswerTag> {
        let order = self.order(i64::MAX, -1, 0);
        let answer = self.send(&order, None).await?;
        if let Some(position) = tag::answer_tag(&answer)? {
            return Ok(position);
        }
        check(answer.error_code, answer.error_message.as_ref())?;
        anyhow::bail!("the broker does not answer the exact-produce tag: it cannot take exact writes")
    }

    async fn write(&self, before: &AnswerTag, base: i64, lines: &[String]) -> anyhow::Result<AnswerTag> {
        let now_ms = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
        let mut builder = BatchBuilder::new(base).leader_epoch(self.asked.epoch);
        for (delta, line) in (0_i32..).zip(lines) {
            builder = builder.record(NewRecord::new(delta, now_ms).value(line.as_bytes()));
        }
        let batch =
            builder.build().map_err(|error| anyhow::anyhow!("the lines do not fit a batch: {error}"))?;
        let end = base.saturating_add(i64::try_from(lines.len())?);
        let order = self.order(before.end, before.last_epoch, end.max(before.end));
        let answer = self.send(&order, Some(batch)).await?;
        check(answer.error_code, answer.error_message.as_ref())?;
        tag::answer_tag(&answer)?.context("the broker's answer carries no exact-produce tag")
    }

    fn order(&self, expected_end: i64, epoch_before: i32, source_end: i64) -> RequestTag {
        RequestTag {
            source_topic_id: [0; 16],
            expected_end,
            epoch_before,
            source_start: 0,
            source_end,
            source_epoch: self.asked.epoch,
            end_to: None,
            truncate_to: None,
            entries: Vec::new(),
        }
    }

    async fn send(
        &self,
        order: &RequestTag,
        records: Option<Vec<u8>>,
    ) -> anyhow::Result<PartitionProduceResponse> {
        let mut partition = PartitionProduceData::default()
            .with_index(self.asked.partition)
            .with_records(records.map(bytes::Bytes::from));
        tag::set_request_tag(&mut partition, order)?;
        let topic = TopicProduceData::default()
            .with_name(topic_name(&self.asked.topic))
            .with_partition_data(vec![partition]);
        let request =
            ProduceRequest::default().with_acks(-1).with_timeout_ms(TIMEOUT_MS).with_topic_data(vec![topic]);
        let answer = self.broker.send(self.version, &request).await?;
        let part = answer
            .responses
            .into_iter()
            .next()
            .and_then(|topic| topic.partition_responses.into_iter().next());
        part.context("the broker's answer names no partition")
    }
}

fn next_lines(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> anyhow::Result<Vec<String>> {
    let (mut batch, mut bytes) = (Vec::new(), 0_usize);
    while batch.len() < LINES_MAX && bytes < BYTES_MAX {
        let Some(line) = lines.next() else { break };
        let line = line.context("stdin cannot be read")?;
        bytes = bytes.saturating_add(line.len());
        batch.push(line);
    }
    Ok(batch)
}

fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}
