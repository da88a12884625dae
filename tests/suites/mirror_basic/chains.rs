//! A source that is itself a copy, and lags behind what its own source has declared.

use super::pair::{Pair, Running, Step, states, write};
use std::thread;
use verbatim_mirror::mirror::state::State;
use verbatim_tests::random::Random;

const EXACT: &[(&str, &str)] = &[("produce.at.offset", "true")];

/// Epoch 3 to offset 10; its own source is at epoch 7, and ends at `end`.
fn lagging(pair: &Pair, topic: &str, end: i64) -> anyhow::Result<()> {
    pair.source.create_topic(topic, 1, EXACT)?;
    let batches: &[(i64, i32, &[&str])] = &[(0, 3, &["a", "b"]), (9, 3, &["c"])];
    write(&pair.source, (topic, 0), &Step { at: (0, -1), batches, epoch: 7, end, ..Step::default() })
}

/// What comes then: epoch 4 without data from 12 on, 5 from 14 on whose data begins at 17, and at last epoch 7.
fn the_rest(pair: &Pair, topic: &str) -> anyhow::Result<()> {
    let (entries, batches): (&[(i32, i64)], &[_]) = (&[(4, 12), (5, 14)], &[(17, 5, &["d"] as &[&str])]);
    let more = Step { at: (10, 3), batches, entries, epoch: 7, end: 100, ..Step::default() };
    write(&pair.source, (topic, 0), &more)?;
    let (entries, batches): (&[(i32, i64)], &[_]) = (&[(6, 20), (7, 25)], &[(30, 7, &["e", "f"] as &[&str])]);
    let more = Step { at: (18, 5), batches, entries, epoch: 7, end: 100, ..Step::default() };
    write(&pair.source, (topic, 0), &more)?;
    let hole =
        Step { at: (32, 7), entries: &[(9, 33)], end_to: Some(40), epoch: 9, end: 40, ..Step::default() };
    write(&pair.source, (topic, 0), &hole)
}

#[test]
fn epochs_that_come_below_the_one_it_shows_keep_their_starts() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    lagging(&pair, "live", 100)?;
    let mirror = Running::start(pair.config(&["live"])?)?;
    mirror.until("what there is", |snapshot| snapshot.partitions.iter().any(|one| one.end == 10))?;
    the_rest(&pair, "live")?;
    mirror.until_end(("live", 0), 40)?;
    mirror.stop();
    pair.check_whole("live", 0)?;

    lagging(&pair, "stepwise", 100)?;
    pair.once(&["stepwise"])?;
    the_rest(&pair, "stepwise")?;
    let snapshot = pair.once(&["stepwise"])?;
    assert_eq!(states(&snapshot), [("stepwise", 0, State::CaughtUp)], "{snapshot:#?}");
    pair.check_whole("stepwise", 0)?;
    pair.stop()
}

#[test]
fn an_epoch_that_is_only_shown_is_none_that_has_begun() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    lagging(&pair, "shown", 10)?;
    let mirror = Running::start(pair.config(&["shown"])?)?;
    mirror.until_end(("shown", 0), 10)?;
    the_rest(&pair, "shown")?;
    mirror.until_end(("shown", 0), 40)?;
    mirror.stop();
    pair.check_whole("shown", 0)?;
    pair.stop()
}

/// What the mirror knows of the leader may be older than the first batch, which brings the first leader epoch.
#[test]
fn a_source_that_gets_its_first_batch_meanwhile_is_copied() -> anyhow::Result<()> {
    let mut random = Random::announced("a_source_that_gets_its_first_batch_meanwhile_is_copied")?;
    let pair = Pair::new()?;
    for round in 0..20 {
        let topic = format!("new-{round}");
        pair.source.create_topic(&topic, 1, EXACT)?;
        let mirror = Running::start(pair.config(&[&topic])?)?;
        thread::sleep(random.millis(0, 40));
        let batches: &[(i64, i32, &[&str])] = &[(0, 3, &["a", "b"])];
        write(
            &pair.source,
            (&topic, 0),
            &Step { at: (0, -1), batches, epoch: 3, end: 2, ..Step::default() },
        )?;
        mirror.until_end((&topic, 0), 2)?;
        mirror.stop();
        pair.check_whole(&topic, 0)?;
    }
    pair.stop()
}
