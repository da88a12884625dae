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
/// The longest reason that is kept, in bytes: it may quote a module, which is of any length.
const REASON_LEN_MAX: usize = 1 << 10;

/// What became of a swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The module serves.
    Swapped,
    /// It did not pass; nothing changed.
    Refused,
    /// Nobody waited for the swap, a rollback came first, or too few live requests did; nothing changed.
    Abandoned,
    /// An operator went back to the module before.
    RolledBack,
    /// The host went back by itself.
    RolledBackByItself,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Swapped, Self::Refused, Self::Abandoned, Self::RolledBack, Self::RolledBackByItself];

    /// Its name in histories and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Swapped => "swapped",
            Self::Refused => "refused",
            Self::Abandoned => "abandoned",
            Self::RolledBack => "rolled-back",
            Self::RolledBackByItself => "rolled-back-by-itself",
        }
    }

    /// Another module serves since then.
    pub(super) const fn is_change(self) -> bool {
        !matches!(self, Self::Refused | Self::Abandoned)
    }
}

/// One line of a module's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// The generation in service from then on: if nothing changed, the one that went on.
    pub generation: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// SHA-256 of the module's file that it is about: of a rollback, the one that serves from then on.
    pub sha256: String,
    /// What the module says it is, name and version; empty when it could not be asked.
    pub described: String,
    /// Why it was refused, abandoned or taken back, cut at 1 KiB; empty for a swap.
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
        self.history.iter().rev().find(|entry| entry.outcome.is_change())
    }
}

/// A change of what serves.
pub(super) enum Change {
    /// None: the module stays.
    Stays,
    /// To this file, from that one; none for the one that the host is started with.
    To {
        /// What serves from now on.
        serves: Option<String>,
        /// What served until now.
        before: Option<String>,
    },
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
    /// The list of chosen modules cannot be read.
    #[error(
        "the list of chosen modules cannot be read; without it the host starts with the modules that it is told and remembers no swap: move away file=`{}`: {source}",
        .file.display()
    )]
    Chosen {
        /// The file.
        file: PathBuf,
        /// Why.
        source: LogError,
    },
    /// The same, in a way that its checksum does not show.
    #[error(
        "the list of chosen modules does not make sense; without it the host starts with the modules that it is told and remembers no swap: move away file=`{}`: {text}",
        .file.display()
    )]
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
        let read = folder::read_checked(&*io, &file, KIND, FORMAT);
        let all = match read.map_err(|source| StoreError::Chosen { file: file.clone(), source })? {
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
        let changes: Vec<&Entry> = history.iter().filter(|entry| entry.outcome.is_change()).collect();
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
        self.change(&mut self.lock(), name, change, entry)
    }

    /// The same, and keeps the module's file before, if it is to be named. Nobody removes it in between.
    pub(super) fn note_with(
        &self,
        name: &str,
        module: &[u8],
        change: Change,
        entry: Entry,
    ) -> Result<(), StoreError> {
        let mut all = self.lock();
        if let Change::To { serves: Some(sha256), .. } = &change {
            self.io.create_folder(&self.folder).map_err(|source| self.failed("create the folder", source))?;
            folder::replace(&*self.io, &self.module_file(sha256), module)?;
        }
        self.change(&mut all, name, change, entry)
    }

    fn change(&self, all: &mut All, name: &str, change: Change, entry: Entry) -> Result<(), StoreError> {
        let mut draft = all.clone();
        let named = draft.entry(name.to_owned()).or_default();
        if let Change::To { serves, before } = change {
            (named.chosen, named.previous) = (serves, before);
        }
        named.history.push(entry);
        let surplus = named.history.len().saturating_sub(HISTORY_MAX);
        named.history.drain(..surplus);
        self.write(&draft)?;
        *all = draft;
        Ok(())
    }

    fn write(&self, all: &All) -> Result<(), StoreError> {
        self.io.create_folder(&self.folder).map_err(|source| self.failed("create the folder", source))?;
        let file = self.folder.join(FILE);
        let content = serde_json::to_vec_pretty(all)
            .map_err(|error| StoreError::Content { file: file.clone(), text: error.to_string() })?;
        Ok(folder::atomic_replace(&*self.io, &file, KIND, FORMAT, &content)?)
    }

    /// Removes modules' files that nothing names and nobody holds, and what a write left that did not end. One that cannot be
    /// removed costs room, and is tried again with the next change.
    pub(super) fn remove_unneeded(&self, held: &BTreeSet<String>) {
        // Held, so that nobody writes meanwhile.
        let all = self.lock();
        let named: Vec<&String> =
            all.values().flat_map(|named| [&named.chosen, &named.previous]).flatten().collect();
        let is_needed = |sha256: &str| held.contains(sha256) || named.iter().any(|named| *named == sha256);
        for found in self.io.list(&self.folder).unwrap_or_default() {
            let goes = match found.strip_suffix(".wasm") {
                Some(sha256) => !is_needed(sha256),
                None => found.ends_with(".tmp"),
            };
            if goes && let Err(error) = self.io.remove(&self.folder.join(&found)) {
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

/// A reason, cut where it is too long to be kept.
pub(super) fn cut(mut reason: String) -> String {
    const CUT: &str = "…";
    if reason.len() > REASON_LEN_MAX {
        reason.truncate(reason.floor_char_boundary(REASON_LEN_MAX - CUT.len()));
        reason.push_str(CUT);
    }
    reason
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
