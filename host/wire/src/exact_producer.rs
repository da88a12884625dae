//! The exact producer: writes batches at offsets and leader epochs of their own, by [the tag](crate::tag).
//!
//! ```no_run
//! # async fn copy(batches: bytes::Bytes) -> Result<(), verbatim_wire::exact_producer::ExactError> {
//! use verbatim_wire::exact_producer::{Config, ExactProducer, Source, Target, Write};
//!
//! let producer = ExactProducer::start(Config::new("127.0.0.1:9092"));
//! let mut partition = producer.open(Target::new("copy", 0)).await?;
//! let found = partition.found();
//! // The source's leader epoch just below that end: the copy's last one, unless that begins at the end itself.
//! partition.resume_at(found.end, found.last_epoch).await?;
//! // The batches of the source from that end on, untouched.
//! let source = Source { start: 0, end: 120, epoch: 3 };
//! let write = Write { from: found.end, batches, entries: Vec::new(), end_to: None, source };
//! let receipt = partition.write(write).await?;
//! println!("the copy ends at {}", receipt.await?.end);
//! # Ok(())
//! # }
//! ```
//!
//! **Refuses what is not exact.** On every connection each partition is checked before its first write: the topic is there, it
//! has `produce.at.offset=true`, and a tagged request *without records* is answered with a tag. A broker that ignores the tag,
//! as Apache Kafka does, never gets a record ([`ExactError::NotExact`]).
//!
//! **Pipelines.** [`ExactPartition::write`] queues and returns a [`Receipt`]; up to [`Config::in_flight_requests_max`] requests are
//! under way, each expecting the end and epoch that those before it will leave. Several partitions share one connection, and
//! small pieces of theirs share requests.
//!
//! **Goes on by itself** after a lost connection, a lost answer, or an error that may pass (19, 56): it waits for
//! the answers under way, asks where the partition stands, and sends what is not acknowledged again. What is stored already is
//! acknowledged only after the host has compared its bytes (R21).
//!
//! **Never splices.** It goes on only if the partition's end is one that its own unacknowledged writes lead to, at a batch
//! boundary, and the last epoch is one of theirs. Otherwise all unsettled writes fail with [`ExactError::Realign`], and so
//! does every later one, until the caller has decided ([`align()`] helps) and called [`ExactPartition::resume_at`].
//!
//! **Cancel safety.** A call that is dropped before it returns has queued nothing, and the next one finds that `from` does not
//! fit. Dropping a receipt, a partition or the producer takes nothing back: what was queued is still carried out, as long
//! as the runtime lives. What was acknowledged is durable by the host's flush policy.

pub mod align;
mod check;
mod config;
mod driver;
mod failure;
mod lane;
mod piece;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Semaphore, mpsc, oneshot};

pub use align::{Aligned, Apart, CopyState, EpochEnd, Histories, align};
pub use config::{Config, Retry};
pub use failure::{Advice, ExactError};
pub use write::{Found, Receipt, Source, Target, Truncate, Write, Written};

use crate::tag::EpochEntry;
use driver::{Command, Driver, LaneId};
use piece::Due;
use write::Call;

/// Batches for one partition in one request at most (R12a).
pub const BATCHES_MAX: usize = 4_096;
/// What a permit of the room in flight stands for.
const PERMIT_BYTES: usize = 1024;

/// A producer of exact batches: one connection to one host, for as many partitions as are opened. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ExactProducer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    commands: mpsc::UnboundedSender<Command>,
    room: Arc<Semaphore>,
    permits: u32,
    lanes: AtomicU64,
}

/// One partition that is written to, by one writer: its calls are carried out in their order.
#[derive(Debug)]
pub struct ExactPartition {
    shared: Arc<Shared>,
    lane: LaneId,
    found: Found,
}

impl ExactProducer {
    /// Starts a producer in the present tokio runtime, in which it lives. It connects when a partition is opened.
    pub fn start(config: Config) -> Self {
        let permits = u32::try_from(config.in_flight_bytes_max / PERMIT_BYTES).unwrap_or(u32::MAX);
        let permits = permits.clamp(1, u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        let room = Arc::new(Semaphore::new(usize::try_from(permits).unwrap_or(1)));
        let (commands, queue) = mpsc::unbounded_channel();
        tokio::spawn(Driver::new(Arc::new(config), queue).run());
        Self { shared: Arc::new(Shared { commands, room, permits, lanes: AtomicU64::new(0) }) }
    }

    /// Checks a partition and opens it. It takes no writes before [`ExactPartition::resume_at`].
    ///
    /// # Errors
    /// [`ExactError::NotExact`], [`ExactError::UnknownPartition`], [`ExactError::SourceTopicIdMismatch`],
    /// [`ExactError::Unavailable`]; [`ExactError::InvalidWrite`] if it is open already.
    pub async fn open(&self, target: Target) -> Result<ExactPartition, ExactError> {
        let lane = self.shared.lanes.fetch_add(1, Ordering::Relaxed);
        let (reply, found) = oneshot::channel();
        self.shared.send(Command::Open { lane, target, reply })?;
        let found = found.await.map_err(|_| ExactError::Ended)??;
        Ok(ExactPartition { shared: Arc::clone(&self.shared), lane, found })
    }
}

impl ExactPartition {
    /// Where the partition stood when it was opened.
    pub fn found(&self) -> Found {
        self.found
    }

    /// Says that writes go on at `end`, where the source's leader epoch at `end` - 1 is `epoch_before` (-1 = it has nothing
    /// there): after opening, and after an error. Waits until everything before is settled, then checks the partition anew.
    ///
    /// # Errors
    /// [`ExactError::Realign`] if the partition does not end there; and as [`ExactProducer::open`].
    pub async fn resume_at(&mut self, end: i64, epoch_before: i32) -> Result<(), ExactError> {
        let (reply, resumed) = oneshot::channel();
        self.shared.send(Command::Resume { lane: self.lane, end, epoch_before, reply })?;
        resumed.await.map_err(|_| ExactError::Ended)?
    }

    /// Queues batches; waits while [`Config::in_flight_bytes_max`] are unsettled.
    ///
    /// # Errors
    /// [`ExactError::Ended`]; everything else is the receipt's.
    pub async fn write(&mut self, write: Write) -> Result<Receipt, ExactError> {
        let bytes = write.batches.len();
        self.call(Call::Write(write), bytes).await
    }

    /// Queues an end without data: the partition ends at `to` from then on, and the hole stays empty.
    ///
    /// # Errors
    /// As [`ExactPartition::write`].
    pub async fn declare_end(
        &mut self,
        from: i64,
        to: i64,
        entries: Vec<EpochEntry>,
        source: Source,
    ) -> Result<Receipt, ExactError> {
        let batches = bytes::Bytes::new();
        self.write(Write { from, batches, entries, end_to: Some(to), source }).await
    }

    /// Queues the source's position alone, as a sign of life: readers of a lagging copy wait instead of resetting.
    ///
    /// # Errors
    /// As [`ExactPartition::write`].
    pub async fn declare_source(&mut self, source: Source) -> Result<Receipt, ExactError> {
        self.call(Call::Source(source), 0).await
    }

    /// Queues a truncation. It is sent once everything before it is acknowledged, and nothing behind it before it is.
    ///
    /// # Errors
    /// As [`ExactPartition::write`].
    pub async fn truncate(&mut self, truncate: Truncate) -> Result<Receipt, ExactError> {
        self.call(Call::Truncate(truncate), 0).await
    }

    async fn call(&mut self, call: Call, bytes: usize) -> Result<Receipt, ExactError> {
        let permits = u32::try_from(bytes / PERMIT_BYTES).unwrap_or(u32::MAX).saturating_add(1);
        let permits = permits.min(self.shared.permits);
        let room = Arc::clone(&self.shared.room).acquire_many_owned(permits).await;
        let (receipt, settled) = oneshot::channel();
        let due = Due { receipt, room: room.map_err(|_| ExactError::Ended)? };
        // From here on nothing is awaited: the call is queued whole or not at all.
        self.shared.send(Command::Call { lane: self.lane, call, due })?;
        Ok(Receipt::new(settled))
    }
}

impl Drop for ExactPartition {
    fn drop(&mut self) {
        // A producer that has ended has no partitions left.
        let _ = self.shared.send(Command::Close { lane: self.lane });
    }
}

impl Shared {
    fn send(&self, command: Command) -> Result<(), ExactError> {
        self.commands.send(command).map_err(|_| ExactError::Ended)
    }
}
