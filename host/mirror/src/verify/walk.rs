//! Walks two logs side by side to the end of a range, and what has to be looked at after that.

use std::future::Future;

use super::aborted::{Aborted, AbortedTransaction};
use super::compaction::hash;
use super::compare::{Comparison, Head, Step, Stop};
use super::report::{Difference, Range, Side};

/// Why a log cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadError {
    /// Its start moved up to here, past what was to be read.
    Moved(i64),
    /// The batch at this offset is damaged.
    Damaged(i64),
    /// Anything else, in words.
    Failed(String),
}

/// One side's batches, in order.
pub(super) trait Feed: Send {
    /// Makes the next batch ready, if there is one.
    fn load(&mut self) -> impl Future<Output = Result<(), ReadError>> + Send;
    /// The next batch; `None` at the end.
    fn head(&self) -> Option<&Head>;
    /// Goes on behind it.
    fn pass(&mut self);
    /// The aborted transactions that began among what was passed since this was last asked.
    fn aborted(&mut self) -> Vec<AbortedTransaction>;
}

/// Where feeds come from.
pub(super) trait Logs: Sync {
    /// Their type.
    type Feed: Feed;
    /// The batches of a side from the one that holds `range.from`, up to below `range.to`.
    fn open(&self, side: Side, range: Range) -> Self::Feed;
    /// Where a side ends now.
    fn end(&self, side: Side) -> impl Future<Output = Result<i64, ReadError>> + Send;
}

/// What a walk came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Walked {
    /// No difference.
    Equal,
    Differs(Difference),
    Undecided(String),
}

/// Compares the whole range. `passed` is told how far it has come after each step.
pub(super) async fn walk<L: Logs>(
    logs: &L,
    comparison: &mut Comparison,
    aborted: &mut Aborted,
    range: Range,
    mut passed: impl FnMut(&Comparison, &Aborted, i64) + Send,
) -> Result<Walked, (Side, ReadError)> {
    let mut source = logs.open(Side::Source, range);
    let mut target = logs.open(Side::Target, range);
    let stopped = loop {
        let (of_source, of_target) = tokio::join!(source.load(), target.load());
        of_source.map_err(|error| (Side::Source, error))?;
        of_target.map_err(|error| (Side::Target, error))?;
        let step = match comparison.step(source.head(), target.head()) {
            Ok(step) => step,
            Err(stop) => break Some(stop),
        };
        let at = [source.head(), target.head()].into_iter().flatten().map(|head| head.batch.last()).min();
        if matches!(step, Step::Both | Step::Only(Side::Source)) {
            source.pass();
        }
        if matches!(step, Step::Both | Step::Only(Side::Target)) {
            target.pass();
        }
        source.aborted().into_iter().for_each(|one| aborted.list(Side::Source, one));
        target.aborted().into_iter().for_each(|one| aborted.list(Side::Target, one));
        match at {
            Some(at) if step != Step::End => passed(comparison, aborted, at.saturating_add(1)),
            _ => break None,
        }
    };
    settle(logs, comparison, range, stopped, (source, target)).await
}

/// Decides about what is still owed: a later record of the same key may lie behind the difference or the range, and what is
/// owed for good may lie below the difference.
async fn settle<L: Logs>(
    logs: &L,
    comparison: &mut Comparison,
    range: Range,
    stopped: Option<Stop>,
    (mut source, mut target): (L::Feed, L::Feed),
) -> Result<Walked, (Side, ReadError)> {
    let stopped = match stopped {
        Some(Stop::Undecided(why)) => return Ok(Walked::Undecided(why)),
        Some(Stop::Differs(difference)) => Some(difference),
        None => None,
    };
    let full = comparison.compaction.side.map(Side::other);
    if let Some(side) = full {
        let feed = if side == Side::Source { &mut source } else { &mut target };
        redeem(comparison, side, feed).await?;
    }
    for side in [Side::Source, Side::Target] {
        if comparison.compaction.is_owing() {
            let end = logs.end(side).await.map_err(|error| (side, error))?;
            let mut behind = logs.open(side, Range { from: range.to, to: end });
            redeem(comparison, side, &mut behind).await?;
        }
    }
    let owed = comparison.compaction.first_owed();
    let revived = match (&stopped, &owed) {
        (None, None) => revived(logs, comparison, range).await?,
        _ => None,
    };
    let first = [stopped, owed, revived].into_iter().flatten().min_by_key(|difference| difference.offset);
    Ok(first.map_or(Walked::Equal, Walked::Differs))
}

/// Reads on as long as records are owed.
async fn redeem<F: Feed>(
    comparison: &mut Comparison,
    side: Side,
    feed: &mut F,
) -> Result<(), (Side, ReadError)> {
    while comparison.compaction.is_owing() {
        feed.load().await.map_err(|error| (side, error))?;
        let Some(head) = feed.head() else { break };
        // What cannot be read redeems nothing.
        if comparison.compaction.supersede(head).is_err() {
            break;
        }
        feed.pass();
    }
    Ok(())
}

/// A key whose tombstone is gone from the compacted side, which has an earlier record of it: there it lives again.
async fn revived<L: Logs>(
    logs: &L,
    comparison: &Comparison,
    range: Range,
) -> Result<Option<Difference>, (Side, ReadError)> {
    let (tombstones, last) = comparison.compaction.tombstones();
    let Some(side) = comparison.compaction.side.filter(|_| !tombstones.is_empty()) else { return Ok(None) };
    let mut feed = logs.open(side, Range { from: range.from, to: last });
    loop {
        feed.load().await.map_err(|error| (side, error))?;
        let Some(head) = feed.head() else { return Ok(None) };
        if head.supersedes() {
            let inflated =
                comparison.inflate(&head.batch).map_err(|why| (side, ReadError::Failed(why.to_string())))?;
            for placed in inflated.records().filter(|placed| placed.offset >= range.from) {
                let tombstone = placed.record.key.and_then(|key| tombstones.get(&hash(key)));
                if let Some(at) = tombstone.filter(|at| placed.offset < **at) {
                    let what = format!(
                        "the {side} lacks the tombstone at offset {at}, while it has its key's record at offset {}",
                        placed.offset
                    );
                    return Ok(Some(Difference::new(*at, what)));
                }
            }
        }
        feed.pass();
    }
}
