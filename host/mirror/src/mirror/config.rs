//! What a mirror is told: from where to where, which topics, and what to do where someone has to decide.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;

use super::target::{EXACT, SOURCE_TOPIC_ID};
use crate::cluster::ClusterConfig;

/// What is mirrored, from where to where, and how.
#[derive(Debug, Clone)]
pub struct MirrorConfig {
    /// The source.
    pub source: ClusterConfig,
    /// The destination, a Verbatim host.
    pub target: ClusterConfig,
    /// Topics whose whole name one of these matches are mirrored. Internal topics (`__consumer_offsets` and its like) only if
    /// a pattern is their very name.
    pub topics: Vec<Regex>,
    /// Except those that one of these matches.
    pub exclude: Vec<Regex>,
    /// Topics whose whole name one of these matches are shown, and not copied.
    pub paused: Vec<Regex>,
    /// True to end when everything is caught up or stopped.
    pub once: bool,
    /// What to do where the source has deleted data that was not copied.
    pub on_data_lost: OnDataLost,
    /// What to do where the source was truncated below what was copied.
    pub on_divergence: OnDivergence,
    /// Properties that topics are created with at the destination, beside those that make them copies.
    pub target_config: TargetConfig,
    /// Committed offsets of groups whose whole id one of these matches are carried over; none if empty.
    pub groups: Vec<Regex>,
    /// Time between two looks for new topics, partitions and settings.
    pub refresh: Duration,
    /// Bytes on their way, from the source's answer to the destination's acknowledgement, at most.
    pub buffered_bytes_max: usize,
    /// Connections to the destination; partitions are dealt out among them.
    pub connections: usize,
}

impl MirrorConfig {
    /// The defaults, for no topic yet: runs on, stops where someone has to decide, looks every 30 seconds, keeps 64 MiB on
    /// their way over two connections, and carries no groups.
    pub fn new(source: ClusterConfig, target: ClusterConfig) -> Self {
        Self {
            source,
            target,
            topics: Vec::new(),
            exclude: Vec::new(),
            paused: Vec::new(),
            once: false,
            on_data_lost: OnDataLost::default(),
            on_divergence: OnDivergence::default(),
            target_config: TargetConfig::default(),
            groups: Vec::new(),
            refresh: Duration::from_secs(30),
            buffered_bytes_max: 64 * 1024 * 1024,
            connections: 2,
        }
    }
}

/// Properties that the mirror gives the topics that it creates, such as `produce.module` and the keys of that module. A topic that is
/// there already is left as it is; it is not mirrored if it differs in `produce.at.offset.rewrite`, which is set at creation only.
/// As long as one of these is wanted, the source's setting of that name is not carried over.
///
/// ```
/// use verbatim_mirror::mirror::TargetConfig;
///
/// let mut config = TargetConfig::default();
/// config.set("produce.module", "redact")?;
/// config.set("produce.at.offset.rewrite", "allow")?;
/// assert!(config.set("produce.at.offset", "false").is_err());
/// # Ok::<(), verbatim_mirror::mirror::TargetConfigError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetConfig(BTreeMap<String, String>);

/// Why a property cannot be wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetConfigError {
    /// It has no name, or one with blanks.
    #[error("a property's name without blanks")]
    Name,
    /// The mirror itself sets it.
    #[error("another property than {0}, which the mirror itself sets")]
    Owned(&'static str),
    /// It was given before.
    #[error("given once for each property")]
    Twice,
}

impl TargetConfig {
    /// Adds a property. The destination judges it when a topic is created.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), TargetConfigError> {
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(TargetConfigError::Name);
        }
        if let Some(owned) = [EXACT, SOURCE_TOPIC_ID].into_iter().find(|owned| *owned == key) {
            return Err(TargetConfigError::Owned(owned));
        }
        match self.0.insert(key.to_owned(), value.to_owned()) {
            Some(_) => Err(TargetConfigError::Twice),
            None => Ok(()),
        }
    }

    /// All of them, by rising name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

/// What to do where the source's log start moved past the copy's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDataLost {
    /// Stop the partition.
    #[default]
    Stop,
    /// Record the hole, and go on at the source's start.
    Skip,
}

/// What to do where the source was truncated below the copy's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDivergence {
    /// Stop the partition.
    #[default]
    Stop,
    /// Truncate the copy as the source was.
    Follow,
}

/// Patterns of which one has to match a whole name.
#[derive(Debug)]
pub(super) struct Patterns {
    given: Vec<String>,
    whole: Vec<Regex>,
}

impl Patterns {
    pub(super) fn new(patterns: &[Regex]) -> Self {
        // A valid pattern stays valid in a group; if not, it has to match from end to end by itself.
        let whole = |pattern: &Regex| {
            Regex::new(&format!("^(?:{})$", pattern.as_str())).unwrap_or_else(|_| pattern.clone())
        };
        Self {
            given: patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect(),
            whole: patterns.iter().map(whole).collect(),
        }
    }

    /// True if one of them matches all of the name.
    pub(super) fn matches(&self, name: &str) -> bool {
        let whole = |found: regex::Match<'_>| found.start() == 0 && found.end() == name.len();
        self.whole.iter().any(|pattern| pattern.find(name).is_some_and(whole))
    }

    /// True if one of them is the name itself.
    pub(super) fn names(&self, name: &str) -> bool {
        self.given.iter().any(|pattern| pattern == name || *pattern == regex::escape(name))
    }
}

impl std::fmt::Display for Patterns {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.given.join(", "))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_a_whole_name_or_not_at_all() {
        let patterns = Patterns::new(&[Regex::new("a|ab").unwrap(), Regex::new("x.*").unwrap()]);
        let matched = ["a", "ab", "x", "xyz"];
        let not = ["", "b", "aba", "ba", "yx"];
        assert!(matched.iter().all(|name| patterns.matches(name)));
        assert!(!not.iter().any(|name| patterns.matches(name)));
    }

    #[test]
    fn only_a_literal_pattern_names_a_topic() {
        let patterns = Patterns::new(&["__.*", "__plain", r"__dotted\.name"].map(|p| Regex::new(p).unwrap()));
        assert!(patterns.names("__plain") && patterns.names("__dotted.name"));
        assert!(!patterns.names("__consumer_offsets"));
    }
}
