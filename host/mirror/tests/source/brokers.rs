//! Brokers of a cluster that keep to Kafka's rules until a test says otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;
use verbatim_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use verbatim_wire::messages::fetch_response::{EpochEndOffset, FetchableTopicResponse, PartitionData};
use verbatim_wire::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use verbatim_wire::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use verbatim_wire::messages::offset_for_leader_epoch_response::{
    EpochEndOffset as Ended, OffsetForLeaderTopicResult,
};
use verbatim_wire::messages::{
    FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse, MetadataRequest, MetadataResponse,
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, TopicName,
};
use verbatim_wire::protocol::StrBytes;
use verbatim_wire::server::{Config, Reply, ReplyFuture, RequestContext, Server, Service};
use verbatim_wire::{ApiKey, Request, Response, response};

use crate::TOPIC;
use crate::log::{Log, base, next};

/// One Fetch request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) node: i32,
    pub(crate) version: i16,
    pub(crate) max_wait_ms: i32,
    pub(crate) min_bytes: i32,
    pub(crate) partitions: Vec<FetchPartition>,
    pub(crate) isolation_level: i8,
    pub(crate) rack: String,
    pub(crate) at: tokio::time::Instant,
}

/// What a test does to an answer on its way out; `None` = the connection closes instead.
type Bend = Box<dyn FnMut(&Seen, FetchResponse) -> Option<FetchResponse> + Send>;

/// What a test makes of the answer about an epoch: the epoch asked for, and epoch and end of the answer.
type BendEnd = Box<dyn FnMut(i32, (i32, i64)) -> (i32, i64) + Send>;

/// What the brokers share.
pub(crate) struct State {
    pub(crate) logs: BTreeMap<i32, Log>,
    pub(crate) fetches: Vec<Seen>,
    pub(crate) metadata_asked: usize,
    pub(crate) epochs_asked: usize,
    /// Overrides the error code of the topic in Metadata.
    pub(crate) topic_code: i16,
    /// Which leader and epoch Metadata tells, where that is not the truth.
    pub(crate) stale: BTreeMap<i32, (i32, i32)>,
    pub(crate) fetch_version_max: i16,
    pub(crate) bend: Bend,
    pub(crate) bend_end: BendEnd,
    /// Other requests that are cut off before they are answered.
    pub(crate) cut: usize,
    addresses: Vec<(i32, u16)>,
}

/// The cluster.
pub(crate) struct Brokers {
    pub(crate) state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    stops: BTreeMap<i32, (oneshot::Sender<()>, tokio::task::JoinHandle<()>)>,
}

impl Brokers {
    /// So many brokers, by node id from 1, and these partitions of one topic.
    pub(crate) async fn start(brokers: i32, logs: Vec<Log>) -> Self {
        let logs = (0..).zip(logs).collect();
        let state = State {
            logs,
            fetches: Vec::new(),
            metadata_asked: 0,
            epochs_asked: 0,
            topic_code: 0,
            stale: BTreeMap::new(),
            fetch_version_max: ApiKey::Fetch.api().max,
            bend: Box::new(|_, answer| Some(answer)),
            bend_end: Box::new(|_, end| end),
            cut: 0,
            addresses: Vec::new(),
        };
        let (state, changed) = (Arc::new(Mutex::new(state)), Arc::new(Notify::new()));
        let mut cluster = Self { state, changed, stops: BTreeMap::new() };
        for node in 1..=brokers {
            cluster.run(node).await;
        }
        cluster
    }

    /// Starts a broker, on a port of its own.
    pub(crate) async fn run(&mut self, node: i32) {
        let server = Server::bind("127.0.0.1:0", Config::default()).await.unwrap();
        let port = server.local_addr().unwrap().port();
        let broker = Broker { node, state: Arc::clone(&self.state), changed: Arc::clone(&self.changed) };
        let (stop, stopped) = oneshot::channel();
        let done = tokio::spawn(server.run(Arc::new(broker), async { drop(stopped.await) }));
        let mut state = self.state();
        state.addresses.retain(|(id, _)| *id != node);
        state.addresses.push((node, port));
        drop(state);
        self.stops.insert(node, (stop, done));
    }

    /// Ends a broker: its connections close.
    pub(crate) async fn kill(&mut self, node: i32) {
        let (stop, done) = self.stops.remove(&node).unwrap();
        drop(stop);
        self.changed.notify_waiters();
        done.await.unwrap();
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.state().addresses.iter().map(|(_, port)| format!("127.0.0.1:{port}")).collect()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Changes a partition; whoever waits for data looks again.
    pub(crate) fn change(&self, partition: i32, change: impl FnOnce(&mut Log)) {
        change(self.state().logs.get_mut(&partition).unwrap());
        self.changed.notify_waiters();
    }

    pub(crate) fn log(&self, partition: i32) -> Log {
        self.state().logs[&partition].clone()
    }

    pub(crate) fn bend(
        &self,
        bend: impl FnMut(&Seen, FetchResponse) -> Option<FetchResponse> + Send + 'static,
    ) {
        self.state().bend = Box::new(bend);
    }
}

struct Broker {
    node: i32,
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

impl Service for Broker {
    async fn admit(&self, context: RequestContext, request: Request) -> ReplyFuture {
        let mut state = self.state.lock().unwrap();
        let is_fetch = matches!(request, Request::Fetch(_) | Request::ApiVersions(_));
        if !is_fetch && state.cut > 0 {
            state.cut -= 1;
            return ready(Reply::Close { reason: "cut".to_owned() });
        }
        let answer: Response = match request {
            Request::ApiVersions(_) => {
                let mut answer = response::api_versions(|key| self.serves(key));
                for row in answer.api_keys.iter_mut().filter(|row| row.api_key == 1) {
                    row.max_version = state.fetch_version_max;
                }
                answer.into()
            }
            Request::Metadata(body) => state.metadata(&body).into(),
            Request::ListOffsets(body) => self.list_offsets(&state, &body).into(),
            Request::OffsetForLeaderEpoch(body) => self.epoch_ends(&mut state, &body).into(),
            Request::Fetch(body) => {
                let seen = Seen {
                    node: self.node,
                    version: context.head.version,
                    max_wait_ms: body.max_wait_ms,
                    min_bytes: body.min_bytes,
                    partitions: body.topics.iter().flat_map(|topic| topic.partitions.clone()).collect(),
                    isolation_level: body.isolation_level,
                    rack: body.rack_id.to_string(),
                    at: tokio::time::Instant::now(),
                };
                state.fetches.push(seen.clone());
                drop(state);
                let (shared, changed) = (Arc::clone(&self.state), Arc::clone(&self.changed));
                return Box::pin(fetch(shared, changed, seen, body));
            }
            other => panic!("{:?} is not served", other.key()),
        };
        ready(Reply::Answer(answer))
    }

    fn serves(&self, key: ApiKey) -> bool {
        matches!(
            key,
            ApiKey::ApiVersions
                | ApiKey::Metadata
                | ApiKey::ListOffsets
                | ApiKey::OffsetForLeaderEpoch
                | ApiKey::Fetch
        )
    }
}

impl State {
    fn metadata(&mut self, request: &MetadataRequest) -> MetadataResponse {
        self.metadata_asked += 1;
        let broker = |(id, port): &(i32, u16)| {
            MetadataResponseBroker::default()
                .with_node_id((*id).into())
                .with_host(StrBytes::from_static_str("127.0.0.1"))
                .with_port(i32::from(*port))
        };
        let asked = request.topics.as_ref().map_or_else(
            || vec![TOPIC.to_owned()],
            |topics| topics.iter().map(|topic| topic.name.as_ref().unwrap().to_string()).collect(),
        );
        let topic = |name: &String| {
            let code = if name == TOPIC { self.topic_code } else { 3 };
            let answer =
                MetadataResponseTopic::default().with_name(Some(topic_name(name))).with_error_code(code);
            if code != 0 {
                return answer;
            }
            let id = self.logs.values().next().unwrap().topic_id;
            let partition = |(index, log): (&i32, &Log)| {
                let (leader, epoch) = self.stale.get(index).copied().unwrap_or((log.leader, log.epoch));
                MetadataResponsePartition::default()
                    .with_partition_index(*index)
                    .with_leader_id(leader.into())
                    .with_leader_epoch(epoch)
            };
            answer.with_topic_id(id).with_partitions(self.logs.iter().map(partition).collect())
        };
        MetadataResponse::default()
            .with_brokers(self.addresses.iter().map(broker).collect())
            .with_controller_id(1.into())
            .with_topics(asked.iter().map(topic).collect())
    }

    /// The log, if this broker leads it under the epoch asked with; else the error.
    fn led(&self, node: i32, index: i32, epoch: i32) -> Result<&Log, i16> {
        let log = self.logs.get(&index).ok_or(3_i16)?;
        match epoch {
            _ if log.leader != node => Err(6),
            epoch if epoch >= 0 && epoch < log.epoch => Err(74),
            epoch if epoch > log.epoch => Err(75),
            _ => Ok(log),
        }
    }

    fn fetched(
        &self,
        node: i32,
        topic: &FetchTopic,
        asked: &FetchPartition,
        (left, is_first): (i64, bool),
    ) -> PartitionData {
        let data = PartitionData::default().with_partition_index(asked.partition);
        let log = match self.led(node, asked.partition, asked.current_leader_epoch) {
            Ok(log) => log,
            Err(code) => return data.with_error_code(code).with_high_watermark(-1),
        };
        if !topic.topic_id.is_nil() && topic.topic_id != log.topic_id {
            return data.with_error_code(100).with_high_watermark(-1);
        }
        if asked.fetch_offset < log.start || asked.fetch_offset > log.end {
            return data.with_error_code(1).with_high_watermark(-1);
        }
        let data = data
            .with_high_watermark(log.end)
            .with_last_stable_offset(log.end)
            .with_log_start_offset(log.start);
        if asked.last_fetched_epoch >= 0 {
            let (epoch, end) = log.epoch_end(asked.last_fetched_epoch);
            if epoch < asked.last_fetched_epoch || end < asked.fetch_offset {
                return data
                    .with_diverging_epoch(EpochEndOffset::default().with_epoch(epoch).with_end_offset(end));
            }
        }
        let limit = left.min(i64::from(asked.partition_max_bytes));
        data.with_records(Some(records(log, asked.fetch_offset, limit, is_first)))
    }

    fn answer(&self, node: i32, request: &FetchRequest) -> FetchResponse {
        let mut left = i64::from(request.max_bytes);
        let mut is_first = true;
        let topics = request.topics.iter().map(|topic| {
            let partition = |asked: &FetchPartition| {
                // The first that has something gets a whole batch in any case (KIP-74).
                let data = self.fetched(node, topic, asked, (left, is_first));
                let bytes = data.records.as_ref().map_or(0, Bytes::len);
                is_first &= bytes == 0;
                left -= i64::try_from(bytes).unwrap();
                data
            };
            FetchableTopicResponse::default()
                .with_topic(topic.topic.clone())
                .with_topic_id(topic.topic_id)
                .with_partitions(topic.partitions.iter().map(partition).collect())
        });
        FetchResponse::default().with_responses(topics.collect())
    }
}

/// So many bytes from the batch on that holds the offset, the last one cut off; a first batch that does not fit is left
/// out, but for the first partition.
fn records(log: &Log, offset: i64, limit: i64, is_first: bool) -> Bytes {
    let bytes = log.bytes_from(offset);
    let first = log.batches.iter().find(|batch| next(batch) > offset).map_or(0, Bytes::len);
    let limit = usize::try_from(limit.max(0)).unwrap();
    let limit = match (first <= limit, is_first) {
        (true, _) => limit,
        (false, true) => first,
        (false, false) => 0,
    };
    Bytes::copy_from_slice(&bytes[..limit.min(bytes.len())])
}

async fn fetch(state: Arc<Mutex<State>>, changed: Arc<Notify>, seen: Seen, request: FetchRequest) -> Reply {
    let until = seen.at + Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap());
    loop {
        let news = changed.notified();
        let answer = state.lock().unwrap().answer(seen.node, &request);
        let mut partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
        let is_enough = request.min_bytes == 0
            || partitions.any(|data| {
                data.error_code != 0
                    || data.diverging_epoch.end_offset >= 0
                    || data.records.as_ref().is_some_and(|records| !records.is_empty())
            });
        if is_enough || tokio::time::timeout_at(until, news).await.is_err() {
            let mut state = state.lock().unwrap();
            return match (state.bend)(&seen, answer) {
                Some(answer) => Reply::Answer(answer.into()),
                None => Reply::Close { reason: "bent".to_owned() },
            };
        }
    }
}

impl Broker {
    fn list_offsets(&self, state: &State, request: &ListOffsetsRequest) -> ListOffsetsResponse {
        let topics = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let answer =
                    ListOffsetsPartitionResponse::default().with_partition_index(asked.partition_index);
                match state.led(self.node, asked.partition_index, asked.current_leader_epoch) {
                    Err(code) => answer.with_error_code(code),
                    Ok(log) => match asked.timestamp {
                        -1 => answer.with_offset(log.end).with_leader_epoch(log.epoch),
                        -2 => answer.with_offset(log.start).with_leader_epoch(log.epoch),
                        // Every record has time 1,000.
                        ..=1_000 => match log.batches.iter().find(|batch| base(batch) >= log.start) {
                            Some(batch) => answer.with_offset(base(batch)).with_timestamp(1_000),
                            None => answer,
                        },
                        _ => answer,
                    },
                }
            });
            ListOffsetsTopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        ListOffsetsResponse::default().with_topics(topics.collect())
    }

    fn epoch_ends(
        &self,
        state: &mut State,
        request: &OffsetForLeaderEpochRequest,
    ) -> OffsetForLeaderEpochResponse {
        state.epochs_asked += 1;
        let topics = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let answer = Ended::default().with_partition(asked.partition);
                match state.led(self.node, asked.partition, asked.current_leader_epoch) {
                    Err(code) => answer.with_error_code(code),
                    Ok(log) => {
                        let end = log.epoch_end(asked.leader_epoch);
                        let (epoch, end) = (state.bend_end)(asked.leader_epoch, end);
                        answer.with_leader_epoch(epoch).with_end_offset(end)
                    }
                }
            });
            OffsetForLeaderTopicResult::default()
                .with_topic(topic.topic.clone())
                .with_partitions(partitions.collect())
        });
        OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
    }
}

/// Another topic of the same name comes instead.
pub(crate) fn recreate(state: &mut State, id: u128) {
    for log in state.logs.values_mut() {
        *log = Log { topic_id: Uuid::from_u128(id), ..Log::new(log.leader) };
    }
}

/// The only partition of an answer.
pub(crate) fn only(answer: &mut FetchResponse) -> &mut PartitionData {
    &mut answer.responses[0].partitions[0]
}

fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

fn ready(reply: Reply) -> ReplyFuture {
    Box::pin(std::future::ready(reply))
}
