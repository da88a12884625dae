//! What is kept, and what is left of it after a failure.

use verbatim_test_disk::{Fault, Loss, SimDisk};

use super::*;

const DATA: &str = "/data";

fn open(disk: &SimDisk) -> Store {
    Store::open(Path::new(DATA), disk.process()).unwrap()
}

fn entry(outcome: Outcome, sha256: &str) -> Entry {
    let (described, reason) = ("strict 1.0.0".to_owned(), String::new());
    let (sha256, evidence) = (sha256.to_owned(), Vec::new());
    Entry { at_ms: 7, generation: 3, outcome, sha256, described, reason, evidence }
}

fn swap(store: &Store, bytes: &[u8]) -> Result<String, StoreError> {
    let sha256 = Digest::of(bytes).to_string();
    let change = Change::To { serves: Some(sha256.clone()), before: store.chosen("strict") };
    store.note_with("strict", bytes, change, entry(Outcome::Swapped, &sha256))?;
    store.remove_unneeded(&BTreeSet::new());
    Ok(sha256)
}

/// Back to this file from the one that is chosen.
fn back(store: &Store, to: Option<&String>) -> Change {
    Change::To { serves: to.cloned(), before: store.chosen("strict") }
}

#[test]
fn what_was_chosen_is_there_after_a_restart_and_what_nothing_names_is_gone() {
    let disk = SimDisk::new(1);
    let store = open(&disk);
    let digests = [b"one", b"two", b"six"].map(|bytes| swap(&store, bytes).unwrap());
    store.note("strict", Change::Stays, entry(Outcome::Refused, "bad")).unwrap();
    disk.power_loss(Loss::Everything);

    let store = open(&disk);
    let [one, two, six] = digests;
    assert_eq!((store.chosen("strict"), store.previous("strict")), (Some(six.clone()), Some(two.clone())));
    assert_eq!((store.bytes(&six).unwrap(), store.bytes(&two).unwrap()), (b"six".to_vec(), b"two".to_vec()));
    assert!(matches!(store.bytes(&one), Err(StoreError::Module { what: "not there", .. })));
    assert_eq!((store.history("strict").len(), store.generation("strict")), (4, 3));
    assert_eq!((store.chosen("other"), store.history("other")), (None, vec![]));

    store.note("strict", back(&store, None), entry(Outcome::RolledBack, &one)).unwrap();
    assert_eq!((store.chosen("strict"), store.previous("strict")), (None, Some(six)));
}

#[test]
fn whatever_fails_the_host_starts_with_the_old_module_or_the_new_one() {
    for loses_power in [false, true] {
        for operation in 0.. {
            let disk = SimDisk::new(operation);
            let old = swap(&open(&disk), b"old").unwrap();
            if loses_power {
                disk.set_power_loss(operation, Loss::Random);
            } else {
                disk.set_fault(operation, Fault::Fail);
            }
            let swapped = swap(&open(&disk), b"new");
            disk.clear_faults();
            let store = open(&disk);
            let chosen = store.chosen("strict").unwrap();
            store.bytes(&chosen).unwrap();
            match swapped {
                Ok(new) => assert_eq!(chosen, new),
                Err(_) => assert!(chosen == old || chosen == Digest::of(b"new").to_string()),
            }
            if disk.operations() < operation {
                break;
            }
        }
    }
}

#[test]
fn the_last_swap_is_told_until_it_is_taken_back() {
    let store = open(&SimDisk::new(1));
    assert_eq!(store.last_swap("strict", "any"), None);
    let [one, two] = [b"one", b"two"].map(|bytes| swap(&store, bytes).unwrap());
    store.note("strict", Change::Stays, entry(Outcome::Refused, "bad")).unwrap();
    assert_eq!(store.last_swap("strict", &two), Some((7, Some(one.clone()))));
    assert_eq!(store.last_swap("strict", &one), None, "another one serves");
    assert!(!store.was_taken_back("strict", &two));
    let taken = entry(Outcome::RolledBackByItself, &one);
    store.note("strict", back(&store, Some(&one)), taken).unwrap();
    assert_eq!(store.last_swap("strict", &one), None);
    assert!(store.was_taken_back("strict", &two) && !store.was_taken_back("strict", &one));
}

/// The note that a module was taken back comes from another thread, and may be late.
#[test]
fn what_was_swapped_in_meanwhile_goes_on() {
    let store = open(&SimDisk::new(1));
    let [one, two] = [b"one", b"two"].map(|bytes| swap(&store, bytes).unwrap());
    let taken = |generation| Entry { generation, ..entry(Outcome::RolledBackByItself, &one) };
    // The swap to `two` has the number 3, too.
    store.note_taken_back("strict", back(&store, Some(&one)), taken(3)).unwrap();
    assert_eq!(store.chosen("strict"), Some(two));
    store.note_taken_back("strict", back(&store, Some(&one)), taken(4)).unwrap();
    assert_eq!((store.chosen("strict"), store.history("strict").len()), (Some(one), 4));
}

#[test]
fn a_history_without_evidence_is_read() {
    let disk = SimDisk::new(1);
    let old = r#"{"strict":{"chosen":null,"previous":null,"history":[{"at_ms":1,"generation":2,
        "outcome":"rolled-back-by-itself","sha256":"a","described":"strict 1","reason":"it failed"}]}}"#;
    let store = open(&disk);
    store.note("strict", Change::Stays, entry(Outcome::Refused, "bad")).unwrap();
    let file = Path::new(DATA).join(FOLDER).join(FILE);
    folder::atomic_replace(&*disk.process(), &file, KIND, FORMAT, old.as_bytes()).unwrap();
    let history = open(&disk).history("strict");
    assert_eq!(history.first().map(|entry| entry.evidence.len()), Some(0));
}

/// A rollback that could not be kept leaves another module in service than is chosen.
#[test]
fn what_is_held_stays_and_what_a_failed_write_left_goes() {
    let disk = SimDisk::new(1);
    let store = open(&disk);
    let [one, two] = [b"one", b"two"].map(|bytes| swap(&store, bytes).unwrap());
    let folder = Path::new(DATA).join(FOLDER);
    disk.process().open(&folder.join("cafe.wasm.tmp"), true).unwrap();
    let six = Digest::of(b"six").to_string();
    // `one` serves, and somebody takes `six` in its place.
    let change = Change::To { serves: Some(six.clone()), before: Some(one.clone()) };
    store.note_with("strict", b"six", change, entry(Outcome::Swapped, &six)).unwrap();
    store.remove_unneeded(&BTreeSet::from([two.clone()]));
    for sha256 in [&one, &two, &six] {
        store.bytes(sha256).unwrap();
    }
    assert_eq!(store.previous("strict"), Some(one));
    store.remove_unneeded(&BTreeSet::new());
    assert!(store.bytes(&two).is_err() && store.bytes(&six).is_ok());
    let names = disk.process().list(&folder).unwrap();
    assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{names:?}");
}

#[test]
fn a_module_that_does_not_fit_leaves_nothing() {
    let disk = SimDisk::new(1);
    let store = open(&disk);
    swap(&store, b"one").unwrap();
    let names = || disk.process().list(&Path::new(DATA).join(FOLDER)).unwrap();
    let before = names().len();
    for after in 0..5 {
        disk.set_fault(after, Fault::Full);
        let swapped = swap(&store, b"another");
        disk.clear_faults();
        assert!(swapped.is_err(), "operation {after}");
        store.remove_unneeded(&BTreeSet::new());
        assert_eq!(names().len(), before, "operation {after}: {:?}", names());
    }
}

#[test]
fn a_long_reason_is_cut() {
    for long in ["ü", "x", "€"].map(|char| char.repeat(70_000)) {
        let kept = cut(long);
        assert!(kept.len() > REASON_LEN_MAX - 4 && kept.len() <= REASON_LEN_MAX, "{}", kept.len());
        assert!(kept.ends_with('…'));
    }
    assert_eq!(cut("short".to_owned()), "short");
}

#[test]
fn the_history_is_bounded() {
    let store = open(&SimDisk::new(1));
    for _ in 0..HISTORY_MAX + 5 {
        store.note("strict", Change::Stays, entry(Outcome::Refused, "bad")).unwrap();
    }
    assert_eq!(store.history("strict").len(), HISTORY_MAX);
}

#[test]
fn damage_is_named() {
    let disk = SimDisk::new(1);
    let sha256 = swap(&open(&disk), b"one").unwrap();
    let folder = Path::new(DATA).join(FOLDER);
    disk.set_bytes(&folder.join(format!("{sha256}.wasm")), b"oxe".to_vec());
    let error = open(&disk).bytes(&sha256).unwrap_err().to_string();
    assert!(error.contains("another one") && error.contains(&sha256), "{error}");
    disk.set_bytes(&folder.join(FILE), b"{}".to_vec());
    for damage in [&b"{}"[..], b"", b"#verbatim modules version=1 length=0 crc32c=00000000\n"] {
        disk.set_bytes(&folder.join(FILE), damage.to_vec());
        let error = Store::open(Path::new(DATA), disk.process()).err().unwrap().to_string();
        assert!(error.contains("`/data/modules/chosen`") && error.contains("move away"), "{error}");
    }
}
