//! The writing half: from replies in the making to bytes, in order.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::account::FREE_BYTES;
use super::connection::{Link, Pending};
use super::ended::Ended;
use super::event::Event;
use super::pace::Pace;
use super::{Reply, Service};
use crate::api::ApiKey;
use crate::request::RequestHead;
use crate::response;

/// Awaits the replies in order and writes them, until the queue ends.
pub(super) async fn write_answers<S: Service>(
    link: &Link<'_, S>,
    mut writer: impl AsyncWrite + Unpin,
    mut pending: mpsc::Receiver<Box<Pending>>,
) -> Result<(), Ended> {
    while let Some(next) = pending.recv().await {
        let held = match *next {
            Pending::Ready { answer, held } => {
                write_all(link, &mut writer, &answer, true).await?;
                let bytes = answer.len();
                link.shared.service.observe(Event::Sent { key: ApiKey::ApiVersions, bytes });
                held
            }
            Pending::Reply { head, mut reply, held } => {
                let (made, mute) = reply.as_mut().await.split();
                let mute = mute.min(link.shared.config.mute_max);
                // From now on, so that nothing is read while the answer is written; and counted from when it was sent.
                link.mute.begin(mute);
                if let Some(answer) = encode(&head, made)? {
                    // The records of a Fetch answer are counted by the service, until the reply is dropped.
                    write_all(link, &mut writer, &answer, head.key != ApiKey::Fetch).await?;
                    link.shared.service.observe(Event::Sent { key: head.key, bytes: answer.len() });
                }
                link.mute.begin(mute);
                held
            }
        };
        link.account.give(held);
        link.pulse.end();
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

/// Writes all bytes as long as the peer takes them at its pace. What it does not take at once is counted, if asked for.
async fn write_all<S>(
    link: &Link<'_, S>,
    writer: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    is_counted: bool,
) -> Result<(), Ended> {
    let config = &link.shared.config;
    let mut pace = Pace::new(config.stall_max, bytes.len());
    let mut held = 0;
    while !bytes.is_empty() {
        let written = match write_now(writer, bytes).await {
            Some(written) => written,
            None => {
                if is_counted && held == 0 && bytes.len() > FREE_BYTES {
                    let since = Instant::now();
                    link.account.take_answer(bytes.len(), config.room_wait_max).await?;
                    held = bytes.len();
                    pace.waited(since);
                }
                match timeout_at(pace.due(), writer.write(bytes)).await {
                    Ok(written) => written,
                    Err(_) => return Err(Ended::NotTaken(config.stall_max)),
                }
            }
        };
        match written.map_err(Ended::Write)? {
            0 => return Err(Ended::Write(io::ErrorKind::WriteZero.into())),
            written => {
                pace.moved(written);
                bytes = bytes.get(written..).unwrap_or_default();
            }
        }
    }
    link.account.give(held);
    Ok(())
}

/// Writes what is taken at once; `None` if nothing is.
async fn write_now(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Option<io::Result<usize>> {
    poll_fn(|context| match Pin::new(&mut *writer).poll_write(context, bytes) {
        Poll::Ready(written) => Poll::Ready(Some(written)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
