//! All followed partitions and where each one is: waiting to be asked for, asked for, or holding a piece.
//!
//! A partition is in one [`Phase`]. The queues of a broker name partitions by id and generation; an entry whose partition has
//! moved on since is skipped.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use super::exchange::Ask;
use super::{Leader, Place, Room, Stop};
use crate::cluster::Partition;

/// Partitions in a request for data at most: more could not be filled, and each costs some 50 bytes in every request.
const ASKED_MAX: usize = 256;

/// Where a partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its leader is being found.
    Finding,
    /// To be asked for at once: it had data last time, or is new.
    Hot,
    /// To be asked for by itself, as a full answer may have left it out, or to prove that it has nothing.
    Alone,
    /// To be waited for: it had nothing last time.
    Cold,
    /// In a request under way.
    Asked,
    /// Not asked for before its piece is taken.
    Full,
    /// Its piece was dropped to make room for others: not asked for before its reader wants it.
    Parked,
    /// Not asked for before it is put somewhere.
    Stopped,
}

/// A followed partition.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) partition: Partition,
    /// Nil until it is learnt.
    pub(super) topic_id: Uuid,
    pub(super) place: Place,
    pub(super) leader_epoch: i32,
    /// Rises when the partition is put somewhere: answers to earlier requests are not for it.
    pub(super) generation: u64,
    pub(super) phase: Phase,
    pub(super) node: i32,
    pub(super) piece: Option<Raw>,
    pub(super) stop: Option<Stop>,
    /// What its reader was told last, and when.
    pub(super) told: Option<(Leader, Instant)>,
    /// Failures in a row.
    pub(super) failures: u32,
    /// Bytes to ask for, where a batch was cut off at fewer.
    pub(super) bytes_wanted: usize,
    /// The offset of a batch that was damaged when it came last.
    pub(super) damaged: Option<i64>,
    /// The high watermark below which there was nothing, and when that was proved.
    pub(super) proved: Option<(i64, Instant)>,
    pub(super) news: Arc<Notify>,
}

/// A piece whose checksums are not yet checked.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) batches: Bytes,
    /// The place it was asked for at.
    pub(super) from: Place,
    pub(super) leader: Leader,
    pub(super) proves_end: bool,
    pub(super) aborted: Vec<(i64, i64)>,
    pub(super) room: Room,
}

/// A broker's partitions that wait to be asked for.
#[derive(Debug, Default)]
pub(super) struct Node {
    hot: VecDeque<Entry>,
    alone: VecDeque<Entry>,
    cold: VecDeque<Entry>,
    /// True if the last request was for one partition by itself.
    was_alone: bool,
    /// True while a request waits for data.
    is_waiting: bool,
    /// When cold partitions are looked at although another request waits for data.
    look_at: Option<Instant>,
    /// No request before then (KIP-219).
    quiet_until: Option<Instant>,
    pub(super) wake_hot: Arc<Notify>,
    pub(super) wake_cold: Arc<Notify>,
}

type Entry = (u64, u64);

/// Everything.
#[derive(Debug, Default)]
pub(super) struct Board {
    pub(super) lines: HashMap<u64, Line>,
    pub(super) nodes: HashMap<i32, Node>,
    next_line: u64,
}

/// What a broker is asked next.
#[derive(Debug, Default)]
pub(super) struct Picked {
    pub(super) asks: Vec<Ask>,
    pub(super) is_alone: bool,
}

impl Board {
    pub(super) fn add(&mut self, line: Line) -> u64 {
        let id = self.next_line;
        self.next_line = id.saturating_add(1);
        self.lines.insert(id, line);
        id
    }

    /// The line, unless it was put elsewhere since.
    pub(super) fn line(&mut self, id: u64, generation: u64) -> Option<&mut Line> {
        self.lines.get_mut(&id).filter(|line| line.generation == generation)
    }

    /// Puts a line into a queue of its broker; `front`: as the first. A line whose broker is unknown has to be found.
    pub(super) fn enqueue(&mut self, id: u64, phase: Phase, front: bool) -> bool {
        let Some(line) = self.lines.get_mut(&id) else { return true };
        let Some(node) = self.nodes.get_mut(&line.node) else {
            line.phase = Phase::Finding;
            return false;
        };
        line.phase = phase;
        let entry = (id, line.generation);
        let queue = match phase {
            Phase::Hot => &mut node.hot,
            Phase::Alone => &mut node.alone,
            _ => &mut node.cold,
        };
        if front {
            queue.push_front(entry);
        } else {
            queue.push_back(entry);
        }
        if phase == Phase::Cold && !node.is_waiting {
            node.wake_cold.notify_one();
        } else {
            node.wake_hot.notify_one();
        }
        true
    }

    /// What to ask for at once: one partition alone in turn with many; among the many the cold ones if it is time to look.
    pub(super) fn pick_hot(&mut self, node: i32, bytes_max: usize, look: Duration) -> Picked {
        let Self { lines, nodes, .. } = self;
        let Some(node) = nodes.get_mut(&node) else { return Picked::default() };
        if !node.was_alone || node.hot.is_empty() {
            let asks = take(lines, &mut node.alone, Phase::Alone, bytes_max, 1);
            if !asks.is_empty() {
                node.was_alone = true;
                return Picked { asks, is_alone: true };
            }
        }
        node.was_alone = false;
        let mut asks = take(lines, &mut node.hot, Phase::Hot, bytes_max, ASKED_MAX);
        let now = Instant::now();
        if node.look_at.is_some_and(|at| at <= now) {
            let rest = ASKED_MAX.saturating_sub(asks.len());
            asks.extend(take(lines, &mut node.cold, Phase::Cold, bytes_max, rest));
            node.look_at = None;
        }
        if node.is_waiting && node.look_at.is_none() {
            node.look_at = Some(now + look);
        }
        let is_alone = false;
        Picked { asks, is_alone }
    }

    /// All that has to be waited for.
    pub(super) fn pick_cold(&mut self, node: i32, bytes_max: usize) -> Vec<Ask> {
        let Self { lines, nodes, .. } = self;
        let Some(node) = nodes.get_mut(&node) else { return Vec::new() };
        let asks = take(lines, &mut node.cold, Phase::Cold, bytes_max, usize::MAX);
        node.is_waiting = !asks.is_empty();
        node.look_at = None;
        asks
    }

    /// The request that waited for data is answered.
    pub(super) fn waited(&mut self, node: i32) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.is_waiting = false;
            node.look_at = None;
        }
    }

    /// When cold partitions are to be looked at, if there are any.
    pub(super) fn look_at(&self, node: i32) -> Option<Instant> {
        let node = self.nodes.get(&node)?;
        node.look_at.filter(|_| !node.cold.is_empty())
    }

    pub(super) fn quiet_until(&self, node: i32) -> Option<Instant> {
        self.nodes.get(&node)?.quiet_until
    }

    pub(super) fn throttle(&mut self, node: i32, throttle: Duration) {
        if let Some(node) = self.nodes.get_mut(&node).filter(|_| !throttle.is_zero()) {
            node.quiet_until = node.quiet_until.max(Some(Instant::now() + throttle));
        }
    }

    /// Drops pieces that no reader has taken for so long; they are fetched again once their readers want them.
    pub(super) fn park(&mut self, after: Duration) {
        for line in self.lines.values_mut().filter(|line| line.phase == Phase::Full) {
            if line.told.is_some_and(|(_, at)| at.elapsed() >= after)
                && let Some(piece) = line.piece.take()
            {
                line.place = piece.from;
                line.phase = Phase::Parked;
                line.proved = None;
            }
        }
    }

    /// True if no line is at this broker.
    pub(super) fn is_unused(&self, node: i32) -> bool {
        let at_work = |line: &Line| !matches!(line.phase, Phase::Finding | Phase::Parked | Phase::Stopped);
        !self.lines.values().any(|line| line.node == node && at_work(line))
    }
}

/// Takes up to `count` lines from a queue that are still in that phase, and marks them as asked for.
fn take(
    lines: &mut HashMap<u64, Line>,
    queue: &mut VecDeque<Entry>,
    phase: Phase,
    bytes_max: usize,
    count: usize,
) -> Vec<Ask> {
    let mut asks = Vec::new();
    while asks.len() < count
        && let Some((id, generation)) = queue.pop_front()
    {
        let line = lines.get_mut(&id).filter(|line| line.generation == generation && line.phase == phase);
        let Some(line) = line else { continue };
        line.phase = Phase::Asked;
        asks.push(Ask {
            line: id,
            generation,
            partition: line.partition.clone(),
            topic_id: line.topic_id,
            place: line.place,
            leader_epoch: line.leader_epoch,
            bytes_max: bytes_max.max(line.bytes_wanted),
        });
    }
    asks
}
