//! Memory for what is fetched and not yet used.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What one permit stands for.
const PERMIT_BYTES: usize = 1024;
/// A piece is copied out of its answer if it is smaller than this part of it, so that it does not keep all of it.
const COPIED_PART: usize = 16;

/// The room that a piece takes up, until this is dropped. Pieces of one answer share the answer's room: it is free again when
/// the last of them is gone, as its memory is.
#[derive(Debug, Default)]
pub struct Room {
    _share: Option<Arc<OwnedSemaphorePermit>>,
}

/// All the room there is.
#[derive(Debug)]
pub(super) struct Rooms {
    permits: Arc<Semaphore>,
    total: u32,
}

/// Room for an answer.
#[derive(Debug)]
pub(super) struct Reserved(Option<OwnedSemaphorePermit>);

impl Rooms {
    pub(super) fn new(bytes: usize) -> Self {
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let total = permits(bytes).clamp(1, most);
        Self { permits: Arc::new(Semaphore::new(usize::try_from(total).unwrap_or(1))), total }
    }

    /// Waits for room for so many bytes, or for all there is. First come, first served.
    pub(super) async fn reserve(&self, bytes: usize) -> Reserved {
        let wanted = permits(bytes).min(self.total);
        Reserved(Arc::clone(&self.permits).acquire_many_owned(wanted).await.ok())
    }
}

impl Reserved {
    /// How many bytes fit.
    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |permit| permit.num_permits().saturating_mul(PERMIT_BYTES))
    }

    /// Deals the room out to the pieces of an answer, and frees the rest. An answer that is larger than its room, because a
    /// single batch is, has what there is.
    pub(super) fn deal(mut self, pieces: Vec<Bytes>) -> Vec<(Bytes, Room)> {
        let all = pieces.iter().fold(0_usize, |all, piece| all.saturating_add(piece.len()));
        let is_small = |piece: &Bytes| piece.len().saturating_mul(COPIED_PART) < all;
        let small: Vec<Option<Room>> = pieces
            .iter()
            .map(|piece| is_small(piece).then(|| Room { _share: self.split(piece.len()) }))
            .collect();
        let large = pieces
            .iter()
            .filter(|piece| !is_small(piece))
            .fold(0, |all: usize, piece| all.saturating_add(piece.len()));
        let share = self.split(large);
        let deal = |(piece, room): (Bytes, Option<Room>)| match room {
            Some(room) => (Bytes::copy_from_slice(&piece), room),
            None => (piece, Room { _share: share.clone() }),
        };
        pieces.into_iter().zip(small).map(deal).collect()
    }

    fn split(&mut self, bytes: usize) -> Option<Arc<OwnedSemaphorePermit>> {
        let wanted = usize::try_from(permits(bytes)).unwrap_or(usize::MAX);
        let permit = self.0.as_mut()?;
        permit.split(wanted.min(permit.num_permits())).map(Arc::new)
    }
}

/// Bytes that a whole number of permits stands for.
pub(super) fn rounded_down(bytes: usize) -> usize {
    bytes / PERMIT_BYTES * PERMIT_BYTES
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX)
}
