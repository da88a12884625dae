//! One test a promise: what is kept, what is refused, what a start does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use verbatim_batch::BatchBuilder;
use verbatim_contract::{Comparison, CutPreview, EpochEntry};
use verbatim_log::{ApplyError, Commit, Config, Flush, Io, Log, LogError, Recovery, SourcePosition};

use crate::batches::{marker, next, placed, plain, produced};
use crate::disk::Disk;
use crate::model::read_all;

const FOLDER: &str = "/data/topic-0";

pub(crate) fn exact() -> Config {
    Config { exact: true, topic_id: (1, 2), segment_ms: i64::MAX, ..Config::default() }
}

fn small(segment_bytes: u32) -> Config {
    Config { segment_bytes, index_interval_bytes: 0, ..exact() }
}

pub(crate) fn create(disk: &Disk, config: &Config) -> Log {
    Log::create(Path::new(FOLDER), config.clone(), Arc::new(disk.clone())).unwrap()
}

pub(crate) fn try_open(disk: &Disk, config: &Config) -> Result<(Log, Recovery), LogError> {
    disk.end_process();
    Log::open(Path::new(FOLDER), config.clone(), Arc::new(disk.clone()))
}

fn reopen(log: Log, disk: &Disk, config: &Config) -> Log {
    drop(log);
    try_open(disk, config).unwrap().0
}

pub(crate) fn append(log: &mut Log, batches: &[Vec<u8>]) {
    let placed: Vec<_> = batches.iter().map(|batch| placed(batch)).collect();
    log.apply(&Commit { batches: &placed, ..Commit::default() }).unwrap();
}

fn entries(log: &Log) -> Vec<(i32, i64)> {
    log.epochs().entries().iter().map(|entry| (entry.epoch, entry.start)).collect()
}

fn entry(epoch: i32, start: i64) -> EpochEntry {
    EpochEntry { epoch, start }
}

pub(crate) fn segments(disk: &Disk) -> Vec<String> {
    let mut names = disk.list(Path::new(FOLDER)).unwrap();
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names
}

fn log_file(base: i64) -> PathBuf {
    Path::new(FOLDER).join(format!("{base:020}.log"))
}

#[test]
fn offsets_far_apart_roll_segments_instead_of_overflowing() {
    let disk = Disk::default();
    let mut log = create(&disk, &small(1 << 20));
    let far = 5_000_000_000;
    let wide = BatchBuilder::new(far + 10).leader_epoch(7).last_offset_delta(i32::MAX).build().unwrap();
    let edge = i64::from(i32::MAX) - 5;
    let batches = [
        plain(100, 5, 3),
        plain(edge, 5, 6),
        plain(edge + 6, 5, 10),
        plain(far, 7, 2),
        wide.clone(),
        plain(next(&wide), 7, 1),
    ];
    append(&mut log, &batches);
    log.flush().unwrap();
    let expected = [0, edge + 6, far, far + 10, next(&wide)].map(|base| format!("{base:020}.log"));
    assert_eq!(segments(&disk), expected);
    for batch in &batches {
        assert_eq!(log.compare(batch, crate::batches::header(batch).base_offset).unwrap(), Comparison::Same);
    }
    let log = reopen(log, &disk, &small(1 << 20));
    assert_eq!(read_all(&log), batches.concat());
    assert_eq!(entries(&log), [(5, 100), (7, far)]);
    let bytes: Vec<u8> = expected.iter().flat_map(|name| disk.bytes(&Path::new(FOLDER).join(name))).collect();
    assert_eq!(bytes, batches.concat());
}

#[test]
fn a_tail_hole_is_a_new_segment_and_survives() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    append(&mut log, &[plain(10, 1, 5)]);
    log.apply(&Commit { end: Some(40), entries: &[entry(3, 30), entry(4, 40)], ..Commit::default() })
        .unwrap();
    assert_eq!(segments(&disk), ["00000000000000000000.log", "00000000000000000040.log"]);
    let mut log = reopen(log, &disk, &exact());
    assert_eq!((log.position().end, entries(&log)), (40, vec![(1, 10), (3, 30), (4, 40)]));
    assert_eq!((log.position().epoch_before_end, log.position().shown_epoch), (3, 4));
    let batch = plain(40, 4, 1);
    assert_eq!(log.compare(&batch, 40).unwrap(), Comparison::Absent);
    append(&mut log, std::slice::from_ref(&batch));
    log.flush().unwrap();
    assert_eq!(disk.bytes(&log_file(40)), batch);
    // Reached already: nothing happens (R26b).
    log.apply(&Commit { end: Some(20), start: Some(0), ..Commit::default() }).unwrap();
    assert_eq!(log.position().end, 41);
}

#[test]
fn a_normal_partition_begins_an_epoch_at_every_start() {
    let (disk, config) = (Disk::default(), Config { topic_id: (1, 2), ..Config::default() });
    let mut log = create(&disk, &config);
    assert_eq!((entries(&log), log.position().shown_epoch), (vec![(0, 0)], 0));
    append(&mut log, &[plain(0, 0, 4)]);
    log.flush().unwrap();
    let mut log = reopen(log, &disk, &config);
    assert_eq!(entries(&log), [(0, 0), (1, 4)]);
    append(&mut log, &[plain(4, 1, 4)]);
    log.close().unwrap();
    let (log, recovery) = try_open(&disk, &config).unwrap();
    assert!(recovery.clean && recovery.scanned_bytes == 0);
    assert_eq!((entries(&log), log.position().shown_epoch), (vec![(0, 0), (1, 4), (2, 8)], 2));
}

#[test]
fn only_an_abort_of_an_open_transaction_is_indexed() {
    let disk = Disk::default();
    let mut log = create(&disk, &small(600));
    let producer = |base, id, transactional| produced(base, 1, 2, (id, 0, 0), transactional);
    append(
        &mut log,
        &[
            marker(0, 1, (8, 0), true),
            producer(1, 9, true),
            producer(3, 10, true),
            marker(5, 1, (9, 0), true),
        ],
    );
    assert_eq!(log.open_transactions(), [(3, 10)]);
    append(&mut log, &[marker(6, 1, (10, 0), false), plain(7, 1, 20)]);
    log.flush().unwrap();
    let aborted = log.reader().aborted(0, 100);
    assert_eq!(aborted.len(), 1);
    let found = (
        aborted[0].producer_id,
        aborted[0].first_offset,
        aborted[0].last_offset,
        aborted[0].last_stable_offset,
    );
    assert_eq!(found, (9, 1, 5, 3));
    assert!(log.reader().aborted(0, 1).is_empty() && log.reader().aborted(6, 100).is_empty());
    append(&mut log, &[plain(27, 1, 1)]);
    let index = disk.bytes(&Path::new(FOLDER).join("00000000000000000000.txnindex"));
    let expected = [
        &[0_u8, 0][..],
        &9_i64.to_be_bytes(),
        &1_i64.to_be_bytes(),
        &5_i64.to_be_bytes(),
        &3_i64.to_be_bytes(),
    ];
    assert_eq!(index, expected.concat());
    let log = reopen(log, &disk, &small(600));
    assert_eq!(log.reader().aborted(0, 100), aborted);
    assert_eq!(log.producer(8).unwrap().coordinator_epoch, 7);
    assert_eq!(log.producer(8).unwrap().last().last_sequence, -1);
}

#[test]
fn the_stable_offset_waits_for_the_marker_to_be_durable() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    append(&mut log, &[plain(0, 1, 2), produced(2, 1, 2, (9, 0, 0), true)]);
    log.flush().unwrap();
    assert_eq!((log.position().high_watermark, log.position().stable_offset), (4, 2));
    append(&mut log, &[marker(4, 1, (9, 0), true)]);
    // A power loss could still take the marker, and with it the fact that the records are void.
    assert_eq!((log.position().high_watermark, log.position().stable_offset), (4, 2));
    log.flush().unwrap();
    assert_eq!((log.position().high_watermark, log.position().stable_offset), (5, 5));
}

#[test]
fn five_batches_of_a_producer_survive() {
    let disk = Disk::default();
    let mut log = create(&disk, &small(400));
    let batches: Vec<_> =
        (0..7).map(|index| produced(index * 2, 1, 2, (9, 3, index as i32 * 2), false)).collect();
    append(&mut log, &batches);
    let before = log.producer(9).unwrap().clone();
    let offsets: Vec<_> = before.batches.iter().map(|batch| batch.base_offset).collect();
    assert_eq!(offsets, [4, 6, 8, 10, 12]);
    let mut log = reopen(log, &disk, &small(400));
    assert_eq!(log.producer(9), Some(&before));
    assert_eq!(log.expire_producers(before.last_timestamp + 99, 100), 0);
    assert_eq!(log.expire_producers(before.last_timestamp + 100, 100), 1);
    append(&mut log, &[produced(14, 1, 1, (9, 3, 14), true)]);
    assert_eq!(log.expire_producers(i64::MAX, 100), 0);
}

/// The order in which removed files stay removed is nobody's promise: of two the older one may come back alone.
#[test]
fn producers_survive_a_dead_segment_that_a_power_loss_brings_back() {
    let disk = Disk::default();
    let mut log = create(&disk, &small(1));
    append(&mut log, &[plain(0, 1, 2), produced(2, 1, 2, (9, 3, 0), true)]);
    let oldest = disk.bytes(&log_file(0));
    log.advance_start(4).unwrap();
    let before = log.producer(9).unwrap().clone();
    assert_eq!((segments(&disk).len(), before.open_transaction), (1, Some(2)));
    drop(log);
    disk.open(&log_file(0), true).unwrap();
    disk.set_bytes(&log_file(0), oldest);
    let (mut log, _) = try_open(&disk, &small(1)).unwrap();
    assert_eq!((log.producer(9), log.open_transactions()), (Some(&before), vec![(2, 9)]));
    assert_eq!((log.position().start, log.position().end, segments(&disk).len()), (4, 4, 1));
    append(&mut log, &[marker(4, 1, (9, 3), true)]);
    assert_eq!(log.reader().aborted(0, 5).len(), 1);
}

#[test]
fn an_empty_log_restarts_below_its_end() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    append(&mut log, &[plain(0, 1, 10), plain(10, 1, 5)]);
    log.advance_start(15).unwrap();
    assert_eq!((log.position().start, log.position().end, entries(&log)), (15, 15, vec![(1, 15)]));
    let (below, reaching) = (plain(8, 1, 7), plain(8, 1, 8));
    let refused = log.apply(&Commit { batches: &[placed(&below)], ..Commit::default() });
    assert!(matches!(refused, Err(ApplyError::Invalid { .. })));
    // As a judge plans it: with the entry that the batch brings.
    let brought = [EpochEntry { epoch: 1, start: 8 }];
    let batches = [placed(&reaching)];
    log.apply(&Commit { entries: &brought, batches: &batches, ..Commit::default() }).unwrap();
    log.flush().unwrap();
    let log = reopen(log, &disk, &exact());
    assert_eq!((log.position().start, log.position().end, entries(&log)), (15, 16, vec![(1, 15)]));
    assert_eq!(read_all(&log), reaching);
}

#[test]
fn a_restart_with_a_higher_epoch_takes_the_place_of_the_latest_entry() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    append(&mut log, &[plain(0, 1, 15)]);
    log.advance_start(15).unwrap();
    let reaching = plain(8, 4, 8);
    let brought = [EpochEntry { epoch: 4, start: 8 }];
    log.apply(&Commit { entries: &brought, batches: &[placed(&reaching)], ..Commit::default() }).unwrap();
    log.flush().unwrap();
    let log = reopen(log, &disk, &exact());
    assert_eq!((log.position().start, log.position().end, entries(&log)), (15, 16, vec![(4, 15)]));
}

#[test]
fn damage_in_the_middle_is_named_and_nothing_is_changed() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    let batches = [plain(0, 1, 9), plain(9, 1, 9), plain(18, 1, 9)];
    append(&mut log, &batches);
    log.flush().unwrap();
    drop(log);
    let path = log_file(0);
    let whole = disk.bytes(&path);
    for at in [8, 16, 40, 70] {
        let mut damaged = whole.clone();
        damaged[batches[0].len() + at] ^= 0x41;
        disk.set_bytes(&path, damaged.clone());
        let Err(LogError::Corrupt { file, position, .. }) = try_open(&disk, &exact()) else {
            panic!("opened, byte {at}")
        };
        assert_eq!((file, position), (path.clone(), batches[0].len() as u64), "byte {at}");
        assert_eq!(disk.bytes(&path), damaged);
    }
    // The same at the end of the log is a torn tail.
    let mut torn = whole;
    *torn.last_mut().unwrap() ^= 1;
    disk.set_bytes(&path, torn);
    let (log, recovery) = try_open(&disk, &exact()).unwrap();
    assert_eq!((log.position().end, recovery.cut_bytes), (18, batches[2].len() as u64));
}

#[test]
fn lost_writes_in_the_tail_are_cut_though_whole_batches_follow() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    let batches: Vec<_> = (0..40).map(|index| plain(index * 5, 1, 5)).collect();
    append(&mut log, &batches);
    log.flush().unwrap();
    drop(log);
    let path = log_file(0);
    let mut bytes = disk.bytes(&path);
    bytes[1024..1536].fill(0);
    disk.set_bytes(&path, bytes);
    let (log, recovery) = try_open(&disk, &exact()).unwrap();
    let kept = 1024 / batches[0].len();
    assert_eq!(read_all(&log), batches[..kept].concat());
    assert_eq!(recovery.end, 5 * kept as i64);
}

#[test]
fn damage_in_a_sealed_segment_is_named() {
    let disk = Disk::default();
    let mut log = create(&disk, &small(300));
    append(&mut log, &[plain(0, 1, 3), plain(3, 1, 3), plain(6, 1, 3), plain(9, 1, 3)]);
    log.flush().unwrap();
    drop(log);
    assert_eq!(segments(&disk).len(), 2);
    let (path, index) = (log_file(0), Path::new(FOLDER).join("00000000000000000000.index"));
    let whole = disk.bytes(&path);
    // Cut in its last batch.
    disk.set_bytes(&path, whole[..whole.len() - 1].to_vec());
    assert!(matches!(try_open(&disk, &small(300)), Err(LogError::Corrupt { file, .. }) if file == path));
    // A flipped bit is found when the index is lost and the segment read anew.
    let mut damaged = whole.clone();
    damaged[65] ^= 1;
    disk.set_bytes(&path, damaged);
    disk.remove(&index).unwrap();
    assert!(
        matches!(try_open(&disk, &small(300)), Err(LogError::Corrupt { file, position: 0, .. }) if file == path)
    );
    disk.set_bytes(&path, Vec::new());
    disk.open(&index, true).unwrap();
    assert!(matches!(try_open(&disk, &small(300)), Err(LogError::Corrupt { file, .. }) if file == path));
    disk.set_bytes(&path, whole.clone());
    disk.remove(&index).unwrap();
    let (log, _) = try_open(&disk, &small(300)).unwrap();
    assert_eq!(log.position().end, 12);
    assert_eq!(disk.bytes(&index).len(), 8);
}

#[test]
fn facts_of_another_version_topic_or_checksum_are_refused() {
    let disk = Disk::default();
    drop(create(&disk, &exact()));
    let other = Config { topic_id: (1, 3), ..exact() };
    assert!(
        matches!(try_open(&disk, &other), Err(LogError::Folder { detail, .. }) if detail.contains("topic_id"))
    );
    assert!(matches!(
        Log::create(Path::new(FOLDER), exact(), Arc::new(disk.clone())),
        Err(LogError::Folder { .. })
    ));
    let path = Path::new(FOLDER).join("verbatim.facts");
    let text = String::from_utf8(disk.bytes(&path)).unwrap();
    disk.set_bytes(&path, text.replace("version=1", "version=3").into_bytes());
    let newer = try_open(&disk, &exact()).unwrap_err();
    assert!(matches!(newer, LogError::Newer { version: 3, newest: 2, .. }), "{newer}");
    disk.set_bytes(&path, text.replace("start 0", "start 1").into_bytes());
    assert!(matches!(try_open(&disk, &exact()), Err(LogError::Corrupt { .. })));
    disk.remove(&path).unwrap();
    assert!(!Log::exists(Path::new(FOLDER), &disk).unwrap());
    assert!(matches!(try_open(&disk, &exact()), Err(LogError::Folder { .. })));
    // A creation that did not come to its end is begun anew.
    let log = Log::create(Path::new(FOLDER), exact(), Arc::new(disk.clone())).unwrap();
    assert_eq!(log.position().end, 0);
}

#[test]
fn promotion_is_durable_and_only_once() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    let source = SourcePosition { start: 0, end: 90, epoch: 6 };
    let batch = plain(5, 6, 5);
    log.apply(&Commit { batches: &[placed(&batch)], source: Some(source), ..Commit::default() }).unwrap();
    assert_eq!((log.source(), log.view().source), (Some(source), Some(source)));
    let mut log = reopen(log, &disk, &exact());
    assert_eq!(log.source(), Some(source));
    assert_eq!(log.promote(8).unwrap(), 9);
    assert_eq!(log.promote(80).unwrap(), 9);
    assert_eq!((entries(&log), log.source(), log.is_exact()), (vec![(6, 5), (9, 10)], None, false));
    drop(log);
    let (log, recovery) = try_open(&disk, &exact()).unwrap();
    assert!(recovery.promoted && !log.is_exact());
    assert_eq!((entries(&log), log.source()), (vec![(6, 5), (10, 10)], None));
}

#[test]
fn batches_compare_by_their_bytes() {
    let disk = Disk::default();
    let mut log = create(&disk, &small(300));
    append(&mut log, &[plain(10, 1, 3), plain(13, 1, 3), plain(30, 2, 3)]);
    let compare =
        |log: &Log, batch: &[u8]| log.compare(batch, crate::batches::header(batch).base_offset).unwrap();
    assert_eq!(compare(&log, &plain(10, 1, 3)), Comparison::Same);
    let (other_epoch, longer) = (plain(10, 2, 3), plain(13, 1, 4));
    assert_eq!(compare(&log, &other_epoch), Comparison::Differs(10));
    assert_eq!(compare(&log, &longer), Comparison::Differs(13));
    let mut other_value = plain(30, 2, 3);
    *other_value.last_mut().unwrap() ^= 1;
    assert_eq!(compare(&log, &other_value), Comparison::Differs(30));
    assert_eq!(compare(&log, &plain(11, 1, 1)), Comparison::Overlaps(11));
    assert_eq!(compare(&log, &plain(25, 1, 9)), Comparison::Overlaps(30));
    for absent in [plain(16, 1, 14), plain(33, 1, 1), plain(0, 1, 10)] {
        assert_eq!(compare(&log, &absent), Comparison::Absent);
    }
    assert_eq!(
        log.compare(&plain(0, 1, 3), 10).unwrap(),
        Comparison::Differs(10),
        "timestamps follow the offset"
    );
    log.advance_start(13).unwrap();
    assert_eq!(compare(&log, &plain(10, 1, 3)), Comparison::Absent);
    assert_eq!(compare(&log, &plain(11, 1, 3)), Comparison::Overlaps(13));
}

#[test]
fn a_cut_is_previewed_and_leaves_what_was_there() {
    let disk = Disk::default();
    let mut log = create(&disk, &small(300));
    append(&mut log, &[plain(10, 1, 3), produced(13, 1, 3, (9, 0, 0), true), plain(30, 2, 3)]);
    log.apply(&Commit { entries: &[entry(5, 33)], ..Commit::default() }).unwrap();
    let preview = |to| log.cut_preview(to).unwrap();
    let expected = |at_boundary, last: (i32, i64), cut: Option<i32>| CutPreview {
        at_boundary,
        last_entry: Some(entry(last.0, last.1)),
        highest_epoch_cut: cut,
    };
    assert_eq!(preview(33), expected(true, (2, 30), Some(5)));
    assert_eq!(preview(32), expected(false, (2, 30), Some(5)));
    assert_eq!(preview(20), expected(true, (1, 10), Some(5)));
    assert_eq!(preview(14), expected(false, (1, 10), Some(5)));
    let refused = log.apply(&Commit { cut: Some(14), ..Commit::default() });
    assert!(matches!(refused, Err(ApplyError::Invalid { .. })));
    log.apply(&Commit { cut: Some(20), ..Commit::default() }).unwrap();
    assert_eq!((log.position().end, entries(&log), log.position().shown_epoch), (20, vec![(1, 10)], 5));
    assert_eq!(log.open_transactions(), [(13, 9)]);
    let mut log = reopen(log, &disk, &small(300));
    assert_eq!((log.position().end, entries(&log), log.position().shown_epoch), (20, vec![(1, 10)], 5));
    log.apply(&Commit { cut: Some(13), ..Commit::default() }).unwrap();
    assert_eq!((read_all(&log), log.producer(9), log.open_transactions()), (plain(10, 1, 3), None, vec![]));
    assert_eq!(log.cut_preview(13).unwrap(), expected(true, (1, 10), None));
}

#[test]
fn what_contradicts_the_log_is_refused_and_changes_nothing() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    append(&mut log, &[plain(0, 4, 5)]);
    let (view, operations) = (log.view(), disk.operations());
    let (overlap, regressed, negative) = (plain(4, 4, 2), plain(5, 3, 1), plain(5, -1, 1));
    let longer = [plain(5, 4, 1), vec![0]].concat();
    for batch in [&overlap, &regressed, &negative, &longer] {
        let refused = log.apply(&Commit { batches: &[placed(batch)], ..Commit::default() });
        assert!(matches!(refused, Err(ApplyError::Invalid { .. })), "{refused:?}");
    }
    let (first, second) = (plain(5, 4, 3), plain(7, 4, 1));
    let twice = [placed(&first), placed(&second)];
    for commit in [
        Commit { batches: &twice, ..Commit::default() },
        Commit { cut: Some(6), ..Commit::default() },
        Commit { cut: Some(-1), ..Commit::default() },
        Commit { entries: &[entry(3, 5)], ..Commit::default() },
        Commit { entries: &[entry(5, 7), entry(6, 6)], ..Commit::default() },
    ] {
        assert!(matches!(log.apply(&commit), Err(ApplyError::Invalid { .. })));
    }
    assert_eq!((log.position().end, log.view().end, disk.operations()), (5, view.end, operations));
}

#[test]
fn the_high_watermark_follows_the_flush_policy() {
    for (flush, before) in [(Flush::Always, 0), (Flush::Interval, 5), (Flush::Never, 5)] {
        let disk = Disk::default();
        let mut log = create(&disk, &Config { flush, ..exact() });
        append(&mut log, &[plain(0, 1, 5)]);
        assert_eq!(log.view().high_watermark, before);
        log.flush().unwrap();
        assert_eq!(log.view().high_watermark, 5);
        let operations = disk.operations();
        log.flush().unwrap();
        assert_eq!(disk.operations(), operations, "nothing pending costs nothing");
    }
}
