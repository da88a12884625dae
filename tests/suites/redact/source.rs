//! A topic of Apache Kafka's with something to redact in each codec, written by Java and librdkafka, and what the rules leave.

#![expect(clippy::indexing_slicing, reason = "a JSON value without such a field is null")]

use serde_json::{Value, json};
use verbatim_tests::kafka::maker::Maker;
use verbatim_tests::kafka::{Kafka, LIVELY};
use verbatim_tests::tools::{self, Tool};

pub(super) const TOPIC: &str = "orders";
/// One partition a codec, and one of transactions.
pub(super) const PARTITIONS: i32 = 6;
pub(super) const TRANSACTIONS: i32 = 5;
const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

/// The rules, as a command line has them.
pub(super) const RULES: [&str; 6] = [
    "redact.drop.keys=customer-2,customer-3,customer-8,customer-9,customer-14,customer-15",
    "redact.mask.keys=customer-4,customer-5,customer-10,customer-11",
    "redact.drop.headers=internal",
    "redact.mask.headers=ssn",
    "redact.drop.json=$.secret",
    "redact.mask.json=$.card.number, $.list[*].owner",
];

/// Records that librdkafka writes, a batch for each: their headers, and keys with values.
const BATCHES: [(&[&str], &str); 4] = [
    // Nothing is left of it.
    (&["internal=1"], "customer-60|{\"id\":1}\ncustomer-61|{\"id\":2}\n"),
    // As it is.
    (&["till=9"], "customer-62|{\"id\": 1.50}\ncustomer-63|\n"),
    (&["ssn=078-05-1120", "till=7"], "customer-64|{\"id\":3}\ncustomer-65|\n"),
    (
        &[],
        "customer-66|{\"card\":{\"number\":\"4111\",\"cvc\":7},\"sum\": 1.50}\n\
         customer-67|{\"secret\":null}\n\
         customer-68|{\"list\":[{\"owner\":\"ann\"},{\"owner\":\"bob\",\"n\":1}]}\n",
    ),
];

/// A broker with the topic, and those who write to it.
pub(super) struct Source {
    pub(super) kafka: Kafka,
    maker: Maker,
    kcat: Tool,
}

impl Source {
    /// `None` without the tools (see [`tools::find`]).
    pub(super) fn start(seed: u64) -> anyhow::Result<Option<Self>> {
        let (Some(kafka), Some(kcat)) = (Kafka::start_with(1, LIVELY)?, tools::find("kcat")?) else {
            return Ok(None);
        };
        let Some(mut maker) = Maker::start(&kafka.bootstrap(), seed)? else { return Ok(None) };
        maker.run(&format!("create {TOPIC} {PARTITIONS} 1 retention.ms=-1"))?;
        Ok(Some(Self { kafka, maker, kcat }))
    }

    /// Writes once more, under another leader epoch than before.
    pub(super) fn write(&mut self, round: u32) -> anyhow::Result<()> {
        for (partition, codec) in (0..).zip(CODECS) {
            let write = format!("write {TOPIC} {partition} {round} 2 40 compression.type={codec}");
            self.maker.run(&write)?;
            self.maker.run(&format!("{write} enable.idempotence=false"))?;
            for (headers, records) in BATCHES {
                self.write_by_kcat((partition, codec), headers, records)?;
            }
        }
        self.maker.run_all(&format!(
            "write {TOPIC} {TRANSACTIONS} {round} 1 12 client.id=plain
             transact {TOPIC} {TRANSACTIONS} {round} 15 commit first
             transact {TOPIC} {TRANSACTIONS} {round} 15 begin second
             transact {TOPIC} {TRANSACTIONS} {round} 15 abort first
             transact {TOPIC} {TRANSACTIONS} {round} 15 abort second"
        ))
    }

    fn write_by_kcat(
        &self,
        (partition, codec): (i32, &str),
        headers: &[&str],
        records: &str,
    ) -> anyhow::Result<()> {
        let (bootstrap, partition) = (self.kafka.bootstrap(), partition.to_string());
        let to = ["-P", "-b", &bootstrap, "-t", TOPIC, "-p", &partition, "-z", codec, "-K", "|", "-Z"];
        let headers = headers.iter().flat_map(|header| ["-H", header]);
        // One batch for all of them.
        let arguments: Vec<&str> = to.into_iter().chain(["-X", "linger.ms=300"]).chain(headers).collect();
        self.kcat.succeed_with(&arguments, records.as_bytes()).map(drop)
    }

    /// Another life of the broker, which begins another leader epoch.
    pub(super) fn restart(&mut self) -> anyhow::Result<()> {
        self.kafka.stop(1)?;
        self.kafka.start_again(1)
    }
}

/// All records of a partition as librdkafka reads them.
pub(super) fn by_kcat(
    kcat: &Tool,
    bootstrap: &str,
    partition: i32,
    isolation: &str,
) -> anyhow::Result<Vec<Value>> {
    let (partition, isolation) = (partition.to_string(), format!("isolation.level={isolation}"));
    let from = ["-C", "-b", bootstrap, "-t", TOPIC, "-p", &partition, "-o", "beginning", "-e", "-q", "-J"];
    let mut records = kcat.json_lines(&[&from[..], &["-X", &isolation]].concat())?;
    for record in records.iter_mut().filter_map(Value::as_object_mut) {
        record.remove("broker");
    }
    Ok(records)
}

/// What the rules leave of a record as [`by_kcat`] gives it.
pub(super) fn redacted(mut record: Value) -> Option<Value> {
    let customer = record["key"].as_str().and_then(|key| key.strip_prefix("customer-")).map(str::to_owned);
    let customer = customer.unwrap_or_default();
    let headers = record["headers"].as_array().cloned().unwrap_or_default();
    let has = |name: &str| headers.iter().step_by(2).any(|header| header == name);
    let value = record["payload"].as_str().unwrap_or_default();
    if ["2", "3", "8", "9", "14", "15"].contains(&customer.as_str())
        || has("internal")
        || value.contains("\"secret\"")
    {
        return None;
    }
    let masked =
        [("\"number\":\"4111\"", "number"), ("\"owner\":\"ann\"", "owner"), ("\"owner\":\"bob\"", "owner")];
    let masked = masked
        .iter()
        .fold(value.to_owned(), |value, (field, name)| value.replace(field, &format!("\"{name}\":\"***\"")));
    if !record["payload"].is_null() {
        let by_key = ["4", "5", "10", "11"].contains(&customer.as_str());
        record["payload"] = json!(if by_key { "***".to_owned() } else { masked });
    }
    if has("ssn") {
        let mask = |pair: &[Value]| match pair {
            [name, _] if name == "ssn" => vec![name.clone(), json!("***")],
            other => other.to_vec(),
        };
        record["headers"] = headers.chunks(2).flat_map(mask).collect();
    }
    Some(record)
}
