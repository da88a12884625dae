//! Two hosts, what is written to the first, and a mirror between them.

use anyhow::{Context, ensure};
use regex::Regex;
use std::time::Duration;
use tokio::runtime::Runtime;
use verbatim_mirror::cluster::ClusterConfig;
use verbatim_mirror::mirror::state::{PartitionStatus, Snapshot, State};
use verbatim_mirror::mirror::{Mirror, MirrorConfig};
use verbatim_tests::client::{Answer, Client};
use verbatim_tests::exact::{batch, order};
use verbatim_tests::host::{Home, Host};
use verbatim_tests::segments;
use verbatim_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use verbatim_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use verbatim_wire::messages::{
    DeleteRecordsRequest, DeleteTopicsRequest, IncrementalAlterConfigsRequest, TopicName,
};
use verbatim_wire::protocol::StrBytes;
use verbatim_wire::tag::{EpochEntry, Marked, RequestTag};

/// How long a mirror may take for anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The property that makes a topic exact.
pub(super) const EXACT: &[(&str, &str)] = &[("produce.at.offset", "true")];

/// A source and a destination.
pub(super) struct Pair {
    pub(super) from: (Home, Host),
    pub(super) to: (Home, Host),
    pub(super) source: Client,
    pub(super) copy: Client,
}

impl Pair {
    pub(super) fn new() -> anyhow::Result<Self> {
        let (from, to) = (Home::new()?, Home::new()?);
        let (source, copy) = (from.start()?, to.start()?);
        let clients = (Client::connect(source.address())?, Client::connect(copy.address())?);
        Ok(Self { from: (from, source), to: (to, copy), source: clients.0, copy: clients.1 })
    }

    /// A mirror of these topics that looks often.
    pub(super) fn config(&self, topics: &[&str]) -> anyhow::Result<MirrorConfig> {
        let source = ClusterConfig::new([self.from.1.bootstrap()]);
        let target = ClusterConfig::new([self.to.1.bootstrap()]);
        let topics = topics.iter().map(|topic| Regex::new(topic)).collect::<Result<_, _>>()?;
        let refresh = Duration::from_millis(100);
        Ok(MirrorConfig { topics, refresh, ..MirrorConfig::new(source, target) })
    }

    /// Mirrors these topics until all is caught up or stopped.
    pub(super) fn once(&self, topics: &[&str]) -> anyhow::Result<Snapshot> {
        once(self.config(topics)?)
    }

    /// Both sides hold the same from the copy's first batch on, tell the same of offsets, and of every epoch.
    pub(super) fn check_same(&self, topic: &str, partition: u32) -> anyhow::Result<()> {
        let source = segments::log_bytes(&self.from.0.data(), topic, partition)?;
        let copy = segments::log_bytes(&self.to.0.data(), topic, partition)?;
        ensure!(source.ends_with(&copy), "{topic}-{partition}: {} and {} bytes", source.len(), copy.len());
        let partition = i32::try_from(partition)?;
        let id = (topic, partition);
        let answers = |client: &Client| -> anyhow::Result<_> {
            let (start, end) = (client.earliest(id)?, client.latest(id)?);
            let epochs = (-1..=end.1 + 1).map(|epoch| client.epoch_end(id, epoch));
            Ok((start, end, epochs.collect::<Result<Vec<_>, _>>()?))
        };
        let (source, copy) = (answers(&self.source)?, answers(&self.copy)?);
        ensure!(source == copy, "{topic}-{partition}: source {source:?}, copy {copy:?}");
        Ok(())
    }

    /// The copy holds as many bytes as the source.
    pub(super) fn check_whole(&self, topic: &str, partition: u32) -> anyhow::Result<()> {
        self.check_same(topic, partition)?;
        let source = segments::log_bytes(&self.from.0.data(), topic, partition)?;
        ensure!(source == segments::log_bytes(&self.to.0.data(), topic, partition)?, "a part of {topic}");
        Ok(())
    }

    pub(super) fn stop(self) -> anyhow::Result<()> {
        drop((self.source, self.copy));
        self.from.1.stop()?;
        self.to.1.stop()
    }
}

/// Runs a mirror to its end.
pub(super) fn once(config: MirrorConfig) -> anyhow::Result<Snapshot> {
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let mut mirror = Mirror::start(MirrorConfig { once: true, ..config });
        let ended = tokio::time::timeout(PATIENCE, mirror.ended()).await;
        let said = ended.with_context(|| format!("the mirror does not end: {:#?}", mirror.snapshot()))?;
        said.map_err(Into::into)
    })
}

/// A mirror that runs on.
pub(super) struct Running {
    runtime: Runtime,
    mirror: Mirror,
}

impl Running {
    pub(super) fn start(config: MirrorConfig) -> anyhow::Result<Self> {
        let runtime = Runtime::new()?;
        let mirror = runtime.block_on(async { Mirror::start(config) });
        Ok(Self { runtime, mirror })
    }

    /// Waits until the mirror's snapshot is as wanted.
    pub(super) fn until(&self, what: &str, wanted: impl Fn(&Snapshot) -> bool) -> anyhow::Result<Snapshot> {
        let found = verbatim_tests::wait_for(what, PATIENCE, || {
            let snapshot = self.mirror.snapshot();
            Ok(wanted(&snapshot).then_some(snapshot))
        });
        found.with_context(|| format!("{:#?}", self.mirror.snapshot()))
    }

    /// Waits until a partition is in a state.
    pub(super) fn until_state(&self, id: (&str, i32), state: State) -> anyhow::Result<PartitionStatus> {
        let is_so = |found: &PartitionStatus| found.state == state;
        let what = format!("{state:?} of {id:?}");
        let snapshot = self.until(&what, |snapshot| status(snapshot, id).is_some_and(is_so))?;
        status(&snapshot, id).cloned().context("it was there")
    }

    /// Waits until the copy of a partition ends there.
    pub(super) fn until_end(&self, id: (&str, i32), end: i64) -> anyhow::Result<()> {
        let is_so = |found: &PartitionStatus| found.end == end && found.state == State::CaughtUp;
        let what = format!("end {end} of {id:?}");
        self.until(&what, |snapshot| status(snapshot, id).is_some_and(is_so)).map(drop)
    }

    pub(super) fn stop(self) -> Snapshot {
        self.runtime.block_on(self.mirror.stop())
    }
}

/// One partition of a snapshot.
pub(super) fn status<'a>(
    snapshot: &'a Snapshot,
    (topic, partition): (&str, i32),
) -> Option<&'a PartitionStatus> {
    snapshot.partitions.iter().find(|found| found.topic == topic && found.partition == partition)
}

/// The state of every partition, by topic and index.
pub(super) fn states(snapshot: &Snapshot) -> Vec<(&str, i32, State)> {
    snapshot.partitions.iter().map(|found| (found.topic.as_str(), found.partition, found.state)).collect()
}

/// What the one partition of a snapshot says.
pub(super) fn only(snapshot: &Snapshot) -> anyhow::Result<&PartitionStatus> {
    ensure!(snapshot.partitions.len() == 1, "{snapshot:#?}");
    snapshot.partitions.first().context("none")
}

/// Writes as any producer does: batches of so many records each.
pub(super) fn produce(client: &Client, id: (&str, i32), batches: i32) -> anyhow::Result<()> {
    for number in 0..batches {
        let value = format!("value {number}");
        let answer = client.produce(id, None, &batch(0, 0, &[&value, "b", &value])?)?;
        ensure!(answer.error_code == 0, "{answer:?}");
    }
    Ok(())
}

/// What one exact request changes: batches by base, epoch and records, entries, the end.
#[derive(Default)]
pub(super) struct Step<'a> {
    pub(super) at: (i64, i32),
    pub(super) batches: &'a [(i64, i32, &'a [&'a str])],
    pub(super) entries: &'a [(i32, i64)],
    pub(super) end_to: Option<i64>,
    pub(super) truncate_to: Option<i64>,
    pub(super) epoch: i32,
    pub(super) start: i64,
    pub(super) end: i64,
}

/// Makes an exact source topic do that.
pub(super) fn write(client: &Client, id: (&str, i32), step: &Step<'_>) -> anyhow::Result<()> {
    let batches: Vec<Vec<u8>> = step
        .batches
        .iter()
        .map(|(base, epoch, values)| batch(*base, *epoch, values))
        .collect::<Result<_, _>>()?;
    let tag = RequestTag {
        entries: step.entries.iter().map(|&(epoch, start)| EpochEntry { epoch, start }).collect(),
        end_to: step.end_to,
        truncate_to: step.truncate_to,
        ..order(step.at, (step.start, step.end), step.epoch)
    };
    let answer: Answer = client.produce(id, Some(&tag), &batches.concat())?;
    ensure!(answer.error_code == 0, "{answer:?}");
    Ok(())
}

pub(super) fn delete_records(
    client: &Client,
    topic: &str,
    partition: i32,
    before: i64,
) -> anyhow::Result<()> {
    let partition = DeleteRecordsPartition::default().with_partition_index(partition).with_offset(before);
    let topic = DeleteRecordsTopic::default().with_name(name(topic)).with_partitions(vec![partition]);
    let answer =
        client.call(&DeleteRecordsRequest::default().with_timeout_ms(30_000).with_topics(vec![topic]))?;
    let codes: Vec<i16> =
        answer.topics.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code).collect();
    ensure!(codes == [0], "DeleteRecords answered {codes:?}");
    Ok(())
}

pub(super) fn delete_topic(client: &Client, topic: &str) -> anyhow::Result<()> {
    let request = DeleteTopicsRequest::default()
        .with_timeout_ms(30_000)
        .with_topic_names(vec![name(topic)])
        .with_topics(vec![
            verbatim_wire::messages::delete_topics_request::DeleteTopicState::default()
                .with_name(Some(name(topic))),
        ]);
    let answer = client.call(&request)?;
    let codes: Vec<i16> = answer.responses.iter().map(|one| one.error_code).collect();
    ensure!(codes == [0], "DeleteTopics answered {codes:?}");
    Ok(())
}

/// Sets (or without a value, removes) a property as anybody can, or with the mirror's mark.
pub(super) fn alter(
    client: &Client,
    topic: &str,
    change: (&str, Option<&str>),
    marked: bool,
) -> anyhow::Result<()> {
    let config = AlterableConfig::default()
        .with_name(text(change.0))
        .with_config_operation(if change.1.is_some() { 0 } else { 1 })
        .with_value(change.1.map(text));
    let resource = AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text(topic))
        .with_configs(vec![config]);
    let mut request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    if marked {
        request.set_mark();
    }
    let answer = client.call(&request)?;
    let answered = answer.responses.first().context("no answer")?;
    ensure!(answered.error_code == 0, "{answered:?}");
    Ok(())
}

pub(super) fn name(text: &str) -> TopicName {
    TopicName(self::text(text))
}

pub(super) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
