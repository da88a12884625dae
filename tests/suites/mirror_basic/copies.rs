//! What is copied once is the source's.

use super::pair::{EXACT, Pair, Step, alter, delete_records, once, only, produce, states, status, write};
use anyhow::{Context, ensure};
use verbatim_mirror::cluster::ClusterConfig;
use verbatim_mirror::mirror::state::State;
use verbatim_mirror::mirror::{MirrorConfig, MirrorError};
use verbatim_tests::host::free_address;
use verbatim_wire::messages::DescribeConfigsRequest;
use verbatim_wire::messages::describe_configs_request::DescribeConfigsResource;

#[test]
fn a_normal_topic_is_copied_once_and_byte_for_byte() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("plain", 3, &[("segment.bytes", "2000")])?;
    produce(&pair.source, ("plain", 0), 40)?;
    produce(&pair.source, ("plain", 1), 3)?;
    let snapshot = pair.once(&["plain"])?;
    let caught_up = |partition| ("plain", partition, State::CaughtUp);
    assert_eq!(states(&snapshot), [0, 1, 2].map(caught_up));
    let first = status(&snapshot, ("plain", 0)).context("no partition")?;
    assert_eq!((first.batches, first.records, first.end, first.lag_records), (40, 120, 120, 0));
    for partition in 0..3 {
        pair.check_whole("plain", partition)?;
    }
    // Nothing is left to do, so nothing is done.
    let again = pair.once(&["plain"])?;
    assert!(again.partitions.iter().all(|found| found.batches == 0 && found.state == State::CaughtUp));
    produce(&pair.source, ("plain", 1), 2)?;
    let again = pair.once(&["plain"])?;
    assert_eq!(status(&again, ("plain", 1)).map(|found| found.batches), Some(2));
    pair.check_whole("plain", 1)?;
    pair.stop()
}

#[test]
fn holes_epochs_without_data_and_an_end_without_data_are_copied() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("odd", 3, EXACT)?;
    // Epochs 2 (100), 4 (110, without data), 5 (120), 8 (130 = end, without data), and holes between all of them.
    let step = Step {
        at: (0, -1),
        batches: &[(100, 2, &["a", "b"]), (105, 2, &["c"]), (120, 5, &["d"]), (125, 5, &["e", "f"])],
        entries: &[(2, 100), (4, 110), (5, 120), (8, 130)],
        end_to: Some(130),
        epoch: 8,
        start: 100,
        end: 130,
        ..Step::default()
    };
    write(&pair.source, ("odd", 0), &step)?;
    // Nothing but an end and an epoch.
    let nothing =
        Step { end_to: Some(50), entries: &[(3, 50)], epoch: 3, start: 50, end: 50, ..step_at_start() };
    write(&pair.source, ("odd", 1), &nothing)?;
    let snapshot = pair.once(&["odd"])?;
    assert!(snapshot.partitions.iter().take(2).all(|found| found.state == State::CaughtUp), "{snapshot:#?}");
    pair.check_whole("odd", 0)?;
    pair.check_whole("odd", 1)?;

    // And what comes behind them: under the epoch that had no data, and under a later one.
    let more = Step {
        at: (130, 5),
        batches: &[(133, 8, &["g"])],
        epoch: 8,
        start: 100,
        end: 134,
        ..Step::default()
    };
    write(&pair.source, ("odd", 0), &more)?;
    let more =
        Step { at: (50, -1), batches: &[(50, 6, &["h"])], epoch: 6, start: 50, end: 51, ..Step::default() };
    write(&pair.source, ("odd", 1), &more)?;
    pair.once(&["odd"])?;
    pair.check_whole("odd", 0)?;
    pair.check_whole("odd", 1)?;
    pair.stop()
}

fn step_at_start() -> Step<'static> {
    Step { at: (0, -1), ..Step::default() }
}

#[test]
fn a_source_that_begins_inside_a_batch_is_copied_from_that_batch_on() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("cut", 2, &[])?;
    produce(&pair.source, ("cut", 0), 10)?;
    produce(&pair.source, ("cut", 1), 4)?;
    delete_records(&pair.source, "cut", 0, 13)?;
    delete_records(&pair.source, "cut", 1, 12)?;
    let snapshot = pair.once(&["cut"])?;
    let first = status(&snapshot, ("cut", 0)).context("no partition")?;
    assert_eq!((first.state, first.batches, first.end), (State::CaughtUp, 6, 30));
    let second = status(&snapshot, ("cut", 1)).context("no partition")?;
    assert_eq!((second.state, second.batches, second.end), (State::CaughtUp, 0, 12));
    for (partition, start) in [(0, 13), (1, 12)] {
        pair.check_same("cut", partition)?;
        assert_eq!(pair.copy.earliest(("cut", partition.try_into()?))?.0, start);
    }
    // A start that moves on later is followed, whether or not there is data.
    delete_records(&pair.source, "cut", 0, 20)?;
    pair.once(&["cut"])?;
    pair.check_same("cut", 0)?;
    produce(&pair.source, ("cut", 1), 1)?;
    pair.once(&["cut"])?;
    pair.check_same("cut", 1)?;
    pair.stop()
}

#[test]
fn settings_are_carried_over_and_taken_back_but_for_the_destinations_own() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic(
        "set",
        1,
        &[("retention.ms", "12345"), ("min.insync.replicas", "1"), ("cleanup.policy", "compact,delete")],
    )?;
    pair.once(&["set"])?;
    let own = own_settings(&pair, "set")?;
    let expected = |name: &str| own.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
    assert_eq!(expected("retention.ms"), Some("12345"));
    assert_eq!(expected("cleanup.policy"), Some("compact,delete"));
    assert_eq!(expected("produce.at.offset"), Some("true"));
    assert_eq!(expected("min.insync.replicas"), None, "the destination's own");
    alter(&pair.source, "set", ("retention.ms", None), false)?;
    alter(&pair.source, "set", ("segment.ms", Some("777")), false)?;
    pair.once(&["set"])?;
    let own = own_settings(&pair, "set")?;
    assert!(!own.iter().any(|(name, _)| name == "retention.ms"), "{own:?}");
    assert!(own.contains(&("segment.ms".to_owned(), "777".to_owned())), "{own:?}");
    pair.stop()
}

/// What the copy's topic itself sets.
pub(super) fn own_settings(pair: &Pair, topic: &str) -> anyhow::Result<Vec<(String, String)>> {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(super::pair::text(topic))
        .with_configuration_keys(None);
    let answer = pair.copy.call(&DescribeConfigsRequest::default().with_resources(vec![resource]))?;
    let result = answer.results.into_iter().next().context("no answer")?;
    ensure!(result.error_code == 0, "{result:?}");
    let own = result.configs.into_iter().filter(|config| config.config_source == 1);
    Ok(own.map(|config| (config.name.to_string(), config.value.unwrap_or_default().to_string())).collect())
}

#[test]
fn what_cannot_be_mirrored_at_all_is_an_error_that_says_why() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    let none = once(pair.config(&["nothing.*", "neither"])?).err().context("no error")?;
    assert!(matches!(none.downcast_ref(), Some(MirrorError::NoTopic { .. })), "{none}");
    assert!(none.to_string().contains("nothing.*, neither"), "{none}");

    pair.source.create_topic("there", 1, &[])?;
    let mut nobody = ClusterConfig::new([free_address()?]);
    nobody.attempts_max = 2;
    let wrong = MirrorConfig { source: nobody.clone(), ..pair.config(&["there"])? };
    let wrong = once(wrong).err().context("no error")?;
    assert!(matches!(wrong.downcast_ref(), Some(MirrorError::Source(_))), "{wrong}");
    let wrong =
        once(MirrorConfig { target: nobody, ..pair.config(&["there"])? }).err().context("no error")?;
    assert!(matches!(wrong.downcast_ref(), Some(MirrorError::Target(_))), "{wrong}");
    pair.stop()
}

#[test]
fn excluded_topics_are_left_alone_and_paused_ones_only_shown() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    for topic in ["a1", "a2", "a3"] {
        pair.source.create_topic(topic, 1, &[])?;
        produce(&pair.source, (topic, 0), 1)?;
    }
    let mut config = pair.config(&["a."])?;
    config.exclude = vec![regex::Regex::new("a1")?];
    config.paused = vec![regex::Regex::new(".*3")?];
    let snapshot = once(config)?;
    assert_eq!(states(&snapshot), [("a2", 0, State::CaughtUp), ("a3", 0, State::Paused)]);
    pair.check_whole("a2", 0)?;
    assert!(pair.copy.latest(("a1", 0)).is_err() && pair.copy.latest(("a3", 0)).is_err());
    assert!(only(&snapshot).is_err());
    pair.stop()
}
