//! Both ends of a connection against each other, and the server against peers that break the protocol.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use verbatim_wire::client::{ClientConfig, ClientError, Connection};
use verbatim_wire::messages::{
    ApiVersionsRequest, DescribeClusterRequest, ListOffsetsRequest, MetadataRequest, ProduceRequest,
    ProduceResponse,
};
use verbatim_wire::protocol::StrBytes;
use verbatim_wire::server::Config;
use verbatim_wire::{ApiKey, ErrorCode, Request, Response, frame, request, response};

mod peers;
mod stub;

use stub::*;

#[tokio::test]
async fn a_client_learns_the_versions_and_asks_in_the_highest() {
    let running = start(Config::default()).await;
    let client = connect(&running).await;
    assert_eq!(client.versions().range(ApiKey::Produce), Some((0, 13)), "advertised from 0");
    assert_eq!(client.version_of(ApiKey::Fetch).unwrap(), 18);
    let answer = client.call(&MetadataRequest::default()).await.unwrap();
    assert_eq!(answer.controller_id.0, 1);
    let error = client.call(&DescribeClusterRequest::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "no common version of DescribeCluster: asked for 0 to 2, broker has none");
}

#[tokio::test]
async fn pipelined_requests_are_admitted_and_answered_in_order() {
    let running = start(Config { in_flight_requests_per_connection_max: 3, ..Config::default() }).await;
    let client = connect(&running).await;
    let mut answers = Vec::new();
    for _ in 0..50 {
        answers.push(client.submit(12, &MetadataRequest::default()).await.unwrap());
    }
    for (number, answer) in (1..).zip(answers) {
        assert_eq!(answer.await.unwrap().controller_id.0, number);
    }
}

#[tokio::test]
async fn produce_without_acks_gets_no_answer_and_the_next_request_does() {
    let running = start(Config::default()).await;
    let mut client = connect(&running).await;
    client.send_unanswered(9, &ProduceRequest::default()).await.unwrap();
    client.send(9, &ProduceRequest::default().with_acks(-1)).await.unwrap();
    assert_eq!(running.stub.admitted.load(Ordering::SeqCst), 3);
    client.send_unanswered(9, &ProduceRequest::default().with_timeout_ms(1)).await.unwrap();
    assert_eq!(client.closed().await.unwrap(), "by the broker");
}

#[tokio::test]
async fn an_unknown_api_versions_version_is_answered_with_version_0_and_error_35() {
    let running = start(Config::default()).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let future = [0, 18, 0, 99, 0, 0, 0, 5, 0xff, 0xff, 0x77, 0x77, 0x77];
    frame::write(&mut stream, &future).await.unwrap();
    let answer = frame::read(&mut stream, 10_000).await.unwrap().unwrap();
    assert_eq!(response::correlation_id(&answer), Some(5));
    let answer = response::decode::<ApiVersionsRequest>(4, answer, Config::default().limits).unwrap();
    assert_eq!(answer.error_code, ErrorCode::UnsupportedVersion.number());
    let own = answer.api_keys.iter().find(|row| row.api_key == 18).unwrap();
    assert_eq!((own.min_version, own.max_version), (0, 4));
    assert!(answer.api_keys.iter().all(|row| row.api_key != ApiKey::DescribeCluster.number()));
    frame::write(&mut stream, &[0, 18, 0, 0, 0, 0, 0, 6, 0xff, 0xff]).await.unwrap();
    assert!(frame::read(&mut stream, 10_000).await.unwrap().is_some(), "the connection stays usable");
}

#[tokio::test]
async fn garbage_closes_its_connection_and_harms_no_other() {
    let running = start(Config { stall_max: Duration::from_millis(200), ..Config::default() }).await;
    let client = connect(&running).await;
    let metadata_290_gb =
        [&[0, 0, 0, 16, 0, 3, 0, 12, 0, 0, 0, 1, 0xff, 0xff, 0][..], &[0xff, 0xff, 0xff, 0xff, 0x0f]];
    let cases: [(&str, Vec<u8>); 9] = [
        ("negative length", vec![0xff; 4]),
        ("absurd length", vec![0x7f, 0xff, 0xff, 0xff, 0]),
        ("another protocol", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("no header", vec![0, 0, 0, 0]),
        ("unknown API key", vec![0, 0, 0, 10, 0x12, 0x34, 0, 0, 0, 0, 0, 1, 0xff, 0xff]),
        (
            "an API the service does not serve",
            vec![0, 0, 0, 13, 0, 60, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0],
        ),
        ("unserved version", vec![0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff]),
        ("a count beyond the bytes", metadata_290_gb.concat()),
        ("a frame that stalls", vec![0, 0, 1, 0, 0, 3]),
    ];
    for (case, bytes) in cases {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        let mut rest = Vec::new();
        // A reset is as good as an end.
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{case} was answered");
    }
    client.call(&MetadataRequest::default()).await.unwrap();
}

#[tokio::test]
async fn what_was_asked_before_garbage_is_still_answered() {
    let running = start(Config::default()).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let good = request::encode(12, 77, None, &Request::Metadata(MetadataRequest::default())).unwrap();
    stream.write_all(&good).await.unwrap();
    stream.write_all(&[0xff; 4]).await.unwrap();
    let answer = frame::read(&mut stream, 10_000).await.unwrap().unwrap();
    assert_eq!(response::correlation_id(&answer), Some(77));
    assert!(matches!(frame::read(&mut stream, 10_000).await, Ok(None) | Err(_)));
}

#[tokio::test]
async fn one_connection_too_many_is_closed_at_once() {
    let running = start(Config { connections_max: 1, ..Config::default() }).await;
    let first = connect(&running).await;
    let second = Connection::connect(running.address, ClientConfig::default()).await;
    assert!(matches!(second, Err(ClientError::Closed { .. })), "{second:?}");
    first.call(&MetadataRequest::default()).await.unwrap();
}

#[tokio::test]
async fn a_request_that_finds_no_room_is_refused_and_room_comes_back() {
    let config = Config {
        request_bytes_max: 64 * 1024,
        in_flight_bytes_per_connection_max: 64 * 1024,
        in_flight_bytes_max: 128 * 1024,
        room_wait_max: Duration::from_millis(100),
        ..Config::default()
    };
    let running = start(config).await;
    let big = |isolation_level| {
        let topic = "t".repeat(30_000);
        let topic = verbatim_wire::messages::list_offsets_request::ListOffsetsTopic::default()
            .with_name(StrBytes::from_string(topic).into());
        ListOffsetsRequest::default()
            .with_isolation_level(isolation_level)
            .with_topics(vec![topic.clone(), topic])
    };
    let (holder, mut other) = (connect(&running).await, connect(&running).await);
    let held = holder.submit(6, &big(1)).await.unwrap();
    running.admitted(3).await;
    // The room is held until the first request is answered.
    drop(other.submit(6, &big(0)).await.unwrap());
    other.closed().await.unwrap();
    running.stub.release.notify_one();
    held.await.unwrap();
    holder.send(6, &big(0)).await.unwrap();
}

#[tokio::test]
async fn shutdown_answers_what_was_admitted_and_then_closes() {
    let running = start(Config::default()).await;
    let mut client = connect(&running).await;
    let slow = client.submit(6, &ListOffsetsRequest::default().with_isolation_level(1)).await.unwrap();
    running.admitted(2).await;
    running.stop.send(()).unwrap();
    running.stub.release.notify_one();
    slow.await.unwrap();
    running.done.await.unwrap();
    assert_eq!(client.closed().await.unwrap(), "by the broker");
    assert!(TcpStream::connect(running.address).await.is_err());
}

#[tokio::test]
async fn shutdown_cuts_off_what_does_not_finish_in_time() {
    let running = start(Config { drain_max: Duration::from_millis(50), ..Config::default() }).await;
    let client = connect(&running).await;
    let never = client.submit(6, &ListOffsetsRequest::default().with_isolation_level(1)).await.unwrap();
    running.admitted(2).await;
    running.stop.send(()).unwrap();
    running.done.await.unwrap();
    assert!(matches!(never.await, Err(ClientError::Closed { .. })));
}

#[tokio::test]
async fn a_hostile_answer_is_refused_by_field_and_a_false_one_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let broker = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for answer in [&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0, 0, 0, 99]] {
            frame::read(&mut stream, 1_000).await.unwrap();
            frame::write(&mut stream, answer).await.unwrap();
        }
    });
    let client = Connection::connect_raw(address, ClientConfig::default()).await.unwrap();
    let error = client.send(12, &MetadataRequest::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Metadata v12 answer: field `brokers` at byte 9: states 4294967294 elements of at least 11 bytes, only 0 bytes left"
    );
    let error = client.send(12, &MetadataRequest::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "connection closed: an answer to correlation id 99, which was not asked");
    broker.await.unwrap();
}

#[tokio::test]
async fn an_old_broker_is_asked_again_in_its_own_version() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let broker = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let asked = frame::read(&mut stream, 1_000).await.unwrap().unwrap();
        assert_eq!(asked[..4], [0, 18, 0, 4]);
        // error 35, one row: ApiVersions 0 to 2
        let refusal = [0, 0, 0, 0, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 2];
        frame::write(&mut stream, &refusal).await.unwrap();
        let asked = frame::read(&mut stream, 1_000).await.unwrap().unwrap();
        assert_eq!(asked[..4], [0, 18, 0, 2]);
        let answer = [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0];
        frame::write(&mut stream, &answer).await.unwrap();
    });
    let client = Connection::connect(address, ClientConfig::default()).await.unwrap();
    assert_eq!(client.version_of(ApiKey::Metadata).unwrap(), 7);
    broker.await.unwrap();
}

#[tokio::test]
async fn a_request_decodes_to_what_was_encoded_and_its_records_stay_in_the_frame() {
    let partition = verbatim_wire::messages::produce_request::PartitionProduceData::default()
        .with_records(Some(Bytes::from(vec![9; 1_000])));
    let topic = verbatim_wire::messages::produce_request::TopicProduceData::default()
        .with_name(StrBytes::from_static_str("t").into())
        .with_partition_data(vec![partition]);
    let body = Request::Produce(ProduceRequest::default().with_topic_data(vec![topic]));
    let whole = request::encode(12, -5, Some("me"), &body).unwrap();
    let whole = whole.slice(4..);
    let decoded = request::decode(&whole, Config::default().limits).unwrap();
    assert_eq!((decoded.head.version, decoded.head.correlation_id), (12, -5));
    assert_eq!(decoded.head.client_id.as_deref(), Some("me"));
    assert_eq!(decoded.request, body);
    let Request::Produce(body) = decoded.request else { panic!("not a Produce request") };
    let records = body.topic_data[0].partition_data[0].records.as_ref().unwrap();
    assert!(whole.as_ptr_range().contains(&records.as_ptr()), "records were copied");
    let answer = response::encode(12, -5, &Response::Produce(ProduceResponse::default())).unwrap();
    assert_eq!(answer[..9], [0, 0, 0, 11, 0xff, 0xff, 0xff, 0xfb, 0]);
}
