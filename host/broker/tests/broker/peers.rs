//! Peers that are slow, gone, greedy or too many, and beside each of them a client that must not notice: it writes, reads
//! what it wrote, and compares.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use verbatim_broker::Config;
use verbatim_wire::client::{ClientConfig, Connection};
use verbatim_wire::messages::produce_request::PartitionProduceData;
use verbatim_wire::{Request, request};

use crate::support::{Fetch, Host, batch, fetch_on, fetch_request, produce_request};

const SHORT_MS: u64 = 300;

/// A client that goes on until it is told to stop.
struct Good {
    stop: Arc<AtomicBool>,
    running: JoinHandle<i64>,
}

impl Good {
    async fn start(host: &Host) -> Self {
        host.create("good", 1, &[]).await;
        let (client, stop) = (host.connect().await, Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&stop);
        let running = tokio::spawn(async move {
            let mut offset = 0;
            // At least once more after it was told, so that it has worked beside what the test did.
            let mut last = false;
            while !last {
                last = told.load(Ordering::SeqCst);
                round(&client, offset).await;
                offset += 1;
            }
            offset
        });
        Self { stop, running }
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        assert!(self.running.await.unwrap() > 0);
    }
}

async fn round(client: &Connection, offset: i64) {
    let value = format!("{offset}-{}", "v".repeat(20_000));
    let answer = client.send(12, &produce_request("good", batch(0, 0, &[&value]))).await.unwrap();
    let answer = &answer.responses[0].partition_responses[0];
    assert_eq!((answer.error_code, answer.base_offset), (0, offset), "{:?}", answer.error_message);
    let ask = Fetch { min_bytes: 1, wait_ms: 10_000, ..Fetch::at(offset) };
    let fetched = fetch_on(client, &[("good", ask)], ask).await.remove(0);
    assert_eq!((fetched.error_code, fetched.high_watermark), (0, offset + 1));
    let records = fetched.records.unwrap();
    assert!(records.windows(value.len()).any(|bytes| bytes == value.as_bytes()), "another record");
}

/// A host where peers are given little time and room.
async fn strict(more: impl FnOnce(&mut Config)) -> Host {
    let limits = |config: &mut Config| {
        let limits = &mut config.limits;
        limits.stall_ms_max = SHORT_MS;
        limits.request_bytes_max = 1 << 20;
        limits.in_flight_bytes_per_connection_max = 1 << 20;
        limits.in_flight_bytes_max = 4 << 20;
        limits.fetch_buffered_bytes_max = 8 << 20;
        more(config);
    };
    Host::with_config(limits).await
}

async fn raw(host: &Host) -> TcpStream {
    TcpStream::connect(host.address()).await.unwrap()
}

/// A connection that keeps little of what it does not take.
async fn narrow(host: &Host) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(host.address()).await.unwrap()
}

/// Waits until the host has closed; how many bytes it had sent.
async fn closed(mut stream: TcpStream) -> usize {
    let mut sent = Vec::new();
    // A reset is as good as an end.
    let _ = stream.read_to_end(&mut sent).await;
    sent.len()
}

fn frame(request: Request, version: i16) -> Vec<u8> {
    request::encode(version, 1, Some("peer"), &request).unwrap().to_vec()
}

/// A write whose answer is large, because it names 2,000 partitions that are not there.
fn wide_write() -> Vec<u8> {
    let mut request = produce_request("good", batch(0, 0, &["x"]));
    let missing = (1..=2_000).map(|index| PartitionProduceData::default().with_index(index + 7));
    request.topic_data[0].partition_data = missing.collect();
    frame(Request::Produce(request), 12)
}

/// Fills a topic of its own; a fetch that asks for 4 MiB of it, as a frame.
async fn large_read(host: &Host) -> Vec<u8> {
    host.create("large", 1, &[]).await;
    let value = "l".repeat(500_000);
    for _ in 0..10 {
        assert_eq!(host.produce("large", &batch(0, 0, &[&value]), None).await.error_code, 0);
    }
    let ask = Fetch { max_bytes: 4 << 20, max_bytes_in_all: 4 << 20, min_bytes: 1, ..Fetch::at(0) };
    frame(Request::Fetch(fetch_request(&[("large", ask)], ask)), 12)
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_do_not_read() {
    let host = strict(|_| {}).await;
    let fetch = large_read(&host).await;
    let good = Good::start(&host).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = narrow(&host).await;
        // As many answers as no socket buffers hold.
        for _ in 0..10 {
            stream.write_all(&fetch).await.unwrap();
        }
        slow.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(3 * SHORT_MS)).await;
    for stream in slow {
        assert!(closed(stream).await < 10 * (4 << 20), "all was sent");
    }
    good.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_batches_for_which_there_is_no_room() {
    let host = strict(|config| config.limits.fetch_buffered_bytes_max = 64 << 10).await;
    let fetch = large_read(&host).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = narrow(&host).await;
        for _ in 0..20 {
            stream.write_all(&fetch).await.unwrap();
        }
        slow.push(stream);
    }
    // It waits for its turn until the slow ones are closed.
    let good = Good::start(&host).await;
    tokio::time::sleep(Duration::from_millis(3 * SHORT_MS)).await;
    good.stop().await;
    for stream in slow {
        assert!(closed(stream).await < 20 * 500_000, "all was sent");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_never_reads_an_answer() {
    let host = strict(|_| {}).await;
    let good = Good::start(&host).await;
    let mut stream = narrow(&host).await;
    let write = wide_write();
    let mut sent = 0_usize;
    // It ends with an error, because it is closed; were it read from for ever, the test would not end.
    while stream.write_all(&write).await.is_ok() {
        sent += 1;
    }
    assert!(sent > 0);
    good.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_pipelines_without_end_and_takes_its_answers_late() {
    let host = strict(|_| {}).await;
    let good = Good::start(&host).await;
    host.create("flood", 1, &[]).await;
    let client = host.connect().await;
    let value = "f".repeat(100_000);
    let mut answers = Vec::new();
    for _ in 0..200 {
        answers.push(client.submit(12, &produce_request("flood", batch(0, 0, &[&value]))).await.unwrap());
    }
    for (offset, answer) in (0..).zip(answers) {
        let answer = answer.await.unwrap();
        assert_eq!(answer.responses[0].partition_responses[0].base_offset, offset);
    }
    good.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_that_send_a_byte_now_and_then() {
    let host = strict(|_| {}).await;
    let good = Good::start(&host).await;
    let mut slow = Vec::new();
    for _ in 0..10 {
        let (mut reader, mut writer) = raw(&host).await.into_split();
        slow.push(tokio::spawn(async move { reader.read(&mut [0]).await.unwrap_or(0) }));
        tokio::spawn(async move {
            let write = frame(Request::Produce(produce_request("good", batch(0, 0, &["never"]))), 12);
            for byte in write {
                if writer.write_all(&[byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(SHORT_MS / 10)).await;
            }
        });
    }
    for answered in slow {
        assert_eq!(answered.await.unwrap(), 0, "a request that came too slowly was answered");
    }
    good.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_say_nothing_any_more() {
    let host = strict(|config| {
        config.limits.idle_ms_max = SHORT_MS;
        config.limits.handshake_ms_max = SHORT_MS;
    })
    .await;
    let good = Good::start(&host).await;
    let mut idle = host.connect().await;
    let silent = raw(&host).await;
    idle.closed().await.unwrap();
    assert_eq!(closed(silent).await, 0);
    good.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_connections() {
    let host = strict(|config| config.limits.connections_max = 10).await;
    let good = Good::start(&host).await;
    let mut flood = Vec::new();
    for _ in 0..200 {
        flood.push(raw(&host).await);
    }
    // Those who say something get in all the same, as long as there are places.
    let mut more = Vec::new();
    for _ in 0..5 {
        more.push(host.connect().await);
    }
    for stream in flood.drain(..150) {
        assert_eq!(closed(stream).await, 0);
    }
    good.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_with_too_many_connections() {
    let host = strict(|config| config.limits.connections_per_ip_max = 4).await;
    let good = Good::start(&host).await;
    let _others = (host.connect().await, host.connect().await);
    let refused = Connection::connect(host.address(), ClientConfig::default()).await;
    assert!(refused.is_err());
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 9], 0).into()).unwrap();
    let mut elsewhere = socket.connect(host.address()).await.unwrap();
    elsewhere.write_all(&wide_write()).await.unwrap();
    assert!(elsewhere.read(&mut [0; 64]).await.unwrap() > 0);
    good.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_are_none_or_too_large() {
    let host = strict(|_| {}).await;
    let good = Good::start(&host).await;
    let largest = (1_u32 << 20).to_be_bytes();
    let larger = ((1_u32 << 20) + 1).to_be_bytes();
    let cases: [Vec<u8>; 5] = [
        larger.to_vec(),
        vec![0xff; 4],
        b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n".to_vec(),
        [&16_u32.to_be_bytes()[..], &[0xff; 16]].concat(),
        [&largest[..], &vec![0; 1 << 20]].concat(),
    ];
    for bytes in cases {
        let mut stream = raw(&host).await;
        // The host may have closed before all of it was written.
        let _ = stream.write_all(&bytes).await;
        assert_eq!(closed(stream).await, 0);
    }
    good.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_requests_that_are_begun_and_left() {
    let host = strict(|config| config.limits.stall_ms_max = 600_000).await;
    let good = Good::start(&host).await;
    let mut begun = Vec::new();
    for _ in 0..50 {
        let mut stream = raw(&host).await;
        stream.write_all(&(1_u32 << 20).to_be_bytes()).await.unwrap();
        // What there is no room for is not read; the rest waits in the socket.
        stream.write_all(&vec![0; 200_000]).await.unwrap();
        begun.push(stream);
    }
    good.stop().await;
    drop(begun);
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_leave_in_the_middle_of_everything() {
    let host = strict(|config| config.limits.connections_max = 8).await;
    let fetch = large_read(&host).await;
    let good = Good::start(&host).await;
    let write = frame(Request::Produce(produce_request("large", batch(0, 0, &["left"]))), 12);
    let ask = Fetch { min_bytes: 1 << 20, wait_ms: 300, ..Fetch::at(10) };
    let waiting = frame(Request::Fetch(fetch_request(&[("large", ask)], ask)), 12);
    for sent in (0..write.len()).step_by(7) {
        for begin in [&[][..], &write, &fetch, &waiting] {
            let mut stream = raw(&host).await;
            // Refused if the last ones are not gone yet, and that is as good.
            let _ = stream.write_all(&[begin, &write[..sent]].concat()).await;
        }
    }
    good.stop().await;
    while Connection::connect(host.address(), ClientConfig::default()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
