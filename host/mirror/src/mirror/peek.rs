//! One batch of one partition, to look at.

use bytes::Bytes;
use verbatim_batch::{Header, frames};

use super::trouble::Trouble;
use crate::cluster::{Cluster, Partition};
use crate::fetch::{Fetcher, Place, Stop};

/// Answers without batches after which there is none.
const EMPTY_MAX: u32 = 3;

/// The batch that covers an offset, else the first above it; `None` if there is none below the high watermark.
pub(super) async fn batch_at(
    cluster: &Cluster,
    fetcher: &Fetcher,
    partition: &Partition,
    offset: i64,
) -> Result<Option<(Header, Bytes)>, Trouble> {
    let place = Place { offset, last_epoch: -1 };
    let info = cluster.partition(partition, false).await;
    let epoch = info.map_err(|error| Trouble::Pass(format!("{partition}: {error}")))?.leader_epoch;
    let mut followed = fetcher.follow(partition.clone(), place, epoch);
    let mut empty = 0_u32;
    loop {
        match followed.next().await {
            Ok(piece) => {
                if let Some(first) = first_of(&piece.batches) {
                    return Ok(Some(first));
                }
                empty = empty.saturating_add(1);
                if piece.proves_end || empty > EMPTY_MAX || piece.leader.high_watermark <= offset {
                    return Ok(None);
                }
            }
            Err(Stop::NewEpoch { epoch }) => followed.go_on(place, epoch),
            Err(stop) => return Err(Trouble::Pass(format!("{partition}: offset {offset}: {stop:?}"))),
        }
    }
}

/// The first batch, with bytes of its own: the answer that it came in need not be kept.
fn first_of(batches: &Bytes) -> Option<(Header, Bytes)> {
    let frame = frames(batches).next()?;
    Some((frame.header()?, Bytes::copy_from_slice(frame.bytes())))
}
