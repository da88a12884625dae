//! What followed partitions, their brokers' tasks and the fetcher's handles have in common.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::board::{Board, Line, Phase, Raw};
use super::frames::first_false;
use super::room::Rooms;
use super::{FetchConfig, Leader, Piece, Place, Stop};
use crate::cluster::{Cluster, Partition};

/// What handles hold: the tasks end with the last of them.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
}

impl Inner {
    pub(super) fn new(cluster: Cluster, config: FetchConfig, read_committed: bool) -> Self {
        let rooms = Rooms::new(config.buffered_bytes_max);
        let (board, ended, runtime) = (Mutex::default(), CancellationToken::new(), Handle::current());
        let shared = Shared { cluster, config, read_committed, rooms, board, ended, runtime };
        Self { shared: Arc::new(shared) }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.ended.cancel();
    }
}

/// What tasks hold.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) cluster: Cluster,
    pub(super) config: FetchConfig,
    pub(super) read_committed: bool,
    pub(super) rooms: Rooms,
    board: Mutex<Board>,
    ended: CancellationToken,
    runtime: Handle,
}

/// What a reader finds.
pub(super) enum Taken {
    Piece(Piece),
    Stop(Stop),
    Nothing,
}

impl Shared {
    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task until it ends or the fetcher does.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let ended = self.ended.clone();
        self.runtime.spawn(async move {
            // Cut short or not: there is nothing to do about it.
            let _ = ended.run_until_cancelled(task).await;
        });
    }

    pub(super) fn follow(
        self: &Arc<Self>,
        partition: Partition,
        topic_id: Uuid,
        place: Place,
        leader_epoch: i32,
    ) -> (u64, Arc<Notify>) {
        let news = Arc::new(Notify::new());
        let id = self.board().add(Line {
            partition,
            topic_id,
            place,
            leader_epoch,
            generation: 0,
            phase: Phase::Finding,
            node: -1,
            piece: None,
            stop: None,
            told: None,
            failures: 0,
            bytes_wanted: 0,
            damaged: None,
            proved: None,
            news: Arc::clone(&news),
        });
        self.find(id, 0, Duration::ZERO, false);
        (id, news)
    }

    pub(super) fn leave(&self, id: u64) {
        self.board().lines.remove(&id);
    }

    pub(super) fn go_on(self: &Arc<Self>, id: u64, place: Place, leader_epoch: i32) {
        let mut board = self.board();
        let Some(line) = board.lines.get_mut(&id) else { return };
        line.put(place);
        line.leader_epoch = leader_epoch;
        (line.stop, line.told, line.proved, line.damaged) = (None, None, None, None);
        (line.failures, line.bytes_wanted) = (0, 0);
        let generation = line.generation;
        drop(board);
        self.find(id, generation, Duration::ZERO, false);
    }

    /// What a reader is to have now. Checksums are computed here, in the reader's own task, while the next request is out.
    pub(super) fn take(self: &Arc<Self>, id: u64) -> Taken {
        loop {
            let mut board = self.board();
            let Some(line) = board.lines.get_mut(&id) else { return Taken::Nothing };
            let Some(raw) = line.piece.take() else {
                if line.phase == Phase::Parked {
                    self.queue(&mut board, id, Phase::Hot, false);
                    return Taken::Nothing;
                }
                return line.stop.as_ref().map_or(Taken::Nothing, |stop| Taken::Stop(stop.clone()));
            };
            let generation = line.generation;
            if line.phase == Phase::Full {
                let next = if raw.proves_end { Phase::Cold } else { Phase::Hot };
                self.queue(&mut board, id, next, false);
            }
            drop(board);
            match self.check(id, generation, raw) {
                Some(piece) => return Taken::Piece(piece),
                None => continue,
            }
        }
    }

    /// Checks the checksums. From a batch whose one is false on, the partition is fetched once more; then it stops.
    fn check(self: &Arc<Self>, id: u64, generation: u64, raw: Raw) -> Option<Piece> {
        let Raw { batches, from, leader, proves_end, aborted, room } = raw;
        let false_one = first_false(&batches, from);
        let (batches, again) = match false_one {
            None => (batches, None),
            Some((before, place, offset)) => (before, Some((place, offset))),
        };
        let mut board = self.board();
        if let Some(line) = board.line(id, generation) {
            match again {
                None if !batches.is_empty() => line.damaged = None,
                None => {}
                Some((place, offset)) => {
                    line.put(place);
                    self.damaged(&mut board, id, offset);
                }
            }
        }
        drop(board);
        if again.is_some() && batches.is_empty() {
            return None;
        }
        Some(Piece { batches, leader, proves_end, aborted, room })
    }

    /// A batch came damaged: it is asked for again, or, if it was the last time as well, the partition stops.
    pub(super) fn damaged(self: &Arc<Self>, board: &mut Board, id: u64, offset: i64) {
        let Some(line) = board.lines.get_mut(&id) else { return };
        if line.damaged == Some(offset) {
            line.stop(Stop::Corrupt(offset));
        } else {
            line.damaged = Some(offset);
            self.queue(board, id, Phase::Hot, false);
        }
    }

    /// Queues a line to be asked for, after finding its leader if need be.
    pub(super) fn queue(self: &Arc<Self>, board: &mut Board, id: u64, phase: Phase, front: bool) {
        let generation = board.lines.get(&id).map_or(0, |line| line.generation);
        if !board.enqueue(id, phase, front) {
            self.find(id, generation, Duration::ZERO, false);
        }
    }

    /// The end of what readers are given: the high watermark, or the last stable offset.
    pub(super) fn readable_end(&self, leader: Leader) -> i64 {
        let end = leader.high_watermark;
        if self.read_committed { end.min(leader.last_stable_offset) } else { end }
    }

    /// How long to wait after so many failures in a row.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        let config = self.cluster.config();
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        config.pause_min.saturating_mul(doubled).min(config.pause_max)
    }
}

impl Line {
    /// Puts the line at a place: what was asked for before is not for it any more.
    fn put(&mut self, place: Place) {
        self.generation = self.generation.saturating_add(1);
        self.place = place;
        self.piece = None;
        self.phase = Phase::Finding;
    }

    pub(super) fn stop(&mut self, stop: Stop) {
        self.phase = Phase::Stopped;
        self.stop = Some(stop);
        self.news.notify_one();
    }

    /// Hands a piece to the reader.
    pub(super) fn give(&mut self, piece: Raw) {
        self.told = Some((piece.leader, Instant::now()));
        self.piece = Some(piece);
        self.news.notify_one();
    }
}
