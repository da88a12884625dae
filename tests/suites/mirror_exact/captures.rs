//! Logs of a real Kafka that were captured, written to a host as a mirror writes them: the bytes are the captured ones, and
//! the host answers as the real broker did. Needs no Java.

use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use tokio::runtime::Runtime;
use verbatim_tests::answers::Answers;
use verbatim_tests::captures::{self, Capture};
use verbatim_tests::exact::EXACT;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::sources::EveryKind;
use verbatim_tests::random::Random;
use verbatim_tests::segments;
use verbatim_wire::exact_producer::{Config, ExactProducer};

#[test]
fn captured_logs_are_kept_byte_for_byte_and_answered_for_as_their_broker_did() -> anyhow::Result<()> {
    let captures = captures::all()?;
    let home = Home::new()?;
    let host = home.start()?;
    write(&host, &captures)?;
    check(&host, &captures, true)?;
    host.stop()?;
    for capture in &captures {
        let (topic, index) = (capture.partition.topic, u32::try_from(capture.partition.index)?);
        let stored = segments::log_bytes(&home.data(), topic, index)?;
        ensure!(stored == capture.log, "{topic}-{index}: the bytes differ");
    }
    // What is remembered outlives the process, but for producers whose records are more than a day old by now.
    let host = home.start()?;
    check(&host, &captures, false)?;
    host.stop()
}

#[test]
#[ignore = "writes tests/captures anew; see its README"]
fn captures_are_made_anew() -> anyhow::Result<()> {
    let mut random = Random::announced("captures_are_made_anew")?;
    let source = EveryKind::make(random.below(1 << 31))?.context("no Kafka")?;
    captures::make(&source)
}

fn write(host: &Host, captures: &[Capture]) -> anyhow::Result<()> {
    let mut topics = BTreeMap::new();
    for capture in captures {
        let partitions: &mut u32 = topics.entry(capture.partition.topic).or_default();
        *partitions += 1;
    }
    for (topic, partitions) in topics {
        host.create_topic(topic, partitions, &[EXACT])?;
    }
    Runtime::new()?.block_on(async {
        let producer = ExactProducer::start(Config::new(host.bootstrap()));
        for capture in captures {
            capture.write(&producer).await.with_context(|| format!("{:?}", capture.partition))?;
        }
        Ok(())
    })
}

fn check(host: &Host, captures: &[Capture], with_all_producers: bool) -> anyhow::Result<()> {
    let mut differences = Vec::new();
    for capture in captures {
        let partition = capture.partition;
        let name = (partition.topic, partition.index);
        let answers = Answers::ask(&[host.address()], name, &capture.times())?;
        let left = segments::headers(&capture.log)?;
        let left = (!partition.is_whole || !with_all_producers).then_some(left.as_slice());
        let found = capture.answers.differences(&answers, left);
        differences.extend(found.iter().map(|difference| format!("{name:?}: {difference}")));
    }
    ensure!(differences.is_empty(), "answers differ from the real broker's\n{}", differences.join("\n"));
    Ok(())
}
