//! One fetch of one partition, for questions that a single answer settles.

use std::time::Duration;

use bytes::Bytes;

use super::exchange::{Ask, Found, Terms, exchange};
use super::frames::{Unusable, first_false};
use super::{Leader, Place, Stop};
use crate::cluster::{Cluster, ClusterError, Fault, Partition};

/// How one fetch is made.
#[derive(Debug, Clone, Copy)]
pub struct FetchOnce {
    /// How long the leader may wait for data.
    pub wait: Duration,
    /// Bytes at most; one batch that is larger comes whole.
    pub bytes_max: usize,
    /// True to be given no further than the last stable offset, and the aborted transactions.
    pub read_committed: bool,
}

/// What one fetch of one partition brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Whole batches, as in a [`Piece`](super::Piece).
    pub batches: Bytes,
    /// The place behind them.
    pub next: Place,
    /// Where the leader stood.
    pub leader: Leader,
    /// As in a piece.
    pub proves_end: bool,
    /// Aborted transactions that these batches belong to: producer id and first offset, as the leader lists them.
    pub aborted: Vec<(i64, i64)>,
}

impl Cluster {
    /// Fetches once from a partition's leader, under this leader epoch. Failures that may pass are tried again as other
    /// questions are. It goes over the connection that questions share, which waits as long as the leader does.
    ///
    /// # Errors
    /// As [`Followed::next`](super::Followed::next).
    pub async fn fetch_once(
        &self,
        partition: &Partition,
        place: Place,
        leader_epoch: i32,
        how: FetchOnce,
    ) -> Result<Fetched, Stop> {
        let mut tries = self.tries(format!("Fetch of {partition}"));
        let mut how = how;
        let mut damaged = None;
        loop {
            let found = self.fetch(partition, place, leader_epoch, how, !tries.is_first()).await;
            let fault = match found {
                Ok(Once::Fetched(fetched)) => return Ok(fetched),
                Ok(Once::Stop(stop)) => return Err(stop),
                Ok(Once::CutOff(bytes)) if bytes > how.bytes_max => {
                    how.bytes_max = bytes;
                    continue;
                }
                Ok(Once::CutOff(bytes)) => Fault::Passing(format!("a batch is cut off at {bytes} bytes")),
                Ok(Once::Damaged(offset)) if damaged == Some(offset) => return Err(Stop::Corrupt(offset)),
                Ok(Once::Damaged(offset)) => {
                    damaged = Some(offset);
                    Fault::Passing(format!("the batch at {offset} is damaged"))
                }
                Err(fault) => fault,
            };
            match tries.failed(fault).await {
                Ok(()) => {}
                Err(ClusterError::Unknown(what)) => return Err(Stop::Gone(what)),
                Err(error) => return Err(Stop::Failed(error)),
            }
        }
    }

    async fn fetch(
        &self,
        partition: &Partition,
        place: Place,
        leader_epoch: i32,
        how: FetchOnce,
        anew: bool,
    ) -> Result<Once, Fault> {
        let (info, connection) = self.leader_connection(partition, anew).await?;
        if info.leader_epoch > leader_epoch {
            return Ok(Once::Stop(Stop::NewEpoch { epoch: info.leader_epoch }));
        }
        let ask = Ask {
            line: 0,
            generation: 0,
            partition: partition.clone(),
            topic_id: info.topic_id,
            place,
            leader_epoch,
            bytes_max: how.bytes_max,
        };
        let terms = Terms {
            wait: how.wait,
            bytes_min: i32::from(!how.wait.is_zero()),
            bytes_max: how.bytes_max,
            read_committed: how.read_committed,
        };
        let answer = exchange(&connection, std::slice::from_ref(&ask), terms).await?;
        // Where nothing was read before, nothing can have been cut.
        let is_sure = answer.notices_truncation || (answer.is_fenced && place.last_epoch < 0);
        let proves = is_sure && answer.throttle.is_zero() && leader_epoch >= 0;
        let found = answer.found.into_iter().next().unwrap_or(Found::Missing);
        once(found, &ask, proves && answer.bytes == 0)
    }
}

/// What one exchange came to.
enum Once {
    Fetched(Fetched),
    Stop(Stop),
    /// So many bytes are needed.
    CutOff(usize),
    Damaged(i64),
}

fn once(found: Found, ask: &Ask, proves: bool) -> Result<Once, Fault> {
    let what = || format!("Fetch of {}", ask.partition);
    Ok(match found {
        Found::Data { whole, leader, aborted } => match first_false(&whole.batches, ask.place) {
            Some((before, _, offset)) if before.is_empty() => Once::Damaged(offset),
            Some((batches, next, _)) => {
                Once::Fetched(Fetched { batches, next, leader, proves_end: false, aborted })
            }
            None => {
                let (batches, next) = (whole.batches, whole.next);
                Once::Fetched(Fetched { batches, next, leader, proves_end: false, aborted })
            }
        },
        Found::Nothing { leader, is_plain, aborted } => Once::Fetched(Fetched {
            batches: Bytes::new(),
            next: ask.place,
            leader,
            proves_end: proves && is_plain,
            aborted,
        }),
        Found::Unusable(Unusable::CutOff(length)) => {
            Once::CutOff(length.unwrap_or(0).max(ask.bytes_max.saturating_mul(2)))
        }
        Found::Unusable(Unusable::Damaged { offset, .. }) => Once::Damaged(offset),
        Found::Unusable(Unusable::Format { offset, magic }) => Once::Stop(old_format(ask, offset, magic)),
        Found::Diverging(end) => Once::Stop(Stop::Diverging { epoch: end.epoch, end: end.end }),
        Found::OutOfRange => Once::Stop(Stop::OutOfRange),
        Found::Moved(code) | Found::Passing(code) | Found::Refused(code) => {
            return Err(Fault::of_code(&what(), code));
        }
        Found::Missing => return Err(Fault::Passing("the answer does not name it".to_owned())),
    })
}

/// UNSUPPORTED_FOR_MESSAGE_FORMAT.
const OLD_FORMAT: i16 = 43;

/// The stop at a batch that is none, but messages of a format before Kafka 0.11.
pub(super) fn old_format(ask: &Ask, offset: i64, magic: i8) -> Stop {
    let what = format!("message format at {offset} of {}: magic {magic}, expected 2", ask.partition);
    Stop::Failed(ClusterError::Refused { what, code: OLD_FORMAT })
}
