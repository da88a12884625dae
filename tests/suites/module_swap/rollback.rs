//! A module that passes every check and fails in service is taken back by the host itself.

use super::*;
use flawed_module::PANICS_ON_PRODUCER;
use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_tests::client::{Answer, Client, Write};
use verbatim_tests::exact::{TIMESTAMP_MS, order};

use crate::metrics::get;

/// What a partition is answered whose module failed: the request may be sent again.
const FAILED: i16 = 56;
/// What it is answered once the same batch made the module fail three times.
const POISONED: i16 = 87;

/// The one batch of a partition of the exact topic `struck`: the new module panics on it.
struct Striking<'a> {
    client: &'a Client,
    partition: i32,
    batch: Vec<u8>,
}

impl<'a> Striking<'a> {
    fn new(client: &'a Client, partition: i32) -> anyhow::Result<Self> {
        let value = format!("strikes {partition}");
        let record = NewRecord::new(0, TIMESTAMP_MS).value(value.as_bytes());
        let batch = BatchBuilder::new(0).leader_epoch(3).producer(PANICS_ON_PRODUCER, 0, 0).record(record);
        let batch = batch.build().map_err(|error| anyhow::anyhow!("{error:?}"))?;
        Ok(Self { client, partition, batch })
    }

    fn send(&self) -> anyhow::Result<Answer> {
        self.client.produce(("struck", self.partition), Some(&order((0, -1), (0, 1), 3)), &self.batch)
    }

    fn fails(&self) -> anyhow::Result<()> {
        let answer = self.send()?;
        ensure!(answer.error_code == FAILED, "{answer:?}");
        Ok(())
    }

    /// As a client does: again, and what it wrote is there once.
    fn succeeds_at_last(&self) -> anyhow::Result<()> {
        for _ in 0..2 {
            let answer = self.send()?;
            ensure!(answer.error_code == 0 && answer.base_offset == 0, "{answer:?}");
        }
        let place = ("struck", self.partition);
        let (end, stored) = (self.client.latest(place)?.0, self.client.fetch_all(place, 0)?);
        ensure!(end == 1 && stored == self.batch, "{place:?} ends at {end}");
        Ok(())
    }
}

#[test]
fn a_module_that_fails_in_service_is_taken_back_and_nobody_loses_anything() -> anyhow::Result<()> {
    let files = Files::new()?;
    let home = Home::new()?.arguments(&["--metrics-listen", "127.0.0.1:0"]);
    let host = serving(&home)?;
    for topic in ["busy", "struck"] {
        host.create_topic(topic, 3, &[EXACT])?;
    }
    host.create_topic("plain", 1, &[])?;
    let own = only(&home, &host)?["sha256"].clone();
    let writers = Writers::start(host.address())?;
    let flawed = files.write("flawed.wasm", verbatim_artifact::flawed()?)?;
    swap(&home, &host, "exact-mirroring", &flawed, &[])?.success()?;

    let client = Client::connect(host.address())?;
    let [poison, second, third] =
        [Striking::new(&client, 0)?, Striking::new(&client, 1)?, Striking::new(&client, 2)?];
    strike(&home, &host, &client, &[&poison, &second, &third]).beside("the host", || host.log())?;
    for striking in [&poison, &second, &third] {
        striking.succeeds_at_last().beside("the host", || host.log())?;
    }
    writers.wait_for_progress()?;
    writers.finish()?;
    is_told(&home, &host, &own)?;
    host.kill()?;

    let host = serving(&home)?;
    let status = only(&home, &host)?;
    ensure!(status["sha256"] == own && status["generation"] == 3, "{status}");
    for striking in [0, 1, 2] {
        Striking::new(&Client::connect(host.address())?, striking)?.succeeds_at_last()?;
    }
    let again = ask(&home, &host, &["rollback", "exact-mirroring"])?;
    ensure!(refused(&again, "was rolled back itself"), "{again}");
    host.stop()
}

/// One poisoned batch is not enough, however often it comes; the third request is.
fn strike(home: &Home, host: &Host, client: &Client, all: &[&Striking<'_>; 3]) -> anyhow::Result<()> {
    let [poison, second, third] = all;
    for round in 0..10 {
        let answer = poison.send()?;
        let expected = if round < 3 { FAILED } else { POISONED };
        ensure!(answer.error_code == expected, "round {round}: {answer:?}");
    }
    // Partitions of the same request do not suffer.
    let tag = order((0, -1), (0, 1), 3);
    let beside = verbatim_tests::exact::batch(0, 3, &["beside it"])?;
    client.create_topic("calm", 1, &[("produce.at.offset", "true")])?;
    let answers = client.produce_together(&[
        Write { partition: ("struck", 1), tag: Some(&tag), batches: &second.batch },
        Write { partition: ("calm", 0), tag: Some(&tag), batches: &beside },
    ])?;
    let codes: Vec<i16> = answers.iter().map(|answer| answer.error_code).collect();
    ensure!(codes == [FAILED, 0], "{answers:?}");
    second.fails()?;
    let status = only(home, host)?;
    ensure!(status["generation"] == 2, "two requests are not enough: {status}");
    third.fails()?;
    let status = only(home, host)?;
    ensure!(status["generation"] == 3, "three are: {status}");
    Ok(())
}

/// Status, history, metrics and log say what happened and why.
fn is_told(home: &Home, host: &Host, own: &Value) -> anyhow::Result<()> {
    let status = only(home, host)?;
    ensure!(status["sha256"] == *own && status["cause"] == "rolled-back-by-itself", "{status}");
    let evidence = status["evidence"].as_array().context("no evidence")?;
    for (partition, one) in evidence.iter().enumerate() {
        let one = one.as_str().unwrap_or_default();
        let id = one.strip_prefix("topic id ").and_then(|rest| rest.split(',').next());
        ensure!(id.is_some_and(|id| id.len() == 22), "{one}");
        ensure!(
            one.contains(&format!("partition `{partition}`, base offset `0`: the module trapped")),
            "{one}"
        );
    }
    let back = &status["previous"]["rolled_back"];
    ensure!(evidence.len() == 3 && back["evidence"] == status["evidence"], "{status}");
    ensure!(back["cause"] == "rolled-back-by-itself" && back["reason"] != "", "{status}");
    // A thread of its own writes it down.
    let history = wait_for("rollback in the history", PATIENCE, || {
        let history = json(home, host, &["history", "exact-mirroring"])?;
        Ok((history[1] != Value::Null).then_some(history))
    })?;
    ensure!(
        history[0]["outcome"] == "swapped" && history[1]["outcome"] == "rolled-back-by-itself",
        "{history}"
    );
    ensure!(history[1]["evidence"] == status["evidence"] && history[1]["sha256"] == *own, "{history}");
    for subject in [&["history", "exact-mirroring"][..], &["status"]] {
        let text = ask(home, host, subject)?.success()?;
        let lines = text.lines().filter(|line| line.starts_with("  topic id ")).count();
        ensure!(text.contains("rolled-back-by-itself") && lines == 3, "{text}");
    }
    let metrics = get(host.metrics_address()?, "/metrics")?;
    for line in [
        "verbatim_module_swaps_total{module=\"exact-mirroring\",outcome=\"rolled-back-by-itself\"} 1",
        "verbatim_generation_failures_total{module=\"exact-mirroring\",generation=\"2\",kind=\"trap\"} 6",
        "verbatim_generation_failures_total{module=\"exact-mirroring\",generation=\"3\",kind=\"trap\"} 0",
    ] {
        ensure!(metrics.lines().any(|found| found == line), "no line {line}\n{metrics}");
    }
    let log = host.log();
    ensure!(
        log.contains("nobody thought of this producer") && log.contains("a module was taken back"),
        "{log}"
    );
    Ok(())
}

#[test]
fn a_restart_does_not_end_the_time_in_which_a_module_is_taken_back() -> anyhow::Result<()> {
    let files = Files::new()?;
    let home = Home::new()?;
    let host = serving(&home)?;
    host.create_topic("struck", 3, &[EXACT])?;
    let good = files.variant(1)?;
    swap(&home, &host, "exact-mirroring", &good, &[])?.success()?;
    let good = only(&home, &host)?["sha256"].clone();
    let flawed = files.write("flawed.wasm", verbatim_artifact::flawed()?)?;
    swap(&home, &host, "exact-mirroring", &flawed, &[])?.success()?;
    host.kill()?;

    let host = serving(&home)?;
    let status = only(&home, &host)?;
    ensure!(status["cause"] == "swapped" && status["previous"]["sha256"] == good, "{status}");
    let client = Client::connect(host.address())?;
    for partition in 0..3 {
        Striking::new(&client, partition)?.fails().beside("the host", || host.log())?;
    }
    let status = only(&home, &host)?;
    ensure!(status["sha256"] == good && status["generation"] == 4, "{status}");
    Striking::new(&client, 0)?.succeeds_at_last()?;
    host.stop()
}
