//! Two mirrors of the same topics into one destination: nobody wants that, and nothing is spoilt by it.

use super::follows::add_partitions;
use super::pair::{Pair, Running, delete_records, once, produce, states};
use anyhow::ensure;
use std::thread;
use verbatim_mirror::mirror::state::State;

const TOPIC: &str = "shared";

/// Every partition has caught up, and holds what the source does.
fn check(pair: &Pair, partitions: u32) -> anyhow::Result<()> {
    (0..partitions).try_for_each(|partition| pair.check_same(TOPIC, partition))
}

#[test]
fn two_mirrors_that_run_on_make_one_exact_copy() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic(TOPIC, 2, &[])?;
    produce(&pair.source, (TOPIC, 0), 50)?;
    let mirrors = [Running::start(pair.config(&[TOPIC])?)?, Running::start(pair.config(&[TOPIC])?)?];
    let mut end = 150;
    for partitions in 3..=6 {
        add_partitions(&pair.source, TOPIC, partitions)?;
        produce(&pair.source, (TOPIC, partitions - 1), 20)?;
        produce(&pair.source, (TOPIC, 0), 20)?;
        end += 60;
        for mirror in &mirrors {
            mirror.until_end((TOPIC, 0), end)?;
            mirror.until_end((TOPIC, partitions - 1), 60)?;
        }
    }
    delete_records(&pair.source, TOPIC, 0, 100)?;
    verbatim_tests::wait_for("the copy's start", super::pair::PATIENCE, || {
        Ok((pair.copy.earliest((TOPIC, 0))?.0 == 100).then_some(()))
    })?;
    for mirror in mirrors {
        let last = mirror.stop();
        ensure!(states(&last) == caught_up(6), "{last:#?}");
    }
    check(&pair, 6)?;
    pair.stop()
}

#[test]
fn two_mirrors_that_end_when_all_is_copied_make_one_exact_copy() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.source.create_topic(TOPIC, 3, &[])?;
    for round in 1..=5 {
        (0..3).try_for_each(|partition| produce(&pair.source, (TOPIC, partition), 40))?;
        let configs = [pair.config(&[TOPIC])?, pair.config(&[TOPIC])?];
        let running = configs.map(|config| thread::spawn(|| once(config)));
        for ended in running {
            let last = ended.join().map_err(|_| anyhow::anyhow!("a mirror panicked"))??;
            ensure!(states(&last) == caught_up(3), "round {round}: {last:#?}");
        }
        check(&pair, 3)?;
    }
    pair.stop()
}

fn caught_up(partitions: i32) -> Vec<(&'static str, i32, State)> {
    (0..partitions).map(|partition| (TOPIC, partition, State::CaughtUp)).collect()
}
