//! Where is mirrored from: a real Kafka, or a host that holds captured logs of one, behind a proxy.

use super::PATIENCE;
use super::flow::Flow;
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use verbatim_batch::Header;
use verbatim_tests::answers::{Answers, times_of};
use verbatim_tests::captures;
use verbatim_tests::exact::EXACT;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::maker::Maker;
use verbatim_tests::kafka::{Kafka, LIVELY};
use verbatim_tests::proxy::{Fault, Faults, Proxy};
use verbatim_tests::random::Random;
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

/// What comes into the growing topic between kills.
const STIR: &str = "
    transact flow 1 {round} 3 abort third
    transact flow 0 {round} 5 commit first
    transact flow 1 {round} 5 commit first
    transact flow 0 {round} 4 abort second
    transact flow 1 {round} 4 abort second
    write flow 0 {round} 2 6 client.id=one
    write flow 1 {round} 2 6 client.id=one
    transact flow 0 {round} 2 begin third
    transact flow 1 {round} 4 begin third
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
    /// The log as it lies in the source's files, which may begin before the log start.
    pub(super) log: Vec<u8>,
    pub(super) answers: Answers,
    pub(super) times: Vec<i64>,
    /// True if nothing is missing at its start, or within.
    pub(super) is_whole: bool,
}

impl Expected {
    /// Makes sure that it holds what the growing topic is to hold: tests with it show something only then.
    pub(super) fn has_more_than_plain_data(&self) -> anyhow::Result<()> {
        let headers = segments::headers(&self.log)?;
        let control = headers.iter().filter(|header| header.attributes.is_control()).count();
        let is_idempotent = |header: &&Header| header.has_producer() && !header.attributes.is_transactional();
        let idempotent = headers.iter().filter(is_idempotent).count();
        let open = self.answers.high_watermark - self.answers.last_stable_offset;
        let aborted = self.answers.aborted.len();
        let is_there = control > 1 && idempotent > 0 && open > 0;
        ensure!(
            is_there && (aborted > 0 || !self.is_whole),
            "{}-{}: {control} markers, {idempotent} idempotent batches, {aborted} aborted transactions, {open} offsets in open ones",
            self.topic,
            self.index
        );
        ensure!(self.is_whole || self.answers.earliest.offset > 0, "the log start has not moved");
        Ok(())
    }
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
        host.create_topic(FLOW, FLOW_PARTITIONS, &[EXACT])?;
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
    pub(super) fn flow(&mut self, seed: u64) -> anyhow::Result<()> {
        match &mut self.kind {
            Kind::Kafka(_, maker) => {
                maker.run(&format!("stream {FLOW} {FLOW_PARTITIONS} compression.type=lz4 linger.ms=0"))
            }
            Kind::Host(parts, flow) => {
                *flow = Some(Flow::start(parts.1.address(), FLOW_PARTITIONS, seed));
                Ok(())
            }
        }
    }

    /// Brings more than plain data into it, for the so-manyth time: transactions, of which one stays open until the next time,
    /// and an idempotent producer. And lets its first partition start anywhere below where the copy ends.
    pub(super) fn stir(&mut self, time: u64, copied: i64, random: &mut Random) -> anyhow::Result<()> {
        let start = i64::try_from(random.below(copied.unsigned_abs()))?;
        match &mut self.kind {
            Kind::Kafka(_, maker) => {
                maker.run_all(&STIR.replace("{round}", &time.to_string()))?;
                maker.run(&format!("trim {FLOW} 0 {start}"))
            }
            // The rest is written all the time.
            Kind::Host(_, flow) => {
                flow.as_ref().context("nothing flows")?.trim(start);
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
        // Its first partition's start moves.
        let flow = (0..FLOW_PARTITIONS).map(|index| (FLOW, index, index > 0));
        let all: Vec<(&str, u32, bool)> = match &self.kind {
            Kind::Kafka(..) => {
                let of = |(topic, count): &(&'static str, u32)| {
                    let topic = *topic;
                    (0..*count).map(move |index| (topic, index, true))
                };
                TOPICS.iter().flat_map(of).chain(flow).collect()
            }
            Kind::Host(..) => {
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
        let name = (topic, i32::try_from(index)?);
        // A broker that has just started does not lead yet, and Kafka ends transactions in the background: what it says has to
        // stay.
        let mut before = None;
        let answers = verbatim_tests::wait_for("answers that stay", PATIENCE, || {
            thread::sleep(Duration::from_millis(50));
            let now = Answers::ask(&addresses, name, &times).ok();
            let stays = now.is_some() && now == before;
            before.clone_from(&now);
            Ok(now.filter(|_| stays))
        })?;
        let log = segments::log_bytes(&data, topic, index)?;
        Ok(Expected { topic: topic.to_owned(), index, log, answers, times, is_whole })
    }
}
