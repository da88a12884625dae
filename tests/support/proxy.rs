//! A proxy between Kafka clients and a broker that breaks what passes through it, by a seed: answers that are lost, connections
//! that are cut within a frame or just behind a request, delays, answers that trickle.
//!
//! It knows Kafka's frames (a length, then so many bytes) and rewrites nothing, so a broker behind it must advertise the
//! proxy's address: bind the proxy first, start the broker, then tell the proxy where it is.

use crate::random::Random;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The largest frame that is believed; another length cuts the connection.
const FRAME_BYTES_MAX: usize = 128 << 20;
/// Bytes that are read and written at once.
const PIECE_BYTES: usize = 64 << 10;
/// How long a proxy that loses answers waits for one more of them.
const MORE_ANSWERS: Duration = Duration::from_millis(20);

/// How often a proxy breaks something.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// So many times at most; then it is a proxy like any other.
    pub count: u32,
    /// On average at every so many-th frame.
    pub one_in: u64,
}

impl Faults {
    /// None at all.
    pub const NONE: Self = Self { count: 0, one_in: 1 };
}

/// What a proxy did to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Forwarded a part of a request, and cut the connection.
    CutInRequest,
    /// Forwarded a request, and cut the connection at once.
    CutBehindRequest,
    /// Held a request back for a while.
    DelayRequest,
    /// Took up to four answers from the broker, gave none to the client, and cut the connection.
    LoseAnswers,
    /// Forwarded a part of an answer, and cut the connection.
    CutInAnswer,
    /// Held an answer back for a while.
    DelayAnswer,
    /// Forwarded an answer in small parts with pauses between them.
    Trickle,
}

impl Fault {
    const IN_REQUESTS: [Self; 3] = [Self::CutInRequest, Self::CutBehindRequest, Self::DelayRequest];
    const IN_ANSWERS: [Self; 4] = [Self::LoseAnswers, Self::CutInAnswer, Self::DelayAnswer, Self::Trickle];

    /// True if the connection ends with it.
    fn cuts(self) -> bool {
        !matches!(self, Self::DelayRequest | Self::DelayAnswer | Self::Trickle)
    }
}

/// A running proxy on a free loopback port. Dropping it cuts all connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    ended: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    broker: Option<SocketAddr>,
    faults: Faults,
    random: Random,
    done: BTreeMap<Fault, u32>,
    links: Vec<Arc<Link>>,
    pumps: Vec<JoinHandle<()>>,
}

/// A client's connection and the one to the broker that belongs to it.
#[derive(Debug)]
struct Link {
    client: TcpStream,
    broker: TcpStream,
    /// It will be cut, and nothing else happens to it.
    doomed: AtomicBool,
}

impl Proxy {
    /// A proxy that takes faults from this seed. Until [`Proxy::forward_to`] it cuts every connection.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn bind(seed: u64, faults: Faults) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = State {
            broker: None,
            faults,
            random: Random::seeded(seed),
            done: BTreeMap::new(),
            links: Vec::new(),
            pumps: Vec::new(),
        };
        let shared = Arc::new(Shared { ended: AtomicBool::new(false), state: Mutex::new(state) });
        let accepting = Arc::clone(&shared);
        let acceptor = thread::spawn(move || accepting.accept(&listener));
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// Where it listens, and what the broker must advertise.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on connections are forwarded to this broker.
    pub fn forward_to(&self, broker: SocketAddr) {
        self.shared.lock().broker = Some(broker);
    }

    /// From now on every connection is cut, those there are at once, as if there were no broker.
    pub fn go_down(&self) {
        self.shared.lock().broker = None;
        self.cut_all();
    }

    /// Cuts all connections there are.
    pub fn cut_all(&self) {
        for link in std::mem::take(&mut self.shared.lock().links) {
            link.cut();
        }
    }

    /// Breaks things from now on as often as this.
    pub fn set_faults(&self, faults: Faults) {
        self.shared.lock().faults = faults;
    }

    /// What it did so far, and how often.
    pub fn done(&self) -> BTreeMap<Fault, u32> {
        self.shared.lock().done.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // It wakes the acceptor, which is then gone; so nothing is linked any more after that.
        let _ = TcpStream::connect(self.address);
        let _ = self.acceptor.take().map(JoinHandle::join);
        self.cut_all();
        let pumps = std::mem::take(&mut self.shared.lock().pumps);
        for pump in pumps {
            let _ = pump.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.ended.load(Ordering::Relaxed) {
                return;
            }
            // A client that is gone again, or a broker that is not there: the client sees its connection end.
            let _ = client.and_then(|client| self.link(client));
        }
    }

    fn link(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let broker = self.lock().broker.ok_or(io::ErrorKind::NotConnected)?;
        let broker = TcpStream::connect(broker)?;
        for stream in [&client, &broker] {
            stream.set_nodelay(true)?;
        }
        let link = Arc::new(Link { client, broker, doomed: AtomicBool::new(false) });
        let mut state = self.lock();
        // Each direction of each connection has its own numbers: what the other one does changes nothing here.
        for (requests, seed) in [(true, state.random.number()), (false, state.random.number())] {
            let (from, to) =
                if requests { (&link.client, &link.broker) } else { (&link.broker, &link.client) };
            let mut pump = Pump {
                shared: Arc::clone(self),
                link: Arc::clone(&link),
                requests,
                from: from.try_clone()?,
                to: to.try_clone()?,
                random: Random::seeded(seed),
            };
            state.pumps.push(thread::spawn(move || {
                // Whatever ends one direction ends the connection.
                let _ = pump.run();
                pump.link.cut();
            }));
        }
        state.links.retain(|link| link.client.peer_addr().is_ok());
        state.pumps.retain(|pump| !pump.is_finished());
        state.links.push(link);
        drop(state);
        Ok(())
    }
}

impl Link {
    fn cut(&self) {
        for stream in [&self.client, &self.broker] {
            // The other side may have cut it before.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// One direction of a connection.
#[derive(Debug)]
struct Pump {
    shared: Arc<Shared>,
    link: Arc<Link>,
    requests: bool,
    from: TcpStream,
    to: TcpStream,
    random: Random,
}

impl Pump {
    /// Forwards frames until one side ends the connection (an error, as reading to the end is) or a fault cuts it.
    fn run(&mut self) -> io::Result<()> {
        loop {
            let frame = self.length()?;
            match self.draw()? {
                None => self.forward(&frame, frame.total(), None)?,
                Some(Fault::DelayRequest | Fault::DelayAnswer) => {
                    thread::sleep(self.random.millis(1, 300));
                    self.forward(&frame, frame.total(), None)?;
                }
                Some(Fault::Trickle) => {
                    let pause = self.random.millis(1, 10);
                    self.forward(&frame, frame.total(), Some(pause))?;
                }
                Some(Fault::CutInRequest | Fault::CutInAnswer) => {
                    let part = usize::try_from(self.random.below(frame.total() as u64)).unwrap_or(0);
                    return self.forward(&frame, part, None);
                }
                Some(Fault::CutBehindRequest) => return self.forward(&frame, frame.total(), None),
                Some(Fault::LoseAnswers) => return self.lose(&frame),
            }
        }
    }

    fn length(&mut self) -> io::Result<Frame> {
        let mut length = [0; 4];
        self.from.read_exact(&mut length)?;
        match usize::try_from(i32::from_be_bytes(length)) {
            Ok(body) if body <= FRAME_BYTES_MAX => Ok(Frame { length, body }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// What becomes of the next frame.
    fn draw(&mut self) -> io::Result<Option<Fault>> {
        let faults: &[Fault] = if self.requests { &Fault::IN_REQUESTS } else { &Fault::IN_ANSWERS };
        let mut state = self.shared.lock();
        if self.link.doomed.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if state.faults.count == 0 || self.random.below(state.faults.one_in.max(1)) != 0 {
            return Ok(None);
        }
        let chosen = usize::try_from(self.random.below(faults.len() as u64)).unwrap_or(0);
        let Some(fault) = faults.get(chosen).copied() else { return Ok(None) };
        state.faults.count = state.faults.count.saturating_sub(1);
        let done = state.done.entry(fault).or_default();
        *done = done.saturating_add(1);
        self.link.doomed.store(fault.cuts(), Ordering::Relaxed);
        Ok(Some(fault))
    }

    /// Forwards so many bytes of a frame; in small parts with a pause before each if one is given.
    fn forward(&mut self, frame: &Frame, bytes: usize, pause: Option<Duration>) -> io::Result<()> {
        let (length, mut left) = (frame.length.len().min(bytes), bytes.saturating_sub(frame.length.len()));
        self.to.write_all(frame.length.get(..length).unwrap_or_default())?;
        let piece = if pause.is_some() { (frame.body / 16).clamp(1, PIECE_BYTES) } else { PIECE_BYTES };
        let mut buffer = vec![0; piece.min(left)];
        while left > 0 {
            pause.into_iter().for_each(thread::sleep);
            let piece = buffer.len().min(left);
            let piece = buffer.get_mut(..piece).unwrap_or_default();
            self.from.read_exact(piece)?;
            self.to.write_all(piece)?;
            left = left.saturating_sub(piece.len());
        }
        Ok(())
    }

    /// Takes this answer and up to three that follow soon, and gives none of them on.
    fn lose(&mut self, frame: &Frame) -> io::Result<()> {
        let mut body = frame.body;
        for more in (0..=self.random.below(4)).rev() {
            io::copy(&mut Read::by_ref(&mut self.from).take(body as u64), &mut io::sink())?;
            if more > 0 {
                self.from.set_read_timeout(Some(MORE_ANSWERS))?;
                body = self.length()?.body;
            }
        }
        Ok(())
    }
}

/// A frame whose length has been read.
#[derive(Debug)]
struct Frame {
    length: [u8; 4],
    body: usize,
}

impl Frame {
    fn total(&self) -> usize {
        self.length.len().saturating_add(self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::ensure;

    /// A broker that answers each request with the request itself, and counts.
    fn echo() -> anyhow::Result<(SocketAddr, Arc<Mutex<u32>>)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let requests = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&requests);
        // Ends with the test's process.
        thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let counter = Arc::clone(&counter);
                thread::spawn(move || {
                    while let Ok(frame) = read(&mut client) {
                        *counter.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                        let _ = client.write_all(&frame);
                    }
                });
            }
        });
        Ok((address, requests))
    }

    fn read(from: &mut TcpStream) -> io::Result<Vec<u8>> {
        let mut frame = vec![0; 4];
        from.read_exact(&mut frame)?;
        let length = frame.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        frame.resize(4 + length, 0);
        from.read_exact(frame.get_mut(4..).unwrap_or_default())?;
        Ok(frame)
    }

    fn frame(random: &mut Random) -> anyhow::Result<Vec<u8>> {
        let length = usize::try_from(random.below(20_000))?;
        Ok([u32::try_from(length)?.to_be_bytes().to_vec(), random.bytes(length)].concat())
    }

    /// Sends a frame until its echo came back; how often it had to connect again.
    fn send(proxy: &Proxy, connection: &mut Option<TcpStream>, frame: &[u8]) -> anyhow::Result<u32> {
        for again in 0..1_000 {
            let mut stream = match connection.take() {
                Some(stream) => stream,
                None => TcpStream::connect(proxy.address())?,
            };
            let echoed = stream.write_all(frame).and_then(|()| read(&mut stream));
            if let Ok(echoed) = echoed {
                ensure!(echoed == frame, "another frame came back");
                *connection = Some(stream);
                return Ok(again);
            }
        }
        anyhow::bail!("cut a thousand times in a row")
    }

    #[test]
    fn frames_pass_whole_or_their_connection_is_cut_and_a_seed_repeats_it() -> anyhow::Result<()> {
        let seed = Random::announced("frames_pass_whole_or_their_connection_is_cut")?.number();
        let (broker, requests) = echo()?;
        let mut runs = Vec::new();
        for _ in 0..2 {
            let proxy = Proxy::bind(seed, Faults { count: 60, one_in: 4 })?;
            proxy.forward_to(broker);
            let (mut random, mut connection) = (Random::seeded(seed), None);
            let before = *requests.lock().unwrap_or_else(PoisonError::into_inner);
            let mut cuts = 0;
            let mut frames = 0;
            while proxy.done().values().sum::<u32>() < 60 {
                frames += 1;
                cuts += send(&proxy, &mut connection, &frame(&mut random)?)?;
            }
            let seen = *requests.lock().unwrap_or_else(PoisonError::into_inner) - before;
            let done = proxy.done();
            ensure!(done.len() == 7, "some faults did not happen: {done:?}");
            ensure!(seen > frames, "no answer was lost: {seen} requests for {frames} frames, {cuts} cuts");
            for _ in 0..50 {
                ensure!(
                    send(&proxy, &mut connection, &frame(&mut random)?)? == 0,
                    "cut after the last fault"
                );
            }
            runs.push((frames, cuts, done));
        }
        ensure!(runs.first() == runs.last(), "one seed, two runs: {runs:?}");
        Ok(())
    }

    #[test]
    fn a_proxy_that_is_down_cuts_everybody_until_it_is_up_again() -> anyhow::Result<()> {
        let (broker, _) = echo()?;
        let proxy = Proxy::bind(1, Faults::NONE)?;
        let (mut random, mut connection) = (Random::seeded(1), None);
        let frame = frame(&mut random)?;
        let mut refused = TcpStream::connect(proxy.address())?;
        ensure!(read(&mut refused).is_err(), "answered without a broker");
        proxy.forward_to(broker);
        ensure!(send(&proxy, &mut connection, &frame)? == 0, "cut");
        proxy.go_down();
        let mut stream = connection.take().ok_or_else(|| anyhow::anyhow!("no connection"))?;
        ensure!(stream.write_all(&frame).and_then(|()| read(&mut stream)).is_err(), "not cut");
        proxy.forward_to(broker);
        ensure!(send(&proxy, &mut connection, &frame)? == 0, "cut");
        Ok(())
    }
}
