//! Hostile peers against a host that may use 512 MiB of address space: each gets an error or a closed connection and is
//! logged once; nobody else notices.

use anyhow::{Context, ensure};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;
use verbatim_tests::client::Client;
use verbatim_tests::exact::batch;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::random::Random;

const ADDRESS_SPACE_BYTES: u64 = 512 << 20;
const GROWTH_KIB_MAX: u64 = 32 << 10;
/// Closings that a host logs one by one, before it counts those that it leaves out.
const TOLD_AT_ONCE: usize = 20;

#[test]
fn frames_that_no_client_sends_close_the_connection_and_are_logged_once() -> anyhow::Result<()> {
    let (home, mut host) = start()?;
    let hostile: &[(&str, Vec<u8>)] = &[
        ("length -1", framed(-1, &[0; 8])),
        ("the least length", framed(i32::MIN, &[0; 8])),
        ("the greatest length", framed(i32::MAX, &[0; 64])),
        ("a length of 0", framed(0, &[])),
        ("a length below the header's", framed(3, &[0; 3])),
        ("text", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("an unknown API key", request(9_999, 0, &[0; 4])),
        ("a negative API key", request(-1, 0, &[0; 4])),
        ("an unknown version", request(3, 99, &[0; 4])),
        // A compact array that states 290 million topics in five bytes.
        ("an absurd count", request(3, 12, &[0, 0xff, 0xff, 0xff, 0x8a, 0x01])),
        ("an absurd count in an old version", request(3, 1, &[0x7f, 0xff, 0xff, 0xff])),
        ("an absurd string", request(3, 1, &[0, 0, 0, 1, 0x7f, 0xff])),
        (
            "an absurd count in Produce",
            request(0, 3, &[0xff, 0xff, 0, 1, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff]),
        ),
    ];
    let mut peers = Vec::new();
    for (what, bytes) in hostile {
        let (peer, answer) = exchange(host.address(), bytes, false).context(*what)?;
        ensure!(answer.is_empty(), "{what}: answered {answer:02x?}");
        peers.push(((*what).to_owned(), peer.to_string()));
    }
    // A valid request, cut after every byte but the last.
    let whole = request(3, 1, &[0, 0, 0, 1, 0, 4, b's', b'e', b'e', b'n']);
    for len in 1..whole.len() {
        let (peer, answer) = exchange(host.address(), whole.get(..len).unwrap_or_default(), true)?;
        ensure!(answer.is_empty(), "cut after {len} bytes: answered {answer:02x?}");
        peers.push((format!("cut after {len} bytes"), peer.to_string()));
    }
    still_serves(&mut host, "afterwards")?;
    host.stop()?;
    logged_once(&home.log(), &peers)
}

#[test]
fn the_log_in_json_names_the_peer_too() -> anyhow::Result<()> {
    let home = Home::new()?.arguments(&["--log-format", "json"]);
    let host = home.start()?;
    let (peer, _) = exchange(host.address(), &framed(-1, &[0; 8]), false)?;
    host.stop()?;
    let mut named = 0;
    // The start line, on stdout, is not of the log.
    for line in home.log().lines().filter(|line| !line.starts_with("verbatim ")) {
        let event: serde_json::Value = serde_json::from_str(line).with_context(|| format!("{line:?}"))?;
        let of_peer = event.pointer("/peer").is_some_and(|named| *named == peer.to_string().as_str());
        named += usize::from(of_peer && event.pointer("/level").is_some_and(|level| *level == "WARN"));
    }
    assert_eq!(named, 1, "{}", home.log());
    Ok(())
}

#[test]
fn garbage_and_idle_promises_leave_no_trace() -> anyhow::Result<()> {
    let mut random = Random::announced("garbage_and_idle_promises_leave_no_trace")?;
    let (home, mut host) = start()?;
    still_serves(&mut host, "before")?;
    let before_kib = host.status_kib("VmRSS")?;

    // Every API in every version, with a body of garbage.
    for key in 0..100_u8 {
        for version in 0..20_u8 {
            let body_len = usize::try_from(random.below(60))?;
            let body = random.bytes(body_len);
            exchange(host.address(), &request(key.into(), version.into(), &body), true)?;
        }
    }
    // Garbage alone.
    for _ in 0..if verbatim_tests::soak() { 20_000 } else { 500 } {
        let len = usize::try_from(random.below(3_000))?;
        exchange(host.address(), &random.bytes(len), true)?;
    }
    // Many who promise much and send nothing, while another works.
    let idle: Vec<TcpStream> = (0..100)
        .map(|_| -> anyhow::Result<TcpStream> {
            let mut stream = TcpStream::connect(host.address())?;
            stream.write_all(&framed(60 << 20, &[0; 10]))?;
            Ok(stream)
        })
        .collect::<Result<_, _>>()?;
    still_serves(&mut host, "beside idle peers")?;
    drop(idle);

    let growth_kib = host.status_kib("VmRSS")?.saturating_sub(before_kib);
    ensure!(growth_kib < GROWTH_KIB_MAX, "the host grew by {growth_kib} KiB");
    still_serves(&mut host, "afterwards")?;
    host.stop()?;
    drop(home);
    Ok(())
}

/// Each of these peers has one line in the log of a host that has ended: there is no more to come. Of a flood only the first
/// are told one by one.
fn logged_once(log: &str, peers: &[(String, String)]) -> anyhow::Result<()> {
    for (index, (what, peer)) in peers.iter().enumerate() {
        let named = format!("peer={peer} ");
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(&named)).collect();
        let told = if index < TOLD_AT_ONCE { lines.len() == 1 } else { lines.len() <= 1 };
        ensure!(told, "{what}: log lines about the peer {peer}: {lines:#?}\n{log}");
    }
    Ok(())
}

fn start() -> anyhow::Result<(Home, Host)> {
    // With the allocator's default each thread reserves 64 MiB of addresses, used or not.
    let home = Home::new()?.address_space(ADDRESS_SPACE_BYTES).environment(("MALLOC_ARENA_MAX", "1"));
    let host = home.start()?;
    Ok((home, host))
}

/// Sends bytes from a connection of its own, optionally ends the sending side, and reads until the host closes. Returns
/// the own address, which is the peer in the host's log, and what was answered.
fn exchange(address: SocketAddr, bytes: &[u8], end: bool) -> anyhow::Result<(SocketAddr, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    let own = stream.local_addr()?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    // The host may close before it has read everything; then writing fails, and that is an answer, too.
    let _ = stream.write_all(bytes);
    if end {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            anyhow::bail!("the host keeps the connection open after {bytes:02x?}")
        }
        // A reset is a close.
        Ok(_) | Err(_) => Ok((own, answer)),
    }
}

/// The host runs, has not panicked, and does its work for a client that behaves.
fn still_serves(host: &mut Host, when: &str) -> anyhow::Result<()> {
    ensure!(host.is_running(), "{when}: the host ended\n{}", host.log());
    let log = host.log();
    ensure!(!log.contains("panicked") && !log.contains("memory allocation"), "{when}: {log}");
    let client = Client::connect(host.address()).context("a client that behaves")?;
    // Fails harmlessly if it is there already.
    let _ = client.create_topic("seen", 1, &[]);
    let answer = client.produce(("seen", 0), None, &batch(0, 0, &["x"])?)?;
    ensure!(answer.error_code == 0, "{when}: {answer:?}");
    Ok(())
}

fn framed(len: i32, bytes: &[u8]) -> Vec<u8> {
    [&len.to_be_bytes(), bytes].concat()
}

/// A frame with a request header: key, version, correlation id 1, client id `h`, and for flexible versions of Metadata
/// no tagged fields (their count is the body's first byte).
fn request(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let header =
        [&key.to_be_bytes()[..], &version.to_be_bytes(), &1_i32.to_be_bytes(), &[0, 1, b'h']].concat();
    let frame = [header.as_slice(), body].concat();
    framed(i32::try_from(frame.len()).unwrap_or(i32::MAX), &frame)
}
