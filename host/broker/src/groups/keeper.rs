//! The thread that keeps committed offsets: it alone changes them, on the disk first and in memory then.
//!
//! What waits is written together and made durable by one flush, as for appends; an offset can be read once it is kept.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};
use verbatim_log::{Io, LogError};
use verbatim_wire::error::ErrorCode;

use super::journal::Journal;
use super::offsets::{Change, Offsets};
use crate::config::FlushPolicy;
use crate::errors::ApiError;

/// Changes that are written together at most, and that may wait.
pub(super) const TOGETHER_MAX: usize = 512;

/// Room for one change among those that wait.
pub(crate) struct Room<'a>(Option<mpsc::Permit<'a, Message>>);

/// Tells whether a change was kept.
pub(crate) type Kept = oneshot::Receiver<Result<(), ApiError>>;

/// Who waits for that.
type Done = oneshot::Sender<Result<(), ApiError>>;

enum Message {
    Change(Change, Done),
    Flush,
    Stop,
}

/// The way to the thread, and to what it keeps.
pub(crate) struct Keeper {
    sender: mpsc::Sender<Message>,
    offsets: Arc<RwLock<Offsets>>,
}

/// What the thread is started with.
pub(crate) struct Setup {
    pub(crate) flush: FlushPolicy,
    /// Bytes of memory that all offsets may take.
    pub(crate) bytes_max: usize,
}

impl Keeper {
    /// Reads what was kept, without what `is_known` does not name, and starts the thread.
    ///
    /// # Errors
    /// The files cannot be used, or the thread cannot be started.
    pub(crate) fn start(
        data: &Path,
        io: Arc<dyn Io>,
        setup: Setup,
        is_known: impl Fn(uuid::Uuid) -> bool,
    ) -> Result<(Self, JoinHandle<()>), LogError> {
        let (journal, mut offsets) = Journal::open(data, io)?;
        // A crash may have come between the end of a topic and that of its offsets.
        offsets.retain(|_, id| is_known(id.topic));
        let offsets = Arc::new(RwLock::new(offsets));
        let (sender, receiver) = mpsc::channel(TOGETHER_MAX);
        let work = Work { journal, offsets: Arc::clone(&offsets), setup };
        let thread = std::thread::Builder::new()
            .name("group-offsets".to_owned())
            .spawn(move || work.run(receiver))
            .map_err(|source| LogError::Io { what: "start the thread", file: data.to_owned(), source })?;
        Ok((Self { sender, offsets }, thread))
    }

    /// What is kept.
    pub(crate) fn offsets(&self) -> RwLockReadGuard<'_, Offsets> {
        self.offsets.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, so that a change can be handed over later without waiting.
    pub(crate) async fn room(&self) -> Room<'_> {
        Room(self.sender.reserve().await.ok())
    }

    /// Hands a change over once there is room, in order with others.
    pub(crate) async fn begin(&self, change: Change) -> Kept {
        self.room().await.hand_over(change)
    }

    /// Makes durable what was written, with [`FlushPolicy::Interval`].
    pub(crate) async fn flush(&self) {
        let _ = self.sender.send(Message::Flush).await;
    }

    /// Ends the thread once everything before is kept.
    pub(crate) async fn stop(&self) {
        let _ = self.sender.send(Message::Stop).await;
    }
}

impl Room<'_> {
    /// Hands a change over, in order with others.
    pub(crate) fn hand_over(self, change: Change) -> Kept {
        let (done, kept) = oneshot::channel();
        // A thread that has ended takes nothing; that `done` is dropped tells the same.
        if let Some(permit) = self.0 {
            permit.send(Message::Change(change, done));
        }
        kept
    }
}

/// Waits until a change is kept.
pub(crate) async fn kept(kept: Kept) -> Result<(), ApiError> {
    let ended = || Err(ApiError::new(ErrorCode::CoordinatorNotAvailable, "the host is shutting down"));
    kept.await.unwrap_or_else(|_| ended())
}

struct Work {
    journal: Journal,
    offsets: Arc<RwLock<Offsets>>,
    setup: Setup,
}

impl Work {
    fn run(mut self, mut receiver: mpsc::Receiver<Message>) {
        while let Some(first) = receiver.blocking_recv() {
            let mut changes = Vec::new();
            let mut next = Some(first);
            let mut stops = false;
            let mut flushes = false;
            while let Some(message) = next {
                match message {
                    Message::Change(change, done) => changes.push((change, done)),
                    Message::Flush => flushes = true,
                    Message::Stop => stops = true,
                }
                next = if stops || changes.len() >= TOGETHER_MAX { None } else { receiver.try_recv().ok() };
            }
            self.keep(changes);
            if (flushes || stops)
                && let Err(error) = self.journal.sync()
            {
                tracing::error!(%error, "committed offsets cannot be made durable");
            }
            if stops {
                return;
            }
        }
    }

    fn keep(&mut self, changes: Vec<(Change, Done)>) {
        let judged = self.judge(changes);
        if judged.is_empty() {
            return;
        }
        let written = {
            let offsets = self.offsets.read().unwrap_or_else(PoisonError::into_inner);
            let changes: Vec<&Change> = judged.iter().map(|(change, _)| change).collect();
            self.journal.write(&changes, &offsets, self.setup.flush == FlushPolicy::Always)
        };
        let outcome = written.map_err(|error| {
            tracing::error!(%error, "committed offsets cannot be kept");
            ApiError::new(ErrorCode::CoordinatorNotAvailable, error.to_string())
        });
        let mut offsets = self.offsets.write().unwrap_or_else(PoisonError::into_inner);
        for (change, done) in judged {
            if outcome.is_ok() {
                offsets.apply(change);
            }
            // The one who waited may have gone.
            let _ = done.send(outcome.clone());
        }
    }

    /// Those that fit into memory; the others are told that they do not.
    fn judge(&self, changes: Vec<(Change, Done)>) -> Vec<(Change, Done)> {
        let offsets = self.offsets.read().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = offsets.bytes();
        let mut fitting = Vec::with_capacity(changes.len());
        for (change, done) in changes {
            let growth = offsets.growth(&change);
            if growth > 0 && bytes.saturating_add(growth) > self.setup.bytes_max {
                let text = format!(
                    "committed offsets may take {} bytes of memory, with this one they would take {}",
                    self.setup.bytes_max,
                    bytes.saturating_add(growth)
                );
                let _ = done.send(Err(ApiError::new(ErrorCode::InvalidCommitOffsetSize, text)));
                continue;
            }
            bytes = bytes.saturating_add(growth);
            fitting.push((change, done));
        }
        fitting
    }
}
