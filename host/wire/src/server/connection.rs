//! One connection: a reading half that admits requests and a writing half that answers them, joined by a bounded queue.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Config, PERMIT_BYTES, Reply, ReplyFuture, RequestContext, Service, Shared};
use crate::api::{ApiKey, EncodeError};
use crate::frame::{self, FrameError};
use crate::request::{self, RequestError, RequestHead};
use crate::response;
use crate::shape::ELEMENT_BYTES;

/// Why a connection ended, if not by the peer's or our own wish.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("no bytes for {0:?} inside a frame")]
    Stalled(Duration),
    #[error("no room for the request within {0:?}: the buffer of all connections is full")]
    NoRoom(Duration),
    #[error("writing an answer failed: {0}")]
    Write(io::Error),
    #[error("{} answered with a body of {}", .asked.name(), .answered.name())]
    WrongApi { asked: ApiKey, answered: ApiKey },
    #[error("{0}")]
    Service(String),
}

impl Ended {
    /// True if the peer just went away, as clients do that are stopped while a fetch waits.
    fn is_departure(&self) -> bool {
        match self {
            Self::Write(error) | Self::Frame(FrameError::Io(error)) => matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::NotConnected
            ),
            _ => false,
        }
    }
}

/// One request on its way to its answer, in order.
enum Pending {
    Reply { head: RequestHead, reply: ReplyFuture, held: Held },
    Ready(Bytes),
}

/// Room held in the server's budget.
type Held = Option<OwnedSemaphorePermit>;

/// Serves a connection to its end. Logs what is worth knowing once, with the peer.
pub(super) async fn serve<S: Service>(
    shared: Arc<Shared<S>>,
    stream: TcpStream,
    peer: SocketAddr,
    stopped: watch::Receiver<bool>,
) {
    let (reader, writer) = stream.into_split();
    let (queue, pending) = mpsc::channel(shared.config.in_flight_max.max(1));
    tracing::debug!(%peer, "connection opened");
    let ended = {
        let mute = Mute::default();
        let reading = read_requests(&shared, reader, peer, queue, &mute, stopped);
        let writing = write_answers(&shared.config, writer, pending, &mute);
        tokio::pin!(reading, writing);
        tokio::select! {
            written = &mut writing => written,
            read = &mut reading => {
                let written = writing.await;
                read.and(written)
            }
        }
    };
    match ended {
        Ok(()) => tracing::debug!(%peer, "connection closed"),
        Err(error) if error.is_departure() => tracing::debug!(%peer, %error, "connection closed"),
        Err(error) => tracing::warn!(%peer, error = %one_line(&error), "connection closed"),
    }
}

/// What an error says, with control characters escaped: it may quote the peer, who shall not write lines of the log.
fn one_line(error: &Ended) -> String {
    let mut line = String::new();
    for letter in error.to_string().chars() {
        if letter.is_control() { line.extend(letter.escape_default()) } else { line.push(letter) }
    }
    line
}

/// Reads and admits until the peer closes, the server stops, or something is wrong.
async fn read_requests<S: Service>(
    shared: &Shared<S>,
    mut reader: impl AsyncRead + Unpin,
    peer: SocketAddr,
    queue: mpsc::Sender<Pending>,
    mute: &Mute,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), Ended> {
    loop {
        let frame = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => return Ok(()),
            frame = read_frame(shared, &mut reader, mute) => frame?,
        };
        let Some((frame, held)) = frame else { return Ok(()) };
        let pending = admit(shared, peer, frame, held).await?;
        if queue.send(pending).await.is_err() {
            return Ok(());
        }
    }
}

/// Reads one frame; `None` if the peer closed or was silent for too long between frames.
async fn read_frame<S>(
    shared: &Shared<S>,
    reader: &mut (impl AsyncRead + Unpin),
    mute: &Mute,
) -> Result<Option<(Bytes, Held)>, Ended> {
    let config = &shared.config;
    let Ok(length) = timeout(config.idle_max, frame::read_length(reader, config.request_bytes_max)).await
    else {
        return Ok(None);
    };
    let Some(length) = length? else { return Ok(None) };
    mute.over().await;
    let mut body = BytesMut::new();
    let mut held = None;
    while body.len() < length {
        let before = body.capacity();
        let room = frame::growth(&body, length);
        if before > 0 {
            hold(&shared.budget, &mut held, room, config.room_wait_max).await?;
        }
        body.reserve(room);
        match timeout(config.stall_max, frame::read_some(reader, &mut body, length)).await {
            Ok(read) => read?,
            Err(_) => return Err(Ended::Stalled(config.stall_max)),
        }
    }
    // It may have been muted while the frame came.
    mute.over().await;
    Ok(Some((body.freeze(), held)))
}

/// Takes room for so many bytes from the budget, waiting for it within bounds.
async fn hold(budget: &Arc<Semaphore>, held: &mut Held, bytes: usize, wait: Duration) -> Result<(), Ended> {
    let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX);
    if permits == 0 {
        return Ok(());
    }
    let more = timeout(wait, Arc::clone(budget).acquire_many_owned(permits)).await;
    let Ok(Ok(more)) = more else { return Err(Ended::NoRoom(wait)) };
    match held {
        Some(held) => held.merge(more),
        None => *held = Some(more),
    }
    Ok(())
}

async fn admit<S: Service>(
    shared: &Shared<S>,
    peer: SocketAddr,
    frame: Bytes,
    mut held: Held,
) -> Result<Pending, Ended> {
    let checked = match request::check(&frame, shared.config.limits) {
        Err(RequestError::UnsupportedVersion { key: ApiKey::ApiVersions, version, correlation_id }) => {
            tracing::debug!(%peer, version, "ApiVersions version not served, answered with version 0");
            let answer =
                response::unsupported_api_versions(correlation_id, |key| shared.service.serves(key))?;
            return Ok(Pending::Ready(answer));
        }
        checked => checked?,
    };
    drop(frame);
    let RequestHead { key, version, correlation_id, .. } = checked.head;
    if !shared.service.serves(key) {
        return Err(RequestError::UnknownApi { key: key.number(), version, correlation_id }.into());
    }
    if checked.elements > FREE_ELEMENTS {
        let bytes = checked.elements.saturating_mul(ELEMENT_BYTES);
        hold(&shared.budget, &mut held, bytes, shared.config.room_wait_max).await?;
    }
    let request::Decoded { head, request } = checked.decode()?;
    let context = RequestContext { peer, head: head.clone() };
    let reply = shared.service.admit(context, request).await;
    Ok(Pending::Reply { head, reply, held })
}

/// Elements that a request may hold without being counted in the budget.
const FREE_ELEMENTS: usize = 64;

/// Until when nothing is read, as the writing half tells the reading half.
#[derive(Default)]
struct Mute(Mutex<Option<Instant>>);

impl Mute {
    fn begin(&self, mute: Duration) {
        if mute.is_zero() {
            return;
        }
        let mut until = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(Instant::now().checked_add(mute));
    }

    /// Waits until it is over, also if it is prolonged meanwhile.
    async fn over(&self) {
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

/// Awaits the replies in order and writes them, until the queue ends.
async fn write_answers(
    config: &Config,
    mut writer: impl AsyncWrite + Unpin,
    mut pending: mpsc::Receiver<Pending>,
    mute: &Mute,
) -> Result<(), Ended> {
    let stall_max = config.stall_max;
    while let Some(next) = pending.recv().await {
        match next {
            Pending::Ready(answer) => write_all(&mut writer, &answer, stall_max).await?,
            Pending::Reply { head, mut reply, held } => {
                let (made, muted) = reply.as_mut().await.split();
                let muted = muted.min(config.mute_max);
                // From now on, so that nothing is read while the answer is written; and counted from when it was sent.
                mute.begin(muted);
                if let Some(answer) = encode(&head, made)? {
                    write_all(&mut writer, &answer, stall_max).await?;
                }
                mute.begin(muted);
                drop((reply, held));
            }
        }
    }
    writer.shutdown().await.or_else(|error| match error.kind() {
        io::ErrorKind::NotConnected => Ok(()),
        _ => Err(Ended::Write(error)),
    })
}

fn encode(head: &RequestHead, reply: Reply) -> Result<Option<Bytes>, Ended> {
    match reply {
        Reply::Answer(answer) if answer.key() == head.key => {
            Ok(Some(response::encode(head.version, head.correlation_id, &answer)?))
        }
        Reply::Answer(answer) => Err(Ended::WrongApi { asked: head.key, answered: answer.key() }),
        Reply::Silent => Ok(None),
        Reply::Close { reason } => Err(Ended::Service(reason)),
        Reply::Muted { reply, .. } => encode(head, *reply),
    }
}

/// Writes all bytes as long as the peer takes some of them within `stall_max`.
async fn write_all(
    writer: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    stall_max: Duration,
) -> Result<(), Ended> {
    while !bytes.is_empty() {
        let written = match timeout(stall_max, writer.write(bytes)).await {
            Ok(written) => written.map_err(Ended::Write)?,
            Err(_) => return Err(Ended::Write(io::ErrorKind::TimedOut.into())),
        };
        if written == 0 {
            return Err(Ended::Write(io::ErrorKind::WriteZero.into()));
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_cannot_write_lines_of_the_log() {
        let error = Ended::Service("topic=`x\n2026 ERROR \u{1b}[31m\u{e4}`".to_owned());
        assert_eq!(one_line(&error), "topic=`x\\n2026 ERROR \\u{1b}[31m\u{e4}`");
    }
}
