//! Copies that a module may rewrite: a mirror that begins again there goes on, and what it creates topics with.

use anyhow::Context;
use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_mirror::mirror::MirrorConfig;
use verbatim_mirror::mirror::state::State;
use verbatim_tests::exact::{TIMESTAMP_MS, order};

use super::copies::own_settings;
use super::pair::{EXACT, Pair, Step, once, only, states, write};

const REWRITE: &str = "produce.at.offset.rewrite";

/// A source with two records in its last batch, and a copy of which this is what became of that.
fn copied(pair: &Pair, topic: &str, rewrite: &str, left: NewRecord<'_>) -> anyhow::Result<()> {
    let step = Step { at: (0, -1), batches: &[(0, 1, &["a", "b"])], epoch: 1, end: 2, ..Step::default() };
    pair.source.create_topic(topic, 1, EXACT)?;
    write(&pair.source, (topic, 0), &step)?;
    pair.copy.create_topic(topic, 1, &[EXACT, &[(REWRITE, rewrite)]].concat())?;
    let left =
        BatchBuilder::new(0).leader_epoch(1).last_offset_delta(1).base_timestamp(TIMESTAMP_MS).record(left);
    let left = left.build().map_err(|error| anyhow::anyhow!("{error}"))?;
    let answer = pair.copy.produce((topic, 0), Some(&order((0, -1), (0, 2), 1)), &left)?;
    anyhow::ensure!(answer.error_code == 0, "{answer:?}");
    let more = Step { at: (2, 1), batches: &[(2, 1, &["c"])], epoch: 1, end: 3, ..Step::default() };
    write(&pair.source, (topic, 0), &more)
}

#[test]
fn a_copy_that_a_module_rewrote_goes_on_and_any_other_difference_stops_it() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    let masked = |timestamp| NewRecord::new(1, timestamp).key(b"k1").value(b"***");
    copied(&pair, "allowed", "allow", masked(TIMESTAMP_MS + 1))?;
    copied(&pair, "moved", "allow", masked(TIMESTAMP_MS + 2))?;
    copied(&pair, "refused", "refuse", masked(TIMESTAMP_MS + 1))?;
    let snapshot = pair.once(&["allowed", "moved", "refused"])?;
    let expected =
        [("allowed", 0, State::CaughtUp), ("moved", 0, State::Diverged), ("refused", 0, State::Diverged)];
    assert_eq!(states(&snapshot), expected, "{snapshot:#?}");
    assert_eq!(pair.copy.fetch_all(("allowed", 0), 2)?, pair.source.fetch_all(("allowed", 0), 2)?);
    let told: Vec<&str> = snapshot.partitions.iter().filter_map(|one| one.reason.as_deref()).collect();
    assert!(told.iter().any(|told| told.contains("timestamp, which no module may change")), "{told:?}");
    pair.stop()
}

#[test]
fn topics_are_created_with_what_is_wanted_and_those_that_are_there_are_left_alone() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    for topic in ["fresh", "there", "refusing"] {
        pair.source.create_topic(topic, 1, &[("segment.ms", "888"), ("retention.ms", "777")])?;
    }
    pair.copy.create_topic("there", 1, &[EXACT, &[(REWRITE, "allow"), ("segment.ms", "666")]].concat())?;
    pair.copy.create_topic("refusing", 1, EXACT)?;
    let config = || -> anyhow::Result<MirrorConfig> {
        let mut config = pair.config(&["fresh", "there", "refusing"])?;
        config.target_config.set(REWRITE, "allow")?;
        config.target_config.set("segment.ms", "999")?;
        Ok(config)
    };
    // As well the second time.
    for _ in 0..2 {
        let snapshot = once(config()?)?;
        let expected =
            [("fresh", 0, State::CaughtUp), ("refusing", 0, State::Failed), ("there", 0, State::CaughtUp)];
        assert_eq!(states(&snapshot), expected, "{snapshot:#?}");
        let refusing = snapshot.partitions.iter().find(|one| one.topic == "refusing").context("no status")?;
        let told = refusing.reason.as_deref().unwrap_or_default();
        assert!(told.contains("produce.at.offset.rewrite=refuse, wanted allow"), "{told}");
        let remedy = refusing.remedy.as_deref().unwrap_or_default();
        assert!(remedy.contains("--target-config"), "{remedy}");
        let notes: Vec<_> =
            snapshot.notes.iter().filter(|note| note.text.contains("left as it is")).collect();
        assert!(matches!(notes[..], [note] if note.topic == "there" && note.text.contains("segment.ms=666")));
        for (topic, segment_ms) in [("fresh", "999"), ("there", "666")] {
            let own = own_settings(&pair, topic)?;
            for (name, value) in [(REWRITE, "allow"), ("segment.ms", segment_ms), ("retention.ms", "777")] {
                assert!(own.contains(&(name.to_owned(), value.to_owned())), "{topic}: {own:?}");
            }
        }
    }
    pair.stop()
}

#[test]
fn properties_that_the_destination_does_not_take_stop_the_topic_with_a_remedy() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("odd", 1, &[])?;
    let mut config = pair.config(&["odd"])?;
    config.target_config.set(REWRITE, "maybe")?;
    let snapshot = once(config)?;
    let status = only(&snapshot)?;
    assert_eq!(status.state, State::TargetNotExact, "{status:#?}");
    let (reason, remedy) = (status.reason.as_deref(), status.remedy.as_deref());
    assert!(reason.is_some_and(|told| told.contains(REWRITE) && told.contains("maybe")), "{reason:?}");
    assert!(remedy.is_some_and(|told| told.contains("--target-config")), "{remedy:?}");
    pair.stop()
}
