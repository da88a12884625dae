//! One cluster alone: the digest of each partition.

use super::compare::Head;
use super::digest::Digest;
use super::options::Options;
use super::partition::{Noted, log};
use super::report::{Both, Bounds, Count, PartitionReport, Range, Verdict};
use super::shared::Shared;
use super::walk::{Feed, ReadError};
use crate::cluster::Partition;

/// The digest over what is asked for of a partition.
pub(super) async fn digest(shared: &Shared, partition: &Partition, bounds: Bounds) -> PartitionReport {
    let mut report = PartitionReport::new(&partition.topic, partition.index);
    report.bounds = Both { source: Some(bounds), target: None };
    let mut range = range(bounds, &shared.options);
    let (digest, count) = loop {
        match read(shared, partition, bounds, range).await {
            Ok(read) => break read,
            Err(ReadError::Moved(start)) if start < range.to => {
                report.notes.push(format!("the log start moved to offset {start} meanwhile"));
                range.from = start;
            }
            Err(error) => {
                let why = match error {
                    ReadError::Moved(start) => {
                        format!("the log start moved to offset {start}, past the range")
                    }
                    ReadError::Damaged(offset) => format!("the batch at offset {offset} is damaged"),
                    ReadError::Failed(why) => why,
                };
                return report.with_verdict(Verdict::Undecided, why);
            }
        }
    };
    report.range = Some(range);
    report.digest.source = Some(digest);
    report.count.source = count;
    report.with_verdict(Verdict::Digest, "")
}

fn range(bounds: Bounds, options: &Options) -> Range {
    let from = options.from_offset.map_or(bounds.start, |from| bounds.start.max(from));
    let to = options.to_offset.map_or(bounds.end, |to| bounds.end.min(to));
    Range { from, to: to.max(from) }
}

async fn read(
    shared: &Shared,
    partition: &Partition,
    bounds: Bounds,
    range: Range,
) -> Result<(Digest, Count), ReadError> {
    let mut feed = log(&shared.options, &shared.pace, &shared.source, partition, bounds).feed(range);
    let (mut digest, mut count) = (Digest::default(), Count::default());
    let mut noted = Noted::new(shared, partition, range, range.from);
    loop {
        feed.load().await?;
        let Some(Head { batch, .. }) = feed.head() else { return Ok((digest, count)) };
        digest.add(&batch.bytes);
        count.add(&batch.header, batch.bytes.len());
        noted.come_to(batch.last().saturating_add(1), count.bytes);
        feed.pass();
    }
}
