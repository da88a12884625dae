//! The server's end: accepts connections, decodes requests, hands them to a [`Service`], writes answers in order.
//!
//! **Order.** On each connection requests are *admitted* strictly one after the other, and answers go out in the same
//! order, as Kafka clients expect. What must happen in order (queueing an append) belongs into [`Service::admit`]; what
//! may wait (the flush, a long poll) into the future it returns. Up to [`Config::in_flight_max`] requests of a
//! connection may be admitted and unanswered; their futures are awaited one after the other, so at most one answer of
//! a connection is being made at a time.
//!
//! **Bad input.** A frame that is too long or cut off, an unknown API key, an unserved version or a body of the wrong
//! shape closes the connection after the answers before it went out, with one warning that names the peer and the
//! field. The one thing the protocol can answer, an unknown ApiVersions version, is answered (KIP-511).
//!
//! **Memory.** Request bytes beyond the first 16 KiB of a connection, and what decoding them allocates, are drawn from one
//! budget for the whole server, as they arrive and until the answer is written.

mod connection;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};

use crate::api::{ApiKey, Request, Response};
use crate::frame::FRAME_BYTES_MAX;
use crate::request::RequestHead;
use crate::shape::Limits;

/// Limits of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Connections at a time; one more is closed at once.
    pub connections_max: usize,
    /// Admitted and unanswered requests of one connection; then it is not read from.
    pub in_flight_max: usize,
    /// The largest frame taken, in bytes (Kafka's `socket.request.max.bytes`).
    pub request_bytes_max: usize,
    /// Request bytes held by all connections together; raised to `request_bytes_max` if lower.
    pub buffered_bytes_max: usize,
    /// How long a connection may be silent between requests (Kafka's `connections.max.idle.ms`).
    pub idle_max: Duration,
    /// How long a peer may neither send inside a frame nor take an answer.
    pub stall_max: Duration,
    /// How long a request may wait for room among `buffered_bytes_max`. Short, because it may hold some itself.
    pub room_wait_max: Duration,
    /// How long a connection may be muted at most, whatever the service says.
    pub mute_max: Duration,
    /// How long requests may take to finish after a shutdown was asked for.
    pub drain_max: Duration,
    /// Bounds of a single request.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connections_max: 1_000,
            in_flight_max: 64,
            request_bytes_max: FRAME_BYTES_MAX,
            buffered_bytes_max: 256 * 1024 * 1024,
            idle_max: Duration::from_secs(600),
            stall_max: Duration::from_secs(30),
            room_wait_max: Duration::from_secs(5),
            mute_max: Duration::from_secs(30),
            drain_max: Duration::from_secs(10),
            limits: Limits::REQUEST,
        }
    }
}

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
}

/// A bound server that is not running yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    config: Config,
}

impl Server {
    /// Binds the address. Port 0 takes a free one; see [`Server::local_addr`].
    ///
    /// # Errors
    /// What the operating system says to the bind.
    pub async fn bind(address: impl ToSocketAddrs, config: Config) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await?, config })
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` completes, then stops accepting and reading, lets admitted requests finish within
    /// [`Config::drain_max`], and returns. Dropping the future instead ends every connection at once.
    pub async fn run<S: Service>(self, service: Arc<S>, shutdown: impl Future<Output = ()>) {
        let Self { listener, config } = self;
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::new(Shared::new(config, service));
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
                        tracing::warn!(%error, "accepting a connection failed");
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
/// Bytes a permit of the budget stands for.
pub(crate) const PERMIT_BYTES: usize = 1024;

/// What all connections of a server share.
struct Shared<S> {
    config: Config,
    service: Arc<S>,
    budget: Arc<Semaphore>,
}

impl<S> Shared<S> {
    fn new(config: Config, service: Arc<S>) -> Self {
        let bytes = config.buffered_bytes_max.max(config.request_bytes_max);
        let permits = (bytes / PERMIT_BYTES).saturating_add(1).min(Semaphore::MAX_PERMITS);
        Self { config, service, budget: Arc::new(Semaphore::new(permits)) }
    }
}

fn admit_connection<S: Service>(
    connections: &mut JoinSet<()>,
    shared: &Arc<Shared<S>>,
    stream: TcpStream,
    peer: SocketAddr,
    stopped: watch::Receiver<bool>,
) {
    let limit = shared.config.connections_max;
    if connections.len() >= limit {
        tracing::warn!(%peer, limit, "connection refused: as many connections as allowed are open");
        return;
    }
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "TCP_NODELAY could not be set");
    }
    connections.spawn(connection::serve(Arc::clone(shared), stream, peer, stopped));
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
