//! Who may join the in-sync set: an answer, or a reason, and the same every time.

use verbatim_engine::contract::{EpochEntry, Position, Replica};
use verbatim_engine::{Failure, Judge, Memory, NotJoined};

use super::header::EDGES_64;
use crate::report::Difference;
use crate::subject::Subject;

/// The first thing that is wrong with a module's answers, if any.
pub(super) fn run(subject: &Subject, judge: &mut dyn Judge<Memory>) -> Result<Vec<Difference>, Failure> {
    let mut other = subject.judge()?;
    for (index, (replica, end, position)) in asks().into_iter().enumerate() {
        let wrong = |what: &str, expected: String, got: String| {
            let at = format!("join {index} (replica {}, end=`{end}`)", replica.id);
            Ok(vec![Difference { at, what: what.to_owned(), expected, got }])
        };
        let answer = judge.may_join(&replica, end, &position);
        match &answer {
            Err(NotJoined::Failed(failure)) => {
                return wrong("answer", "yes or no".into(), failure.to_string());
            }
            Err(NotJoined::Refused(reason)) if reason.is_empty() => {
                return wrong("the reason", "some words".into(), "nothing".into());
            }
            _ => {}
        }
        let again = [
            ("asked again", judge.may_join(&replica, end, &position)),
            ("another instance", other.may_join(&replica, end, &position)),
        ];
        if let Some((what, again)) = again.into_iter().find(|(_, again)| *again != answer) {
            return wrong(what, shown(&answer), shown(&again));
        }
    }
    Ok(Vec::new())
}

fn shown(answer: &Result<(), NotJoined>) -> String {
    match answer {
        Ok(()) => "yes".to_owned(),
        Err(NotJoined::Refused(reason)) => format!("no: {reason}"),
        Err(NotJoined::Failed(failure)) => failure.to_string(),
    }
}

/// Replicas with where they end, at positions of every kind.
fn asks() -> Vec<(Replica, i64, Position)> {
    let mut asks = Vec::new();
    for (end, last_entry) in [
        (0, None),
        (60, Some(EpochEntry { epoch: 3, start: 40 })),
        (i64::MAX, Some(EpochEntry { epoch: i32::MAX, start: i64::MAX })),
    ] {
        let epoch = last_entry.map_or(-1, |entry| entry.epoch);
        let position = Position {
            start: 0,
            end,
            high_watermark: end,
            stable_offset: end,
            last_entry,
            epoch_before_end: epoch,
            shown_epoch: epoch,
        };
        for id in [i32::MIN, -1, 0, 1, 2, 3, 4, 5, i32::MAX] {
            for replica_end in EDGES_64.into_iter().chain([0, 39, 40, 60]) {
                asks.extend(
                    [(true, true), (true, false), (false, true), (false, false)]
                        .map(|(in_sync, online)| (Replica { id, in_sync, online }, replica_end, position)),
                );
            }
        }
    }
    asks
}
