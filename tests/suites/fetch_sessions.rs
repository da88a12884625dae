//! Fetch sessions are Apache Kafka's: random requests, sent to it and to the host, are answered alike. Error codes, the
//! partitions that appear, their positions and their records are compared; session ids and topic ids are each side's own.

use anyhow::{Context, ensure};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;
use verbatim_batch::{BatchBuilder, NewRecord, frames};
use verbatim_tests::host::Home;
use verbatim_tests::kafka::Kafka;
use verbatim_tests::random::Random;
use verbatim_tests::{soak, wait_for};
use verbatim_wire::client::{ClientConfig, Connection};
use verbatim_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use verbatim_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use verbatim_wire::messages::delete_topics_request::DeleteTopicState;
use verbatim_wire::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use verbatim_wire::messages::fetch_response::PartitionData;
use verbatim_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use verbatim_wire::messages::*;
use verbatim_wire::protocol::{Request, StrBytes};

/// Topics that come and go; the last is never there.
const TOPICS: [&str; 5] = ["ash", "beech", "cedar", "elm", "none"];
/// Partitions of each topic.
const PARTITIONS: i32 = 2;
/// The first Fetch version that names topics by id.
const IDS_FROM: i16 = 13;
/// What a run must have met: answers by top-level code, partitions by code and by what they tell.
const MUST_MEET: [&str; 14] = [
    "answer 0",
    "answer 70",
    "answer 71",
    "answer 106",
    "nothing new",
    "partition 0",
    "partition 1",
    "partition 3",
    "partition 75",
    "partition 100",
    "partition 103",
    "diverging",
    "records",
    "positions",
];
/// The first Fetch version that names the last fetched epoch.
const EPOCHS_FROM: i16 = 12;
/// More than all records have.
const PLENTY: i32 = 1 << 20;

#[test]
fn random_sessions_are_answered_as_apache_kafka_answers_them() -> anyhow::Result<()> {
    let Some(kafka) = Kafka::start()? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    let mut random = Random::announced("fetch sessions")?;
    let sides = [Side::connect(host.address())?, Side::connect(kafka.bootstrap().parse()?)?];
    let mut world = World::new(sides);
    let steps = if soak() { 20_000 } else { 1_500 };
    let mut history = Vec::new();
    for step in 0..steps {
        let done = world.step(&mut random, &mut history);
        let last = history.iter().rev().take(12).rev().cloned().collect::<Vec<_>>().join("\n");
        done.with_context(|| format!("step {step}, after\n{last}"))?;
    }
    let missing: Vec<_> = MUST_MEET.iter().filter(|met| !world.compared.contains_key(**met)).collect();
    ensure!(missing.is_empty(), "{missing:?} were not met: {:?}", world.compared);
    verbatim_tests::announce(&format!("fetch sessions: {:?}", world.compared));
    host.stop()
}

/// One broker, and what is its own.
struct Side {
    runtime: tokio::runtime::Runtime,
    connection: Connection,
    /// Ids by topic and how often it was created.
    ids: HashMap<(usize, u32), uuid::Uuid>,
    /// Ids of the sessions, in the order in which they began.
    sessions: Vec<i32>,
}

/// Both brokers, and what is the same on both.
struct World {
    sides: [Side; 2],
    /// How often each topic was created, and whether it is there.
    topics: Vec<(u32, bool)>,
    sessions: Vec<Session>,
    /// How often each error code, and each kind of answer, was met.
    compared: BTreeMap<String, u32>,
}

struct Session {
    version: i16,
    epoch: i32,
    is_open: bool,
}

/// A partition as a request names it: the topic, how often it had been created then, the index.
type Key = (usize, u32, i32);

/// A Fetch without what each side names in its own way.
#[derive(Clone, Debug)]
struct Ask {
    version: i16,
    /// The session's number; nothing for none.
    session: Option<usize>,
    epoch: i32,
    max_bytes: i32,
    isolation_level: i8,
    partitions: Vec<(Key, Position)>,
    forgotten: Vec<Key>,
}

/// Where and how a partition is to be read.
#[derive(Clone, Copy, Debug)]
struct Position {
    offset: i64,
    current_epoch: i32,
    last_epoch: i32,
    max_bytes: i32,
}

/// An answer without what is each side's own.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    error_code: i16,
    has_session: bool,
    partitions: BTreeMap<Key, Told>,
}

#[derive(Debug, PartialEq, Eq)]
struct Told {
    error_code: i16,
    high_watermark: i64,
    stable_offset: i64,
    start: i64,
    diverging: (i32, i64),
    records: Bytes,
}

impl Told {
    /// Without the bytes.
    fn brief(&self) -> String {
        let positions = (self.start, self.stable_offset, self.high_watermark);
        let (code, diverging, bytes) = (self.error_code, self.diverging, self.records.len());
        format!("error {code}, positions {positions:?}, diverging {diverging:?}, {bytes} bytes")
    }

    fn kind(&self) -> String {
        let kind = match self {
            Self { records, .. } if !records.is_empty() => "records",
            Self { diverging: (0.., _), .. } => "diverging",
            Self { error_code: 0, .. } => "positions",
            _ => "error",
        };
        kind.to_owned()
    }
}

impl World {
    fn new(sides: [Side; 2]) -> Self {
        let topics = vec![(0, false); TOPICS.len()];
        Self { sides, topics, sessions: Vec::new(), compared: BTreeMap::new() }
    }

    fn step(&mut self, random: &mut Random, history: &mut Vec<String>) -> anyhow::Result<()> {
        let topic = usize::try_from(random.below(4))?;
        let index = i32::try_from(random.below(2))?;
        let (_, is_there) = *self.topics.get(topic).context("no such topic")?;
        match random.below(100) {
            0..=2 if is_there => {
                history.push(format!("delete {topic}"));
                self.set_there(topic, false)
            }
            0..=19 if !is_there => {
                history.push(format!("create {topic}"));
                self.set_there(topic, true)
            }
            3..=19 => {
                history.push(format!("produce {topic} {index}"));
                let batches = vec![batch()?; usize::try_from(1 + random.below(3))?];
                batches.iter().try_for_each(|batch| self.both(|side| side.produce(topic, index, batch)))
            }
            20..=22 if is_there => {
                let offset = i64::try_from(random.below(8))?;
                history.push(format!("delete records {topic} {index} {offset}"));
                self.both(|side| side.delete_records(topic, index, offset))
            }
            _ => {
                let ask = self.ask(random)?;
                history.push(format!("{ask:?}"));
                self.fetch(&ask)
            }
        }
    }

    fn set_there(&mut self, topic: usize, is_there: bool) -> anyhow::Result<()> {
        let known = self.topics.get_mut(topic).context("no such topic")?;
        *known = (known.0 + u32::from(is_there), is_there);
        let created = known.0;
        for side in &mut self.sides {
            if is_there { side.create(topic, created)? } else { side.delete(topic)? }
        }
        Ok(())
    }

    /// What both sides answer is the same.
    fn both<T: Debug + PartialEq>(
        &mut self,
        mut done: impl FnMut(&mut Side) -> anyhow::Result<T>,
    ) -> anyhow::Result<()> {
        let [host, kafka] = &mut self.sides;
        let (ours, theirs) = (done(host)?, done(kafka)?);
        ensure!(ours == theirs, "the host answers\n{ours:?}\nand Apache Kafka\n{theirs:?}");
        Ok(())
    }

    fn ask(&self, random: &mut Random) -> anyhow::Result<Ask> {
        let open: Vec<usize> = (0..self.sessions.len()).filter(|number| self.is_open(*number)).collect();
        let begins = open.is_empty() || random.below(if open.len() < 4 { 6 } else { 30 }) == 0;
        let any = random.below(20) == 0;
        let count = if any { self.sessions.len() } else { open.len() };
        let at = usize::try_from(random.below(u64::try_from(count.max(1))?))?;
        let mut session = if any { Some(at).filter(|at| *at < count) } else { open.get(at).copied() };
        let known = session.and_then(|number| self.sessions.get(number));
        let (mut version, mut epoch) = known.map_or((0, 0), |session| (session.version, session.epoch));
        if begins {
            version = i16::try_from(7 + random.below(12))?;
            (session, epoch) = (session.filter(|_| random.below(3) == 0), 0);
        } else {
            match random.below(30) {
                0 => epoch = -1,
                1 => epoch += 1,
                2 => epoch = i32::try_from(random.below(4))? - 2,
                3 => version = other_version(version, i16::try_from(7 + random.below(12))?),
                4 => session = None,
                _ => {}
            }
        }
        let most = if epoch == 0 { 6 } else { 3 };
        let mut partitions = BTreeMap::new();
        for _ in 0..random.below(most) {
            partitions.insert(self.key(random, version)?, position(random)?);
        }
        let forgotten = if random.below(4) == 0 { vec![self.key(random, version)?] } else { Vec::new() };
        let batch = i32::try_from(batch()?.len())?;
        let max_bytes = pick(random, [1, batch, 3 * batch, PLENTY])?;
        let isolation_level = pick(random, [0, 1])?;
        let partitions = partitions.into_iter().collect();
        Ok(Ask { version, session, epoch, max_bytes, isolation_level, partitions, forgotten })
    }

    fn is_open(&self, number: usize) -> bool {
        self.sessions.get(number).is_some_and(|session| session.is_open)
    }

    /// A partition, at times of a topic that is gone or of an index that never was.
    fn key(&self, random: &mut Random, version: i16) -> anyhow::Result<Key> {
        let topic = if random.below(12) == 0 { 4 } else { usize::try_from(random.below(4))? };
        let created = self.topics.get(topic).map_or(0, |(created, _)| *created);
        let old = u32::from(random.below(15) == 0);
        let created = if version < IDS_FROM { 0 } else { created.saturating_sub(old) };
        let beyond = i32::from(random.below(30) == 0);
        Ok((topic, created, i32::try_from(random.below(2))? + beyond))
    }

    fn fetch(&mut self, ask: &Ask) -> anyhow::Result<()> {
        let [host, kafka] = &mut self.sides;
        let (ours, theirs) = (host.fetch(ask)?, kafka.fetch(ask)?);
        ensure!(ours == theirs, "{ask:?}\n{}", difference(&ours, &theirs));
        if let Some(session) = ask.session.and_then(|number| self.sessions.get_mut(number)) {
            match ours.error_code {
                0 if ours.has_session && ask.epoch > 0 => session.epoch += 1,
                0 | 70 => session.is_open = false,
                _ => {}
            }
        }
        if ask.epoch == 0 && ours.has_session {
            self.sessions.push(Session { version: ask.version, epoch: 1, is_open: true });
        }
        let nothing = (ours.has_session && ours.partitions.is_empty()).then(|| "nothing new".to_owned());
        let told =
            ours.partitions.values().flat_map(|told| [format!("partition {}", told.error_code), told.kind()]);
        for met in told.chain(nothing).chain([format!("answer {}", ours.error_code)]) {
            *self.compared.entry(met).or_default() += 1;
        }
        Ok(())
    }
}

impl Side {
    fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let connection = runtime.block_on(Connection::connect(address, ClientConfig::default()))?;
        let ids = (0..TOPICS.len()).map(|topic| ((topic, 0), uuid::Uuid::from_u128(77 + topic as u128)));
        Ok(Self { runtime, connection, ids: ids.collect(), sessions: Vec::new() })
    }

    fn call<R: Request>(&self, request: &R) -> anyhow::Result<R::Response> {
        Ok(self.runtime.block_on(self.connection.call(request))?)
    }

    fn create(&mut self, topic: usize, created: u32) -> anyhow::Result<()> {
        // The records are older than what is kept by default.
        let for_ever = CreatableTopicConfig::default()
            .with_name(StrBytes::from_static_str("retention.ms"))
            .with_value(Some(StrBytes::from_static_str("-1")));
        let new = CreatableTopic::default()
            .with_configs(vec![for_ever])
            .with_name(name(topic)?)
            .with_num_partitions(PARTITIONS)
            .with_replication_factor(1);
        let request = CreateTopicsRequest::default().with_timeout_ms(10_000).with_topics(vec![new]);
        let answer = self.call(&request)?.topics.pop().context("no topic in the answer")?;
        ensure!(answer.error_code == 0, "CreateTopics answered {answer:?}");
        self.ids.insert((topic, created), answer.topic_id);
        self.wait_until(topic, 0)
    }

    fn delete(&self, topic: usize) -> anyhow::Result<()> {
        let gone = DeleteTopicState::default().with_name(Some(name(topic)?));
        let request = DeleteTopicsRequest::default().with_timeout_ms(10_000).with_topics(vec![gone]);
        let answer = self.call(&request)?.responses.pop().context("no topic in the answer")?;
        ensure!(answer.error_code == 0, "DeleteTopics answered {answer:?}");
        self.wait_until(topic, 3)
    }

    /// Until every partition answers a Fetch with this code: Apache Kafka's broker learns of changes after they were made.
    fn wait_until(&self, topic: usize, code: i16) -> anyhow::Result<()> {
        let partitions = (0..PARTITIONS).map(|index| FetchPartition::default().with_partition(index));
        let asked = FetchTopic::default().with_topic(name(topic)?).with_partitions(partitions.collect());
        let request = FetchRequest::default().with_session_epoch(-1).with_topics(vec![asked]);
        wait_for("change of a topic", Duration::from_secs(30), || {
            let answer = self.runtime.block_on(self.connection.send(12, &request))?;
            let mut parts = answer.responses.iter().flat_map(|topic| &topic.partitions);
            Ok(parts.all(|part| part.error_code == code).then_some(()))
        })
    }

    fn produce(&self, topic: usize, index: i32, batch: &Bytes) -> anyhow::Result<(i16, i64)> {
        let partition = PartitionProduceData::default().with_index(index).with_records(Some(batch.clone()));
        let data = TopicProduceData::default().with_name(name(topic)?).with_partition_data(vec![partition]);
        let request =
            ProduceRequest::default().with_acks(-1).with_timeout_ms(10_000).with_topic_data(vec![data]);
        let answer = self.runtime.block_on(self.connection.send(12, &request))?;
        let mut parts = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
        let part = parts.next().context("no partition in the answer")?;
        Ok((part.error_code, part.base_offset))
    }

    fn delete_records(&self, topic: usize, index: i32, offset: i64) -> anyhow::Result<(i16, i64)> {
        let partition = DeleteRecordsPartition::default().with_partition_index(index).with_offset(offset);
        let topic = DeleteRecordsTopic::default().with_name(name(topic)?).with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default().with_timeout_ms(10_000).with_topics(vec![topic]);
        let answer = self.call(&request)?;
        let part = answer.topics.iter().flat_map(|topic| &topic.partitions).next();
        part.map(|part| (part.error_code, part.low_watermark)).context("no partition in the answer")
    }

    fn fetch(&mut self, ask: &Ask) -> anyhow::Result<Answer> {
        let request = self.fetch_request(ask)?;
        let answer = self.runtime.block_on(self.connection.send(ask.version, &request))?;
        if ask.epoch == 0 && answer.session_id != 0 {
            self.sessions.push(answer.session_id);
        } else if answer.session_id != 0 {
            ensure!(answer.session_id == request.session_id, "another session's id");
        }
        let mut partitions = BTreeMap::new();
        for topic in answer.responses {
            let (number, created) = if ask.version < IDS_FROM {
                (TOPICS.iter().position(|name| *name == topic.topic.as_str()), 0)
            } else {
                let known = self.ids.iter().find(|(_, id)| **id == topic.topic_id);
                (known.map(|((number, _), _)| *number), known.map_or(0, |((_, created), _)| *created))
            };
            let number = number.with_context(|| format!("topic `{:?}` {}", topic.topic, topic.topic_id))?;
            for part in topic.partitions {
                let key = (number, created, part.partition_index);
                ensure!(partitions.insert(key, told(part)).is_none(), "{key:?} appears twice");
            }
        }
        Ok(Answer { error_code: answer.error_code, has_session: answer.session_id != 0, partitions })
    }

    fn fetch_request(&self, ask: &Ask) -> anyhow::Result<FetchRequest> {
        let id = |(topic, created, _): &Key| self.ids.get(&(*topic, *created)).copied().unwrap_or_default();
        let topics = ask.partitions.iter().map(|(key, position)| {
            let asked =
                FetchTopic::default().with_partitions(vec![fetch_partition(ask.version, key.2, position)]);
            Ok(if ask.version < IDS_FROM {
                asked.with_topic(name(key.0)?)
            } else {
                asked.with_topic_id(id(key))
            })
        });
        let forgotten = ask.forgotten.iter().map(|key| {
            let asked = ForgottenTopic::default().with_partitions(vec![key.2]);
            Ok(if ask.version < IDS_FROM {
                asked.with_topic(name(key.0)?)
            } else {
                asked.with_topic_id(id(key))
            })
        });
        // 31 bits, and on neither side a session's id but by an extreme chance.
        let unknown = 1_234_567_890;
        let session = ask.session.map(|number| self.sessions.get(number).copied().unwrap_or(unknown));
        Ok(FetchRequest::default()
            .with_max_bytes(ask.max_bytes)
            .with_isolation_level(ask.isolation_level)
            .with_session_id(session.unwrap_or(if ask.epoch > 0 { unknown } else { 0 }))
            .with_session_epoch(ask.epoch)
            .with_topics(topics.collect::<anyhow::Result<_>>()?)
            .with_forgotten_topics_data(forgotten.collect::<anyhow::Result<_>>()?))
    }
}

fn difference(ours: &Answer, theirs: &Answer) -> String {
    let both = [("host", ours), ("Apache Kafka", theirs)];
    let heads = both.map(|(name, one)| format!("{name}: {}, session {}", one.error_code, one.has_session));
    let keys = ours.partitions.keys().chain(theirs.partitions.keys());
    let different = keys.filter(|key| ours.partitions.get(key) != theirs.partitions.get(key));
    let parts = different.flat_map(|key| {
        both.map(|(name, one)| format!("{name} {key:?}: {:?}", one.partitions.get(key).map(Told::brief)))
    });
    heads.into_iter().chain(parts).collect::<Vec<_>>().join("\n")
}

/// Apache Kafka may end records in the middle of a batch, which readers ignore.
fn told(part: PartitionData) -> Told {
    let records = part.records.unwrap_or_default();
    let whole = frames(&records).map(|frame| frame.bytes().len()).sum::<usize>();
    Told {
        error_code: part.error_code,
        high_watermark: part.high_watermark,
        stable_offset: part.last_stable_offset,
        start: part.log_start_offset,
        diverging: (part.diverging_epoch.epoch, part.diverging_epoch.end_offset),
        records: records.slice(..whole.min(records.len())),
    }
}

/// Bytes are such that nothing is left over beside whole batches.
fn position(random: &mut Random) -> anyhow::Result<Position> {
    let batch = i32::try_from(batch()?.len())?;
    Ok(Position {
        offset: i64::try_from(random.below(8))?,
        current_epoch: pick(random, [-1, -1, -1, -1, -1, 0, 0, 0, 0, 1])?,
        last_epoch: pick(random, [-1, -1, -1, -1, -1, 0, 0, 0, 0, 1])?,
        max_bytes: pick(random, [1, batch, 2 * batch, PLENTY])?,
    })
}

/// The version drawn, unless a session would have both sides of v12 in it: Apache Kafka cannot answer the older ones once it
/// was told a last fetched epoch, and gives 35.
fn other_version(version: i16, drawn: i16) -> i16 {
    let by_id = version.max(drawn) >= IDS_FROM;
    if by_id || (version < EPOCHS_FROM) == (drawn < EPOCHS_FROM) { drawn } else { version }
}

/// What the version has of it.
fn fetch_partition(version: i16, index: i32, position: &Position) -> FetchPartition {
    let since = |first, value| if version < first { -1 } else { value };
    FetchPartition::default()
        .with_partition(index)
        .with_fetch_offset(position.offset)
        .with_current_leader_epoch(since(9, position.current_epoch))
        .with_last_fetched_epoch(since(EPOCHS_FROM, position.last_epoch))
        .with_partition_max_bytes(position.max_bytes)
}

/// Always the same, so that what is left of a limit does not depend on who took what.
fn batch() -> anyhow::Result<Bytes> {
    let record = NewRecord::new(0, 1_700_000_000_000).value(b"leaves");
    Ok(BatchBuilder::new(0).leader_epoch(0).record(record).build()?.into())
}

fn pick<T: Copy, const N: usize>(random: &mut Random, choices: [T; N]) -> anyhow::Result<T> {
    let at = usize::try_from(random.below(u64::try_from(N)?))?;
    choices.get(at).copied().context("nothing to pick from")
}

fn name(topic: usize) -> anyhow::Result<TopicName> {
    let name = TOPICS.get(topic).context("no such topic")?;
    Ok(TopicName(StrBytes::from_static_str(name)))
}
