//! Mirrors that meet lost answers, cut connections, kills, and sources that are slow or go away: the copy ends byte-identical to
//! its source all the same, answers as it does, and nothing but that is left behind.
//!
//! 20 rounds and 5 kills a source in `make test`, 200 and 50 in `make soak`; `VERBATIM_SEED` replays the faults. The sources are
//! a real Kafka, and a host that holds logs captured from one, which needs no Java.

mod copy;
mod flow;
mod source;

use anyhow::{Context, ensure};
use copy::{Copy, Mirror, add};
use source::{Expected, FLOW, Source};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;
use verbatim_tests::BesideLog as _;
use verbatim_tests::proxy::{Fault, Faults};
use verbatim_tests::random::Random;
use verbatim_tests::tools;

/// How long data may take from a growing source to its copy, a restart included.
const PATIENCE: Duration = Duration::from_secs(240);

#[test]
fn copies_of_kafka_through_lost_answers_and_cut_connections_are_exact() -> anyhow::Result<()> {
    let mut random = Random::announced("copies_of_kafka_through_lost_answers_and_cut_connections_are_exact")?;
    let Some(source) = Source::kafka(random.below(1 << 31))? else { return Ok(()) };
    rounds(&source, &mut random)
}

#[test]
fn copies_of_a_host_through_lost_answers_and_cut_connections_are_exact() -> anyhow::Result<()> {
    let mut random =
        Random::announced("copies_of_a_host_through_lost_answers_and_cut_connections_are_exact")?;
    rounds(&Source::host()?, &mut random)
}

#[test]
fn kills_of_mirror_and_copy_leave_copies_of_kafka_exact() -> anyhow::Result<()> {
    let mut random = Random::announced("kills_of_mirror_and_copy_leave_copies_of_kafka_exact")?;
    let Some(mut source) = Source::kafka(random.below(1 << 31))? else { return Ok(()) };
    kills(&mut source, &mut random)
}

#[test]
fn kills_of_mirror_and_copy_leave_copies_of_a_host_exact() -> anyhow::Result<()> {
    let mut random = Random::announced("kills_of_mirror_and_copy_leave_copies_of_a_host_exact")?;
    kills(&mut Source::host()?, &mut random)
}

/// Copies the source again and again, each time to an empty host and with other faults.
fn rounds(source: &Source, random: &mut Random) -> anyhow::Result<()> {
    let rounds = if verbatim_tests::soak() { 200 } else { 20 };
    let expected = source.expected(&[])?;
    let mut done = BTreeMap::new();
    for round in 1..=rounds {
        let seed = random.number();
        let faults = one_round(source, &expected, &mut Random::seeded(seed));
        add(&mut done, &faults.with_context(|| format!("round {round} of {rounds}"))?);
    }
    let before = source.done();
    verbatim_tests::announce(&format!("{rounds} rounds: at the source {before:?}, at the copy {done:?}"));
    ensure!(done.len() == 7 && before.len() == 7, "some faults did not happen: {before:?}, {done:?}");
    Ok(())
}

fn one_round(
    source: &Source,
    expected: &[Expected],
    random: &mut Random,
) -> anyhow::Result<BTreeMap<Fault, u32>> {
    let mut faults = || {
        let count = u32::try_from(random.below(12))?;
        anyhow::Ok(Faults { count: count + 3, one_in: 2 + random.below(10) })
    };
    let (before, behind) = (faults()?, faults()?);
    let copy = Copy::start(random.number(), behind)?;
    source.set_faults(before);
    let topics = topics(expected);
    let mirrored = copy.mirror_once(source, &topics);
    source.set_faults(Faults::NONE);
    copy.proxy.set_faults(Faults::NONE);
    let checked = mirrored.and_then(|output| {
        copy.check(expected).with_context(|| output.to_string())?;
        // Nothing is left that a second run would find, or change.
        copy.mirror_once(source, &topics).context("a second run")?;
        copy.check(expected).context("after a second run")
    });
    checked.with_context(|| {
        format!("{before:?} at the source, {behind:?} at the copy: {:?}", copy.proxy.done())
    })?;
    Ok(copy.proxy.done())
}

/// Copies a source that grows, by transactions too, and whose start moves; and kills mirror, host or both at random.
fn kills(source: &mut Source, random: &mut Random) -> anyhow::Result<()> {
    let kills = if verbatim_tests::soak() { 50 } else { 5 };
    let mut copy = Copy::start(random.number(), Faults::NONE)?;
    source.flow(random.below(1 << 31))?;
    let mut mirror = copy.mirror(source, &[FLOW])?;
    let mut seen = 0;
    for kill in 1..=kills {
        let context = format!("kill {kill} of {kills}");
        seen = grown(&copy, &mut mirror, seen).with_context(|| context.clone())?;
        let copied = *copy.ends(FLOW, 2)?.first().context("no copy")?;
        source.stir(kill, copied, random).with_context(|| context.clone())?;
        thread::sleep(random.millis(0, 300));
        mirror = one_kill(source, &mut copy, mirror, random.below(3)).context(context)?;
    }
    grown(&copy, &mut mirror, seen).context("after the last kill")?;
    source.halt()?;
    let expected = source.expected(&[FLOW])?;
    expected.iter().try_for_each(Expected::has_more_than_plain_data)?;
    let whole: Vec<i64> = expected.iter().map(|one| one.answers.high_watermark).collect();
    verbatim_tests::wait_for("end of the copy", PATIENCE, || {
        mirror.must_run()?;
        Ok((copy.ends(FLOW, 2)? == whole).then_some(()))
    })
    .with_context(|| mirror.output())?;
    mirror.kill()?;
    copy.mirror_once(source, &[FLOW])?;
    copy.check(&expected)
}

/// Waits until the copy has grown, and tells to how many offsets.
fn grown(copy: &Copy, mirror: &mut Mirror, before: i64) -> anyhow::Result<i64> {
    let grown = verbatim_tests::wait_for("growth of the copy", PATIENCE, || {
        mirror.must_run()?;
        let offsets = copy.ends(FLOW, 2)?.iter().sum();
        Ok((offsets > before).then_some(offsets))
    });
    grown.beside("the mirror", || mirror.output()).beside("the host", || copy.log())
}

/// Kills the mirror (0), the host (1) or both, and starts them again.
fn one_kill(source: &Source, copy: &mut Copy, mut mirror: Mirror, which: u64) -> anyhow::Result<Mirror> {
    if which != 1 {
        mirror.kill()?;
        if which == 0 {
            return copy.mirror(source, &[FLOW]);
        }
        mirror = copy.mirror(source, &[FLOW])?;
    }
    // What readers see is acknowledged, or will be; the mirror cannot bring it back before it is looked for.
    let ends = copy.ends(FLOW, 2)?;
    copy.kill()?;
    copy.start_again()?;
    let after = copy.ends(FLOW, 2)?;
    let kept = ends.iter().zip(&after).all(|(before, after)| before <= after);
    ensure!(kept && ends.len() <= after.len(), "ends before the kill {ends:?}, after it {after:?}");
    copy.open()?;
    Ok(mirror)
}

#[test]
fn a_source_that_is_throttled_and_goes_away_is_copied_all_the_same() -> anyhow::Result<()> {
    let mut random = Random::announced("a_source_that_is_throttled_and_goes_away_is_copied_all_the_same")?;
    let Some(mut source) = Source::kafka(random.below(1 << 31))? else { return Ok(()) };
    let Some(configs) = tools::find("kafka-configs")? else { return Ok(()) };
    let bootstrap = source.broker()?.bootstrap();
    let quota = ["--bootstrap-server", &bootstrap, "--alter", "--entity-type", "clients"];
    configs.succeed(
        &[&quota[..], &["--entity-name", "verbatim-mirror", "--add-config", "consumer_byte_rate=100000"]]
            .concat(),
    )?;
    let expected = source.expected(&[])?;
    let topics = topics(&expected);
    for _ in 0..if verbatim_tests::soak() { 10 } else { 1 } {
        let copy = Copy::start(random.number(), Faults::NONE)?;
        let mut mirror = copy.mirror(&source, &topics)?;
        verbatim_tests::wait_for("first data", PATIENCE, || {
            mirror.must_run()?;
            Ok(copy.ends("long", 2)?.iter().any(|end| *end > 0).then_some(()))
        })
        .with_context(|| mirror.output())?;
        thread::sleep(random.millis(0, 2_000));
        source.broker()?.stop(1)?;
        thread::sleep(random.millis(0, 5_000));
        source.broker()?.start_again(1)?;
        mirror.must_run()?;
        let expected = source.expected(&topics)?;
        let whole: Vec<i64> = expected.iter().map(|one| one.answers.high_watermark).collect();
        verbatim_tests::wait_for("end of the copy", PATIENCE, || {
            mirror.must_run()?;
            let ends: Vec<Vec<i64>> = expected
                .iter()
                .map(|one| copy.ends(&one.topic, one.index.cast_signed() + 1))
                .collect::<Result<_, _>>()?;
            Ok(ends.iter().zip(&whole).all(|(ends, whole)| ends.last() == Some(whole)).then_some(()))
        })
        .with_context(|| mirror.output())?;
        mirror.kill()?;
        copy.mirror_once(&source, &topics)?;
        copy.check(&expected)?;
    }
    Ok(())
}

fn topics(expected: &[Expected]) -> Vec<&str> {
    let mut topics: Vec<&str> = expected.iter().map(|one| one.topic.as_str()).collect();
    topics.dedup();
    topics
}
