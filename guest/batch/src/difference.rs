use crate::header::{HEADER_LEN, Header};
use crate::record::Records;

/// The first offset at which two batches differ (R23): `stored` and `received` are whole batches that begin at the same
/// offset and are not the same bytes.
///
/// Where the records of both can be read as they are (codec none) and the headers say the same of them, it is that of the
/// first record that differs or that only one of them has. Else the batches differ as a whole: the base offset of `stored`,
/// or 0 where that is shorter than a header.
///
/// ```
/// # use verbatim_batch::{BatchBuilder, NewRecord, first_difference};
/// let batch = |second| BatchBuilder::new(40).record(NewRecord::new(0, 5)).record(NewRecord::new(2, 5).value(second));
/// let (stored, received) = (batch(b"a").build().unwrap(), batch(b"b").build().unwrap());
/// assert_eq!(first_difference(&stored, &received), 42);
/// ```
pub fn first_difference(stored: &[u8], received: &[u8]) -> i64 {
    let Some(header) = Header::read(stored) else { return 0 };
    let base = header.base_offset;
    let delta = Header::read(received)
        .filter(|other| same_meaning(&header, other))
        .and_then(|other| first_record(walk(&header, stored), walk(&other, received)));
    delta.and_then(|delta| base.checked_add(i64::from(delta))).unwrap_or(base)
}

/// The offset delta of the first record that differs; `None` where none does or one cannot be read.
fn first_record(mut stored: Records<'_>, mut received: Records<'_>) -> Option<i32> {
    loop {
        let (one, other) = (stored.next().transpose().ok()?, received.next().transpose().ok()?);
        if one != other || one.is_none() {
            return one.into_iter().chain(other).map(|record| record.offset_delta).min();
        }
    }
}

/// Plain records of the same range, time and producer: what else the headers say follows from the records.
fn same_meaning(stored: &Header, received: &Header) -> bool {
    let as_stored = Header {
        batch_length: stored.batch_length,
        crc: stored.crc,
        max_timestamp: stored.max_timestamp,
        record_count: stored.record_count,
        ..*received
    };
    as_stored == *stored && stored.attributes.codec() == Ok(crate::Codec::None)
}

fn walk<'a>(header: &Header, batch: &'a [u8]) -> Records<'a> {
    Records::new(batch.get(HEADER_LEN..).unwrap_or_default(), header.record_count)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use crate::{BatchBuilder, Codec, NewRecord};
    use alloc::vec::Vec;

    fn built(records: &[(i32, &[u8])]) -> Vec<u8> {
        let mut builder = BatchBuilder::new(100).last_offset_delta(9);
        for (delta, value) in records {
            builder = builder.record(NewRecord::new(*delta, 7).value(value));
        }
        builder.build().unwrap()
    }

    #[test]
    fn the_first_record_that_is_other_missing_or_added() {
        let stored = built(&[(0, b"a"), (4, b"b"), (7, b"c")]);
        for (received, first) in [
            (built(&[(0, b"a"), (4, b"x"), (7, b"y")]), 104),
            (built(&[(0, b"a"), (4, b"b"), (7, b"longer")]), 107),
            (built(&[(0, b"a"), (7, b"c")]), 104),
            (built(&[(0, b"a"), (4, b"b")]), 107),
            (built(&[(0, b"a"), (2, b"b"), (7, b"c")]), 102),
            (built(&[(4, b"b"), (7, b"c")]), 100),
        ] {
            assert_eq!(first_difference(&stored, &received), first);
            assert_eq!(first_difference(&received, &stored), first);
        }
    }

    #[test]
    fn the_base_offset_where_records_cannot_be_told_apart() {
        let stored = built(&[(0, b"a"), (4, b"b")]);
        let header = Header::read(&stored).unwrap();
        let spoiled = |at: usize, byte: u8| {
            let mut bytes = stored.clone();
            bytes[at] = byte;
            bytes
        };
        let payload = &stored[HEADER_LEN..];
        let compressed = BatchBuilder::new(100).last_offset_delta(9).record(NewRecord::new(0, 7).value(b"a"));
        let with = |header: Header| [&header.to_bytes()[..], payload].concat();
        for received in [
            stored.clone(),
            compressed.build_compressed(Codec::Lz4, payload).unwrap(),
            with(Header { leader_epoch: 3, ..header }),
            with(Header { base_timestamp: 8, ..header }),
            with(Header { last_offset_delta: 8, ..header }),
            spoiled(HEADER_LEN, 0x7F),
            stored[..40].to_vec(),
            Vec::new(),
        ] {
            assert_eq!(first_difference(&stored, &received), 100);
        }
        assert_eq!(first_difference(&stored[..40], &stored), 0);
    }
}
