//! Reading: bounds, timestamps, epochs, and reads that a cut overtakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use verbatim_batch::{Attributes, Batch, BatchBuilder, Codec, NewRecord, frames};
use verbatim_contract::EpochAnswer;
use verbatim_log::{Commit, Config, Log, LogReader, ReadError, Retention, SourcePosition, TimestampHit};

use crate::batches::{placed, plain};
use crate::cases::{append, create, exact};
use crate::disk::Disk;

fn no_codec(codec: Codec, _: &[u8]) -> Result<Bytes, String> {
    Err(format!("unexpected codec {codec}"))
}

fn timed(base: i64, timestamps: &[i64]) -> Vec<u8> {
    let records =
        timestamps.iter().zip(0..).map(|(timestamp, delta)| NewRecord::new(delta, *timestamp).value(b"v"));
    records.fold(BatchBuilder::new(base).leader_epoch(3), BatchBuilder::record).build().unwrap()
}

#[test]
fn reads_give_whole_batches_within_bounds() {
    let disk = Disk::default();
    let mut log = create(&disk, &Config { segment_bytes: 300, index_interval_bytes: 0, ..exact() });
    let batches = [plain(10, 1, 3), plain(13, 1, 3), plain(30, 1, 3), plain(33, 1, 3)];
    append(&mut log, &batches);
    let (reader, one) = (log.reader(), batches[0].len());
    let read = |offset, max, bound, min_one| reader.read(offset, max, bound, min_one).unwrap().bytes;
    assert_eq!(
        read(11, 10_000, 36, true),
        batches[..2].concat(),
        "from the batch that holds the offset (R44)"
    );
    assert_eq!(read(0, one, 36, false), batches[0], "the first after a hole");
    assert_eq!(read(20, 2 * one - 1, 36, true), batches[2], "the next segment after a hole");
    assert_eq!(read(10, one - 1, 36, true), batches[0]);
    assert!(read(10, one - 1, 36, false).is_empty());
    assert_eq!(read(10, 10_000, 15, true), batches[0], "never past the bound");
    assert!(read(10, 10_000, 12, true).is_empty());
    assert!(read(36, 10_000, 36, true).is_empty());
    assert!(read(36, 10_000, 99, true).is_empty());
    log.advance_start(14).unwrap();
    assert_eq!(reader.read(14, 10_000, 36, true).unwrap().bytes, batches[1]);
    for offset in [13, 37, -1] {
        let refused = reader.read(offset, 10_000, 36, true);
        assert!(matches!(refused, Err(ReadError::OutOfRange { start: 14, end: 36, .. })), "{refused:?}");
    }
}

#[test]
fn records_are_found_by_timestamp() {
    for index_interval_bytes in [0, 4096] {
        let disk = Disk::default();
        let mut log = create(&disk, &Config { segment_bytes: 200, index_interval_bytes, ..exact() });
        let late = BatchBuilder::new(30)
            .leader_epoch(4)
            .log_append_time(900)
            .record(NewRecord::new(0, 5))
            .record(NewRecord::new(1, 5))
            .build()
            .unwrap();
        append(&mut log, &[timed(0, &[100, 300, 200]), timed(10, &[250]), timed(20, &[400, 900, 500]), late]);
        let reader = log.reader();
        let find = |timestamp, bound| reader.offset_for_timestamp(timestamp, bound, &no_codec).unwrap();
        let hit = |offset, timestamp, leader_epoch| Some(TimestampHit { offset, timestamp, leader_epoch });
        assert_eq!(find(0, 32), hit(0, 100, 3));
        assert_eq!(find(101, 32), hit(1, 300, 3));
        assert_eq!(find(301, 32), hit(20, 400, 3));
        assert_eq!(find(401, 32), hit(21, 900, 3));
        assert_eq!(find(901, 32), None);
        assert_eq!(find(401, 20), None);
        assert_eq!(reader.max_timestamp(32, &no_codec).unwrap(), hit(21, 900, 3));
        assert_eq!(reader.max_timestamp(20, &no_codec).unwrap(), hit(1, 300, 3));
        log.advance_start(22).unwrap();
        assert_eq!(reader.offset_for_timestamp(0, 32, &no_codec).unwrap(), hit(22, 500, 3));
        assert_eq!(reader.max_timestamp(32, &no_codec).unwrap(), hit(30, 900, 4));
    }
}

#[test]
fn compressed_records_are_inflated_by_the_caller() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    let builder = BatchBuilder::new(0).record(NewRecord::new(0, 10)).record(NewRecord::new(1, 20));
    let plain_records = builder.plain_records().unwrap();
    append(&mut log, &[builder.build_compressed(Codec::Zstd, b"squeezed").unwrap()]);
    let inflate = |codec: Codec, bytes: &[u8]| {
        assert_eq!((codec, bytes), (Codec::Zstd, &b"squeezed"[..]));
        Ok(Bytes::from(plain_records.clone()))
    };
    let hit = log.reader().offset_for_timestamp(15, 9, &inflate).unwrap();
    assert_eq!(hit, Some(TimestampHit { offset: 1, timestamp: 20, leader_epoch: 0 }));
    let error = log.reader().offset_for_timestamp(15, 9, &no_codec).unwrap_err();
    assert!(error.to_string().contains("unexpected codec zstd"), "{error}");
    let unknown = BatchBuilder::new(2)
        .attributes(Attributes::from_bits(6))
        .record(NewRecord::new(0, 99))
        .build()
        .unwrap();
    append(&mut log, &[unknown]);
    assert!(log.reader().max_timestamp(9, &inflate).is_err());
}

#[test]
fn epoch_answers_stay_below_the_high_watermark() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    append(&mut log, &[plain(0, 1, 10)]);
    log.flush().unwrap();
    append(&mut log, &[plain(10, 2, 10), plain(20, 4, 10)]);
    let reader = log.reader();
    let answer = |epoch, end| EpochAnswer { epoch, end };
    assert_eq!(reader.epoch_end(1), answer(1, 10));
    assert_eq!(reader.epoch_end(2), answer(2, 10), "20 is not durable yet");
    log.flush().unwrap();
    assert_eq!((reader.epoch_end(2), reader.epoch_end(4)), (answer(2, 20), answer(4, 30)));
    assert_eq!(reader.epoch_end(5), EpochAnswer::UNDEFINED);
    log.declare_source(SourcePosition { start: 0, end: 77, epoch: 4 }).unwrap();
    assert_eq!(reader.epoch_end(4), answer(4, 77));
}

/// Batch `offset` of the history that began with `generation`.
fn versioned(offset: i64, generation: u64) -> Vec<u8> {
    let value = generation.to_be_bytes();
    BatchBuilder::new(offset).record(NewRecord::new(0, 7).value(&value)).build().unwrap()
}

fn generation(batch: &Batch<'_>) -> u64 {
    let record = batch.plain_records().unwrap().next().unwrap().unwrap();
    u64::from_be_bytes(record.value.unwrap().try_into().unwrap())
}

/// Reads until told to stop; how many batches were seen.
fn read_along(reader: &LogReader, done: &AtomicBool) -> u64 {
    let mut seen = 0;
    let mut at = 0;
    while !done.load(Ordering::Relaxed) || seen == 0 {
        let fetched = match reader.read(at, 2_000, i64::MAX, true) {
            Ok(fetched) => fetched,
            Err(ReadError::OutOfRange { .. }) => {
                at = 0;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let (mut expected, mut newest) = (at, 0);
        for frame in frames(&fetched.bytes) {
            let batch = Batch::parse(frame.bytes()).unwrap();
            assert_eq!(batch.header().base_offset, expected);
            assert!(batch.header().base_offset < fetched.view.end);
            // What follows a cut is newer than what it left; bytes of the history before would be older.
            assert!(generation(&batch) >= newest, "two histories in one read");
            newest = generation(&batch);
            expected += 1;
            seen += 1;
        }
        at = if expected > at { expected } else { 0 };
    }
    seen
}

#[test]
fn a_read_never_mixes_two_histories() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { segment_bytes: 2_000, index_interval_bytes: 100, ..exact() };
    let mut log = Log::create(&folder.path().join("t-0"), config, Arc::new(verbatim_log::DiskIo)).unwrap();
    append(&mut log, &(0..60).map(|offset| versioned(offset, 0)).collect::<Vec<_>>());
    let done = AtomicBool::new(false);
    let readers = [log.reader(), log.reader()];
    std::thread::scope(|scope| {
        let threads = readers.each_ref().map(|reader| scope.spawn(|| read_along(reader, &done)));
        for turn in 1..=60_u64 {
            let to = 10 + (turn.wrapping_mul(37) % 50) as i64;
            let batches: Vec<_> = (to..60).map(|offset| versioned(offset, turn)).collect();
            let placed: Vec<_> = batches.iter().map(|batch| placed(batch)).collect();
            log.apply(&Commit { cut: Some(to), batches: &placed, ..Commit::default() }).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for thread in threads {
            assert!(thread.join().unwrap() > 0);
        }
    });
}

/// Reads from places all over the log: whole batches of what was asked for, or the answer that it is gone.
fn read_beside_retention(reader: &LogReader, done: &AtomicBool, seed: i64) -> (u64, u64) {
    let (mut whole, mut gone, mut at) = (0, 0, seed);
    while !done.load(Ordering::Relaxed) {
        let view = reader.view();
        at = (at * 31 + 7) % 1_009;
        // Mostly near the start, where segments are being removed.
        let offset = view.start + at % (view.end - view.start + 1).clamp(1, 40) - 2;
        match reader.read(offset, 500, view.end, true) {
            Ok(fetched) => {
                for frame in frames(&fetched.bytes) {
                    let base = frame.header().unwrap().base_offset;
                    assert_eq!(frame.bytes(), plain(base, 0, 2), "offset {offset}");
                    whole += 1;
                }
            }
            Err(ReadError::OutOfRange { start, .. }) => {
                assert!(offset < start, "{offset} is not below {start}");
                gone += 1;
            }
            Err(error) => panic!("{error}"),
        }
        let hit = reader.offset_for_timestamp(1_000 + offset.max(0), view.end, &no_codec).unwrap();
        assert!(hit.is_none_or(|hit| hit.offset >= offset && hit.timestamp == 1_000 + hit.offset));
    }
    (whole, gone)
}

#[test]
fn a_read_beside_retention_is_whole_or_out_of_range() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { exact: false, segment_bytes: 400, index_interval_bytes: 100, ..exact() };
    let mut log = Log::create(&folder.path().join("t-0"), config, Arc::new(verbatim_log::DiskIo)).unwrap();
    let done = AtomicBool::new(false);
    let readers = [log.reader(), log.reader()];
    let retention = Retention { bytes: Some(3_000), ms: None, segments_max: 3 };
    std::thread::scope(|scope| {
        let done = &done;
        let threads: Vec<_> = readers
            .iter()
            .zip([3, 500])
            .map(|(reader, seed)| scope.spawn(move || read_beside_retention(reader, done, seed)))
            .collect();
        for turn in 0..400 {
            append(&mut log, &[plain(2 * turn, 0, 2)]);
            log.flush().unwrap();
            if turn % 5 == 0 {
                log.retain(0, &retention).unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
        for thread in threads {
            let (whole, gone) = thread.join().unwrap();
            assert!(whole > 0 && gone > 0, "{whole} batches, {gone} times out of range");
        }
    });
    assert!(log.position().start > 600);
}
