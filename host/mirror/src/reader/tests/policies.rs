//! The reset policies and the nearest position, case by case.

use verbatim_wire::exact_producer::EpochEnd;

use crate::reader::reset::{Bounds, Fault, Nearest, Remedy, nearest, out_of_range};
use crate::reader::trail::Truncation;
use crate::reader::{Position, Reset};

const AT: EpochEnd = EpochEnd { epoch: 3, end: 80 };
const LARGER: EpochEnd = EpochEnd { epoch: 3, end: 120 };
const LOG: Bounds = Bounds { start: 10, end: 90 };

#[test]
fn each_policy_has_its_answer_to_each_fault() {
    let known = Fault::Truncated(Truncation { first: Some(AT), next_larger: None });
    let epoch_unknown = Fault::Truncated(Truncation { first: None, next_larger: Some(LARGER) });
    let nothing_known = Fault::Truncated(Truncation { first: None, next_larger: None });
    let (below, above) = (Fault::BelowStart(LOG), Fault::AboveEnd(LOG));
    let table = [
        (Reset::Earliest, [Remedy::GoBack(AT), Remedy::Start, Remedy::Start, Remedy::Start, Remedy::Start]),
        (Reset::Latest, [Remedy::GoBack(AT), Remedy::End, Remedy::End, Remedy::End, Remedy::End]),
        (Reset::Closest, [Remedy::GoBack(AT), Remedy::GoOn(LARGER), Remedy::End, Remedy::Start, Remedy::End]),
        (Reset::None, [Remedy::Fail; 5]),
    ];
    for (policy, remedies) in table {
        let faults = [known, epoch_unknown, nothing_known, below, above];
        assert_eq!(faults.map(|fault| policy.remedy(fault)), remedies, "{policy:?}");
    }
}

#[test]
fn an_offset_is_below_within_or_above() {
    assert_eq!(out_of_range(9, LOG), Some(Fault::BelowStart(LOG)));
    assert_eq!(out_of_range(10, LOG), None);
    assert_eq!(out_of_range(90, LOG), None);
    assert_eq!(out_of_range(91, LOG), Some(Fault::AboveEnd(LOG)));
}

#[test]
fn the_nearest_position_is_the_same_the_next_epochs_or_the_end() {
    let at = |offset| Position::new(offset, Some(3));
    let answer = |epoch, end| Some(EpochEnd { epoch, end });
    assert_eq!(nearest(at(50), 10, answer(3, 60)), Nearest::Same);
    assert_eq!(nearest(at(60), 10, answer(3, 60)), Nearest::Same);
    assert_eq!(nearest(at(61), 10, answer(3, 60)), Nearest::GoOn(EpochEnd { epoch: 3, end: 60 }));
    assert_eq!(nearest(at(50), 10, answer(2, 60)), Nearest::GoOn(EpochEnd { epoch: 2, end: 60 }));
    assert_eq!(nearest(at(50), 10, answer(2, 40)), Nearest::GoOn(EpochEnd { epoch: 2, end: 40 }));
    assert_eq!(nearest(at(50), 10, answer(-1, -1)), Nearest::End);
    assert_eq!(nearest(at(50), 10, answer(4, 40)), Nearest::End, "no leader may answer that");
    assert_eq!(nearest(at(5), 10, answer(3, 10)), Nearest::Start);
    assert_eq!(nearest(at(50), 10, answer(2, 8)), Nearest::Start);
    assert_eq!(nearest(Position::new(50, None), 10, None), Nearest::Same);
    assert_eq!(nearest(Position::new(5, None), 10, None), Nearest::Start);
}

#[test]
fn a_position_is_what_a_committed_offset_holds() {
    for (epoch, known) in [(-1, None), (-2, None), (0, Some(0)), (7, Some(7))] {
        let position = Position::from_committed(12, epoch);
        assert_eq!(position, Position::new(12, known));
        assert_eq!(position.committed_leader_epoch(), epoch.max(-1));
        let stored = serde_json::to_string(&position).expect("two numbers");
        assert_eq!(serde_json::from_str::<Position>(&stored).expect("as it was written"), position);
    }
}
