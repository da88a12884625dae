//! Who is let in: so many connections in all, so many from one address.
//!
//! When there are too many, one that has not sent a request yet gives way to the newcomer, the oldest first: clients
//! send theirs at once, so those who only hold a place lose it first.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Why a connection is not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("as many connections as allowed are open, connections_max=`{0}`")]
    All(usize),
    #[error("as many connections from this address as allowed are open, connections_per_ip_max=`{0}`")]
    FromAddress(usize),
}

/// Counts who is inside.
#[derive(Debug)]
pub(super) struct Doors {
    all_max: usize,
    per_ip_max: usize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    all: usize,
    by_ip: HashMap<IpAddr, usize>,
    /// Those that have not sent a request yet, in the order they came.
    silent: BTreeMap<u64, Arc<Place>>,
    next: u64,
}

#[derive(Debug)]
struct Place {
    ip: IpAddr,
    number: u64,
    lost: AtomicBool,
    told: Notify,
}

/// A connection's place; given up when dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    doors: Arc<Doors>,
    place: Arc<Place>,
}

impl Doors {
    pub(super) fn new(all_max: usize, per_ip_max: usize) -> Self {
        Self { all_max, per_ip_max, inside: Mutex::default() }
    }

    /// Lets one in, if need be in the place of one that was silent.
    pub(super) fn enter(self: &Arc<Self>, ip: IpAddr) -> Result<Ticket, Refused> {
        // An IPv4 peer is the same one on a socket for both families.
        let ip = ip.to_canonical();
        let mut inside = self.inside();
        if inside.by_ip.get(&ip).is_some_and(|count| *count >= self.per_ip_max) {
            inside.make_way(|place| place.ip == ip).ok_or(Refused::FromAddress(self.per_ip_max))?;
        }
        if inside.all >= self.all_max {
            inside.make_way(|_| true).ok_or(Refused::All(self.all_max))?;
        }
        let place =
            Arc::new(Place { ip, number: inside.next, lost: AtomicBool::new(false), told: Notify::new() });
        inside.next = inside.next.wrapping_add(1);
        inside.all = inside.all.saturating_add(1);
        let count = inside.by_ip.entry(ip).or_default();
        *count = count.saturating_add(1);
        inside.silent.insert(place.number, Arc::clone(&place));
        drop(inside);
        Ok(Ticket { doors: Arc::clone(self), place })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    /// Takes the place of the oldest silent connection of which this is true.
    fn make_way(&mut self, wanted: impl Fn(&Place) -> bool) -> Option<()> {
        let place = Arc::clone(self.silent.values().find(|place| wanted(place))?);
        self.leave(&place);
        place.told.notify_one();
        Some(())
    }

    fn leave(&mut self, place: &Place) {
        if place.lost.swap(true, Ordering::Relaxed) {
            return;
        }
        self.silent.remove(&place.number);
        self.all = self.all.saturating_sub(1);
        if let Some(count) = self.by_ip.get_mut(&place.ip) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_ip.remove(&place.ip);
            }
        }
    }
}

impl Ticket {
    /// The connection has sent a request: it need not give way any more.
    pub(super) fn spoke(&self) {
        self.doors.inside().silent.remove(&self.place.number);
    }

    /// Completes when the connection has lost its place.
    pub(super) async fn lost(&self) {
        self.place.told.notified().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.doors.inside().leave(&self.place);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[tokio::test]
    async fn the_oldest_silent_one_gives_way_and_who_spoke_does_not() {
        let doors = Arc::new(Doors::new(3, 9));
        let [spoken, old, young] = [1, 2, 3].map(|last| doors.enter(ip(last)).unwrap());
        spoken.spoke();
        let new = doors.enter(ip(4)).unwrap();
        old.lost().await;
        drop(old);
        assert_eq!(doors.inside().all, 3, "a place is given up once");
        young.spoke();
        new.spoke();
        assert_eq!(doors.enter(ip(5)).unwrap_err(), Refused::All(3));
        drop(young);
        assert!(doors.enter(ip(5)).is_ok());
    }

    #[test]
    fn an_address_makes_way_for_itself_alone_and_leaves_nothing_behind() {
        let doors = Arc::new(Doors::new(9, 2));
        let others = [1, 1].map(|last| doors.enter(ip(last)).unwrap());
        for ticket in &others {
            ticket.spoke();
        }
        let silent = doors.enter(ip(2)).unwrap();
        assert_eq!(doors.enter(ip(1)).unwrap_err(), Refused::FromAddress(2));
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert_eq!(doors.enter(mapped).unwrap_err(), Refused::FromAddress(2));
        drop((others, silent));
        let inside = doors.inside();
        assert_eq!((inside.all, inside.by_ip.len(), inside.silent.len()), (0, 0, 0));
    }
}
