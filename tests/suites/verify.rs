//! `verbatim verify` between two hosts: equal logs are identical, each single difference is found where it is.

#![expect(clippy::indexing_slicing, reason = "a JSON value gives null for what it lacks")]

mod pair;
mod redacted;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use verbatim_batch::{HEADER_LEN, place, reseal};
use verbatim_tests::client::Client;
use verbatim_tests::exact::batch;
use verbatim_tests::host::{Host, free_address};
use verbatim_tests::kafka::Kafka;
use verbatim_tests::programs;
use verbatim_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use verbatim_wire::messages::{GroupId, OffsetCommitRequest, TopicName};
use verbatim_wire::protocol::StrBytes;

use pair::{Pair, full, rewritten, whole};

#[test]
fn equal_logs_are_identical_and_each_side_alone_has_the_same_digest() -> anyhow::Result<()> {
    let pair = Pair::start()?;
    pair.topic("same", &[], &full()?, &full()?)?;
    let (code, report) = pair.verify(&["--topics", "same"])?;
    let partition = &report["partitions"][0];
    assert_eq!((code, &partition["verdict"]), (0, &json!("identical")), "{report}");
    assert_eq!(partition["range"], json!({"from": 0, "to": 15}));
    assert_eq!(partition["count"]["source"], partition["count"]["target"]);
    assert_eq!(partition["count"]["source"]["batches"], 8);
    assert_eq!(partition["notes"], json!([]));
    let digest = &partition["digest"]["source"];
    assert_eq!(digest, &partition["digest"]["target"]);
    for side in ["source", "target"] {
        let (code, alone) = pair.alone(side, &["--topics", "same"])?;
        assert_eq!((code, &alone["partitions"][0]["digest"]["source"]), (0, digest), "{side}: {alone}");
    }
    let part = ["--topics", "same", "--from-offset", "4", "--to-offset", "13"];
    let (_, both) = pair.verify(&part)?;
    let (_, alone) = pair.alone("target", &part)?;
    let digest_of_part = &both["partitions"][0]["digest"]["source"];
    assert_eq!(digest_of_part, &alone["partitions"][0]["digest"]["source"]);
    assert_ne!(digest_of_part, digest);

    // For people it is told in short groups.
    let shown = pair.run(&["--topics", "same"])?.success()?;
    let digits = digest.as_str().context("no digest")?;
    let groups = [0, 4, 8, 12].map(|at| digits.get(at..at + 4).unwrap_or_default()).join("-");
    ensure!(shown.contains(&groups) && shown.contains("identical"), "{shown}");
    pair.stop()
}

#[test]
fn each_single_planted_difference_is_found_at_its_offset() -> anyhow::Result<()> {
    let pair = Pair::start()?;
    for (name, offset, target) in planted()? {
        pair.topic(name, &[], &full()?, &target)?;
        let (code, report) = pair.verify(&["--topics", name])?;
        let partition = &report["partitions"][0];
        assert_eq!((code, &partition["verdict"]), (1, &json!("diverged")), "{name}: {report}");
        assert_eq!(partition["difference"]["offset"], json!(offset), "{name}: {report}");
    }
    let (code, report) = pair.verify(&["--topics", ".*"])?;
    assert_eq!(code, 1);
    assert_eq!(report["partitions"].as_array().map(Vec::len), Some(planted()?.len()));

    let shown = pair.run(&["--topics", "flipped"])?;
    ensure!(shown.stdout.contains("the record at offset 10 differs in value"), "{shown}");
    ensure!(shown.stdout.contains("SOURCE") && shown.stdout.contains("crc"), "{shown}");
    pair.stop()
}

/// A name, the offset at which it differs from the full log, and the log.
type Planted = (&'static str, i64, Vec<Vec<u8>>);

/// The full log with one difference each.
fn planted() -> anyhow::Result<Vec<Planted>> {
    let log = full()?;
    let changed = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut log = log.clone();
        change(&mut log);
        log
    };
    let mut flipped = log.clone();
    // The last bytes of the batch are its last record's value and its number of headers.
    let byte = flipped.get_mut(5).and_then(|batch| batch.iter_mut().rev().nth(1)).context("no byte")?;
    *byte ^= 1;
    flipped.get_mut(5).map(|batch| reseal(batch)).context("no batch")??;
    let mut shifted = log.clone();
    shifted.get_mut(6).map(|batch| place(batch, 11, 2)).context("no batch")??;
    let mut epoch = log.clone();
    epoch.get_mut(6).map(|batch| place(batch, 12, 1)).context("no batch")??;
    let (inside, behind) = (batch(11, 1, &["z"])?, batch(15, 2, &["z"])?);
    Ok(vec![
        ("flipped", 10, flipped),
        ("shifted", 11, shifted),
        ("epoch", 12, epoch),
        ("missing-batch", 9, changed(&|log| drop(log.remove(5)))),
        ("missing-marker", 5, changed(&|log| drop(log.remove(2)))),
        ("extra-batch", 11, changed(&|log| log.insert(6, inside.clone()))),
        ("extra-at-the-end", 15, changed(&|log| log.push(behind.clone()))),
    ])
}

#[test]
fn a_copy_that_is_behind_or_not_there_is_called_so() -> anyhow::Result<()> {
    let pair = Pair::start()?;
    let log = full()?;
    let (_, but_the_last) = log.split_last().context("no batch")?;
    pair.topic("behind", &[], &log, but_the_last)?;
    pair.topic("fresh", &[], &log, &[])?;
    pair.source.create_topic("missing", 2, &[])?;
    let (code, report) = pair.verify(&["--topics", "behind|fresh,missing"])?;
    assert_eq!(code, 1, "{report}");
    let verdicts = |report: &Value| -> Vec<(Value, Value)> {
        let partitions = report["partitions"].as_array().cloned().unwrap_or_default();
        partitions.iter().map(|one| (one["verdict"].clone(), one["behind"].clone())).collect()
    };
    let told = |verdict: &str, behind: i64| (json!(verdict), json!(behind));
    assert_eq!(
        verdicts(&report),
        [told("behind", 2), told("behind", 15), told("missing", 0), told("missing", 0)],
        "{report}"
    );
    let (code, report) = pair.verify(&["--topics", "behind", "--to-offset", "13"])?;
    assert_eq!((code, verdicts(&report)), (0, vec![told("identical", 0)]), "{report}");
    pair.stop()
}

#[test]
fn committed_offsets_are_equal_or_named_with_both_sides() -> anyhow::Result<()> {
    let pair = Pair::start()?;
    pair.topic("read", &[], &full()?, &full()?)?;
    for host in [&pair.source, &pair.target] {
        commit(host, "same", "read", (13, 2))?;
        commit(host, "moved", "read", (9, 1))?;
    }
    let asked = ["--topics", "read", "--groups", "same,moved"];
    let (code, report) = pair.verify(&asked)?;
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["groups"].as_array().map(Vec::len), Some(2), "{report}");

    commit(&pair.target, "moved", "read", (12, 2))?;
    let (code, report) = pair.verify(&asked)?;
    assert_eq!(code, 1, "{report}");
    let groups = report["groups"].as_array().context("no groups")?;
    let differing: Vec<&Value> = groups.iter().filter(|one| one["verdict"] != "identical").collect();
    let [moved] = differing[..] else { anyhow::bail!("{report}") };
    assert_eq!(
        (&moved["group"], &moved["topic"], &moved["partition"], &moved["verdict"]),
        (&json!("moved"), &json!("read"), &json!(0), &json!("diverged"))
    );
    let of = |offset: i64, leader_epoch: i32| json!({"offset": offset, "leader_epoch": leader_epoch, "metadata": ""});
    assert_eq!(moved["committed"], json!({"source": of(9, 1), "target": of(12, 2)}));
    // A group that is not asked for is not looked at.
    let (code, report) = pair.verify(&["--topics", "read", "--groups", "same"])?;
    assert_eq!((code, report["groups"].as_array().map(Vec::len)), (0, Some(1)), "{report}");
    pair.stop()
}

/// Commits an offset and leader epoch for partition 0, as one who is no member.
fn commit(host: &Host, group: &str, topic: &str, (offset, epoch): (i64, i32)) -> anyhow::Result<()> {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let partition = OffsetCommitRequestPartition::default()
        .with_committed_offset(offset)
        .with_committed_leader_epoch(epoch)
        .with_committed_metadata(Some(text("")));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(TopicName(text(topic)))
        .with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    let answer = Client::connect(host.address())?.call(&request)?;
    let codes: Vec<i16> =
        answer.topics.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code).collect();
    ensure!(codes == [0], "{answer:?}");
    Ok(())
}

#[test]
fn what_compaction_leaves_is_compacted_equal_whichever_side_was_compacted() -> anyhow::Result<()> {
    let pair = Pair::start()?;
    let log = whole()?;
    let compacted = rewritten()?;
    let compact = ["cleanup.policy=compact"];
    pair.topic("target-compacted", &compact, &log, &compacted)?;
    pair.topic("source-compacted", &compact, &compacted, &log)?;
    pair.topic("not-compacted", &[], &log, &compacted)?;
    let mut lost = compacted.clone();
    // The last record of the key k2.
    lost.remove(1);
    pair.topic("lost", &compact, &log, &lost)?;
    for (topic, side) in [("target-compacted", "target"), ("source-compacted", "source")] {
        let (code, report) = pair.verify(&["--topics", topic])?;
        let partition = &report["partitions"][0];
        assert_eq!((code, &partition["verdict"]), (0, &json!("compacted-equal")), "{report}");
        assert_eq!(partition["compacted"], json!({"side": side, "records": 3, "batches": 1}), "{report}");
        assert_ne!(partition["digest"]["source"], partition["digest"]["target"]);
    }
    for (topic, offset) in [("not-compacted", 0), ("lost", 4)] {
        let (code, report) = pair.verify(&["--topics", topic])?;
        assert_eq!((code, &report["partitions"][0]["difference"]["offset"]), (1, &json!(offset)), "{report}");
    }
    let (code, report) = pair.verify(&["--topics", "target-compacted", "--keys-max", "0"])?;
    assert_eq!((code, &report["partitions"][0]["verdict"]), (2, &json!("undecided")), "{report}");
    ensure!(report.to_string().contains("keys-max"), "{report}");
    pair.stop()
}

#[test]
fn a_sample_says_that_it_is_one_and_what_it_looked_at() -> anyhow::Result<()> {
    let pair = Pair::start()?;
    let (_, _, flipped) = planted()?.into_iter().next().context("nothing planted")?;
    pair.topic("same", &[], &full()?, &full()?)?;
    pair.topic("flipped", &[], &full()?, &flipped)?;
    let (code, report) = pair.verify(&["--topics", "same", "--sample", "0.3", "--seed", "7"])?;
    let partition = &report["partitions"][0];
    assert_eq!(
        (code, &partition["verdict"], &partition["sampled"]["seed"]),
        (0, &json!("identical"), &json!(7))
    );
    assert_eq!(partition["digest"]["source"], Value::Null);
    ensure!(
        partition["sampled"]["windows"].as_array().is_some_and(|windows| !windows.is_empty()),
        "{report}"
    );
    let again = pair.verify(&["--topics", "same", "--sample", "0.3", "--seed", "7"])?.1;
    assert_eq!(again["partitions"][0]["sampled"], partition["sampled"]);
    let shown = pair.run(&["--topics", "same", "--sample", "0.3", "--seed", "7"])?.success()?;
    ensure!(shown.contains("identical (sampled)") && shown.contains("seed 7"), "{shown}");
    let (code, report) = pair.verify(&["--topics", "flipped", "--sample", "1"])?;
    assert_eq!((code, &report["partitions"][0]["difference"]["offset"]), (1, &json!(10)), "{report}");
    pair.stop()
}

#[test]
fn one_that_was_killed_goes_on_where_it_was() -> anyhow::Result<()> {
    let pair = Pair::start()?;
    let value = "v".repeat(10_000);
    let log: Vec<Vec<u8>> =
        (0..200).map(|offset| batch(offset, 0, &[value.as_str()])).collect::<Result<_, _>>()?;
    pair.topic("large", &[], &log, &log)?;
    let fresh = pair.verify(&["--topics", "large"])?.1;
    let folder = tempfile::tempdir()?;
    let state = folder.path().join("state.json");
    let file = state.display().to_string();
    let arguments = ["--topics", "large", "--state", &file, "--fetch-bytes-max", "40000"];
    let saved_at = || -> Option<i64> {
        let content: Value = serde_json::from_slice(&std::fs::read(&state).ok()?).ok()?;
        content["partitions"][0]["saved"]["at"].as_i64()
    };
    let slow = [&arguments[..], &["--bytes-per-second", "400000"]].concat();
    let mut first = Command::new(programs::verbatim()?).args(pair.arguments(&slow)).spawn()?;
    let at = verbatim_tests::wait_for("progress", Duration::from_secs(60), || {
        Ok(saved_at().filter(|at| *at >= 20))
    })?;
    ensure!(first.try_wait()?.is_none(), "it had ended before it was killed");
    first.kill()?;
    first.wait()?;

    let output = pair.run(&["--topics", "large", "--state", &file, "--to-offset", "100"])?;
    ensure!(output.status.code() == Some(2) && output.stderr.contains("to-offset is `none`"), "{output}");
    let (code, report) = pair.verify(&arguments)?;
    let partition = &report["partitions"][0];
    assert_eq!((code, &partition["verdict"]), (0, &json!("identical")), "{report}");
    ensure!(partition["resumed_from"].as_i64() >= Some(at), "{at}: {report}");
    for field in ["digest", "count", "range"] {
        assert_eq!(partition[field], fresh["partitions"][0][field], "{field}");
    }
    ensure!(!state.exists(), "everything is decided, so the file is gone");
    pair.stop()
}

#[test]
fn a_wrong_call_and_a_cluster_that_does_not_answer_are_exit_code_2() -> anyhow::Result<()> {
    let pair = Pair::start()?;
    pair.topic("same", &[], &full()?, &full()?)?;
    let nobody = free_address()?.to_string();
    let source = pair.source.bootstrap();
    for (arguments, told) in [
        (vec!["--source", &source, "--topics", "same"], "target is missing"),
        (vec!["--source", "nonsense", "--target", &source, "--topics", "same"], "source=`nonsense`"),
        (vec!["--source", &source, "--target", &source, "--topics", "("], "topics=`(`"),
        (vec!["--source", &source, "--target", &source, "--topics", "nothing"], "nothing"),
        (vec!["--source", &source, "--target", &source, "--topics", "same", "--sample", "0"], "sample=`0`"),
        (vec!["--source", &source, "--target", &nobody, "--topics", "same"], nobody.as_str()),
    ] {
        let output = pair.source.verbatim(&[&["verify"][..], &arguments].concat(), b"")?;
        ensure!(output.status.code() == Some(2) && output.stderr.contains(told), "{told}: {output}");
    }
    pair.stop()
}

#[test]
fn it_speaks_to_apache_kafka() -> anyhow::Result<()> {
    let Some(kafka) = Kafka::start()? else { return Ok(()) };
    let client = Client::connect(kafka.bootstrap().parse()?)?;
    client.create_topic("plain", 1, &[("retention.ms", "-1")])?;
    for value in ["a", "b", "c"] {
        let mut one = batch(0, 0, &[value, value])?;
        ensure!(one.len() > HEADER_LEN);
        place(&mut one, 0, -1)?;
        // A topic that has just been created has no leader yet.
        let answer = verbatim_tests::wait_for("leader", Duration::from_secs(60), || {
            Ok(Some(client.produce(("plain", 0), None, &one)?).filter(|answer| answer.error_code != 6))
        })?;
        ensure!(answer.error_code == 0, "{answer:?}");
    }
    let pair = Pair::start()?;
    let written = client.fetch_all(("plain", 0), 0)?;
    let epoch = client.latest(("plain", 0))?.1;
    pair.target.create_topic("plain", 1, &[verbatim_tests::exact::EXACT])?;
    pair.write(&pair.target, "plain", &[written], epoch)?;
    let bootstrap = kafka.bootstrap();
    let target = pair.target.bootstrap();
    let arguments = ["verify", "--source", &bootstrap, "--target", &target, "--topics", "plain"];
    let output = pair.source.verbatim(&[&arguments[..], &["--output", "json"]].concat(), b"")?;
    let report: Value = serde_json::from_str(&output.stdout).with_context(|| output.to_string())?;
    assert_eq!(
        (output.status.code(), &report["partitions"][0]["verdict"]),
        (Some(0), &json!("identical")),
        "{output}"
    );
    pair.stop()
}
