//! What is known of brokers, topics and leaders: the last Metadata answers, put together.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use verbatim_wire::error::describe;
use verbatim_wire::messages::MetadataResponse;
use verbatim_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};

use super::link::Link;
use super::tries::Fault;
use super::types::{Partition, PartitionInfo, TopicInfo};

/// What is known. A question to the cluster has a number, by which whoever waits knows whether it was asked after they came.
#[derive(Debug, Default)]
pub(super) struct Known {
    topics: HashMap<String, Topic>,
    nodes: BTreeMap<i32, Arc<Link>>,
    controller: i32,
}

#[derive(Debug)]
struct Topic {
    /// The last that was known; kept while the topic is said to be missing, so that its epochs cannot go back.
    info: TopicInfo,
    /// The error code of the last answer.
    code: i16,
    /// The question that told it.
    question: u64,
}

impl Known {
    /// Takes an answer to question number `question`.
    pub(super) fn absorb(&mut self, answer: &MetadataResponse, question: u64, all: bool) {
        let addresses = answer.brokers.iter().map(|broker| {
            let host = broker.host.as_str();
            let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            (broker.node_id.0, format!("{host}:{}", broker.port))
        });
        let mut nodes: BTreeMap<i32, Arc<Link>> = BTreeMap::new();
        for (id, address) in addresses {
            let known = self.nodes.get(&id).filter(|link| link.address() == address);
            nodes.insert(id, known.map_or_else(|| Arc::new(Link::new(address)), Arc::clone));
        }
        if !nodes.is_empty() {
            self.nodes = nodes;
        }
        self.controller = answer.controller_id.0;
        for topic in &answer.topics {
            self.absorb_topic(topic, question);
        }
        if all {
            self.topics.retain(|_, topic| topic.question == question);
        }
    }

    fn absorb_topic(&mut self, answer: &MetadataResponseTopic, question: u64) {
        let Some(name) = answer.name.as_ref().map(|name| name.to_string()) else { return };
        let before = self.topics.remove(&name);
        let info = if answer.error_code == 0 {
            topic_info(answer, &name, before.as_ref().map(|topic| &topic.info))
        } else {
            let nothing = || TopicInfo {
                name: name.clone(),
                id: answer.topic_id,
                internal: answer.is_internal,
                partitions: Vec::new(),
            };
            before.map_or_else(nothing, |topic| topic.info)
        };
        self.topics.insert(name, Topic { info, code: answer.error_code, question });
    }

    /// Whether a question later than `question` has told about this topic.
    pub(super) fn told_after(&self, topic: &str, question: u64) -> bool {
        self.topics.get(topic).is_some_and(|topic| topic.question > question)
    }

    /// A topic that is there; `None` if the cluster was not asked or said that it is missing.
    pub(super) fn topic(&self, name: &str) -> Option<Result<&TopicInfo, Fault>> {
        let topic = self.topics.get(name)?;
        let what = || format!("topic {name}");
        Some(if topic.code == 0 { Ok(&topic.info) } else { Err(Fault::of_code(&what(), topic.code)) })
    }

    /// Every topic that is there, by name.
    pub(super) fn all(&self) -> Vec<TopicInfo> {
        let there = self.topics.values().filter(|topic| topic.code == 0);
        let mut topics: Vec<_> = there.map(|topic| topic.info.clone()).collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        topics
    }

    /// A partition, if its topic is known.
    pub(super) fn partition(&self, partition: &Partition) -> Option<Result<PartitionInfo, Fault>> {
        Some(self.topic(&partition.topic)?.and_then(|topic| {
            find(&topic.partitions, partition.index).copied().ok_or_else(|| {
                let count = topic.partitions.len();
                Fault::Unknown(format!("{partition}: the topic has {count} partitions"))
            })
        }))
    }

    /// A broker.
    pub(super) fn node(&self, id: i32) -> Result<Arc<Link>, Fault> {
        let missing = || Fault::Passing(format!("broker {id} is not among those that the cluster names"));
        self.nodes.get(&id).map(Arc::clone).ok_or_else(missing)
    }

    /// All brokers, by id.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (i32, &Arc<Link>)> {
        self.nodes.iter().map(|(id, link)| (*id, link))
    }

    /// The broker that changes of the cluster are asked of.
    pub(super) fn controller(&self) -> i32 {
        self.controller
    }
}

/// The partition of that index, among those of a topic in their order.
fn find(partitions: &[PartitionInfo], index: i32) -> Option<&PartitionInfo> {
    let at = partitions.binary_search_by_key(&index, |partition| partition.index).ok()?;
    partitions.get(at)
}

/// A topic as an answer tells it, but for leaders that a later answer has told of already: under the same topic id a leader
/// epoch never goes back.
fn topic_info(answer: &MetadataResponseTopic, name: &str, before: Option<&TopicInfo>) -> TopicInfo {
    let before = before.filter(|before| before.id == answer.topic_id);
    let mut partitions: Vec<PartitionInfo> =
        answer.partitions.iter().map(|partition| partition_info(answer, partition, before)).collect();
    partitions.sort_by_key(|partition| partition.index);
    partitions.dedup_by_key(|partition| partition.index);
    TopicInfo { name: name.to_owned(), id: answer.topic_id, internal: answer.is_internal, partitions }
}

fn partition_info(
    topic: &MetadataResponseTopic,
    answer: &MetadataResponsePartition,
    before: Option<&TopicInfo>,
) -> PartitionInfo {
    let leader = if answer.error_code == 0 || answer.error_code == 9 { answer.leader_id.0 } else { -1 };
    if leader < 0 && answer.error_code != 0 {
        tracing::debug!(partition = answer.partition_index, error = describe(answer.error_code), "no leader");
    }
    let info = PartitionInfo {
        index: answer.partition_index,
        topic_id: topic.topic_id,
        leader,
        leader_epoch: answer.leader_epoch,
    };
    let known = before.and_then(|topic| find(&topic.partitions, info.index));
    known.filter(|known| known.leader_epoch > info.leader_epoch).copied().unwrap_or(info)
}
