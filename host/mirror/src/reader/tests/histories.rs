//! A reader of a log that is truncated again and again: what it decides against what truly became of the records it read.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::model::{Model, Stored};
use crate::reader::reset::{Bounds, Fault, Nearest, Remedy, nearest, out_of_range};
use crate::reader::trail::{Found, Search, Trail, Truncation};
use crate::reader::{Position, Reset};

#[derive(Debug, Clone)]
enum Op {
    Append(u8),
    Replicate(usize, u8),
    Elect(usize, u8),
    Delete(u8),
    Read(u8),
    /// The reader ends, and another goes on from its stored position.
    Restart,
    Nearest,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (1_u8..8).prop_map(Op::Append),
        4 => (0_usize..3, 0_u8..12).prop_map(|(to, count)| Op::Replicate(to, count)),
        3 => (0_usize..3, 0_u8..2).prop_map(|(leader, more)| Op::Elect(leader, more)),
        1 => (0_u8..=255).prop_map(Op::Delete),
        5 => (1_u8..9).prop_map(Op::Read),
        1 => Just(Op::Restart),
        1 => Just(Op::Nearest),
    ];
    proptest::collection::vec(op, 1..60)
}

/// A reader with the policy closest, and a memory of what it read.
struct Modelled {
    trail: Trail,
    read: BTreeMap<i64, Stored>,
    /// The first offset that the trail itself has read; what was read before is known by the position's epoch alone.
    remembers_from: i64,
    /// From here on it has read all there is: it has not jumped, and not gone back further than it remembers.
    whole_from: i64,
}

impl Modelled {
    fn new() -> Self {
        let trail = Trail::unknown(0);
        Self { trail, read: BTreeMap::new(), remembers_from: 0, whole_from: 0 }
    }

    fn search(&self, model: &Model) -> Found {
        let Some(mut search) = Search::new(&self.trail) else { return Found::Agreed };
        for _ in 0..100 {
            if let Some(found) = search.answer(model.epoch_end(search.question())) {
                return found;
            }
        }
        panic!("no end of questions")
    }

    /// Those read that the leader's log, from its start on, has no longer.
    fn lost(&self, model: &Model) -> Vec<i64> {
        let leader = model.leader();
        let kept = |offset: &i64| *offset < leader.start || leader.at(*offset) == Some(self.read[offset]);
        self.read.keys().copied().filter(|offset| !kept(offset)).collect()
    }

    fn read(&mut self, model: &Model, count: u8) -> Result<(), TestCaseError> {
        let found = self.search(model);
        self.check(model, found)?;
        match found {
            Found::Agreed => {}
            Found::AgreedAs(at) => {
                prop_assert_eq!(at.end, self.trail.position().offset);
                self.trail.cut(at);
            }
            Found::Truncated(truncation) => self.remedy(model, Fault::Truncated(truncation)),
        }
        prop_assert_eq!(self.search(model), Found::Agreed, "after a reset: {:?}", &self.trail);
        let leader = model.leader();
        let log = Bounds { start: leader.start, end: leader.end };
        if let Some(fault) = out_of_range(self.trail.position().offset, log) {
            prop_assert_eq!(fault, Fault::BelowStart(log), "an end that was passed is a truncation");
            self.remedy(model, fault);
        }
        // A leader says nothing of what it has deleted: that is agreed to unseen.
        self.read.retain(|offset, _| *offset >= leader.start);
        self.remembers_from = self.remembers_from.max(leader.start);
        self.whole_from = self.whole_from.max(leader.start);
        let from = self.trail.position().offset;
        if let Some((epoch, records)) = leader.batch(from, i64::from(count)) {
            self.trail.read(from, from + i64::try_from(records.len()).expect("few"), epoch);
            self.read.extend(records);
        }
        Ok(())
    }

    /// Compares what was found with what is true.
    fn check(&self, model: &Model, found: Found) -> Result<(), TestCaseError> {
        let (lost, position) = (self.lost(model), self.trail.position());
        let Found::Truncated(truncation) = found else {
            prop_assert!(lost.is_empty(), "lost {lost:?}, {:?}", &self.trail);
            return Ok(());
        };
        let Some(first) = truncation.first else {
            prop_assert!(self.remembers_from > 0, "all that was read is remembered");
            let last = position.offset - 1;
            let of_epoch =
                self.read.get(&last).is_some_and(|(epoch, _)| Some(*epoch) == position.leader_epoch);
            prop_assert!(!of_epoch || last < model.leader().start || lost.contains(&last));
            return Ok(());
        };
        prop_assert!(first.end < position.offset);
        let behind = self.read.range(first.end.max(model.leader().start)..).map(|(offset, _)| *offset);
        let behind: Vec<i64> = behind.filter(|offset| *offset >= self.remembers_from).collect();
        prop_assert!(behind.iter().all(|offset| lost.contains(offset)), "{first:?}: {lost:?} of {behind:?}");
        if first.end >= self.remembers_from {
            prop_assert!(lost.iter().all(|offset| *offset >= first.end), "{first:?} is too late: {lost:?}");
        }
        Ok(())
    }

    fn remedy(&mut self, model: &Model, fault: Fault) {
        let leader = model.leader();
        let start = Position::new(leader.start, leader.epoch_at_start());
        match Reset::Closest.remedy(fault) {
            Remedy::Fail => panic!("closest never fails"),
            Remedy::Start => self.trail = Trail::begins_at(start),
            Remedy::End => self.trail = Trail::begins_at(Position::new(leader.end, Some(model.epoch()))),
            Remedy::GoBack(at) => self.trail.cut(at),
            Remedy::GoOn(at) => self.trail = Trail::begins_at(Position::new(at.end, Some(at.epoch))),
        }
        let offset = self.trail.position().offset;
        match fault {
            Fault::Truncated(Truncation { first: Some(first), .. }) if first.end >= self.remembers_from => {
                self.read.retain(|at, _| *at < offset);
            }
            _ => {
                self.read.clear();
                (self.remembers_from, self.whole_from) = (offset, offset);
            }
        }
    }

    fn restart(&mut self) {
        let position = self.trail.position();
        if !self.read.is_empty() && position.leader_epoch.is_some() {
            self.trail = Trail::read_before(position);
            self.remembers_from = position.offset;
        }
    }
}

/// What a restarted reader finds, by the answer to its only question: what is said of a stored position.
fn stored_position(model: &Model, position: Position) -> Option<Found> {
    let (epoch, offset) = (position.leader_epoch?, position.offset);
    let answer = model.epoch_end(epoch);
    let known = answer.epoch == epoch;
    Some(match (known, answer.end >= offset) {
        (true, true) => Found::Agreed,
        (true, false) => Found::Truncated(Truncation { first: Some(answer), next_larger: None }),
        (false, true) => Found::Truncated(Truncation { first: None, next_larger: Some(answer) }),
        (false, false) => Found::Truncated(Truncation { first: Some(answer), next_larger: Some(answer) }),
    })
}

fn check_nearest(model: &Model, reader: &Modelled) -> Result<(), TestCaseError> {
    let (position, leader) = (reader.trail.position(), model.leader());
    let Some(epoch) = position.leader_epoch.filter(|_| position.offset > leader.start) else { return Ok(()) };
    let Some(last) = reader.read.get(&(position.offset - 1)) else { return Ok(()) };
    if last.0 != epoch {
        return Ok(());
    }
    let found = match nearest(position, leader.start, Some(model.epoch_end(epoch))) {
        Nearest::Same => position.offset,
        Nearest::Start => leader.start,
        Nearest::End => leader.end,
        Nearest::GoOn(at) => at.end,
    };
    let matches = leader.at(position.offset - 1) == Some(*last);
    let expected = if matches { position.offset } else { leader.start_of_next_larger(epoch) };
    prop_assert_eq!(found, expected.max(leader.start));
    prop_assert!(!matches || leader.has_epoch(epoch));
    Ok(())
}

proptest! {
    #![proptest_config(crate::testing::cases(4_000))]

    #[test]
    fn what_is_found_is_what_became_of_the_records(ops in ops()) {
        let (mut model, mut reader) = (Model::default(), Modelled::new());
        model.elect(0, 0);
        for op in ops {
            match op {
                Op::Append(count) => model.append(count),
                Op::Replicate(to, count) => model.replicate(to, count),
                Op::Elect(leader, more) => model.elect(leader, more),
                Op::Delete(part) => model.delete(part),
                Op::Read(count) => reader.read(&model, count)?,
                Op::Restart => {
                    reader.restart();
                    let position = reader.trail.position();
                    let found = reader.search(&model);
                    if reader.remembers_from == position.offset && !reader.read.is_empty() {
                        prop_assert_eq!(Some(found), stored_position(&model, position).or(Some(Found::Agreed)));
                    }
                }
                Op::Nearest => check_nearest(&model, &reader)?,
            }
        }
        // In the end it reads what the log holds, and has nothing else.
        while reader.trail.position().offset != model.leader().end || reader.search(&model) != Found::Agreed {
            reader.read(&model, 9)?;
        }
        let leader = model.leader();
        for offset in leader.start.max(reader.whole_from)..leader.end {
            prop_assert_eq!(reader.read.get(&offset).copied(), leader.at(offset), "at {}", offset);
        }
        prop_assert!(reader.read.keys().all(|offset| *offset < leader.end));
    }
}
