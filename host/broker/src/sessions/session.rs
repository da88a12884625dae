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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use bytes::Bytes;
    use kafka_protocol::protocol::StrBytes;
    use verbatim_contract::{EpochAnswer, EpochHistory};
    use verbatim_log::View;
    use verbatim_wire::error::ErrorCode;

    use super::*;

    const ASK: Ask =
        Ask { version: 12, current_epoch: -1, offset: 0, last_epoch: -1, max_bytes: 1, committed: false };

    fn key(index: i32) -> Key {
        Key { topic: TopicRef::Name(StrBytes::from_static_str("t")), index }
    }

    fn part(start: i64, high_watermark: i64, records: &'static [u8]) -> Result<Part, ApiError> {
        let view = View {
            start,
            end: high_watermark,
            high_watermark,
            stable_offset: high_watermark,
            shown_epoch: 0,
            exact: false,
            epochs: Arc::new(EpochHistory::default()),
            source: None,
            offline: None,
        };
        let records = Bytes::from_static(records);
        Ok(Part { view: Arc::new(view), records, aborted: None, diverging: None })
    }

    fn session(partitions: i32) -> Session {
        let mut session = Session::new(false);
        (0..partitions).for_each(|index| session.add(key(index), ASK, None, &part(0, 5, b"")));
        session
    }

    fn order(session: &mut Session) -> Vec<i32> {
        session.seen_mut().map(|seen| seen.key.index).collect()
    }

    #[test]
    fn only_what_is_new_is_told() {
        let mut diverging = part(0, 6, b"");
        diverging.as_mut().unwrap().diverging = Some(EpochAnswer::UNDEFINED);
        let error = Err(ApiError::new(ErrorCode::OffsetOutOfRange, "no"));
        let mut session = session(1);
        for (name, given, told) in [
            ("the same", part(0, 5, b""), false),
            ("records", part(0, 5, b"batch"), true),
            ("the same again", part(0, 5, b""), false),
            ("a higher high watermark", part(0, 6, b""), true),
            ("the same high watermark", part(0, 6, b""), false),
            ("diverging", diverging.clone(), true),
            ("diverging still", diverging, true),
            ("not diverging any more", part(0, 6, b""), false),
            ("a higher start", part(2, 6, b""), true),
            ("the same start", part(2, 6, b""), false),
            ("an error", error.clone(), true),
            ("an error still", error, true),
            ("no error any more", part(2, 6, b""), true),
            ("nothing new", part(2, 6, b""), false),
        ] {
            assert_eq!(session.tell(&vec![given]), [told], "{name}");
        }
    }

    #[test]
    fn who_got_records_is_read_last() {
        let mut session = session(4);
        let nothing = || part(0, 5, b"");
        session.tell(&vec![part(0, 5, b"x"), nothing(), part(0, 5, b"y"), nothing()]);
        assert_eq!(order(&mut session), [1, 3, 0, 2]);
        session.tell(&vec![part(0, 5, b"x"), nothing(), nothing(), nothing()]);
        assert_eq!(order(&mut session), [3, 0, 2, 1]);
    }

    #[test]
    fn changes_add_at_the_end_read_elsewhere_and_leave_out() {
        let mut session = session(3);
        let elsewhere = Ask { offset: 9, ..ASK };
        session.change(vec![(key(1), elsewhere), (key(7), ASK)], vec![key(0), key(99)]);
        assert_eq!(order(&mut session), [1, 2, 7]);
        assert_eq!(session.seen_mut().map(|seen| seen.ask.offset).collect::<Vec<_>>(), [9, 0, 0]);
        assert_eq!(session.size(), 3);
        // What was left out and comes again was never told, whatever it was told before.
        session.change(vec![(key(0), ASK)], Vec::new());
        let same = || part(0, 5, b"");
        assert_eq!(session.tell(&vec![same(), same(), same(), same()]), [false, false, true, true]);
        // In one request what is added and forgotten is forgotten.
        session.change(vec![(key(3), ASK)], vec![key(3)]);
        assert_eq!(order(&mut session), [1, 2, 7, 0]);
        session.change(Vec::new(), vec![key(0), key(1), key(2), key(7)]);
        assert!(session.is_empty());
        assert_eq!(session.size(), 0);
    }

    #[test]
    fn a_partition_that_is_named_twice_is_there_once() {
        let mut session = session(1);
        session.add(key(0), Ask { offset: 9, ..ASK }, None, &part(0, 5, b""));
        assert_eq!(session.size(), 1);
        session.change(vec![(key(0), ASK), (key(0), Ask { offset: 8, ..ASK })], Vec::new());
        assert_eq!(session.seen_mut().map(|seen| seen.ask.offset).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn epochs_begin_at_one_and_go_round_to_one() {
        let mut session = session(1);
        assert_eq!((session.epoch(), session.advance(), session.advance()), (0, 1, 2));
        session.epoch = i32::MAX - 1;
        assert_eq!((session.advance(), session.advance()), (i32::MAX, 1));
    }

    #[test]
    fn a_name_that_is_no_topics_counts_for_the_memory_that_it_takes() {
        let mut session = Session::new(false);
        let name = |len| TopicRef::Name(StrBytes::from_string("x".repeat(len)));
        for (len, size) in [(0, 1), (249, 1), (32_767, 128)] {
            let before = session.size();
            let key = Key { topic: name(len), index: 0 };
            session.add(key.clone(), ASK, None, &part(0, 5, b""));
            assert_eq!(session.size() - before, size, "{len} bytes");
            session.change(Vec::new(), vec![key]);
            assert_eq!(session.size(), before);
        }
    }
}
