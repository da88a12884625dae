//! One side's batches, fetched ahead by a task of their own.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use verbatim_batch::{Frame, Header, frames};

use super::aborted::AbortedTransaction;
use super::ask::{aborted, fetch};
use super::compare::Head;
use super::records::Batch;
use super::report::Range;
use super::walk::{Feed, ReadError};
use crate::cluster::{Cluster, Partition};

/// Answers that wait to be compared, for each side of a partition.
const AHEAD: usize = 1;

/// A log that is read from.
#[derive(Debug, Clone)]
pub(super) struct Log {
    pub(super) cluster: Cluster,
    pub(super) partition: Partition,
    /// Below this offset no transaction is open: read committed there, for the aborted transactions.
    pub(super) stable: i64,
    pub(super) fetch_bytes_max: usize,
    pub(super) pace: Arc<Pace>,
}

/// Whole batches of one answer.
#[derive(Debug)]
struct Piece {
    batches: VecDeque<Batch>,
    aborted: Vec<AbortedTransaction>,
}

/// The batches of one log.
#[derive(Debug)]
pub(super) struct LogFeed {
    pieces: mpsc::Receiver<Result<Piece, ReadError>>,
    batches: VecDeque<Batch>,
    head: Option<Head>,
    transactions: Transactions,
    stable: i64,
}

impl Log {
    /// The batches from the one that holds `range.from`, up to below `range.to`. Reading begins at once, in the present
    /// runtime, and ends when the feed is dropped.
    pub(super) fn feed(&self, range: Range) -> LogFeed {
        let (sender, pieces) = mpsc::channel(AHEAD);
        let log = self.clone();
        tokio::spawn(async move {
            // A feed that is dropped wants nothing more.
            if let Err(error) = log.read(range, &sender).await {
                let _ = sender.send(Err(error)).await;
            }
        });
        let (transactions, stable) = (Transactions::default(), self.stable);
        LogFeed { pieces, batches: VecDeque::new(), head: None, transactions, stable }
    }

    async fn read(
        &self,
        range: Range,
        sender: &mpsc::Sender<Result<Piece, ReadError>>,
    ) -> Result<(), ReadError> {
        let mut at = range.from;
        while at < range.to {
            let committed = at < self.stable;
            let bytes_max = self.fetch_bytes_max;
            let asked = Range { from: at, to: if committed { self.stable.min(range.to) } else { range.to } };
            let fetched = fetch(&self.cluster, &self.partition, asked, committed, bytes_max).await?;
            self.pace.pay(fetched.batches.len()).await;
            if fetched.batches.is_empty() {
                at = asked.to;
                continue;
            }
            at = fetched.next.offset;
            let piece = Piece { batches: framed(&fetched.batches, range.to), aborted: aborted(&fetched) };
            if sender.send(Ok(piece)).await.is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// The batches of an answer that begin below the end.
fn framed(bytes: &Bytes, end: i64) -> VecDeque<Batch> {
    let batch = |frame: Frame<'_>| Some(Batch { bytes: bytes.slice(frame.range()), header: frame.header()? });
    frames(bytes).filter_map(batch).filter(|batch| batch.header.base_offset < end).collect()
}

impl Feed for LogFeed {
    async fn load(&mut self) -> Result<(), ReadError> {
        while self.head.is_none() {
            if let Some(batch) = self.batches.pop_front() {
                let aborted = self.transactions.comes(&batch.header);
                let unstable = batch.header.attributes.is_transactional() && batch.last() >= self.stable;
                self.head = Some(Head { batch, aborted, unstable });
                break;
            }
            let Some(piece) = self.pieces.recv().await.transpose()? else { break };
            self.transactions.list(piece.aborted);
            self.batches = piece.batches;
        }
        Ok(())
    }

    fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    fn pass(&mut self) {
        if let Some(head) = self.head.take() {
            self.transactions.passed(&head.batch.header);
        }
    }

    fn aborted(&mut self) -> Vec<AbortedTransaction> {
        std::mem::take(&mut self.transactions.begun)
    }
}

/// Which transactions are aborted, as far as a walk has come. Answers list those that reach into what they bring, so that one
/// may be listed many times.
#[derive(Debug, Default)]
struct Transactions {
    /// Listed, and not come to yet.
    ahead: BTreeSet<AbortedTransaction>,
    /// Producers whose aborted transaction the walk is in, and where it began while the walk came to none of its data.
    within: HashMap<i64, Option<i64>>,
    /// Those whose data the walk came to, once each, from the first batch on that is left. Kafka goes on to list those of
    /// which the cleaner left nothing but the marker; who copies what is left cannot know of them, and no reader need.
    begun: Vec<AbortedTransaction>,
    /// The offset up to which the walk has come.
    upto: Option<i64>,
}

impl Transactions {
    fn list(&mut self, aborted: Vec<AbortedTransaction>) {
        let upto = self.upto;
        self.ahead.extend(aborted.into_iter().filter(|one| upto.is_none_or(|upto| one.first >= upto)));
    }

    /// The next batch: true if it belongs to an aborted transaction.
    fn comes(&mut self, header: &Header) -> bool {
        let last = header.last_offset().unwrap_or(header.base_offset);
        while let Some(one) = self.ahead.first().copied().filter(|one| one.first <= last) {
            self.ahead.remove(&one);
            self.within.insert(one.producer_id, Some(one.first));
        }
        self.upto = last.checked_add(1);
        let (attributes, producer_id) = (header.attributes, header.producer_id);
        if !attributes.is_transactional() || attributes.is_control() {
            return false;
        }
        let Some(began) = self.within.get_mut(&producer_id) else { return false };
        if let Some(first) = began.take().map(|first| first.max(header.base_offset)) {
            self.begun.push(AbortedTransaction { first, producer_id });
        }
        true
    }

    fn passed(&mut self, header: &Header) {
        if header.attributes.is_control() {
            self.within.remove(&header.producer_id);
        }
    }
}

/// What all reading together may take of the network.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_second: Option<NonZeroU64>,
    next: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new(bytes_per_second: Option<NonZeroU64>) -> Self {
        Self { bytes_per_second, next: Mutex::new(Instant::now()) }
    }

    /// Waits until so many bytes fit.
    async fn pay(&self, bytes: usize) {
        let Some(rate) = self.bytes_per_second else { return };
        let nanos = u128::try_from(bytes).unwrap_or(0).saturating_mul(1_000_000_000) / u128::from(rate.get());
        let until = {
            let mut next = self.next.lock().await;
            *next =
                (*next).max(Instant::now()) + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            *next
        };
        tokio::time::sleep_until(until).await;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use verbatim_batch::BatchBuilder;

    use super::*;

    fn header(base: i64, producer_id: i64, control: bool) -> Header {
        let builder = BatchBuilder::new(base).producer(producer_id, 0, 0).transactional();
        let builder = if control { builder.control() } else { builder };
        Header::read(&builder.build().unwrap()).unwrap()
    }

    #[test]
    fn an_aborted_transaction_is_told_once_and_ends_with_its_marker() {
        let one = |first, producer_id| AbortedTransaction { first, producer_id };
        let mut transactions = Transactions::default();
        transactions.list(vec![one(5, 1), one(2, 2), one(90, 1)]);
        assert!(transactions.comes(&header(10, 1, false)));
        assert!(!transactions.comes(&header(11, 3, false)));
        assert!(transactions.comes(&header(12, 2, false)));
        transactions.list(vec![one(5, 1), one(13, 3)]);
        assert!(!transactions.comes(&header(13, 1, true)));
        transactions.passed(&header(13, 1, true));
        assert!(!transactions.comes(&header(14, 1, false)), "its next transaction");
        assert!(transactions.comes(&header(15, 3, false)));
        assert_eq!(transactions.begun, [one(10, 1), one(12, 2), one(15, 3)], "from what is left of each");
        assert!(transactions.comes(&header(91, 1, false)));
    }

    #[test]
    fn an_aborted_transaction_of_which_only_the_marker_is_left_is_not_told() {
        let mut transactions = Transactions::default();
        transactions.list(vec![AbortedTransaction { first: 2, producer_id: 1 }]);
        assert!(!transactions.comes(&header(5, 1, true)));
        transactions.passed(&header(5, 1, true));
        assert!(!transactions.comes(&header(6, 1, false)), "its next transaction");
        assert_eq!(transactions.begun, []);
    }

    #[tokio::test(start_paused = true)]
    async fn reading_takes_the_time_that_its_rate_asks_for() {
        let pace = Pace::new(NonZeroU64::new(1_000));
        let before = Instant::now();
        tokio::join!(pace.pay(1_500), pace.pay(500));
        assert_eq!(before.elapsed().as_secs(), 2);
    }
}
