//! The server's end: accepts connections, decodes requests, hands them to a [`Service`], writes answers in order.
//!
//! **Order.** On each connection requests are *admitted* strictly one after the other, and answers go out in the same
//! order, as Kafka clients expect. What must happen in order (queueing an append) belongs into [`Service::admit`]; what
//! may wait (the flush, a long poll) into the future it returns. Up to [`Config::in_flight_requests_per_connection_max`] requests of a
//! connection may be admitted and unanswered; their futures are awaited one after the other, so at most one answer of
//! a connection is being made at a time.
//!
//! **Bad input.** A frame that is too long or cut off, an unknown API key, an unserved version or a body of the wrong
//! shape closes the connection after the answers before it went out, with one warning that names the peer and the
//! field. The one thing the protocol can answer, an unknown ApiVersions version, is answered (KIP-511).
//!
//! **Memory.** Request bytes, what decoding them allocates, and answers that their reader does not take at once are counted,
//! as they come and until the answer is written. A connection has 16 KiB of its own; what is beyond is drawn from one budget
//! for the whole server, of which no connection gets more than is left for the others. Fetch answers alone are bounded by
//! the service, before it reads them. A connection that has nothing under way holds no buffer.
//!
//! **Back-pressure.** Who has too much under way, in number or bytes, is not read from until some of it is answered. A
//! connection is closed only if it is silent for too long, inside a frame, before its first request or between requests;
//! if it does not take its answers; or if there is still no room for its request after a while.
//!
//! **Lines.** What is closed or refused is told in one line with peer and reason; of a flood only some, with the number of the
//! others.

mod account;
mod config;
mod connection;
mod doors;
mod ended;
mod event;
mod notices;
mod pace;
mod reading;
mod writing;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use self::account::Budget;
pub use self::config::{Config, ConfigError};
use self::doors::Doors;
pub use self::event::{Event, InFlight, RefusedBy};
use self::notices::Notices;
use crate::api::{ApiKey, Request, Response};
use crate::request::RequestHead;

/// Who asks, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestContext {
    /// The peer's address.
    pub peer: SocketAddr,
    /// API, version, correlation id, client id.
    pub head: RequestHead,
}

/// What a service does about a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Send this answer. It must belong to the request's API.
    Answer(Response),
    /// Send nothing: Produce with acks = 0 that went well.
    Silent,
    /// Close the connection, after the answers before this one: the only way to report a failed acks = 0 request.
    Close {
        /// What is logged.
        reason: String,
    },
    /// Do as `reply` says, at once, and then read nothing more from the connection for so long, at most
    /// [`Config::mute_max`] (KIP-219). What was admitted before is still answered. Made by [`Reply::muted`].
    Muted {
        /// What is done now. A throttled answer says so itself, in its `throttle_time_ms`.
        reply: Box<Self>,
        /// How long nothing is read.
        mute: Duration,
    },
}

impl Reply {
    /// This reply, after which the connection is not read from for `mute`: the server's half of throttling (KIP-219). The
    /// client's half is told by `throttle_time_ms` in the answer, which is the service's to set. Zero mutes nothing; of
    /// several mutes the longest counts.
    #[must_use]
    pub fn muted(self, mute: Duration) -> Self {
        match self {
            reply if mute.is_zero() => reply,
            Self::Muted { reply, mute: before } => Self::Muted { reply, mute: before.max(mute) },
            reply => Self::Muted { reply: Box::new(reply), mute },
        }
    }

    /// What is done now, and how long nothing is read after it.
    fn split(self) -> (Self, Duration) {
        match self {
            Self::Muted { reply, mute } => (*reply, mute),
            reply => (reply, Duration::ZERO),
        }
    }
}

/// A reply in the making. It is dropped only after its answer was written, so it may hold what bounds answers.
pub type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// What answers requests; the broker, or a test's stand-in.
pub trait Service: Send + Sync + 'static {
    /// Takes one request in. Awaited before the connection's next request is looked at, so whatever happens in here
    /// happens in the order of the requests. The future it returns makes the reply and is awaited in the same order.
    fn admit(&self, context: RequestContext, request: Request) -> impl Future<Output = ReplyFuture> + Send;

    /// True if the service answers this API. Others are neither advertised nor admitted.
    fn serves(&self, key: ApiKey) -> bool {
        let _ = key;
        true
    }

    /// Hears what happens beside requests; must not take long.
    fn observe(&self, event: Event) {
        let _ = event;
    }
}

/// A bound server that is not running yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    config: Config,
    budget: Arc<Budget>,
}

impl Server {
    /// Binds the address. Port 0 takes a free one; see [`Server::local_addr`].
    ///
    /// # Errors
    /// What the operating system says to the bind; limits that do not fit together are `InvalidInput`.
    pub async fn bind(address: impl ToSocketAddrs, config: Config) -> io::Result<Self> {
        config.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let budget = Arc::new(Budget::new(config.in_flight_bytes_max));
        Ok(Self { listener: TcpListener::bind(address).await?, config, budget })
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What shows, also while it runs, how many bytes of requests and answers are under way.
    #[must_use]
    pub fn in_flight(&self) -> InFlight {
        InFlight { budget: Arc::clone(&self.budget), all: self.config.in_flight_bytes_max }
    }

    /// Serves until `shutdown` completes, then stops accepting and reading, lets admitted requests finish within
    /// [`Config::drain_max`], and returns. Dropping the future instead ends every connection at once.
    pub async fn run<S: Service>(self, service: Arc<S>, shutdown: impl Future<Output = ()>) {
        let Self { listener, config, budget } = self;
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::new(Shared::new(config, budget, service));
        let mut connections = JoinSet::new();
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(ended) = connections.join_next() => report_panic(ended),
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        admit_connection(&mut connections, &shared, stream, peer, stopped.clone());
                    }
                    Err(error) => {
                        if let Some(unsaid) = shared.notices.next() {
                            tracing::warn!(%error, unsaid, "accepting a connection failed");
                        }
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        // A send fails only when no connection is left to hear it.
        let _ = stop.send(true);
        drain(connections, shared.config.drain_max).await;
    }
}

/// The pause after a failed accept, so that a lack of file descriptors does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// When a silent peer is asked whether it is still there, how often, and how many times before it is given up: one whose
/// machine is gone frees its place before it has been idle for too long.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(60))
    .with_interval(Duration::from_secs(10))
    .with_retries(5);

/// What all connections of a server share.
struct Shared<S> {
    config: Config,
    service: Arc<S>,
    budget: Arc<Budget>,
    doors: Arc<Doors>,
    notices: Notices,
}

impl<S> Shared<S> {
    fn new(config: Config, budget: Arc<Budget>, service: Arc<S>) -> Self {
        let doors = Arc::new(Doors::new(config.connections_max, config.connections_per_ip_max));
        Self { config, service, budget, doors, notices: Notices::new() }
    }
}

fn admit_connection<S: Service>(
    connections: &mut JoinSet<()>,
    shared: &Arc<Shared<S>>,
    stream: TcpStream,
    peer: SocketAddr,
    stopped: watch::Receiver<bool>,
) {
    let ticket = match shared.doors.enter(peer.ip()) {
        Ok(ticket) => ticket,
        Err(error) => {
            shared.service.observe(Event::Refused(RefusedBy::from(&error)));
            if let Some(unsaid) = shared.notices.next() {
                tracing::warn!(%peer, %error, unsaid, "connection refused");
            }
            return;
        }
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "TCP_NODELAY could not be set");
    }
    if let Err(error) = SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE) {
        tracing::debug!(%peer, %error, "SO_KEEPALIVE could not be set");
    }
    connections.spawn(connection::serve(Arc::clone(shared), stream, peer, ticket, stopped));
}

async fn drain(mut connections: JoinSet<()>, drain_max: Duration) {
    let all = async {
        while let Some(ended) = connections.join_next().await {
            report_panic(ended);
        }
    };
    if tokio::time::timeout(drain_max, all).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            "connections cut off: requests did not finish in time"
        );
        connections.shutdown().await;
    }
}

fn report_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}
