//! Where a mirror must not go on: it stops that partition in a state that says why, writes nothing, and goes on with others.

use super::follows::{rewind, rewound_source};
use super::pair::{
    EXACT, Pair, Running, Step, alter, delete_records, delete_topic, only, produce, states, write,
};
use anyhow::{Context, ensure};
use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_mirror::cluster::ClusterConfig;
use verbatim_mirror::mirror::OnDataLost;
use verbatim_mirror::mirror::state::{PartitionStatus, State};
use verbatim_tests::exact::{TIMESTAMP_MS, batch, order};
use verbatim_tests::kafka::Kafka;
use verbatim_tests::segments;

/// The state is this one, its reason has these words, and there is a remedy.
fn stopped(found: &PartitionStatus, state: State, words: &[&str]) {
    assert_eq!(found.state, state, "{found:#?}");
    let reason = found.reason.as_deref().unwrap_or_default();
    assert!(words.iter().all(|word| reason.contains(word)), "{words:?} in {reason}");
    assert!(found.remedy.as_deref().is_some_and(|remedy| !remedy.is_empty()), "{found:#?}");
}

fn copied(pair: &Pair, topic: &str) -> anyhow::Result<Vec<u8>> {
    segments::log_bytes(&pair.to.0.data(), topic, 0)
}

#[test]
fn a_destination_that_is_not_exact_or_another_copy_gets_nothing_and_others_go_on() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    for topic in ["bad-normal", "bad-other", "good"] {
        pair.source.create_topic(topic, 1, &[])?;
        produce(&pair.source, (topic, 0), 4)?;
    }
    pair.copy.create_topic("bad-normal", 1, &[])?;
    let other = [EXACT, &[("produce.at.offset.source.topic.id", "AAAAAAAAAAAAAAAAAAAAAQ")]].concat();
    pair.copy.create_topic("bad-other", 1, &other)?;
    let snapshot = pair.once(&["bad.*", "good"])?;
    let [normal, another, good] = snapshot.partitions.as_slice() else { unreachable!("{snapshot:#?}") };
    stopped(normal, State::TargetNotExact, &["bad-normal", "produce.at.offset=false", "expected true"]);
    stopped(another, State::SourceRecreated, &["AAAAAAAAAAAAAAAAAAAAAQ"]);
    assert_eq!(good.state, State::CaughtUp);
    assert!(copied(&pair, "bad-normal")?.is_empty() && copied(&pair, "bad-other")?.is_empty());
    pair.check_whole("good", 0)?;
    pair.stop()
}

#[test]
fn a_copy_that_is_promoted_or_made_anew_while_it_is_mirrored_is_left_alone() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    for topic in ["normal", "promoted", "removed", "stays"] {
        pair.source.create_topic(topic, 1, &[])?;
        produce(&pair.source, (topic, 0), 4)?;
    }
    let mirror = Running::start(pair.config(&["normal", "promoted", "removed", "stays"])?)?;
    for topic in ["normal", "promoted", "removed", "stays"] {
        mirror.until_end((topic, 0), 12)?;
    }
    alter(&pair.copy, "promoted", ("produce.at.offset", None), false)?;
    delete_topic(&pair.copy, "removed")?;
    delete_topic(&pair.copy, "normal")?;
    pair.copy.create_topic("normal", 1, &[])?;
    let promoted = copied(&pair, "promoted")?;
    for topic in ["normal", "promoted", "removed", "stays"] {
        produce(&pair.source, (topic, 0), 4)?;
    }
    for topic in ["normal", "promoted", "removed"] {
        let found = mirror.until_state((topic, 0), State::TargetNotExact)?;
        stopped(&found, State::TargetNotExact, &[]);
    }
    mirror.until_end(("stays", 0), 24)?;
    mirror.stop();
    assert_eq!(copied(&pair, "promoted")?, promoted);
    assert!(copied(&pair, "normal")?.is_empty());
    assert!(pair.copy.latest(("removed", 0)).is_err(), "not made again");
    pair.check_whole("stays", 0)?;
    pair.stop()
}

#[test]
fn a_plain_kafka_as_destination_gets_nothing() -> anyhow::Result<()> {
    let Some(kafka) = Kafka::start()? else { return Ok(()) };
    let pair = Pair::new()?;
    for topic in ["new", "there"] {
        pair.source.create_topic(topic, 1, &[])?;
        produce(&pair.source, (topic, 0), 4)?;
    }
    let client = verbatim_tests::client::Client::connect(kafka.bootstrap().parse()?)?;
    client.create_topic("there", 1, &[])?;
    let mut config = pair.config(&["new", "there"])?;
    config.target = ClusterConfig::new([kafka.bootstrap()]);
    let snapshot = super::pair::once(config)?;
    for found in &snapshot.partitions {
        stopped(found, State::TargetNotExact, &["produce.at.offset"]);
    }
    assert_eq!(client.latest(("there", 0))?.0, 0);
    assert!(client.latest(("new", 0)).is_err());
    pair.stop()
}

#[test]
fn a_source_topic_that_is_deleted_or_made_anew_stops_its_partitions() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    for topic in ["anew", "gone", "stays"] {
        pair.source.create_topic(topic, 1, &[])?;
        produce(&pair.source, (topic, 0), 4)?;
    }
    let mirror = Running::start(pair.config(&["anew", "gone", "stays"])?)?;
    for topic in ["anew", "gone", "stays"] {
        mirror.until_end((topic, 0), 12)?;
    }
    delete_topic(&pair.source, "gone")?;
    delete_topic(&pair.source, "anew")?;
    pair.source.create_topic("anew", 1, &[])?;
    produce(&pair.source, ("anew", 0), 9)?;
    let gone = mirror.until_state(("gone", 0), State::SourceRecreated)?;
    stopped(&gone, State::SourceRecreated, &["topic id"]);
    let anew = mirror.until_state(("anew", 0), State::SourceRecreated)?;
    stopped(&anew, State::SourceRecreated, &["topic id"]);
    produce(&pair.source, ("stays", 0), 1)?;
    mirror.until_end(("stays", 0), 15)?;
    mirror.stop();
    assert_eq!(pair.copy.latest(("anew", 0))?.0, 12);
    // A mirror that is started later sees it too.
    let snapshot = pair.once(&["anew"])?;
    stopped(only(&snapshot)?, State::SourceRecreated, &["topic id"]);
    pair.stop()
}

#[test]
fn lost_data_stops_the_partition_or_leaves_a_recorded_hole() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("lost", 1, &[])?;
    produce(&pair.source, ("lost", 0), 4)?;
    pair.once(&["lost"])?;
    produce(&pair.source, ("lost", 0), 10)?;
    delete_records(&pair.source, "lost", 0, 31)?;
    let before = copied(&pair, "lost")?;
    let snapshot = pair.once(&["lost"])?;
    stopped(only(&snapshot)?, State::SourceDataLost, &["31", "12"]);
    assert_eq!(copied(&pair, "lost")?, before);

    let mut config = pair.config(&["lost"])?;
    config.on_data_lost = OnDataLost::Skip;
    let snapshot = super::pair::once(config)?;
    let found = only(&snapshot)?;
    assert_eq!((found.state, found.end), (State::CaughtUp, 42));
    let holes: Vec<_> = found.skipped.iter().map(|hole| (hole.from, hole.to)).collect();
    assert_eq!(holes, [(12, 31)]);
    assert!(snapshot.notes.iter().any(|note| note.text.contains("12 to 31 are skipped")), "{snapshot:#?}");
    // The batch that the start lies in comes whole.
    assert_eq!(pair.copy.fetch_all(("lost", 0), 31)?, pair.source.fetch_all(("lost", 0), 31)?);
    assert_eq!(pair.copy.earliest(("lost", 0))?, pair.source.earliest(("lost", 0))?);
    assert_eq!(pair.copy.latest(("lost", 0))?, pair.source.latest(("lost", 0))?);
    pair.stop()
}

#[test]
fn a_truncated_source_stops_the_partition_and_says_where() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    rewound_source(&pair, "cut", &[])?;
    let mirror = Running::start(pair.config(&["cut"])?)?;
    mirror.until_end(("cut", 0), 10)?;
    let before = copied(&pair, "cut")?;
    rewind(&pair, "cut")?;
    let found = mirror.until_state(("cut", 0), State::SourceTruncated)?;
    stopped(
        &found,
        State::SourceTruncated,
        &["first truncated offset is 2", "epoch 3", "epoch up to there is 1"],
    );
    mirror.stop();
    assert_eq!(copied(&pair, "cut")?, before);
    // A mirror that is started later sees it too.
    let snapshot = pair.once(&["cut"])?;
    stopped(only(&snapshot)?, State::SourceTruncated, &["first truncated offset is 2"]);
    pair.stop()
}

/// What a cleaner left of the copy's last batch, if anything, and a batch behind it; the topic is not compacted any more.
fn cleaned_source(pair: &Pair, topic: &str, left: Option<Vec<u8>>) -> anyhow::Result<()> {
    pair.source.create_topic(topic, 1, EXACT)?;
    let behind = batch(2, 1, &["c"])?;
    let written = [left.unwrap_or_default(), behind].concat();
    let answer = pair.source.produce((topic, 0), Some(&order((0, -1), (0, 3), 1)), &written)?;
    ensure!(answer.error_code == 0, "{answer:?}");
    pair.copy.create_topic(topic, 1, EXACT)?;
    let step = Step { at: (0, -1), batches: &[(0, 1, &["a", "b"])], epoch: 1, end: 2, ..Step::default() };
    write(&pair.copy, (topic, 0), &step)
}

#[test]
fn what_an_earlier_cleaning_of_the_source_can_have_made_is_no_divergence() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    let record = |value| NewRecord::new(1, TIMESTAMP_MS + 1).key(b"k1").value(value);
    let left = |record| BatchBuilder::new(0).leader_epoch(1).last_offset_delta(1).record(record).build();
    cleaned_source(&pair, "gone", None)?;
    cleaned_source(&pair, "rewritten", Some(left(record(b"b".as_slice())).context("a batch")?))?;
    // No cleaner changes a value, or where a batch begins and ends.
    cleaned_source(&pair, "other", Some(left(record(b"x".as_slice())).context("a batch")?))?;
    cleaned_source(&pair, "shorter", Some(batch(1, 1, &["b"])?))?;
    let snapshot = pair.once(&["gone", "rewritten", "other", "shorter"])?;
    let expected = [
        ("gone", 0, State::CaughtUp),
        ("other", 0, State::Diverged),
        ("rewritten", 0, State::CaughtUp),
        ("shorter", 0, State::Diverged),
    ];
    assert_eq!(states(&snapshot), expected, "{snapshot:#?}");
    for topic in ["gone", "rewritten"] {
        assert_eq!(pair.copy.fetch_all((topic, 0), 2)?, pair.source.fetch_all((topic, 0), 2)?);
    }
    pair.stop()
}

#[test]
fn other_bytes_under_the_same_epochs_are_a_divergence() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("twin", 1, EXACT)?;
    let step = |values: &'static [&'static str; 2]| Step {
        at: (0, -1),
        batches: Box::leak(Box::new([(0, 1, values.as_slice())])),
        epoch: 1,
        end: 2,
        ..Step::default()
    };
    write(&pair.source, ("twin", 0), &step(&["a", "b"]))?;
    // The same offsets and epochs, and other bytes.
    pair.copy.create_topic("twin", 1, EXACT)?;
    write(&pair.copy, ("twin", 0), &step(&["a", "B"]))?;
    let snapshot = pair.once(&["twin"])?;
    stopped(
        only(&snapshot)?,
        State::Diverged,
        &["the record at offset 1 differs in value", "offset 0", "crc"],
    );
    assert_eq!(states(&snapshot), [("twin", 0, State::Diverged)]);
    assert!(snapshot.notes.iter().any(|note| note.text.contains("does not say")), "{snapshot:#?}");
    pair.copy.latest(("twin", 0)).context("still there")?;
    pair.stop()
}
