//! Peers of the metrics listener that mean no good.

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{exchange, get, listening, read_answer};
use crate::support::{Host, batch};

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_and_methods_are_refused_by_name() {
    let host = Host::with_config(listening).await;
    for path in ["/", "/metrics/", "/healthz/x", "*", "/../metrics", "//metrics"] {
        assert_eq!(get(&host, path).await.status, 404, "{path}");
    }
    assert_eq!(get(&host, "/healthz?verbose").await.status, 200, "a query is not looked at");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let request = format!("{method} /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc");
        let answer = exchange(&host, request.as_bytes()).await.unwrap();
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.headers.contains("allow: get, head"), "{}", answer.headers);
    }
    let head = exchange(&host, b"HEAD /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_and_huge_heads_are_refused() {
    let host = Host::with_config(listening).await;
    let long = "x".repeat(1 << 20);
    let many = "a: b\r\n".repeat(1_000);
    for request in [
        "\0\u{1}\u{2}\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET /metrics HTTP/9.9\r\n\r\n".to_owned(),
        format!("GET /metrics HTTP/1.1\r\nhost: {long}\r\n\r\n"),
        format!("GET /{long} HTTP/1.1\r\n\r\n"),
        format!("GET /metrics HTTP/1.1\r\n{many}\r\n"),
    ] {
        // Closed or refused: a peer that still sends may lose the answer.
        if let Some(answer) = exchange(&host, request.as_bytes()).await {
            assert!((400..=431).contains(&answer.status), "{answer:?}");
        }
    }
    assert_eq!(get(&host, "/healthz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_hold_their_connections_keep_nobody_out() {
    let host = Host::with_config(listening).await;
    host.create("plain", 1, &[]).await;
    let address = host.broker().metrics_addr().unwrap();
    let mut held = Vec::new();
    for number in 0..200 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // Half of them say nothing at all, the others begin a head.
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nx: ").await;
        }
        held.push(stream);
    }
    assert_eq!(get(&host, "/healthz").await.status, 200);
    assert_eq!(get(&host, "/metrics").await.status, 200);
    assert_eq!(host.produce("plain", &batch(0, 0, &["a"]), None).await.error_code, 0);
    assert_eq!(read_answer(held.remove(0)).await, None, "the oldest gave way");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_take_the_text_does_not_keep_the_host_from_ending() {
    let host = Host::with_config(listening).await;
    host.create("many", 500, &[]).await;
    let address = host.broker().metrics_addr().unwrap();
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
        held.push(stream);
    }
    let (folder, _) = host.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
    drop(folder);
}
