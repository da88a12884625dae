//! The verifier between two scripted clusters: what answers that do not go together come to, and what of an earlier run holds.

use std::path::Path;

use verbatim_mirror::cluster::ClusterConfig;
use verbatim_mirror::verify::{Options, Report, Verdict, Verifier, whole_name};

use crate::TOPIC;
use crate::brokers::{Brokers, State, recreate};
use crate::log::Log;

/// TOPIC_AUTHORIZATION_FAILED.
const REFUSED: i16 = 29;

/// Three epochs, the second one without data.
fn log() -> Log {
    let mut log = Log::new(1).filled(3, 100);
    log.elect(1);
    log.elect(1);
    log.filled(2, 100)
}

/// Two clusters with the same partitions.
async fn pair(partitions: usize) -> (Brokers, Brokers) {
    let logs = vec![log(); partitions];
    (Brokers::start(1, logs.clone()).await, Brokers::start(1, logs).await)
}

async fn verified((source, target): &(Brokers, Brokers), state: Option<&Path>) -> Report {
    let config =
        |brokers: &Brokers| ClusterConfig { attempts_max: 3, ..ClusterConfig::new(brokers.addresses()) };
    let mut options = Options::new(config(source), config(target), vec![whole_name(TOPIC).unwrap()]);
    options.state = state.map(Path::to_path_buf);
    Verifier::new(options).unwrap().run().await.unwrap()
}

#[tokio::test]
async fn epochs_that_a_side_tells_in_contradiction_stay_undecided_and_others_that_differ_do_not() {
    let both = pair(1).await;
    let report = verified(&both, None).await;
    assert_eq!((report.partitions[0].verdict, report.exit_code()), (Verdict::Identical, 0), "{report:#?}");
    type Bend = fn(i32, (i32, i64)) -> (i32, i64);
    let table: &[(Bend, Verdict, u8, &str)] = &[
        (
            |asked, end| if asked == 1 { (9, 1) } else { end },
            Verdict::Undecided,
            2,
            "epoch 9 in the answer to 1",
        ),
        (|asked, end| if asked == 2 { (2, 4) } else { end }, Verdict::Undecided, 2, "contradicts itself"),
        (|asked, end| if asked == 0 { (0, 2) } else { end }, Verdict::Diverged, 1, "leader epochs differ"),
    ];
    for (bend, verdict, code, told) in table {
        for (side, brokers) in [("source", &both.0), ("target", &both.1)] {
            brokers.state().bend_end = Box::new(*bend);
            let report = verified(&both, None).await;
            let found = &report.partitions[0];
            assert_eq!((found.verdict, report.exit_code()), (*verdict, *code), "{found:#?}");
            assert!(found.reason.contains(told) && found.reason.contains(side), "{}", found.reason);
            brokers.state().bend_end = Box::new(|_, end| end);
        }
    }
}

#[tokio::test]
async fn versions_that_do_not_notice_truncation_are_verified_to_a_hole_at_the_end() {
    let both = pair(1).await;
    for brokers in [&both.0, &both.1] {
        brokers.state().fetch_version_max = 11;
        brokers.change(0, |log| log.end += 3);
    }
    let report = verified(&both, None).await;
    assert_eq!(report.partitions[0].verdict, Verdict::Identical, "{report:#?}");
}

/// A run that decides about partition 0 and not about partition 1.
async fn half_done(state: &Path) -> (Brokers, Brokers) {
    let both = pair(2).await;
    both.1.bend(|_, mut answer| {
        let all = answer.responses.iter_mut().flat_map(|topic| &mut topic.partitions);
        for data in all.filter(|data| data.partition_index == 1) {
            (data.error_code, data.records) = (REFUSED, None);
        }
        Some(answer)
    });
    let report = verified(&both, Some(state)).await;
    let verdicts: Vec<_> = report.partitions.iter().map(|one| one.verdict).collect();
    assert_eq!(verdicts, [Verdict::Identical, Verdict::Undecided], "{report:#?}");
    assert!(state.exists());
    for brokers in [&both.0, &both.1] {
        brokers.state().fetches.clear();
        brokers.bend(|_, answer| Some(answer));
    }
    both
}

fn was_read(brokers: &Brokers) -> bool {
    brokers.state().fetches.iter().flat_map(|fetch| &fetch.partitions).any(|asked| asked.partition == 0)
}

#[tokio::test]
async fn what_an_earlier_run_decided_holds_while_both_sides_stand_as_they_did() {
    let folder = tempfile::tempdir().unwrap();
    let both = half_done(&folder.path().join("same")).await;
    let report = verified(&both, Some(&folder.path().join("same"))).await;
    let verdicts: Vec<_> = report.partitions.iter().map(|one| one.verdict).collect();
    assert_eq!(verdicts, [Verdict::Identical; 2], "{report:#?}");
    assert!(!was_read(&both.0) && !was_read(&both.1));
    assert!(!folder.path().join("same").exists(), "everything is decided");

    let zero = |state: &mut State, change: fn(&mut Log)| change(state.logs.get_mut(&0).unwrap());
    type Change = Box<dyn Fn(&mut State)>;
    let changes: Vec<(&str, Change, Verdict)> = vec![
        ("end", Box::new(move |state| zero(state, |log| log.append(1))), Verdict::Diverged),
        ("cut", Box::new(move |state| zero(state, |log| log.truncate(4))), Verdict::Behind),
        ("start", Box::new(move |state| zero(state, |log| log.start = 2)), Verdict::Diverged),
        ("leader", Box::new(move |state| zero(state, |log| log.elect(1))), Verdict::Diverged),
        ("anew", Box::new(|state| recreate(state, 8)), Verdict::Behind),
    ];
    for (name, change, verdict) in changes {
        let state = folder.path().join(name);
        let both = half_done(&state).await;
        change(&mut both.1.state());
        let report = verified(&both, Some(&state)).await;
        assert_eq!(report.partitions[0].verdict, verdict, "{name}: {report:#?}");
        assert!(was_read(&both.0) || name == "anew", "{name}");
        assert!(!state.exists(), "{name}");
    }
}
