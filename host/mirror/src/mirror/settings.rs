//! Which settings of a source topic its copy gets.

use std::collections::{BTreeMap, BTreeSet};

use super::admin::Change;
use super::config::TargetConfig;
use crate::cluster::TopicConfig;

/// Settings of one side's topic, as DescribeConfigs tells them.
pub(super) type Settings = BTreeMap<String, TopicConfig>;

/// Settings that are the destination's own: who holds how many replicas there is no matter of the source's, and what
/// judges exact writes there is set there.
const OWN: &[&str] = &[
    "min.insync.replicas",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
];
const OWN_PREFIX: &str = "produce.";

/// What a copy gets of its source's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Carried {
    /// What the source's topic itself sets. `None` stands for a value that it keeps secret.
    set: BTreeMap<String, Option<String>>,
    /// What it does not: a copy that sets one of these loses it. A setting that the source does not know at all, such as one of a
    /// module of the destination, is none of these.
    unset: BTreeSet<String>,
}

impl Carried {
    /// Settings whose values the source keeps secret.
    pub(super) fn secret(&self) -> impl Iterator<Item = &str> {
        self.set.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str())
    }
}

/// What the copy shall have of its source; not what was wanted of it otherwise when it was created.
pub(super) fn carried(source: &Settings, wanted: &TargetConfig) -> Carried {
    let mut carried = Carried::default();
    for (name, config) in source.iter().filter(|(name, _)| !is_own(name) && wanted.get(name).is_none()) {
        if config.is_set {
            carried.set.insert(name.clone(), config.value.clone());
        } else {
            carried.unset.insert(name.clone());
        }
    }
    carried
}

/// What has to change so that the copy, which sets these itself, is as wanted.
pub(super) fn changes(carried: &Carried, copy: &Settings) -> Vec<Change> {
    let differs = |name: &String, value: &String| {
        copy.get(name).is_none_or(|config| !config.is_set || config.value.as_ref() != Some(value))
    };
    let known = carried.set.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let set = known.filter(|(name, value)| differs(name, value));
    let set = set.map(|(name, value)| (name.clone(), Some(value.clone())));
    let gone = copy.iter().filter(|(name, config)| config.is_set && carried.unset.contains(*name));
    set.chain(gone.map(|(name, _)| (name.clone(), None))).collect()
}

/// True if the topic is exact: a copy of another one, though it may be a source to this mirror.
pub(super) fn is_copy(topic: &Settings) -> bool {
    topic.get(super::target::EXACT).is_some_and(|config| config.value.as_deref() == Some("true"))
}

fn is_own(name: &str) -> bool {
    OWN.contains(&name) || name.starts_with(OWN_PREFIX)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn settings(rows: &[(&str, Option<&str>, bool)]) -> Settings {
        let row = |(name, value, is_set): &(&str, Option<&str>, bool)| {
            let config = TopicConfig { value: value.map(str::to_owned), is_set: *is_set };
            ((*name).to_owned(), config)
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn the_copy_gets_what_the_source_sets_and_loses_what_it_does_not() {
        let source = settings(&[
            ("retention.ms", Some("1"), true),
            ("segment.ms", Some("2"), true),
            ("cleanup.policy", Some("delete"), false),
            ("max.message.bytes", Some("4"), false),
            ("flush.ms", Some("3"), false),
            ("index.interval.bytes", Some("6"), true),
            ("min.insync.replicas", Some("2"), true),
            ("produce.at.offset", Some("true"), true),
            ("secret", None, true),
        ]);
        let mut wanted = TargetConfig::default();
        wanted.set("flush.ms", "9").unwrap();
        wanted.set("index.interval.bytes", "9").unwrap();
        let carried = carried(&source, &wanted);
        assert_eq!(carried.set.keys().collect::<Vec<_>>(), ["retention.ms", "secret", "segment.ms"]);
        assert_eq!(carried.secret().collect::<Vec<_>>(), ["secret"]);
        let copy = settings(&[
            ("retention.ms", Some("9"), true),
            ("segment.ms", Some("2"), true),
            ("max.message.bytes", Some("5"), true),
            ("flush.ms", Some("9"), true),
            ("index.interval.bytes", Some("9"), true),
            ("min.insync.replicas", Some("3"), true),
            ("produce.at.offset", Some("true"), true),
            // The source has no such setting.
            ("redact.mask.json", Some("$.card"), true),
        ]);
        let expected =
            [("retention.ms".to_owned(), Some("1".to_owned())), ("max.message.bytes".to_owned(), None)];
        assert_eq!(changes(&carried, &copy), expected);
        let same = settings(&[("retention.ms", Some("1"), true), ("segment.ms", Some("2"), true)]);
        assert!(changes(&carried, &same).is_empty());
    }
}
