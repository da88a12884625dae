//! Which settings of a source topic its copy gets.

use std::collections::{BTreeMap, BTreeSet};

use super::admin::Change;
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

/// What the copy shall have of the source's topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    /// What that topic sets itself. `None` stands for a value that the source keeps secret.
    pub(super) set: BTreeMap<String, Option<String>>,
    /// What it could set and does not. What the source does not know, such as rules of a module that judges the copy, is the
    /// copy's own.
    unset: BTreeSet<String>,
}

/// What the copy of a topic with these settings shall have.
pub(super) fn carried(source: &Settings) -> Carried {
    let (set, unset): (Vec<_>, Vec<_>) =
        source.iter().filter(|(name, _)| !is_own(name)).partition(|(_, config)| config.is_set);
    Carried {
        set: set.into_iter().map(|(name, config)| (name.clone(), config.value.clone())).collect(),
        unset: unset.into_iter().map(|(name, _)| name.clone()).collect(),
    }
}

/// What has to change so that the copy, which sets these itself, is as wanted.
pub(super) fn changes(wanted: &Carried, copy: &Settings) -> Vec<Change> {
    let differs = |name: &String, value: &String| {
        copy.get(name).is_none_or(|config| !config.is_set || config.value.as_ref() != Some(value))
    };
    let known = wanted.set.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let set = known.filter(|(name, value)| differs(name, value));
    let set = set.map(|(name, value)| (name.clone(), Some(value.clone())));
    let gone = copy
        .iter()
        .filter(|(name, config)| config.is_set && wanted.unset.contains(*name))
        .map(|(name, _)| (name.clone(), None));
    set.chain(gone).collect()
}

/// True if the topic is exact: a copy of another one, though it may be a source to this mirror.
pub(super) fn is_copy(topic: &Settings) -> bool {
    topic.get(super::target::EXACT).is_some_and(|config| config.value.as_deref() == Some("true"))
}

fn is_own(name: &str) -> bool {
    OWN.contains(&name) || name.starts_with(OWN_PREFIX)
}

#[cfg(test)]
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
            ("min.insync.replicas", Some("2"), true),
            ("produce.at.offset", Some("true"), true),
            ("max.message.bytes", Some("1048588"), false),
            ("secret", None, true),
        ]);
        let wanted = carried(&source);
        assert_eq!(wanted.set.keys().collect::<Vec<_>>(), ["retention.ms", "secret", "segment.ms"]);
        let copy = settings(&[
            ("retention.ms", Some("9"), true),
            ("segment.ms", Some("2"), true),
            ("max.message.bytes", Some("5"), true),
            ("min.insync.replicas", Some("3"), true),
            ("redact.mask.json", Some("$.card"), true),
            ("produce.at.offset", Some("true"), true),
        ]);
        let expected =
            [("retention.ms".to_owned(), Some("1".to_owned())), ("max.message.bytes".to_owned(), None)];
        assert_eq!(changes(&wanted, &copy), expected);
        let same = settings(&[("retention.ms", Some("1"), true), ("segment.ms", Some("2"), true)]);
        assert!(changes(&wanted, &same).is_empty());
    }
}
