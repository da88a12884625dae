//! Committed offsets on a disk that loses its power, fails and fills up.

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;
use verbatim_log::Io;
use verbatim_test_disk::{Fault, Kind, Loss, Random, SimDisk};

use super::super::journal::Journal;
use super::super::offsets::{Change, Committed, Offsets, Stored};
use crate::shared::PartitionId;

const DATA: &str = "/data";
const TOPIC: Uuid = Uuid::from_u128(7);

fn open(disk: &SimDisk) -> Result<(Journal, Offsets), verbatim_log::LogError> {
    let io: Arc<dyn Io> = disk.process();
    io.create_folder(Path::new(DATA)).map_err(|source| verbatim_log::LogError::Io {
        what: "create",
        file: DATA.into(),
        source,
    })?;
    Journal::open(Path::new(DATA), io)
}

fn commit(group: u64, index: u32, offset: i64, metadata: &str) -> Change {
    let committed = Committed { offset, leader_epoch: 3, metadata: metadata.to_owned(), at_ms: 5 };
    let stored = Stored::new(PartitionId { topic: TOPIC, index }, committed);
    Change::Commit { group: format!("g{group}"), offsets: vec![stored] }
}

fn change(random: &mut Random, offset: i64) -> Change {
    let group = random.below(4);
    match random.below(12) {
        0 => Change::ForgetGroup { group: format!("g{group}") },
        1 => Change::forget(format!("g{group}"), [PartitionId { topic: TOPIC, index: 1 }]),
        // Large ones, so that the journal begins anew often.
        _ => commit(group, random.below(3) as u32, offset, &"m".repeat(random.below(200_000) as usize)),
    }
}

/// After a power loss everything that was acknowledged is there, and at most the one change that was not.
#[test]
fn power_losses_take_nothing_that_was_acknowledged() {
    let given = std::env::var("VERBATIM_SEED").ok().map(|seed| seed.parse().unwrap());
    let seed = given.unwrap_or_else(|| u64::from(Uuid::new_v4().as_fields().0));
    println!("VERBATIM_SEED={seed}");
    let disk = SimDisk::new(seed);
    disk.set_short_writes(7);
    let mut random = Random::new(seed);
    let mut acknowledged = Offsets::default();
    let mut unsure: Option<Offsets> = None;
    let mut offset = 0;
    for _ in 0..80 {
        let opened = open(&disk);
        disk.clear_faults();
        let Ok((mut journal, mut offsets)) = opened else { continue };
        let is_one = offsets == acknowledged || unsure.as_ref() == Some(&offsets);
        assert!(is_one, "seed {seed}: {offsets:?}\nnot {acknowledged:?}\nnor {unsure:?}");
        acknowledged.clone_from(&offsets);
        let loss = if random.one_in(2) { Loss::Everything } else { Loss::Random };
        disk.set_power_loss(random.below(40), loss);
        loop {
            offset += 1;
            let change = change(&mut random, offset);
            let written = journal.write(&[&change], &offsets, true);
            let mut after = offsets.clone();
            after.apply(change);
            if written.is_err() {
                unsure = Some(after);
                break;
            }
            offsets = after;
            acknowledged.clone_from(&offsets);
        }
        // The next start may lose its power, too.
        if random.one_in(3) {
            disk.set_power_loss(random.below(10), Loss::Random);
        }
    }
    assert!(offset > 80, "most lives wrote something");
}

#[test]
fn a_failed_write_is_refused_and_what_comes_after_it_is_kept() {
    let disk = SimDisk::new(1);
    let (mut journal, mut offsets) = open(&disk).unwrap();
    let mut keep = |journal: &mut Journal, change: Change| {
        let written = journal.write(&[&change], &offsets, true);
        if written.is_ok() {
            offsets.apply(change);
        }
        (written.is_ok(), offsets.clone())
    };
    assert!(keep(&mut journal, commit(1, 0, 10, "")).0);
    for kind in [Kind::Write, Kind::Sync, Kind::Rename, Kind::SyncFolder] {
        disk.set_rule(move |operation| (operation.kind == kind).then_some(Fault::Fail));
        let failed = keep(&mut journal, commit(1, 0, 99, "refused"));
        let again = keep(&mut journal, commit(1, 0, 99, "refused"));
        disk.clear_faults();
        let fails_at_all = matches!(kind, Kind::Write | Kind::Sync);
        assert!(!fails_at_all || !failed.0 && !again.0, "{kind:?}");
        let (kept, expected) = keep(&mut journal, commit(2, 1, 20, "kept"));
        assert!(kept, "{kind:?}");
        drop(std::mem::replace(&mut journal, open(&disk).unwrap().0));
        assert_eq!(open(&disk).unwrap().1, expected, "{kind:?}");
    }
}

#[test]
fn the_journal_begins_anew_and_what_was_left_is_removed() {
    let disk = SimDisk::new(1);
    let (mut journal, mut offsets) = open(&disk).unwrap();
    assert!(disk.list(Path::new(DATA)).unwrap().is_empty(), "no file without offsets");
    for offset in 0..40 {
        let change = commit(1, 0, offset, &"m".repeat(100_000));
        journal.write(&[&change], &offsets, true).unwrap();
        offsets.apply(change);
    }
    let mut names = disk.list(Path::new(DATA)).unwrap();
    names.sort();
    let [snapshot, current] = names.as_slice() else { panic!("{names:?}") };
    assert_eq!(snapshot, "group-offsets");
    assert_ne!(current, "group-offsets.1.journal");
    disk.open(&Path::new(DATA).join("group-offsets.99.journal"), true).unwrap();
    assert_eq!(open(&disk).unwrap().1, offsets);
    assert_eq!(disk.list(Path::new(DATA)).unwrap().len(), 2);
}

#[test]
fn the_weight_of_offsets_is_that_of_what_is_there() {
    let mut random = Random::new(5);
    let mut offsets = Offsets::default();
    for offset in 0..500 {
        let change = change(&mut random, offset);
        let before = offsets.bytes();
        let growth = offsets.growth(&change);
        offsets.apply(change);
        assert!(offsets.bytes() <= before + growth);
        let mut anew = Offsets::default();
        offsets.to_changes().for_each(|change| anew.apply(change));
        assert_eq!(anew, offsets);
    }
    offsets.apply(Change::forget_topic(TOPIC));
    assert_eq!(offsets, Offsets::default());
}

#[test]
fn the_highest_epoch_is_that_of_the_partition() {
    let mut offsets = Offsets::default();
    assert_eq!(offsets.highest_epoch(PartitionId { topic: TOPIC, index: 0 }), -1);
    offsets.apply(commit(1, 0, 1, ""));
    assert_eq!(offsets.highest_epoch(PartitionId { topic: TOPIC, index: 0 }), 3);
    assert_eq!(offsets.highest_epoch(PartitionId { topic: TOPIC, index: 1 }), -1);
}

/// A disk whose first journal holds these changes, the journal's bytes, and where each change begins.
fn journal_of(changes: &[Change]) -> (SimDisk, Vec<u8>, Vec<usize>) {
    let disk = SimDisk::new(1);
    let (mut journal, offsets) = open(&disk).unwrap();
    let mut begins = Vec::new();
    for change in changes {
        begins.push(bytes_of(&disk, JOURNAL).map_or(0, |bytes| bytes.len()));
        journal.write(&[change], &offsets, true).unwrap();
    }
    let bytes = bytes_of(&disk, JOURNAL).unwrap();
    (disk, bytes, begins)
}

const JOURNAL: &str = "group-offsets.1.journal";
const ASIDE: &str = "group-offsets.1.journal.damaged";

fn bytes_of(disk: &SimDisk, name: &str) -> Option<Vec<u8>> {
    let file = disk.process().open_read(&Path::new(DATA).join(name)).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    let filled = verbatim_log::read_full(file.as_ref(), &mut bytes, 0).unwrap();
    assert_eq!(filled, bytes.len());
    Some(bytes)
}

fn replace(disk: &SimDisk, name: &str, bytes: &[u8]) {
    let file = disk.process().open(&Path::new(DATA).join(name), true).unwrap();
    file.set_len(0).unwrap();
    verbatim_log::write_all(file.as_ref(), &mut [std::io::IoSlice::new(bytes)], 0).unwrap();
    file.sync().unwrap();
}

fn all_but(changes: &[Change], lost: impl Fn(usize) -> bool) -> Offsets {
    let mut offsets = Offsets::default();
    let left = changes.iter().enumerate().filter(|(at, _)| !lost(*at));
    left.for_each(|(_, change)| offsets.apply(change.clone()));
    offsets
}

/// Whatever becomes of bytes within the journal, only the changes that they belong to are lost, and what was there is kept.
#[test]
fn damage_within_the_journal_takes_no_other_changes() {
    let changes: Vec<Change> = (0..12).map(|at| commit(at, 0, 7, &"m".repeat(3 * at as usize))).collect();
    let (_, whole, begins) = journal_of(&changes);
    let mut random = Random::new(3);
    for (lost, begin) in begins.iter().enumerate().take(changes.len() - 1) {
        let end = begins[lost + 1];
        // The length first, which then leads astray, the checksum, the content; one byte or all of them.
        for (from, to) in [(0, 1), (3, 4), (4, 5), (8, 9), (end - begin - 1, end - begin), (0, end - begin)] {
            let mut bytes = whole.clone();
            bytes[begin + from..begin + to].iter_mut().for_each(|byte| *byte ^= 1 + random.below(255) as u8);
            let (disk, ..) = journal_of(&changes);
            replace(&disk, JOURNAL, &bytes);
            let (mut journal, mut offsets) = open(&disk).unwrap();
            let left = all_but(&changes, |at| at == lost);
            assert_eq!(offsets, left, "change {lost}, its bytes {from}..{to}");
            assert_eq!(bytes_of(&disk, ASIDE).as_ref(), Some(&bytes));
            assert_eq!(bytes_of(&disk, JOURNAL), None, "it is not found damaged once more");
            let more = commit(99, 0, 1, "");
            journal.write(&[&more], &offsets, true).unwrap();
            offsets.apply(more);
            assert_eq!(open(&disk).unwrap().1, offsets);
            assert!(bytes_of(&disk, ASIDE).is_some(), "nothing removes it");
        }
    }
}

#[test]
fn a_journal_that_was_cut_anywhere_ends_with_its_last_whole_change_and_none_is_kept_aside() {
    let changes: Vec<Change> = (0..3).map(|at| commit(at, 0, 7, "m")).collect();
    let (_, whole, begins) = journal_of(&changes);
    for length in 0..whole.len() {
        let (disk, ..) = journal_of(&changes);
        // A file may also have grown before its bytes came.
        let mut bytes = whole[..length].to_vec();
        bytes.resize(length + length % 3 * 100, 0);
        replace(&disk, JOURNAL, &bytes);
        let kept = begins.iter().skip(1).filter(|begin| **begin <= length).count();
        assert_eq!(open(&disk).unwrap().1, all_but(&changes, |at| at >= kept), "{length} bytes");
        assert_eq!(bytes_of(&disk, JOURNAL).unwrap().len(), begins[kept], "{length} bytes");
        assert_eq!(bytes_of(&disk, ASIDE), None);
    }
}

/// A power loss while a damaged journal is replaced takes nothing of what could be read.
#[test]
fn a_damaged_journal_is_replaced_across_power_losses() {
    let changes: Vec<Change> = (0..4).map(|at| commit(at, 0, 7, "m")).collect();
    let (_, mut damaged, begins) = journal_of(&changes);
    damaged[begins[1] + 9] ^= 1;
    let left = all_but(&changes, |at| at == 1);
    for after in 0..40 {
        let (disk, ..) = journal_of(&changes);
        replace(&disk, JOURNAL, &damaged);
        disk.set_power_loss(after, Loss::Random);
        let first = open(&disk);
        disk.clear_faults();
        assert_eq!(open(&disk).unwrap().1, left, "power lost after {after}, then {:?}", first.is_ok());
        assert_eq!(bytes_of(&disk, ASIDE).as_ref(), Some(&damaged), "power lost after {after}");
    }
}
