//! One partition's task: aligns, copies, and decides what is done when either does not go on.
//!
//! ```text
//!   Aligning ---> Mirroring <---> CaughtUp        (copying)
//!      ^  |           |               |
//!      |  |           +-------+-------+
//!      |  v                   v
//!      +- Waiting <---- may pass, or apart again without progress
//!                             |
//!                             v
//!                a state that stays: see `trouble.rs`
//! ```

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use verbatim_wire::exact_producer::ExactProducer;

use super::aligning::{self, Aligned};
use super::backoff::Backoff;
use super::copying::Copying;
use super::links::{Links, Topic};
use super::progress::Cell;
use super::state::State;
use super::trouble::{Halt, Side, Trouble};
use crate::cluster::{Partition, Topics};

/// Failures in a row after which a mirror that shall end gives a partition, or a topic, up.
pub(super) const ONCE_FAILURES_MAX: u32 = 8;
/// One that copied for so long had no trouble to begin with.
const STEADY: Duration = Duration::from_secs(60);

/// What a partition's task works with.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) links: Arc<Links>,
    pub(super) topic: Arc<Topic>,
    pub(super) partition: Partition,
    pub(super) cell: Arc<Cell>,
    pub(super) producer: ExactProducer,
    pub(super) stop: CancellationToken,
}

/// What a task remembers from one attempt to the next.
#[derive(Debug, Default)]
pub(super) struct Tries {
    /// The copy's end moved in this attempt.
    pub(super) progress: bool,
    /// Damaged batches in a row.
    pub(super) damaged: u32,
    /// This is not the first attempt.
    pub(super) again: bool,
}

impl Task {
    /// Runs until the mirror stops, the partition does, or, where that is all that is wanted, it is caught up.
    pub(super) async fn run(self) {
        let (mut backoff, mut tries) = (Backoff::default(), Tries::default());
        loop {
            let begun = Instant::now();
            let trouble = tokio::select! {
                biased;
                halt = self.topic.stopped() => Trouble::Halt(halt),
                ended = self.attempt(&mut tries) => match ended {
                    Ok(()) => return,
                    Err(trouble) => trouble,
                },
            };
            if std::mem::take(&mut tries.progress) || begun.elapsed() > STEADY {
                backoff.succeed();
            }
            tries.again = true;
            match self.pause(trouble, &mut backoff) {
                Err(halt) => {
                    tracing::warn!(partition = %self.partition, state = ?halt.state, reason = halt.reason, "a partition stops");
                    return self.cell.halt(halt);
                }
                Ok(pause) => {
                    tokio::select! {
                        () = self.stop.cancelled() => return,
                        halt = self.topic.stopped() => return self.cell.halt(halt),
                        () = sleep(pause) => {}
                    }
                }
            }
        }
    }

    async fn attempt(&self, tries: &mut Tries) -> Result<(), Trouble> {
        self.cell.enter(State::Aligning, None);
        let aligned = tokio::select! {
            () = self.stop.cancelled() => return Ok(()),
            aligned = self.aligned(tries) => aligned?,
        };
        match aligned {
            Some(aligned) => Copying::begin(self, tries, aligned).await?.run().await,
            None => Ok(()),
        }
    }

    /// Where the copy goes on. While the source has nothing, not even a leader epoch, so has the copy, which is all that one that
    /// shall end has to know (`None`).
    async fn aligned(&self, tries: &mut Tries) -> Result<Option<Aligned>, Trouble> {
        let mut pauses = Backoff::default();
        loop {
            let aligned = aligning::align(self, tries.again).await?;
            if aligned.is_some() {
                return Ok(aligned);
            }
            self.cell.enter(State::CaughtUp, None);
            if self.links.config.once {
                return Ok(None);
            }
            tries.again = true;
            sleep(pauses.fail()).await;
        }
    }

    /// How long is waited after this, if it is not final. Apart for the first time, source and copy are aligned at once.
    fn pause(&self, trouble: Trouble, backoff: &mut Backoff) -> Result<Duration, Halt> {
        let before = backoff.failures();
        let pause = backoff.fail();
        let reason = match trouble {
            Trouble::Halt(halt) => return Err(halt),
            Trouble::Realign(reason) if before == 0 => {
                tracing::debug!(partition = %self.partition, reason, "source and copy are aligned anew");
                return Ok(Duration::ZERO);
            }
            Trouble::Pass(reason) | Trouble::Realign(reason) => reason,
        };
        if self.links.config.once && before >= ONCE_FAILURES_MAX {
            return Err(Halt::gave_up(before, &reason));
        }
        tracing::debug!(partition = %self.partition, reason, ?pause, "a partition waits");
        self.cell.enter(State::Waiting, Some(reason));
        Ok(pause)
    }

    /// What it means that the source does not know the partition: its topic is gone, or another one, or it may pass.
    pub(super) async fn gone(&self, said: String) -> Trouble {
        let named = [self.topic.name.clone()];
        let found = match self.links.source.topics(Topics::Named(&named)).await {
            Ok(found) => found,
            Err(error) => return Trouble::of_cluster(Side::Source, &error),
        };
        match found.iter().find(|found| found.name == self.topic.name) {
            None => Trouble::Halt(Halt::deleted(self.topic.id)),
            Some(found) if found.id != self.topic.id => {
                Trouble::Halt(Halt::recreated(self.topic.id, found.id))
            }
            Some(_) => Trouble::Pass(said),
        }
    }
}
