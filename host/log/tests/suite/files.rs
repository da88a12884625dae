//! The files of a data folder and of a partition, on a real disk.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use verbatim_contract::EpochEntry;
use verbatim_log::dump::Dump;
use verbatim_log::folder::{DataFolder, atomic_replace, read_checked, remove_partition};
use verbatim_log::{Commit, Config, DiskIo, Log, LogError, Reason, Removed, RemovedSegment, Retention};

use crate::batches::{placed, plain, plain_at};
use crate::cases::{append, exact};

fn disk() -> Arc<DiskIo> {
    Arc::new(DiskIo)
}

#[test]
fn one_host_holds_a_data_folder() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("data");
    let held = DataFolder::open(&path, disk()).unwrap();
    assert_eq!(held.partition_path("topic", 3), path.join("topic-3"));
    let Err(LogError::Locked { folder, pid }) = DataFolder::open(&path, disk()) else {
        panic!("opened twice")
    };
    assert_eq!((folder, pid), (path.clone(), Some(std::process::id())));
    drop(held);
    drop(DataFolder::open(&path, disk()).unwrap());
    atomic_replace(&DiskIo, &path.join("verbatim.format"), "data-folder", 2, b"").unwrap();
    let newer = DataFolder::open(&path, disk()).err().unwrap();
    assert!(matches!(newer, LogError::Newer { version: 2, .. }), "{newer}");
    assert!(newer.to_string().contains("newer than the 1"), "{newer}");
}

#[test]
fn checked_files_come_back_or_are_named() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("catalogue");
    assert!(read_checked(&DiskIo, &path, "topics", 3).unwrap().is_none());
    for content in [&b""[..], b"{\"a\": 1}\n", &[0, 255, 10, 13]] {
        atomic_replace(&DiskIo, &path, "topics", 3, content).unwrap();
        assert_eq!(read_checked(&DiskIo, &path, "topics", 3).unwrap(), Some((3, content.to_vec())));
    }
    assert!(matches!(
        read_checked(&DiskIo, &path, "topics", 2),
        Err(LogError::Newer { version: 3, newest: 2, .. })
    ));
    assert!(matches!(read_checked(&DiskIo, &path, "others", 3), Err(LogError::Corrupt { .. })));
    let whole = fs::read(&path).unwrap();
    for index in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[index] ^= 0x04;
        fs::write(&path, &damaged).unwrap();
        assert!(read_checked(&DiskIo, &path, "topics", u32::MAX).is_err(), "byte {index}");
        fs::write(&path, &whole[..index]).unwrap();
        assert!(read_checked(&DiskIo, &path, "topics", 3).is_err(), "cut at {index}");
    }
    assert!(!place.path().join("catalogue.tmp").exists());
}

#[test]
fn a_partition_folder_is_kafkas() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("topic-0");
    let config = Config { segment_bytes: 400, index_interval_bytes: 100, ..exact() };
    let mut log = Log::create(&folder, config.clone(), disk()).unwrap();
    let batches: Vec<_> = (0..9).map(|index| plain(100 + 7 * index, 1 + index as i32 / 4, 3)).collect();
    append(&mut log, &batches);
    log.apply(&Commit { entries: &[EpochEntry { epoch: 9, start: 159 }], ..Commit::default() }).unwrap();
    log.close().unwrap();

    let names = |extension: &str| {
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.retain(|path| path.extension().is_some_and(|found| found == extension));
        names.sort();
        names
    };
    let stored: Vec<u8> = names("log").iter().flat_map(|path| fs::read(path).unwrap()).collect();
    assert_eq!(stored, batches.concat(), "concatenated segments are the batches");
    assert!(names("log").len() > 2);
    assert_eq!((names("index").len(), names("timeindex").len()), (names("log").len(), names("log").len()));
    let first = names("index").remove(0);
    let second_at = u32::try_from(batches[0].len()).unwrap();
    assert_eq!(fs::read(first).unwrap(), [9_u32.wrapping_add(100), second_at].map(u32::to_be_bytes).concat());
    let checkpoint = fs::read_to_string(folder.join("leader-epoch-checkpoint")).unwrap();
    assert_eq!(checkpoint, "0\n4\n1 100\n2 128\n3 156\n9 159\n");
    let metadata = fs::read_to_string(folder.join("partition.metadata")).unwrap();
    assert_eq!(metadata, "version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg\n");

    let (log, recovery) = Log::open(&folder, config, disk()).unwrap();
    assert!(recovery.clean);
    assert_eq!(log.position().end, 159);
    drop(log);
    remove_partition(&DiskIo, &folder).unwrap();
    remove_partition(&DiskIo, &folder).unwrap();
    assert!(!folder.exists());
}

#[test]
fn a_dump_lists_what_is_stored_and_what_is_damaged() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("topic-0");
    assert!(Dump::open(&folder, disk()).is_err());
    let mut log = Log::create(&folder, Config { segment_bytes: 300, ..exact() }, disk()).unwrap();
    let batches = [plain(5, 1, 3), plain(8, 1, 3), plain(20, 2, 3), plain(23, 2, 3)];
    append(&mut log, &batches);
    let dump = |folder: &Path| Dump::open(folder, disk()).unwrap().collect::<Vec<_>>();
    let listed: Vec<_> = dump(&folder).into_iter().map(Result::unwrap).collect();
    assert_eq!(listed.iter().map(|batch| batch.header.base_offset).collect::<Vec<_>>(), [5, 8, 20, 23]);
    assert_eq!((listed[1].position, listed[1].length), (batches[0].len() as u64, batches[1].len() as u64));
    assert!(listed.iter().all(|batch| batch.crc_ok));
    assert_eq!(listed[3].payload, placed(&batches[3]).payload);

    let path = listed[0].file.clone();
    let mut bytes = fs::read(&path).unwrap();
    bytes[70] ^= 1;
    bytes[batches[0].len() + 16] = 7;
    fs::write(&path, bytes).unwrap();
    let listed = dump(&folder);
    assert!(!listed[0].as_ref().unwrap().crc_ok);
    assert!(
        matches!(&listed[1], Err(LogError::Corrupt { position, .. }) if *position == batches[0].len() as u64)
    );
    assert_eq!(listed[2].as_ref().unwrap().header.base_offset, 20, "the walk goes on with the next segment");
}

#[test]
fn without_timestamps_a_segment_is_as_old_as_its_file() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("topic-0");
    let batch = |base| plain_at(base, 0, 2, -1);
    let length = batch(0).len() as u64;
    let config = Config { exact: false, segment_bytes: 2 * length as u32, ..exact() };
    let mut log = Log::create(&folder, config.clone(), disk()).unwrap();
    append(&mut log, &(0..3).map(|index| batch(2 * index)).collect::<Vec<_>>());
    log.flush().unwrap();
    let written = |base: i64, ms: u64| {
        let file = fs::File::options().write(true).open(folder.join(format!("{base:020}.log"))).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms)).unwrap();
    };
    written(0, 5_000);
    written(4, 9_000);
    let retention = Retention { bytes: None, ms: Some(1_000), segments_max: 10 };
    assert_eq!(log.retain(6_000, &retention).unwrap(), Removed { start: 0, ..Removed::default() });
    let removed = log.retain(6_001, &retention).unwrap();
    let (bytes, reason) = (2 * length, Reason::Time);
    let first = RemovedSegment { base: 0, bytes, largest_timestamp: 5_000, reason };
    assert_eq!(removed, Removed { segments: vec![first], start: 4, more: false });
    assert_eq!(removed.bytes(), bytes);
    // By the wall clock a segment without timestamps is rolled, too; after a restart it counts from the last write.
    log.close().unwrap();
    written(4, 9_000);
    let (mut log, _) = Log::open(&folder, Config { segment_ms: 1_000, ..config }, disk()).unwrap();
    let mut add = |base, now_ms| {
        let batch = plain_at(base, 1, 2, -1);
        let (batches, now_ms) = ([placed(&batch)], Some(now_ms));
        log.apply(&Commit { batches: &batches, now_ms, ..Commit::default() }).unwrap();
    };
    let is_there = |base: i64| folder.join(format!("{base:020}.log")).exists();
    add(6, 10_000);
    assert!(is_there(4) && !is_there(6));
    add(8, 10_000);
    add(10, 11_001);
    assert!(is_there(8) && is_there(10), "there was room for it");
}
