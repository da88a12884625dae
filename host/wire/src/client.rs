//! The client's end: one connection to one broker, for the command line, the mirror and the tests.
//!
//! [`Connection::send`] encodes a request, waits for its answer and decodes it after the same hostile-length walk that
//! requests get. It takes `&self`: several sends may be under way at once; answers are matched by correlation id.
//! [`Connection::submit`] writes a request and returns before the answer is there, for pipelining in a known order.
//! An error of the connection ends it: every send under way and every later one fails with [`ClientError::Closed`].

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::{Request as RequestMessage, StrBytes};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::api::{ApiKey, EncodeError};
use crate::error::{ErrorCode, describe};
use crate::frame::{self, FRAME_BYTES_MAX};
use crate::request;
use crate::response::{self, ResponseError};
use crate::shape::Limits;

/// Settings of a client connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// What the client calls itself in every header.
    pub client_id: String,
    /// How long connecting may take.
    pub connect_max: Duration,
    /// How long an answer may take.
    pub answer_max: Duration,
    /// The largest answer taken, in bytes.
    pub answer_bytes_max: usize,
    /// Bounds of a single answer.
    pub limits: Limits,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            client_id: "verbatim".to_owned(),
            connect_max: Duration::from_secs(10),
            answer_max: Duration::from_secs(30),
            answer_bytes_max: FRAME_BYTES_MAX,
            limits: Limits::RESPONSE,
        }
    }
}

/// What can go wrong with a request to a broker.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection could not be made.
    #[error("connecting failed: {0}")]
    Connect(std::io::Error),
    /// Connecting or an answer took too long.
    #[error("no {what} within {waited:?}")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long.
        waited: Duration,
    },
    /// The connection is closed; the text says why.
    #[error("connection closed: {reason}")]
    Closed {
        /// Why, as far as it is known.
        reason: String,
    },
    /// The request does not fit its version.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The answer is not one.
    #[error(transparent)]
    Response(#[from] ResponseError),
    /// The broker answered ApiVersions with an error.
    #[error("ApiVersions answered {}", describe(*.code))]
    Refused {
        /// The error code.
        code: i16,
    },
    /// Broker and client have no version of the API in common.
    #[error("no common version of {}: asked for {asked_min} to {asked_max}, broker has {broker}", .key.name())]
    NoVersion {
        /// The API.
        key: ApiKey,
        /// The lowest version asked for.
        asked_min: i16,
        /// The highest version asked for.
        asked_max: i16,
        /// What the broker has, in words.
        broker: String,
    },
    /// The message belongs to an API that this crate does not speak.
    #[error("API key {0} is not spoken here")]
    UnknownApi(i16),
}

impl Clone for ClientError {
    fn clone(&self) -> Self {
        match self {
            Self::Connect(error) => Self::Connect(std::io::Error::new(error.kind(), error.to_string())),
            Self::Timeout { what, waited } => Self::Timeout { what, waited: *waited },
            Self::Closed { reason } => Self::Closed { reason: reason.clone() },
            Self::Encode(error) => Self::Encode(error.clone()),
            Self::Response(error) => Self::Response(error.clone()),
            Self::Refused { code } => Self::Refused { code: *code },
            Self::NoVersion { key, asked_min, asked_max, broker } => Self::NoVersion {
                key: *key,
                asked_min: *asked_min,
                asked_max: *asked_max,
                broker: broker.clone(),
            },
            Self::UnknownApi(key) => Self::UnknownApi(*key),
        }
    }
}

/// The version ranges a broker advertises, by API number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerVersions {
    ranges: HashMap<i16, (i16, i16)>,
}

impl BrokerVersions {
    /// The broker's range of an API, if it has it.
    pub fn range(&self, key: ApiKey) -> Option<(i16, i16)> {
        self.ranges.get(&key.number()).copied()
    }

    /// The highest version of `min..=max` that the broker and this crate have too.
    ///
    /// # Errors
    /// [`ClientError::NoVersion`].
    pub fn highest(&self, key: ApiKey, min: i16, max: i16) -> Result<i16, ClientError> {
        let broker = self.range(key);
        let api = key.api();
        broker
            .map(|(low, high)| (low.max(min).max(api.min), high.min(max).min(api.max)))
            .filter(|(low, high)| low <= high)
            .map(|(_, high)| high)
            .ok_or_else(|| ClientError::NoVersion {
                key,
                asked_min: min,
                asked_max: max,
                broker: broker.map_or_else(|| "none".to_owned(), |(low, high)| format!("{low} to {high}")),
            })
    }
}

impl From<&ApiVersionsResponse> for BrokerVersions {
    fn from(answer: &ApiVersionsResponse) -> Self {
        let ranges = answer.api_keys.iter().map(|row| (row.api_key, (row.min_version, row.max_version)));
        Self { ranges: ranges.collect() }
    }
}

/// A connection to a broker. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    config: ClientConfig,
    versions: BrokerVersions,
    writer: tokio::sync::Mutex<OwnedWriteHalf>,
    waiting: Arc<Mutex<Waiting>>,
    next_correlation_id: AtomicI32,
    reading: JoinHandle<()>,
}

/// Who waits for which answer; or, once the connection is closed, why it is.
#[derive(Debug, Default)]
struct Waiting {
    answers: HashMap<i32, oneshot::Sender<Bytes>>,
    closed: Option<String>,
}

impl Connection {
    /// Connects and learns the broker's versions (ApiVersions, falling back to version 0 as KIP-511 has it).
    ///
    /// # Errors
    /// [`ClientError::Connect`], [`ClientError::Timeout`], or what the first exchange ran into.
    pub async fn connect(address: impl ToSocketAddrs, config: ClientConfig) -> Result<Self, ClientError> {
        let mut connection = Self::connect_raw(address, config).await?;
        connection.versions = connection.negotiate().await?;
        Ok(connection)
    }

    /// Connects without a first exchange: [`Connection::versions`] is empty. For tests that speak for themselves.
    ///
    /// # Errors
    /// [`ClientError::Connect`] or [`ClientError::Timeout`].
    pub async fn connect_raw(address: impl ToSocketAddrs, config: ClientConfig) -> Result<Self, ClientError> {
        let stream = within("connection", config.connect_max, TcpStream::connect(address))
            .await?
            .map_err(ClientError::Connect)?;
        stream.set_nodelay(true).map_err(ClientError::Connect)?;
        let (reader, writer) = stream.into_split();
        let waiting = Arc::<Mutex<Waiting>>::default();
        let reading = tokio::spawn(read_answers(reader, Arc::clone(&waiting), config.answer_bytes_max));
        Ok(Self {
            config,
            versions: BrokerVersions::default(),
            writer: tokio::sync::Mutex::new(writer),
            waiting,
            next_correlation_id: AtomicI32::new(0),
            reading,
        })
    }

    /// What the broker advertised.
    pub fn versions(&self) -> &BrokerVersions {
        &self.versions
    }

    /// True once the connection is closed, by whichever end: nothing can be asked over it any more.
    pub fn is_closed(&self) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).closed.is_some()
    }

    /// The highest version that the broker and this crate have in common.
    ///
    /// # Errors
    /// [`ClientError::NoVersion`].
    pub fn version_of(&self, key: ApiKey) -> Result<i16, ClientError> {
        self.versions.highest(key, key.api().min, key.api().max)
    }

    /// Sends a request in the highest common version and waits for its answer.
    ///
    /// # Errors
    /// [`ClientError::NoVersion`] and everything [`Connection::send`] can say.
    pub async fn call<R: RequestMessage>(&self, request: &R) -> Result<R::Response, ClientError> {
        self.send(self.version_of(key_of::<R>()?)?, request).await
    }

    /// Sends a request in the version given and waits for its answer.
    ///
    /// # Errors
    /// A request that does not fit the version, a closed connection, no answer in time, an answer of a false shape.
    /// Error codes inside an answer are for the caller to read.
    pub async fn send<R: RequestMessage>(
        &self,
        version: i16,
        request: &R,
    ) -> Result<R::Response, ClientError> {
        self.submit(version, request).await?.await
    }

    /// Writes a request and returns a future of its answer; later requests are written after this one.
    ///
    /// # Errors
    /// As [`Connection::send`], split between writing (here) and answer (the future).
    pub async fn submit<R: RequestMessage>(
        &self,
        version: i16,
        request: &R,
    ) -> Result<impl Future<Output = Result<R::Response, ClientError>> + Send + use<R>, ClientError> {
        let (correlation_id, frame) = self.encode(version, request)?;
        let (sender, answer) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(reason) = &waiting.closed {
                return Err(ClientError::Closed { reason: reason.clone() });
            }
            waiting.answers.insert(correlation_id, sender);
        }
        self.send_raw(&frame).await?;
        let (waiting, limits, wait) = (Arc::clone(&self.waiting), self.config.limits, self.config.answer_max);
        Ok(async move {
            let answer = within("answer", wait, answer).await?;
            let frame = answer.map_err(|_| closed(&waiting))?;
            Ok(response::decode::<R>(version, frame, limits)?)
        })
    }

    /// Writes a request that has no answer: Produce with acks = 0.
    ///
    /// # Errors
    /// A request that does not fit the version, or a closed connection.
    pub async fn send_unanswered<R: RequestMessage>(
        &self,
        version: i16,
        request: &R,
    ) -> Result<(), ClientError> {
        let (_, frame) = self.encode(version, request)?;
        self.send_raw(&frame).await
    }

    /// Writes bytes as they are, for tests of what a broker does with them.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub async fn send_raw(&self, bytes: &[u8]) -> Result<(), ClientError> {
        let mut writer = self.writer.lock().await;
        let mut guard =
            WriteGuard { waiting: &self.waiting, reason: Some("a write was given up half-way".to_owned()) };
        let written = writer.write_all(bytes).await;
        guard.reason = written.err().map(|error| format!("writing failed: {error}"));
        guard.reason.clone().map_or(Ok(()), |reason| Err(ClientError::Closed { reason }))
    }

    /// Waits until the broker closes the connection and says why it ended.
    ///
    /// # Errors
    /// [`ClientError::Timeout`] if it does not close within [`ClientConfig::answer_max`].
    pub async fn closed(&mut self) -> Result<String, ClientError> {
        // A reading task that was ended from outside has closed the connection as well.
        let _ = within("end of the connection", self.config.answer_max, &mut self.reading).await?;
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(waiting.closed.clone().unwrap_or_else(|| ENDED_HERE.to_owned()))
    }

    async fn negotiate(&self) -> Result<BrokerVersions, ClientError> {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str("verbatim"))
            .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
        let answer = self.send(ApiKey::ApiVersions.api().max, &request).await?;
        if answer.error_code == ErrorCode::None.number() {
            return Ok(BrokerVersions::from(&answer));
        }
        if answer.error_code != ErrorCode::UnsupportedVersion.number() {
            return Err(ClientError::Refused { code: answer.error_code });
        }
        let range = BrokerVersions::from(&answer);
        let version = range.highest(ApiKey::ApiVersions, 0, ApiKey::ApiVersions.api().max).unwrap_or(0);
        let answer = self.send(version, &request).await?;
        match answer.error_code {
            0 => Ok(BrokerVersions::from(&answer)),
            code => Err(ClientError::Refused { code }),
        }
    }

    fn encode<R: RequestMessage>(&self, version: i16, request: &R) -> Result<(i32, Bytes), ClientError> {
        let key = key_of::<R>()?;
        let correlation_id = self.next_correlation_id.fetch_add(1, Ordering::Relaxed);
        let frame =
            request::encode_with(key, version, correlation_id, Some(&self.config.client_id), |out| {
                crate::api::encode(request, key, version, out)
            })?;
        Ok((correlation_id, frame))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Closes the connection unless the write was whole: half a frame would garble everything after it.
struct WriteGuard<'a> {
    waiting: &'a Mutex<Waiting>,
    reason: Option<String>,
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        if let Some(reason) = &self.reason {
            close(self.waiting, reason);
        }
    }
}

const ENDED_HERE: &str = "ended on this side";

fn key_of<R: RequestMessage>() -> Result<ApiKey, ClientError> {
    ApiKey::from_number(R::KEY).ok_or(ClientError::UnknownApi(R::KEY))
}

async fn within<T>(
    what: &'static str,
    waited: Duration,
    future: impl Future<Output = T>,
) -> Result<T, ClientError> {
    timeout(waited, future).await.map_err(|_| ClientError::Timeout { what, waited })
}

async fn read_answers(mut reader: OwnedReadHalf, waiting: Arc<Mutex<Waiting>>, bytes_max: usize) {
    let reason = loop {
        let frame = match frame::read(&mut reader, bytes_max).await {
            Ok(Some(frame)) => frame,
            Ok(None) => break "by the broker".to_owned(),
            Err(error) => break error.to_string(),
        };
        let Some(correlation_id) = response::correlation_id(&frame) else {
            break format!("an answer of {} bytes has no correlation id", frame.len());
        };
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.answers.remove(&correlation_id) {
            // The one who waited may have given up.
            Some(sender) => drop(sender.send(frame)),
            None => break format!("an answer to correlation id {correlation_id}, which was not asked"),
        }
    };
    close(&waiting, &reason);
}

/// Marks the connection closed, the first reason staying, and wakes everyone who waits.
fn close(waiting: &Mutex<Waiting>, reason: &str) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.closed.get_or_insert_with(|| reason.to_owned());
    waiting.answers.clear();
}

fn closed(waiting: &Mutex<Waiting>) -> ClientError {
    let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    ClientError::Closed { reason: waiting.closed.clone().unwrap_or_else(|| ENDED_HERE.to_owned()) }
}
