//! One partition of a reader: finds its position, follows it, and deals with what stops it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::warn;
use verbatim_batch::frames;
use verbatim_wire::exact_producer::EpochEnd;

use super::reset::{Bounds, Fault, Nearest, Remedy, nearest, out_of_range};
use super::trail::{Found, Search, Trail};
use super::{Isolation, Position, ReadErrorKind, ReaderConfig, Seek};
use crate::cluster::{At, Cluster, ClusterError, ListedOffset, Partition};
use crate::fetch::{Fetcher, Piece, Place, Stop};

/// Stops in a row, without any data between them, that may be a matter of leaders changing.
const STOPS_MAX: u32 = 10;
/// How often a leader is asked again that does not know an epoch: it may be about to hear of it.
const UNKNOWN_EPOCH_TRIES: u32 = 5;
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A partition's task.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) cluster: Cluster,
    pub(super) fetcher: Fetcher,
    pub(super) config: Arc<ReaderConfig>,
    pub(super) partition: Arc<Partition>,
    pub(super) generation: u64,
    pub(super) news: mpsc::Sender<News>,
}

/// What a task tells its reader.
#[derive(Debug)]
pub(super) struct News {
    pub(super) partition: Arc<Partition>,
    /// Tells a partition's tasks apart: a seek begins another.
    pub(super) generation: u64,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// The partition was put there, by a seek or a reset.
    At(Position),
    /// Batches.
    Piece(Piece),
    /// The task has ended.
    Failed(ReadErrorKind),
}

/// Why a task ends.
enum End {
    /// Its reader is gone.
    Unheard,
    Failed(ReadErrorKind),
}

impl Task {
    /// Reads until something fails that only the caller can decide upon.
    pub(super) async fn run(self, seek: Seek) {
        let Err(end) = self.read(seek).await;
        if let End::Failed(kind) = end {
            // Nobody to tell is a reader that is gone.
            let _ = self.tell(What::Failed(kind)).await;
        }
    }

    async fn read(&self, seek: Seek) -> Result<Infallible, End> {
        let mut trail = self.sought(seek).await?;
        let mut leader_epoch =
            self.cluster.partition(&self.partition, false).await.map_err(ReadErrorKind::from)?.leader_epoch;
        self.agree(&mut trail, None).await?;
        self.tell(What::At(trail.position())).await?;
        let partition = Partition::clone(&self.partition);
        let mut followed = self.fetcher.follow(partition, place(&trail), leader_epoch);
        let mut stops = 0_u32;
        loop {
            match followed.next().await {
                Ok(piece) if piece.batches.is_empty() => {}
                Ok(piece) => {
                    stops = 0;
                    advance(&mut trail, &piece.batches);
                    self.tell(What::Piece(piece)).await?;
                }
                Err(stop) => {
                    if stops > 0 {
                        tokio::time::sleep(pause(stops)).await;
                    }
                    stops = stops.saturating_add(1);
                    if let Stop::NewEpoch { epoch } = stop {
                        leader_epoch = epoch;
                    }
                    let before = trail.position();
                    self.after(stop, &mut trail, stops).await?;
                    if trail.position() != before {
                        self.tell(What::At(trail.position())).await?;
                    }
                    followed.go_on(place(&trail), leader_epoch);
                }
            }
        }
    }

    /// Finds where to go on after a stop.
    async fn after(&self, stop: Stop, trail: &mut Trail, stops: u32) -> Result<(), ReadErrorKind> {
        match stop {
            Stop::Diverging { epoch, end } => self.agree(trail, Some(EpochEnd { epoch, end })).await,
            Stop::NewEpoch { .. } => self.agree(trail, None).await,
            Stop::OutOfRange => self.back_into_range(trail, stops).await,
            Stop::Gone(why) => Err(ReadErrorKind::Gone(why)),
            Stop::Corrupt(offset) => Err(ReadErrorKind::Corrupt {
                offset,
                reason: "checksum, magic or length of a batch are false".to_owned(),
            }),
            Stop::Failed(error) => Err(error.into()),
        }
    }

    /// Makes sure that the leader's log holds what the trail tells of, by as many questions as that takes; else resets.
    async fn agree(&self, trail: &mut Trail, mut first: Option<EpochEnd>) -> Result<(), ReadErrorKind> {
        let Some(mut search) = Search::new(trail) else { return Ok(()) };
        let found = loop {
            let answer = match first.take() {
                Some(answer) => answer,
                None => self.epoch_end(search.question()).await?,
            };
            if let Some(found) = search.answer(answer) {
                break found;
            }
        };
        match found {
            Found::Agreed => Ok(()),
            Found::AgreedAs(at) => {
                trail.cut(at);
                Ok(())
            }
            Found::Truncated(truncation) => self.reset(trail, Fault::Truncated(truncation)).await,
        }
    }

    async fn back_into_range(&self, trail: &mut Trail, stops: u32) -> Result<(), ReadErrorKind> {
        let position = trail.position();
        let start = self.listed(At::Earliest, false).await?.offset;
        if position.offset >= start {
            self.agree(trail, None).await?;
            if trail.position() != position {
                return Ok(());
            }
        }
        let log = Bounds { start, end: self.listed(At::Latest, false).await?.offset };
        match out_of_range(position.offset, log) {
            Some(fault) => self.reset(trail, fault).await,
            None if stops < STOPS_MAX => Ok(()),
            None => Err(outside(position, log)),
        }
    }

    async fn reset(&self, trail: &mut Trail, fault: Fault) -> Result<(), ReadErrorKind> {
        let position = trail.position();
        match self.config.reset.remedy(fault) {
            Remedy::Fail => {
                return Err(match fault {
                    Fault::BelowStart(log) | Fault::AboveEnd(log) => outside(position, log),
                    Fault::Truncated(truncation) => ReadErrorKind::TruncatedPartition {
                        position,
                        first_truncated: truncation.first.map(position_at),
                    },
                });
            }
            Remedy::Start => *trail = self.start().await?,
            Remedy::End => *trail = self.end().await?,
            Remedy::GoBack(at) => trail.cut(at),
            Remedy::GoOn(at) => *trail = behind(at),
        }
        warn!(partition = %self.partition, from = %position, to = %trail.position(), ?fault, "position reset");
        Ok(())
    }

    async fn sought(&self, seek: Seek) -> Result<Trail, ReadErrorKind> {
        match seek {
            Seek::Beginning => self.start().await,
            Seek::End => self.end().await,
            Seek::Time(time) => {
                match self.cluster.list_offset(&self.partition, At::Time(time), self.read_committed()).await?
                {
                    Some(listed) => Ok(begins_at(listed)),
                    None => self.end().await,
                }
            }
            Seek::To(position) => Ok(Trail::read_before(position)),
            Seek::Nearest(position) => {
                let start = self.listed(At::Earliest, false).await?;
                let answer = match position.leader_epoch {
                    Some(epoch) => Some(self.epoch_end(epoch).await?),
                    None => None,
                };
                match nearest(position, start.offset, answer) {
                    Nearest::Same => Ok(Trail::read_before(position)),
                    Nearest::Start => Ok(begins_at(start)),
                    Nearest::End => self.end().await,
                    Nearest::GoOn(at) => Ok(behind(at)),
                }
            }
        }
    }

    async fn start(&self) -> Result<Trail, ReadErrorKind> {
        Ok(begins_at(self.listed(At::Earliest, false).await?))
    }

    async fn end(&self) -> Result<Trail, ReadErrorKind> {
        Ok(begins_at(self.listed(At::Latest, self.read_committed()).await?))
    }

    async fn listed(&self, at: At, read_committed: bool) -> Result<ListedOffset, ReadErrorKind> {
        let listed = self.cluster.list_offset(&self.partition, at, read_committed).await?;
        listed.ok_or_else(|| {
            let what = format!("ListOffsets of {} at {at:?}", self.partition);
            ClusterError::Unavailable { what, attempts: 1, last: "no offset in the answer".to_owned() }.into()
        })
    }

    /// Asks for an epoch. A leader that does not know one so large is asked again: an election that this reader knows of, from
    /// another broker or from the source of a copy, may be news to it.
    async fn epoch_end(&self, epoch: i32) -> Result<EpochEnd, ReadErrorKind> {
        let mut tries = 0;
        loop {
            let answer = self.cluster.epoch_end(&self.partition, epoch).await?;
            if answer.epoch >= 0 || tries == UNKNOWN_EPOCH_TRIES {
                return Ok(answer);
            }
            tries = tries.saturating_add(1);
            tokio::time::sleep(pause(tries)).await;
        }
    }

    fn read_committed(&self) -> bool {
        self.config.isolation == Isolation::ReadCommitted
    }

    async fn tell(&self, what: What) -> Result<(), End> {
        let news = News { partition: Arc::clone(&self.partition), generation: self.generation, what };
        self.news.send(news).await.map_err(|_| End::Unheard)
    }
}

impl From<ReadErrorKind> for End {
    fn from(kind: ReadErrorKind) -> Self {
        Self::Failed(kind)
    }
}

fn outside(position: Position, log: Bounds) -> ReadErrorKind {
    ReadErrorKind::OffsetOutOfRange { position, log_start: log.start, log_end: log.end }
}

fn begins_at(listed: ListedOffset) -> Trail {
    Trail::begins_at(Position::from_committed(listed.offset, listed.leader_epoch))
}

fn behind(at: EpochEnd) -> Trail {
    Trail::begins_at(position_at(at))
}

fn position_at(at: EpochEnd) -> Position {
    Position::from_committed(at.end, at.epoch)
}

fn place(trail: &Trail) -> Place {
    let position = trail.position();
    Place { offset: position.offset, last_epoch: position.committed_leader_epoch() }
}

/// Puts what was fetched onto the trail.
fn advance(trail: &mut Trail, batches: &[u8]) {
    for header in frames(batches).filter_map(|frame| frame.header()) {
        if let Some(next) = header.next_offset() {
            trail.read(header.base_offset, next, header.leader_epoch);
        }
    }
}

/// The pause before try `nth`, counted from 1.
fn pause(nth: u32) -> Duration {
    PAUSE_MIN.saturating_mul(1_u32.checked_shl(nth.saturating_sub(1)).unwrap_or(u32::MAX)).min(PAUSE_MAX)
}
