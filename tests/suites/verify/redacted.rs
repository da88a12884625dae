//! Targets as a module leaves them: the verdict, the flag, and the target's configuration; and a mirror that goes on there.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use verbatim_batch::{BatchBuilder, HEADER_LEN, Header, NewRecord, assemble};
use verbatim_tests::exact::{TIMESTAMP_MS, batch};

use super::pair::{Pair, full};

const ALLOWING: &str = "produce.at.offset.rewrite=allow";

/// The last two batches of the full log as a module leaves them: nothing of the first, and one record of the second, masked.
fn redacted() -> anyhow::Result<Vec<Vec<u8>>> {
    let mut log = full()?;
    let at = log.len().checked_sub(2).context("too few batches")?;
    let tail = log.split_off(at);
    let header = |index: usize| tail.get(index).and_then(|batch| Header::read(batch)).context("no header");
    let (emptied, masked) = (header(0)?, header(1)?);
    let built = |header: &Header, records: &[u8]| -> anyhow::Result<Vec<u8>> {
        assemble(header, records).map_err(|error| anyhow::anyhow!("{error}"))
    };
    log.push(built(&Header { record_count: 0, ..emptied }, &[])?);
    // The record at offset 13 goes, the one at 14 stays.
    let source = verbatim_batch::Records::new(
        tail.get(1).and_then(|batch| batch.get(HEADER_LEN..)).context("no records")?,
        masked.record_count,
    );
    let last = source.last().context("no record")?.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let mut records = Vec::new();
    last.write(Some(b"***"), |header| header, &mut records).map_err(|error| anyhow::anyhow!("{error}"))?;
    log.push(built(&Header { record_count: 1, ..masked }, &records)?);
    Ok(log)
}

/// Creates a topic on both sides, of which the target allows what it is told, and writes each side's batches.
fn topic(pair: &Pair, name: &str, rewrite: &str, target: &[Vec<u8>]) -> anyhow::Result<()> {
    pair.topic(name, &[rewrite], &full()?, target)
}

#[test]
fn what_a_module_left_is_redacted_where_caller_and_topic_allow_it() -> anyhow::Result<()> {
    let pair = Pair::start()?;
    topic(&pair, "allowed", ALLOWING, &redacted()?)?;
    topic(&pair, "refused", "produce.at.offset.rewrite=refuse", &redacted()?)?;
    topic(&pair, "same", ALLOWING, &full()?)?;

    let (code, report) = pair.verify(&["--topics", "allowed", "--allow-redacted"])?;
    let partition = &report["partitions"][0];
    assert_eq!((code, &partition["verdict"]), (0, &json!("redacted")), "{report}");
    let counts =
        json!({"module": "exact-mirroring", "batches": 2, "records_dropped": 2, "records_changed": 1});
    assert_eq!(partition["redacted"], counts);
    let told = partition["reason"].as_str().unwrap_or_default();
    ensure!(told.contains("redacted by module exact-mirroring: 2 batches"), "{report}");
    assert_ne!(partition["digest"]["source"], partition["digest"]["target"]);
    let shown = pair.run(&["--topics", "allowed", "--allow-redacted"])?.success()?;
    ensure!(shown.contains("2 records dropped, 1 changed") && shown.contains("1 redacted"), "{shown}");

    let (code, report) = pair.verify(&["--topics", "allowed"])?;
    let partition = &report["partitions"][0];
    assert_eq!((code, &partition["verdict"]), (1, &json!("diverged")), "{report}");
    assert_eq!(partition["difference"]["offset"], json!(12));
    let told = partition["reason"].as_str().unwrap_or_default();
    ensure!(told.contains(ALLOWING) && told.contains("--allow-redacted would accept"), "{report}");

    let (code, report) = pair.verify(&["--topics", "refused", "--allow-redacted"])?;
    let partition = &report["partitions"][0];
    assert_eq!((code, &partition["verdict"], &partition["redacted"]), (1, &json!("diverged"), &Value::Null));
    ensure!(partition["notes"].to_string().contains("does not count here"), "{report}");

    for flags in [&[][..], &["--allow-redacted"]] {
        let (code, report) = pair.verify(&[&["--topics", "same"][..], flags].concat())?;
        assert_eq!((code, &report["partitions"][0]["verdict"]), (0, &json!("identical")), "{report}");
    }
    let bootstrap = pair.target.bootstrap();
    let alone = ["verify", "--digest-only", "--target", &bootstrap, "--topics", "same", "--allow-redacted"];
    let alone = pair.target.verbatim(&alone, b"")?;
    ensure!(alone.status.code() == Some(2) && alone.stderr.contains("allow-redacted"), "{alone}");
    pair.stop()
}

#[test]
fn what_no_module_does_is_diverged_with_the_flag_too() -> anyhow::Result<()> {
    let pair = Pair::start()?;
    let changed = |change: &dyn Fn(&mut Vec<Vec<u8>>)| -> anyhow::Result<Vec<Vec<u8>>> {
        let mut log = redacted()?;
        change(&mut log);
        Ok(log)
    };
    let extra = batch(11, 1, &["z"])?;
    let record = NewRecord::new(0, TIMESTAMP_MS + 1).key(b"k0").value(b"f");
    let later = BatchBuilder::new(12).leader_epoch(2).base_timestamp(TIMESTAMP_MS).record(record).build();
    let later = later.map_err(|error| anyhow::anyhow!("{error}"))?;
    let table = [
        (
            "later",
            12,
            changed(&|log| log.iter_mut().skip(6).take(1).for_each(|batch| later.clone_into(batch)))?,
        ),
        ("extra", 11, changed(&|log| log.insert(6, extra.clone()))?),
        ("lost", 12, changed(&|log| drop(log.remove(6)))?),
        ("no-marker", 5, changed(&|log| drop(log.remove(2)))?),
    ];
    for (name, offset, target) in table {
        topic(&pair, name, ALLOWING, &target)?;
        let (code, report) = pair.verify(&["--topics", name, "--allow-redacted"])?;
        let partition = &report["partitions"][0];
        assert_eq!((code, &partition["verdict"]), (1, &json!("diverged")), "{name}: {report}");
        assert_eq!(partition["difference"]["offset"], json!(offset), "{name}: {report}");
    }
    pair.stop()
}
