//! The task behind a producer: one connection, and the partitions that share it.
//!
//! Everything happens in this task, one event after the other: a call of a handle, an answer (in the order of the requests),
//! a connection made or failed, a target checked, a pause over. What an event means for a partition is its lane's to
//! say; here requests are put together, sent and matched.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::ProduceResponse;
use kafka_protocol::messages::produce_request::TopicProduceData;
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::check::{self, Checked, IDS_FROM, Topics};
use super::lane::{Lane, Purpose};
use super::piece::Due;
use super::write::{Call, Found, Target};
use super::{Config, ExactError};
use crate::client::{ClientError, Connection};

/// Partitions in one request at most; a host bounds what a request may hold in all.
const PARTITIONS_MAX: usize = 1_000;

/// A partition's number within its producer.
pub(super) type LaneId = u64;

/// What handles ask for.
#[derive(Debug)]
pub(super) enum Command {
    Open { lane: LaneId, target: Target, reply: oneshot::Sender<Result<Found, ExactError>> },
    Call { lane: LaneId, call: Call, due: Due },
    Resume { lane: LaneId, end: i64, epoch_before: i32, reply: oneshot::Sender<Result<(), ExactError>> },
    Close { lane: LaneId },
}

/// What the tasks beside this one bring.
enum Event {
    Connected(Result<Connection, ClientError>),
    Checked {
        lane: LaneId,
        link: u64,
        result: Result<Checked, ClientError>,
    },
    /// A pause before a check is over.
    Due {
        lane: LaneId,
        link: u64,
    },
    /// A throttled producer may send again (KIP-219).
    Unthrottled,
}

/// The present connection.
struct Link {
    connection: Arc<Connection>,
    /// What it was told of topics.
    topics: Topics,
    /// Rises with every connection, so that what comes late from an old one is not mistaken.
    number: u64,
    /// The version of Produce; `None` if none carries the tag, which every check then finds out.
    version: Option<i16>,
}

type AnswerFuture = Pin<Box<dyn Future<Output = Result<ProduceResponse, ClientError>> + Send>>;

/// A request under way.
struct Flight {
    parts: Vec<Part>,
    answer: AnswerFuture,
}

/// One partition's part of a request.
struct Part {
    lane: LaneId,
    serial: u64,
    topic: TopicKey,
    partition: i32,
}

/// A topic as a Produce version names it.
type TopicKey = (String, Uuid);

pub(super) struct Driver {
    config: Arc<Config>,
    commands: mpsc::UnboundedReceiver<Command>,
    lanes: HashMap<LaneId, Lane>,
    /// Lanes that may have something to send, each at most once.
    ready: VecDeque<LaneId>,
    listed: BTreeSet<LaneId>,
    link: Option<Link>,
    flights: VecDeque<Flight>,
    tasks: JoinSet<Event>,
    connecting: bool,
    throttled: bool,
    /// No handle is left; what is queued is still carried out.
    closing: bool,
    links: u64,
    serial: u64,
    /// Connections that failed or were lost since something was acknowledged or opened.
    failures: u32,
    /// Which bootstrap address is tried next.
    address: usize,
}

impl Driver {
    pub(super) fn new(config: Arc<Config>, commands: mpsc::UnboundedReceiver<Command>) -> Self {
        Self {
            config,
            commands,
            lanes: HashMap::new(),
            ready: VecDeque::new(),
            listed: BTreeSet::new(),
            link: None,
            flights: VecDeque::new(),
            tasks: JoinSet::new(),
            connecting: false,
            throttled: false,
            closing: false,
            links: 0,
            serial: 0,
            failures: 0,
            address: 0,
        }
    }

    /// Runs until no handle is left and everything queued is settled.
    pub(super) async fn run(mut self) {
        while !(self.closing && self.lanes.values().all(|lane| !lane.has_work())) {
            self.send_ready().await;
            self.connect_if_needed();
            tokio::select! {
                command = self.commands.recv(), if !self.closing => self.command(command),
                answer = front(&mut self.flights) => self.answered(answer),
                Some(Ok(event)) = self.tasks.join_next() => self.event(event),
            }
        }
    }

    fn command(&mut self, command: Option<Command>) {
        match command {
            None => self.closing = true,
            Some(Command::Open { lane, target, reply }) => self.open(lane, target, reply),
            Some(Command::Call { lane, call, due }) => {
                if let Some(open) = self.lanes.get_mut(&lane) {
                    open.call(call, due, &self.config);
                    self.list(lane);
                }
            }
            Some(Command::Resume { lane, end, epoch_before, reply }) => {
                let purpose = Purpose::Resume { end, epoch_before, reply };
                if self.lanes.get_mut(&lane).is_some_and(|lane| lane.resume(purpose)) {
                    self.check(lane);
                }
            }
            Some(Command::Close { lane }) => {
                if let Some(open) = self.lanes.get_mut(&lane) {
                    open.closed = true;
                }
                self.forget_if_done(lane);
            }
        }
    }

    fn open(&mut self, lane: LaneId, target: Target, reply: oneshot::Sender<Result<Found, ExactError>>) {
        let same = |open: &Lane| {
            !open.closed && open.target.topic == target.topic && open.target.partition == target.partition
        };
        if self.lanes.values().any(same) {
            let message = format!("{}-{} is open already", target.topic, target.partition);
            // Whoever opens may have gone away.
            let _ = reply.send(Err(ExactError::InvalidWrite { message }));
            return;
        }
        self.lanes.insert(lane, Lane::open(target, reply));
        self.check(lane);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Connected(Ok(connection)) => self.connected(connection),
            Event::Connected(Err(error)) => {
                self.connecting = false;
                self.lose(&error.to_string());
            }
            Event::Checked { lane, link, result } if self.is_current(link) => match result {
                Ok(checked) => self.checked(lane, checked),
                Err(error) => self.lose(&error.to_string()),
            },
            Event::Due { lane, link } if self.is_current(link) => self.check(lane),
            Event::Checked { .. } | Event::Due { .. } => {}
            Event::Unthrottled => self.throttled = false,
        }
    }

    fn is_current(&self, number: u64) -> bool {
        self.link.as_ref().is_some_and(|link| link.number == number)
    }

    fn connect_if_needed(&mut self) {
        if self.connecting || self.link.is_some() || !self.lanes.values().any(Lane::needs_connection) {
            return;
        }
        self.connecting = true;
        let at = self.address.checked_rem(self.config.bootstrap.len()).unwrap_or(0);
        self.address = at.saturating_add(1);
        let address = self.config.bootstrap.get(at).cloned().unwrap_or_default();
        let client = self.config.client.clone();
        let pause = if self.failures == 0 { Duration::ZERO } else { self.config.retry.pause(self.failures) };
        self.tasks.spawn(async move {
            sleep(pause).await;
            Event::Connected(Connection::connect(address, client).await)
        });
    }

    fn connected(&mut self, connection: Connection) {
        self.connecting = false;
        self.links = self.links.saturating_add(1);
        let version = check::produce_version(&connection);
        let (connection, topics) = (Arc::new(connection), Topics::default());
        self.link = Some(Link { connection, topics, number: self.links, version });
        let waiting = self.lanes.iter().filter(|(_, lane)| lane.is_checking()).map(|(id, _)| *id);
        for lane in waiting.collect::<Vec<_>>() {
            self.check(lane);
        }
    }

    /// The connection is lost, or none could be made.
    fn lose(&mut self, reason: &str) {
        tracing::debug!(reason, "an exact producer has lost its connection");
        self.link = None;
        self.flights.clear();
        self.failures = self.failures.saturating_add(1);
        for lane in self.lanes.keys().copied().collect::<Vec<_>>() {
            if let Some(open) = self.lanes.get_mut(&lane) {
                open.lose(reason, &self.config);
            }
            self.forget_if_done(lane);
        }
    }

    /// Checks a partition's target; without a connection, once there is one.
    fn check(&mut self, lane: LaneId) {
        let (Some(link), Some(open)) = (&self.link, self.lanes.get(&lane)) else { return };
        let (connection, topics) = (Arc::clone(&link.connection), link.topics.clone());
        let (link, target) = (link.number, open.target.clone());
        let timeout_ms = self.timeout_ms();
        self.tasks.spawn(async move {
            let result = check::target(&connection, &topics, &target, timeout_ms).await;
            Event::Checked { lane, link, result }
        });
    }

    fn checked(&mut self, lane: LaneId, checked: Checked) {
        let Some(open) = self.lanes.get_mut(&lane) else { return };
        if !open.has_work() {
            self.failures = 0;
        }
        let wish = open.checked(checked, &self.config);
        self.wish(lane, wish);
    }

    fn answered(&mut self, answer: Result<ProduceResponse, ClientError>) {
        let Some(flight) = self.flights.pop_front() else { return };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.lose(&error.to_string()),
        };
        self.throttle(answer.throttle_time_ms);
        let mut entries = by_partition(answer);
        for part in flight.parts {
            let Some(entry) = entries.remove(&(part.topic, part.partition)) else {
                return self.lose("an answer lacks a partition of its request");
            };
            let verdict = check::verdict(&entry);
            if verdict.code == 0 {
                self.failures = 0;
            }
            if let Some(lane) = self.lanes.get_mut(&part.lane) {
                let wish = lane.answer(part.serial, &verdict, &self.config);
                self.wish(part.lane, wish);
            }
        }
    }

    /// After anything that happened to a lane: checks it, lists it, or forgets it.
    fn wish(&mut self, lane: LaneId, wish: Option<Duration>) {
        match (wish, &self.link) {
            (Some(pause), _) if pause.is_zero() => self.check(lane),
            (Some(pause), Some(link)) => {
                let link = link.number;
                self.tasks.spawn(async move {
                    sleep(pause).await;
                    Event::Due { lane, link }
                });
            }
            _ => {}
        }
        self.list(lane);
        self.forget_if_done(lane);
    }

    fn throttle(&mut self, throttle_ms: i32) {
        let Ok(pause @ 1..) = u64::try_from(throttle_ms) else { return };
        if !self.throttled {
            self.throttled = true;
            let pause = Duration::from_millis(pause).min(self.config.client.answer_max);
            self.tasks.spawn(async move {
                sleep(pause).await;
                Event::Unthrottled
            });
        }
    }

    fn list(&mut self, lane: LaneId) {
        if self.lanes.get(&lane).is_some_and(|lane| lane.ready().is_some()) && self.listed.insert(lane) {
            self.ready.push_back(lane);
        }
    }

    fn forget_if_done(&mut self, lane: LaneId) {
        if self.lanes.get(&lane).is_some_and(|lane| lane.closed && !lane.has_work()) {
            self.lanes.remove(&lane);
        }
    }

    /// Sends as many requests as may be under way.
    async fn send_ready(&mut self) {
        while !self.throttled && self.flights.len() < self.config.in_flight_requests_max.max(1) {
            let Some((connection, version)) =
                self.link.as_ref().and_then(|link| Some((Arc::clone(&link.connection), link.version?)))
            else {
                return;
            };
            let (parts, topics) = match self.gather(version) {
                Ok((parts, _)) if parts.is_empty() => return,
                Ok(gathered) => gathered,
                Err(error) => return self.lose(&error.to_string()),
            };
            let request = check::request(topics, self.timeout_ms());
            // A host that takes nothing for so long is as good as gone.
            let waited = self.config.client.answer_max;
            let submitted = timeout(waited, connection.submit(version, &request)).await;
            match submitted.unwrap_or(Err(ClientError::Timeout { what: "room for a request", waited })) {
                Ok(answer) => self.flights.push_back(Flight { parts, answer: Box::pin(answer) }),
                Err(error) => return self.lose(&error.to_string()),
            }
        }
    }

    /// One piece of each partition that has one, in turn, as far as they fit one request.
    fn gather(&mut self, version: i16) -> Result<(Vec<Part>, Vec<TopicProduceData>), ClientError> {
        let (mut parts, mut bytes) = (Vec::new(), 0_usize);
        let mut topics: HashMap<TopicKey, TopicProduceData> = HashMap::new();
        for _ in 0..self.ready.len() {
            let Some(id) = self.ready.front().copied() else { break };
            let lane = self.lanes.get_mut(&id);
            let Some((lane, size)) = lane.and_then(|lane| lane.ready().map(|size| (lane, size))) else {
                self.ready.pop_front();
                self.listed.remove(&id);
                continue;
            };
            bytes = bytes.saturating_add(size);
            let full = bytes > self.config.request_bytes_max || parts.len() >= PARTITIONS_MAX;
            if !parts.is_empty() && full {
                break;
            }
            self.serial = self.serial.saturating_add(1);
            let key = topic_key(lane, version);
            let topic = check::topic(&lane.target, lane.topic_id, version);
            let partition = lane.target.partition;
            parts.push(Part { lane: id, serial: self.serial, topic: key.clone(), partition });
            if let Some(piece) = lane.send(self.serial) {
                let entry = check::entry(partition, &piece.tag, piece.records.clone())?;
                topics.entry(key).or_insert(topic).partition_data.push(entry);
            }
            // Behind the others, so that each partition has its turn.
            self.ready.rotate_left(1);
        }
        Ok((parts, topics.into_values().collect()))
    }

    fn timeout_ms(&self) -> i32 {
        i32::try_from(self.config.client.answer_max.as_millis()).unwrap_or(i32::MAX)
    }
}

fn topic_key(lane: &Lane, version: i16) -> TopicKey {
    if version >= IDS_FROM {
        return (String::new(), lane.topic_id);
    }
    (lane.target.topic.clone(), Uuid::nil())
}

fn by_partition(answer: ProduceResponse) -> HashMap<(TopicKey, i32), PartitionProduceResponse> {
    let mut entries = HashMap::new();
    for topic in answer.responses {
        let key = (topic.name.to_string(), topic.topic_id);
        entries
            .extend(topic.partition_responses.into_iter().map(|entry| ((key.clone(), entry.index), entry)));
    }
    entries
}

/// The answer to the oldest request; waits for ever if there is none. Nothing is lost if it is dropped before.
async fn front(flights: &mut VecDeque<Flight>) -> Result<ProduceResponse, ClientError> {
    match flights.front_mut() {
        Some(flight) => flight.answer.as_mut().await,
        None => pending().await,
    }
}
