//! What a source of every kind must hold, looked up in its files: tests with it show something only while it does.

use super::sources::SourcePartition;
use anyhow::{Context, ensure};
use bytes::Bytes;
use std::collections::BTreeMap;
use verbatim_batch::{Batch, Codec, ControlType, Header, TimestampType, frames};
use verbatim_wire::tag::EpochEntry;

/// Topics without a batch that is not deleted.
pub const WITHOUT_DATA: [&str; 2] = ["empty", "emptied"];
/// Topics with one large record each, not written in every round: fewest bytes of their largest batch, and most.
const LARGE: [(&str, usize, usize); 2] = [("large", 1_048_000, 1_048_588), ("huge", 8_388_000, 8_388_608)];
/// The rounds in which the others are written.
const ROUNDS: usize = 4;

/// What lies in a partition's folder.
#[derive(Debug, Clone)]
pub struct Files {
    /// Which partition's.
    pub partition: SourcePartition,
    /// Its `.log` files, one after the other.
    pub log: Bytes,
    /// Its leader epochs, from its `leader-epoch-checkpoint`.
    pub epochs: Vec<EpochEntry>,
    /// Its log start offset.
    pub start: i64,
}

/// Makes sure that everything is there that a log can hold; of large topics only if they are among these files.
///
/// # Errors
/// The first thing that is lacking.
pub fn check(all: &[Files]) -> anyhow::Result<()> {
    let looked = all.iter().map(|files| {
        let name = format!("{}-{}", files.partition.topic, files.partition.index);
        Ok((name.clone(), Log::read(files).context(name)?))
    });
    let logs: BTreeMap<String, Log<'_>> = looked.collect::<anyhow::Result<_>>()?;
    for (name, log) in &logs {
        log.has_epochs().with_context(|| name.clone())?;
        log.has_its_size().with_context(|| name.clone())?;
    }
    let log = |name: &str| logs.get(name).with_context(|| format!("no {name}"));
    for (index, codec) in Codec::ALL.into_iter().enumerate() {
        let codecs = log(&format!("codecs-{index}"))?;
        ensure!(
            codecs.any(|header| header.attributes.codec() == Ok(codec)),
            "nothing is packed with {codec}"
        );
    }
    log("codecs-0")?.has_nulls_and_headers()?;
    let stamped = |header: &Header| header.attributes.timestamp_type() == TimestampType::LogAppendTime;
    ensure!(log("stamped-0")?.any(stamped), "no LogAppendTime");
    transactions(log("transactions-0")?, log("transactions-1")?)?;
    compacted([log("compacted-0")?, log("compacted-1")?, log("compacted-2")?])?;
    ensure!(log("retained-0")?.files.start > 0, "retention has moved no log start");
    log("trimmed-0")?.starts_inside_a_batch()?;
    let emptied = log("emptied-0")?;
    ensure!(emptied.files.start > 0 && emptied.end() == emptied.files.start, "not everything is deleted");
    ensure!(log("empty-0")?.headers.is_empty(), "something was written to an empty topic");
    Ok(())
}

/// True once the last leader epoch is noted, which begins with the end.
pub(super) fn is_led_anew(files: &Files) -> anyhow::Result<bool> {
    let log = Log::read(files)?;
    Ok(log.files.epochs.last().is_some_and(|last| last.start == log.end()))
}

fn transactions(first: &Log<'_>, second: &Log<'_>) -> anyhow::Result<()> {
    for log in [first, second] {
        ensure!(log.open > 0, "no open transaction: {log:?}");
        ensure!(log.aborted > 0, "no aborted transaction: {log:?}");
    }
    ensure!(first.committed > 0, "no committed transaction: {first:?}");
    ensure!(
        first.any(|header| !header.has_producer()),
        "no plain records between the transactions: {first:?}"
    );
    Ok(())
}

/// What the cleaner has left of plain records, of producers that are remembered, and of transactions.
fn compacted(all: [&Log<'_>; 3]) -> anyhow::Result<()> {
    let any = |is: &dyn Fn(&Header) -> bool| all.iter().any(|log| log.any(is));
    let is_whole = |header: &Header| header.record_count == header.last_offset_delta.saturating_add(1);
    ensure!(any(&|header| header.record_count > 0 && !is_whole(header)), "no gap in a batch");
    ensure!(all.iter().any(|log| log.has_gap()), "no gap between batches");
    ensure!(any(&|header| header.record_count == 0), "no emptied batch");
    ensure!(all.iter().any(|log| log.has_epoch_cleaned_away()), "every epoch has data left");
    let horizon = |header: &Header| header.attributes.has_delete_horizon();
    let is_control = |header: &Header| header.attributes.is_control();
    ensure!(any(&|header| horizon(header) && !is_control(header)), "no tombstone with a delete horizon");
    ensure!(any(&|header| horizon(header) && is_control(header)), "no marker with a delete horizon");
    Ok(())
}

/// A partition's files, and what was found in them.
#[derive(Debug)]
struct Log<'a> {
    files: &'a Files,
    headers: Vec<Header>,
    /// Transactions by how they ended.
    committed: usize,
    aborted: usize,
    open: usize,
}

impl<'a> Log<'a> {
    fn read(files: &'a Files) -> anyhow::Result<Self> {
        let mut log = Self { files, headers: Vec::new(), committed: 0, aborted: 0, open: 0 };
        let mut open = BTreeMap::new();
        for frame in frames(&files.log) {
            let batch = Batch::parse(frame.bytes()).map_err(|error| anyhow::anyhow!("{error}"))?;
            let header = *batch.header();
            log.headers.push(header);
            if header.attributes.is_control() {
                let was_open = open.remove(&header.producer_id).is_some();
                match marker(&batch) {
                    Some(ControlType::Commit) if was_open => log.committed += 1,
                    Some(ControlType::Abort) if was_open => log.aborted += 1,
                    _ => {}
                }
            } else if header.attributes.is_transactional() {
                open.entry(header.producer_id).or_insert(header.base_offset);
            }
        }
        log.open = open.len();
        Ok(log)
    }

    fn any(&self, is: impl Fn(&Header) -> bool) -> bool {
        self.headers.iter().any(is)
    }

    /// Behind the last batch; the log start where nothing is left.
    fn end(&self) -> i64 {
        self.headers.last().and_then(Header::next_offset).unwrap_or(self.files.start)
    }

    fn has_gap(&self) -> bool {
        let mut pairs = self.headers.iter().zip(self.headers.iter().skip(1));
        pairs.any(|(a, b)| a.next_offset() != Some(b.base_offset))
    }

    /// An epoch below the last one without data.
    fn has_epoch_cleaned_away(&self) -> bool {
        let mut earlier = self.files.epochs.iter().rev().skip(1);
        earlier.any(|entry| !self.any(|header| header.leader_epoch == entry.epoch))
    }

    /// Four with data and the last one without, where nothing was deleted and every round has written.
    fn has_epochs(&self) -> anyhow::Result<()> {
        let (Files { partition, epochs, .. }, end) = (self.files, self.end());
        let last = epochs.last().context("no leader epoch")?;
        ensure!(last.start == end, "the last leader epoch has data, the log ends at {end}: {epochs:?}");
        let expected = match partition.topic {
            "large" | "huge" | "empty" | "emptied" | "retained" | "trimmed" => return Ok(()),
            // It skipped a round, and that epoch gave way to the next one.
            "idempotent" => ROUNDS,
            _ => ROUNDS + 1,
        };
        ensure!(epochs.len() == expected, "{} leader epochs, not {expected}: {epochs:?}", epochs.len());
        Ok(())
    }

    /// Something in it, but where nothing should be; near the size limit where that is what it is for.
    fn has_its_size(&self) -> anyhow::Result<()> {
        let topic = self.files.partition.topic;
        let is_there = self.end() > self.files.start;
        ensure!(is_there != WITHOUT_DATA.contains(&topic), "from {} to {}", self.files.start, self.end());
        let Some((_, least, most)) = LARGE.iter().find(|(large, ..)| *large == topic) else { return Ok(()) };
        let largest = self.headers.iter().filter_map(Header::total_len).max().unwrap_or(0);
        ensure!((*least..=*most).contains(&largest), "{largest} bytes, not {least} to {most}");
        Ok(())
    }

    fn has_nulls_and_headers(&self) -> anyhow::Result<()> {
        let (mut null_key, mut null_value, mut header) = (false, false, false);
        for frame in frames(&self.files.log) {
            let batch = Batch::parse(frame.bytes()).map_err(|error| anyhow::anyhow!("{error}"))?;
            for record in batch.plain_records().context("the records are packed")? {
                let record = record.map_err(|error| anyhow::anyhow!("{error}"))?;
                null_key |= record.key.is_none();
                null_value |= record.value.is_none();
                header |= record.headers.count() > 0;
            }
        }
        ensure!(
            null_key && null_value && header,
            "null keys {null_key}, values {null_value}, headers {header}"
        );
        Ok(())
    }

    fn starts_inside_a_batch(&self) -> anyhow::Result<()> {
        let start = self.files.start;
        let holds = |header: &Header| {
            header.base_offset < start && header.last_offset().is_some_and(|last| last >= start)
        };
        ensure!(self.any(holds), "the log start {start} lies inside no batch: {self:?}");
        Ok(())
    }
}

/// What a control batch does; nothing if it was emptied.
fn marker(batch: &Batch<'_>) -> Option<ControlType> {
    let record = batch.plain_records()?.next()?.ok()?;
    record.meta().control_key().ok().map(|key| key.kind)
}
