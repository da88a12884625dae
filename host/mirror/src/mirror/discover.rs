//! Which topics of the source are mirrored.

use super::config::{MirrorConfig, Patterns};
use crate::cluster::TopicInfo;

/// What the patterns of a configuration ask for.
#[derive(Debug)]
pub(super) struct Selection {
    topics: Patterns,
    exclude: Patterns,
    paused: Patterns,
}

/// What is done with a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// It is copied.
    Copied,
    /// It is shown, and not copied.
    Paused,
    /// It is nobody's business.
    Ignored,
}

impl Selection {
    pub(super) fn new(config: &MirrorConfig) -> Self {
        Self {
            topics: Patterns::new(&config.topics),
            exclude: Patterns::new(&config.exclude),
            paused: Patterns::new(&config.paused),
        }
    }

    /// What is done with this topic of the source.
    pub(super) fn treatment(&self, topic: &TopicInfo) -> Treatment {
        let name = topic.name.as_str();
        let wanted = if is_internal(topic) { self.topics.names(name) } else { self.topics.matches(name) };
        if !wanted || self.exclude.matches(name) {
            Treatment::Ignored
        } else if self.paused.matches(name) {
            Treatment::Paused
        } else {
            Treatment::Copied
        }
    }

    /// The patterns of what is wanted, in words.
    pub(super) fn patterns(&self) -> String {
        self.topics.to_string()
    }
}

/// What brokers keep for themselves; old ones do not say so of each.
fn is_internal(topic: &TopicInfo) -> bool {
    topic.internal || topic.name.starts_with("__")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::cluster::ClusterConfig;
    use regex::Regex;

    #[test]
    fn internal_topics_are_mirrored_only_if_they_are_named() {
        let patterns = |all: &[&str]| all.iter().map(|one| Regex::new(one).unwrap()).collect::<Vec<_>>();
        let cluster = ClusterConfig::new(["127.0.0.1:1"]);
        let config = MirrorConfig {
            topics: patterns(&[".*", "__named"]),
            exclude: patterns(&["not.*"]),
            paused: patterns(&["later"]),
            ..MirrorConfig::new(cluster.clone(), cluster)
        };
        let selection = Selection::new(&config);
        let treatment = |name: &str, internal| {
            let (name, id) = (name.to_owned(), uuid::Uuid::nil());
            selection.treatment(&TopicInfo { name, id, internal, partitions: Vec::new() })
        };
        assert_eq!(treatment("orders", false), Treatment::Copied);
        assert_eq!(treatment("nothing", false), Treatment::Ignored);
        assert_eq!(treatment("later", false), Treatment::Paused);
        assert_eq!(treatment("__consumer_offsets", true), Treatment::Ignored);
        assert_eq!(treatment("hidden", true), Treatment::Ignored);
        assert_eq!(treatment("__named", true), Treatment::Copied);
    }
}
