//! Two hosts with what was written to them, and the command between them.

use anyhow::{Context, ensure};
use serde_json::Value;
use verbatim_batch::{BatchBuilder, ControlType, Header, NewRecord, place};
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, TIMESTAMP_MS, batch, order};
use verbatim_tests::host::{Home, Host};
use verbatim_tests::run::Output;
use verbatim_tests::segments;

pub(super) struct Pair {
    pub(super) source: Host,
    pub(super) target: Host,
    _homes: (Home, Home),
}

impl Pair {
    pub(super) fn start() -> anyhow::Result<Self> {
        let homes = (Home::new()?, Home::new()?);
        Ok(Self { source: homes.0.start()?, target: homes.1.start()?, _homes: homes })
    }

    /// Creates an exact topic on both sides and writes each side's batches.
    pub(super) fn topic(
        &self,
        name: &str,
        configs: &[&str],
        source: &[Vec<u8>],
        target: &[Vec<u8>],
    ) -> anyhow::Result<()> {
        for (host, batches) in [(&self.source, source), (&self.target, target)] {
            host.create_topic(name, 1, &[&[EXACT], configs].concat())?;
            let headers = segments::headers(&batches.concat())?;
            if let Some(last) = headers.last() {
                self.write(host, name, batches, last.leader_epoch)?;
            }
        }
        Ok(())
    }

    /// Writes batches exactly, to an empty partition.
    pub(super) fn write(
        &self,
        host: &Host,
        topic: &str,
        batches: &[Vec<u8>],
        epoch: i32,
    ) -> anyhow::Result<()> {
        let bytes = batches.concat();
        let end = segments::headers(&bytes)?.last().and_then(Header::next_offset).context("no batch")?;
        let client = Client::connect(host.address())?;
        let answer = client.produce((topic, 0), Some(&order((0, -1), (0, end), epoch)), &bytes)?;
        ensure!(answer.error_code == 0, "{topic}: {answer:?}");
        Ok(())
    }

    /// What `verbatim verify` is called with.
    pub(super) fn arguments(&self, arguments: &[&str]) -> Vec<String> {
        let sides = [self.source.bootstrap(), self.target.bootstrap()];
        let fixed = ["verify", "--source", &sides[0], "--target", &sides[1]];
        fixed.iter().chain(arguments).map(ToString::to_string).collect()
    }

    pub(super) fn run(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let arguments = self.arguments(arguments);
        self.source.verbatim(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), b"")
    }

    /// Exit code and JSON report.
    pub(super) fn verify(&self, arguments: &[&str]) -> anyhow::Result<(i32, Value)> {
        report(&self.run(&[arguments, &["--output", "json"]].concat())?)
    }

    /// The digests of one side.
    pub(super) fn alone(&self, side: &str, arguments: &[&str]) -> anyhow::Result<(i32, Value)> {
        let host = if side == "source" { &self.source } else { &self.target };
        let (flag, bootstrap) = (format!("--{side}"), host.bootstrap());
        let fixed = ["verify", "--digest-only", &flag, &bootstrap, "--output", "json"];
        report(&host.verbatim(&[&fixed[..], arguments].concat(), b"")?)
    }

    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.source.stop()?;
        self.target.stop()
    }
}

fn report(output: &Output) -> anyhow::Result<(i32, Value)> {
    let value = serde_json::from_str(&output.stdout).with_context(|| output.to_string())?;
    Ok((output.status.code().context("no exit code")?, value))
}

/// Three epochs, a committed and an aborted transaction, a hole: offsets 0 to 14, but for 11.
pub(super) fn full() -> anyhow::Result<Vec<Vec<u8>>> {
    Ok(vec![
        batch(0, 0, &["a", "b", "c"])?,
        in_transaction(3, 0, 1_000)?,
        marker(5, 0, 1_000, ControlType::Commit)?,
        in_transaction(6, 1, 1_001)?,
        marker(8, 1, 1_001, ControlType::Abort)?,
        batch(9, 1, &["d", "e"])?,
        batch(12, 2, &["f"])?,
        batch(13, 2, &["g", "h"])?,
    ])
}

fn in_transaction(base: i64, epoch: i32, producer: i64) -> anyhow::Result<Vec<u8>> {
    let record = |delta| NewRecord::new(delta, TIMESTAMP_MS).key(b"t").value(b"in a transaction");
    let builder = BatchBuilder::new(base).leader_epoch(epoch).producer(producer, 0, 0).transactional();
    built(&builder.record(record(0)).record(record(1)))
}

fn marker(base: i64, epoch: i32, producer: i64, kind: ControlType) -> anyhow::Result<Vec<u8>> {
    let marker = BatchBuilder::marker(base, (producer, 0), TIMESTAMP_MS, kind, 3);
    let mut marker = marker.map_err(|error| anyhow::anyhow!("{error}"))?;
    place(&mut marker, base, epoch)?;
    Ok(marker)
}

fn built(builder: &BatchBuilder<'_>) -> anyhow::Result<Vec<u8>> {
    builder.build().map_err(|error| anyhow::anyhow!("{error}"))
}

/// A keyed log: k0, k1, k2; k1 deleted; k2 again; k0 again.
pub(super) fn whole() -> anyhow::Result<Vec<Vec<u8>>> {
    let tombstone = BatchBuilder::new(3).record(NewRecord::new(0, TIMESTAMP_MS).key(b"k1"));
    let again = BatchBuilder::new(4).record(NewRecord::new(0, TIMESTAMP_MS).key(b"k2").value(b"new"));
    Ok(vec![batch(0, 0, &["a", "b", "c"])?, built(&tombstone)?, built(&again)?, batch(5, 0, &["d"])?])
}

/// What a cleaner leaves of it: nothing of the first batch, and the tombstone with its delete horizon.
pub(super) fn rewritten() -> anyhow::Result<Vec<Vec<u8>>> {
    let tombstone = NewRecord::new(0, TIMESTAMP_MS).key(b"k1");
    let tombstone = BatchBuilder::new(3).delete_horizon(TIMESTAMP_MS + 1_000).record(tombstone);
    let log = whole()?;
    let rest = log.get(2..).context("too few batches")?;
    Ok([&[built(&tombstone)?][..], rest].concat())
}
