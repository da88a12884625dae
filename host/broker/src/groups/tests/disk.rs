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
