//! Fetch sessions (KIP-227): a reader names its partitions once and afterwards only what changes; it is told only of those
//! that have something new.
//!
//! - Bounded twice: by the number of sessions and by the partitions in all of them. Who finds no room is served without a
//!   session. A session that was not used for two minutes makes room for any other; one that is two minutes old for a
//!   larger one, as in Kafka, but only for its place: partitions of others are never pushed out by a request's size.
//! - An id is a random number of 31 bits, from the system's own source: it names the session and is all that it takes to
//!   use it, as in Kafka. Sessions end with the host.
//! - Locks: a session's own for a turn's bookkeeping, then the cache's for its size. None is held while data is waited for.

mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;
use verbatim_wire::error::ErrorCode;

pub(crate) use session::{Key, Session};

use crate::fetch::Ask;
use crate::fetch::poll::Parts;

/// How long a session is safe from others (Kafka's value, which has no setting).
const EVICTION_AGE: Duration = Duration::from_secs(120);

/// All sessions.
pub(crate) struct Sessions {
    slots_max: usize,
    partitions_max: usize,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    slots: HashMap<i32, Slot>,
    /// The sum of the sizes.
    partitions: usize,
}

struct Slot {
    session: Arc<Mutex<Session>>,
    size: usize,
    created: Instant,
    used: Instant,
}

/// The changes that a request of a session asks for.
pub(crate) struct Changes {
    pub(crate) session_id: i32,
    pub(crate) epoch: i32,
    /// Topics are named by id.
    pub(crate) by_id: bool,
    /// To be added, or to be read elsewhere from now on.
    pub(crate) asked: Vec<(Key, Ask)>,
    /// To be left out from now on.
    pub(crate) forgotten: Vec<Key>,
}

/// One request of a session, until it is answered.
pub(crate) struct Turn {
    session: Arc<Mutex<Session>>,
    id: i32,
    /// The session's epoch unless another request came meanwhile.
    epoch: i32,
}

impl Sessions {
    pub(crate) fn new(slots_max: usize, partitions_max: usize) -> Self {
        Self { slots_max, partitions_max, cache: Mutex::default() }
    }

    /// Keeps a new session of this size; its id, or 0 if there is no room.
    pub(crate) fn open(&self, size: usize, now: Instant, session: impl FnOnce() -> Session) -> i32 {
        // Readers without a session ask anew each time: nothing is built for them in vain.
        if !self.cache().has_room(self, size, now) {
            return 0;
        }
        let session = session();
        let mut cache = self.cache();
        if !cache.make_room(self, session.size(), now) {
            return 0;
        }
        cache.insert(session, now)
    }

    /// Ends a session, if there is one of this id.
    pub(crate) fn close(&self, id: i32) {
        if id != 0 {
            self.cache().remove(id);
        }
    }

    /// Begins the next turn of a session: does the changes, and hands over what `each` makes of its partitions. Nothing if
    /// no partition is left: the session has ended.
    ///
    /// # Errors
    /// 70, 71 or 106; 70 as well if there is no room for what is added, which ends the session.
    pub(crate) fn next<T>(
        &self,
        changes: Changes,
        now: Instant,
        each: impl FnOnce(&mut Session) -> T,
    ) -> Result<Option<(Turn, T)>, ErrorCode> {
        let id = changes.session_id;
        let found = self.cache().slots.get(&id).map(|slot| Arc::clone(&slot.session));
        let shared = found.ok_or(ErrorCode::FetchSessionIdNotFound)?;
        let mut session = lock(&shared);
        if session.epoch() != changes.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.by_id() != changes.by_id {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        session.change(changes.asked, changes.forgotten);
        if session.is_empty() {
            self.cache().remove(id);
            return Ok(None);
        }
        if !self.cache().keep(self, id, &shared, session.size(), now) {
            return Err(ErrorCode::FetchSessionIdNotFound);
        }
        let epoch = session.advance();
        let made = each(&mut session);
        drop(session);
        Ok(Some((Turn { session: shared, id, epoch }, made)))
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        lock(&self.cache)
    }
}

impl Turn {
    /// The session's id.
    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    /// Ends the turn: which of the partitions have something new; the session takes them as told.
    ///
    /// # Errors
    /// 71: another request of the session came meanwhile.
    pub(crate) fn choose(self, parts: &Parts) -> Result<Vec<bool>, ErrorCode> {
        let mut session = lock(&self.session);
        if session.epoch() != self.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        Ok(session.tell(parts))
    }
}

impl Cache {
    /// Whether [`Self::make_room`] would find room.
    fn has_room(&self, bounds: &Sessions, size: usize, now: Instant) -> bool {
        let stale = || self.slots.values().filter(|slot| slot.is_stale(now));
        let freed: usize = stale().map(|slot| slot.size).sum();
        let held = self.partitions.saturating_sub(freed);
        held.saturating_add(size) <= bounds.partitions_max
            && bounds.slots_max > 0
            && (self.slots.len() < bounds.slots_max
                || stale().next().is_some()
                || self.smaller(size, now).is_some())
    }

    fn make_room(&mut self, bounds: &Sessions, size: usize, now: Instant) -> bool {
        if !self.has_room(bounds, size, now) {
            return false;
        }
        while self.partitions.saturating_add(size) > bounds.partitions_max
            || self.slots.len() >= bounds.slots_max
        {
            let Some(id) = self.stale(now).or_else(|| self.smaller(size, now)) else { return false };
            self.remove(id);
        }
        true
    }

    /// The session that was not used for longest, if that is long enough.
    fn stale(&self, now: Instant) -> Option<i32> {
        let stale = self.slots.iter().filter(|(_, slot)| slot.is_stale(now));
        stale.min_by_key(|(_, slot)| slot.used).map(|(id, _)| *id)
    }

    /// The smallest session that is old enough, if it is smaller than this.
    fn smaller(&self, size: usize, now: Instant) -> Option<i32> {
        let smaller = |slot: &Slot| slot.size < size && now.duration_since(slot.created) > EVICTION_AGE;
        let smallest = self.slots.iter().filter(|(_, slot)| smaller(slot)).min_by_key(|(_, slot)| slot.size);
        smallest.map(|(id, _)| *id)
    }

    fn insert(&mut self, mut session: Session, now: Instant) -> i32 {
        let id = loop {
            let id = random_id();
            if id != 0 && !self.slots.contains_key(&id) {
                break id;
            }
        };
        let size = session.size();
        session.advance();
        self.partitions = self.partitions.saturating_add(size);
        let session = Arc::new(Mutex::new(session));
        self.slots.insert(id, Slot { session, size, created: now, used: now });
        id
    }

    /// The session is in use and has this size now; false if it is not there any more, or has grown too large.
    fn keep(
        &mut self,
        bounds: &Sessions,
        id: i32,
        session: &Arc<Mutex<Session>>,
        size: usize,
        now: Instant,
    ) -> bool {
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| Arc::ptr_eq(&slot.session, session)) else {
            return false;
        };
        let grown = size > slot.size;
        self.partitions = self.partitions.saturating_sub(slot.size).saturating_add(size);
        (slot.size, slot.used) = (size, now);
        while grown && self.partitions > bounds.partitions_max {
            let Some(stale) = self.stale(now) else {
                self.remove(id);
                return false;
            };
            self.remove(stale);
        }
        true
    }

    fn remove(&mut self, id: i32) {
        if let Some(slot) = self.slots.remove(&id) {
            self.partitions = self.partitions.saturating_sub(slot.size);
        }
    }
}

impl Slot {
    fn is_stale(&self, now: Instant) -> bool {
        now.duration_since(self.used) > EVICTION_AGE
    }
}

/// 0 to 2147483647.
fn random_id() -> i32 {
    let low = Uuid::new_v4().as_u64_pair().1 & 0x7fff_ffff;
    i32::try_from(low).unwrap_or(0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
