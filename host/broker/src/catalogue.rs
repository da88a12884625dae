//! What topics there are: names, ids, partitions, properties; and what belongs to the whole host: cluster id, producer ids,
//! client quotas.
//!
//! It lies in one small checked JSON file, `catalogue` in the data folder, which every change replaces as a whole: a crash
//! leaves the old file or the new one. Readers take a snapshot without waiting. Steps that span the catalogue and the
//! partitions (deletion, promotion) are states in it, so that the next start goes on where a crash stopped them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use verbatim_log::{Io, LogError, folder};
use verbatim_wire::error::ErrorCode;

use crate::errors::ApiError;
use crate::quotas::rates::{Rates, StoredRate};
use crate::settings::{Settings, Values};

/// The catalogue's file in the data folder.
pub(crate) const FILE: &str = "catalogue";
/// What the file's first line calls it.
const KIND: &str = "catalogue";
/// The layout that is written; a newer one is refused.
const FORMAT: u32 = 1;
/// Kafka's limit for topic names: the folder's name has to fit, with a partition number, into 255 bytes.
const NAME_LEN_MAX: usize = 249;
/// Producer ids taken from the counter at a time, so that not every new producer writes the file.
const PRODUCER_ID_BLOCK: u32 = 1_000;

/// Where a topic is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Its folders are being made; clients do not see it.
    Creating,
    /// In use.
    Live,
    /// `produce.at.offset` is being removed; nobody may write.
    Promoting,
    /// Its folders are being removed; clients do not see it.
    Deleting,
}

/// A topic as it stands; a change makes a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Topic {
    /// Its name.
    pub(crate) name: String,
    /// Its id, never used again.
    pub(crate) id: Uuid,
    /// How many partitions it has.
    pub(crate) partitions: u32,
    /// Its own properties.
    pub(crate) values: Values,
    /// The same, typed, with the defaults.
    pub(crate) settings: Settings,
    /// Rises by one with every change of the properties.
    pub(crate) generation: u64,
    /// Where it is in its life.
    pub(crate) state: State,
}

impl Topic {
    /// Clients may see it.
    #[must_use]
    pub(crate) fn is_visible(&self) -> bool {
        matches!(self.state, State::Live | State::Promoting)
    }

    /// Its partitions that were not promoted yet take exact writes.
    #[must_use]
    pub(crate) fn is_exact_on_disk(&self) -> bool {
        self.settings.exact || self.state == State::Promoting
    }
}

/// All of it at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The cluster's id, chosen when the data folder was created.
    pub(crate) cluster_id: String,
    /// The upper 31 bits of the producer ids handed out here, at least 1 (design: they never meet a source's).
    pub(crate) producer_prefix: u32,
    /// The first producer id counter that was never reserved.
    producer_next: u32,
    /// Topics by name, those that clients do not see included.
    pub(crate) topics: BTreeMap<String, Arc<Topic>>,
    ids: HashMap<Uuid, String>,
    /// Client quotas.
    pub(crate) quotas: Rates,
}

impl Snapshot {
    /// The topic of that name, if clients may see it.
    #[must_use]
    pub(crate) fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(name).filter(|topic| topic.is_visible())
    }

    /// The topic of that id, if clients may see it.
    #[must_use]
    pub(crate) fn topic_by_id(&self, id: Uuid) -> Option<&Arc<Topic>> {
        self.ids.get(&id).and_then(|name| self.topic(name))
    }

    /// Topics that clients may see, by name.
    pub(crate) fn visible(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topics.values().filter(|topic| topic.is_visible())
    }

    /// Adds the topic, or puts it in the place of the one of the same name.
    pub(crate) fn put(&mut self, topic: Topic) {
        self.ids.insert(topic.id, topic.name.clone());
        self.topics.insert(topic.name.clone(), Arc::new(topic));
    }

    /// Forgets the topic.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(topic) = self.topics.remove(name) {
            self.ids.remove(&topic.id);
        }
    }
}

/// The catalogue of a running host.
pub(crate) struct Catalogue {
    path: PathBuf,
    io: Arc<dyn Io>,
    current: ArcSwap<Snapshot>,
    /// Held while the file is replaced; the numbers left of the reserved block of producer ids.
    write: Mutex<std::ops::Range<u32>>,
}

impl Catalogue {
    /// Reads the catalogue of this data folder, or begins one.
    ///
    /// # Errors
    /// A file that cannot be read or written, is damaged, or was written by a newer version.
    pub(crate) fn open(data: &Path, io: Arc<dyn Io>) -> Result<Self, CatalogueError> {
        let path = data.join(FILE);
        let snapshot = match folder::read_checked(io.as_ref(), &path, KIND, FORMAT)? {
            Some((_, content)) => decode(&path, &content)?,
            None => {
                let fresh = fresh();
                store(io.as_ref(), &path, &fresh)?;
                fresh
            }
        };
        Ok(Self { path, io, current: ArcSwap::from_pointee(snapshot), write: Mutex::new(0..0) })
    }

    /// What it says now.
    #[must_use]
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Changes it: durable when this returns, and visible only then.
    ///
    /// # Errors
    /// What `change` refuses, with nothing changed; or the file cannot be written.
    pub(crate) fn update<T>(
        &self,
        change: impl FnOnce(&mut Snapshot) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let _guard = self.write.lock().unwrap_or_else(PoisonError::into_inner);
        self.change(change)
    }

    /// A producer id that was never handed out before.
    ///
    /// # Errors
    /// The file cannot be written, or all four billion are used up.
    pub(crate) fn producer_id(&self) -> Result<i64, ApiError> {
        let mut block = self.write.lock().unwrap_or_else(PoisonError::into_inner);
        if block.is_empty() {
            *block = self.change(|draft| {
                let first = draft.producer_next;
                draft.producer_next = first.checked_add(PRODUCER_ID_BLOCK).ok_or_else(|| {
                    ApiError::new(
                        ErrorCode::UnknownServerError,
                        "all producer ids of this data folder are used up",
                    )
                })?;
                Ok(first..draft.producer_next)
            })?;
        }
        let counter = block.next().unwrap_or_default();
        Ok((i64::from(self.current.load().producer_prefix) << 32) | i64::from(counter))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Snapshot) -> Result<T, ApiError>) -> Result<T, ApiError> {
        let mut draft = Snapshot::clone(&self.current.load());
        let outcome = change(&mut draft)?;
        store(self.io.as_ref(), &self.path, &draft).map_err(|error| {
            tracing::error!(%error, "the catalogue cannot be written");
            self.take_back();
            ApiError::storage(error.to_string())
        })?;
        self.current.store(Arc::new(draft));
        Ok(outcome)
    }

    /// After a failed write the file may hold what was refused, and a start would go by it.
    fn take_back(&self) {
        let current = self.current.load();
        let stored = folder::read_checked(self.io.as_ref(), &self.path, KIND, FORMAT).ok().flatten();
        let is_current = encode(&self.path, &current)
            .is_ok_and(|content| stored.is_some_and(|(_, stored)| stored == content));
        if !is_current && let Err(error) = store(self.io.as_ref(), &self.path, &current) {
            tracing::error!(%error, "the catalogue's file may hold a change that was refused, until the next change");
        }
    }
}

/// Judges a topic's name.
///
/// # Errors
/// INVALID_TOPIC_EXCEPTION naming the value and the expectation.
pub(crate) fn check_name(name: &str) -> Result<(), ApiError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !name.is_empty()
        && name.len() <= NAME_LEN_MAX
        && name != "."
        && name != ".."
        && name.bytes().all(legal)
    {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_LEN_MAX).collect();
    let text = format!(
        "a topic name must have 1 to {NAME_LEN_MAX} of the characters a-z A-Z 0-9 . _ - and not be . or .., topic=`{shown}`"
    );
    Err(ApiError::new(ErrorCode::InvalidTopicException, text))
}

/// A catalogue that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The file cannot be read or written, is damaged, or is newer than this version.
    #[error(transparent)]
    File(#[from] LogError),
    /// The file holds something else than a catalogue.
    #[error("catalogue does not make sense: {problem}, file=`{}`", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Stored {
    cluster_id: String,
    producer_id_prefix: u32,
    producer_id_next: u32,
    topics: Vec<StoredTopic>,
    /// Not there in files of versions without quotas.
    #[serde(default)]
    client_quotas: Vec<StoredRate>,
}

#[derive(Serialize, Deserialize)]
struct StoredTopic {
    name: String,
    id: String,
    partitions: u32,
    state: State,
    generation: u64,
    properties: Values,
}

fn fresh() -> Snapshot {
    let prefix = u32::try_from(Uuid::new_v4().as_u128() & 0x7fff_ffff).unwrap_or(1).max(1);
    Snapshot {
        cluster_id: crate::topic_id::format(Uuid::new_v4()),
        producer_prefix: prefix,
        producer_next: 0,
        topics: BTreeMap::new(),
        ids: HashMap::new(),
        quotas: Rates::default(),
    }
}

fn store(io: &dyn Io, path: &Path, snapshot: &Snapshot) -> Result<(), CatalogueError> {
    Ok(folder::atomic_replace(io, path, KIND, FORMAT, &encode(path, snapshot)?)?)
}

fn encode(path: &Path, snapshot: &Snapshot) -> Result<Vec<u8>, CatalogueError> {
    let stored = Stored {
        cluster_id: snapshot.cluster_id.clone(),
        producer_id_prefix: snapshot.producer_prefix,
        producer_id_next: snapshot.producer_next,
        topics: snapshot.topics.values().map(|topic| stored_topic(topic)).collect(),
        client_quotas: snapshot.quotas.to_stored(),
    };
    serde_json::to_vec_pretty(&stored)
        .map_err(|error| CatalogueError::Content { path: path.to_owned(), problem: error.to_string() })
}

fn stored_topic(topic: &Topic) -> StoredTopic {
    StoredTopic {
        name: topic.name.clone(),
        id: crate::topic_id::format(topic.id),
        partitions: topic.partitions,
        state: topic.state,
        generation: topic.generation,
        properties: topic.values.clone(),
    }
}

fn decode(path: &Path, bytes: &[u8]) -> Result<Snapshot, CatalogueError> {
    let damaged = |problem: String| CatalogueError::Content { path: path.to_owned(), problem };
    let stored: Stored = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    let prefix = stored.producer_id_prefix;
    if prefix == 0 || prefix > 0x7fff_ffff {
        return Err(damaged(format!("producer_id_prefix must be 1 to 2147483647, value=`{prefix}`")));
    }
    let mut snapshot = Snapshot {
        cluster_id: stored.cluster_id,
        producer_prefix: prefix,
        producer_next: stored.producer_id_next,
        topics: BTreeMap::new(),
        ids: HashMap::new(),
        quotas: Rates::from_stored(stored.client_quotas),
    };
    for topic in stored.topics {
        let name = topic.name.clone();
        snapshot.put(read_topic(topic).map_err(|problem| damaged(format!("topic `{name}`: {problem}")))?);
    }
    Ok(snapshot)
}

fn read_topic(stored: StoredTopic) -> Result<Topic, String> {
    check_name(&stored.name).map_err(|error| error.text)?;
    let id =
        crate::topic_id::parse(&stored.id).ok_or_else(|| format!("id=`{}` is not a topic id", stored.id))?;
    let settings = Settings::read(&stored.properties).map_err(|error| error.text)?;
    Ok(Topic {
        name: stored.name,
        id,
        partitions: stored.partitions,
        values: stored.properties,
        settings,
        generation: stored.generation,
        state: stored.state,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use verbatim_log::DiskIo;

    use super::*;

    fn open(data: &Path) -> Result<Catalogue, CatalogueError> {
        Catalogue::open(data, Arc::new(DiskIo))
    }

    fn topic(name: &str, values: Values) -> Topic {
        let settings = Settings::read(&values).unwrap();
        let id = Uuid::new_v4();
        Topic {
            name: name.to_owned(),
            id,
            partitions: 3,
            values,
            settings,
            generation: 0,
            state: State::Live,
        }
    }

    #[test]
    fn what_was_changed_is_there_after_opening_again() {
        let data = tempfile::tempdir().unwrap();
        let catalogue = open(data.path()).unwrap();
        let values = Values::from([("produce.at.offset".to_owned(), "true".to_owned())]);
        let made = topic("orders", values);
        catalogue
            .update(|draft| {
                draft.put(made.clone());
                Ok(())
            })
            .unwrap();
        let before = catalogue.snapshot();
        let again = open(data.path()).unwrap();
        assert_eq!(*again.snapshot(), *before);
        assert_eq!(**again.snapshot().topic_by_id(made.id).unwrap(), made);
        again
            .update(|draft| {
                draft.remove("orders");
                Ok(())
            })
            .unwrap();
        assert!(open(data.path()).unwrap().snapshot().topic("orders").is_none());
    }

    #[test]
    fn a_refused_change_leaves_file_and_snapshot_alone() {
        let data = tempfile::tempdir().unwrap();
        let catalogue = open(data.path()).unwrap();
        let before = std::fs::read(data.path().join(FILE)).unwrap();
        let refused = catalogue.update(|draft| {
            draft.put(topic("orders", Values::new()));
            Err::<(), _>(ApiError::policy("no"))
        });
        assert!(refused.is_err());
        assert!(catalogue.snapshot().topics.is_empty());
        assert_eq!(std::fs::read(data.path().join(FILE)).unwrap(), before);
    }

    #[test]
    fn producer_ids_are_never_handed_out_twice() {
        let data = tempfile::tempdir().unwrap();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..3 {
            let catalogue = open(data.path()).unwrap();
            let prefix = i64::from(catalogue.snapshot().producer_prefix);
            for _ in 0..PRODUCER_ID_BLOCK + 2 {
                let id = catalogue.producer_id().unwrap();
                assert_eq!(id >> 32, prefix);
                assert!(seen.insert(id));
            }
        }
    }

    #[test]
    fn a_newer_or_damaged_file_is_refused_by_name() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join(FILE);
        folder::atomic_replace(&DiskIo, &path, KIND, FORMAT + 1, b"{}").unwrap();
        let error = open(data.path()).err().unwrap();
        assert!(matches!(error, CatalogueError::File(LogError::Newer { .. })), "{error}");
        folder::atomic_replace(&DiskIo, &path, KIND, FORMAT, b"{").unwrap();
        let error = open(data.path()).err().unwrap();
        assert!(matches!(error, CatalogueError::Content { .. }), "{error}");
    }

    #[test]
    fn names_that_cannot_be_folders_are_refused() {
        for good in ["a", "orders.v1_x-Y", "..."] {
            check_name(good).unwrap();
        }
        for bad in ["", ".", "..", "a/b", "a b", "ä", &"x".repeat(250)] {
            assert_eq!(check_name(bad).unwrap_err().code.number(), 17, "{bad}");
        }
    }
}
