//! Positions, and what each reset policy does about those that a log no longer has.

use anyhow::{Context, ensure};
use std::time::Duration;
use verbatim_mirror::reader::{Position, ReadErrorKind, ReaderConfig, Reset, Seek};
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, TIMESTAMP_MS, batch, order};
use verbatim_tests::host::{Home, Host};
use verbatim_wire::tag::RequestTag;

use super::{Reading, partition, values};

const START: i64 = 1;
const END: i64 = 6;

/// An exact topic that was truncated: epoch 1 has offsets 0 and 1, epoch 5 has 2 to 5, the log starts at 1. Until then epoch 1
/// went on to 4, and epoch 2 had 4 to 7.
fn truncated(host: &Host, topic: &str) -> anyhow::Result<()> {
    let client = Client::connect(host.address())?;
    before_truncation(host, &client, topic)?;
    truncate(&client, topic)
}

fn before_truncation(host: &Host, client: &Client, topic: &str) -> anyhow::Result<()> {
    host.create_topic(topic, 2, &[EXACT, "produce.at.offset.rewind=truncate"])?;
    let first = [batch(0, 1, &["a", "b"])?, batch(2, 1, &["c", "d"])?, batch(4, 2, &["e", "f"])?].concat();
    write(client, (topic, 0), &order((0, -1), (0, 6), 2), &first)?;
    write(client, (topic, 0), &order((6, 2), (0, 8), 2), &batch(6, 2, &["g", "h"])?)
}

fn truncate(client: &Client, topic: &str) -> anyhow::Result<()> {
    let cut = RequestTag { truncate_to: Some(2), ..order((8, 1), (0, 4), 5) };
    write(client, (topic, 0), &cut, &batch(2, 5, &["C", "D"])?)?;
    write(client, (topic, 0), &order((4, 5), (START, END), 5), &batch(4, 5, &["E", "F"])?)
}

fn write(client: &Client, partition: (&str, i32), tag: &RequestTag, batches: &[u8]) -> anyhow::Result<()> {
    let answer = client.produce(partition, Some(tag), batches)?;
    ensure!(answer.error_code == 0, "{answer:?}");
    Ok(())
}

#[test]
fn a_truncation_is_told_with_its_first_offset_and_other_partitions_go_on() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    let client = Client::connect(host.address())?;
    before_truncation(&host, &client, "cut")?;
    let (cut, other) = (partition("cut", 0), partition("cut", 1));
    let mut reader = Reading::start(&host.bootstrap(), ReaderConfig::default())?;
    reader.assign(&cut, Seek::Beginning);
    reader.assign(&other, Seek::Beginning);
    let records = reader.read_until(&cut, 8)?;
    ensure!(records.iter().map(|record| record.leader_epoch).eq([1, 1, 1, 1, 2, 2, 2, 2].map(Some)));
    let stored = reader.position(&cut).context("no position")?;
    assert_eq!(stored, Position::new(8, Some(2)));

    truncate(&client, "cut")?;
    write(&client, ("cut", 1), &order((0, -1), (0, 1), 1), &batch(0, 1, &["x"])?)?;
    let (mut others, error) = reader.read_until_error()?;
    ensure!(error.is_out_of_range() && *error.partition == cut, "{error}");
    // Nobody but this reader knows that epoch 1 had gone on to 4, where epoch 2 began.
    let first = Position::new(2, Some(1));
    let ReadErrorKind::TruncatedPartition { position, first_truncated } = error.kind else {
        anyhow::bail!("{error}");
    };
    assert_eq!((position, first_truncated), (stored, Some(first)));
    // It stands still, and the other one goes on.
    write(&client, ("cut", 1), &order((1, 1), (0, 2), 1), &batch(1, 1, &["y"])?)?;
    others.extend(reader.read_until(&other, 2)?);
    assert_eq!(values(&others), [(0, "x".to_owned()), (1, "y".to_owned())]);
    assert_eq!(reader.position(&cut), Some(stored));

    reader.assign(&cut, Seek::To(first));
    let records = reader.read_until(&cut, END)?;
    let expected = [(2, "C"), (3, "D"), (4, "E"), (5, "F")].map(|(offset, value)| (offset, value.to_owned()));
    assert_eq!(values(&records), expected);
    // One that begins with the stored position finds the same out before it reads anything.
    reader.assign(&cut, Seek::To(stored));
    let (records, error) = reader.read_until_error()?;
    ensure!(records.is_empty(), "{records:?}");
    let ReadErrorKind::TruncatedPartition { first_truncated, .. } = error.kind else {
        anyhow::bail!("{error}")
    };
    assert_eq!(first_truncated, Some(first));
    drop(client);
    host.stop()
}

#[test]
fn each_policy_leads_where_it_says() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    truncated(&host, "cut")?;
    let cut = partition("cut", 0);
    let below_start = Position::new(0, None);
    let above_end = Position::new(9, None);
    let truncated = Position::new(5, Some(2));
    let unknown_epoch = Position::new(2, Some(3));
    let epoch_above = Position::new(3, Some(9));
    // Where earliest, latest and closest lead.
    let table = [
        (below_start, [START, END, START]),
        (above_end, [START, END, END]),
        (truncated, [2, 2, 2]),
        (unknown_epoch, [START, END, 2]),
        (epoch_above, [START, END, END]),
    ];
    for (policy, reset) in [Reset::Earliest, Reset::Latest, Reset::Closest].into_iter().enumerate() {
        let mut reader =
            Reading::start(&host.bootstrap(), ReaderConfig { reset, ..ReaderConfig::default() })?;
        for (position, expected) in &table {
            let found = reader.settled(&cut, *position)?;
            let offset = found.with_context(|| format!("{reset:?} at {position}"))?;
            ensure!(Some(&offset) == expected.get(policy), "{reset:?} at {position}: {offset}");
        }
    }
    let mut reader = Reading::start(&host.bootstrap(), ReaderConfig::default())?;
    for (at, _) in &table {
        let error = reader.settled(&cut, *at)?.err().with_context(|| format!("no error at {at}"))?;
        ensure!(error.is_out_of_range(), "{error}");
        let is_as_expected = match error.kind {
            ReadErrorKind::OffsetOutOfRange { position, log_start: START, log_end: END } => {
                position == *at && at.leader_epoch.is_none()
            }
            ReadErrorKind::TruncatedPartition { position, first_truncated } => {
                let known = (*at == truncated).then_some(Position::new(2, Some(1)));
                position == *at && at.leader_epoch.is_some() && first_truncated == known
            }
            _ => false,
        };
        ensure!(is_as_expected, "{error}");
    }
    host.stop()
}

#[test]
fn seeking_leads_to_the_beginning_the_end_a_time_or_what_is_nearest() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    truncated(&host, "cut")?;
    let cut = partition("cut", 0);
    let nearest = |offset, epoch| Seek::Nearest(Position::new(offset, epoch));
    let table = [
        (Seek::Beginning, START),
        (Seek::End, END),
        // Each batch's second record is a millisecond after its first; the earliest record left is such a second one.
        (Seek::Time(TIMESTAMP_MS), START),
        (Seek::Time(TIMESTAMP_MS + 1), START),
        (Seek::Time(TIMESTAMP_MS + 2), END),
        (Seek::To(Position::new(3, Some(5))), 3),
        (nearest(2, Some(1)), 2),
        (nearest(4, Some(5)), 4),
        (nearest(4, None), 4),
        (nearest(5, Some(2)), 2),
        (nearest(2, Some(3)), 2),
        (nearest(3, Some(9)), END),
        (nearest(0, Some(1)), START),
        (nearest(0, None), START),
    ];
    let mut reader = Reading::start(&host.bootstrap(), ReaderConfig::default())?;
    for (seek, expected) in table {
        reader.assign(&cut, seek);
        let records = reader.read_until(&cut, END)?;
        let first = records.first().map_or(END, |record| record.offset);
        ensure!(first == expected, "{seek:?}: {first}, expected {expected}");
    }
    let times = [(cut.clone(), TIMESTAMP_MS), (cut.clone(), TIMESTAMP_MS + 2), (partition("cut", 1), 0)];
    let found = reader.runtime.block_on(reader.reader.offsets_for_times(&times))?;
    let [Some(first), None, None] = found[..] else { anyhow::bail!("{found:?}") };
    ensure!((first.offset, first.leader_epoch) == (START, 1), "{first:?}");
    host.stop()
}

#[test]
fn a_reader_ahead_of_a_copy_waits() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("behind", 1, &[EXACT])?;
    let client = Client::connect(host.address())?;
    write(&client, ("behind", 0), &order((0, -1), (0, 8), 3), &batch(0, 1, &["a", "b"])?)?;
    let behind = partition("behind", 0);
    // What it read at the source, below offset 5, was of epoch 3, which is yet to come here.
    let position = Position::new(5, Some(3));
    let mut reader = Reading::start(&host.bootstrap(), ReaderConfig::default())?;
    reader.assign(&behind, Seek::To(position));
    for _ in 0..15 {
        ensure!(reader.poll(Duration::from_millis(100))?.is_empty());
    }
    assert_eq!(reader.position(&behind), Some(position));
    let rest = [batch(2, 1, &["c", "d"])?, batch(4, 3, &["e", "f", "g", "h"])?].concat();
    write(&client, ("behind", 0), &order((2, 1), (0, 8), 3), &rest)?;
    let records = reader.read_until(&behind, 8)?;
    let expected = [(5, "f"), (6, "g"), (7, "h")].map(|(offset, value)| (offset, value.to_owned()));
    assert_eq!(values(&records), expected);
    drop(client);
    host.stop()
}
