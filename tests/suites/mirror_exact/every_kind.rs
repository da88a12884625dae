//! One broker with topics of every kind: what can lie in a log arrives as it is.

use super::compare::{PATIENCE, Side, config, differences, once, same_files};
use anyhow::{Context, ensure};
use std::fs;
use tokio::runtime::Runtime;
use verbatim_mirror::cluster::ClusterConfig;
use verbatim_mirror::mirror::state::{PartitionStatus, State};
use verbatim_mirror::mirror::{Mirror, OnDataLost};
use verbatim_mirror::verify::{Options, Verdict, Verifier, whole_name};
use verbatim_tests::BesideLog as _;
use verbatim_tests::answers::Answers;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::Kafka;
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
    copied.beside("the host", || host.log())?;
    lost_data_and_another_topic_stop_a_copy(&mut source, &home, &host)?;
    let stopped = lost_files_stop_a_copy(&mut source, &home, &host);
    stopped.beside("Kafka", || source.kafka.log())?;
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
        if let Err(error) = same_files(&side, home, name) {
            wrong.push(format!("{name:?}: {error}"));
        }
        wrong.extend(differences(&side, host, name, partition.is_whole)?);
    }
    ensure!(wrong.is_empty(), "source and copy differ\n{}", wrong.join("\n"));
    the_verifier_says_so(kafka, host)
}

/// Also of what was cleaned: it was copied as the cleaner left it.
fn the_verifier_says_so(kafka: &Kafka, host: &Host) -> anyhow::Result<()> {
    let (source, target) = (ClusterConfig::new([kafka.bootstrap()]), ClusterConfig::new([host.bootstrap()]));
    let verifier = Verifier::new(Options::new(source, target, vec![whole_name(".*")?]))?;
    let report = Runtime::new()?.block_on(verifier.run())?;
    let found = report.partitions.iter().map(|found| (found.topic.as_str(), found.partition));
    ensure!(found.eq(partitions().iter().map(|one| (one.topic, one.index))), "{:#?}", report.partitions);
    let wrong = report.partitions.iter().filter(|found| found.verdict != Verdict::Identical);
    let wrong: Vec<_> = wrong.collect();
    ensure!(report.exit_code() == 0 && wrong.is_empty(), "{wrong:#?}");
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
    let left = segments::from_offset(&ours, 500)?;
    ensure!(
        !left.is_empty() && theirs.ends_with(left),
        "the copy does not end with what the source still has"
    );
    Ok(())
}

/// A partition's files are lost while its broker is down: the same topic, which ends below the copy.
fn lost_files_stop_a_copy(source: &mut EveryKind, home: &Home, host: &Host) -> anyhow::Result<()> {
    let (name, topics) = (("stamped", 0), ["stamped", "codecs"]);
    let copy = || {
        let answers = Answers::ask(&[host.address()], name, &[])?;
        anyhow::Ok((segments::log_bytes(&home.data(), name.0, 0)?, answers))
    };
    let runtime = Runtime::new()?;
    let running = config(&source.kafka, host, &topics)?;
    let mirror = runtime.block_on(async { Mirror::start(running) });
    let are = |wanted: &dyn Fn(&PartitionStatus) -> bool| {
        let reached = verbatim_tests::wait_for("such states", PATIENCE, || {
            let partitions = mirror.snapshot().partitions;
            Ok((partitions.len() == 6 && partitions.iter().all(wanted)).then_some(partitions))
        });
        reached.with_context(|| format!("{:#?}", mirror.snapshot()))
    };
    are(&|status| status.state == State::CaughtUp)?;
    let before = copy()?;
    source.kafka.stop(1)?;
    for entry in fs::read_dir(segments::folder(&source.kafka.data(), name.0, 0)?)? {
        let path = entry?.path();
        if !path.ends_with("partition.metadata") {
            fs::remove_file(path)?;
        }
    }
    source.kafka.start_again(1)?;
    let is_lost = |status: &PartitionStatus| (status.topic.as_str(), status.partition) == name;
    let statuses = are(&|status| match is_lost(status) {
        true => status.state.is_stopped(),
        false => status.state == State::CaughtUp && status.source_epoch > before.1.leader_epoch,
    })?;
    let (_, end) = before.1.ends()?;
    let says_so = |statuses: &[PartitionStatus]| {
        let lost = statuses.iter().find(|status| is_lost(status)).context("no such partition")?;
        let reason = lost.reason.as_deref().unwrap_or_default();
        let expected =
            format!("the source was truncated: the first truncated offset is 0, the copy goes on to {end}");
        ensure!(lost.state == State::SourceTruncated && reason.starts_with(&expected), "{lost:#?}");
        ensure!(lost.end == end && copy()? == before, "the copy has changed: {lost:#?}");
        Ok(())
    };
    says_so(&statuses)?;
    runtime.block_on(mirror.stop());

    // It is no continuation once it has grown past the copy's end, either.
    source.maker.run("write stamped 0 6 3 200 enable.idempotence=false")?;
    let source_end = Answers::ask(&source.kafka.addresses(), name, &[])?.ends()?.1;
    ensure!(source_end == 600 && source_end > end, "{source_end}, {end}");
    says_so(&once(config(&source.kafka, host, &topics)?)?)
}
