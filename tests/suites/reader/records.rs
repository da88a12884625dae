//! The same records as the Java consumer and librdkafka see.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;
use verbatim_mirror::reader::{Isolation, Position, ReaderConfig, Record, Seek, TimestampType};
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::Home;
use verbatim_tests::kafka::sources::{EveryKind, partitions};
use verbatim_tests::random::Random;
use verbatim_tests::tools::{self, Tool};
use verbatim_tests::wait_for;

use super::{PATIENCE, Reading, partition};

#[test]
fn the_reader_sees_what_other_clients_see_of_logs_of_every_kind() -> anyhow::Result<()> {
    let (Some(java), Some(librdkafka)) = (tools::find("java-sequence")?, tools::python("sequence.py")?)
    else {
        return Ok(());
    };
    let test = "the_reader_sees_what_other_clients_see_of_logs_of_every_kind";
    let Some(source) = EveryKind::make(Random::announced(test)?.number() >> 1)? else { return Ok(()) };
    let bootstrap = source.kafka.bootstrap();
    let client = Client::connect(*source.kafka.addresses().first().context("no broker")?)?;
    let (mut stretches, mut lines) = (Vec::new(), Vec::new());
    for isolation in [Isolation::ReadUncommitted, Isolation::ReadCommitted] {
        let config = ReaderConfig { isolation, ..ReaderConfig::default() };
        let mut reader = Reading::start(&bootstrap, config)?;
        for source in partitions() {
            // The broker has just started, and may not lead yet.
            let place = (source.topic, source.index);
            let (start, _) = wait_for("log start", PATIENCE, || Ok(client.earliest(place).ok()))?;
            let (records, end) = whole(&mut reader, source.topic, source.index)?;
            if end > start {
                let index = source.index.to_string();
                stretches.push([
                    source.topic.to_owned(),
                    index,
                    start.to_string(),
                    "-".to_owned(),
                    end.to_string(),
                ]);
                lines.extend(records.iter().map(line));
                lines.push(json!({"position": end}));
            }
        }
        ensure!(lines.len() > 500, "only {} lines", lines.len());
        for program in [&java, &librdkafka] {
            same(program, &bootstrap, isolation, &stretches, &lines)?;
        }
        (stretches, lines) = (Vec::new(), Vec::new());
    }
    Ok(())
}

/// Everything in a partition, from the beginning to the end that it has at this isolation level.
fn whole(reader: &mut Reading, topic: &str, index: i32) -> anyhow::Result<(Vec<Record>, i64)> {
    let partition = partition(topic, index);
    reader.assign(&partition, Seek::End);
    reader.read_until(&partition, 0)?;
    let end = reader.position(&partition).context("no end")?.offset;
    reader.assign(&partition, Seek::Beginning);
    let records = reader.read_until(&partition, end)?;
    reader.reader.unassign(&partition);
    Ok((records, end))
}

fn same(
    program: &Tool,
    bootstrap: &str,
    isolation: Isolation,
    stretches: &[[String; 5]],
    lines: &[Value],
) -> anyhow::Result<()> {
    let isolation = match isolation {
        Isolation::ReadUncommitted => "read_uncommitted",
        Isolation::ReadCommitted => "read_committed",
    };
    let arguments = stretches.iter().flatten().map(String::as_str);
    let arguments: Vec<&str> = [bootstrap, isolation].into_iter().chain(arguments).collect();
    let others = program.json_lines(&arguments)?;
    for (at, (ours, other)) in lines.iter().zip(&others).enumerate() {
        ensure!(ours == other, "line {at} at {isolation}: ours {ours}, {program:?} {other}");
    }
    ensure!(lines.len() == others.len(), "{} lines, {program:?} has {}", lines.len(), others.len());
    Ok(())
}

/// A record as the programs print it.
fn line(record: &Record) -> Value {
    let headers =
        record.headers().map(|header| json!([hex(Some(&header.key)), hex(header.value.as_deref())]));
    json!({
        "offset": record.offset,
        "leaderEpoch": record.leader_epoch,
        "timestamp": record.timestamp,
        "timestampType": i32::from(record.timestamp_type == TimestampType::LogAppendTime),
        "key": hex(record.key.as_deref()),
        "value": hex(record.value.as_deref()),
        "headers": headers.collect::<Vec<_>>(),
    })
}

fn hex(bytes: Option<&[u8]>) -> Value {
    let text = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            // A string takes everything.
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    bytes.map_or(Value::Null, |bytes| text(bytes).into())
}

#[test]
fn waits_that_are_given_up_lose_and_repeat_nothing() -> anyhow::Result<()> {
    let mut random = Random::announced("waits_that_are_given_up_lose_and_repeat_nothing")?;
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("waited", 3, &[EXACT])?;
    let client = Client::connect(host.address())?;
    let mut reader = Reading::start(&host.bootstrap(), ReaderConfig::default())?;
    for index in 0..3 {
        reader.assign(&partition("waited", index), Seek::Beginning);
    }
    let mut read: Vec<Vec<i64>> = vec![Vec::new(); 3];
    for round in 0..40_i64 {
        for index in 0..3 {
            let base = round * 6;
            let batches = [batch(base, 1, &["a", "b"])?, batch(base + 3, 1, &["c", "d", "e"])?].concat();
            let tag = order((base, if round == 0 { -1 } else { 1 }), (0, base + 6), 1);
            let answer = client.produce(("waited", index), Some(&tag), &batches)?;
            ensure!(answer.error_code == 0, "{answer:?}");
        }
        for _ in 0..random.below(30) {
            let wait = Duration::from_micros(random.below(1_500));
            if let Some(record) = reader.next(wait) {
                let record = record?;
                read.get_mut(usize::try_from(record.partition.index)?)
                    .context("no partition")?
                    .push(record.offset);
            }
        }
    }
    for index in 0..3 {
        let partition = partition("waited", index);
        for record in reader.read_until(&partition, 240)? {
            read.get_mut(usize::try_from(record.partition.index)?)
                .context("no partition")?
                .push(record.offset);
        }
        ensure!(reader.position(&partition) == Some(Position::new(240, Some(1))));
    }
    let expected: Vec<i64> = (0..240).filter(|offset| offset % 6 != 2).collect();
    assert_eq!(read, vec![expected; 3]);
    drop(client);
    host.stop()
}
