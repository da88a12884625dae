//! Peers that are slow, silent, greedy, gone or too many; and a good one beside each that must not notice.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use verbatim_wire::client::{ClientConfig, Connection};
use verbatim_wire::messages::list_offsets_request::ListOffsetsTopic;
use verbatim_wire::messages::metadata_request::MetadataRequestTopic;
use verbatim_wire::messages::{InitProducerIdRequest, ListOffsetsRequest, MetadataRequest};
use verbatim_wire::server::{Config, Server};
use verbatim_wire::{Request, frame, request};

use crate::stub::{Running, connect, name, start};

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(600);

/// Nothing but what a test names ends a connection.
fn patient() -> Config {
    Config { handshake_max: LONG, idle_max: LONG, stall_max: LONG, ..Config::default() }
}

/// A Metadata request as a frame.
fn metadata() -> Vec<u8> {
    request::encode(12, 1, None, &Request::Metadata(MetadataRequest::default())).unwrap().to_vec()
}

async fn raw(running: &Running) -> TcpStream {
    TcpStream::connect(running.address).await.unwrap()
}

/// Waits until the server has closed; what it had sent before.
async fn closed(mut stream: TcpStream) -> usize {
    let mut sent = Vec::new();
    // A reset is as good as an end.
    let _ = stream.read_to_end(&mut sent).await;
    sent.len()
}

async fn works(client: &Connection) {
    client.call(&MetadataRequest::default()).await.unwrap();
}

/// A request of some 30 kB; with level 1 it is answered only when the test says so.
fn large(isolation_level: i8) -> ListOffsetsRequest {
    let topic = ListOffsetsTopic::default().with_name(name(&"t".repeat(30_000)));
    ListOffsetsRequest::default().with_isolation_level(isolation_level).with_topics(vec![topic])
}

#[tokio::test]
async fn a_byte_now_and_then_does_not_keep_a_frame_open() {
    let running = start(Config { stall_max: SHORT, ..patient() }).await;
    let good = connect(&running).await;
    let (mut reader, mut writer) = raw(&running).await.into_split();
    writer.write_all(&[0, 0, 3, 232]).await.unwrap();
    let trickle = tokio::spawn(async move {
        while writer.write_all(&[0]).await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    });
    assert_eq!(reader.read(&mut [0]).await.unwrap_or(0), 0);
    works(&good).await;
    trickle.await.unwrap();
}

#[tokio::test]
async fn a_length_that_is_begun_is_inside_a_frame() {
    let running = start(Config { stall_max: SHORT, ..patient() }).await;
    let mut stream = raw(&running).await;
    stream.write_all(&[0, 0]).await.unwrap();
    assert_eq!(closed(stream).await, 0);
}

#[tokio::test]
async fn who_does_not_send_a_whole_request_soon_is_closed() {
    let running = start(Config { handshake_max: SHORT, ..patient() }).await;
    let good = connect(&running).await;
    for begun in [0, 2, 4, 9] {
        let mut stream = raw(&running).await;
        stream.write_all(&metadata()[..begun]).await.unwrap();
        assert_eq!(closed(stream).await, 0, "{begun} bytes");
    }
    works(&good).await;
}

#[tokio::test]
async fn who_is_silent_for_too_long_is_closed_but_not_who_waits_for_an_answer() {
    let running = start(Config { idle_max: SHORT, ..patient() }).await;
    let waiting = connect(&running).await;
    let slow = waiting.submit(6, &ListOffsetsRequest::default().with_isolation_level(1)).await.unwrap();
    let mut silent = connect(&running).await;
    silent.closed().await.unwrap();
    tokio::time::sleep(SHORT * 2).await;
    running.stub.release.notify_one();
    slow.await.unwrap();
}

#[tokio::test]
async fn who_does_not_take_an_answer_is_closed_and_its_place_is_free_again() {
    let config = Config { connections_max: 2, stall_max: SHORT, ..patient() };
    let running = start(config).await;
    let good = connect(&running).await;
    let mut slow = raw(&running).await;
    let topics = vec![MetadataRequestTopic::default().with_name(Some(name("4000")))];
    let asked = Request::Metadata(MetadataRequest::default().with_topics(Some(topics)));
    slow.write_all(&request::encode(12, 1, None, &asked).unwrap()).await.unwrap();
    running.admitted(2).await;
    while Connection::connect(running.address, ClientConfig::default()).await.is_err() {
        works(&good).await;
    }
    assert!(closed(slow).await < 40_000_000, "the whole answer came");
    works(&good).await;
}

#[tokio::test]
async fn answers_that_nobody_takes_are_bounded_in_all_and_others_get_theirs() {
    let config = Config {
        in_flight_bytes_per_connection_max: 1 << 20,
        request_bytes_max: 1 << 20,
        in_flight_bytes_max: 2 << 20,
        room_wait_max: SHORT,
        ..patient()
    };
    let running = start(config).await;
    let good = connect(&running).await;
    let topics = vec![MetadataRequestTopic::default().with_name(Some(name("4000")))];
    let asked = Request::Metadata(MetadataRequest::default().with_topics(Some(topics)));
    let mut slow = raw(&running).await;
    slow.write_all(&request::encode(12, 1, None, &asked).unwrap()).await.unwrap();
    running.admitted(2).await;
    tokio::time::sleep(SHORT * 2).await;
    assert!(closed(slow).await < 40_000_000, "there was room for 40 MB among 2 MiB");
    good.send(6, &large(0)).await.unwrap();
}

#[tokio::test]
async fn who_fills_what_it_may_hold_is_not_read_from_and_hinders_nobody() {
    let config = Config {
        request_bytes_max: 64 * 1024,
        in_flight_bytes_per_connection_max: 64 * 1024,
        in_flight_bytes_max: 512 * 1024,
        room_wait_max: SHORT,
        ..patient()
    };
    let running = start(config).await;
    let (greedy, good) = (connect(&running).await, connect(&running).await);
    let mut answers = Vec::new();
    for _ in 0..30 {
        answers.push(greedy.submit(6, &large(1)).await.unwrap());
    }
    // The handshakes, and as many as fit into 64 and 16 KiB.
    running.admitted(4).await;
    tokio::time::sleep(SHORT * 2).await;
    assert_eq!(running.stub.admitted.load(Ordering::SeqCst), 4, "too much was read");
    good.send(6, &large(0)).await.unwrap();
    for answer in answers {
        running.stub.release.notify_one();
        answer.await.unwrap();
    }
    works(&greedy).await;
}

#[tokio::test]
async fn half_a_request_on_many_connections_leaves_room_for_a_whole_one() {
    let config = Config {
        request_bytes_max: 1 << 20,
        in_flight_bytes_per_connection_max: 1 << 20,
        in_flight_bytes_max: 2 << 20,
        room_wait_max: SHORT,
        ..patient()
    };
    let running = start(config).await;
    let good = connect(&running).await;
    let mut greedy = Vec::new();
    for _ in 0..20 {
        let mut stream = raw(&running).await;
        stream.write_all(&(1_i32 << 20).to_be_bytes()).await.unwrap();
        stream.write_all(&vec![0; 100 * 1024]).await.unwrap();
        greedy.push(stream);
    }
    for _ in 0..20 {
        good.send(6, &large(0)).await.unwrap();
    }
}

#[tokio::test]
async fn a_muted_connection_is_answered_what_was_admitted_and_not_read_from() {
    let running = start(Config { mute_max: LONG, ..patient() }).await;
    let (client, good) = (connect(&running).await, connect(&running).await);
    let slow = client.submit(6, &ListOffsetsRequest::default().with_isolation_level(1)).await.unwrap();
    let mute = InitProducerIdRequest::default().with_transaction_timeout_ms(500_000);
    let throttled = client.submit(4, &mute).await.unwrap();
    let before = client.submit(12, &MetadataRequest::default()).await.unwrap();
    running.admitted(5).await;
    running.stub.release.notify_one();
    slow.await.unwrap();
    assert_eq!(throttled.await.unwrap().throttle_time_ms, 500_000);
    before.await.unwrap();
    let _after = client.submit(12, &MetadataRequest::default()).await.unwrap();
    tokio::time::sleep(SHORT).await;
    assert_eq!(running.stub.admitted.load(Ordering::SeqCst), 5, "it was read from");
    works(&good).await;
    // A mute does not hold up a shutdown.
    running.stop.send(()).unwrap();
    running.done.await.unwrap();
}

#[tokio::test]
async fn a_mute_has_an_end_and_a_most() {
    let running = start(Config { mute_max: SHORT, ..patient() }).await;
    let client = connect(&running).await;
    let mute = InitProducerIdRequest::default().with_transaction_timeout_ms(i32::MAX);
    client.send(4, &mute).await.unwrap();
    works(&client).await;
}

#[tokio::test]
async fn a_flood_of_silent_connections_gives_way_to_those_who_speak() {
    let running = start(Config { connections_max: 5, ..patient() }).await;
    let good = connect(&running).await;
    let mut flood = Vec::new();
    for _ in 0..50 {
        flood.push(raw(&running).await);
        works(&good).await;
    }
    let newcomer = connect(&running).await;
    works(&newcomer).await;
    for stream in flood.into_iter().take(40) {
        assert_eq!(closed(stream).await, 0);
    }
    works(&good).await;
}

#[tokio::test]
async fn an_address_has_its_own_limit() {
    let running = start(Config { connections_per_ip_max: 2, ..patient() }).await;
    let (one, other) = (connect(&running).await, connect(&running).await);
    let third = Connection::connect(running.address, ClientConfig::default()).await;
    assert!(third.is_err());
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 2], 0))).unwrap();
    let mut elsewhere = socket.connect(running.address).await.unwrap();
    elsewhere.write_all(&metadata()).await.unwrap();
    assert!(frame::read(&mut elsewhere, 10_000).await.unwrap().is_some());
    works(&other).await;
    drop(one);
    while Connection::connect(running.address, ClientConfig::default()).await.is_err() {}
}

#[tokio::test]
async fn peers_that_leave_in_the_middle_of_everything_leave_nothing_behind() {
    let running = start(Config { connections_max: 3, ..patient() }).await;
    let good = connect(&running).await;
    let frame = [metadata(), metadata()].concat();
    for sent in 0..=frame.len() {
        let mut stream = raw(&running).await;
        stream.write_all(&frame[..sent]).await.unwrap();
        if sent % 2 == 0 {
            // Closed with a reset, not an end.
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        }
        drop(stream);
        works(&good).await;
    }
    while Connection::connect(running.address, ClientConfig::default()).await.is_err() {}
}

#[tokio::test]
async fn a_request_that_decodes_to_more_than_a_connection_may_hold_is_refused() {
    let config = Config {
        request_bytes_max: 64 * 1024,
        in_flight_bytes_per_connection_max: 64 * 1024,
        in_flight_bytes_max: 1 << 20,
        ..patient()
    };
    let running = start(config).await;
    let (mut client, good) = (connect(&running).await, connect(&running).await);
    let topics = vec![ListOffsetsTopic::default(); 5_000];
    assert!(client.send(6, &ListOffsetsRequest::default().with_topics(topics)).await.is_err());
    client.closed().await.unwrap();
    works(&good).await;
}

#[tokio::test]
async fn limits_that_contradict_each_other_do_not_start() {
    let config = Config { in_flight_bytes_max: 1, ..Config::default() };
    let error = Server::bind("127.0.0.1:0", config).await.unwrap_err().to_string();
    assert!(error.contains("in_flight_bytes_max=`1`"), "{error}");
}
