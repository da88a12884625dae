//! A broker in this process with the policy compiled in, and a client that says what a test wants said.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tempfile::TempDir;
use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_broker::{Broker, Config, Judges, NativeJudges};
use verbatim_log::{DiskIo, Io};
use verbatim_policy::ExactMirroring;
use verbatim_wire::client::{ClientConfig, Connection};
use verbatim_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use verbatim_wire::messages::describe_configs_request::DescribeConfigsResource;
use verbatim_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use verbatim_wire::messages::fetch_response::PartitionData;
use verbatim_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use verbatim_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use verbatim_wire::messages::metadata_request::MetadataRequestTopic;
use verbatim_wire::messages::metadata_response::MetadataResponseTopic;
use verbatim_wire::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use verbatim_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use verbatim_wire::messages::produce_response::PartitionProduceResponse;
use verbatim_wire::messages::*;
use verbatim_wire::protocol::StrBytes;
use verbatim_wire::tag::{self, AnswerTag, Marked as _, RequestTag};

/// The first record's time of every batch, milliseconds since 1970.
pub(crate) const TIME_MS: i64 = 1_700_000_000_000;
pub(crate) const EXACT: (&str, &str) = ("produce.at.offset", "true");

pub(crate) const SET: i8 = 0;
pub(crate) const DELETE: i8 = 1;
pub(crate) const APPEND: i8 = 2;
pub(crate) const SUBTRACT: i8 = 3;

/// A running broker and a connection to it.
pub(crate) struct Host {
    folder: TempDir,
    io: Arc<dyn Io>,
    judges: Arc<dyn Judges>,
    broker: Broker,
    pub(crate) client: Connection,
}

impl Host {
    pub(crate) async fn start() -> Self {
        Self::with(Arc::new(NativeJudges(ExactMirroring))).await
    }

    pub(crate) async fn with(judges: Arc<dyn Judges>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (broker, client) = start(folder.path().join("data"), Arc::clone(&judges)).await;
        Self { folder, io: Arc::new(DiskIo), judges, broker, client }
    }

    /// On another file system.
    pub(crate) async fn on(io: Arc<dyn Io>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let judges: Arc<dyn Judges> = Arc::new(NativeJudges(ExactMirroring));
        let (broker, client) =
            start_on(Arc::clone(&io), config(folder.path().join("data")), Arc::clone(&judges)).await;
        Self { folder, io, judges, broker, client }
    }

    /// With another configuration, until it is restarted.
    pub(crate) async fn with_config(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let judges: Arc<dyn Judges> = Arc::new(NativeJudges(ExactMirroring));
        let mut config = config(folder.path().join("data"));
        change(&mut config);
        let io: Arc<dyn Io> = Arc::new(DiskIo);
        let (broker, client) = start_on(Arc::clone(&io), config, Arc::clone(&judges)).await;
        Self { folder, io, judges, broker, client }
    }

    /// With everything of one's own, until it is restarted.
    pub(crate) async fn with_all(
        io: Arc<dyn Io>,
        judges: Arc<dyn Judges>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path().join("data"));
        change(&mut config);
        let (broker, client) = start_on(Arc::clone(&io), config, Arc::clone(&judges)).await;
        Self { folder, io, judges, broker, client }
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Shuts down and starts again in the same folder.
    pub(crate) async fn restart(self) -> Self {
        let data = self.data();
        drop(self.client);
        self.broker.shutdown().await;
        let (broker, client) = start_on(Arc::clone(&self.io), config(data), Arc::clone(&self.judges)).await;
        Self { broker, client, ..self }
    }

    /// Ends as by a crash, and starts again in the same folder on what `io` holds by now.
    pub(crate) async fn crash(self, io: Arc<dyn Io>) -> Self {
        let data = self.data();
        drop((self.client, self.broker));
        let (broker, client) = start_on(Arc::clone(&io), config(data), Arc::clone(&self.judges)).await;
        Self { io, folder: self.folder, judges: self.judges, broker, client }
    }

    /// Shuts down; what is left is the folder.
    pub(crate) async fn stop(self) -> (TempDir, Arc<dyn Judges>) {
        drop(self.client);
        self.broker.shutdown().await;
        (self.folder, self.judges)
    }

    /// Starts in a folder that [`Self::stop`] left.
    pub(crate) async fn start_in((folder, judges): (TempDir, Arc<dyn Judges>)) -> Self {
        let (broker, client) = start(folder.path().join("data"), Arc::clone(&judges)).await;
        Self { folder, io: Arc::new(DiskIo), judges, broker, client }
    }

    pub(crate) async fn create(
        &self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> (i16, String) {
        self.create_as(name, partitions, configs, false).await
    }

    pub(crate) async fn create_as(
        &self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
        validate_only: bool,
    ) -> (i16, String) {
        let config = |(name, value): &(&str, &str)| {
            CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
        };
        let topic = CreatableTopic::default()
            .with_name(topic(name))
            .with_num_partitions(partitions)
            .with_replication_factor(-1)
            .with_configs(configs.iter().map(config).collect());
        let request =
            CreateTopicsRequest::default().with_topics(vec![topic]).with_validate_only(validate_only);
        let answer = self.client.call(&request).await.unwrap().topics.remove(0);
        (answer.error_code, answer.error_message.map(|text| text.to_string()).unwrap_or_default())
    }

    /// Creates an exact topic of one partition.
    pub(crate) async fn exact(&self, name: &str, more: &[(&str, &str)]) {
        let configs = [&[EXACT], more].concat();
        assert_eq!(self.create(name, 1, &configs).await, (0, String::new()));
    }

    pub(crate) async fn metadata(&self, name: &str) -> MetadataResponseTopic {
        let asked = MetadataRequestTopic::default().with_name(Some(topic(name)));
        let request = MetadataRequest::default().with_topics(Some(vec![asked]));
        self.client.call(&request).await.unwrap().topics.remove(0)
    }

    /// The shown epoch by Metadata.
    pub(crate) async fn shown(&self, name: &str) -> i32 {
        self.metadata(name).await.partitions[0].leader_epoch
    }

    pub(crate) async fn produce(
        &self,
        name: &str,
        batches: &[u8],
        tag: Option<&RequestTag>,
    ) -> PartitionProduceResponse {
        self.produce_as(12, -1, name, batches, tag).await.0
    }

    /// The partition's answer and the throttle time.
    pub(crate) async fn produce_as(
        &self,
        version: i16,
        acks: i16,
        name: &str,
        batches: &[u8],
        tag: Option<&RequestTag>,
    ) -> (PartitionProduceResponse, i32) {
        let records = Some(Bytes::copy_from_slice(batches)).filter(|records| !records.is_empty());
        let mut partition = PartitionProduceData::default().with_records(records);
        if let Some(tag) = tag {
            tag::set_request_tag(&mut partition, tag).unwrap();
        }
        self.produce_raw(version, acks, name, partition).await
    }

    pub(crate) async fn produce_raw(
        &self,
        version: i16,
        acks: i16,
        name: &str,
        partition: PartitionProduceData,
    ) -> (PartitionProduceResponse, i32) {
        let data = TopicProduceData::default().with_name(topic(name)).with_partition_data(vec![partition]);
        let request =
            ProduceRequest::default().with_acks(acks).with_timeout_ms(1_000).with_topic_data(vec![data]);
        let mut answer = self.client.send(version, &request).await.unwrap();
        (answer.responses.remove(0).partition_responses.remove(0), answer.throttle_time_ms)
    }

    /// An exact write that must go well; what its answer's tag tells.
    pub(crate) async fn write(&self, name: &str, batches: &[u8], tag: &RequestTag) -> AnswerTag {
        let answer = self.produce(name, batches, Some(tag)).await;
        assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
        told(&answer)
    }

    pub(crate) async fn fetch(&self, name: &str, ask: Fetch) -> PartitionData {
        self.fetch_all(&[(name, ask)], ask).await.remove(0)
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.broker.local_addr()
    }

    /// One more connection.
    pub(crate) async fn connect(&self) -> Connection {
        connect(&self.broker).await
    }

    /// Several topics in one request; version, waiting and isolation are those of `common`.
    pub(crate) async fn fetch_all(&self, asks: &[(&str, Fetch)], common: Fetch) -> Vec<PartitionData> {
        fetch_on(&self.client, asks, common).await
    }

    /// Code, offset, timestamp and leader epoch.
    pub(crate) async fn list(&self, name: &str, timestamp: i64, committed: bool) -> (i16, i64, i64, i32) {
        self.list_as(name, timestamp, committed, -1).await
    }

    pub(crate) async fn list_as(
        &self,
        name: &str,
        timestamp: i64,
        committed: bool,
        current: i32,
    ) -> (i16, i64, i64, i32) {
        let partition =
            ListOffsetsPartition::default().with_timestamp(timestamp).with_current_leader_epoch(current);
        let asked = ListOffsetsTopic::default().with_name(topic(name)).with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_isolation_level(i8::from(committed))
            .with_topics(vec![asked]);
        let part = self.client.call(&request).await.unwrap().topics.remove(0).partitions.remove(0);
        (part.error_code, part.offset, part.timestamp, part.leader_epoch)
    }

    /// Code, epoch and end.
    pub(crate) async fn epoch_end(&self, name: &str, asked: i32, current: i32) -> (i16, i32, i64) {
        let partition =
            OffsetForLeaderPartition::default().with_leader_epoch(asked).with_current_leader_epoch(current);
        let asked = OffsetForLeaderTopic::default().with_topic(topic(name)).with_partitions(vec![partition]);
        let request =
            OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![asked]);
        let part = self.client.call(&request).await.unwrap().topics.remove(0).partitions.remove(0);
        (part.error_code, part.leader_epoch, part.end_offset)
    }

    /// Value and source of each property.
    pub(crate) async fn describe(&self, name: &str) -> BTreeMap<String, (String, i8)> {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text(name))
            .with_configuration_keys(None);
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let result = self.client.call(&request).await.unwrap().results.remove(0);
        assert_eq!(result.error_code, 0);
        let row = |row: describe_configs_response::DescribeConfigsResourceResult| {
            (
                row.name.to_string(),
                (row.value.map(|value| value.to_string()).unwrap_or_default(), row.config_source),
            )
        };
        result.configs.into_iter().map(row).collect()
    }

    pub(crate) async fn alter(
        &self,
        name: &str,
        changes: &[(&str, i8, Option<&str>)],
        marked: bool,
    ) -> (i16, String) {
        let change = |(name, operation, value): &(&str, i8, Option<&str>)| {
            AlterableConfig::default()
                .with_name(text(name))
                .with_config_operation(*operation)
                .with_value(value.map(text))
        };
        let resource = AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text(name))
            .with_configs(changes.iter().map(change).collect());
        let mut request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        if marked {
            request.set_mark();
        }
        let answer = self.client.call(&request).await.unwrap().responses.remove(0);
        (answer.error_code, answer.error_message.map(|text| text.to_string()).unwrap_or_default())
    }
}

/// A plain write to a topic's first partition.
pub(crate) fn produce_request(name: &str, records: Vec<u8>) -> ProduceRequest {
    let partition = PartitionProduceData::default().with_records(Some(records.into()));
    let data = TopicProduceData::default().with_name(topic(name)).with_partition_data(vec![partition]);
    ProduceRequest::default().with_acks(-1).with_topic_data(vec![data])
}

/// [`Host::fetch_all`] on a connection of one's own.
pub(crate) async fn fetch_on(
    client: &Connection,
    asks: &[(&str, Fetch)],
    common: Fetch,
) -> Vec<PartitionData> {
    let answer = client.send(common.version, &fetch_request(asks, common)).await.unwrap();
    assert_eq!(answer.error_code, 0);
    answer.responses.into_iter().flat_map(|topic| topic.partitions).collect()
}

/// The request of [`fetch_on`].
pub(crate) fn fetch_request(asks: &[(&str, Fetch)], common: Fetch) -> FetchRequest {
    let asked = |(name, ask): &(&str, Fetch)| {
        let partition = FetchPartition::default()
            .with_fetch_offset(ask.offset)
            .with_current_leader_epoch(ask.current)
            .with_last_fetched_epoch(ask.last)
            .with_partition_max_bytes(ask.max_bytes);
        FetchTopic::default().with_topic(topic(name)).with_partitions(vec![partition])
    };
    FetchRequest::default()
        .with_max_wait_ms(common.wait_ms)
        .with_min_bytes(common.min_bytes)
        .with_max_bytes(common.max_bytes_in_all)
        .with_isolation_level(i8::from(common.committed))
        .with_topics(asks.iter().map(asked).collect())
}

async fn start(data: PathBuf, judges: Arc<dyn Judges>) -> (Broker, Connection) {
    start_on(Arc::new(DiskIo), config(data), judges).await
}

fn config(data: PathBuf) -> Config {
    let mut config = Config::new(data, ([127, 0, 0, 1], 0).into());
    // Records of tests are years old.
    config.retention_check_interval = std::time::Duration::MAX;
    config
}

async fn start_on(io: Arc<dyn Io>, config: Config, judges: Arc<dyn Judges>) -> (Broker, Connection) {
    let broker = Broker::start_on(io, config, judges).await.unwrap();
    let client = connect(&broker).await;
    (broker, client)
}

async fn connect(broker: &Broker) -> Connection {
    Connection::connect(broker.local_addr(), ClientConfig::default()).await.unwrap()
}

/// A Fetch; the default waits for nothing and bounds nothing.
#[derive(Clone, Copy)]
pub(crate) struct Fetch {
    pub(crate) version: i16,
    pub(crate) offset: i64,
    pub(crate) current: i32,
    pub(crate) last: i32,
    pub(crate) max_bytes: i32,
    pub(crate) max_bytes_in_all: i32,
    pub(crate) min_bytes: i32,
    pub(crate) wait_ms: i32,
    pub(crate) committed: bool,
}

impl Fetch {
    pub(crate) fn at(offset: i64) -> Self {
        Self {
            version: 12,
            offset,
            current: -1,
            last: -1,
            max_bytes: 1 << 20,
            max_bytes_in_all: 1 << 20,
            min_bytes: 0,
            wait_ms: 0,
            committed: false,
        }
    }
}

/// A batch with a record for each value.
pub(crate) fn batch(base: i64, epoch: i32, values: &[&str]) -> Vec<u8> {
    builder(base, epoch, values).build().unwrap()
}

pub(crate) fn builder<'a>(base: i64, epoch: i32, values: &[&'a str]) -> BatchBuilder<'a> {
    let builder = BatchBuilder::new(base).leader_epoch(epoch);
    (0_i32..).zip(values).fold(builder, |builder, (delta, value)| {
        builder.record(NewRecord::new(delta, TIME_MS + i64::from(delta)).value(value.as_bytes()))
    })
}

/// The order for a write at `expected_end` after `epoch_before`, with the source at `source_end` under `source_epoch`.
pub(crate) fn order(
    (expected_end, epoch_before): (i64, i32),
    (source_end, source_epoch): (i64, i32),
) -> RequestTag {
    RequestTag {
        source_topic_id: [0; 16],
        expected_end,
        epoch_before,
        source_start: 0,
        source_end,
        source_epoch,
        end_to: None,
        truncate_to: None,
        entries: Vec::new(),
    }
}

/// What the answer's tag tells.
pub(crate) fn told(answer: &PartitionProduceResponse) -> AnswerTag {
    tag::answer_tag(answer).unwrap().unwrap()
}

pub(crate) fn topic(name: &str) -> TopicName {
    TopicName(text(name))
}

pub(crate) fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}
