#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::errors::ApiError;
use crate::fetch::poll::TopicRef;

const SECOND: Duration = Duration::from_secs(1);

fn key(index: i32) -> Key {
    Key { topic: TopicRef::Id(Uuid::from_u128(1)), index }
}

fn ask() -> Ask {
    Ask { version: 13, current_epoch: -1, offset: 0, last_epoch: -1, max_bytes: 1, committed: false }
}

fn session(partitions: usize) -> Session {
    let mut session = Session::new(true);
    let untold = Err(ApiError::storage("untold"));
    let partitions = i32::try_from(partitions).unwrap();
    (0..partitions).for_each(|index| session.add(key(index), ask(), None, &untold));
    session
}

fn open(sessions: &Sessions, size: usize, now: Instant) -> i32 {
    sessions.open(size, now, || session(size))
}

fn changes(session_id: i32, epoch: i32) -> Changes {
    Changes { session_id, epoch, by_id: true, asked: Vec::new(), forgotten: Vec::new() }
}

/// The answer's error, or 0; the turn is ended.
fn turn(sessions: &Sessions, changes: Changes, now: Instant) -> i16 {
    sessions.next(changes, now, |_| ()).map_or_else(ErrorCode::number, |_| 0)
}

fn known(sessions: &Sessions, id: i32) -> bool {
    sessions.cache().slots.contains_key(&id)
}

/// What the cache counts is what it holds, and no more than it may.
fn check(sessions: &Sessions) {
    let cache = sessions.cache();
    let sizes: usize = cache.slots.values().map(|slot| slot.size).sum();
    let held: usize = cache.slots.values().map(|slot| lock(&slot.session).size()).sum();
    assert_eq!((cache.partitions, sizes), (held, held));
    assert!(cache.slots.len() <= sessions.slots_max && cache.partitions <= sessions.partitions_max);
}

#[test]
fn a_session_is_named_by_its_id_and_its_next_epoch() {
    let (sessions, now) = (Sessions::new(10, 100), Instant::now());
    let id = open(&sessions, 3, now);
    assert!(id > 0);
    for (changes, code) in [
        (changes(id, 2), 71),
        (changes(id, 1), 0),
        (changes(id, 1), 71),
        (changes(id, -7), 71),
        (Changes { by_id: false, ..changes(id, 2) }, 106),
        (changes(id, 2), 0),
        (changes(id ^ 1, 3), 70),
        (changes(0, 3), 70),
        (Changes { asked: vec![(key(9), ask())], forgotten: vec![key(0)], ..changes(id, 3) }, 0),
        (Changes { forgotten: vec![key(1), key(2), key(9)], ..changes(id, 4) }, 0),
        (changes(id, 5), 70),
    ] {
        let (epoch, by_id) = (changes.epoch, changes.by_id);
        assert_eq!(turn(&sessions, changes, now), code, "epoch {epoch}, by id {by_id}");
        check(&sessions);
    }
    let id = open(&sessions, 1, now);
    sessions.close(id);
    assert_eq!(turn(&sessions, changes(id, 1), now), 70);
    check(&sessions);
}

#[test]
fn a_turn_that_another_one_overtook_is_refused() {
    let (sessions, now) = (Sessions::new(10, 100), Instant::now());
    let id = open(&sessions, 1, now);
    let (slow, ()) = sessions.next(changes(id, 1), now, |_| ()).unwrap().unwrap();
    let (fast, ()) = sessions.next(changes(id, 2), now, |_| ()).unwrap().unwrap();
    let parts = || vec![Err(ApiError::storage("no"))];
    assert_eq!(slow.choose(&parts()), Err(ErrorCode::InvalidFetchSessionEpoch));
    assert_eq!(fast.choose(&parts()), Ok(vec![true]));
}

#[test]
fn who_finds_no_place_has_no_session() {
    let now = Instant::now();
    assert_eq!(open(&Sessions::new(0, 100), 1, now), 0);
    let sessions = Sessions::new(2, 100);
    assert!(open(&sessions, 1, now) > 0 && open(&sessions, 1, now) > 0);
    assert_eq!(open(&sessions, 90, now), 0, "both are young");
    let never = || -> Session { unreachable!("built in vain") };
    assert_eq!(sessions.open(90, now, never), 0);
    check(&sessions);
}

#[test]
fn a_session_that_is_not_used_makes_room() {
    let (sessions, start) = (Sessions::new(2, 100), Instant::now());
    let old = open(&sessions, 50, start);
    let used = open(&sessions, 50, start + SECOND);
    let later = start + EVICTION_AGE + SECOND;
    assert_eq!(turn(&sessions, changes(used, 1), later), 0);
    let new = open(&sessions, 1, later);
    assert!(new > 0 && !known(&sessions, old) && known(&sessions, used));
    check(&sessions);
}

#[test]
fn an_old_session_makes_place_for_a_larger_one_only() {
    let (sessions, start) = (Sessions::new(2, 1_000), Instant::now());
    let ids = [open(&sessions, 5, start), open(&sessions, 7, start)];
    let later = start + EVICTION_AGE + SECOND;
    for id in ids {
        assert_eq!(turn(&sessions, changes(id, 1), later), 0);
    }
    assert_eq!(open(&sessions, 5, later), 0, "not larger than the smallest");
    let new = open(&sessions, 6, later);
    assert!(new > 0 && !known(&sessions, ids[0]) && known(&sessions, ids[1]));
    assert_eq!(open(&sessions, 7, later), 0, "the new one is safe, the other as large");
    check(&sessions);
}

#[test]
fn partitions_are_bounded_and_never_pushed_out_by_size() {
    let (sessions, start) = (Sessions::new(10, 100), Instant::now());
    let ids = [open(&sessions, 40, start), open(&sessions, 40, start)];
    assert_eq!(open(&sessions, 21, start), 0);
    let later = start + EVICTION_AGE + SECOND;
    assert_eq!(turn(&sessions, changes(ids[0], 1), later), 0);
    assert_eq!(open(&sessions, 61, later), 0, "one is used, and what the other leaves is too little");
    assert!(ids.iter().all(|id| known(&sessions, *id)), "nobody went in vain");
    assert!(open(&sessions, 60, later) > 0);
    assert_eq!(ids.map(|id| known(&sessions, id)), [true, false]);
    check(&sessions);
}

#[test]
fn a_session_that_grows_too_large_ends() {
    let (sessions, now) = (Sessions::new(10, 10), Instant::now());
    let (id, other) = (open(&sessions, 5, now), open(&sessions, 4, now));
    let add = |from: i32, to: i32| (from..to).map(|index| (key(index), ask())).collect::<Vec<_>>();
    assert_eq!(turn(&sessions, Changes { asked: add(5, 6), ..changes(id, 1) }, now), 0);
    check(&sessions);
    assert_eq!(turn(&sessions, Changes { asked: add(6, 7), ..changes(id, 2) }, now), 70);
    assert!(!known(&sessions, id) && known(&sessions, other));
    check(&sessions);
    // Unless another one is not used.
    let later = now + EVICTION_AGE + SECOND;
    let id = open(&sessions, 5, now + SECOND);
    assert_eq!(turn(&sessions, Changes { asked: add(5, 9), ..changes(id, 1) }, later), 0);
    assert!(known(&sessions, id) && !known(&sessions, other));
    check(&sessions);
}

proptest! {
    #[test]
    fn the_bounds_hold_whatever_readers_do(
        steps in prop::collection::vec((0..5_u8, 0..40_usize, 0..8_usize, 0..200_u64), 1..200),
    ) {
        let sessions = Sessions::new(4, 60);
        let (mut now, mut ids) = (Instant::now(), Vec::new());
        for (kind, size, which, seconds) in steps {
            let (id, epoch) = ids.get(which).copied().unwrap_or((77, 1));
            match kind {
                0 => ids.insert(0, (open(&sessions, size, now), 1)),
                1 => sessions.close(id),
                2 => now += SECOND * u32::try_from(seconds).unwrap(),
                _ => {
                    let from = i32::try_from(size).unwrap();
                    let asked = (from..from + 20).map(|index| (key(index), ask()));
                    let asked = if kind == 3 { asked.collect() } else { Vec::new() };
                    let forgotten = (0..from).map(key).collect();
                    if turn(&sessions, Changes { asked, forgotten, ..changes(id, epoch) }, now) == 0
                        && let Some(known) = ids.get_mut(which)
                    {
                        known.1 += 1;
                    }
                }
            }
            check(&sessions);
        }
    }
}
