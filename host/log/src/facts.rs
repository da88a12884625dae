//! What must survive a crash beside the batches: one checked file that is replaced as a whole, `verbatim.facts`.
//!
//! `leader-epoch-checkpoint` and `partition.metadata` are written beside it in Kafka's formats for Kafka's tools; the
//! epochs that count are those of the facts.

use std::path::Path;
use std::sync::Arc;

use verbatim_contract::{EpochEntry, EpochHistory};

use crate::checked::{atomic_replace, read_checked, read_whole, replace_file};
use crate::{Io, LogError};

const KIND: &str = "partition-facts";
/// That of facts which say nothing that version 1 does not know.
const VERSION: u32 = 1;
/// With the mode `exact-rewrite`: whoever knows version 1 alone would append batches without digests.
const REWRITE_VERSION: u32 = 2;
pub(crate) const FILE: &str = "verbatim.facts";
const EPOCHS_FILE: &str = "leader-epoch-checkpoint";
const METADATA_FILE: &str = "partition.metadata";

/// A partition's durable facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) exact: bool,
    /// Exact, and beside each batch stands the digest of the one that was received.
    pub(crate) keeps_received: bool,
    pub(crate) start: i64,
    /// The end is at least this, with or without batches.
    pub(crate) end: i64,
    pub(crate) shown_epoch: i32,
    pub(crate) epochs: Arc<EpochHistory>,
    /// A cut to here was begun and is to be finished.
    pub(crate) cut: Option<i64>,
    pub(crate) checkpoint: Option<Checkpoint>,
}

/// How a clean close left the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) end: i64,
    /// Base of the last segment.
    pub(crate) segment: i64,
    /// Its length in bytes.
    pub(crate) length: u64,
}

impl Facts {
    pub(crate) fn new(exact: bool, keeps_received: bool) -> Self {
        let epochs = Arc::new(EpochHistory::new());
        let keeps_received = exact && keeps_received;
        Self { exact, keeps_received, start: 0, end: 0, shown_epoch: -1, epochs, cut: None, checkpoint: None }
    }

    /// Changes the epochs, copying them only if they are shared.
    pub(crate) fn epochs_mut(&mut self) -> &mut EpochHistory {
        Arc::make_mut(&mut self.epochs)
    }

    /// Replaces the file, durably.
    pub(crate) fn write(&self, io: &dyn Io, folder: &Path) -> Result<(), LogError> {
        let version = if self.keeps_received { REWRITE_VERSION } else { VERSION };
        atomic_replace(io, &folder.join(FILE), KIND, version, self.to_text().as_bytes())
    }

    /// Reads the file; `None` if there is none.
    pub(crate) fn read(io: &dyn Io, folder: &Path) -> Result<Option<Self>, LogError> {
        let path = folder.join(FILE);
        let Some((_, content)) = read_checked(io, &path, KIND, REWRITE_VERSION)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&content);
        let facts = Self::parse(&text).map_err(|line| {
            LogError::corrupt(&path, 0, format!("expected {} in line=`{}`", line.expected, line.found))
        })?;
        Ok(Some(facts))
    }

    fn to_text(&self) -> String {
        let mode = match (self.exact, self.keeps_received) {
            (true, true) => "exact-rewrite",
            (true, false) => "exact",
            (false, _) => "normal",
        };
        let cut = self.cut.map_or_else(|| "none".to_owned(), |cut| cut.to_string());
        let checkpoint = self.checkpoint.map_or_else(
            || "none".to_owned(),
            |checkpoint| format!("{} {} {}", checkpoint.end, checkpoint.segment, checkpoint.length),
        );
        let mut text = format!(
            "mode {mode}\nstart {}\nend {}\nshown-epoch {}\ncut {cut}\ncheckpoint {checkpoint}\nepochs {}\n",
            self.start,
            self.end,
            self.shown_epoch,
            self.epochs.entries().len(),
        );
        for entry in self.epochs.entries() {
            text.push_str(&format!("{} {}\n", entry.epoch, entry.start));
        }
        text
    }

    fn parse(text: &str) -> Result<Self, Line<'_>> {
        let mut lines = Lines(text.lines());
        let (exact, keeps_received) = lines.value("mode", |value| match value {
            "exact-rewrite" => Some((true, true)),
            "exact" => Some((true, false)),
            "normal" => Some((false, false)),
            _ => None,
        })?;
        let start = lines.value("start", |value| value.parse().ok())?;
        let end = lines.value("end", |value| value.parse().ok())?;
        let shown_epoch = lines.value("shown-epoch", |value| value.parse().ok())?;
        let cut = lines.value("cut", |value| optional(value, |value| value.parse().ok()))?;
        let checkpoint = lines.value("checkpoint", |value| optional(value, parse_checkpoint))?;
        let count: usize = lines.value("epochs", |value| value.parse().ok())?;
        let mut entries = Vec::new();
        for line in lines.0 {
            entries.push(parse_entry(line).ok_or(Line { expected: "an epoch and its start", found: line })?);
        }
        let history = EpochHistory::from_entries(entries).filter(|history| history.entries().len() == count);
        let epochs =
            history.ok_or(Line { expected: "rising epoch entries, as many as stated,", found: "epochs" })?;
        Ok(Self { exact, keeps_received, start, end, shown_epoch, epochs: Arc::new(epochs), cut, checkpoint })
    }
}

/// Kafka's `leader-epoch-checkpoint`, for Kafka's tools.
pub(crate) fn write_epoch_checkpoint(
    io: &dyn Io,
    folder: &Path,
    epochs: &EpochHistory,
) -> Result<(), LogError> {
    let mut text = format!("0\n{}\n", epochs.entries().len());
    for entry in epochs.entries() {
        text.push_str(&format!("{} {}\n", entry.epoch, entry.start));
    }
    replace_file(io, &folder.join(EPOCHS_FILE), text.as_bytes(), false)
}

/// Kafka's `partition.metadata`; the folder of another topic is refused.
pub(crate) fn keep_metadata(io: &dyn Io, folder: &Path, topic_id: (u64, u64)) -> Result<(), LogError> {
    let path = folder.join(METADATA_FILE);
    let expected = kafka_id(topic_id);
    let stored = read_whole(io, &path)?.unwrap_or_default();
    let stored = String::from_utf8_lossy(&stored);
    let found = stored.lines().find_map(|line| line.strip_prefix("topic_id: "));
    match found {
        Some(found) if found == expected => Ok(()),
        Some(found) => {
            let detail =
                format!("folder belongs to another topic, expected topic_id {expected}, topic_id=`{found}`");
            Err(LogError::Folder { folder: folder.to_owned(), detail })
        }
        None => {
            let text = format!("version: 0\ntopic_id: {expected}\n");
            replace_file(io, &path, text.as_bytes(), true)
        }
    }
}

/// A topic id as Kafka writes it: 22 characters of URL-safe base64.
fn kafka_id((high, low): (u64, u64)) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let id = (u128::from(high) << 64) | u128::from(low);
    // 128 bits are 21 groups of six from the left and two bits more.
    let group = |index: u32| {
        let bits = if index < 21 { id >> (128 - 6 * (index + 1)) } else { id << 4 };
        let [low, ..] = bits.to_le_bytes();
        char::from(ALPHABET.get(usize::from(low & 63)).copied().unwrap_or(b'A'))
    };
    (0..22).map(group).collect()
}

/// A line that is not as expected.
struct Line<'a> {
    expected: &'static str,
    found: &'a str,
}

struct Lines<'a>(std::str::Lines<'a>);

impl<'a> Lines<'a> {
    fn value<T>(&mut self, name: &'static str, parse: impl Fn(&'a str) -> Option<T>) -> Result<T, Line<'a>> {
        let found = self.0.next().unwrap_or_default();
        let value = found.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')).and_then(parse);
        value.ok_or(Line { expected: name, found })
    }
}

fn optional<'a, T>(value: &'a str, parse: impl Fn(&'a str) -> Option<T>) -> Option<Option<T>> {
    if value == "none" { Some(None) } else { parse(value).map(Some) }
}

fn parse_checkpoint(value: &str) -> Option<Checkpoint> {
    let mut words = value.split(' ');
    let (end, segment, length) = (words.next()?, words.next()?, words.next()?);
    Some(Checkpoint { end: end.parse().ok()?, segment: segment.parse().ok()?, length: length.parse().ok()? })
}

fn parse_entry(line: &str) -> Option<EpochEntry> {
    let (epoch, start) = line.split_once(' ')?;
    Some(EpochEntry { epoch: epoch.parse().ok()?, start: start.parse().ok()? })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn facts_come_back_from_their_text() {
        assert!(!Facts::new(false, true).keeps_received);
        let mut facts = Facts::new(true, false);
        facts.epochs_mut().assign(3, 10);
        facts.epochs_mut().assign(7, 5_000_000_000);
        facts.start = 12;
        facts.end = 5_000_000_100;
        facts.shown_epoch = 9;
        assert!(Facts::parse(&facts.to_text()).is_ok_and(|parsed| parsed == facts));
        facts.keeps_received = true;
        facts.cut = Some(40);
        facts.checkpoint = Some(Checkpoint { end: 40, segment: 0, length: 4567 });
        assert!(Facts::parse(&facts.to_text()).is_ok_and(|parsed| parsed == facts));
        for damage in ["mode exact-rewrite", "end 1", "epochs 2", "3 10"] {
            let text = facts.to_text().replace(damage, "nonsense");
            assert!(Facts::parse(&text).is_err() == facts.to_text().contains(damage), "{damage}");
        }
    }

    #[test]
    fn topic_ids_are_written_as_kafka_does() {
        assert_eq!(kafka_id((0, 0)), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(kafka_id((0, 1)), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(kafka_id((u64::MAX, u64::MAX)), "_____________________w");
        assert_eq!(kafka_id((0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210)), "ASNFZ4mrze_-3LqYdlQyEA");
    }

    #[test]
    fn lines_name_what_was_expected() {
        let line = Facts::parse("mode exact\nstart x\n").err().unwrap();
        assert_eq!((line.expected, line.found), ("start", "start x"));
    }
}
