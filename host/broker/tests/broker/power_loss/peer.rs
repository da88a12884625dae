//! A client's connection, and what comes back from it in few words.

use std::net::SocketAddr;
use std::path::Path;

use verbatim_batch::{Batch, frames};
use verbatim_log::Io as _;
use verbatim_test_disk::SimDisk;
use verbatim_wire::client::{ClientConfig, ClientError, Connection};
use verbatim_wire::messages::create_partitions_request::CreatePartitionsTopic;
use verbatim_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use verbatim_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use verbatim_wire::messages::delete_topics_request::DeleteTopicState;
use verbatim_wire::messages::describe_configs_request::DescribeConfigsResource;
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
use verbatim_wire::tag::{self, RequestTag};

use crate::support::{Fetch, fetch_on, text, topic};

type Told<T> = Result<T, ClientError>;

pub(crate) struct Peer(Connection);

/// A batch as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) base: i64,
    pub(crate) next: i64,
    pub(crate) epoch: i32,
    pub(crate) bytes: Vec<u8>,
}

impl Stored {
    /// What its checksum covers, which the host never changes.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[21..]
    }
}

impl Peer {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(Connection::connect(address, ClientConfig::default()).await.unwrap())
    }

    pub(crate) async fn produce(
        &self,
        name: &str,
        batches: &[u8],
        tag: Option<&RequestTag>,
    ) -> Told<PartitionProduceResponse> {
        let records = Some(bytes::Bytes::copy_from_slice(batches)).filter(|records| !records.is_empty());
        let mut partition = PartitionProduceData::default().with_records(records);
        if let Some(tag) = tag {
            tag::set_request_tag(&mut partition, tag).unwrap();
        }
        let data = TopicProduceData::default().with_name(topic(name)).with_partition_data(vec![partition]);
        let request = ProduceRequest::default().with_acks(-1).with_topic_data(vec![data]);
        Ok(self.0.send(12, &request).await?.responses.remove(0).partition_responses.remove(0))
    }

    /// Whole batches from an offset on, as many as come at once; the code where there is an error.
    pub(crate) async fn fetch(&self, name: &str, offset: i64) -> Result<Vec<Stored>, i16> {
        let ask = Fetch { wait_ms: 5, min_bytes: 1, ..Fetch::at(offset) };
        let part = fetch_on(&self.0, &[(name, ask)], ask).await.remove(0);
        if part.error_code != 0 {
            return Err(part.error_code);
        }
        let bytes = part.records.unwrap_or_default();
        let stored = frames(&bytes).map(|frame| {
            // Its checksum is verified here.
            let header = *Batch::parse(frame.bytes()).unwrap().header();
            Stored {
                base: header.base_offset,
                next: header.next_offset().unwrap(),
                epoch: header.leader_epoch,
                bytes: frame.bytes().to_vec(),
            }
        });
        Ok(stored.collect())
    }

    /// Everything from the start to the end.
    pub(crate) async fn fetch_all(&self, name: &str, start: i64, end: i64) -> Vec<Stored> {
        let (mut all, mut at) = (Vec::new(), start);
        while at < end {
            let stored = self.fetch(name, at).await.unwrap();
            let Some(last) = stored.last() else { break };
            at = last.next;
            all.extend(stored);
        }
        all
    }

    /// Offset and leader epoch by a timestamp kind: -1 the end, -2 the start.
    pub(crate) async fn list(&self, name: &str, timestamp: i64) -> Result<(i64, i32), i16> {
        let partition = ListOffsetsPartition::default().with_timestamp(timestamp);
        let asked = ListOffsetsTopic::default().with_name(topic(name)).with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![asked]);
        let part = self.0.call(&request).await.unwrap().topics.remove(0).partitions.remove(0);
        if part.error_code == 0 { Ok((part.offset, part.leader_epoch)) } else { Err(part.error_code) }
    }

    /// Epoch and end by OffsetForLeaderEpoch.
    pub(crate) async fn epoch_end(&self, name: &str, epoch: i32) -> (i32, i64) {
        let partition = OffsetForLeaderPartition::default().with_leader_epoch(epoch);
        let asked = OffsetForLeaderTopic::default().with_topic(topic(name)).with_partitions(vec![partition]);
        let request =
            OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![asked]);
        let part = self.0.call(&request).await.unwrap().topics.remove(0).partitions.remove(0);
        assert_eq!(part.error_code, 0);
        (part.leader_epoch, part.end_offset)
    }

    pub(crate) async fn producer_id(&self) -> Result<i64, i16> {
        let request = InitProducerIdRequest::default().with_transactional_id(None);
        let answer = self.0.call(&request).await.unwrap();
        if answer.error_code == 0 { Ok(answer.producer_id.0) } else { Err(answer.error_code) }
    }

    /// The start afterwards.
    pub(crate) async fn delete_records(&self, name: &str, below: i64) -> Result<i64, i16> {
        let partition = DeleteRecordsPartition::default().with_offset(below);
        let asked = DeleteRecordsTopic::default().with_name(topic(name)).with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default().with_topics(vec![asked]);
        let part = self.0.call(&request).await.unwrap().topics.remove(0).partitions.remove(0);
        if part.error_code == 0 { Ok(part.low_watermark) } else { Err(part.error_code) }
    }

    pub(crate) async fn create(&self, name: &str, count: i32, configs: &[(&str, &str)]) -> Told<i16> {
        let config = |(name, value): &(&str, &str)| {
            CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
        };
        let made = CreatableTopic::default()
            .with_name(topic(name))
            .with_num_partitions(count)
            .with_replication_factor(-1)
            .with_configs(configs.iter().map(config).collect());
        let request = CreateTopicsRequest::default().with_topics(vec![made]);
        Ok(self.0.call(&request).await?.topics.remove(0).error_code)
    }

    /// Code and text.
    pub(crate) async fn delete(&self, name: &str) -> Told<(i16, String)> {
        let deleted = DeleteTopicState::default().with_name(Some(topic(name)));
        let request =
            DeleteTopicsRequest::default().with_topics(vec![deleted]).with_topic_names(vec![topic(name)]);
        let answer = self.0.call(&request).await?.responses.remove(0);
        Ok((answer.error_code, answer.error_message.unwrap_or_default().to_string()))
    }

    /// Code and text.
    pub(crate) async fn grow(&self, name: &str, count: i32) -> Told<(i16, String)> {
        let grown =
            CreatePartitionsTopic::default().with_name(topic(name)).with_count(count).with_assignments(None);
        let request = CreatePartitionsRequest::default().with_topics(vec![grown]);
        let answer = self.0.call(&request).await?.results.remove(0);
        Ok((answer.error_code, answer.error_message.unwrap_or_default().to_string()))
    }

    pub(crate) async fn alter(&self, name: &str, property: &str, value: &str) -> Told<i16> {
        let change = AlterableConfig::default().with_name(text(property)).with_value(Some(text(value)));
        let resource = AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text(name))
            .with_configs(vec![change]);
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        Ok(self.0.call(&request).await?.responses.remove(0).error_code)
    }

    pub(crate) async fn property(&self, name: &str, property: &str) -> String {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text(name))
            .with_configuration_keys(Some(vec![text(property)]));
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let mut result = self.0.call(&request).await.unwrap().results.remove(0);
        result.configs.remove(0).value.unwrap().to_string()
    }

    pub(crate) async fn metadata(&self, name: &str) -> MetadataResponseTopic {
        let asked = MetadataRequestTopic::default().with_name(Some(topic(name)));
        let request = MetadataRequest::default().with_topics(Some(vec![asked]));
        self.0.call(&request).await.unwrap().topics.remove(0)
    }
}

/// Partition folders on the disk, in order.
pub(crate) fn folders(disk: &SimDisk) -> Vec<String> {
    let mut names = disk.list(Path::new("/data")).unwrap();
    // The others are the host's own files.
    names.retain(|name| disk.list(&Path::new("/data").join(name)).is_ok());
    names.sort();
    names
}
