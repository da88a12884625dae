//! What a module that misbehaves costs those beside it: hundreds of thousands of calls, memory and latency.
//!
//! The host has two append threads, and the module `hostile` judges partitions of the first one only. A neighbour writes to
//! a partition of either thread, in one run against the real command, in stretches: quiet, beside a flood of calls that fail
//! at once, quiet, beside calls each of which burns its whole budget of 2 ms, quiet. Take the ratios. The neighbour on the
//! first thread waits for the calls before its own: the flood's requests hold hundreds of them, the burning ones one each, and
//! no more than two of those wait at a time. The disk and the log are left out.
//! `VERBATIM_BENCH_SECONDS` says how long a quiet stretch takes, `VERBATIM_BENCH_CALLS` and `VERBATIM_BENCH_BURNING` how many
//! calls there are. It fails if the host grows by more than 128 MiB, or stops.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use anyhow::{Context as _, ensure};
use hostile_module::Behaviour;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::{Home, Host};
use verbatim_tests::load::{Load, Times, setting};
use verbatim_wire::client::{ClientConfig, Connection};
use verbatim_wire::messages::metadata_request::MetadataRequestTopic;
use verbatim_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use verbatim_wire::messages::{MetadataRequest, ProduceRequest, TopicName};
use verbatim_wire::protocol::StrBytes;
use verbatim_wire::tag::set_request_tag;

/// Topics that the module judges, each with a partition for every behaviour.
const TOPICS: usize = 40;
const PAUSE: Duration = Duration::from_millis(5);
const GROWTH_KIB_MAX: u64 = 128 << 10;
/// Those use up their budget.
const BURNING: [Behaviour; 2] = [Behaviour::Spins, Behaviour::AsksForEver];
/// And those a good part of it, with memory, stack or text; whoever fails otherwise fails within a tenth of a millisecond.
const COSTLY: [Behaviour; 4] =
    [Behaviour::GrowsMemory, Behaviour::Recurses, Behaviour::RefusesTooLong, Behaviour::WritesEndlessLine];
/// Clients at a time.
const FLOODING_CLIENTS: usize = 2;
const BURNING_CLIENTS: usize = 2;

fn main() -> anyhow::Result<()> {
    let seconds = Duration::from_secs(setting("VERBATIM_BENCH_SECONDS", 20)?);
    let calls = setting("VERBATIM_BENCH_CALLS", 1_000_000)?;
    let burning = setting("VERBATIM_BENCH_BURNING", 20_000)?;
    let folder = tempfile::Builder::new().prefix("verbatim-module-").tempdir()?;
    let file = folder.path().join("hostile.wasm");
    std::fs::write(&file, verbatim_artifact::hostile()?)?;
    let module = format!("hostile={}", file.display());
    let home = Home::new()?
        .arguments(&["--append-threads", "2", "--flush", "never", "--module", &module])
        .environment(("VERBATIM_LOG", "off"));
    let host = home.start()?;
    let places = places(&host)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&host, &places, seconds, (calls, burning)))?;
    host.stop()
}

async fn measure(
    host: &Host,
    places: &Places,
    seconds: Duration,
    (calls, burning): (u64, u64),
) -> anyhow::Result<()> {
    let neighbours = Neighbours {
        same: Load::connect(host.address(), [("calm", places.calm_on_first)], PAUSE).await?,
        other: Load::connect(host.address(), [("calm", 1 - places.calm_on_first)], PAUSE).await?,
    };
    let quiet = || tokio::time::sleep(seconds);
    neighbours.beside(tokio::time::sleep(seconds / 4)).await?;
    let first = neighbours.beside(quiet()).await?;
    let before_kib = host.status_kib("VmRSS")?;
    let is_cheap = |one: &Behaviour| fails(*one) && !BURNING.contains(one) && !COSTLY.contains(one);
    let failing: Vec<_> = Behaviour::ALL.into_iter().filter(is_cheap).collect();
    let flood = Hostile::new(places, &failing, false, calls);
    let (mut flooded, mut burnt) = (Ok(()), Ok(()));
    let flooding = neighbours.beside(async { flooded = flood.send(host, FLOODING_CLIENTS).await }).await?;
    flooded?;
    let second = neighbours.beside(quiet()).await?;
    let burn = Hostile::new(places, &BURNING, true, burning);
    let burning = neighbours.beside(async { burnt = burn.send(host, BURNING_CLIENTS).await }).await?;
    burnt?;
    let third = neighbours.beside(quiet()).await?;
    let after_kib = host.status_kib("VmRSS")?;
    println!(
        "produce, ms; calls that failed: {} at once, {} by burning their budget",
        flood.sent(),
        burn.sent()
    );
    print!("{}", Times::table("flood, other thread", [&first.other, &flooding.other, &second.other]));
    print!("{}", Times::table("flood, same thread", [&first.same, &flooding.same, &second.same]));
    print!("{}", Times::table("burning, other thread", [&second.other, &burning.other, &third.other]));
    print!("{}", Times::table("burning, same thread", [&second.same, &burning.same, &third.same]));
    println!(
        "longest while burning, ms: other {:.3}, same {:.3}",
        burning.other.percentile(1.0),
        burning.same.percentile(1.0)
    );
    println!("memory of the host, KiB: before {before_kib}, after {after_kib}");
    ensure!(after_kib.saturating_sub(before_kib) < GROWTH_KIB_MAX, "the host grew");
    Ok(())
}

/// Those who write to the two threads.
struct Neighbours {
    same: Load,
    other: Load,
}

/// How long their answers took.
struct Beside {
    same: Times,
    other: Times,
}

impl Neighbours {
    /// Writes until `what` is done.
    async fn beside(&self, what: impl Future<Output = ()>) -> anyhow::Result<Beside> {
        let (done, waiting) = tokio::sync::oneshot::channel::<()>();
        let same = self.same.write_while(async {
            what.await;
            drop(done);
        });
        let other = self.other.write_while(async {
            // It is closed when the other is done.
            let _ = waiting.await;
        });
        let (same, other) = tokio::try_join!(same, other)?;
        Ok(Beside { same, other })
    }
}

/// Partitions by append thread.
struct Places {
    /// The partition of the topic `calm` that the first thread has.
    calm_on_first: i32,
    /// Of each topic that the module judges, its name and the parity of its partitions on the first thread.
    wild: Vec<(String, u32)>,
}

fn places(host: &Host) -> anyhow::Result<Places> {
    host.create_topic("calm", 2, &[])?;
    let client = Client::connect(host.address())?;
    let parity = |topic: &str| -> anyhow::Result<u32> {
        let wanted = MetadataRequestTopic::default().with_name(Some(name(topic)));
        let answer = client.call(&MetadataRequest::default().with_topics(Some(vec![wanted])))?;
        let found = answer.topics.first().context("no topic")?;
        // A host gives its threads partitions by the topic's id and the partition's number.
        Ok(u32::from(found.topic_id.as_bytes().last().is_some_and(|low| low % 2 == 1)))
    };
    let mut wild = Vec::new();
    for index in 0..TOPICS {
        let topic = format!("wild-{index}");
        let partitions = u32::try_from(Behaviour::ALL.len())?;
        host.create_topic(
            &topic,
            partitions,
            &[EXACT, "produce.module=hostile", "produce.at.offset.rewrite=allow"],
        )?;
        let parity = parity(&topic)?;
        wild.push((topic, parity));
    }
    Ok(Places { calm_on_first: i32::try_from(parity("calm")?)?, wild })
}

/// Whether a request fails by it, and no more than that.
fn fails(behaviour: Behaviour) -> bool {
    !matches!(
        behaviour,
        Behaviour::AppendsAll
            | Behaviour::FloodsLog
            | Behaviour::RefusesAfterPlacing
            | Behaviour::RefusesAtLength
            | Behaviour::SettlesBackwards
            | Behaviour::SwapsPlaces
    )
}

/// Requests on which the module fails.
struct Hostile {
    /// Each a topic and partitions of it.
    parts: Vec<(String, u32)>,
    /// A request holds one of them, else all.
    one_at_a_time: bool,
    calls: u64,
    sent: Arc<AtomicU64>,
}

impl Hostile {
    fn new(places: &Places, behaviours: &[Behaviour], one_at_a_time: bool, calls: u64) -> Self {
        let numbers = |parity: u32| {
            behaviours
                .iter()
                .map(|behaviour| behaviour.partition())
                .filter(move |number| number % 2 == parity)
        };
        let parts = places
            .wild
            .iter()
            .flat_map(|(topic, parity)| numbers(*parity).map(move |number| (topic.clone(), number)));
        Self { parts: parts.collect(), one_at_a_time, calls, sent: Arc::new(AtomicU64::new(0)) }
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Sends from so many clients until all calls were made.
    async fn send(&self, host: &Host, clients: usize) -> anyhow::Result<()> {
        let mut running = JoinSet::new();
        for client in 0..clients {
            let (sent, calls, address) = (Arc::clone(&self.sent), self.calls, host.address());
            let parts = if self.one_at_a_time {
                self.parts.iter().cycle().skip(client).take(1).cloned().collect()
            } else {
                self.parts.clone()
            };
            running.spawn(async move {
                let mut number = 0_u64;
                while sent.fetch_add(u64::try_from(parts.len())?, Ordering::Relaxed) < calls {
                    // Other bytes each time: what fails three times is refused without a call.
                    number += 1;
                    let request = request(&parts, &format!("{client} {number}"))?;
                    // And another client: one whose requests fail is held back for up to 30 s.
                    let config =
                        ClientConfig { client_id: format!("{client} {number}"), ..ClientConfig::default() };
                    let connection = Connection::connect(address, config).await?;
                    let answer = connection.send(12, &request).await?;
                    let codes = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
                    for answer in codes {
                        ensure!(answer.error_code == 56, "{answer:?}");
                    }
                }
                Ok::<(), anyhow::Error>(())
            });
        }
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        Ok(())
    }
}

fn request(parts: &[(String, u32)], value: &str) -> anyhow::Result<ProduceRequest> {
    let batch = bytes::Bytes::from(batch(0, 3, &[value])?);
    let tag = order((0, -1), (0, 1), 3);
    let mut topics: Vec<TopicProduceData> = Vec::new();
    for (topic, partition) in parts {
        let mut data = PartitionProduceData::default()
            .with_index(i32::try_from(*partition)?)
            .with_records(Some(batch.clone()));
        set_request_tag(&mut data, &tag)?;
        match topics.last_mut().filter(|last| last.name == name(topic)) {
            Some(last) => last.partition_data.push(data),
            None => topics
                .push(TopicProduceData::default().with_name(name(topic)).with_partition_data(vec![data])),
        }
    }
    Ok(ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(topics))
}

fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}
