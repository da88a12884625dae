//! What the model at the head of the crate says, line by line.

use std::collections::BTreeSet;

use super::*;

const FOLDER: &str = "/data/part";

fn disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.create_folder(Path::new(FOLDER)).unwrap();
    disk
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn write(file: &dyn File, at: u64, bytes: &[u8]) -> Result<usize> {
    file.write_at(&[IoSlice::new(bytes)], at)
}

/// A file with these bytes, all durable.
fn kept(disk: &SimDisk, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = Io::open(disk, &path(name), true).unwrap();
    write(&*file, 0, bytes).unwrap();
    file.sync().unwrap();
    disk.sync_folder(Path::new(FOLDER)).unwrap();
    file
}

fn names(disk: &SimDisk) -> Vec<String> {
    Io::list(disk, Path::new(FOLDER)).unwrap()
}

#[test]
fn the_strictest_power_loss_leaves_what_is_durable() {
    let disk = disk(1);
    let file = kept(&disk, "a", b"first");
    let cut = kept(&disk, "cut", b"long");
    kept(&disk, "old", b"old");
    kept(&disk, "removed", b"r");
    write(&*file, 0, b"F").unwrap();
    write(&*file, 5, b" second").unwrap();
    cut.set_len(1).unwrap();
    let unnamed = Io::open(&disk, &path("unnamed"), true).unwrap();
    write(&*unnamed, 0, b"x").unwrap();
    unnamed.sync().unwrap();
    disk.rename(&path("old"), &path("new")).unwrap();
    disk.remove(&path("removed")).unwrap();
    assert_eq!(names(&disk), ["a", "cut", "new", "unnamed"].map(str::to_owned));
    disk.power_loss(Loss::Everything);
    assert_eq!(names(&disk), ["a", "cut", "old", "removed"].map(str::to_owned));
    assert_eq!((disk.bytes(&path("a")), disk.bytes(&path("cut"))), (b"first".to_vec(), b"long".to_vec()));
    assert!(file.sync().is_err(), "open files are dead");
}

#[test]
fn a_random_power_loss_leaves_any_part_and_whole_renames() {
    let (mut contents, mut listed) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..2_000 {
        let disk = disk(seed);
        let file = kept(&disk, "a", &[1; 1_024]);
        write(&*file, 0, &[2; 1_024]).unwrap();
        write(&*file, 1_024, &[3; 10]).unwrap();
        kept(&disk, "x.tmp", b"new");
        disk.rename(&path("x.tmp"), &path("x")).unwrap();
        drop(Io::open(&disk, &path("y"), true).unwrap());
        disk.power_loss(Loss::Random);
        let bytes = disk.bytes(&path("a"));
        assert!(
            bytes.len() >= 1_024 && bytes.len() <= 1_034 && bytes[..1_024].iter().all(|b| [1, 2].contains(b))
        );
        assert!(bytes[1_024..].iter().all(|byte| [0, 3].contains(byte)));
        contents.insert((bytes[0], bytes[1_023], bytes.len()));
        listed.insert(names(&disk));
    }
    let seen = |first, last| contents.iter().any(|(f, l, _)| (*f, *l) == (first, last));
    assert!(seen(1, 1) && seen(2, 2) && seen(1, 2) && seen(2, 1), "sectors are lost one by one");
    assert!(
        (1_024..=1_034).all(|length| contents.iter().any(|content| content.2 == length)),
        "torn anywhere"
    );
    let expected = [&["a", "x"][..], &["a", "x.tmp"], &["a", "x", "y"], &["a", "x.tmp", "y"]];
    let expected = expected.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(listed, expected.collect::<BTreeSet<Vec<_>>>());
}

#[test]
fn one_seed_repeats_a_power_loss() {
    let run = |seed| {
        let disk = disk(seed);
        let file = kept(&disk, "a", &[1; 5_000]);
        write(&*file, 100, &[2; 4_000]).unwrap();
        disk.power_loss(Loss::Random);
        disk.bytes(&path("a"))
    };
    assert!((0..50).all(|seed| run(seed) == run(seed)) && (0..50).any(|seed| run(seed) != run(seed + 1)));
}

#[test]
fn a_killed_process_loses_nothing_but_its_reach_and_its_locks() {
    let disk = disk(1);
    let process = disk.process();
    let file = process.open(&path("a"), true).unwrap();
    write(&*file, 0, b"there").unwrap();
    let lock = process.lock(&path("lock")).unwrap();
    assert_eq!(process.lock(&path("lock")).unwrap_err().kind(), ErrorKind::WouldBlock);
    disk.end_process();
    assert!(write(&*file, 0, b"gone").is_err() && process.remove(&path("a")).is_err());
    assert_eq!(disk.bytes(&path("a")), b"there");
    let next = disk.process();
    let held = next.lock(&path("lock")).unwrap();
    drop(lock);
    assert!(next.lock(&path("lock")).is_err(), "an earlier life lets nothing go");
    drop(held);
    assert!(next.lock(&path("lock")).is_ok());
}

#[test]
fn a_full_disk_takes_what_fits_and_more_once_there_is_room() {
    let disk = disk(1);
    let file = kept(&disk, "a", b"12345");
    disk.set_capacity(Some(8));
    assert_eq!((write(&*file, 5, b"6789").unwrap(), disk.used()), (3, 8));
    for full in [write(&*file, 8, b"9").err(), Io::open(&disk, &path("b"), true).err()] {
        assert_eq!(full.unwrap().kind(), ErrorKind::StorageFull);
    }
    assert_eq!(write(&*file, 0, b"abc").unwrap(), 3, "no room is needed for what is overwritten");
    file.set_len(6).unwrap();
    assert_eq!(write(&*file, 6, b"78").unwrap(), 2);
    disk.set_capacity(None);
    assert_eq!(write(&*file, 8, b"9").unwrap(), 1);
    assert_eq!(disk.bytes(&path("a")), b"abc456789");
}

#[test]
fn faults_come_where_they_are_set() {
    let disk = disk(1);
    let file = kept(&disk, "a", b"");
    for (fault, left, told) in [
        (Fault::Fail, 0, ErrorKind::Other),
        (Fault::Full, 0, ErrorKind::StorageFull),
        (Fault::Tear, 6, ErrorKind::Other),
        (Fault::Late, 9, ErrorKind::Other),
    ] {
        file.set_len(0).unwrap();
        disk.set_fault(1, fault);
        file.sync().unwrap();
        assert_eq!(write(&*file, 0, b"123456789").unwrap_err().kind(), told, "{fault:?}");
        assert_eq!(disk.bytes(&path("a")).len(), left, "{fault:?}");
        write(&*file, 0, b"x").unwrap();
    }
    disk.set_fault(0, Fault::Stop);
    assert!(file.sync().is_err() && disk.sync_folder(Path::new(FOLDER)).is_err());
    disk.clear_faults();
    disk.set_rule(|operation| {
        (operation.kind == Kind::Read && operation.path.ends_with("a")).then_some(Fault::Fail)
    });
    assert!(file.read_at(&mut [0], 0).is_err() && file.sync().is_ok());
    disk.clear_faults();
    disk.set_short_writes(1);
    assert_eq!(write(&*file, 0, b"123456789").unwrap(), 5);
}

#[test]
fn the_machine_ends_before_the_chosen_operation() {
    let disk = disk(1);
    let file = kept(&disk, "a", b"");
    disk.set_power_loss(1, Loss::Everything);
    write(&*file, 0, b"x").unwrap();
    assert!(file.sync().is_err() && disk.lives() == 1);
    assert!(disk.bytes(&path("a")).is_empty());
}

#[test]
fn new_folders_last_and_removed_ones_do_once_synced() {
    let disk = disk(1);
    disk.power_loss(Loss::Everything);
    assert!(names(&disk).is_empty());
    kept(&disk, "a", b"x");
    assert!(disk.remove_folder(Path::new(FOLDER)).is_err(), "not empty");
    disk.remove(&path("a")).unwrap();
    disk.remove_folder(Path::new(FOLDER)).unwrap();
    disk.power_loss(Loss::Everything);
    assert_eq!(names(&disk), ["a"]);
    disk.remove(&path("a")).unwrap();
    disk.remove_folder(Path::new(FOLDER)).unwrap();
    disk.sync_folder(Path::new("/data")).unwrap();
    disk.power_loss(Loss::Everything);
    assert!(Io::list(&disk, Path::new(FOLDER)).is_err());
}

#[test]
fn one_sync_of_all_makes_everything_before_it_durable() {
    let disk = disk(1);
    disk.make_folder(&path("sub")).unwrap();
    disk.make_folder(&path("sub")).unwrap();
    let file = Io::open(&disk, &path("sub/a"), true).unwrap();
    write(&*file, 0, b"kept").unwrap();
    disk.sync_all(Path::new(FOLDER)).unwrap();
    write(&*file, 4, b" and lost").unwrap();
    drop(Io::open(&disk, &path("sub/b"), true).unwrap());
    disk.power_loss(Loss::Everything);
    assert_eq!(disk.files(), [path("sub/a")]);
    assert_eq!(disk.bytes(&path("sub/a")), b"kept");
}
