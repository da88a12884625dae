//! A long poll over several partitions.
//!
//! It reads until there is enough, something is wrong, time is over, or the host shuts down. As in Kafka, a partition that
//! is not here does not end the wait of the others: a reader that asks for it again and again would never wait.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::protocol::StrBytes;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;
use verbatim_wire::error::ErrorCode;

use super::{Ask, Part, Ruled};
use crate::errors::ApiError;
use crate::partition::Reader;
use crate::room::Room;
use crate::shared::Shared;

/// How a reader names a topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TopicRef {
    /// Below Fetch v13.
    Name(StrBytes),
    /// From Fetch v13 on.
    Id(Uuid),
}

/// One partition that is asked for: where to read and what, or why not.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) topic: TopicRef,
    pub(crate) index: i32,
    pub(crate) ask: Ask,
    pub(crate) reader: Result<Arc<Reader>, ApiError>,
}

impl Wanted {
    /// No such topic or partition: there is nothing to read and nothing to wait for.
    pub(crate) fn is_absent(&self) -> bool {
        let absent = |code| matches!(code, ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId);
        self.reader.as_ref().is_err_and(|error| absent(error.code))
    }
}

/// What there is for each partition asked for, in the same order.
pub(crate) type Parts = Vec<Result<Part, ApiError>>;

/// When a Fetch is answered.
#[derive(Clone, Copy)]
pub(crate) struct Enough {
    /// Bytes of all records; the first batch is given whole, however large.
    pub(crate) max_bytes: usize,
    /// Fewer are waited for.
    pub(crate) min_bytes: usize,
    /// The end of waiting.
    pub(crate) until: Instant,
}

/// Reads until there is enough, something is wrong, time is over, or the host shuts down. The room is that of the records.
pub(crate) async fn poll(shared: &Shared, wanted: &Arc<[Wanted]>, enough: Enough) -> (Parts, Room) {
    let waiter = Arc::new(Notify::new());
    loop {
        // Before reading: a change in between keeps its permit.
        let watching = Watching::begin(wanted, &waiter);
        let seen = Seen::now(wanted, enough.min_bytes);
        let mut room = shared.rooms.take(enough.max_bytes);
        let parts = read_within(shared, wanted, enough.max_bytes, &mut room).await;
        // What there is no room for is not waited for.
        let is_enough = is_enough(wanted, &parts, enough.min_bytes.min(room.bytes().max(1)));
        room.shrink(bytes(&parts));
        if is_enough {
            return (parts, room);
        }
        let short = enough.min_bytes.saturating_sub(bytes(&parts));
        let over = async {
            tokio::select! {
                () = tokio::time::sleep_until(enough.until) => {}
                () = shared.stopping.cancelled() => {}
            }
        };
        tokio::select! {
            () = seen.is_outgrown(watching, short) => drop((parts, room)),
            () = over => return (parts, room),
        }
    }
}

/// The least time between two reads that both find too little.
const PAUSE: Duration = Duration::from_millis(10);

/// How large each partition was when it was read, so that what is there is not read again for every batch that comes.
/// Nothing is kept for a reader that takes whatever comes, as most do.
struct Seen(Vec<u64>);

impl Seen {
    fn now(wanted: &[Wanted], min_bytes: usize) -> Self {
        if min_bytes <= 1 {
            return Self(Vec::new());
        }
        let size = |one: &Wanted| match &one.reader {
            // What is there and may not be read yet counts as new: it becomes readable without growing.
            Ok(reader) if one.ask.bound(&reader.view()) == reader.view().end => reader.log.size(),
            _ => 0,
        };
        Self(wanted.iter().map(size).collect())
    }

    /// Waits until as many bytes have come as there was too little, or one partition has something else to tell.
    async fn is_outgrown(&self, watching: Watching<'_>, short: usize) {
        if short > 1 {
            tokio::time::sleep(PAUSE).await;
        }
        let short = u64::try_from(short).unwrap_or(u64::MAX);
        loop {
            watching.waiter.notified().await;
            if short <= 1 {
                return;
            }
            // Before looking, as above.
            watching.go_on();
            if self.growth(watching.wanted) >= short || watching.wanted.iter().any(tells) {
                return;
            }
        }
    }

    fn growth(&self, wanted: &[Wanted]) -> u64 {
        let grown = |(one, seen): (&Wanted, &u64)| {
            one.reader.as_ref().map_or(0, |reader| reader.log.size().saturating_sub(*seen))
        };
        wanted.iter().zip(&self.0).map(grown).fold(0, u64::saturating_add)
    }
}

/// Something is wrong, or histories part: that is told at once.
fn tells(one: &Wanted) -> bool {
    let Ok(reader) = &one.reader else { return false };
    match super::rule(reader, one.ask) {
        Ok(Ruled::Done(part)) => part.diverging.is_some(),
        Ok(Ruled::Read(_)) => false,
        Err(_) => true,
    }
}

/// A waiter on the list of every partition; off it when dropped, also when the client goes away.
struct Watching<'a> {
    wanted: &'a [Wanted],
    waiter: &'a Arc<Notify>,
}

impl<'a> Watching<'a> {
    fn begin(wanted: &'a [Wanted], waiter: &'a Arc<Notify>) -> Self {
        for reader in wanted.iter().filter_map(|one| one.reader.as_ref().ok()) {
            reader.watch(waiter);
        }
        Self { wanted, waiter }
    }

    /// Back on the lists: who was woken is on that one no more.
    fn go_on(&self) {
        for reader in self.wanted.iter().filter_map(|one| one.reader.as_ref().ok()) {
            reader.unwatch(self.waiter);
            reader.watch(self.waiter);
        }
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        for reader in self.wanted.iter().filter_map(|one| one.reader.as_ref().ok()) {
            reader.unwatch(self.waiter);
        }
    }
}

fn is_enough(wanted: &[Wanted], parts: &Parts, min_bytes: usize) -> bool {
    let told = |(wanted, part): (&Wanted, &Result<Part, ApiError>)| match part {
        Ok(part) => part.diverging.is_some(),
        Err(_) => !wanted.is_absent(),
    };
    bytes(parts) >= min_bytes || wanted.iter().all(Wanted::is_absent) || wanted.iter().zip(parts).any(told)
}

fn bytes(parts: &Parts) -> usize {
    parts.iter().flatten().map(|part| part.records.len()).sum()
}

/// Reads what there is room for. A first batch for which there is not enough is read when its turn comes.
async fn read_within(shared: &Shared, wanted: &Arc<[Wanted]>, max_bytes: usize, room: &mut Room) -> Parts {
    let max_bytes = max_bytes.min(room.bytes());
    let parts = read_all(wanted, max_bytes).await;
    if bytes(&parts) <= room.bytes() {
        return parts;
    }
    drop(parts);
    tokio::select! {
        () = shared.rooms.beyond(room) => {}
        () = shared.stopping.cancelled() => {}
    }
    read_all(wanted, max_bytes).await
}

async fn read_all(wanted: &Arc<[Wanted]>, max_bytes: usize) -> Parts {
    let ruled: Vec<_> = wanted
        .iter()
        .map(|one| one.reader.clone().and_then(|reader| super::rule(&reader, one.ask)))
        .collect();
    if !ruled.iter().any(|ruled| matches!(ruled, Ok(Ruled::Read(_)))) {
        return ruled.into_iter().map(|ruled| ruled.and_then(nothing_to_read)).collect();
    }
    let shared = Arc::clone(wanted);
    // The disk may be slow: it is read off the connections' threads.
    let reading = tokio::task::spawn_blocking(move || read_blocking(&shared, ruled, max_bytes));
    match reading.await {
        Ok(parts) => parts,
        Err(error) => {
            let error = ApiError::new(ErrorCode::UnknownServerError, error.to_string());
            wanted.iter().map(|_| Err(error.clone())).collect()
        }
    }
}

fn nothing_to_read(ruled: Ruled) -> Result<Part, ApiError> {
    match ruled {
        Ruled::Done(part) => Ok(part),
        Ruled::Read(_) => Err(ApiError::new(ErrorCode::UnknownServerError, "a read was left out")),
    }
}

fn read_blocking(wanted: &[Wanted], ruled: Vec<Result<Ruled, ApiError>>, max_bytes: usize) -> Parts {
    let (mut left, mut first) = (max_bytes, true);
    let mut parts = Vec::with_capacity(wanted.len());
    for (one, ruled) in wanted.iter().zip(ruled) {
        let part = match (ruled, &one.reader) {
            (Ok(Ruled::Done(part)), _) => Ok(part),
            (Ok(Ruled::Read(bound)), Ok(reader)) => {
                let ask = Ask { max_bytes: one.ask.max_bytes.min(left), ..one.ask };
                super::read(reader, ask, bound, first)
            }
            (Err(error), _) => Err(error),
            (_, Err(error)) => Err(error.clone()),
        };
        let bytes = part.as_ref().map_or(0, |part| part.records.len());
        left = left.saturating_sub(bytes);
        first &= bytes == 0;
        parts.push(part);
    }
    parts
}
