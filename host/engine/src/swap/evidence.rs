//! When a new generation is to be taken back by itself.
//!
//! A request on which it fails is judged once more by the generation before it, in place. Three requests from two partitions
//! that the former one judges without failing are enough, and must share no batch: one poisoned batch, sent again with
//! others behind it, is one request. A module that rewrites is not taken back in favour of one that does not.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use super::TakenBack;
use crate::{Call, Digest, Failure, TopicId};

/// For so long after a swap a generation is taken back by itself.
pub const ROLLBACK_WINDOW: Duration = Duration::from_secs(600);

/// How many requests of one generation are judged once more.
pub const MAX_PROBES: usize = 16;

/// And how many of one partition, so that the others have their turn.
const MAX_PARTITION_PROBES: usize = 4;

const REQUESTS_NEEDED: usize = 3;
const PARTITIONS_NEEDED: usize = 2;

/// A request on which a generation failed, and the one before it did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The topic's own id, high and low 64 bits.
    pub topic_id: (u64, u64),
    /// The partition's index.
    pub partition: u32,
    /// Base offset of the first batch, as received; none without batches.
    pub base_offset: Option<i64>,
    /// How it failed.
    pub failure: Failure,
}

/// What a generation failed on.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Requests that were, or are being, judged once more, by partition.
    probes: HashMap<Place, usize>,
    /// The batches in them.
    seen: HashSet<Batch>,
    witnesses: Vec<Witness>,
    decided: bool,
}

/// A partition: its topic's id and its index.
type Place = ((u64, u64), u32);

/// A batch by its digest. The same bytes count once, whatever partition they come for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Batch(Option<Digest>);

impl Evidence {
    /// False if it looks at nothing any more.
    pub(super) fn is_open(&self) -> bool {
        !self.decided && self.probes.values().sum::<usize>() < MAX_PROBES
    }

    /// Whether a request that failed is to be judged once more: only if none of its batches was seen before.
    pub(super) fn begin(&mut self, call: &Call) -> bool {
        let place = (call.policy.topic_id, call.policy.partition);
        if !self.is_open() || self.probes.get(&place).is_some_and(|&probes| probes >= MAX_PARTITION_PROBES) {
            return false;
        }
        let batches = batches(call);
        if batches.iter().any(|batch| self.seen.contains(batch)) {
            return false;
        }
        self.seen.extend(batches);
        let probes = self.probes.entry(place).or_insert(0);
        *probes = probes.saturating_add(1);
        true
    }

    /// The generation before did not fail on it. Gives why to take this one back, once.
    pub(super) fn add(&mut self, witness: Witness) -> Option<TakenBack> {
        if self.decided {
            return None;
        }
        self.witnesses.push(witness);
        let partitions: HashSet<_> = self.witnesses.iter().map(Witness::place).collect();
        self.decided = self.witnesses.len() >= REQUESTS_NEEDED && partitions.len() >= PARTITIONS_NEEDED;
        self.decided.then(|| TakenBack::Failing { witnesses: self.witnesses.clone() })
    }
}

impl Witness {
    pub(super) fn new(call: &Call, failure: Failure) -> Self {
        Self {
            topic_id: call.policy.topic_id,
            partition: call.policy.partition,
            base_offset: call.batches.first().map(|batch| batch.facts.header.base_offset),
            failure,
        }
    }

    fn place(&self) -> Place {
        (self.topic_id, self.partition)
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "topic id {}, partition `{}`", TopicId(self.topic_id), self.partition)?;
        if let Some(base) = self.base_offset {
            write!(formatter, ", base offset `{base}`")?;
        }
        let text = self.failure.to_string();
        // A trap's backtrace has lines of its own; the first ones tell what happened.
        let first = text.lines().next().unwrap_or_default();
        write!(formatter, ": {first}")
    }
}

/// Requests without batches all count as the same one.
fn batches(call: &Call) -> Vec<Batch> {
    if call.batches.is_empty() {
        return vec![Batch(None)];
    }
    call.batches.iter().map(|batch| Batch(Some(Digest::of(&batch.bytes)))).collect()
}
