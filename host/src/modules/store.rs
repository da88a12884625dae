//! What survives a restart: which file each named module was swapped for, by digest, and what became of each swap.
//!
//! In the data folder's `modules/` lie the files themselves, `<sha256>.wasm`, and the checked file `chosen`, which every
//! change replaces as a whole. A file is written before `chosen` names it, and removed after nothing names it any more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use verbatim_engine::Digest;
use verbatim_log::{Io, LogError, folder};

/// The folder in the data folder.
pub(super) const FOLDER: &str = "modules";
const FILE: &str = "chosen";
const KIND: &str = "modules";
/// The layout that is written; a newer one is refused.
const FORMAT: u32 = 1;

/// Entries that are kept of a module's history; the oldest give way.
pub const HISTORY_MAX: usize = 100;

/// What became of a swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The module serves.
    Swapped,
    /// It did not pass; nothing changed.
    Refused,
    /// An operator went back to the module before.
    RolledBack,
    /// The host went back by itself.
    RolledBackByItself,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Swapped, Self::Refused, Self::RolledBack, Self::RolledBackByItself];

    /// Its name in histories and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Swapped => "swapped",
            Self::Refused => "refused",
            Self::RolledBack => "rolled-back",
            Self::RolledBackByItself => "rolled-back-by-itself",
        }
    }
}

/// One line of a module's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// The generation in service from then on.
    pub generation: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// SHA-256 of the module's file that it is about: of a rollback, the one that serves from then on.
    pub sha256: String,
    /// What the module says it is, name and version; empty when it could not be asked.
    pub described: String,
    /// Why it was refused or taken back; empty for a swap.
    pub reason: String,
    /// Of a module that was taken back by itself, each request on which it failed and the one before it does not.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// What is known of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Named {
    /// The file that serves; none for the one that the host is started with.
    chosen: Option<String>,
    /// The file that served before; none for the one that the host is started with, or if there was none.
    previous: Option<String>,
    /// Oldest first.
    history: Vec<Entry>,
}

impl Named {
    /// The last entry that changed what serves.
    fn last_change(&self) -> Option<&Entry> {
        self.history.iter().rev().find(|entry| entry.outcome != Outcome::Refused)
    }
}

/// A change of what serves.
pub(super) enum Change {
    /// None: the module stays.
    Stays,
    /// This file; none for the one that the host is started with.
    To(Option<String>),
}

type All = BTreeMap<String, Named>;

/// The files and the history of a host's modules.
pub(super) struct Store {
    io: Arc<dyn Io>,
    folder: PathBuf,
    all: Mutex<All>,
}

/// What cannot be kept, or is not there any more.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk failed, or a file of it is damaged.
    #[error(transparent)]
    Disk(#[from] LogError),
    /// The chosen file is damaged in a way that its checksum does not show.
    #[error("the list of chosen modules does not make sense: {text}, file=`{}`", .file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        text: String,
    },
    /// The module's file is not there, or is another one.
    #[error("the module's file is {what}, expected sha256 {sha256}, file=`{}`", .file.display())]
    Module {
        /// The file.
        file: PathBuf,
        /// What it is.
        what: &'static str,
        /// The digest of the one that was chosen.
        sha256: String,
    },
}

impl Store {
    /// Reads what was chosen; of a folder that is not there, nothing was.
    pub(super) fn open(data: &Path, io: Arc<dyn Io>) -> Result<Self, StoreError> {
        let folder = data.join(FOLDER);
        let file = folder.join(FILE);
        let all = match folder::read_checked(&*io, &file, KIND, FORMAT)? {
            Some((_, content)) => serde_json::from_slice(&content)
                .map_err(|error| StoreError::Content { file, text: error.to_string() })?,
            None => All::new(),
        };
        Ok(Self { io, folder, all: Mutex::new(all) })
    }

    /// The digest of the file that serves under a name, if it is another than the host is started with.
    pub(super) fn chosen(&self, name: &str) -> Option<String> {
        self.lock().get(name)?.chosen.clone()
    }

    /// The digest of the file that served before, if it is another than the host is started with.
    pub(super) fn previous(&self, name: &str) -> Option<String> {
        self.lock().get(name)?.previous.clone()
    }

    /// The generation in service; 1 for a module that was never swapped.
    pub(super) fn generation(&self, name: &str) -> u64 {
        self.lock().get(name).and_then(|named| named.history.last()).map_or(1, |last| last.generation)
    }

    /// What became of each swap, oldest first.
    pub(super) fn history(&self, name: &str) -> Vec<Entry> {
        self.lock().get(name).map(|named| named.history.clone()).unwrap_or_default()
    }

    /// When the module with this digest was swapped for the one before it, in milliseconds since 1970, and the digest of that
    /// one's file, none for the one that the host is started with; none if it was not what the last change was to.
    pub(super) fn last_swap(&self, name: &str, sha256: &str) -> Option<(i64, Option<String>)> {
        let all = self.lock();
        let named = all.get(name)?;
        let last =
            named.last_change().filter(|last| last.outcome == Outcome::Swapped && last.sha256 == sha256)?;
        Some((last.at_ms, named.previous.clone()))
    }

    /// Whether this module was taken back under this name, as far as the history tells.
    pub(super) fn was_taken_back(&self, name: &str, sha256: &str) -> bool {
        let all = self.lock();
        let history = all.get(name).map(|named| named.history.as_slice()).unwrap_or_default();
        let changes: Vec<&Entry> = history.iter().filter(|entry| entry.outcome != Outcome::Refused).collect();
        let mut pairs = changes.iter().zip(changes.iter().skip(1));
        pairs.any(|(gone, next)| next.outcome != Outcome::Swapped && gone.sha256 == sha256)
    }

    /// The bytes of a module's file.
    pub(super) fn bytes(&self, sha256: &str) -> Result<Vec<u8>, StoreError> {
        let file = self.module_file(sha256);
        let wrong = |what| StoreError::Module { file: file.clone(), what, sha256: sha256.to_owned() };
        let bytes = folder::read(&*self.io, &file)?.ok_or_else(|| wrong("not there"))?;
        if Digest::of(&bytes).to_string() != sha256 {
            return Err(wrong("another one"));
        }
        Ok(bytes)
    }

    /// Keeps a module's file under its digest. Nothing names it yet.
    pub(super) fn keep(&self, bytes: &[u8]) -> Result<(), StoreError> {
        self.io.create_folder(&self.folder).map_err(|source| self.failed("create the folder", source))?;
        let file = self.module_file(&Digest::of(bytes).to_string());
        Ok(folder::replace(&*self.io, &file, bytes)?)
    }

    /// Notes that a module was taken back by itself. What somebody swapped in meanwhile goes on.
    pub(super) fn note_taken_back(&self, name: &str, change: Change, entry: Entry) -> Result<(), StoreError> {
        let is_late = self
            .lock()
            .get(name)
            .and_then(Named::last_change)
            .is_some_and(|last| last.generation >= entry.generation);
        self.note(name, if is_late { Change::Stays } else { change }, entry)
    }

    /// Notes what became of a swap, and what serves from now on.
    pub(super) fn note(&self, name: &str, change: Change, entry: Entry) -> Result<(), StoreError> {
        let mut all = self.lock();
        let mut draft = all.clone();
        let named = draft.entry(name.to_owned()).or_default();
        if let Change::To(chosen) = change {
            named.previous = std::mem::replace(&mut named.chosen, chosen);
        }
        named.history.push(entry);
        let surplus = named.history.len().saturating_sub(HISTORY_MAX);
        named.history.drain(..surplus);
        self.write(&draft)?;
        *all = draft;
        self.remove_unnamed(&all);
        Ok(())
    }

    fn write(&self, all: &All) -> Result<(), StoreError> {
        self.io.create_folder(&self.folder).map_err(|source| self.failed("create the folder", source))?;
        let file = self.folder.join(FILE);
        let content = serde_json::to_vec_pretty(all)
            .map_err(|error| StoreError::Content { file: file.clone(), text: error.to_string() })?;
        Ok(folder::atomic_replace(&*self.io, &file, KIND, FORMAT, &content)?)
    }

    /// Removes files that nothing names. One that cannot be removed costs room, and is tried again with the next change.
    fn remove_unnamed(&self, all: &All) {
        let named = all.values().flat_map(|named| [&named.chosen, &named.previous]).flatten();
        let named: BTreeSet<&str> = named.map(String::as_str).collect();
        for found in self.io.list(&self.folder).unwrap_or_default() {
            let Some(sha256) = found.strip_suffix(".wasm") else { continue };
            if !named.contains(sha256)
                && let Err(error) = self.io.remove(&self.folder.join(&found))
            {
                tracing::warn!(%error, file = found, "a module's file that is not needed any more cannot be removed");
            }
        }
    }

    fn module_file(&self, sha256: &str) -> PathBuf {
        self.folder.join(format!("{sha256}.wasm"))
    }

    fn failed(&self, what: &'static str, source: std::io::Error) -> StoreError {
        LogError::Io { what, file: self.folder.clone(), source }.into()
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
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
        store.keep(bytes)?;
        store.note("strict", Change::To(Some(sha256.clone())), entry(Outcome::Swapped, &sha256))?;
        Ok(sha256)
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
        assert_eq!(
            (store.chosen("strict"), store.previous("strict")),
            (Some(six.clone()), Some(two.clone()))
        );
        assert_eq!(
            (store.bytes(&six).unwrap(), store.bytes(&two).unwrap()),
            (b"six".to_vec(), b"two".to_vec())
        );
        assert!(matches!(store.bytes(&one), Err(StoreError::Module { what: "not there", .. })));
        assert_eq!((store.history("strict").len(), store.generation("strict")), (4, 3));
        assert_eq!((store.chosen("other"), store.history("other")), (None, vec![]));

        store.note("strict", Change::To(None), entry(Outcome::RolledBack, &one)).unwrap();
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
        let back = entry(Outcome::RolledBackByItself, &one);
        store.note("strict", Change::To(Some(one.clone())), back).unwrap();
        assert_eq!(store.last_swap("strict", &one), None);
        assert!(store.was_taken_back("strict", &two) && !store.was_taken_back("strict", &one));
    }

    /// The note that a module was taken back comes from another thread, and may be late.
    #[test]
    fn what_was_swapped_in_meanwhile_goes_on() {
        let store = open(&SimDisk::new(1));
        let [one, two] = [b"one", b"two"].map(|bytes| swap(&store, bytes).unwrap());
        let back = |generation| Entry { generation, ..entry(Outcome::RolledBackByItself, &one) };
        // The swap to `two` has the number 3, too.
        store.note_taken_back("strict", Change::To(Some(one.clone())), back(3)).unwrap();
        assert_eq!(store.chosen("strict"), Some(two));
        store.note_taken_back("strict", Change::To(Some(one.clone())), back(4)).unwrap();
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
        assert!(matches!(Store::open(Path::new(DATA), disk.process()), Err(StoreError::Disk(_))));
    }
}
