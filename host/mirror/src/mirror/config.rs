//! What a mirror is told: from where to where, which topics, and what to do where someone has to decide.

use std::time::Duration;

use regex::Regex;

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
            groups: Vec::new(),
            refresh: Duration::from_secs(30),
            buffered_bytes_max: 64 * 1024 * 1024,
            connections: 2,
        }
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
