//! What a writer of exact topics sends: batches at offsets and epochs of its choice, and the tag's order beside them.

use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_wire::tag::RequestTag;

/// The timestamp of the first record of every batch made here, in milliseconds.
pub const TIMESTAMP_MS: i64 = 1_700_000_000_000;

/// The topic property that makes a topic exact, as a command line has it.
pub const EXACT: &str = "produce.at.offset=true";

/// A batch with a record for each value; record `i` has the key `k<i>`, the timestamp `TIMESTAMP_MS + i`, and offset
/// `base + i`.
///
/// # Errors
/// If the values are too large for a batch.
pub fn batch(base: i64, epoch: i32, values: &[&str]) -> anyhow::Result<Vec<u8>> {
    let keys: Vec<String> = (0..values.len()).map(|i| format!("k{i}")).collect();
    let mut builder = BatchBuilder::new(base).leader_epoch(epoch);
    for ((i, key), value) in (0_i32..).zip(&keys).zip(values) {
        let record = NewRecord::new(i, TIMESTAMP_MS.saturating_add(i64::from(i)));
        builder = builder.record(record.key(key.as_bytes()).value(value.as_bytes()));
    }
    builder.build().map_err(|error| anyhow::anyhow!("{error:?}"))
}

/// The order for a write that the source, with its log start, end and leader epoch, has in its own log: the destination's
/// end before it, and the source's epoch there.
pub fn order(
    (expected_end, epoch_before): (i64, i32),
    (source_start, source_end): (i64, i64),
    source_epoch: i32,
) -> RequestTag {
    RequestTag {
        source_topic_id: [0; 16],
        expected_end,
        epoch_before,
        source_start,
        source_end,
        source_epoch,
        end_to: None,
        truncate_to: None,
        entries: Vec::new(),
    }
}
