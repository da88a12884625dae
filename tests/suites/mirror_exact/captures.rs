//! Logs of a real Kafka that were captured, written to a host as a mirror writes them: the bytes are the captured ones, and
//! the host answers as the real broker did. Needs no Java.

use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use verbatim_tests::answers::{Answers, Producer};
use verbatim_tests::captures::{self, Capture};
use verbatim_tests::exact::EXACT;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::premise;
use verbatim_tests::kafka::sources::EveryKind;
use verbatim_tests::random::Random;
use verbatim_tests::segments;
use verbatim_wire::exact_producer::{Config, ExactProducer};

/// A day, but for the time that this test may take.
const DAY: Duration = Duration::from_secs(23 * 3_600);

#[test]
fn captured_logs_are_kept_byte_for_byte_and_answered_for_as_their_broker_did() -> anyhow::Result<()> {
    let captures = captures::all()?;
    premise::check(&captures.iter().map(Capture::files).collect::<Vec<_>>())?;
    let home = Home::new()?;
    let host = home.start()?;
    write(&host, &captures)?;
    check(&host, &captures, None)?;
    host.stop()?;
    for capture in &captures {
        let (topic, index) = (capture.partition.topic, u32::try_from(capture.partition.index)?);
        let stored = segments::log_bytes(&home.data(), topic, index)?;
        // Segments below the log start may be gone, and nothing else.
        let needed = segments::from_offset(&capture.log, capture.answers.earliest.offset)?;
        let same = capture.log.ends_with(&stored) && stored.ends_with(needed);
        ensure!(same, "{topic}-{index}: {} bytes of {} differ", stored.len(), capture.log.len());
    }
    // What is remembered outlives the process, but for producers whose records are more than a day old by now.
    let day_ago = SystemTime::now().duration_since(UNIX_EPOCH)?.saturating_sub(DAY);
    let day_ago = i64::try_from(day_ago.as_millis())?;
    let host = home.start()?;
    check(&host, &captures, Some(day_ago))?;
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

/// With `day_ago`, in milliseconds since 1970, the host may have forgotten producers that were idle since before.
fn check(host: &Host, captures: &[Capture], day_ago: Option<i64>) -> anyhow::Result<()> {
    let mut differences = Vec::new();
    for capture in captures {
        let partition = capture.partition;
        let name = (partition.topic, partition.index);
        let answers = Answers::ask(&[host.address()], name, &capture.times())?;
        let mut expected = capture.answers.clone();
        if let Some(day_ago) = day_ago {
            let may_be_forgotten =
                |producer: &Producer| producer.transaction_start < 0 && producer.last_timestamp < day_ago;
            let told = &answers.producers;
            expected.producers.retain(|producer| !may_be_forgotten(producer) || told.contains(producer));
        }
        let left = segments::headers(&capture.log)?;
        let found = expected.differences(&answers, (!partition.is_whole).then_some(left.as_slice()));
        differences.extend(found.iter().map(|difference| format!("{name:?}: {difference}")));
    }
    ensure!(differences.is_empty(), "answers differ from the real broker's\n{}", differences.join("\n"));
    Ok(())
}
