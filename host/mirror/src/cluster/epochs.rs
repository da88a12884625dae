//! A leader's epoch history, by OffsetForLeaderEpoch alone.
//!
//! The answer to q is (the largest epoch at or below q, where the next one begins); below the first entry it is (q, where
//! the first entry begins) (R42). So the answer to e - 1 tells where e begins. An answer that repeats the epoch
//! asked for may name an entry or none: the next question, to the epoch below, tells, as entries' starts rise strictly.

use std::sync::Arc;

use verbatim_wire::exact_producer::EpochEnd;
use verbatim_wire::tag::EpochEntry;

use super::link::Link;
use super::tries::Fault;
use super::types::{At, ClusterError, Partition};
use super::{Cluster, ask};

/// Entries of one history at most; Kafka's logs have a handful.
const ENTRIES_MAX: usize = 65_536;

impl Cluster {
    /// Learns the entries above `above`, all under one leader epoch, which is returned with them.
    pub(super) async fn walk_epochs(
        &self,
        partition: &Partition,
        above: i32,
        anew: bool,
    ) -> Result<(i32, Vec<EpochEntry>), Fault> {
        let (leader, link) = self.leader(partition, anew).await?;
        let current = leader.leader_epoch;
        if current < 0 {
            return Ok((-1, Vec::new()));
        }
        let walk = Walk { cluster: self, partition, link, current };
        Ok((current, walk.down(above).await?))
    }
}

struct Walk<'a> {
    cluster: &'a Cluster,
    partition: &'a Partition,
    link: Arc<Link>,
    current: i32,
}

impl Walk<'_> {
    async fn down(&self, above: i32) -> Result<Vec<EpochEntry>, Fault> {
        let mut entries = Vec::new();
        let mut asked = self.current;
        let mut last = self.ask(asked).await?;
        while last.epoch > above {
            if last.epoch > asked {
                return Err(self.contradicted(asked, last));
            }
            let (epoch, repeats) = (last.epoch, last.epoch == asked);
            asked = epoch.saturating_sub(1);
            let below = if asked < 0 { self.bottom().await? } else { self.ask(asked).await? };
            // Below the first entry every epoch has one and the same answer; the current epoch is an entry for certain.
            let is_none = repeats && epoch != self.current && below.end >= last.end;
            if is_none || below.end < 0 {
                break;
            }
            entries.push(EpochEntry { epoch, start: below.end });
            if entries.len() > ENTRIES_MAX {
                let last = format!("there are more than {ENTRIES_MAX}");
                let what = format!("leader epochs of {}", self.partition);
                return Err(Fault::Final(ClusterError::Unavailable { what, attempts: 1, last }));
            }
            last = below;
        }
        entries.reverse();
        Ok(entries)
    }

    async fn ask(&self, epoch: i32) -> Result<EpochEnd, Fault> {
        let request = ask::epoch_end(self.partition, self.current, epoch);
        let answer = self.cluster.ask(&self.link, 0, &request).await?;
        let what = || format!("OffsetForLeaderEpoch of {}", self.partition);
        ask::ended(&answer, self.partition).map_err(|code| Fault::of_code(&what(), code))
    }

    /// Where epoch 0 begins if it is an entry, which no epoch below can tell: at the log start.
    async fn bottom(&self) -> Result<EpochEnd, Fault> {
        let request = ask::list_offsets(self.partition, self.current, At::Earliest, false);
        let answer = self.cluster.ask(&self.link, 0, &request).await?;
        let what = || format!("ListOffsets of {}", self.partition);
        let start = ask::listed(answer, self.partition).map_err(|code| Fault::of_code(&what(), code))?;
        Ok(EpochEnd { epoch: -1, end: start.map_or(0, |start| start.offset) })
    }

    fn contradicted(&self, asked: i32, answer: EpochEnd) -> Fault {
        let what = format!(
            "OffsetForLeaderEpoch of {}: epoch {} in the answer to {asked}, expected at most that",
            self.partition, answer.epoch
        );
        Fault::Final(ClusterError::Contradictory(what))
    }
}
