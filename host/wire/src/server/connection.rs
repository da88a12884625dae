//! One connection: a reading half that admits requests and a writing half that answers them, joined by a bounded queue.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::account::Account;
use super::doors::Ticket;
use super::ended::Ended;
use super::event::{Event, RefusedBy};
use super::pace::after;
use super::{ReplyFuture, Service, Shared};
use crate::request::RequestHead;
use crate::server::{reading, writing};

/// What both halves of a connection know.
pub(super) struct Link<'a, S> {
    pub(super) shared: &'a Shared<S>,
    pub(super) peer: SocketAddr,
    pub(super) ticket: &'a Ticket,
    pub(super) account: Account,
    pub(super) mute: Mute,
    pub(super) pulse: Pulse,
}

/// One request on its way to its answer, in order. Boxed on that way, because a queue has room for many from the start.
pub(super) enum Pending {
    /// The reply is in the making; so many bytes of the account are given back when it is written.
    Reply { head: RequestHead, reply: ReplyFuture, held: usize },
    /// A frame.
    Ready { answer: Bytes, held: usize },
}

/// Serves a connection to its end. Tells what is worth knowing once, with the peer.
pub(super) async fn serve<S: Service>(
    shared: Arc<Shared<S>>,
    stream: TcpStream,
    peer: SocketAddr,
    ticket: Ticket,
    stopped: watch::Receiver<bool>,
) {
    let _open = Open::new(&*shared.service);
    tracing::debug!(%peer, "connection opened");
    let config = &shared.config;
    let account = Account::new(Arc::clone(&shared.budget), config.in_flight_bytes_per_connection_max);
    let link =
        Link { shared: &shared, peer, ticket: &ticket, account, mute: Mute::default(), pulse: Pulse::new() };
    match run(&link, stream, stopped).await {
        Ok(()) => tracing::debug!(%peer, "connection closed"),
        Err(error) if error.is_ordinary() => tracing::debug!(%peer, %error, "connection closed"),
        Err(error) => {
            if matches!(error, Ended::GaveWay) {
                shared.service.observe(Event::Refused(RefusedBy::GaveWay));
            }
            if let Some(unsaid) = shared.notices.next() {
                tracing::warn!(%peer, error = %error.one_line(), unsaid, "connection closed");
            }
        }
    }
}

async fn run<S: Service>(
    link: &Link<'_, S>,
    stream: TcpStream,
    stopped: watch::Receiver<bool>,
) -> Result<(), Ended> {
    let (reader, writer) = stream.into_split();
    let (queue, pending) = mpsc::channel(link.shared.config.in_flight_requests_per_connection_max.max(1));
    let reading = reading::read_requests(link, reader, queue, stopped);
    let writing = writing::write_answers(link, writer, pending);
    tokio::pin!(reading, writing);
    tokio::select! {
        () = link.ticket.lost() => Err(Ended::GaveWay),
        written = &mut writing => written,
        read = &mut reading => {
            let written = writing.await;
            read.and(written)
        }
    }
}

/// A connection as long as it is served; however that ends, it is told.
struct Open<'a, S: Service>(&'a S);

impl<'a, S: Service> Open<'a, S> {
    fn new(service: &'a S) -> Self {
        service.observe(Event::Opened);
        Self(service)
    }
}

impl<S: Service> Drop for Open<'_, S> {
    fn drop(&mut self) {
        self.0.observe(Event::Closed);
    }
}

/// Until when nothing is read, as the writing half tells the reading half.
#[derive(Default)]
pub(super) struct Mute(Mutex<Option<Instant>>);

impl Mute {
    pub(super) fn begin(&self, mute: Duration) {
        if mute.is_zero() {
            return;
        }
        let mut until = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(Some(after(mute)));
    }

    /// Waits until it is over, also if it is prolonged meanwhile.
    pub(super) async fn over(&self) {
        while let Some(until) = self.until() {
            sleep_until(until).await;
        }
    }

    fn until(&self) -> Option<Instant> {
        let mut until = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *until = until.filter(|until| *until > Instant::now());
        *until
    }
}

/// How much is under way, and since when nothing is.
pub(super) struct Pulse(Mutex<Beat>);

struct Beat {
    under_way: usize,
    quiet_since: Instant,
}

impl Pulse {
    fn new() -> Self {
        Self(Mutex::new(Beat { under_way: 0, quiet_since: Instant::now() }))
    }

    /// A request was admitted.
    pub(super) fn begin(&self) {
        let mut beat = self.beat();
        beat.under_way = beat.under_way.saturating_add(1);
    }

    /// It was answered.
    pub(super) fn end(&self) {
        let mut beat = self.beat();
        beat.under_way = beat.under_way.saturating_sub(1);
        beat.quiet_since = Instant::now();
    }

    /// What is left of the time that the connection may be idle; all of it while something is under way.
    pub(super) fn idle_left(&self, idle_max: Duration) -> Duration {
        let beat = self.beat();
        match beat.under_way {
            0 => idle_max.saturating_sub(beat.quiet_since.elapsed()),
            _ => idle_max,
        }
    }

    fn beat(&self) -> MutexGuard<'_, Beat> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::account::Budget;
    use super::super::{Config, Reply, RequestContext};
    use super::*;
    use crate::api::Request;

    struct Large;

    impl Service for Large {
        async fn admit(&self, _: RequestContext, _: Request) -> ReplyFuture {
            let kept = [0_u8; 10_000];
            tokio::task::yield_now().await;
            let length = kept.len();
            Box::pin(async move { Reply::Close { reason: length.to_string() } })
        }
    }

    /// There are many of them, and most wait for a request.
    #[tokio::test]
    async fn a_connection_that_waits_is_small_whatever_its_service_keeps() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (budget, (_stop, stopped)) = (Arc::new(Budget::new(0)), watch::channel(false));
        let shared = Arc::new(Shared::new(Config::default(), budget, Arc::new(Large)));
        let ticket = shared.doors.enter([127, 0, 0, 1].into()).unwrap();
        let peer = stream.local_addr().unwrap();
        let bytes = size_of_val(&serve(shared, stream, peer, ticket, stopped));
        assert!(bytes <= 3_072, "{bytes} bytes");
    }
}
