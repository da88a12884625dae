//! What connections cost that do nothing: 100 that work, alone and beside 9,900 that were greeted and are held.
//!
//! Each of the 100 writes a batch twenty times a second, in one run against the real command: alone, beside the held ones,
//! and alone again. Times are printed as they are and as ratios of the middle to the mean of the two others; take the
//! ratios. Memory is the host's own. The disk is left out (`--flush never`): it would hide what connections do.
//! `VERBATIM_BENCH_SECONDS` says how long each part takes, `VERBATIM_BENCH_CONNECTIONS` how many connections there are.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::load::{Load, Times, setting};
use verbatim_wire::messages::ApiVersionsRequest;
use verbatim_wire::{Request, frame, request};

const TOPIC: &str = "busy";
const WORKING: usize = 100;
const PARTITIONS: i32 = 10;
/// Between two writes of a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// Connections that are opened at a time.
const OPENING: usize = 64;
/// The longest handshake answer taken.
const ANSWER_BYTES_MAX: usize = 1 << 20;

fn main() -> anyhow::Result<()> {
    let seconds = Duration::from_secs(setting("VERBATIM_BENCH_SECONDS", 10)?);
    let connections = usize::try_from(setting("VERBATIM_BENCH_CONNECTIONS", 10_000)?)?;
    let idle = connections.checked_sub(WORKING).context("at least 100 connections")?;
    raise_open_files(connections)?;
    let most = connections.saturating_add(10).to_string();
    let home = Home::new()?.arguments(&["--flush", "never", "--connections-max", &most]);
    let host = home.start()?;
    host.create_topic(TOPIC, u32::try_from(PARTITIONS)?, &[])?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&host, idle, seconds))?;
    host.stop()
}

async fn measure(host: &Host, idle: usize, seconds: Duration) -> anyhow::Result<()> {
    let places = (0..PARTITIONS).cycle().take(WORKING).map(|partition| (TOPIC, partition));
    let load = Load::connect(host.address(), places, PAUSE).await?;
    // What the first requests allocate once is no cost of connections.
    load.write(seconds / 4).await?;
    let before = load.write(seconds).await?;
    let rss_before = host.status_kib("VmRSS")?;
    let began = Instant::now();
    let held = hold(host.address(), idle).await?;
    let opened = began.elapsed();
    let rss_held = host.status_kib("VmRSS")?;
    let beside = load.write(seconds).await?;
    let rss_worked = host.status_kib("VmRSS")?;
    ensure!(held.iter().all(is_open), "a held connection was closed");
    drop(held);
    let after = load.write(seconds).await?;
    println!("{WORKING} working connections, {idle} held beside them, opened in {opened:.1?}\n");
    print!("{}", Times::table("produce, ms", [&before, &beside, &after]));
    let per_connection = 1_024.0 * (real(rss_held)? - real(rss_before)?) / real(u64::try_from(idle)?)?;
    println!(
        "\nmemory of the host, KiB: alone {rss_before}, held {rss_held}, after the work beside {rss_worked}"
    );
    println!("bytes of a held connection: {per_connection:.0}");
    Ok(())
}

/// Opens so many connections, each with a handshake.
async fn hold(address: SocketAddr, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    let hello = request::encode(0, 1, None, &Request::ApiVersions(ApiVersionsRequest::default()))?;
    let (mut opening, mut held) = (JoinSet::new(), Vec::with_capacity(count));
    for index in 0..count {
        if index >= OPENING {
            held.push(opening.join_next().await.context("nothing is opening")???);
        }
        let hello = hello.clone();
        opening.spawn(async move { greet(address, &hello).await });
    }
    while let Some(greeted) = opening.join_next().await {
        held.push(greeted??);
    }
    Ok(held)
}

async fn greet(address: SocketAddr, hello: &[u8]) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await.context("connecting")?;
    tokio::io::AsyncWriteExt::write_all(&mut stream, hello).await?;
    frame::read(&mut stream, ANSWER_BYTES_MAX).await?.context("closed instead of an answer")?;
    Ok(stream)
}

/// True if the host has neither closed it nor sent anything.
fn is_open(stream: &TcpStream) -> bool {
    let read = stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

fn raise_open_files(connections: usize) -> anyhow::Result<()> {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })?;
    let needed = u64::try_from(connections)?.saturating_add(500);
    ensure!(most.is_none_or(|most| most >= needed), "{needed} open files are needed, the limit is {most:?}");
    Ok(())
}

fn real(number: u64) -> anyhow::Result<f64> {
    Ok(f64::from(u32::try_from(number)?))
}
