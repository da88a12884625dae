//! Where is mirrored from: a real Kafka, or a host that holds captured logs of one, behind a proxy.

use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::Runtime;
use verbatim_batch::{Header, frames};
use verbatim_tests::answers::{Answers, times_of};
use verbatim_tests::captures;
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch};
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::maker::Maker;
use verbatim_tests::kafka::{Kafka, LIVELY};
use verbatim_tests::proxy::{Fault, Faults, Proxy};
use verbatim_tests::segments;
use verbatim_wire::exact_producer::{Config, ExactProducer};

/// The topic that grows while it is mirrored.
pub(super) const FLOW: &str = "flow";
const FLOW_PARTITIONS: u32 = 2;

/// Topics of the Kafka that stay as they are, with their numbers of partitions.
const TOPICS: &[(&str, u32)] = &[("packed", 5), ("transactions", 2), ("long", 2), ("empty", 1)];

/// What is written there under each leader epoch.
const ROUND: &str = "
    write packed 0 {round} 6 20 compression.type=none enable.idempotence=false
    write packed 1 {round} 6 20 compression.type=gzip
    write packed 2 {round} 6 20 compression.type=snappy
    write packed 3 {round} 6 20 compression.type=lz4
    write packed 4 {round} 6 20 compression.type=zstd enable.idempotence=false
    transact transactions 0 {round} 7 commit first
    transact transactions 0 {round} 5 begin second
    transact transactions 0 {round} 6 abort first
    transact transactions 1 {round} 3 begin second
    transact transactions 0 {round} 4 commit second
    transact transactions 1 {round} 3 abort first
    write long 0 {round} 200 40 client.id=one
    write long 1 {round} 400 10 enable.idempotence=false
";

/// A source that is reached through a proxy.
#[derive(Debug)]
pub(super) struct Source {
    proxy: Proxy,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Apache Kafka, and the program that fills it.
    Kafka(Box<Kafka>, Maker),
    /// A host, and who writes to its growing topic.
    Host(Box<(Home, Host)>, Option<Flow>),
}

/// What a copy of a partition must be like.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) topic: String,
    pub(super) index: u32,
    /// The log from the batch on that the log start lies in.
    pub(super) log: Vec<u8>,
    pub(super) answers: Answers,
    pub(super) times: Vec<i64>,
    /// True if nothing is missing at its start, or within.
    pub(super) is_whole: bool,
}

impl Source {
    /// A Kafka with three leader epochs. `None` without Java.
    pub(super) fn kafka(seed: u64) -> anyhow::Result<Option<Self>> {
        let proxy = Proxy::bind(0, Faults::NONE)?;
        let Some(mut kafka) = Kafka::start_behind(&proxy, LIVELY)? else { return Ok(None) };
        let Some(mut maker) = Maker::start(&kafka.bootstrap(), seed)? else { return Ok(None) };
        for (topic, partitions) in TOPICS.iter().chain(&[(FLOW, FLOW_PARTITIONS)]) {
            maker.run(&format!("create {topic} {partitions} 1 retention.ms=-1"))?;
        }
        for round in 1..=3 {
            maker.run_all(&ROUND.replace("{round}", &round.to_string()))?;
            kafka.stop(1)?;
            kafka.start_again(1)?;
        }
        maker
            .run_all("transact transactions 1 4 3 commit second\n transact transactions 1 4 3 begin first")?;
        Ok(Some(Self { proxy, kind: Kind::Kafka(Box::new(kafka), maker) }))
    }

    /// A host that holds the captured logs, and an empty topic to grow.
    pub(super) fn host() -> anyhow::Result<Self> {
        let proxy = Proxy::bind(0, Faults::NONE)?;
        let home = Home::new()?.arguments(&["--advertise", &proxy.address().to_string()]);
        let host = home.start()?;
        proxy.forward_to(host.address());
        let captures = captures::all()?;
        let mut topics: BTreeMap<&str, u32> = BTreeMap::new();
        for capture in &captures {
            *topics.entry(capture.partition.topic).or_default() += 1;
        }
        for (topic, partitions) in topics {
            host.create_topic(topic, partitions, &[EXACT])?;
        }
        host.create_topic(FLOW, FLOW_PARTITIONS, &[])?;
        Runtime::new()?.block_on(async {
            let producer = ExactProducer::start(Config::new(host.bootstrap()));
            for capture in &captures {
                capture.write(&producer).await.with_context(|| format!("{:?}", capture.partition))?;
            }
            anyhow::Ok(())
        })?;
        Ok(Self { proxy, kind: Kind::Host(Box::new((home, host)), None) })
    }

    /// Where the mirror reaches it.
    pub(super) fn bootstrap(&self) -> String {
        self.proxy.address().to_string()
    }

    /// The Kafka that it is.
    pub(super) fn broker(&mut self) -> anyhow::Result<&mut Kafka> {
        match &mut self.kind {
            Kind::Kafka(kafka, _) => Ok(kafka),
            Kind::Host(..) => anyhow::bail!("it is a host"),
        }
    }

    /// Breaks what passes between it and the mirror from now on.
    pub(super) fn set_faults(&self, faults: Faults) {
        self.proxy.set_faults(faults);
    }

    /// What was broken so far.
    pub(super) fn done(&self) -> BTreeMap<Fault, u32> {
        self.proxy.done()
    }

    /// Lets the growing topic grow.
    pub(super) fn flow(&mut self) -> anyhow::Result<()> {
        match &mut self.kind {
            Kind::Kafka(_, maker) => {
                maker.run(&format!("stream {FLOW} {FLOW_PARTITIONS} compression.type=lz4 linger.ms=0"))
            }
            Kind::Host(parts, flow) => {
                *flow = Some(Flow::start(parts.1.address()));
                Ok(())
            }
        }
    }

    /// Ends its growth.
    pub(super) fn halt(&mut self) -> anyhow::Result<()> {
        match &mut self.kind {
            Kind::Kafka(_, maker) => maker.run("halt"),
            Kind::Host(_, flow) => flow.take().context("nothing flows")?.halt(),
        }
    }

    /// What copies of these topics must be like; all but the growing one if none are named.
    pub(super) fn expected(&self, topics: &[&str]) -> anyhow::Result<Vec<Expected>> {
        let all: Vec<(&str, u32, bool)> = match &self.kind {
            Kind::Kafka(..) => {
                let of = |(topic, count): &(&'static str, u32)| {
                    let topic = *topic;
                    (0..*count).map(move |index| (topic, index, true))
                };
                TOPICS.iter().chain(&[(FLOW, FLOW_PARTITIONS)]).flat_map(of).collect()
            }
            Kind::Host(..) => {
                let flow = (0..FLOW_PARTITIONS).map(|index| (FLOW, index, true));
                let kept = captures::all()?.into_iter().map(|capture| capture.partition);
                let kept = kept.map(|kept| (kept.topic, kept.index.unsigned_abs(), kept.is_whole));
                kept.chain(flow).collect()
            }
        };
        let wanted = |topic| if topics.is_empty() { topic != FLOW } else { topics.contains(&topic) };
        let all = all.into_iter().filter(|(topic, ..)| wanted(*topic));
        all.map(|(topic, index, is_whole)| self.expect(topic, index, is_whole)).collect()
    }

    fn expect(&self, topic: &str, index: u32, is_whole: bool) -> anyhow::Result<Expected> {
        let (data, addresses): (PathBuf, Vec<SocketAddr>) = match &self.kind {
            Kind::Kafka(kafka, _) => (kafka.data(), kafka.addresses()),
            Kind::Host(parts, _) => (parts.0.data(), vec![parts.1.address()]),
        };
        let times = times_of(&segments::log_bytes(&data, topic, index)?)?;
        let ask = || Answers::ask(&addresses, (topic, i32::try_from(index)?), &times);
        let mut answers = ask()?;
        // Kafka ends transactions in the background: what it says has to stay.
        verbatim_tests::wait_for("answers that stay", Duration::from_secs(60), || {
            thread::sleep(Duration::from_millis(50));
            let again = ask()?;
            let stays = again == answers;
            answers = again;
            Ok(stays.then_some(()))
        })?;
        let log = from_start(&segments::log_bytes(&data, topic, index)?, answers.earliest.offset)?;
        Ok(Expected { topic: topic.to_owned(), index, log, answers, times, is_whole })
    }
}

/// The batches that end behind the log start.
fn from_start(log: &[u8], start: i64) -> anyhow::Result<Vec<u8>> {
    let headers = segments::headers(log)?;
    let kept = frames(log).zip(&headers).filter(|(_, header)| Header::next_offset(header) > Some(start));
    Ok(kept.flat_map(|(frame, _)| frame.bytes().to_vec()).collect())
}

/// A thread that writes to all partitions of the growing topic.
#[derive(Debug)]
pub(super) struct Flow {
    halted: Arc<AtomicBool>,
    writer: JoinHandle<anyhow::Result<()>>,
}

impl Flow {
    fn start(address: SocketAddr) -> Self {
        let halted = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&halted);
        let writer = thread::spawn(move || {
            let client = Client::connect(address)?;
            for round in 0_u64.. {
                if until.load(Ordering::Relaxed) {
                    break;
                }
                for index in 0..i32::try_from(FLOW_PARTITIONS)? {
                    let values = [format!("{round} of {index}"), "x".repeat(usize::try_from(round % 900)?)];
                    let values: Vec<&str> = values.iter().map(String::as_str).collect();
                    let answer = client.produce((FLOW, index), None, &batch(0, 0, &values)?)?;
                    ensure!(answer.error_code == 0, "{answer:?}");
                }
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        });
        Self { halted, writer }
    }

    fn halt(self) -> anyhow::Result<()> {
        self.halted.store(true, Ordering::Relaxed);
        self.writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?
    }
}
