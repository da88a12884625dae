//! Copies one partition from where it was aligned: reads ahead, writes behind, and tells the copy where its source stands.

mod flight;
mod history;
mod run;

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use verbatim_batch::frames;
use verbatim_wire::exact_producer::{ExactError, ExactPartition, Receipt, Source, Write};

use super::aligning::Aligned;
use super::partition::{Task, Tries};
use super::state::State;
use super::trouble::{Halt, Side, Trouble};
use crate::fetch::{Followed, Piece, Place, Stop};
use flight::{Flight, Flights};
use history::History;
use run::{Run, Selected, Start};

/// The copy is told where its source stands at least so often.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
/// Signs of life come at whole multiples of this, so that those of many partitions share requests.
const BEAT: Duration = Duration::from_millis(250);
/// Damaged batches in a row after which the source is taken to hold them.
const DAMAGED_MAX: u32 = 3;

/// The pause before batches come once more that lie above the high watermark that came with them.
const BEYOND_PAUSE: Duration = Duration::from_millis(10);

/// One partition being copied.
pub(super) struct Copying<'a> {
    task: &'a Task,
    tries: &'a mut Tries,
    writer: ExactPartition,
    followed: Followed,
    /// Where the next write begins: behind everything queued.
    end: i64,
    /// Where reading goes on, if that is above the end: below it the source has nothing.
    read_from: i64,
    /// Where the source began when it was asked.
    source_start: i64,
    /// Nothing is stored or queued below the end, so the first batch may begin there.
    empty: bool,
    history: History,
    /// The end that has to be acknowledged to have caught up once.
    goal: i64,
    acknowledged: i64,
    flights: Flights,
    /// Where the source stood last, and what the copy was told of that, and when.
    source: Option<Source>,
    told: Option<Source>,
    told_at: Instant,
}

impl<'a> Copying<'a> {
    /// Learns the source's leader epochs above the copy's, and begins to read under the present one.
    pub(super) async fn begin(
        task: &'a Task,
        tries: &'a mut Tries,
        aligned: Aligned,
    ) -> Result<Self, Trouble> {
        let mut history = History::new(aligned.last_epoch, aligned.epoch_before);
        learn(task, &mut history, aligned.end).await?;
        let last_epoch = if aligned.read_from > aligned.end { -1 } else { history.before() };
        let place = Place { offset: aligned.read_from, last_epoch };
        let followed = task.links.from.follow_topic(
            task.partition.clone(),
            task.topic.id,
            place,
            history.leader_epoch(),
        );
        task.cell.enter(State::Mirroring, None);
        Ok(Self {
            followed,
            writer: aligned.writer,
            end: aligned.end,
            read_from: aligned.read_from,
            source_start: aligned.source.start,
            empty: aligned.empty,
            history,
            goal: aligned.source.end,
            acknowledged: aligned.end,
            flights: Flights::default(),
            source: None,
            told: None,
            told_at: Instant::now(),
            task,
            tries,
        })
    }

    /// Copies until the mirror stops or, where that is all that is wanted, until it has caught up once.
    pub(super) async fn run(mut self) -> Result<(), Trouble> {
        let task = self.task;
        let begun = tokio::select! {
            biased;
            () = task.stop.cancelled() => Ok(()),
            ended = self.copy() => ended,
        };
        // What is under way may say more about what went wrong.
        self.drain().await.and(begun)
    }

    async fn copy(&mut self) -> Result<(), Trouble> {
        while !(self.task.links.config.once && self.has_caught_up()) {
            tokio::select! {
                (flight, settled) = self.flights.settled() => self.settle(&flight, settled)?,
                piece = self.followed.next() => match piece {
                    Ok(piece) => self.take(piece).await?,
                    Err(stop) => self.stopped(stop).await?,
                },
                () = sleep_until(sign_due(self.task.links.begun, self.told_at)) => self.sign_of_life().await?,
            }
        }
        self.task.cell.enter(State::CaughtUp, None);
        Ok(())
    }

    fn has_caught_up(&self) -> bool {
        let reached = self.acknowledged >= self.goal && self.flights.is_empty();
        reached && self.told.is_some() && !self.history.begins_at(self.end)
    }

    /// What the source answered: queues what is new in it.
    async fn take(&mut self, piece: Piece) -> Result<(), Trouble> {
        let leader = piece.leader;
        if leader.epoch != self.history.leader_epoch() {
            return self.new_epoch().await;
        }
        self.tries.damaged = 0;
        // A version of Fetch that does not tell the start leaves the one that was asked for.
        let start = if leader.log_start < 0 { self.source_start } else { leader.log_start };
        let source = Source { start, end: leader.high_watermark.max(start), epoch: leader.epoch };
        self.source = Some(source);
        self.task.cell.source(source);
        self.check_history()?;
        let start = Start { end: self.end, empty: self.empty };
        let Selected { run, leaves_some } = run::select(&piece.batches, start, leader.high_watermark)?;
        match run {
            Some(run) => self.append(piece, run, source).await?,
            None if leaves_some => sleep(BEYOND_PAUSE).await,
            None => self.without_data(&piece, source).await?,
        }
        if leaves_some {
            self.go_on();
        }
        Ok(())
    }

    /// Nothing new came: what the copy is told then.
    async fn without_data(&mut self, piece: &Piece, source: Source) -> Result<(), Trouble> {
        if source.end > self.end && (piece.proves_end || source.end <= self.read_from) {
            return self.hole(source).await;
        }
        if self.history.begins_at(self.end) {
            let (from, entries) = (self.end, self.history.take(self.end));
            let nothing = Write { from, batches: Default::default(), entries, end_to: None, source };
            return self.queue(nothing, Flight::to(from)).await;
        }
        if self.told == Some(source) { Ok(()) } else { self.sign_of_life().await }
    }

    async fn append(&mut self, piece: Piece, run: Run, source: Source) -> Result<(), Trouble> {
        let batches = piece.batches.slice(run.bytes.clone());
        let mut prefixes = frames(&batches).map(|frame| frame.prefix());
        let is_unknown = prefixes.any(|prefix| self.history.lacks(prefix.leader_epoch, prefix.base_offset));
        if is_unknown && !self.is_learnt_anew().await? {
            return Ok(());
        }
        let entries = self.history.take(run.end);
        for frame in frames(&batches) {
            self.history.append(frame.prefix().leader_epoch);
        }
        let write = Write { from: self.end, batches, entries, end_to: None, source };
        self.empty = false;
        let flight = Flight { end: run.end, amount: run.amount, _room: Some(piece) };
        self.queue(write, flight).await?;
        self.move_to(run.end);
        Ok(())
    }

    /// There is nothing up to the source's end: the copy ends there too.
    async fn hole(&mut self, source: Source) -> Result<(), Trouble> {
        self.check_local().await?;
        // A copy gets epochs without data, too, under one leader epoch.
        if self.task.topic.is_copy() && !self.is_learnt_anew().await? {
            return Ok(());
        }
        let entries = self.history.take(source.end);
        let (from, batches) = (self.end, Default::default());
        let write = Write { from, batches, entries, end_to: Some(source.end), source };
        self.queue(write, Flight::to(source.end)).await?;
        self.empty = false;
        self.move_to(source.end);
        self.go_on();
        Ok(())
    }

    async fn sign_of_life(&mut self) -> Result<(), Trouble> {
        self.told_at = Instant::now();
        let Some(source) = self.source else { return Ok(()) };
        if !self.flights.is_empty() && self.told == Some(source) {
            // What is under way tells it.
            return Ok(());
        }
        let receipt = self.writer.declare_source(source).await?;
        self.sent(receipt, Flight::to(self.end), source);
        Ok(())
    }

    async fn queue(&mut self, write: Write, flight: Flight) -> Result<(), Trouble> {
        let source = write.source;
        let receipt = self.writer.write(write).await?;
        self.sent(receipt, flight, source);
        Ok(())
    }

    fn sent(&mut self, receipt: Receipt, flight: Flight, source: Source) {
        self.flights.push(receipt, flight);
        self.told = Some(source);
        self.told_at = Instant::now();
    }

    fn move_to(&mut self, end: i64) {
        self.end = end;
        self.history.move_to(end);
    }

    fn settle(&mut self, flight: &Flight, settled: Result<(), ExactError>) -> Result<(), Trouble> {
        settled?;
        self.tries.progress |= flight.end > self.acknowledged;
        self.acknowledged = flight.end;
        self.task.cell.acknowledged(flight.end, flight.amount);
        Ok(())
    }

    /// Waits for all that is under way; the first failure counts.
    async fn drain(&mut self) -> Result<(), Trouble> {
        let mut first = Ok(());
        while !self.flights.is_empty() {
            let (flight, settled) = self.flights.settled().await;
            let settled = self.settle(&flight, settled);
            first = first.and(settled);
        }
        first
    }

    async fn stopped(&mut self, stop: Stop) -> Result<(), Trouble> {
        let task = self.task;
        Err(match stop {
            Stop::NewEpoch { .. } => return self.new_epoch().await,
            Stop::Diverging { epoch, end } => {
                let text = format!("the source's epoch {epoch} ends at {end}, below the place that is read");
                Trouble::Realign(text)
            }
            Stop::OutOfRange => Trouble::Realign(format!("the source has no offset {}", self.end)),
            Stop::Gone(said) => task.gone(said).await,
            Stop::Corrupt(offset) => {
                self.tries.damaged = self.tries.damaged.saturating_add(1);
                if self.tries.damaged >= DAMAGED_MAX {
                    return Err(Trouble::Halt(Halt::corrupt(&task.partition, offset)));
                }
                Trouble::Pass(format!("a damaged batch came from the source, at or behind offset {offset}"))
            }
            Stop::Failed(error) => match Trouble::of_cluster(Side::Source, &error) {
                Trouble::Pass(said) => task.gone(said).await,
                trouble => trouble,
            },
        })
    }

    /// Learns the leader epochs once more. False if there is another leader by now: then reading begins anew under that one.
    async fn is_learnt_anew(&mut self) -> Result<bool, Trouble> {
        let before = self.history.leader_epoch();
        learn(self.task, &mut self.history, self.end).await?;
        if self.history.leader_epoch() != before {
            self.go_on();
            return Ok(false);
        }
        self.check_history()?;
        Ok(true)
    }

    /// Nothing came: that is proof only of what the leader itself holds.
    async fn check_local(&self) -> Result<(), Trouble> {
        let at = self.end.max(self.read_from);
        let local = self.task.links.source.local_start(&self.task.partition).await;
        let local = local.map_err(|error| Trouble::of_cluster(Side::Source, &error))?;
        if local > at {
            let text =
                format!("source: nothing came from offset {at}, though remote storage reaches to {local}");
            return Err(Trouble::Pass(text));
        }
        Ok(())
    }

    fn check_history(&self) -> Result<(), Trouble> {
        if self.history.begins_below(self.end) {
            let text = "the source's leader epochs begin below the copy's end".to_owned();
            return Err(Trouble::Realign(text));
        }
        Ok(())
    }

    async fn new_epoch(&mut self) -> Result<(), Trouble> {
        learn(self.task, &mut self.history, self.end).await?;
        self.go_on();
        Ok(())
    }

    /// Reads on from the end.
    fn go_on(&mut self) {
        let offset = self.end.max(self.read_from);
        let last_epoch = if offset > self.end { -1 } else { self.history.before() };
        self.followed.go_on(Place { offset, last_epoch }, self.history.leader_epoch());
    }
}

/// Learns the source's leader epochs above those that the copy has.
async fn learn(task: &Task, history: &mut History, end: i64) -> Result<(), Trouble> {
    let source_end = match task.topic.is_copy() {
        true => Some(source_end(task).await?),
        false => None,
    };
    let learnt = task.links.source.epochs(&task.partition, history.known()).await;
    let (leader_epoch, entries) = learnt.map_err(|error| Trouble::of_cluster(Side::Source, &error))?;
    if leader_epoch < 0 {
        return Err(Trouble::Halt(Halt::no_epochs()));
    }
    tracing::debug!(partition = %task.partition, leader_epoch, ?entries, end, "leader epochs are learnt");
    history.learn(leader_epoch, entries);
    if let Some(source_end) = source_end {
        // A copy answers for the epoch that it shows as if that began at its end, though it may have others to come before it.
        history.forget_unproved(source_end);
    }
    Ok(())
}

/// When a partition whose copy was told something at `told` gives its next sign of life: at the last beat that is not too late.
fn sign_due(begun: Instant, told: Instant) -> Instant {
    let due = told + SIGN_OF_LIFE;
    let behind_beat = due.duration_since(begun).as_nanos().checked_rem(BEAT.as_nanos()).unwrap_or(0);
    due.checked_sub(Duration::from_nanos(u64::try_from(behind_beat).unwrap_or(0))).unwrap_or(due)
}

/// Where the source's present leader epoch ends, as it says.
async fn source_end(task: &Task) -> Result<i64, Trouble> {
    let of_source = |error| Trouble::of_cluster(Side::Source, &error);
    let leader_epoch =
        task.links.source.partition(&task.partition, false).await.map_err(of_source)?.leader_epoch;
    let ended = task.links.source.epoch_end(&task.partition, leader_epoch.max(0)).await.map_err(of_source)?;
    Ok(ended.end)
}

impl From<run::Bad> for Trouble {
    fn from(bad: run::Bad) -> Self {
        Self::Halt(match bad {
            run::Bad::Overlap { header, end } => Halt::overlaps(&header, end),
            run::Bad::Format(text) => Halt::failed(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_life_come_on_the_beat_and_never_late() {
        let begun = Instant::now();
        for told_ms in [0, 1, 249, 250, 251, 999, 1_000, 86_400_123] {
            let told = begun + Duration::from_millis(told_ms);
            let due = sign_due(begun, told);
            let since = due.duration_since(begun).as_millis();
            assert_eq!(since.checked_rem(BEAT.as_millis()), Some(0), "{told_ms}");
            let wait = due.duration_since(told);
            assert!(wait <= SIGN_OF_LIFE && wait + BEAT > SIGN_OF_LIFE, "{told_ms}: {wait:?}");
        }
    }
}
