//! The listener for `/metrics`, `/healthz` and `/readyz`: HTTP/1.1, one request a connection.
//!
//! **Bounds.** [`CONNECTIONS_MAX`] connections at a time, of which the oldest gives way to one more; each within
//! [`CONNECTION_TIME_MAX`] from its first byte to its last; a request's head within [`HEAD_BYTES_MAX`], its body unread.
//! [`TEXTS_MAX`] texts of metrics are in memory at a time, made or on their way out; who comes meanwhile waits.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::collect::{self, Format, More};
use super::health::{self, Health};
use crate::shared::Shared;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 64;
/// How long a connection may last.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of a request's line and headers.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// Texts of metrics at a time, some 1 KiB a partition each.
const TEXTS_MAX: u32 = 2;
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener that answers. Dropping it ends it at once.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Endpoint {
    /// Answers for a host on a bound listener from now on.
    pub(crate) fn start(listener: (TcpListener, SocketAddr), shared: &Arc<Shared>) -> Self {
        Self::answer(listener, Arc::new(Host(Arc::clone(shared))))
    }

    /// Answers for a program that is no host: `/metrics` has what it tells, `/healthz` and `/readyz` are good while it runs.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn bind(address: SocketAddr, more: Arc<dyn More>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self::answer((listener, address), Arc::new(Program(more))))
    }

    fn answer((listener, address): (TcpListener, SocketAddr), site: Arc<dyn Site>) -> Self {
        let stop = CancellationToken::new();
        let page = Page { site, texts: Arc::new(Semaphore::new(texts_max())) };
        let task = tokio::spawn(run(listener, page, stop.clone()));
        Self { address, stop: stop.drop_guard(), task }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it; afterwards it holds nothing of what it answered for any more.
    pub async fn end(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the metrics listener ended badly");
        }
    }
}

/// What is answered for.
trait Site: Send + Sync {
    fn text(&self, format: Format) -> Result<String, fmt::Error>;
    fn alive(&self) -> Health;
    fn ready(&self) -> Health;
}

struct Host(Arc<Shared>);

impl Site for Host {
    fn text(&self, format: Format) -> Result<String, fmt::Error> {
        collect::text(&self.0, format)
    }

    fn alive(&self) -> Health {
        health::alive(&self.0)
    }

    fn ready(&self) -> Health {
        health::ready(&self.0)
    }
}

struct Program(Arc<dyn More>);

impl Site for Program {
    fn text(&self, format: Format) -> Result<String, fmt::Error> {
        collect::text_of(&self.0, format)
    }

    fn alive(&self) -> Health {
        Health::good("ok")
    }

    fn ready(&self) -> Health {
        Health::good("ok")
    }
}

/// The text for whoever shows it by other means.
pub(crate) fn plain_text(shared: &Arc<Shared>) -> String {
    // Only a writer fails, and a text takes everything.
    collect::text(shared, Format::OpenMetrics).unwrap_or_default()
}

fn texts_max() -> usize {
    usize::try_from(TEXTS_MAX).unwrap_or(1)
}

async fn run(listener: TcpListener, page: Page, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut oldest_first = VecDeque::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    make_room(&mut oldest_first);
                    oldest_first.push_back(connections.spawn(serve(stream, page.clone())));
                }
                Err(error) => {
                    tracing::debug!(%error, "accepting a connection for metrics failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    connections.shutdown().await;
    // A text may be in the making on a thread that cannot be stopped.
    let _ = page.texts.acquire_many(TEXTS_MAX).await;
}

fn make_room(oldest_first: &mut VecDeque<AbortHandle>) {
    oldest_first.retain(|connection| !connection.is_finished());
    if oldest_first.len() >= CONNECTIONS_MAX
        && let Some(oldest) = oldest_first.pop_front()
    {
        oldest.abort();
    }
}

async fn serve(stream: TcpStream, page: Page) {
    let service = service_fn(move |request| {
        let page = page.clone();
        async move { Ok::<_, Infallible>(page.answer(&request).await) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(CONNECTION_TIME_MAX, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a request for metrics failed"),
        Err(_) => tracing::debug!("a request for metrics took too long"),
    }
}

#[derive(Clone)]
struct Page {
    site: Arc<dyn Site>,
    texts: Arc<Semaphore>,
}

impl Page {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        if !matches!(path, "/metrics" | "/healthz" | "/readyz") {
            return plain(StatusCode::NOT_FOUND, "/metrics, /healthz and /readyz are here\n");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD are answered\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let site = Arc::clone(&self.site);
        match path {
            "/healthz" => health(site.alive()),
            "/readyz" => in_background(move || health(site.ready())).await,
            _ => self.metrics(format(request.headers())).await,
        }
    }

    async fn metrics(&self, format: Format) -> Response<Full<Bytes>> {
        let Ok(permit) = Arc::clone(&self.texts).acquire_owned().await else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "shutting down\n");
        };
        let site = Arc::clone(&self.site);
        in_background(move || {
            let made = site.text(format);
            // Whoever waits for the permit to come back must not find the host still held.
            drop(site);
            match made {
                Ok(text) => {
                    let text = Bytes::from_owner(Text { bytes: text.into_bytes(), _permit: permit });
                    answer(StatusCode::OK, format.content_type(), text)
                }
                Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            }
        })
        .await
    }
}

/// A text, counted until it has been sent.
struct Text {
    bytes: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What looks at every partition is not done on a thread that serves.
async fn in_background(
    make: impl FnOnce() -> Response<Full<Bytes>> + Send + 'static,
) -> Response<Full<Bytes>> {
    let made = tokio::task::spawn_blocking(make).await;
    made.unwrap_or_else(|error| plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))
}

/// OpenMetrics for those who ask for it, as Prometheus does; the older text for others.
fn format(headers: &HeaderMap) -> Format {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let asked = accepted.into_iter().any(|value| value.contains("application/openmetrics-text"));
    if asked { Format::OpenMetrics } else { Format::Prometheus }
}

fn health(health: Health) -> Response<Full<Bytes>> {
    plain(if health.is_good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, health.text)
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    answer(status, "text/plain; charset=utf-8", text.into())
}

fn answer(status: StatusCode, content_type: &'static str, text: Bytes) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(text));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
