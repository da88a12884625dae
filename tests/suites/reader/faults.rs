//! Batches that cannot be read, topics that go, brokers that start anew.

use anyhow::ensure;
use verbatim_batch::{BatchBuilder, Codec, NewRecord};
use verbatim_mirror::reader::{Position, ReadErrorKind, ReaderConfig, Seek};
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::Home;

use super::{Reading, partition, values};

#[test]
fn a_batch_beyond_the_limit_is_named_and_may_be_left_out() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("packed", 1, &[EXACT])?;
    let client = Client::connect(host.address())?;
    let value = vec![b'x'; 100_000];
    let packed = BatchBuilder::new(2).leader_epoch(1).record(NewRecord::new(0, 1).value(&value));
    let plain = packed.plain_records().map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let packed = packed.build_compressed(Codec::Zstd, &zstd::encode_all(&plain[..], 3)?);
    let packed = packed.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let batches = [batch(0, 1, &["a", "b"])?, packed, batch(3, 1, &["d"])?].concat();
    let answer = client.produce(("packed", 0), Some(&order((0, -1), (0, 4), 1)), &batches)?;
    ensure!(answer.error_code == 0, "{answer:?}");
    drop(client);
    let packed = partition("packed", 0);
    let config = ReaderConfig { inflated_bytes_max: 50_000, ..ReaderConfig::default() };
    let mut reader = Reading::start(&host.bootstrap(), config)?;
    reader.assign(&packed, Seek::Beginning);
    let (records, error) = reader.read_until_error()?;
    assert_eq!(values(&records), [(0, "a".to_owned()), (1, "b".to_owned())]);
    let text = error.to_string();
    ensure!(["packed-0", "offset 2", "zstd", "50000"].iter().all(|part| text.contains(part)), "{text}");
    let ReadErrorKind::Inflate { offset: 2, next: 3, .. } = error.kind else { anyhow::bail!("{text}") };
    assert_eq!(reader.position(&packed), Some(Position::new(2, Some(1))));
    reader.assign(&error.partition, Seek::To(Position::new(3, Some(1))));
    assert_eq!(values(&reader.read_until(&packed, 4)?), [(3, "d".to_owned())]);
    host.stop()
}

#[test]
fn reading_goes_on_after_a_host_starts_anew_and_ends_with_its_topic() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("kept", 1, &[])?;
    host.create_topic("gone", 1, &[])?;
    let client = Client::connect(host.address())?;
    ensure!(client.produce(("kept", 0), None, &batch(0, 0, &["a"])?)?.error_code == 0);
    drop(client);
    let (kept, gone) = (partition("kept", 0), partition("gone", 0));
    let mut reader = Reading::start(&host.bootstrap(), ReaderConfig::default())?;
    reader.assign(&kept, Seek::Beginning);
    reader.assign(&gone, Seek::Beginning);
    reader.read_until(&kept, 1)?;
    reader.read_until(&gone, 0)?;
    // A normal partition's leader epoch rises with every start of its host.
    host.kill()?;
    let host = home.start()?;
    let client = Client::connect(host.address())?;
    ensure!(client.produce(("kept", 0), None, &batch(0, 0, &["b"])?)?.error_code == 0);
    let records = reader.read_until(&kept, 2)?;
    assert_eq!(values(&records), [(1, "b".to_owned())]);
    assert_eq!(reader.position(&kept), Some(Position::new(2, Some(1))));
    drop(client);
    host.verbatim(&["topic", "delete", "gone"], b"")?.success()?;
    let (records, error) = reader.read_until_error()?;
    ensure!(records.is_empty() && *error.partition == gone, "{records:?} {error}");
    ensure!(matches!(error.kind, ReadErrorKind::Gone(_)), "{error:?}");
    host.stop()
}
