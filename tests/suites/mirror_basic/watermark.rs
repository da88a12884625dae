//! A leader tells the high watermark from before it read, so batches may come that lie above it (as Kafka's do under load).

use super::pair::{Pair, Running, produce};
use anyhow::{Context, ensure};
use bytes::Bytes;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use verbatim_mirror::cluster::ClusterConfig;
use verbatim_tests::client::Client;
use verbatim_tests::host::Home;
use verbatim_wire::api::Response;
use verbatim_wire::messages::{FetchRequest, FetchResponse};
use verbatim_wire::response::{decode, encode};
use verbatim_wire::shape::Limits;

const FETCH: i16 = 1;

#[test]
fn batches_that_come_above_the_high_watermark_beside_them_are_not_lost() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let home = Home::new()?.arguments(&["--advertise", &address.to_string()]);
    let host = home.start()?;
    let broker = host.address();
    // It ends with the test's process.
    thread::spawn(move || listener.incoming().flatten().for_each(|client| drop(between(client, broker))));
    let (source, to) = (Client::connect(broker)?, Home::new()?);
    let copy = to.start()?;
    let client = Client::connect(copy.address())?;
    let pair = Pair { from: (home, host), to: (to, copy), source, copy: client };
    pair.source.create_topic("late", 1, &[])?;
    let mut config = pair.config(&["late"])?;
    config.source = ClusterConfig::new([address.to_string()]);
    let mirror = Running::start(config)?;
    mirror.until_end(("late", 0), 0)?;
    for batch in 1..=5 {
        produce(&pair.source, ("late", 0), 1)?;
        mirror.until_end(("late", 0), batch * 3)?;
    }
    produce(&pair.source, ("late", 0), 20)?;
    mirror.until_end(("late", 0), 75)?;
    mirror.stop();
    pair.check_whole("late", 0)?;
    pair.stop()
}

/// What requests ask for, by correlation id: API key and version.
type Asked = Arc<Mutex<HashMap<i32, (i16, i16)>>>;

/// Passes on what goes between a client and a broker; the first time that a fetch answer brings an offset its high watermark is
/// lowered to that offset.
fn between(client: TcpStream, broker: SocketAddr) -> anyhow::Result<()> {
    let broker = TcpStream::connect(broker)?;
    let (asked, mut seen) = (Asked::default(), HashSet::new());
    let (mut from_client, mut to_broker) = (client.try_clone()?, broker.try_clone()?);
    let noted = Arc::clone(&asked);
    thread::spawn(move || {
        while let Ok(frame) = read(&mut from_client) {
            let number = |at| Some(i16::from_be_bytes(frame.get(at..)?.first_chunk().copied()?));
            let id = frame.get(4..).and_then(|rest| rest.first_chunk().copied()).map(i32::from_be_bytes);
            if let (Some(key), Some(version), Some(id)) = (number(0), number(2), id) {
                noted.lock().unwrap_or_else(PoisonError::into_inner).insert(id, (key, version));
            }
            if write(&mut to_broker, &frame).is_err() {
                break;
            }
        }
        let _ = to_broker.shutdown(Shutdown::Both);
    });
    let (mut from_broker, mut to_client) = (broker, client);
    thread::spawn(move || {
        while let Ok(frame) = read(&mut from_broker) {
            let id = frame.first_chunk().copied().map(i32::from_be_bytes).unwrap_or_default();
            let of = asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            let frame = match of {
                Some((FETCH, version)) => lowered(&frame, version, id, &mut seen).unwrap_or(frame),
                _ => frame,
            };
            if write(&mut to_client, &frame).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn lowered(frame: &Bytes, version: i16, id: i32, seen: &mut HashSet<i64>) -> anyhow::Result<Bytes> {
    let mut answer: FetchResponse = decode::<FetchRequest>(version, frame.clone(), Limits::RESPONSE)?;
    for partition in answer.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
        let first = partition.records.as_ref().and_then(|records| records.first_chunk().copied());
        if let Some(first) = first.map(i64::from_be_bytes).filter(|first| seen.insert(*first)) {
            partition.high_watermark = first;
        }
    }
    let whole = encode(version, id, &Response::Fetch(answer))?;
    ensure!(whole.len() > 4);
    Ok(whole.slice(4..))
}

fn read(stream: &mut TcpStream) -> anyhow::Result<Bytes> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length)).context("too long")?];
    stream.read_exact(&mut frame)?;
    Ok(frame.into())
}

fn write(stream: &mut TcpStream, frame: &[u8]) -> io::Result<()> {
    let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), frame].concat())
}
