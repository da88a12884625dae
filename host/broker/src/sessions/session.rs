//! One session: its partitions in the order in which they are read, and what its reader was last told of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::errors::ApiError;
use crate::fetch::poll::{Parts, TopicRef};
use crate::fetch::{Ask, Part};

/// What nobody was told yet, or what is to be told again.
const UNTOLD: i64 = -1;
/// Bytes of a topic's name that count for as much as a partition does.
const NAME_BYTES: usize = 256;

/// A partition as a session names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) topic: TopicRef,
    pub(crate) index: i32,
}

/// One partition of a session.
pub(crate) struct Seen {
    pub(crate) key: Key,
    /// As it was last asked for; version and isolation level are each request's own.
    pub(crate) ask: Ask,
    /// The topic's name, once its id was known here.
    pub(crate) name: Option<Arc<str>>,
    high_watermark: i64,
    start: i64,
}

/// A session.
pub(crate) struct Session {
    epoch: i32,
    by_id: bool,
    size: usize,
    /// By place; the first is read first.
    seen: BTreeMap<u64, Seen>,
    places: HashMap<Key, u64>,
    next_place: u64,
}

impl Session {
    /// Without partitions, at epoch 0.
    pub(crate) fn new(by_id: bool) -> Self {
        Self { epoch: 0, by_id, size: 0, seen: BTreeMap::new(), places: HashMap::new(), next_place: 0 }
    }

    /// What a partition counts for: 1, and more if its topic's name is longer than any topic's can be.
    pub(crate) fn size_of(topic: &TopicRef) -> usize {
        match topic {
            TopicRef::Name(name) => 1 + name.len() / NAME_BYTES,
            TopicRef::Id(_) => 1,
        }
    }

    /// The epoch that the next request must name.
    pub(crate) fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Topics are named by id.
    pub(crate) fn by_id(&self) -> bool {
        self.by_id
    }

    /// The number of partitions, with [`Self::size_of`] each.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// To the next epoch, which is 1 after the last one and never 0 again.
    pub(crate) fn advance(&mut self) -> i32 {
        self.epoch = self.epoch.checked_add(1).unwrap_or(1);
        self.epoch
    }

    /// Its partitions in the order in which they are read.
    pub(crate) fn seen_mut(&mut self) -> impl Iterator<Item = &mut Seen> {
        self.seen.values_mut()
    }

    /// Adds a partition that its reader was told this of. The second of the same key is left out.
    pub(crate) fn add(&mut self, key: Key, ask: Ask, name: Option<Arc<str>>, told: &Result<Part, ApiError>) {
        if !self.places.contains_key(&key) {
            let (high_watermark, start) = positions(told);
            self.append(Seen { key, ask, name, high_watermark, start });
        }
    }

    /// What is new goes to the end and what is known is asked for otherwise; then `forgotten` is left out.
    pub(super) fn change(&mut self, asked: Vec<(Key, Ask)>, forgotten: Vec<Key>) {
        for (key, ask) in asked {
            let place = self.places.get(&key);
            match place.and_then(|place| self.seen.get_mut(place)) {
                Some(seen) => seen.ask = ask,
                None => {
                    self.append(Seen { key, ask, name: None, high_watermark: UNTOLD, start: UNTOLD });
                }
            }
        }
        for key in forgotten {
            if let Some(place) = self.places.remove(&key) {
                self.seen.remove(&place);
                self.size = self.size.saturating_sub(Self::size_of(&key.topic));
            }
        }
    }

    /// Which of these, given in the order of the partitions, the reader is to be told; they count as told. Partitions with
    /// records go to the end, so that the others have their turn where only few bytes are asked for.
    pub(super) fn tell(&mut self, parts: &Parts) -> Vec<bool> {
        let mut given = Vec::new();
        let chosen = self.seen.iter_mut().zip(parts).map(|((place, seen), part)| {
            if part.as_ref().is_ok_and(|part| !part.records.is_empty()) {
                given.push(*place);
            }
            seen.tell(part)
        });
        let chosen = chosen.collect();
        for place in given {
            if let Some(seen) = self.seen.remove(&place) {
                self.put(seen);
            }
        }
        chosen
    }

    fn append(&mut self, seen: Seen) {
        self.size = self.size.saturating_add(Self::size_of(&seen.key.topic));
        self.put(seen);
    }

    fn put(&mut self, seen: Seen) {
        self.places.insert(seen.key.clone(), self.next_place);
        self.seen.insert(self.next_place, seen);
        self.next_place = self.next_place.saturating_add(1);
    }
}

impl Seen {
    /// Whether there is something new; it counts as told. What follows an error is always new.
    fn tell(&mut self, part: &Result<Part, ApiError>) -> bool {
        let before = (self.high_watermark, self.start);
        (self.high_watermark, self.start) = positions(part);
        match part {
            Ok(part) => {
                !part.records.is_empty()
                    || part.diverging.is_some()
                    || before != (self.high_watermark, self.start)
            }
            Err(_) => true,
        }
    }
}

fn positions(part: &Result<Part, ApiError>) -> (i64, i64) {
    part.as_ref().map_or((UNTOLD, UNTOLD), |part| (part.view.high_watermark, part.view.start))
}
