//! One batch of one partition, to look at.

use std::time::Duration;

use bytes::Bytes;
use verbatim_batch::{Header, frames};

use super::trouble::{Side, Trouble};
use crate::cluster::{Cluster, Partition};
use crate::fetch::{FetchOnce, Place, Stop};

/// The first batch comes whole, whatever its size (KIP-74), and is all that is wanted.
const BYTES: usize = 1;

/// The batch that covers an offset, else the first above it; `None` if there is none below the high watermark.
pub(super) async fn batch_at(
    side: Side,
    cluster: &Cluster,
    partition: &Partition,
    offset: i64,
) -> Result<Option<(Header, Bytes)>, Trouble> {
    let place = Place { offset, last_epoch: -1 };
    let how = FetchOnce { wait: Duration::ZERO, bytes_max: BYTES, read_committed: false };
    let info = cluster.partition(partition, false).await;
    let epoch = info.map_err(|error| Trouble::of_cluster(side, &error))?.leader_epoch;
    let fetched = cluster.fetch_once(partition, place, epoch, how).await.map_err(|stop| match stop {
        Stop::Failed(error) => Trouble::of_cluster(side, &error),
        // Something has moved since it was looked at.
        stop => Trouble::Realign(format!("{partition}: no batch at offset {offset}: {stop:?}")),
    })?;
    let first = frames(&fetched.batches).next();
    // With bytes of its own: the answer that it came in need not be kept.
    Ok(first.and_then(|frame| Some((frame.header()?, Bytes::copy_from_slice(frame.bytes())))))
}
