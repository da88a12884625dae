//! One broker with topics of every kind: what can lie in a log arrives as it is.

use super::compare::{Side, config, differences, from_offset, once, same_files};
use anyhow::{Context, ensure};
use verbatim_mirror::mirror::OnDataLost;
use verbatim_mirror::mirror::state::State;
use verbatim_tests::answers::Answers;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::sources::{EveryKind, partitions};
use verbatim_tests::random::Random;
use verbatim_tests::segments;

#[test]
fn topics_of_every_kind_are_copied_byte_for_byte_and_answered_for_alike() -> anyhow::Result<()> {
    let mut random =
        Random::announced("topics_of_every_kind_are_copied_byte_for_byte_and_answered_for_alike")?;
    let Some(mut source) = EveryKind::make(random.below(1 << 31))? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    let copied = all_are_copied(&source, &home, &host);
    copied.with_context(|| format!("the host's log\n{}", host.log()))?;
    lost_data_and_another_topic_stop_a_copy(&mut source, &home, &host)?;
    host.stop()
}

fn all_are_copied(source: &EveryKind, home: &Home, host: &Host) -> anyhow::Result<()> {
    let kafka = &source.kafka;
    for status in once(config(kafka, host, &[".*"])?)? {
        ensure!(status.state == State::CaughtUp, "{status:#?}");
    }
    let data = kafka.data();
    let side = Side { addresses: kafka.addresses(), data: &data };
    let mut wrong = Vec::new();
    for partition in partitions() {
        let name = (partition.topic, partition.index);
        if let Err(error) = same_files(&data, home, name) {
            wrong.push(format!("{name:?}: {error}"));
        }
        wrong.extend(differences(&side, host, name, partition.is_whole)?);
    }
    ensure!(wrong.is_empty(), "source and copy differ\n{}", wrong.join("\n"));
    Ok(())
}

/// The source deletes what was not copied yet; and a topic of the same name is another topic.
fn lost_data_and_another_topic_stop_a_copy(
    source: &mut EveryKind,
    home: &Home,
    host: &Host,
) -> anyhow::Result<()> {
    source.maker.run_all(
        "write retained 0 5 3 30 enable.idempotence=false
         trim retained 0 500
         delete idempotent
         create idempotent 1 1
         write idempotent 0 6 1 10",
    )?;
    let before = Answers::ask(&[host.address()], ("idempotent", 0), &[])?;
    let statuses = once(config(&source.kafka, host, &["retained", "idempotent", "stamped"])?)?;
    let state = |topic: &str| {
        let found = statuses.iter().find(|status| status.topic == topic);
        found.with_context(|| format!("no {topic}"))
    };
    let lost = state("retained")?;
    ensure!(lost.state == State::SourceDataLost && lost.source_start == 500, "{lost:#?}");
    let recreated = state("idempotent")?;
    ensure!(recreated.state == State::SourceRecreated, "{recreated:#?}");
    ensure!(state("stamped")?.state == State::CaughtUp, "{:#?}", state("stamped")?);
    ensure!(Answers::ask(&[host.address()], ("idempotent", 0), &[])? == before, "the copy has changed");

    // Where the hole is to be skipped, the copy goes on at the source's start.
    let mut config = config(&source.kafka, host, &["retained"])?;
    config.on_data_lost = OnDataLost::Skip;
    let statuses = once(config)?;
    let skipped = statuses.first().context("no partition")?;
    ensure!(skipped.state == State::CaughtUp && skipped.skipped.len() == 1, "{skipped:#?}");
    let (ours, theirs) = (source.kafka.data(), home.data());
    let (ours, theirs) =
        (segments::log_bytes(&ours, "retained", 0)?, segments::log_bytes(&theirs, "retained", 0)?);
    let left = from_offset(&ours, 500)?;
    ensure!(
        !left.is_empty() && theirs.ends_with(left),
        "the copy does not end with what the source still has"
    );
    Ok(())
}
