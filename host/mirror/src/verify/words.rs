//! How two batches at one place differ, in words.

use verbatim_batch::Header;

use super::records::{Batch, Pair, Placed, differing, pairs};
use super::report::{BatchHeader, Both, Difference, Side};

/// The header fields in which two batches differ, with both values: `field source / target`.
pub(super) fn header_fields(source: &Header, target: &Header) -> Vec<String> {
    let field = |name: &str, s: i64, t: i64| (s != t).then(|| format!("{name} {s} / {t}"));
    let hex = |name: &str, s: u32, t: u32| (s != t).then(|| format!("{name} {s:08x} / {t:08x}"));
    let bits = |header: &Header| u32::from(header.attributes.bits().cast_unsigned());
    [
        field("baseOffset", source.base_offset, target.base_offset),
        field("batchLength", source.batch_length.into(), target.batch_length.into()),
        field("partitionLeaderEpoch", source.leader_epoch.into(), target.leader_epoch.into()),
        field("magic", source.magic.into(), target.magic.into()),
        hex("crc", source.crc, target.crc),
        hex("attributes", bits(source), bits(target)),
        field("lastOffsetDelta", source.last_offset_delta.into(), target.last_offset_delta.into()),
        field("baseTimestamp", source.base_timestamp, target.base_timestamp),
        field("maxTimestamp", source.max_timestamp, target.max_timestamp),
        field("producerId", source.producer_id, target.producer_id),
        field("producerEpoch", source.producer_epoch.into(), target.producer_epoch.into()),
        field("baseSequence", source.base_sequence.into(), target.base_sequence.into()),
        field("recordCount", source.record_count.into(), target.record_count.into()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The difference between two batches that are not equal byte for byte but begin at one offset: the first record
/// that differs, where only records do, else the batch itself.
pub(super) fn unequal(source: &Batch, target: &Batch, inflate_bytes_max: usize) -> Difference {
    let fields = header_fields(&source.header, &target.header);
    let base = source.header.base_offset;
    let told = match first_record(source, target, inflate_bytes_max) {
        Some((offset, what)) => Difference::new(offset, [vec![what], fields].concat().join("; ")),
        None if fields.is_empty() => Difference::new(base, "the packed records differ"),
        None => Difference::new(base, fields.join("; ")),
    };
    beside(told, Some(source), Some(target))
}

/// A batch that one side lacks; `next` is what that side has next.
pub(super) fn lacking(lacks: Side, batch: &Batch, next: Option<&Batch>) -> Difference {
    let (first, last) = (batch.header.base_offset, batch.last());
    let kind = if batch.header.attributes.is_control() { "marker" } else { "batch" };
    let next = next.map_or_else(
        || "has nothing behind it".to_owned(),
        |next| format!("goes on with batch {} to {}", next.header.base_offset, next.last()),
    );
    let what = format!("the {lacks} lacks the {kind} of offsets {first} to {last} and {next}");
    Difference::new(first, what)
}

/// Two records at one offset that are not equal.
pub(super) fn unequal_records(source: &Placed<'_>, target: &Placed<'_>) -> Difference {
    Difference::new(source.offset, unequal_record(source, target))
}

fn unequal_record(source: &Placed<'_>, target: &Placed<'_>) -> String {
    format!("the record at offset {} differs in {}", source.offset, differing(source, target).join(", "))
}

/// The same with both batches' headers.
pub(super) fn beside(mut told: Difference, source: Option<&Batch>, target: Option<&Batch>) -> Difference {
    let header = |batch: &Batch| Box::new(BatchHeader::from(&batch.header));
    told.batches = Both { source: source.map(header), target: target.map(header) };
    told
}

/// The first offset at which records differ; `None` if the headers differ in what is not the records', or the records
/// cannot be read.
fn first_record(source: &Batch, target: &Batch, inflate_bytes_max: usize) -> Option<(i64, String)> {
    let (s, t) = (&source.header, &target.header);
    let like_target = Header {
        batch_length: t.batch_length,
        crc: t.crc,
        max_timestamp: t.max_timestamp,
        base_timestamp: t.base_timestamp,
        record_count: t.record_count,
        ..*s
    };
    if like_target != *t {
        return None;
    }
    let (source, target) =
        (source.inflated(inflate_bytes_max).ok()?, target.inflated(inflate_bytes_max).ok()?);
    pairs(&source, &target).find_map(|pair| match pair {
        Pair::Both(s, t) => (!differing(&s, &t).is_empty()).then(|| (s.offset, unequal_record(&s, &t))),
        Pair::Left(s) => Some((s.offset, format!("the target lacks the record at offset {}", s.offset))),
        Pair::Right(t) => Some((t.offset, format!("the source lacks the record at offset {}", t.offset))),
    })
}
