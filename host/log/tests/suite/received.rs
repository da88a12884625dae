//! Digests of received batches: how they are kept, found, and go with their batches.

mod damage;
mod power;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use verbatim_batch::{HEADER_LEN, crc32c};
use verbatim_contract::Comparison;
use verbatim_log::dump::Dump;
use verbatim_log::folder::remove_partition;
use verbatim_log::{ApplyError, Commit, Config, DiskIo, Io, Log, LogError, Placed};

use crate::batches::{digest, header, placed, placed_for, plain};
use crate::cases::{append, create, exact, segments, try_open};
use crate::disk::{Disk, Fault, Kind};

const FOLDER: &str = "/data/topic-0";

fn keeping() -> Config {
    Config { keeps_received: true, ..exact() }
}

/// Two of [`plain`]'s batches of three records a segment.
fn small() -> Config {
    Config { segment_bytes: 2 * plain(0, 1, 3).len() as u32, index_interval_bytes: 0, ..keeping() }
}

/// Batches of three records each, from an offset that is a multiple of three on.
fn threes(from: i64, count: i64) -> Vec<Vec<u8>> {
    (0..count).map(|index| plain(from + 3 * index, 1, 3)).collect()
}

fn file(base: i64, extension: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{base:020}.{extension}"))
}

/// Offsets that name files of digests.
fn kept(disk: &Disk) -> Vec<i64> {
    let names = disk.list(Path::new(FOLDER)).unwrap();
    let mut bases: Vec<i64> =
        names.iter().filter_map(|name| name.strip_suffix(".received")?.parse().ok()).collect();
    bases.sort_unstable();
    bases
}

fn compare(log: &Log, batch: &[u8], original: u64) -> Comparison {
    log.compare_received(batch, &digest(batch, original), header(batch).base_offset).unwrap()
}

fn append_for(log: &mut Log, batches: &[Vec<u8>], original: u64) {
    let placed: Vec<_> = batches.iter().map(|batch| placed_for(batch, original)).collect();
    log.apply(&Commit { batches: &placed, ..Commit::default() }).unwrap();
}

/// An entry as the README draws it.
fn entry(batch: &[u8], original: u64) -> Vec<u8> {
    let header = header(batch);
    let mut bytes = digest(batch, original).to_vec();
    bytes.extend(header.base_offset.to_be_bytes());
    bytes.extend(header.crc.to_be_bytes());
    bytes.extend(crc32c(&bytes).to_be_bytes());
    bytes
}

#[test]
fn every_batch_must_bring_its_digest() {
    let disk = Disk::default();
    let mut log = create(&disk, &keeping());
    assert!(log.keeps_received());
    let (first, second) = (plain(0, 1, 3), plain(3, 1, 3));
    let lacking = Placed { received: None, ..placed(&second) };
    let operations = disk.operations();
    let refused = log.apply(&Commit { batches: &[placed(&first), lacking], ..Commit::default() });
    let Err(ApplyError::Invalid { detail }) = refused else { panic!("{refused:?}") };
    assert!(detail.contains("received=`none`") && detail.contains("baseOffset=`3`"), "{detail}");
    assert_eq!((log.position().end, disk.operations()), (0, operations));
    // Where none are kept, none is needed, and one that comes changes nothing.
    for config in [exact(), Config { exact: false, ..keeping() }] {
        let disk = Disk::default();
        let mut log = create(&disk, &config);
        assert!(!log.keeps_received());
        let lacking = Placed { received: None, ..placed(&first) };
        log.apply(&Commit { batches: &[lacking, placed(&second)], ..Commit::default() }).unwrap();
        assert_eq!((kept(&disk), log.position().end), (vec![], 6));
    }
}

#[test]
fn a_received_batch_is_recognised_by_its_digest() {
    let disk = Disk::default();
    let mut log = create(&disk, &small());
    let batches = threes(9, 7);
    append_for(&mut log, &batches, 5);
    log.apply(&Commit { end: Some(50), ..Commit::default() }).unwrap();
    append_for(&mut log, &[plain(60, 1, 3)], 6);
    let check = |log: &Log| {
        for batch in &batches {
            let base = header(batch).base_offset;
            assert_eq!(compare(log, batch, 5), Comparison::Same);
            assert_eq!(compare(log, batch, 4), Comparison::Differs(base));
            // The bytes that were received do not matter but for their last offset.
            let received = plain(77, 3, 3);
            let at = |batch: &[u8], digest| log.compare_received(batch, digest, base).unwrap();
            let digest = digest(batch, 5);
            assert_eq!(at(&received, &digest), Comparison::Same);
            assert_eq!(at(&plain(77, 3, 4), &digest), Comparison::Differs(base));
            assert_eq!(at(&plain(77, 3, 2), &digest), Comparison::Differs(base));
        }
        assert_eq!(compare(log, &plain(60, 1, 3), 6), Comparison::Same);
        for other in [plain(10, 1, 1), plain(0, 1, 10), plain(55, 1, 6), plain(63, 1, 1), plain(30, 1, 9)] {
            let base = header(&other).base_offset;
            assert_eq!(compare(log, &other, 5), log.compare(&other, base).unwrap());
        }
        assert_eq!(compare(log, &plain(10, 1, 1), 5), Comparison::Overlaps(10));
        assert_eq!(compare(log, &plain(30, 1, 9), 5), Comparison::Absent);
        assert_eq!(log.compare_received(&[0; 60], &[0; 32], 9).unwrap(), Comparison::Absent);
    };
    check(&log);
    log.flush().unwrap();
    assert_eq!(kept(&disk), [0, 15, 21, 27, 50]);
    drop(log);
    let (log, recovery) = try_open(&disk, &small()).unwrap();
    assert!(!recovery.clean);
    check(&log);
    log.close().unwrap();
    let (log, recovery) = try_open(&disk, &small()).unwrap();
    assert!(recovery.clean && recovery.scanned_bytes == 0);
    check(&log);
}

#[test]
fn without_digests_bytes_are_compared() {
    let disk = Disk::default();
    let mut log = create(&disk, &exact());
    append(&mut log, &threes(0, 2));
    for batch in [plain(3, 1, 3), plain(3, 2, 3), plain(4, 1, 1), plain(6, 1, 1)] {
        let base = header(&batch).base_offset;
        assert_eq!(log.compare_received(&batch, &[0; 32], base).unwrap(), log.compare(&batch, base).unwrap());
    }
}

#[test]
fn the_file_is_that_of_the_readme() {
    let disk = Disk::default();
    let mut log = create(&disk, &small());
    let batches = threes(0, 3);
    append_for(&mut log, &batches, 1 << 20);
    let expected = |batches: &[Vec<u8>]| batches.iter().flat_map(|batch| entry(batch, 1 << 20)).collect();
    let first: Vec<u8> = expected(&batches[..2]);
    let second: Vec<u8> = expected(&batches[2..]);
    assert_eq!((first.len(), second.len()), (96, 48));
    assert_eq!(disk.bytes(&file(0, "received")), first);
    assert_eq!(disk.bytes(&file(6, "received")), second);
    let facts = String::from_utf8(disk.bytes(&Path::new(FOLDER).join("verbatim.facts"))).unwrap();
    assert!(
        facts.starts_with("#verbatim partition-facts version=2 ") && facts.contains("\nmode exact-rewrite\n")
    );
}

#[test]
fn a_cut_takes_digests_with_their_batches() {
    let batches = threes(0, 5);
    // In a segment, between two, and all.
    for to in [3, 6, 9, 12, 0] {
        let disk = Disk::default();
        let mut log = create(&disk, &small());
        append_for(&mut log, &batches, 1);
        let left = usize::try_from(to / 3).unwrap();
        // The same bytes come again, stored for another batch: only that one is known.
        let again: Vec<_> = batches[left..].iter().map(|batch| placed_for(batch, 2)).collect();
        log.apply(&Commit { cut: Some(to), ..Commit::default() }).unwrap();
        for batch in &batches[left..] {
            assert_eq!(compare(&log, batch, 1), Comparison::Absent);
        }
        let bytes: usize = kept(&disk).iter().map(|base| disk.bytes(&file(*base, "received")).len()).sum();
        assert_eq!(bytes, 48 * left, "cut to {to}");
        log.apply(&Commit { batches: &again, ..Commit::default() }).unwrap();
        let check = |log: &Log| {
            for (index, batch) in batches.iter().enumerate() {
                let original = if index < left { 1 } else { 2 };
                assert_eq!(compare(log, batch, original), Comparison::Same, "cut to {to}");
                assert_eq!(compare(log, batch, 3 - original), Comparison::Differs(3 * index as i64));
            }
        };
        check(&log);
        log.flush().unwrap();
        drop(log);
        check(&try_open(&disk, &small()).unwrap().0);
        assert_eq!(kept(&disk).len(), segments(&disk).len());
    }
}

#[test]
fn digests_go_with_segments_below_the_start() {
    let disk = Disk::default();
    let mut log = create(&disk, &small());
    append(&mut log, &threes(0, 5));
    log.advance_start(7).unwrap();
    assert_eq!(kept(&disk), [6, 12]);
    // The batch that reaches across the start keeps its own.
    assert_eq!(compare(&log, &plain(6, 1, 3), 0), Comparison::Same);
    assert_eq!(compare(&log, &plain(3, 1, 3), 0), Comparison::Absent);
    log.advance_start(15).unwrap();
    assert_eq!(kept(&disk), [15]);
    // An empty log restarts below its end (R25).
    append_for(&mut log, &[plain(13, 1, 5)], 3);
    assert_eq!(kept(&disk), [13]);
    assert_eq!(compare(&log, &plain(13, 1, 5), 3), Comparison::Same);
    drop(log);
    let (log, _) = try_open(&disk, &small()).unwrap();
    assert_eq!((kept(&disk), compare(&log, &plain(13, 1, 5), 3)), (vec![13], Comparison::Same));
}

/// Of two files whose removal is not durable, a power loss may bring back the one.
#[test]
fn a_dead_segment_that_comes_back_needs_no_digests() {
    for (start, back) in [(6, 0), (9, 6)] {
        for digests in [false, true] {
            let disk = Disk::default();
            let mut log = create(&disk, &small());
            append(&mut log, &threes(0, 3));
            log.flush().unwrap();
            let saved = ["log", "received"].map(|extension| disk.bytes(&file(back, extension)));
            log.advance_start(start).unwrap();
            drop(log);
            for (extension, bytes) in
                ["log", "received"].into_iter().zip(saved).take(1 + usize::from(digests))
            {
                disk.open(&file(back, extension), true).unwrap();
                disk.set_bytes(&file(back, extension), bytes);
            }
            let (mut log, _) = try_open(&disk, &small()).unwrap();
            assert_eq!((log.position().start, log.position().end), (start, 9));
            assert_eq!(kept(&disk), [start]);
            append(&mut log, &threes(9, 1));
            assert_eq!(compare(&log, &plain(9, 1, 3), 0), Comparison::Same);
        }
    }
}

#[test]
fn promotion_does_away_with_digests() {
    let promoting: [fn(&Disk, Log) -> Log; 3] = [
        |_, mut log| {
            log.promote(-1).unwrap();
            log
        },
        // The files cannot be removed: the next start does it.
        |disk, mut log| {
            let fails =
                |kind, path: &Path| kind == Kind::Remove && path.extension().is_some_and(|e| e == "received");
            disk.set_rule(move |operation| fails(operation.kind, operation.path).then_some(Fault::Fail));
            log.promote(-1).unwrap();
            disk.clear_faults();
            assert_eq!(kept(disk), [0, 6]);
            append_without(&mut log, &plain(9, 9, 3));
            drop(log);
            try_open(disk, &small()).unwrap().0
        },
        |disk, log| {
            drop(log);
            try_open(disk, &Config { exact: false, ..small() }).unwrap().0
        },
    ];
    for promote in promoting {
        let disk = Disk::default();
        let mut log = create(&disk, &small());
        append_for(&mut log, &threes(0, 3), 1);
        let mut log = promote(&disk, log);
        assert!(!log.is_exact() && !log.keeps_received());
        assert_eq!(kept(&disk), []);
        // What is stored is compared from now on.
        assert_eq!(compare(&log, &plain(3, 1, 3), 8), Comparison::Same);
        assert_eq!(compare(&log, &plain(3, 2, 3), 1), Comparison::Differs(3));
        for _ in 0..4 {
            let (end, epoch) = (log.position().end, log.position().shown_epoch);
            append_without(&mut log, &plain(end, epoch, 3));
        }
        log.flush().unwrap();
        let end = log.position().end;
        drop(log);
        let (log, recovery) = try_open(&disk, &small()).unwrap();
        assert_eq!((recovery.promoted, log.position().end, kept(&disk)), (true, end, vec![]));
    }
}

fn append_without(log: &mut Log, batch: &[u8]) {
    let placed = Placed { received: None, ..placed(batch) };
    log.apply(&Commit { batches: &[placed], ..Commit::default() }).unwrap();
}

#[test]
fn a_log_is_opened_as_it_was_made() {
    for made in [true, false] {
        let disk = Disk::default();
        let config = Config { keeps_received: made, ..small() };
        let mut log = create(&disk, &config);
        append(&mut log, &threes(0, 3));
        // What a log was opened with stays.
        log.configure(&Config { keeps_received: !made, ..config.clone() });
        append(&mut log, &threes(9, 2));
        assert_eq!((log.keeps_received(), kept(&disk).len()), (made, if made { 3 } else { 0 }));
        drop(log);
        let refused = try_open(&disk, &Config { keeps_received: !made, ..config.clone() }).unwrap_err();
        let expected = format!("expected {made}, keeps_received=`{}`", !made);
        assert!(
            matches!(&refused, LogError::Folder { .. }) && refused.to_string().contains(&expected),
            "{refused}"
        );
        assert_eq!(try_open(&disk, &config).unwrap().0.position().end, 15);
    }
}

#[test]
fn a_creation_that_did_not_come_to_its_end_is_begun_anew() {
    for operation in 0.. {
        let disk = Disk::default();
        disk.set_fault(operation, Fault::Stop);
        let made = Log::create(Path::new(FOLDER), keeping(), Arc::new(disk.clone())).is_ok();
        disk.end_process();
        if !made && !Log::exists(Path::new(FOLDER), &disk).unwrap() {
            let keeps_received = operation % 2 == 0;
            let mut log = create(&disk, &Config { keeps_received, ..exact() });
            append(&mut log, &threes(0, 1));
            assert!(kept(&disk).is_empty() || keeps_received, "operation {operation}");
            assert_eq!(compare(&log, &plain(0, 1, 3), 0), Comparison::Same);
        }
        if made {
            assert!(operation > 5);
            break;
        }
    }
}

/// Both files are durable before the high watermark moves.
#[test]
fn a_batch_counts_with_its_digest_only() {
    for failing in ["log", "received"] {
        let disk = Disk::default();
        let mut log = create(&disk, &keeping());
        append(&mut log, &threes(0, 2));
        let fails = move |path: &Path| path.extension().is_some_and(|extension| extension == failing);
        disk.set_rule(move |operation| {
            (operation.kind == Kind::Sync && fails(operation.path)).then_some(Fault::Fail)
        });
        assert!(log.flush().is_err());
        assert!(log.offline().is_some() && log.view().high_watermark == 0, "{failing}");
    }
}

#[test]
fn a_digest_is_found_in_few_reads() {
    let disk = Disk::default();
    let mut log = create(&disk, &Config { index_interval_bytes: 4096, ..keeping() });
    let batches: Vec<_> = (0..10_000).map(|base| plain(base, 1, 1)).collect();
    batches.chunks(1000).for_each(|batches| append(&mut log, batches));
    let reads = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&reads);
    disk.set_rule(move |operation| {
        let is_digest = operation.path.extension().is_some_and(|extension| extension == "received");
        *counted.lock().unwrap() += u32::from(operation.kind == Kind::Read && is_digest);
        None
    });
    for batch in batches.iter().step_by(997) {
        let before = *reads.lock().unwrap();
        assert_eq!(compare(&log, batch, 0), Comparison::Same);
        let taken = *reads.lock().unwrap() - before;
        assert!((1..=16).contains(&taken), "{taken} reads");
    }
}

#[test]
fn a_log_without_digests_does_nothing_for_them() {
    let disk = Disk::default();
    let touched = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&touched);
    disk.set_rule(move |operation| {
        if operation.path.extension().is_some_and(|extension| extension == "received") {
            seen.lock().unwrap().insert(operation.path.to_owned());
        }
        None
    });
    let config = Config { keeps_received: false, ..small() };
    let mut log = create(&disk, &config);
    append(&mut log, &threes(0, 9));
    log.apply(&Commit { cut: Some(12), end: Some(40), ..Commit::default() }).unwrap();
    log.advance_start(8).unwrap();
    log.flush().unwrap();
    log.close().unwrap();
    let (mut log, _) = Log::open(Path::new(FOLDER), config, Arc::new(disk.clone())).unwrap();
    log.promote(3).unwrap();
    append(&mut log, &[plain(40, 4, 3)]);
    assert_eq!(*touched.lock().unwrap(), BTreeSet::new());
}

#[test]
fn tools_and_removal_know_the_file() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("topic-0");
    let mut log = Log::create(&folder, small(), Arc::new(DiskIo)).unwrap();
    let batches = threes(0, 5);
    append(&mut log, &batches);
    log.flush().unwrap();
    let digests = || {
        let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "received")).count()
    };
    assert_eq!(digests(), 3);
    let dumped = Dump::open(&folder, Arc::new(DiskIo)).unwrap().map(Result::unwrap);
    let payloads: Vec<_> = dumped.map(|batch| batch.payload).collect();
    let expected: Vec<_> = batches.iter().map(|batch| batch[HEADER_LEN..].to_vec()).collect();
    assert_eq!(payloads, expected);
    drop(log);
    let (log, _) = Log::open(&folder, small(), Arc::new(DiskIo)).unwrap();
    assert_eq!(compare(&log, &batches[3], 0), Comparison::Same);
    drop(log);
    remove_partition(&DiskIo, &folder).unwrap();
    assert!(!folder.exists());
}
