//! A mirror that runs on follows what happens to the source.

use super::copies::own_settings;
use super::pair::{EXACT, Pair, Running, Step, alter, delete_records, name, produce, states, write};
use anyhow::{Context, ensure};
use verbatim_mirror::mirror::OnDivergence;
use verbatim_mirror::mirror::state::State;
use verbatim_tests::client::Client;
use verbatim_tests::segments;
use verbatim_wire::messages::CreatePartitionsRequest;
use verbatim_wire::messages::create_partitions_request::CreatePartitionsTopic;

#[test]
fn data_starts_partitions_settings_and_topics_are_followed() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("live", 1, &[])?;
    let mirror = Running::start(pair.config(&["live.*"])?)?;
    mirror.until_end(("live", 0), 0)?;
    produce(&pair.source, ("live", 0), 10)?;
    mirror.until_end(("live", 0), 30)?;

    // Without any data to carry it.
    delete_records(&pair.source, "live", 0, 14)?;
    verbatim_tests::wait_for("the copy's start", super::pair::PATIENCE, || {
        Ok((pair.copy.earliest(("live", 0))?.0 == 14).then_some(()))
    })?;

    add_partitions(&pair.source, "live", 3)?;
    produce(&pair.source, ("live", 2), 2)?;
    mirror.until_end(("live", 2), 6)?;
    mirror.until_end(("live", 1), 0)?;

    alter(&pair.source, "live", ("retention.ms", Some("98765")), false)?;
    verbatim_tests::wait_for("the setting", super::pair::PATIENCE, || {
        let set = ("retention.ms".to_owned(), "98765".to_owned());
        Ok(own_settings(&pair, "live")?.contains(&set).then_some(()))
    })?;

    pair.source.create_topic("live-too", 1, &[])?;
    produce(&pair.source, ("live-too", 0), 1)?;
    mirror.until_end(("live-too", 0), 3)?;

    let last = mirror.stop();
    assert!(last.partitions.iter().all(|found| found.state == State::CaughtUp), "{last:#?}");
    for (topic, partition) in [("live", 0), ("live", 1), ("live", 2), ("live-too", 0)] {
        pair.check_same(topic, partition)?;
    }
    pair.stop()
}

pub(super) fn add_partitions(client: &Client, topic: &str, count: i32) -> anyhow::Result<()> {
    let topic =
        CreatePartitionsTopic::default().with_name(name(topic)).with_count(count).with_assignments(None);
    let answer =
        client.call(&CreatePartitionsRequest::default().with_timeout_ms(30_000).with_topics(vec![topic]))?;
    ensure!(answer.results.iter().all(|one| one.error_code == 0), "{answer:?}");
    Ok(())
}

#[test]
fn epochs_and_ends_are_followed_without_data() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("idle", 1, EXACT)?;
    let id = ("idle", 0);
    let first = Step { at: (0, -1), batches: &[(0, 1, &["a"])], epoch: 1, end: 1, ..Step::default() };
    write(&pair.source, id, &first)?;
    let mirror = Running::start(pair.config(&["idle"])?)?;
    mirror.until_end(id, 1)?;
    // A new leader epoch without data.
    let epoch = Step { at: (1, 1), entries: &[(4, 1)], end_to: Some(1), epoch: 4, end: 1, ..Step::default() };
    write(&pair.source, id, &epoch)?;
    let shown = |epoch, end| {
        verbatim_tests::wait_for("the copy's epoch and end", super::pair::PATIENCE, || {
            Ok((pair.copy.latest(id)? == (end, epoch) && pair.copy.epoch_end(id, epoch)? == (epoch, end))
                .then_some(()))
        })
    };
    shown(4, 1)?;
    // An end without data, under another one yet.
    let end = Step { at: (1, 1), entries: &[(7, 5)], end_to: Some(9), epoch: 7, end: 9, ..Step::default() };
    write(&pair.source, id, &end)?;
    shown(7, 9)?;
    let data = Step { at: (9, 7), batches: &[(12, 7, &["b", "c"])], epoch: 7, end: 14, ..Step::default() };
    write(&pair.source, id, &data)?;
    mirror.until_end(id, 14)?;
    mirror.stop();
    pair.check_whole("idle", 0)?;
    pair.stop()
}

#[test]
fn a_source_that_was_truncated_is_followed_where_that_is_wanted() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    rewound_source(&pair, "follow", &[])?;
    let mut config = pair.config(&["follow"])?;
    config.on_divergence = OnDivergence::Follow;
    let mirror = Running::start(config)?;
    mirror.until_end(("follow", 0), 10)?;
    rewind(&pair, "follow")?;
    mirror.until_end(("follow", 0), 9)?;
    mirror.stop();
    pair.check_whole("follow", 0)?;

    // Also where it happened while no mirror was there to see it.
    rewound_source(&pair, "later", &[])?;
    pair.once(&["later"])?;
    rewind(&pair, "later")?;
    let mut config = pair.config(&["later"])?;
    config.on_divergence = OnDivergence::Follow;
    let snapshot = super::pair::once(config)?;
    assert_eq!(states(&snapshot), [("later", 0, State::CaughtUp)], "{snapshot:#?}");
    pair.check_whole("later", 0)?;
    pair.stop()
}

/// An exact source with three batches, of epochs 1 and 3, that may be rewound.
pub(super) fn rewound_source(pair: &Pair, topic: &str, more: &[(&str, &str)]) -> anyhow::Result<()> {
    let settings = [EXACT, &[("produce.at.offset.rewind", "truncate")], more].concat();
    pair.source.create_topic(topic, 1, &settings)?;
    let batches: &[(i64, i32, &[&str])] =
        &[(0, 1, &["a", "b"]), (2, 1, &["c", "d", "e", "f"]), (6, 3, &["g", "h", "i", "j"])];
    write(&pair.source, (topic, 0), &Step { at: (0, -1), batches, epoch: 3, end: 10, ..Step::default() })
}

/// Cuts it to 2, behind its first batch, and gives it another history: epoch 5 from 2 to 9.
pub(super) fn rewind(pair: &Pair, topic: &str) -> anyhow::Result<()> {
    let step = Step {
        at: (10, 1),
        batches: &[(2, 5, &["C", "D", "E"]), (5, 5, &["F", "G", "H", "I"])],
        truncate_to: Some(2),
        epoch: 5,
        end: 9,
        ..Step::default()
    };
    write(&pair.source, (topic, 0), &step)
}

#[test]
fn a_source_that_is_gone_for_a_while_is_waited_for() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("away", 1, &[])?;
    produce(&pair.source, ("away", 0), 5)?;
    let mut config = pair.config(&["away"])?;
    config.source.attempts_max = 2;
    let mirror = Running::start(config)?;
    mirror.until_end(("away", 0), 15)?;
    let Pair { from: (home, host), to, source, copy } = pair;
    drop(source);
    host.kill()?;
    let waiting = mirror.until_state(("away", 0), State::Waiting)?;
    assert!(waiting.reason.is_some_and(|reason| reason.starts_with("source: ")), "says why");
    let host = home.start()?;
    let source = Client::connect(host.address())?;
    // Under the next epoch, as at every start.
    produce(&source, ("away", 0), 5)?;
    let pair = Pair { from: (home, host), to, source, copy };
    mirror.until_end(("away", 0), 30)?;
    mirror.stop();
    pair.check_whole("away", 0)?;
    pair.stop()
}

#[test]
fn a_chain_of_copies_is_one_history() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("chain", 2, &[])?;
    produce(&pair.source, ("chain", 0), 20)?;
    pair.once(&["chain"])?;
    let third = verbatim_tests::host::Home::new()?;
    let host = third.start()?;
    let mut config = pair.config(&["chain"])?;
    config.source = config.target.clone();
    config.target = verbatim_mirror::cluster::ClusterConfig::new([host.bootstrap()]);
    let snapshot = super::pair::once(config)?;
    assert!(states(&snapshot).iter().all(|(.., state)| *state == State::CaughtUp), "{snapshot:#?}");
    let bytes = |data| segments::log_bytes(data, "chain", 0).context("no log");
    assert_eq!(bytes(&third.data())?, bytes(&pair.from.0.data())?);
    host.stop()?;
    pair.stop()
}

#[test]
fn an_exact_source_that_holds_nothing_is_caught_up_and_followed_from_when_it_does() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic("empty", 1, EXACT)?;
    let id = ("empty", 0);
    let mirror = Running::start(pair.config(&["empty"])?)?;
    let found = mirror.until_state(id, State::CaughtUp)?;
    ensure!(found.reason.is_none() && found.end == 0, "{found:#?}");
    let first = Step { at: (0, -1), batches: &[(0, 1, &["a"])], epoch: 1, end: 1, ..Step::default() };
    write(&pair.source, id, &first)?;
    mirror.until_end(id, 1)?;
    mirror.stop();
    pair.check_whole("empty", 0)?;
    pair.stop()
}
