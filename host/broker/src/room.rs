//! Room for records that were read and not yet taken by their reader, bounded over all connections.
//!
//! Whoever asks gets at most a quarter of what is left, so that a few slow readers never leave nothing for the others. Who
//! gets less than one batch is given one all the same, but only a few at a time; the others wait for their turn.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use verbatim_wire::server::{Reply, ReplyFuture};

/// Bytes that one permit stands for.
const PERMIT_BYTES: usize = 1_024;
/// Permits that are given even if they are more than a quarter of what is left.
const LEAST: usize = 64;

/// Batches at a time that are larger than the room their readers got.
const BEYOND: usize = 8;

/// All the room there is.
pub(crate) struct Rooms {
    bytes: Arc<Semaphore>,
    beyond: Arc<Semaphore>,
}

/// Some of it, given back when dropped.
pub(crate) struct Room {
    bytes: Option<OwnedSemaphorePermit>,
    beyond: Option<OwnedSemaphorePermit>,
}

impl Rooms {
    pub(crate) fn new(bytes: usize) -> Self {
        let permits = (bytes / PERMIT_BYTES).min(Semaphore::MAX_PERMITS);
        Self { bytes: Arc::new(Semaphore::new(permits)), beyond: Arc::new(Semaphore::new(BEYOND)) }
    }

    /// Room for `bytes`, or for fewer, or none.
    pub(crate) fn take(&self, bytes: usize) -> Room {
        let share = (self.bytes.available_permits() / 4).max(LEAST);
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES).min(share)).unwrap_or(u32::MAX);
        Room { bytes: Arc::clone(&self.bytes).try_acquire_many_owned(permits).ok(), beyond: None }
    }

    /// Waits until one batch may be read for which `room` is too small.
    pub(crate) async fn beyond(&self, room: &mut Room) {
        // The semaphore is never closed.
        room.beyond = Arc::clone(&self.beyond).acquire_owned().await.ok();
    }
}

impl Room {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.as_ref().map_or(0, OwnedSemaphorePermit::num_permits).saturating_mul(PERMIT_BYTES)
    }

    /// Gives back what is not needed for `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        if bytes <= self.bytes() {
            self.beyond = None;
        }
        if let Some(permit) = &mut self.bytes {
            let spare = permit.num_permits().saturating_sub(bytes.div_ceil(PERMIT_BYTES));
            drop(permit.split(spare));
        }
    }
}

/// A reply whose room is kept until the server drops it, which is when its answer was written.
pub(crate) fn held(reply: impl Future<Output = (Reply, Room)> + Send + 'static) -> ReplyFuture {
    let room = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&room);
    let reply = Box::pin(async move {
        let (reply, room) = reply.await;
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(room);
        reply
    });
    Box::pin(Held { reply, _room: room })
}

struct Held {
    reply: ReplyFuture,
    _room: Arc<Mutex<Option<Room>>>,
}

impl Future for Held {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reply> {
        self.reply.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_and_what_is_dropped_comes_back() {
        let rooms = Rooms::new(1 << 20);
        let taken: Vec<Room> = (0..100).map(|_| rooms.take(usize::MAX)).collect();
        assert_eq!(taken.first().map(Room::bytes), Some(1 << 18));
        assert_eq!(taken.last().map(Room::bytes), Some(0));
        assert!(taken.iter().map(Room::bytes).sum::<usize>() <= 1 << 20);
        drop(taken);
        let mut room = rooms.take(5_000);
        assert_eq!(room.bytes(), 5 * 1_024);
        room.shrink(1);
        assert_eq!(room.bytes(), 1_024);
        assert_eq!(rooms.take(0).bytes(), 0);
    }

    #[tokio::test]
    async fn batches_beyond_the_room_are_few_at_a_time_and_what_fits_is_none() {
        let rooms = Rooms::new(0);
        let mut taken: Vec<Room> = (0..BEYOND).map(|_| rooms.take(1)).collect();
        for room in &mut taken {
            rooms.beyond(room).await;
            room.shrink(1);
        }
        let mut next = rooms.take(1);
        let waited = tokio::time::timeout(std::time::Duration::from_millis(10), rooms.beyond(&mut next));
        assert!(waited.await.is_err(), "one more than there are turns");
        if let Some(room) = taken.first_mut() {
            room.shrink(0);
        }
        rooms.beyond(&mut next).await;
        assert_eq!(rooms.beyond.available_permits(), 0);
    }

    #[tokio::test]
    async fn room_is_held_until_the_reply_is_dropped_not_until_it_is_made() {
        let rooms = Rooms::new(1 << 20);
        let room = rooms.take(1_024);
        let mut reply = held(async move { (Reply::Silent, room) });
        assert_eq!(reply.as_mut().await, Reply::Silent);
        assert_eq!(rooms.bytes.available_permits(), 1_023);
        drop(reply);
        assert_eq!(rooms.bytes.available_permits(), 1_024);
    }
}
