//! A source of every kind: topics of one broker that hold whatever a real log can hold.
//!
//! It is written in four rounds with a restart behind each, so every partition has at least four leader epochs, the last one
//! without data. Cleaning and retention run while it is made, and are off when it is handed over: its files stay as they are.
//!
//! No log here ends above its last batch: Kafka's cleaner leaves the last batch below an empty last segment as one without
//! records, so such ends are scripted (`mirror_basic::copies`).

use super::maker::Maker;
use super::premise::{self, Files};
use super::{Kafka, LIVELY};
use crate::BesideLog as _;
use crate::client::Client;
use crate::segments;
use anyhow::Context;
use std::fs;
use std::time::Duration;

/// How long cleaning and retention may take to come round.
const PATIENCE: Duration = Duration::from_secs(240);

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

/// One partition of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePartition {
    /// Its topic.
    pub topic: &'static str,
    /// Its index.
    pub index: i32,
    /// True if nothing was ever deleted or cleaned away: a copy of it has everything that its source ever had.
    pub is_whole: bool,
}

/// A broker that holds topics of every kind, and the program that made them, with its transactions still open.
#[derive(Debug)]
pub struct EveryKind {
    /// The broker.
    pub kafka: Kafka,
    /// The program.
    pub maker: Maker,
}

/// Topics, the number of their partitions, and whether these are whole.
const TOPICS: &[(&str, i32, bool)] = &[
    ("codecs", 5, true),
    ("idempotent", 1, true),
    ("transactions", 2, true),
    ("stamped", 1, true),
    ("large", 1, true),
    ("huge", 1, true),
    ("orders", 2, true),
    ("empty", 1, true),
    ("compacted", 3, false),
    ("retained", 1, false),
    ("trimmed", 1, false),
    ("emptied", 1, false),
];

/// All partitions of [`EveryKind`], by topic and index.
pub fn partitions() -> Vec<SourcePartition> {
    let of = |&(topic, count, is_whole): &(&'static str, i32, bool)| {
        (0..count).map(move |index| SourcePartition { topic, index, is_whole })
    };
    let mut partitions: Vec<_> = TOPICS.iter().flat_map(of).collect();
    partitions.sort();
    partitions
}

const CREATE: &str = "
    create codecs 5 1 retention.ms=-1
    create idempotent 1 1 retention.ms=-1
    create transactions 2 1 retention.ms=-1
    create stamped 1 1 retention.ms=-1 message.timestamp.type=LogAppendTime
    create large 1 1 retention.ms=-1
    create huge 1 1 retention.ms=-1 max.message.bytes=8388608
    create orders 2 1 retention.ms=-1
    create empty 1 1 retention.ms=-1
    create compacted 3 1 cleanup.policy=compact segment.ms=5000 min.cleanable.dirty.ratio=0.01
    create retained 1 1 retention.ms=-1 segment.ms=900
    create trimmed 1 1 retention.ms=-1
    create emptied 1 1 retention.ms=-1
";

/// What is written in each round: `{round}` and `{count}` stand for numbers.
const ROUND: &str = "
    write stamped 0 {round} 2 {count} enable.idempotence=false
    write transactions 0 {round} 1 {count} enable.idempotence=false
    transact transactions 0 {round} 7 commit first
    transact transactions 0 {round} 5 begin second
    transact transactions 0 {round} 6 abort first
    transact transactions 0 {round} 4 commit second
    transact transactions 1 {round} 3 begin first
    transact transactions 0 {round} 3 begin first
    transact transactions 1 {round} 3 abort first
    write compacted 0 {round} 2 24 enable.idempotence=false keys=12 step=400
    write compacted 0 {round}5 1 12 enable.idempotence=false keys=12
    write compacted 1 {round} 2 12 client.id=of-{round} keys=12 step=400
    write compacted 1 {round}5 1 12 client.id=too-{round} keys=12
    transact compacted 2 {round} 12 commit third
    transact compacted 2 {round} 5 abort fourth
    transact compacted 2 {round}5 12 commit fourth
    write retained 0 {round} 4 {count} enable.idempotence=false
    write trimmed 0 {round} 2 20 compression.type=lz4
    write emptied 0 {round} 1 {count} compression.type=zstd
    write orders 0 {round} 3 {count} compression.type=lz4
    transact orders 0 {round} 9 commit till
    write orders 1 {round} 4 {count} enable.idempotence=false compression.type=zstd
    transact orders 1 {round} 8 abort till
    transact orders 1 {round} 6 commit till
";

impl EveryKind {
    /// Starts a broker, fills it, and makes sure that it holds what it should. Takes half a minute. `None` without Kafka.
    ///
    /// # Errors
    /// With the broker's log, if something does not go as it should.
    pub fn make(seed: u64) -> anyhow::Result<Option<Self>> {
        let Some(mut kafka) = Kafka::start_with(1, LIVELY)? else { return Ok(None) };
        let Some(mut maker) = Maker::start(&kafka.bootstrap(), seed)? else { return Ok(None) };
        let made = fill(&mut kafka, &mut maker).and_then(|()| premise::check(&files(&kafka)?));
        match made {
            Ok(()) => Ok(Some(Self { kafka, maker })),
            Err(error) => Err(error).beside("Kafka", || kafka.log()),
        }
    }
}

fn fill(kafka: &mut Kafka, maker: &mut Maker) -> anyhow::Result<()> {
    maker.run_all(CREATE)?;
    for round in 1..=4 {
        write_round(maker, round)?;
        if round == 4 {
            delete_and_clean(kafka, maker)?;
        }
        kafka.stop(1)?;
        kafka.start_again(1)?;
    }
    // A broker that answers has not taken up its partitions yet.
    crate::wait_for("last leader epoch", PATIENCE, || {
        let are_led = files(kafka)?.iter().map(premise::is_led_anew).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(are_led.iter().all(|is_led| *is_led).then_some(()))
    })
}

/// What lies in the folders of the broker's partitions.
fn files(kafka: &Kafka) -> anyhow::Result<Vec<Files>> {
    let of = |partition: SourcePartition| {
        let (data, topic, index) = (kafka.data(), partition.topic, u32::try_from(partition.index)?);
        let epochs = segments::leader_epochs(&segments::folder(&data, topic, index)?)?;
        let log = segments::log_bytes(&data, topic, index)?.into();
        Ok(Files { partition, log, epochs, start: segments::log_start(&data, topic, index)? })
    };
    partitions().into_iter().map(of).collect()
}

fn write_round(maker: &mut Maker, round: usize) -> anyhow::Result<()> {
    let (number, count) = (round.to_string(), (10 + 7 * round).to_string());
    for (partition, codec) in CODECS.iter().enumerate() {
        let plain = format!("compression.type={codec} enable.idempotence=false");
        maker.run(&format!("write codecs {partition} {round} 3 {count} {plain}"))?;
    }
    maker.run_all(&ROUND.replace("{round}", &number).replace("{count}", &count))?;
    // Nothing is written here in the third round: that epoch leaves no trace.
    if round != 3 {
        maker.run(&format!("write idempotent 0 {round} 2 {count} client.id=one"))?;
        maker.run(&format!("write idempotent 0 {round}5 7 3 client.id=two compression.type=gzip"))?;
    }
    match round {
        // 1,048,588 is what a batch may have by default; 8 MiB is that topic's own bound.
        1 => maker.run_all(
            "large large 0 1 1048500 enable.idempotence=false
             large huge 0 1 8388500 enable.idempotence=false",
        ),
        2 => maker.run_all(
            "large large 0 2 1048000
             write large 0 2 1 5
             large huge 0 2 8000000 compression.type=lz4",
        ),
        4 => maker.run_all(
            "transact transactions 1 4 3 commit second
             transact transactions 0 4 3 begin second
             write transactions 0 4 1 4 enable.idempotence=false
             transact transactions 0 4 2 commit first
             transact transactions 1 4 2 begin second
             transact orders 0 4 3 begin till",
        ),
        _ => Ok(()),
    }
}

/// Lets retention, DeleteRecords and the cleaner do their work, and ends it.
fn delete_and_clean(kafka: &Kafka, maker: &mut Maker) -> anyhow::Result<()> {
    let client = Client::connect(*kafka.addresses().first().context("no broker")?)?;
    maker.run("alter retained retention.bytes=8000")?;
    crate::wait_for("retention", PATIENCE, || Ok((client.earliest(("retained", 0))?.0 > 0).then_some(())))?;
    maker.run("alter retained retention.bytes=-1")?;
    let middle = middle_of_a_batch(kafka)?;
    maker.run(&format!("trim trimmed 0 {middle}"))?;
    maker.run("trim emptied 0 -1")?;
    for index in 0..3 {
        crate::wait_for("cleaning", PATIENCE, || Ok(is_clean(kafka, "compacted", index)?.then_some(())))?;
    }
    maker.run("alter compacted min.compaction.lag.ms=9223372036854775807")
}

fn middle_of_a_batch(kafka: &Kafka) -> anyhow::Result<i64> {
    let headers = segments::headers(&segments::log_bytes(&kafka.data(), "trimmed", 0)?)?;
    let header = headers.get(headers.len() / 2).context("nothing was written")?;
    Ok(header.base_offset + i64::from(header.last_offset_delta) / 2 + 1)
}

/// True once the cleaner has been through everything below the segment that is written to.
fn is_clean(kafka: &Kafka, topic: &str, index: i32) -> anyhow::Result<bool> {
    let checkpoint = fs::read_to_string(kafka.data().join("cleaner-offset-checkpoint")).unwrap_or_default();
    let line = checkpoint.lines().find_map(|line| line.strip_prefix(&format!("{topic} {index} ")));
    let cleaned = line.and_then(|offset| offset.parse::<i64>().ok()).unwrap_or(-1);
    let files = segments::log_files(&kafka.data(), topic, u32::try_from(index)?)?;
    let name = files.last().and_then(|path| path.file_stem()?.to_str()).context("no segment")?;
    Ok(cleaned >= name.parse()?)
}
