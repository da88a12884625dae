//! A topic's properties as typed values.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::errors::ApiError;
use crate::module_keys;
use crate::properties::{self, Property};

/// A topic's own properties by name, as given, and its keys of modules; what is not here has the default of the table.
pub(crate) type Values = BTreeMap<String, String>;

/// The properties that the host acts on, read once when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `produce.at.offset`.
    pub(crate) exact: bool,
    /// `produce.at.offset.rewind` = `truncate`.
    pub(crate) rewind_truncate: bool,
    /// `produce.at.offset.validation` = `records`.
    pub(crate) validate_exact_records: bool,
    /// `produce.at.offset.rewrite` = `allow`.
    pub(crate) may_rewrite: bool,
    /// `produce.at.offset.source.topic.id`; nil = unknown.
    pub(crate) source_topic_id: Uuid,
    /// `produce.module`.
    pub(crate) module: String,
    /// `cleanup.policy` contains `delete`.
    pub(crate) deletes: bool,
    /// `cleanup.policy` contains `compact`.
    pub(crate) compacted: bool,
    /// `message.timestamp.type` = `LogAppendTime`.
    pub(crate) log_append_time: bool,
    /// `max.message.bytes`.
    pub(crate) max_message_bytes: u32,
    /// `segment.bytes`.
    pub(crate) segment_bytes: u32,
    /// `segment.ms`.
    pub(crate) segment_ms: i64,
    /// `segment.jitter.ms`.
    pub(crate) segment_jitter_ms: i64,
    /// `segment.index.bytes`.
    pub(crate) segment_index_bytes: u32,
    /// `retention.bytes`; -1 = no bound.
    pub(crate) retention_bytes: i64,
    /// `retention.ms`; -1 = no bound.
    pub(crate) retention_ms: i64,
    /// `index.interval.bytes`.
    pub(crate) index_interval_bytes: u32,
    /// `message.timestamp.before.max.ms`.
    pub(crate) before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub(crate) after_max_ms: i64,
    /// `min.insync.replicas`.
    pub(crate) min_insync: u32,
}

impl Settings {
    /// Reads and judges all values of a topic together.
    ///
    /// # Errors
    /// INVALID_CONFIG naming key, value and expectation.
    pub(crate) fn read(values: &Values) -> Result<Self, ApiError> {
        for (name, value) in values {
            if let Some(property) = Property::find(name) {
                property.check(value)?;
            }
        }
        module_keys::check_form(values)?;
        let settings = Self {
            exact: text(values, properties::EXACT) == "true",
            rewind_truncate: text(values, properties::REWIND) == "truncate",
            validate_exact_records: text(values, properties::VALIDATION) == "records",
            may_rewrite: text(values, properties::REWRITE) == "allow",
            source_topic_id: crate::topic_id::parse(text(values, properties::SOURCE_TOPIC_ID))
                .unwrap_or_default(),
            module: text(values, properties::MODULE).to_owned(),
            deletes: properties::items(text(values, "cleanup.policy")).any(|word| word == "delete"),
            compacted: properties::items(text(values, "cleanup.policy")).any(|word| word == "compact"),
            log_append_time: text(values, "message.timestamp.type") == "LogAppendTime",
            max_message_bytes: number(values, "max.message.bytes")?,
            segment_bytes: number(values, "segment.bytes")?,
            segment_ms: number(values, "segment.ms")?,
            segment_jitter_ms: number(values, "segment.jitter.ms")?,
            segment_index_bytes: number(values, "segment.index.bytes")?,
            retention_bytes: number(values, "retention.bytes")?,
            retention_ms: number(values, "retention.ms")?,
            index_interval_bytes: number(values, "index.interval.bytes")?,
            before_max_ms: number(values, "message.timestamp.before.max.ms")?,
            after_max_ms: number(values, "message.timestamp.after.max.ms")?,
            min_insync: number(values, "min.insync.replicas")?,
        };
        settings.check_together(values)?;
        Ok(settings)
    }

    fn check_together(&self, values: &Values) -> Result<(), ApiError> {
        let codec = text(values, "compression.type");
        if !self.exact && codec != "producer" {
            return Err(ApiError::config(format!(
                "topic property compression.type must be producer on a normal topic, \
                 since batches are kept as they came, value=`{codec}`"
            )));
        }
        Ok(())
    }
}

/// The value of a property: the topic's own, else the table's default.
#[must_use]
pub(crate) fn text<'a>(values: &'a Values, name: &str) -> &'a str {
    let default = || Property::find(name).map_or("", |property| property.default);
    values.get(name).map_or_else(default, |value| value.trim())
}

fn number<T: std::str::FromStr>(values: &Values, name: &str) -> Result<T, ApiError> {
    let value = text(values, name);
    value
        .parse()
        .map_err(|_| ApiError::config(format!("topic property {name} must be a number, value=`{value}`")))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_default_is_a_value_that_is_accepted() {
        for property in properties::PROPERTIES.iter().filter(|property| !property.default.is_empty()) {
            property.check(property.default).unwrap();
        }
        let settings = Settings::read(&Values::new()).unwrap();
        assert!(!settings.exact && !settings.compacted && !settings.log_append_time);
        assert_eq!((settings.max_message_bytes, settings.min_insync), (1_048_588, 1));
        assert_eq!(settings.module, properties::DEFAULT_MODULE);
    }

    #[test]
    fn a_bad_value_names_key_value_and_expectation() {
        let cases = [
            ("retention.ms", "soon", "from -1"),
            ("cleanup.policy", "forget", "compact, delete"),
            ("min.insync.replicas", "0", "from 1"),
            ("produce.at.offset", "yes", "true or false"),
            ("produce.at.offset.source.topic.id", "abc", "22 characters"),
            ("min.cleanable.dirty.ratio", "1.5", "0 to 1"),
        ];
        for (name, value, expectation) in cases {
            let error = Settings::read(&values(&[(name, value)])).unwrap_err();
            assert_eq!(error.code.number(), 40);
            for part in [name, value, expectation] {
                assert!(error.text.contains(part), "{} lacks {part}", error.text);
            }
        }
        for name in ["nosuch", ".such", "no."] {
            let error = Settings::read(&values(&[(name, "1")])).unwrap_err();
            assert_eq!(error.code.number(), 40);
            assert!(error.text.contains(&format!("`{name}`")), "{}", error.text);
        }
    }

    #[test]
    fn recompression_is_refused_on_normal_topics_only() {
        let error = Settings::read(&values(&[("compression.type", "zstd")])).unwrap_err();
        assert!(error.text.contains("compression.type"), "{}", error.text);
        let exact = values(&[("compression.type", "zstd"), (properties::EXACT, "true")]);
        assert!(Settings::read(&exact).unwrap().exact);
    }

    #[test]
    fn policies_are_lists() {
        assert!(Settings::read(&values(&[("cleanup.policy", "compact, delete")])).unwrap().compacted);
        let read = |policy| Settings::read(&values(&[("cleanup.policy", policy)])).unwrap();
        assert_eq!((read("delete").compacted, read("delete").deletes), (false, true));
        assert_eq!((read("compact").compacted, read("compact").deletes), (true, false));
        assert!(read("compact, delete").deletes);
    }
}
