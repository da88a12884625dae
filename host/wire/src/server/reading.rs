//! The reading half: from bytes to admitted requests.

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};

use super::connection::{Link, Pending};
use super::ended::Ended;
use super::event::Event;
use super::pace::{Pace, after};
use super::{RequestContext, Service};
use crate::api::ApiKey;
use crate::frame::{self, Length, LengthRead};
use crate::request::{self, RequestError, RequestHead};
use crate::response;
use crate::shape::ELEMENT_BYTES;

/// What a request costs beside its bytes and elements, roughly: its place in the queue and its reply in the making.
const REQUEST_BYTES: usize = 1024;
/// Bytes of the length before a frame.
const LENGTH_BYTES: usize = 4;

/// A frame, and how many bytes of the account it holds.
struct Taken {
    frame: Bytes,
    held: usize,
}

/// Reads and admits until the peer closes, the server stops, or something is wrong.
pub(super) async fn read_requests<S: Service>(
    link: &Link<'_, S>,
    mut reader: impl AsyncRead + Unpin,
    queue: mpsc::Sender<Box<Pending>>,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), Ended> {
    // The first request as a whole must be there by then.
    let mut handshake = Some(after(link.shared.config.handshake_max));
    loop {
        let taken = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => return Ok(()),
            taken = take_frame(link, &mut reader, handshake) => taken?,
        };
        let Some(taken) = taken else { return Ok(()) };
        // Boxed: what the service keeps while it admits is large, and most connections are not admitting.
        let pending = Box::pin(admit(link, taken)).await?;
        if handshake.take().is_some() {
            link.ticket.spoke();
        }
        link.pulse.begin();
        if queue.send(Box::new(pending)).await.is_err() {
            return Ok(());
        }
    }
}

/// Reads one frame; `None` if the peer closed between frames.
async fn take_frame<S>(
    link: &Link<'_, S>,
    reader: &mut (impl AsyncRead + Unpin),
    handshake: Option<Instant>,
) -> Result<Option<Taken>, Ended> {
    let Some(length) = read_length(link, reader, handshake).await? else { return Ok(None) };
    link.mute.over().await;
    let taken = Box::pin(read_body(link, reader, length, handshake)).await?;
    // It may have been muted while the frame came.
    link.mute.over().await;
    Ok(Some(taken))
}

async fn read_length<S>(
    link: &Link<'_, S>,
    reader: &mut (impl AsyncRead + Unpin),
    handshake: Option<Instant>,
) -> Result<Option<usize>, Ended> {
    let config = &link.shared.config;
    let mut length = Length::default();
    let mut due = after(link.pulse.idle_left(config.idle_max));
    loop {
        let until = handshake.map_or(due, |handshake| handshake.min(due));
        match timeout_at(until, length.read(reader, config.request_bytes_max)).await {
            Ok(read) => match read? {
                LengthRead::Closed => return Ok(None),
                LengthRead::Whole(length) => return Ok(Some(length)),
                LengthRead::Begun => due = after(config.stall_max),
            },
            Err(_) if handshake.is_some_and(|handshake| handshake <= Instant::now()) => {
                return Err(Ended::NoHandshake(config.handshake_max));
            }
            Err(_) if length.is_begun() => return Err(Ended::Stalled(config.stall_max)),
            Err(_) => match link.pulse.idle_left(config.idle_max) {
                left if left.is_zero() => return Err(Ended::Idle(config.idle_max)),
                left => due = after(left),
            },
        }
    }
}

/// Reads a frame's bytes into room that grows as they come.
async fn read_body<S>(
    link: &Link<'_, S>,
    reader: &mut (impl AsyncRead + Unpin),
    length: usize,
    handshake: Option<Instant>,
) -> Result<Taken, Ended> {
    let config = &link.shared.config;
    let mut body = BytesMut::new();
    let mut held = 0_usize;
    let mut pace = Pace::new(config.stall_max, length);
    while body.len() < length {
        let room = frame::growth(&body, length);
        if room > 0 {
            let since = Instant::now();
            link.account.take(room, held, config.room_wait_max).await?;
            pace.waited(since);
            held = held.saturating_add(room);
            body.reserve(room);
        }
        let until = handshake.map_or(pace.due(), |handshake| handshake.min(pace.due()));
        match timeout_at(until, frame::read_some(reader, &mut body, length)).await {
            Ok(read) => pace.moved(read?),
            Err(_) if handshake.is_some_and(|handshake| handshake <= Instant::now()) => {
                return Err(Ended::NoHandshake(config.handshake_max));
            }
            Err(_) => return Err(Ended::Stalled(config.stall_max)),
        }
    }
    Ok(Taken { frame: body.freeze(), held })
}

async fn admit<S: Service>(link: &Link<'_, S>, taken: Taken) -> Result<Pending, Ended> {
    let (shared, peer) = (link.shared, link.peer);
    let Taken { frame, mut held } = taken;
    let checked = match request::check(&frame, shared.config.limits) {
        Err(RequestError::UnsupportedVersion { key: ApiKey::ApiVersions, version, correlation_id }) => {
            tracing::debug!(%peer, version, "ApiVersions version not served, answered with version 0");
            let bytes = frame.len().saturating_add(LENGTH_BYTES);
            shared.service.observe(Event::Received { key: ApiKey::ApiVersions, bytes });
            let answer =
                response::unsupported_api_versions(correlation_id, |key| shared.service.serves(key))?;
            return Ok(Pending::Ready { answer, held });
        }
        checked => checked?,
    };
    let bytes = frame.len().saturating_add(LENGTH_BYTES);
    drop(frame);
    let RequestHead { key, version, correlation_id, .. } = checked.head;
    if !shared.service.serves(key) {
        return Err(RequestError::UnknownApi { key: key.number(), version, correlation_id }.into());
    }
    shared.service.observe(Event::Received { key, bytes });
    let more = checked.elements.saturating_mul(ELEMENT_BYTES).saturating_add(REQUEST_BYTES);
    link.account.take(more, held, shared.config.room_wait_max).await?;
    held = held.saturating_add(more);
    let request::Decoded { head, request } = checked.decode()?;
    let context = RequestContext { peer, head: head.clone() };
    let reply = shared.service.admit(context, request).await;
    Ok(Pending::Reply { head, reply, held })
}
