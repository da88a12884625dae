//! A model of a host with exact partitions, small enough to be seen to be right, that fails on demand.
//!
//! It keeps the rules of `docs/TAG.md` that a producer can meet: compare-and-append with epochs (R19, R22), holes (R20),
//! repetitions (R21, R26b), divergence (R23), falling epochs (R28), truncation (R31), the source topic id (R26). What a log
//! holds is kept as plain bytes. Requests are carried out as they are admitted, in their order; faults come on top.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::Notify;
use uuid::Uuid;
use verbatim_batch::frames;
use verbatim_wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult,
};
use verbatim_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use verbatim_wire::messages::produce_request::PartitionProduceData;
use verbatim_wire::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use verbatim_wire::messages::{
    DescribeConfigsResponse, MetadataResponse, ProduceRequest, ProduceResponse, TopicName,
};
use verbatim_wire::protocol::StrBytes;
use verbatim_wire::server::{Config, Reply, ReplyFuture, RequestContext, Server, Service};
use verbatim_wire::tag::{AnswerTag, EpochEntry, RequestTag, request_tag, set_answer_tag};
use verbatim_wire::{ApiKey, Request, response};

pub(crate) const TOPIC: &str = "copy";

/// What happens to one Produce request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing unusual.
    None,
    /// The connection closes; nothing was done.
    CutBefore,
    /// It is done; the connection closes instead of the answer.
    CutAfter,
    /// It is done twice, as by a repeating network; the second answer counts.
    Twice,
    /// So many batches are stored, and the epoch that the next would bring; then the host is killed.
    Killed(usize),
    /// The partition of this number in the request answers this code; nothing of it was done.
    Fails(usize, i16),
    /// It is done, and is never answered.
    Unanswered,
}

/// One partition's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) batches: Vec<Bytes>,
    pub(crate) entries: Vec<EpochEntry>,
    pub(crate) end: i64,
    pub(crate) shown_epoch: Option<i32>,
    /// The source's position as last declared.
    pub(crate) source: (i64, i64),
}

/// Chooses a fault by a request's number and the batches of each of its partitions.
type Faults = Box<dyn FnMut(usize, &[usize]) -> Fault + Send>;

/// The host, shared between its connections and the test.
pub(crate) struct Model {
    pub(crate) logs: Mutex<HashMap<i32, Log>>,
    pub(crate) topic_id: Mutex<Uuid>,
    pub(crate) source_topic_id: [u8; 16],
    /// What DescribeConfigs says of `produce.at.offset`.
    pub(crate) property: Option<&'static str>,
    /// False: tagged fields are ignored and records appended, as a broker does that does not know them.
    pub(crate) knows_tag: bool,
    /// Asked for each Produce request that is no probe.
    pub(crate) faults: Mutex<Faults>,
    pub(crate) seen: Mutex<Seen>,
    /// Answers wait for it while it is held.
    pub(crate) gate: tokio::sync::RwLock<()>,
    pub(crate) arrived: Notify,
}

/// What arrived so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) probes: usize,
    /// Questions about a topic and its partitions (Metadata).
    pub(crate) topics: usize,
    /// Produce requests that are no probes.
    pub(crate) requests: usize,
    /// The largest number of batches for one partition, and of partitions, in a request.
    pub(crate) batches_max: usize,
    pub(crate) partitions_max: usize,
    /// Requests that carried records, to be counted where none may come.
    pub(crate) with_records: usize,
}

impl Model {
    pub(crate) fn new(partitions: i32) -> Self {
        Self {
            logs: Mutex::new((0..partitions).map(|partition| (partition, Log::default())).collect()),
            topic_id: Mutex::new(Uuid::from_u128(7)),
            source_topic_id: [0; 16],
            property: Some("true"),
            knows_tag: true,
            faults: Mutex::new(Box::new(|_, _| Fault::None)),
            seen: Mutex::default(),
            gate: tokio::sync::RwLock::new(()),
            arrived: Notify::new(),
        }
    }

    pub(crate) fn with_faults(self, faults: impl FnMut(usize, &[usize]) -> Fault + Send + 'static) -> Self {
        *self.faults.lock().unwrap() = Box::new(faults);
        self
    }

    /// Serves on a free port for as long as the runtime lives.
    pub(crate) async fn serve(self) -> (SocketAddr, Arc<Self>) {
        let server = Server::bind("127.0.0.1:0", Config::default()).await.unwrap();
        let address = server.local_addr().unwrap();
        let model = Arc::new(self);
        tokio::spawn(server.run(Arc::new(Host(Arc::clone(&model))), std::future::pending()));
        (address, model)
    }

    pub(crate) fn log(&self, partition: i32) -> Log {
        self.logs.lock().unwrap()[&partition].clone()
    }

    pub(crate) fn change(&self, partition: i32, change: impl FnOnce(&mut Log)) {
        change(self.logs.lock().unwrap().get_mut(&partition).unwrap());
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// `None` if it is never answered.
    fn carry_out(&self, request: &ProduceRequest, version: i16) -> Option<Reply> {
        let entries: Vec<&PartitionProduceData> =
            request.topic_data.iter().flat_map(|topic| &topic.partition_data).collect();
        let batches: Vec<usize> = entries
            .iter()
            .map(|entry| frames(entry.records.as_deref().unwrap_or_default()).count())
            .collect();
        let is_probe = entries
            .iter()
            .any(|entry| request_tag(entry).unwrap().is_some_and(|tag| tag.expected_end == i64::MAX));
        let number = self.count(is_probe, &batches);
        let fault = if is_probe { Fault::None } else { self.faults.lock().unwrap()(number, &batches) };
        if fault == Fault::CutBefore {
            return Some(Reply::Close { reason: "before".to_owned() });
        }
        let id = *self.topic_id.lock().unwrap();
        let mut responses = Vec::new();
        let mut at = 0;
        for topic in &request.topic_data {
            let known = if version >= 13 { topic.topic_id == id } else { topic.name.as_str() == TOPIC };
            let mut answers = Vec::new();
            for entry in &topic.partition_data {
                let mut answer = self.answer(entry, fault, at, known, version);
                if fault == Fault::Twice {
                    answer = self.answer(entry, fault, at, known, version);
                }
                answers.push(answer);
                at += 1;
            }
            responses.push(
                TopicProduceResponse::default()
                    .with_name(topic.name.clone())
                    .with_topic_id(topic.topic_id)
                    .with_partition_responses(answers),
            );
        }
        match fault {
            Fault::Unanswered => None,
            Fault::CutAfter | Fault::Killed(_) => Some(Reply::Close { reason: "after".to_owned() }),
            _ => Some(Reply::Answer(ProduceResponse::default().with_responses(responses).into())),
        }
    }

    fn count(&self, is_probe: bool, batches: &[usize]) -> usize {
        let mut seen = self.seen.lock().unwrap();
        seen.probes += usize::from(is_probe);
        seen.requests += usize::from(!is_probe);
        seen.batches_max = seen.batches_max.max(batches.iter().copied().max().unwrap_or(0));
        seen.partitions_max = seen.partitions_max.max(batches.len());
        seen.with_records += usize::from(batches.iter().any(|count| *count > 0));
        seen.requests
    }

    fn answer(
        &self,
        entry: &PartitionProduceData,
        fault: Fault,
        at: usize,
        known: bool,
        version: i16,
    ) -> PartitionProduceResponse {
        let mut logs = self.logs.lock().unwrap();
        let log = logs.get_mut(&entry.index).filter(|_| known);
        let Some(log) = log else {
            return refusal(entry.index, if version >= 13 { 100 } else { 3 }, "no such topic");
        };
        let records = entry.records.clone().unwrap_or_default();
        let Some(tag) = request_tag(entry).unwrap().filter(|_| self.knows_tag) else {
            log.batches.push(records);
            return PartitionProduceResponse::default().with_index(entry.index);
        };
        let judged = match fault {
            Fault::Fails(which, code) if which == at => Err((code, "on demand".to_owned(), None)),
            Fault::Killed(count) => log.killed_within(&tag, &records, count),
            _ if tag.source_topic_id != self.source_topic_id => {
                Err((103, "another source topic id".to_owned(), None))
            }
            _ => log.produce(&tag, &records),
        };
        let (code, message, diverged) = judged.err().unwrap_or((0, String::new(), None));
        let mut answer = refusal(entry.index, code, &message);
        let last_epoch = log.entries.last().map_or(-1, |entry| entry.epoch);
        let shown_epoch = log.shown_epoch.unwrap_or(-1);
        set_answer_tag(&mut answer, &AnswerTag { end: log.end, shown_epoch, last_epoch, diverged });
        answer
    }
}

fn refusal(index: i32, code: i16, message: &str) -> PartitionProduceResponse {
    PartitionProduceResponse::default()
        .with_index(index)
        .with_error_code(code)
        .with_error_message(Some(StrBytes::from_string(message.to_owned())))
}

/// Code, message, first diverged offset.
type Refusal = (i16, String, Option<i64>);

impl Log {
    /// All bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.batches.concat()
    }

    pub(crate) fn produce(&mut self, tag: &RequestTag, records: &Bytes) -> Result<(), Refusal> {
        let batches: Vec<Bytes> = frames(records).map(|frame| records.slice(frame.range())).collect();
        let run = batches.iter().take_while(|batch| self.batches.contains(batch)).count();
        let overtaken = |entry: &EpochEntry| run > 0 && self.epoch_at(entry.start) > entry.epoch;
        let held = tag.entries.iter().all(|entry| self.entries.contains(entry) || overtaken(entry));
        let reached = tag.end_to.map_or(!batches.is_empty(), |end| end <= self.end);
        if tag.truncate_to.is_none() && run == batches.len() && held && reached {
            return Ok(());
        }
        let goes_on = run > 0 && span(&batches[run - 1]).1 == self.end && tag.truncate_to.is_none();
        let mut log = self.clone();
        if !goes_on {
            log.fits(tag, &batches)?;
        }
        log.apply(tag, if goes_on { &batches[run..] } else { &batches })?;
        *self = log;
        Ok(())
    }

    /// A kill within an append: some whole batches and the epochs up to the next one are there, and nobody knows.
    fn killed_within(&mut self, tag: &RequestTag, records: &Bytes, count: usize) -> Result<(), Refusal> {
        let batches: Vec<Bytes> = frames(records).map(|frame| records.slice(frame.range())).collect();
        let count = count.min(batches.len());
        if tag.truncate_to.is_some() || count == 0 {
            return Ok(());
        }
        let kept: Bytes = batches[..count].concat().into();
        let end = span(&batches[count - 1]).1;
        let mut entries = tag.entries.clone();
        entries.retain(|entry| entry.start <= end);
        let mut part = RequestTag { end_to: None, entries, ..tag.clone() };
        // An entry at the new end is legal only with the end declared.
        if part.entries.last().is_some_and(|entry| entry.start == end) {
            part.end_to = Some(end);
        }
        self.produce(&part, &kept)
    }

    /// R22, R23 (and R31 before them).
    fn fits(&mut self, tag: &RequestTag, batches: &[Bytes]) -> Result<(), Refusal> {
        let cut = tag.truncate_to.unwrap_or(self.end);
        if tag.truncate_to.is_some() && cut == self.end {
            return Ok(());
        }
        let at = if self.end == tag.expected_end { self.epoch_at(cut - 1) } else { i32::MIN };
        if at != tag.epoch_before {
            let text = format!("the log ends at {}, expected end=`{}`", self.end, tag.expected_end);
            return Err((1, text, None));
        }
        for batch in batches {
            let (base, _, _) = span(batch);
            if base < cut && !self.batches.contains(batch) {
                return Err((87, "diverged".to_owned(), Some(base)));
            }
        }
        Ok(())
    }

    fn apply(&mut self, tag: &RequestTag, batches: &[Bytes]) -> Result<(), Refusal> {
        if let Some(cut) = tag.truncate_to {
            self.batches.retain(|batch| span(batch).1 <= cut);
            self.entries.retain(|entry| entry.start < cut);
            self.end = cut;
        }
        let mut entries = Vec::new();
        for entry in tag.entries.iter().filter(|entry| !self.entries.contains(entry)) {
            if entry.start < self.end {
                return Err((42, format!("epoch {} begins below the end", entry.epoch), None));
            }
            entries.push(*entry);
        }
        let mut entries = entries.into_iter().peekable();
        for batch in batches {
            let (base, next, epoch) = span(batch);
            if base < self.end {
                return Err((87, "overlaps".to_owned(), Some(base)));
            }
            while let Some(entry) = entries.next_if(|entry| entry.start <= base) {
                self.begin(entry);
            }
            if epoch < self.entries.last().map_or(0, |entry| entry.epoch) {
                return Err((74, format!("epoch {epoch} is below the last entry's"), None));
            }
            self.begin(EpochEntry { epoch, start: base });
            self.batches.push(batch.clone());
            self.end = next;
        }
        entries.for_each(|entry| self.begin(entry));
        if let Some(end) = tag.end_to {
            if end < self.end {
                return Err((42, format!("end to is below {}", self.end), None));
            }
            self.end = end;
        }
        self.shown_epoch = self.shown_epoch.max(Some(tag.source_epoch));
        self.source = (tag.source_start, tag.source_end);
        Ok(())
    }

    /// An epoch above the last one begins; one that began at the same offset leaves no entry.
    pub(crate) fn begin(&mut self, entry: EpochEntry) {
        if self.entries.last().is_none_or(|last| entry.epoch > last.epoch) {
            self.entries.retain(|known| known.start < entry.start);
            self.entries.push(entry);
        }
    }

    fn epoch_at(&self, offset: i64) -> i32 {
        self.entries.iter().rfind(|entry| entry.start <= offset).map_or(-1, |entry| entry.epoch)
    }
}

/// Base offset, end and epoch of a batch.
pub(crate) fn span(batch: &[u8]) -> (i64, i64, i32) {
    let header = verbatim_batch::Header::read(batch).unwrap();
    (header.base_offset, header.next_offset().unwrap(), header.leader_epoch)
}

struct Host(Arc<Model>);

impl Service for Host {
    async fn admit(&self, context: RequestContext, request: Request) -> ReplyFuture {
        let model = &self.0;
        let reply = match request {
            Request::ApiVersions(_) => Reply::Answer(response::api_versions(|key| self.serves(key)).into()),
            Request::Metadata(_) => {
                model.seen.lock().unwrap().topics += 1;
                let topic_id = *model.topic_id.lock().unwrap();
                let partitions = model.logs.lock().unwrap().len();
                let partition = |index| MetadataResponsePartition::default().with_partition_index(index);
                let topic = MetadataResponseTopic::default()
                    .with_name(Some(TopicName(StrBytes::from_static_str(TOPIC))))
                    .with_topic_id(topic_id)
                    .with_partitions((0..i32::try_from(partitions).unwrap()).map(partition).collect());
                Reply::Answer(MetadataResponse::default().with_topics(vec![topic]).into())
            }
            Request::DescribeConfigs(_) => {
                let row = |value| {
                    DescribeConfigsResourceResult::default()
                        .with_name(StrBytes::from_static_str("produce.at.offset"))
                        .with_value(Some(StrBytes::from_static_str(value)))
                };
                let result = DescribeConfigsResult::default()
                    .with_configs(model.property.map(row).into_iter().collect());
                Reply::Answer(DescribeConfigsResponse::default().with_results(vec![result]).into())
            }
            Request::Produce(request) => {
                let reply = model.carry_out(&request, context.head.version);
                model.arrived.notify_one();
                match reply {
                    Some(reply) => reply,
                    None => return Box::pin(std::future::pending()),
                }
            }
            other => Reply::Close { reason: format!("{:?} is not served", other.key()) },
        };
        let model = Arc::clone(model);
        Box::pin(async move {
            let _open = model.gate.read().await;
            reply
        })
    }

    fn serves(&self, key: ApiKey) -> bool {
        matches!(key, ApiKey::ApiVersions | ApiKey::Metadata | ApiKey::DescribeConfigs | ApiKey::Produce)
    }
}
