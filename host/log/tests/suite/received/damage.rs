//! What a crash can leave of the digests, and what it cannot.

use std::path::PathBuf;

use verbatim_contract::Comparison;
use verbatim_log::{Config, Io as _, LogError};

use super::{compare, entry, file, keeping, small, threes};
use crate::batches::plain;
use crate::cases::{append, create, segments, try_open};
use crate::disk::Disk;
use crate::model::read_all;

type Damage = fn(&mut Vec<u8>);

/// A log that was not closed.
fn crashed(config: &Config, count: i64) -> Disk {
    let disk = Disk::default();
    let mut log = create(&disk, config);
    append(&mut log, &threes(0, count));
    log.flush().unwrap();
    disk
}

fn closed(config: &Config, count: i64) -> Disk {
    let disk = Disk::default();
    let mut log = create(&disk, config);
    append(&mut log, &threes(0, count));
    log.close().unwrap();
    disk
}

/// The start fails with file and position, and nothing is changed.
fn check_refused(disk: &Disk, config: &Config, expected: (&PathBuf, u64), words: &str) {
    let bytes = |disk: &Disk| -> Vec<_> { disk.files().iter().map(|path| disk.bytes(path)).collect() };
    let before = (disk.files(), bytes(disk));
    let error = try_open(disk, config).unwrap_err();
    let LogError::Corrupt { file, position, .. } = &error else { panic!("{error}") };
    assert_eq!((file, *position), expected, "{error}");
    assert!(error.to_string().contains(words), "{error}, expected: {words}");
    assert!((disk.files(), bytes(disk)) == before, "changed, {error}");
}

#[test]
fn batches_without_a_digest_are_cut() {
    let whole = threes(0, 40).iter().flat_map(|batch| entry(batch, 0)).collect::<Vec<_>>();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        bytes
    };
    // The file as it is left, and how many batches have their digest.
    let cases = [
        (changed(&|bytes| bytes.truncate(48 * 7)), 7),
        (changed(&|bytes| bytes.truncate(48 * 7 + 47)), 7),
        (changed(&|bytes| bytes.truncate(1)), 0),
        (Vec::new(), 0),
        (changed(&|bytes| bytes[512..].fill(0)), 10),
        // A sector was lost, and the next one was not.
        (changed(&|bytes| bytes[512..1024].fill(0)), 10),
        (changed(&|bytes| bytes[960..1024].fill(0)), 20),
        (changed(&|bytes| bytes[39 * 48 + 5] ^= 1), 39),
    ];
    for (bytes, sound) in cases {
        let disk = crashed(&keeping(), 40);
        assert_eq!(disk.bytes(&file(0, "received")), whole);
        disk.set_bytes(&file(0, "received"), bytes);
        let (mut log, recovery) = try_open(&disk, &keeping()).unwrap();
        assert_eq!(read_all(&log), threes(0, sound).concat(), "{sound} are left");
        assert_eq!(recovery.cut_bytes as usize, threes(0, 40 - sound).concat().len());
        assert_eq!(segments(&disk).len(), 1);
        for batch in threes(0, 40) {
            let is_kept = crate::batches::next(&batch) <= 3 * sound;
            let expected = if is_kept { Comparison::Same } else { Comparison::Absent };
            assert_eq!(compare(&log, &batch, 0), expected);
        }
        append(&mut log, &threes(3 * sound, 2));
        assert_eq!(compare(&log, &plain(3 * sound + 3, 1, 3), 0), Comparison::Same);
    }
    // Zeros that end within a sector are not what a lost write leaves.
    let disk = crashed(&keeping(), 40);
    disk.set_bytes(&file(0, "received"), changed(&|bytes| bytes[512..912].fill(0)));
    check_refused(&disk, &keeping(), (&file(0, "received"), 480), "sound entries follow");
}

#[test]
fn entries_without_a_batch_go() {
    let surplus = [&entry(&plain(9, 1, 3), 7)[..], &[0; 48], &[0x5a; 48], &[1; 11]];
    for count in 1..=surplus.len() {
        let disk = crashed(&keeping(), 3);
        let path = file(0, "received");
        let whole = disk.bytes(&path);
        disk.set_bytes(&path, [&whole[..], &surplus[..count].concat()].concat());
        let (mut log, recovery) = try_open(&disk, &keeping()).unwrap();
        assert_eq!((log.position().end, recovery.cut_bytes), (9, 0));
        assert_eq!(disk.bytes(&path), whole);
        append(&mut log, &threes(9, 1));
        assert_eq!(compare(&log, &plain(9, 1, 3), 0), Comparison::Same);
    }
}

#[test]
fn damage_in_the_middle_is_named() {
    let path = file(0, "received");
    for at in [0, 31, 32, 39, 40, 44, 47] {
        let disk = crashed(&keeping(), 20);
        let mut bytes = disk.bytes(&path);
        bytes[5 * 48 + at] ^= 0x41;
        disk.set_bytes(&path, bytes);
        check_refused(&disk, &keeping(), (&path, 240), "baseOffset=`15`, and sound entries follow");
    }
    // Entries in another order, each sound in itself.
    let disk = crashed(&keeping(), 20);
    let mut bytes = disk.bytes(&path);
    bytes[4 * 48..6 * 48].rotate_left(48);
    disk.set_bytes(&path, bytes);
    check_refused(&disk, &keeping(), (&path, 192), "of another batch, expected baseOffset 12");
    // An entry of a batch that lay there before.
    let disk = crashed(&keeping(), 2);
    let other = entry(&plain(3, 1, 2), 0);
    disk.set_bytes(&path, [entry(&plain(0, 1, 3), 0), other].concat());
    check_refused(&disk, &keeping(), (&path, 48), "of another batch");
    // The file's name is durable before its first batch.
    let disk = crashed(&keeping(), 2);
    disk.remove(&path).unwrap();
    check_refused(&disk, &keeping(), (&path, 0), "digests of received batches are missing");
}

#[test]
fn after_a_clean_close_nothing_may_lack() {
    let path = file(0, "received");
    let damages: [(Damage, u64, &str); 5] = [
        (|bytes| bytes.truncate(96), 48, "of another batch"),
        (|bytes| bytes.truncate(100), 96, "cut off"),
        (Vec::clear, 0, "missing"),
        (|bytes| bytes[100] ^= 1, 96, "checksum"),
        (|bytes| bytes.extend(entry(&plain(9, 1, 3), 0)), 144, "of another batch"),
    ];
    for (damage, position, words) in damages {
        let disk = closed(&keeping(), 3);
        let mut bytes = disk.bytes(&path);
        damage(&mut bytes);
        disk.set_bytes(&path, bytes);
        check_refused(&disk, &keeping(), (&path, position), words);
    }
    let disk = closed(&keeping(), 3);
    disk.remove(&path).unwrap();
    check_refused(&disk, &keeping(), (&path, 0), "missing");
}

#[test]
fn sealed_segments_lack_nothing() {
    let path = file(0, "received");
    for make in [crashed, closed] {
        let disk = make(&small(), 5);
        let whole = disk.bytes(&path);
        disk.set_bytes(&path, whole[..95].to_vec());
        check_refused(&disk, &small(), (&path, 48), "cut off");
        disk.set_bytes(&path, Vec::new());
        check_refused(&disk, &small(), (&path, 0), "missing");
        disk.remove(&path).unwrap();
        check_refused(&disk, &small(), (&path, 0), "missing");
    }
    // Whose the last entry is, only a start after a crash knows.
    let disk = crashed(&small(), 5);
    let whole = disk.bytes(&path);
    disk.set_bytes(&path, whole[..48].to_vec());
    check_refused(&disk, &small(), (&path, 0), "of another batch");
    // Within the file it is the comparison that meets it, or a start that makes a lost index anew.
    let mut damaged = whole.clone();
    damaged[7] ^= 1;
    disk.set_bytes(&path, damaged);
    let (log, _) = try_open(&disk, &small()).unwrap();
    let batch = plain(0, 1, 3);
    let error = log.compare_received(&batch, &crate::batches::digest(&batch, 0), 0).unwrap_err();
    assert!(matches!(&error, LogError::Corrupt { file, position: 0, .. } if *file == path), "{error}");
    drop(log);
    disk.remove(&file(0, "index")).unwrap();
    check_refused(&disk, &small(), (&path, 0), "baseOffset=`0`");
}

/// A comparison that cannot read the digest says so: it never takes the batch for another or for absent.
#[test]
fn a_digest_that_cannot_be_read_is_an_error() {
    let disk = crashed(&small(), 5);
    let (log, _) = try_open(&disk, &small()).unwrap();
    disk.set_rule(|operation| {
        let is_digest = operation.path.extension().is_some_and(|extension| extension == "received");
        is_digest.then_some(crate::disk::Fault::Fail)
    });
    for batch in threes(0, 5) {
        let base = crate::batches::header(&batch).base_offset;
        let compared = log.compare_received(&batch, &crate::batches::digest(&batch, 0), base);
        assert!(
            matches!(&compared, Err(LogError::Io { file, .. }) if file.extension().unwrap() == "received")
        );
    }
}

/// Damage is told before a cut is begun, which could not be finished.
#[test]
fn a_cut_that_meets_damage_does_nothing() {
    let disk = crashed(&keeping(), 5);
    let (mut log, _) = try_open(&disk, &keeping()).unwrap();
    let path = file(0, "received");
    let whole = disk.bytes(&path);
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    disk.set_bytes(&path, damaged);
    let cut = verbatim_log::Commit { cut: Some(6), ..Default::default() };
    let failed = log.apply(&cut);
    assert!(matches!(&failed, Err(verbatim_log::ApplyError::Failed { cut: None, .. })), "{failed:?}");
    assert_eq!((log.position().end, log.offline()), (15, None));
    disk.set_bytes(&path, whole);
    log.apply(&cut).unwrap();
    assert_eq!(log.position().end, 6);
}
