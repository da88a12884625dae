//! Finding a partition's leader: at first, and whenever its broker does not answer for it.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::Stop;
use super::board::{Node, Phase};
use super::broker;
use super::shared::Shared;
use crate::cluster::{ClusterError, Partition, PartitionInfo, id_text};

/// A topic is gone once the cluster has said so in so many looks, over so long: brokers that have just started say so of
/// topics that are there.
const GONE_LOOKS: u32 = 5;
const GONE_AFTER: Duration = Duration::from_secs(4);

/// What a look at the cluster came to.
enum Look {
    Done,
    /// To be taken again.
    Again(String),
}

impl Shared {
    /// Finds a line's leader, after a pause; `anew`: not by what is known already.
    pub(super) fn find(self: &Arc<Self>, id: u64, generation: u64, pause: Duration, anew: bool) {
        let shared = Arc::clone(self);
        self.spawn(async move {
            sleep(pause).await;
            shared.look(id, generation, anew).await;
        });
    }

    /// Counts a failure that may pass and looks for the leader again; after too many in a row the line stops.
    pub(super) fn failed(self: &Arc<Self>, id: u64, generation: u64, why: &str) {
        let mut board = self.board();
        let Some(line) = board.line(id, generation) else { return };
        line.phase = Phase::Finding;
        line.failures = line.failures.saturating_add(1);
        let (failures, attempts_max) = (line.failures, self.cluster.config().attempts_max);
        if failures >= attempts_max {
            let what = format!("Fetch of {}", line.partition);
            let last = why.to_owned();
            line.stop(Stop::Failed(ClusterError::Unavailable { what, attempts: failures, last }));
            return;
        }
        drop(board);
        self.find(id, generation, self.pause(failures), true);
    }

    async fn look(self: &Arc<Self>, id: u64, generation: u64, mut anew: bool) {
        let mut missing: Option<(Instant, u32)> = None;
        let mut looks = 0_u32;
        loop {
            let Some(partition) = self.board().line(id, generation).map(|line| line.partition.clone()) else {
                return;
            };
            looks = looks.saturating_add(1);
            let again = match self.cluster.partition(&partition, anew).await {
                Ok(info) => {
                    missing = None;
                    match self.found(id, generation, &partition, info) {
                        Look::Done => return,
                        Look::Again(why) => why,
                    }
                }
                Err(ClusterError::Unknown(what)) => {
                    let (since, count) = missing.unwrap_or_else(|| (Instant::now(), 0));
                    missing = Some((since, count.saturating_add(1)));
                    if count.saturating_add(1) >= GONE_LOOKS && since.elapsed() >= GONE_AFTER {
                        return self.stop(id, generation, |topic_id| Stop::Gone(gone_text(&what, topic_id)));
                    }
                    what
                }
                Err(error) => return self.stop(id, generation, |_| Stop::Failed(error)),
            };
            if missing.is_none() && looks >= self.cluster.config().attempts_max {
                let what = format!("leader of {partition}");
                let error = ClusterError::Unavailable { what, attempts: looks, last: again };
                return self.stop(id, generation, |_| Stop::Failed(error));
            }
            sleep(self.pause(looks)).await;
            anew = true;
        }
    }

    /// Takes what the cluster says of a leader.
    fn found(self: &Arc<Self>, id: u64, generation: u64, partition: &Partition, info: PartitionInfo) -> Look {
        let mut board = self.board();
        let Some(line) = board.line(id, generation) else { return Look::Done };
        if !line.topic_id.is_nil() && info.topic_id != line.topic_id {
            let why = recreated_text(partition, line.topic_id, info.topic_id);
            line.stop(Stop::Gone(why));
            return Look::Done;
        }
        line.topic_id = info.topic_id;
        if info.leader_epoch > line.leader_epoch {
            line.stop(Stop::NewEpoch { epoch: info.leader_epoch });
            return Look::Done;
        }
        if info.leader_epoch < line.leader_epoch {
            return Look::Again(format!(
                "{partition} has leader epoch {}, expected {}",
                info.leader_epoch, line.leader_epoch
            ));
        }
        if info.leader < 0 {
            return Look::Again(format!("{partition} has no leader"));
        }
        line.node = info.leader;
        if let Entry::Vacant(vacant) = board.nodes.entry(info.leader) {
            vacant.insert(Node::default());
            broker::start(self, info.leader);
        }
        self.queue(&mut board, id, Phase::Hot, false);
        Look::Done
    }

    fn stop(&self, id: u64, generation: u64, stop: impl FnOnce(Uuid) -> Stop) {
        if let Some(line) = self.board().line(id, generation) {
            let topic_id = line.topic_id;
            line.stop(stop(topic_id));
        }
    }
}

fn gone_text(what: &str, topic_id: Uuid) -> String {
    match topic_id.is_nil() {
        true => what.to_owned(),
        false => format!("{what}; it was there with topic id {}", id_text(topic_id)),
    }
}

fn recreated_text(partition: &Partition, ours: Uuid, theirs: Uuid) -> String {
    let (ours, theirs) = (id_text(ours), id_text(theirs));
    format!(
        "the topic of {partition} was deleted and created again: its topic id is {theirs}, expected {ours}"
    )
}
