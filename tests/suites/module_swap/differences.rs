//! What a candidate would do otherwise is told by name before it serves.

use super::*;
use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_tests::client::Client;
use verbatim_tests::exact::TIMESTAMP_MS;

#[test]
fn a_shadow_period_names_each_difference_and_changes_nothing_meanwhile() -> anyhow::Result<()> {
    let files = Files::new()?;
    let home = Home::new()?;
    let host = serving(&home)?;
    host.create_topic("busy", 3, &[EXACT])?;
    host.create_topic("plain", 1, &[])?;
    host.create_topic("compacted", 1, &["cleanup.policy=compact"])?;
    let writers = Writers::start(host.address())?;
    let same =
        swap(&home, &host, "exact-mirroring", &files.variant(1)?, &["--shadow", "50", "--output", "json"])?;
    let same: Value = serde_json::from_str(&same.success()?)?;
    let shadow = &same["shadow"];
    ensure!(shadow["judged"].as_u64() >= Some(50) && shadow["different"] == 0, "{shadow}");
    ensure!(shadow["same"].as_u64() >= Some(1), "{shadow}");
    let before = only(&home, &host)?["sha256"].clone();

    // One rule is another one: it takes records without a key on compacted topics (R15).
    let flawed = files.write("flawed.wasm", verbatim_artifact::flawed()?)?;
    let more = ["--shadow", "100", "--dry-run", "--output", "json"];
    let told = std::thread::scope(|scope| {
        let told = scope.spawn(|| swap(&home, &host, "exact-mirroring", &flawed, &more));
        let client = Client::connect(host.address())?;
        while !told.is_finished() {
            ensure!(client.produce(("compacted", 0), None, &keyless()?)?.error_code == 87, "R15");
        }
        told.join().map_err(|_| anyhow::anyhow!("panicked"))?
    })?;
    let told: Value = serde_json::from_str(&told.success()?)?;
    let shadow = &told["shadow"];
    ensure!(shadow["different"].as_u64() >= Some(1), "{shadow}");
    for difference in shadow["differences"].as_array().context("no differences")? {
        let difference = difference.as_str().unwrap_or_default();
        let id = difference.strip_prefix("topic id ").and_then(|rest| rest.split(',').next());
        ensure!(id == Some(&topic_id(&host, "compacted")?), "{difference}");
        for part in
            ["partition `0`", "(verdict): live refuses (null-key): ", "; candidate accepts: 1 batches"]
        {
            ensure!(difference.contains(part), "no {part} in {difference}");
        }
    }
    ensure!(only(&home, &host)?["sha256"] == before, "a dry run swaps nothing");

    // The rules' own suite finds it without live requests.
    let told = swap(&home, &host, "exact-mirroring", &flawed, &["--suite", "kafka"])?;
    ensure!(refused(&told, "does not pass the suite kafka") && told.stderr.contains("null key"), "{told}");
    writers.finish()?;
    host.stop()
}

/// A batch of a record without a key.
fn keyless() -> anyhow::Result<Vec<u8>> {
    let batch = BatchBuilder::new(0).record(NewRecord::new(0, TIMESTAMP_MS).value(b"keyless"));
    batch.build().map_err(|error| anyhow::anyhow!("{error:?}"))
}

fn topic_id(host: &Host, topic: &str) -> anyhow::Result<String> {
    let described = host.verbatim(&["topic", "describe", topic, "--output", "json"], b"")?.success()?;
    let described: Value = serde_json::from_str(&described)?;
    Ok(described["id"].as_str().context("no id")?.to_owned())
}
