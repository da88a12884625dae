//! What was redacted is kept beside how far a comparison has come, as long as who asks and what the topic says are the same.

use std::path::Path;

use proptest::prelude::*;

use super::super::super::aborted::Aborted;
use super::super::super::compare::{Comparison, Step};
use super::super::super::options::Options;
use super::super::super::plan::{Permits, Planned};
use super::super::super::report::{Both, Bounds, PartitionReport, Verdict};
use super::super::super::state::{Saved, Store};
use super::super::model::Random;
use super::{ACCEPTED, Twins};
use crate::cluster::{ClusterConfig, Partition};

proptest! {
    #![proptest_config(crate::testing::cases(200))]

    #[test]
    fn one_that_goes_on_comes_to_the_same(seed in any::<u64>(), part in 0.0..1.0_f64) {
        let twins = Twins::random(&mut Random(seed));
        let pairs: Vec<_> = twins.source.iter().zip(&twins.target).collect();
        let whole = twins.judge(ACCEPTED).1;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a part")]
        let cut = (pairs.len() as f64 * part) as usize;
        let mut first = Comparison::new(ACCEPTED);
        for (s, t) in &pairs[..cut] {
            prop_assert_eq!(first.step(Some(s), Some(t)).unwrap(), Step::Both);
        }
        let saved = Saved::of(&first, &Aborted::default(), twins.range(), 0).unwrap();
        let saved: Saved = serde_json::from_str(&serde_json::to_string(&saved).unwrap()).unwrap();
        let mut second = Comparison::new(ACCEPTED);
        saved.restore(&mut second);
        for (s, t) in &pairs[cut..] {
            prop_assert_eq!(second.step(Some(s), Some(t)).unwrap(), Step::Both);
        }
        prop_assert_eq!((second.redaction, second.count, second.digest), (whole.redaction, whole.count, whole.digest));
        prop_assert_eq!(second.redaction, twins.count);
    }
}

fn options(state: &Path, allow_redacted: bool) -> Options {
    let cluster = ClusterConfig::new(["127.0.0.1:1"]);
    let mut options = Options::new(cluster.clone(), cluster, Vec::new());
    (options.state, options.allow_redacted) = (Some(state.to_path_buf()), allow_redacted);
    options
}

fn planned(rewriting_by: Option<&str>) -> Planned {
    let bounds = Bounds { start: 0, end: 9, last_stable_offset: 9 };
    Planned {
        partition: Partition { topic: "t".to_owned(), index: 0 },
        topic_ids: Both::default(),
        leader_epochs: Both::default(),
        bounds: Both { source: bounds, target: bounds },
        permits: Permits { compaction: false, rewriting_by: rewriting_by.map(str::to_owned) },
    }
}

#[test]
fn a_state_is_of_one_answer_to_the_question_whether_redacted_counts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    Store::open(&options(&file, true)).unwrap().write().unwrap();
    assert!(Store::open(&options(&file, true)).is_ok());
    let error = Store::open(&options(&file, false)).unwrap_err();
    assert!(error.contains("allow-redacted is `true`, expected `false`"), "{error}");

    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"version\":3", "\"version\":2").replace("allow_redacted", "other"))
        .unwrap();
    let error = Store::open(&options(&file, true)).unwrap_err();
    assert!(error.contains("version is `2`, expected `3`"), "{error}");
}

#[test]
fn what_is_known_of_a_topic_that_allows_other_rewriting_now_counts_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let twins = Twins::random(&mut Random(1));
    let (_, comparison) = twins.judge(ACCEPTED);
    let saved = Saved::of(&comparison, &Aborted::default(), twins.range(), 5).unwrap();
    for decided in [false, true] {
        let file = folder.path().join(decided.to_string());
        let before = planned(Some("redact"));
        let store = Store::open(&options(&file, true)).unwrap();
        store.take_up([&before].into_iter()).unwrap();
        store.save(&before.partition, saved.clone());
        if decided {
            store.done(&before.partition, PartitionReport::new("t", 0).with_verdict(Verdict::Redacted, "r"));
        }
        store.write().unwrap();
        for (now, holds) in [(Some("redact"), true), (Some("mask"), false), (None, false)] {
            let store = Store::open(&options(&file, true)).unwrap();
            let entries = store.take_up([&planned(now)].into_iter()).unwrap();
            assert_eq!(entries[0].saved.is_some(), holds, "{now:?}");
            assert_eq!(entries[0].decided().is_some(), holds && decided, "{now:?}");
        }
    }
}
