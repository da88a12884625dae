//! Batches for tests.

use verbatim_batch::{BatchBuilder, ControlType, HEADER_LEN, Header, NewRecord, place};
use verbatim_log::Placed;

use crate::rng::Rng;

/// A plain batch of `count` records.
pub(crate) fn plain(base: i64, epoch: i32, count: i32) -> Vec<u8> {
    plain_at(base, epoch, count, 1_000 + base.min(1 << 40))
}

/// The same, with the first record's timestamp; -1 is that of all.
pub(crate) fn plain_at(base: i64, epoch: i32, count: i32, timestamp: i64) -> Vec<u8> {
    records(BatchBuilder::new(base).leader_epoch(epoch), count, timestamp)
}

/// A batch of an idempotent producer, (id, epoch, first sequence), transactional or not.
pub(crate) fn produced(
    base: i64,
    epoch: i32,
    count: i32,
    producer: (i64, i16, i32),
    transactional: bool,
) -> Vec<u8> {
    produced_at(base, epoch, count, producer, transactional, 1_000 + base.min(1 << 40))
}

/// The same, with the first record's timestamp; -1 is that of all.
pub(crate) fn produced_at(
    base: i64,
    epoch: i32,
    count: i32,
    producer: (i64, i16, i32),
    transactional: bool,
    timestamp: i64,
) -> Vec<u8> {
    let mut builder =
        BatchBuilder::new(base).leader_epoch(epoch).producer(producer.0, producer.1, producer.2);
    if transactional {
        builder = builder.transactional();
    }
    records(builder, count, timestamp)
}

/// A transaction marker.
pub(crate) fn marker(base: i64, epoch: i32, producer: (i64, i16), abort: bool) -> Vec<u8> {
    marker_at(base, epoch, producer, abort, 1_000)
}

/// The same, with its timestamp.
pub(crate) fn marker_at(base: i64, epoch: i32, producer: (i64, i16), abort: bool, timestamp: i64) -> Vec<u8> {
    let kind = if abort { ControlType::Abort } else { ControlType::Commit };
    let mut bytes = BatchBuilder::marker(base, producer, timestamp, kind, 7).unwrap();
    place(&mut bytes, base, epoch).unwrap();
    bytes
}

/// The two parts in which the log takes a batch.
pub(crate) fn placed(batch: &[u8]) -> Placed<'_> {
    placed_for(batch, 0)
}

/// The same, stored in place of one of several batches that may have been received.
pub(crate) fn placed_for(batch: &[u8], original: u64) -> Placed<'_> {
    let (head, payload) = batch.split_at(HEADER_LEN);
    Placed { head, payload, received: Some(digest(batch, original)) }
}

/// Stands for the SHA-256 of what was received in place of a batch.
pub(crate) fn digest(batch: &[u8], original: u64) -> [u8; 32] {
    let seed = u64::from(verbatim_batch::crc32c(batch)) << 32 | original;
    let mut numbers = Rng::new(seed);
    let mut digest = [0; 32];
    digest.chunks_mut(8).for_each(|part| part.copy_from_slice(&numbers.next().to_be_bytes()));
    digest
}

pub(crate) fn header(batch: &[u8]) -> Header {
    Header::read(batch).unwrap()
}

pub(crate) fn next(batch: &[u8]) -> i64 {
    header(batch).next_offset().unwrap()
}

fn records(mut builder: BatchBuilder<'_>, count: i32, timestamp: i64) -> Vec<u8> {
    for delta in 0..count {
        let timestamp = if timestamp < 0 { timestamp } else { timestamp + i64::from(delta) };
        builder = builder.record(NewRecord::new(delta, timestamp).value(b"some value or other"));
    }
    builder.build().unwrap()
}
