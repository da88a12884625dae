//! One fetch of one partition.

use std::time::Duration;

use super::aborted::AbortedTransaction;
use super::report::Range;
use super::walk::ReadError;
use crate::cluster::{At, Cluster, Partition};
use crate::fetch::{FetchOnce, Fetched, Leader, Place, Stop};

/// How long a leader may wait if there is nothing; below the end there is.
const WAIT: Duration = Duration::from_millis(100);
/// How often nothing may come before it is believed without proof.
const EMPTY_MAX: u32 = 5;

/// Fetches from the first offset of a range on; nothing means that there is nothing in the range. A leader that knows less than
/// the range, as a new one may for a moment, has to be asked again.
pub(super) async fn fetch(
    cluster: &Cluster,
    partition: &Partition,
    range: Range,
    read_committed: bool,
    bytes_max: usize,
) -> Result<Fetched, ReadError> {
    let offset = range.from;
    let failed = |error| ReadError::Failed(format!("{error}"));
    let place = Place { offset, last_epoch: -1 };
    let how = FetchOnce { wait: WAIT, bytes_max, read_committed };
    let mut empty = 0_u32;
    let mut leader_epoch = cluster.partition(partition, false).await.map_err(failed)?.leader_epoch;
    loop {
        match cluster.fetch_once(partition, place, leader_epoch, how).await {
            Ok(fetched) if !fetched.batches.is_empty() => return Ok(fetched),
            Ok(fetched)
                if fetched.proves_end
                    && reaches(fetched.leader, range.to, read_committed)
                    && cluster.local_start(partition).await.map_err(failed)? <= offset =>
            {
                return Ok(fetched);
            }
            Ok(fetched) => {
                empty = empty.saturating_add(1);
                match empty >= EMPTY_MAX {
                    // A cluster without epochs cannot prove it.
                    true if leader_epoch < 0 && reaches(fetched.leader, range.to, read_committed) => {
                        return Ok(fetched);
                    }
                    true => {
                        let what =
                            format!("{partition} has answered nothing at offset {offset}, {empty} times");
                        return Err(ReadError::Failed(what));
                    }
                    false => tokio::time::sleep(WAIT).await,
                }
            }
            Err(Stop::NewEpoch { epoch }) => leader_epoch = epoch,
            Err(Stop::OutOfRange) => return Err(out_of_range(cluster, partition, offset).await),
            Err(Stop::Corrupt(offset)) => return Err(ReadError::Damaged(offset)),
            Err(Stop::Gone(what)) => return Err(ReadError::Failed(what)),
            Err(Stop::Failed(error)) => return Err(failed(error)),
            Err(Stop::Diverging { epoch, end }) => {
                let what = format!(
                    "{partition} answered a truncation that was not asked for: epoch {epoch}, end {end}"
                );
                return Err(ReadError::Failed(what));
            }
        }
    }
}

/// True if the leader gives out what lies below `end`.
fn reaches(leader: Leader, end: i64, read_committed: bool) -> bool {
    leader.high_watermark >= end && (!read_committed || leader.last_stable_offset >= end)
}

/// Why there is nothing at an offset below the end.
async fn out_of_range(cluster: &Cluster, partition: &Partition, offset: i64) -> ReadError {
    match cluster.list_offset(partition, At::Earliest, false).await {
        Ok(Some(start)) if start.offset > offset => ReadError::Moved(start.offset),
        Ok(_) => {
            ReadError::Failed(format!("{partition} was cut below offset {offset} while it was verified"))
        }
        Err(error) => ReadError::Failed(error.to_string()),
    }
}

/// The aborted transactions of an answer.
pub(super) fn aborted(fetched: &Fetched) -> Vec<AbortedTransaction> {
    let listed = fetched.aborted.iter();
    listed
        .map(|(producer_id, first)| AbortedTransaction { first: *first, producer_id: *producer_id })
        .collect()
}
