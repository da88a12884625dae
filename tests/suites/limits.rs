//! A host with small limits beside peers that take all they can get: readers that ask for much and do not read, requests
//! that stop half-way, producers that ignore their answers. Its memory stays within the sum that OPERATIONS.md states, and a
//! client that behaves goes on.

use anyhow::{Context, ensure};
use bytes::Bytes;
use std::io::{ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::TcpSocket;
use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_tests::BesideLog as _;
use verbatim_tests::client::Client;
use verbatim_tests::exact::TIMESTAMP_MS;
use verbatim_tests::host::Home;
use verbatim_tests::random::Random;
use verbatim_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use verbatim_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use verbatim_wire::messages::{FetchRequest, ProduceRequest, TopicName};
use verbatim_wire::protocol::StrBytes;
use verbatim_wire::{Request, request};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

const CONNECTIONS: usize = 200;
const REQUEST_BYTES: usize = 2 * MIB;
const IN_FLIGHT_PER_CONNECTION: usize = 4 * MIB;
const IN_FLIGHT: usize = 8 * MIB;
const FETCH_BUFFERED: usize = 4 * MIB;
const SESSION_PARTITIONS: usize = 1_000;
/// Short, so that room which a flood holds becomes free again.
const STALL_MS: usize = 500;
const BATCH_BYTES: usize = 256 * KIB;
/// What the allocator keeps beyond what is asked of it, code that is used for the first time, the log's own.
const MARGIN: usize = 12 * MIB;
/// One heap instead of one for each thread, of which each keeps what it once had. It makes the measure sharp: the sum is of
/// what is asked for.
const ONE_HEAP: (&str, &str) = ("MALLOC_ARENA_MAX", "1");

/// Connections of each flood; all of them and the client that behaves find a place.
const FLOOD_CONNECTIONS: usize = 50;
/// Of each flood the host has closed so many before it is enough.
const CLOSED: usize = 30;
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn memory_that_peers_take_stays_within_the_limits() -> anyhow::Result<()> {
    let mut random = Random::announced("memory_that_peers_take_stays_within_the_limits")?;
    let flags = [
        ("--connections-max", CONNECTIONS),
        ("--request-bytes-max", REQUEST_BYTES),
        ("--in-flight-bytes-per-connection-max", IN_FLIGHT_PER_CONNECTION),
        ("--in-flight-bytes-max", IN_FLIGHT),
        ("--fetch-buffered-bytes-max", FETCH_BUFFERED),
        ("--fetch-session-partitions-max", SESSION_PARTITIONS),
        ("--stall-ms-max", STALL_MS),
        ("--handshake-ms-max", STALL_MS),
    ];
    let flags = flags.map(|(flag, value)| format!("{flag}={value}"));
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(["--flush=never"]).collect();
    let home = Home::new()?.arguments(&flags).environment(ONE_HEAP);
    let mut host = home.start()?;
    let mut good = Good { client: Client::connect(host.address())?, next: 0 };
    for topic in ["good", "wide"] {
        good.client.create_topic(topic, 1, &[])?;
    }
    let large = batch(&random.bytes(BATCH_BYTES - KIB))?;
    for _ in 0..4 * FETCH_BUFFERED / BATCH_BYTES {
        assert_eq!(good.client.produce(("wide", 0), None, &large)?.error_code, 0);
    }
    good.round()?;
    let before = host.status_kib("VmHWM")?;

    let half = write(vec![part(0, &large); 4])?;
    let half = half.get(..half.len() / 2).context("a request")?.to_vec();
    // The answer is large as well: it names a thousand partitions that are not there.
    let missing = (1..=1_000).map(|index| PartitionProduceData::default().with_index(index));
    let small = batch(&random.bytes(16 * KIB))?;
    let ignored = [write(missing.collect())?.repeat(8), write(vec![part(0, &small)])?].concat();
    let floods = [
        ("readers that do not read", Flood::start(host.address(), read()?, true)),
        ("half requests", Flood::start(host.address(), half, false)),
        ("producers that ignore answers", Flood::start(host.address(), ignored, true)),
    ];
    verbatim_tests::wait_for("end of the floods", PATIENCE, || {
        good.round().context("the client that behaves").beside("the host", || host.log())?;
        let enough = floods.iter().all(|(_, flood)| flood.closed.load(Ordering::Relaxed) >= CLOSED);
        // One that ended before tells why below.
        let ended = floods.iter().any(|(_, flood)| flood.running.is_finished());
        Ok((enough || ended).then_some(()))
    })?;
    let rounds = good.next;
    for (what, flood) in floods {
        flood.end().context(what)?;
    }
    good.round()?;

    let log = host.log();
    ensure!(host.is_running() && !log.contains("panicked"), "{log}");
    let growth = host.status_kib("VmHWM")?.saturating_sub(before);
    let most = u64::try_from((documented()? + MARGIN) / KIB)?;
    verbatim_tests::announce(&format!("limits: grew by {growth} KiB of {most} KiB, {rounds} good rounds"));
    ensure!(growth < most, "the host grew by {growth} KiB, more than {most} KiB");
    host.stop()
}

/// Bytes that peers can take, as OPERATIONS.md adds them up.
fn documented() -> anyhow::Result<usize> {
    let processors = thread::available_parallelism()?.get();
    // A reader gets a quarter of the room that is left.
    let answer = FETCH_BUFFERED / 4;
    Ok(CONNECTIONS * 20 * KIB
        + IN_FLIGHT
        + FETCH_BUFFERED
        + 8 * BATCH_BYTES
        + 310 * SESSION_PARTITIONS
        + processors * answer)
}

/// A client that behaves.
struct Good {
    client: Client,
    next: i64,
}

impl Good {
    /// Writes a batch and reads it.
    fn round(&mut self) -> anyhow::Result<()> {
        let value = format!("value {}", self.next);
        let answer = self.client.produce(("good", 0), None, &batch(value.as_bytes())?)?;
        ensure!((answer.error_code, answer.base_offset) == (0, self.next), "{answer:?}");
        let fetched = self.client.fetch(("good", 0), self.next)?;
        let found = fetched.records.windows(value.len()).any(|bytes| bytes == value.as_bytes());
        ensure!(fetched.error_code == 0 && found, "offset {}: {fetched:?}", self.next);
        self.next += 1;
        Ok(())
    }
}

/// Connections that send and never read. One that the host closes is replaced.
struct Flood {
    done: Arc<AtomicBool>,
    closed: Arc<AtomicUsize>,
    running: JoinHandle<anyhow::Result<()>>,
}

impl Flood {
    /// Each connection sends `bytes`, again and again or once.
    fn start(address: SocketAddr, bytes: Vec<u8>, again: bool) -> Self {
        let (done, closed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (told, count) = (Arc::clone(&done), Arc::clone(&closed));
        let running = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let mut peers = Vec::new();
            while !told.load(Ordering::Relaxed) {
                while peers.len() < FLOOD_CONNECTIONS {
                    peers.push(runtime.block_on(Peer::connect(address))?);
                }
                peers.retain_mut(|peer| peer.send(&bytes, again));
                count.fetch_add(FLOOD_CONNECTIONS - peers.len(), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        });
        Self { done, closed, running }
    }

    fn end(self) -> anyhow::Result<()> {
        self.done.store(true, Ordering::Relaxed);
        self.running.join().map_err(|_| anyhow::anyhow!("a flood panicked"))?
    }
}

struct Peer {
    stream: TcpStream,
    /// Bytes sent.
    sent: usize,
}

impl Peer {
    /// Connects with little room for what is not read.
    async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4_096)?;
        // Stays non-blocking.
        Ok(Self { stream: socket.connect(address).await?.into_std()?, sent: 0 })
    }

    /// Sends as much as goes; whether the connection is open.
    fn send(&mut self, bytes: &[u8], again: bool) -> bool {
        // Answers are looked for and left where they are.
        if matches!(self.stream.peek(&mut [0]), Ok(0)) {
            return false;
        }
        while let Some(rest) = bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(len) => self.sent += len,
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
            if again && self.sent == bytes.len() {
                self.sent = 0;
            }
        }
        true
    }
}

/// A request for all that there is of the large batches.
fn read() -> anyhow::Result<Vec<u8>> {
    let bytes_max = i32::try_from(64 * MIB)?;
    let partition = FetchPartition::default().with_partition_max_bytes(bytes_max);
    let topic = FetchTopic::default().with_topic(name("wide")).with_partitions(vec![partition]);
    let request = FetchRequest::default().with_max_bytes(bytes_max).with_topics(vec![topic]);
    Ok(request::encode(12, 1, Some("flood"), &Request::Fetch(request))?.to_vec())
}

fn write(parts: Vec<PartitionProduceData>) -> anyhow::Result<Vec<u8>> {
    let topic = TopicProduceData::default().with_name(name("wide")).with_partition_data(parts);
    let request =
        ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![topic]);
    Ok(request::encode(12, 1, Some("flood"), &Request::Produce(request))?.to_vec())
}

fn part(index: i32, batch: &[u8]) -> PartitionProduceData {
    PartitionProduceData::default().with_index(index).with_records(Some(Bytes::copy_from_slice(batch)))
}

fn batch(value: &[u8]) -> anyhow::Result<Vec<u8>> {
    let builder = BatchBuilder::new(0).record(NewRecord::new(0, TIMESTAMP_MS).value(value));
    builder.build().map_err(|error| anyhow::anyhow!("{error:?}"))
}

fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}
