//! What clusters say of a partition beside its batches: leader epochs, stable offset, producers, offsets by time.

use verbatim_wire::exact_producer::EpochEnd;
use verbatim_wire::tag::EpochEntry;

use super::redaction::Redaction;
use super::report::{Both, Bounds, Difference, Range, Side};
use crate::cluster::{At, Cluster, ClusterError, ListedOffset, Partition, Producer};

/// What histories are called.
const EPOCHS: &str = "leader epochs";

/// What a comparison has shown before, and so what may be expected to be equal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    pub(super) range: Range,
    pub(super) bounds: Both<Bounds>,
    /// Both logs end where the range does, so that what is true at the end can be compared.
    pub(super) to_the_end: bool,
    /// A side's topic is compacted, so that both may have been before one was copied.
    pub(super) may_compact: bool,
    /// The side that was compacted.
    pub(super) compacted: Option<Side>,
    /// What was redacted of the target.
    pub(super) redaction: Redaction,
}

impl Scope {
    /// True if both sides have everything since offset 0, as it was written.
    fn is_whole(&self) -> bool {
        let starts = [self.bounds.source.start, self.bounds.target.start, self.range.from];
        starts == [0; 3] && self.to_the_end && self.compacted.is_none()
    }
}

/// What comparing facts comes to.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) differences: Vec<Difference>,
    /// What the source has beyond the target without any data.
    pub(super) ahead: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) undecided: Option<String>,
}

/// Both sides of a partition.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) clusters: Both<&'a Cluster>,
    pub(super) partition: &'a Partition,
}

/// Asks both sides everything and compares the answers. `times` are those to ask offsets for.
pub(super) async fn compare(ask: &Ask<'_>, scope: &Scope, times: &[i64]) -> Compared {
    let mut compared = Compared::default();
    if scope.to_the_end {
        compared.differences.extend(stable_offsets(scope.bounds));
    }
    epochs(ask, scope, &mut compared).await;
    if scope.compacted.is_some() {
        compared.notes.push("offsets by time are not compared where one side is compacted".to_owned());
    } else if scope.redaction.records_dropped > 0 {
        compared.notes.push("offsets by time are not compared where records were dropped".to_owned());
    } else {
        by_time(ask, scope, times, &mut compared).await;
    }
    if scope.to_the_end {
        producers(ask, scope, &mut compared).await;
    }
    compared
}

/// The same question to both sides.
async fn both<T>(
    source: impl Future<Output = Result<T, ClusterError>>,
    target: impl Future<Output = Result<T, ClusterError>>,
) -> Result<Both<T>, (Side, ClusterError)> {
    let (source, target) = tokio::join!(source, target);
    Ok(Both {
        source: source.map_err(|error| (Side::Source, error))?,
        target: target.map_err(|error| (Side::Target, error))?,
    })
}

/// Histories that both sides tell and that differ are a difference. Where a side tells none, or contradicts itself, nobody can
/// say what its readers are told about truncation: that stays undecided, however equal the bytes are.
async fn epochs(ask: &Ask<'_>, scope: &Scope, compared: &mut Compared) {
    let (Both { source, target }, partition) = (ask.clusters, ask.partition);
    let histories = match both(source.epochs(partition, -1), target.epochs(partition, -1)).await {
        Ok(Both { source: (_, source), target: (_, target) }) => Both { source, target },
        Err(failed @ (_, ClusterError::Unsupported(_))) => return compared.failed(EPOCHS, failed),
        Err((side, error)) => return compared.open(side, EPOCHS, &error),
    };
    let before = compared.differences.len();
    compared.epochs(&histories, scope);
    let is_below = |entry: &&EpochEntry| entry.start < scope.range.to;
    let last = histories.source.iter().rev().find(is_below);
    let (Some(last), true) = (last, compared.differences.len() == before) else { return };
    match both(source.epoch_end(partition, last.epoch), target.epoch_end(partition, last.epoch)).await {
        Ok(ends) => compared.last_epoch(*last, ends, scope.range),
        Err((side, error)) => compared.open(side, EPOCHS, &error),
    }
}

async fn by_time(ask: &Ask<'_>, scope: &Scope, times: &[i64], compared: &mut Compared) {
    let Both { source, target } = ask.clusters;
    for time in times {
        let at = At::Time(*time);
        let listed =
            both(source.list_offset(ask.partition, at, false), target.list_offset(ask.partition, at, false));
        match listed.await {
            Ok(listed) => compared.differences.extend(offsets_at(*time, listed, scope)),
            Err(failed) => return compared.failed("offsets by time", failed),
        }
    }
}

/// Producers are compared if nothing was written since the ends were taken: they tell of the present.
async fn producers(ask: &Ask<'_>, scope: &Scope, compared: &mut Compared) {
    let (Both { source, target }, partition) = (ask.clusters, ask.partition);
    let listed = both(source.producers(partition), target.producers(partition)).await;
    let ends = both(
        source.list_offset(partition, At::Latest, false),
        target.list_offset(partition, At::Latest, false),
    );
    let (listed, ends) = match (listed, ends.await) {
        (Ok(listed), Ok(ends)) => (listed, ends),
        (Err(failed), _) | (_, Err(failed)) => return compared.failed("active producers", failed),
    };
    let moved = [Side::Source, Side::Target]
        .into_iter()
        .find(|side| ends.of(*side).map(|listed| listed.offset) != Some(scope.bounds.of(*side).end));
    match moved {
        Some(side) => compared
            .notes
            .push(format!("active producers are not compared, as the {side} was written to meanwhile")),
        None => compared.producers(&listed, scope),
    }
}

impl Compared {
    /// A question that was not answered: what a cluster does not know or tell is noted, anything else leaves it open.
    fn failed(&mut self, what: &str, (side, error): (Side, ClusterError)) {
        match error {
            ClusterError::Unsupported(_) | ClusterError::Refused { .. } => {
                self.notes
                    .push(format!("{what} are not compared, as the {side} does not tell them: {error}"));
            }
            error => self.open(side, what, &error),
        }
    }

    fn open(&mut self, side: Side, what: &str, error: &ClusterError) {
        self.undecided.get_or_insert(format!("the {side} does not tell its {what}: {error}"));
    }

    /// The last epoch that both have below the range's end goes on up to there, or a side contradicts its own history.
    fn last_epoch(&mut self, last: EpochEntry, ends: Both<EpochEnd>, range: Range) {
        for side in [Side::Source, Side::Target] {
            let EpochEnd { epoch, end } = *ends.of(side);
            if epoch == last.epoch && end >= range.to {
                continue;
            }
            self.undecided.get_or_insert(format!(
                "the {side} contradicts itself about its leader epochs: OffsetForLeaderEpoch of {} is answered with epoch \
                 {epoch} and end {end}, though its history tells that this epoch begins at {} and goes on to {} at least",
                last.epoch, last.start, range.to
            ));
        }
    }

    fn epochs(&mut self, histories: &Both<Vec<EpochEntry>>, scope: &Scope) {
        let source = within(&histories.source, scope.range);
        let target = within(&histories.target, scope.range);
        let end = scope.range.to;
        let pairs = (0..source.len().max(target.len())).map(|index| (source.get(index), target.get(index)));
        for (s, t) in pairs.filter(|(s, t)| s != t) {
            let starts = [s, t].into_iter().flatten().map(|entry| entry.start);
            let offset = starts.min().unwrap_or(end);
            match (s, t) {
                // Begun, and without data yet: the copy has not heard of it, perhaps of an earlier one that has given way to it.
                (Some(s), t) if s.start >= end && t.is_none_or(|t| t.start >= end && t.epoch < s.epoch) => {
                    if scope.to_the_end {
                        self.ahead
                            .push(format!("leader epoch {} begins at the source at offset {end}", s.epoch));
                    }
                }
                (None, Some(_)) if offset >= end && !scope.to_the_end => {}
                _ => {
                    let what =
                        format!("leader epochs differ: {} at the source, {} at the target", told(s), told(t));
                    self.differences.push(Difference::new(offset, what));
                    return;
                }
            }
        }
    }

    fn producers(&mut self, listed: &Both<Vec<Producer>>, scope: &Scope) {
        let of = |side: Side, id: i64| listed.of(side).iter().find(|producer| producer.id == id);
        for s in &listed.source {
            match of(Side::Target, s.id) {
                Some(t) if !agree(s, t, scope) => self.differences.push(Difference::new(
                    None,
                    format!("producer {} is not the same: source {}; target {}", s.id, state(s), state(t)),
                )),
                Some(_) => {}
                None => self.alone(Side::Source, s, scope),
            }
        }
        let alone = listed.target.iter().filter(|t| of(Side::Source, t.id).is_none());
        alone.for_each(|t| self.alone(Side::Target, t, scope));
    }

    fn alone(&mut self, side: Side, producer: &Producer, scope: &Scope) {
        let what = format!("only the {side} lists producer {}: {}", producer.id, state(producer));
        if scope.is_whole() {
            self.differences.push(Difference::new(None, what));
        }
    }
}

fn stable_offsets(bounds: Both<Bounds>) -> Option<Difference> {
    let (s, t) = (bounds.source.last_stable_offset, bounds.target.last_stable_offset);
    let what = format!("last stable offsets differ: source {s}, target {t}");
    (s != t).then(|| Difference::new(s.min(t), what))
}

/// The history as it is from the range's first offset on; what is above the range's end is left out, what begins with the end
/// is not.
fn within(history: &[EpochEntry], range: Range) -> Vec<EpochEntry> {
    let first = history.iter().rposition(|entry| entry.start <= range.from).unwrap_or(0);
    let rest = history.get(first..).unwrap_or_default().iter();
    let from = rest.map(|entry| EpochEntry { epoch: entry.epoch, start: entry.start.max(range.from) });
    from.filter(|entry| entry.start <= range.to).collect()
}

fn told(entry: Option<&EpochEntry>) -> String {
    entry.map_or_else(
        || "none more".to_owned(),
        |entry| format!("{} from offset {}", entry.epoch, entry.start),
    )
}

/// What is listed for a time, brought into the range: below its start there is nothing that both have, and what
/// lies at its end or above is none of it.
fn offsets_at(time: i64, listed: Both<Option<ListedOffset>>, scope: &Scope) -> Option<Difference> {
    // Kafka looks into one segment alone, and finds nothing if cleaning took the records that made it choose that one.
    if scope.may_compact && (listed.source.is_none() || listed.target.is_none()) {
        return None;
    }
    let Range { from, to } = scope.range;
    let cut = |listed: Option<ListedOffset>| match listed {
        Some(listed) if listed.offset < from => {
            Some(ListedOffset { offset: from, timestamp: -1, leader_epoch: -1 })
        }
        listed => listed.filter(|listed| listed.offset < to),
    };
    let (s, t) = (cut(listed.source), cut(listed.target));
    let is_equal = match (s, t) {
        // A first record below the range tells nothing of the one that would be found in it.
        (Some(s), Some(t)) if s.timestamp == -1 || t.timestamp == -1 => true,
        (s, t) => s == t,
    };
    let told = |listed: Option<ListedOffset>| {
        listed.map_or_else(
            || "none".to_owned(),
            |one| format!("{} (time {}, leader epoch {})", one.offset, one.timestamp, one.leader_epoch),
        )
    };
    let offset = [s, t].into_iter().flatten().map(|listed| listed.offset).min();
    let what =
        format!("the first offset at or after time {time} differs: source {}, target {}", told(s), told(t));
    (!is_equal).then(|| Difference::new(offset, what))
}

/// A producer that began below the range may have begun its open transaction there. Its last time is that of what is left of its
/// last batch.
fn agree(source: &Producer, target: &Producer, scope: &Scope) -> bool {
    let is_cut = |producer: &Producer| {
        producer.transaction_start >= 0 && producer.transaction_start <= scope.range.from
    };
    let mut expected = *source;
    if is_cut(source) && is_cut(target) {
        expected.transaction_start = target.transaction_start;
    }
    if scope.redaction.records_dropped > 0 {
        expected.last_timestamp = target.last_timestamp.min(source.last_timestamp);
    }
    expected == *target
}

fn state(producer: &Producer) -> String {
    format!(
        "epoch {}, last sequence {}, last time {}, coordinator epoch {}, open transaction from {}",
        producer.epoch,
        producer.last_sequence,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.transaction_start
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(from: i64, to: i64, to_the_end: bool) -> Scope {
        let bounds = Bounds { start: from, end: to, last_stable_offset: to };
        let bounds = Both { source: bounds, target: bounds };
        let redaction = Redaction::default();
        Scope {
            range: Range { from, to },
            bounds,
            to_the_end,
            may_compact: false,
            compacted: None,
            redaction,
        }
    }

    fn history(entries: &[(i32, i64)]) -> Vec<EpochEntry> {
        entries.iter().map(|(epoch, start)| EpochEntry { epoch: *epoch, start: *start }).collect()
    }

    fn epochs(source: &[(i32, i64)], target: &[(i32, i64)], scope: &Scope) -> (Option<i64>, usize) {
        let mut compared = Compared::default();
        compared.epochs(&Both { source: history(source), target: history(target) }, scope);
        (compared.differences.first().and_then(|one| one.offset), compared.ahead.len())
    }

    #[test]
    fn histories_are_compared_within_the_range() {
        let whole = scope(10, 100, true);
        assert_eq!(epochs(&[(1, 0), (3, 50)], &[(1, 10), (3, 50)], &whole), (None, 0), "the same from 10 on");
        assert_eq!(epochs(&[(1, 0), (3, 50)], &[(1, 10), (3, 51)], &whole), (Some(50), 0));
        assert_eq!(epochs(&[(1, 0), (2, 5), (3, 50)], &[(1, 10), (3, 50)], &whole), (Some(10), 0));
        assert_eq!(epochs(&[(1, 0), (3, 100)], &[(1, 0)], &whole), (None, 1), "a new epoch without data");
        assert_eq!(epochs(&[(1, 0)], &[(1, 0), (3, 100)], &whole), (Some(100), 0));
        assert_eq!(epochs(&[(1, 0), (4, 100)], &[(1, 0), (3, 100)], &whole), (None, 1), "one that gave way");
        assert_eq!(epochs(&[(1, 0), (2, 100)], &[(1, 0), (3, 100)], &whole), (Some(100), 0));
        let part = scope(10, 100, false);
        assert_eq!(epochs(&[(1, 0), (3, 100), (4, 120)], &[(1, 0)], &part), (None, 0));
        assert_eq!(epochs(&[(1, 0), (4, 100), (5, 120)], &[(1, 0), (3, 100)], &part), (None, 0));
    }

    #[test]
    fn offsets_by_time_are_compared_where_both_can_know_them() {
        let at = |offset, timestamp| Some(ListedOffset { offset, timestamp, leader_epoch: 3 });
        let scope = scope(10, 100, true);
        let differs = |source, target| offsets_at(5, Both { source, target }, &scope).is_some();
        assert!(!differs(at(50, 5), at(50, 5)));
        assert!(differs(at(50, 5), at(51, 5)));
        assert!(differs(at(50, 5), at(50, 6)));
        assert!(differs(at(50, 5), None));
        assert!(!differs(at(120, 5), None), "behind the range");
        assert!(!differs(at(3, 5), at(10, 9)), "below the range");
        let cleaned = Scope { may_compact: true, ..scope };
        let differs = |source, target| offsets_at(5, Both { source, target }, &cleaned).is_some();
        assert!(!differs(None, at(50, 5)), "the cleaner took the record that Kafka's index knows");
        assert!(differs(at(50, 5), at(51, 5)));
    }

    #[test]
    fn producers_must_agree_and_be_the_same_where_everything_was_copied() {
        let producer = |id, transaction_start| Producer {
            id,
            epoch: 0,
            last_sequence: 7,
            last_timestamp: 1,
            coordinator_epoch: -1,
            transaction_start,
        };
        let found = |source: &[Producer], target: &[Producer], scope: &Scope| {
            let mut compared = Compared::default();
            compared.producers(&Both { source: source.to_vec(), target: target.to_vec() }, scope);
            compared.differences.len()
        };
        let (whole, cut) = (scope(0, 100, true), scope(10, 100, true));
        assert_eq!(found(&[producer(1, -1)], &[producer(1, -1)], &whole), 0);
        assert_eq!(found(&[producer(1, -1)], &[producer(1, 50)], &cut), 1);
        assert_eq!(found(&[producer(1, 3)], &[producer(1, 10)], &cut), 0, "it began below the range");
        assert_eq!(found(&[producer(1, -1), producer(2, -1)], &[producer(1, -1)], &whole), 1);
        assert_eq!(found(&[producer(1, -1)], &[producer(1, -1), producer(2, -1)], &whole), 1);
        assert_eq!(found(&[producer(1, -1), producer(2, -1)], &[producer(1, -1)], &cut), 0);
        let dropped = Scope {
            redaction: Redaction { records_dropped: 1, ..Redaction::default() },
            ..scope(0, 100, true)
        };
        let [early, late] = [1, 2].map(|last_timestamp| Producer { last_timestamp, ..producer(1, -1) });
        assert_eq!(found(&[late], &[early], &whole), 1);
        assert_eq!(found(&[late], &[early], &dropped), 0, "its last record was dropped");
        assert_eq!(found(&[early], &[late], &dropped), 1);
    }
}
