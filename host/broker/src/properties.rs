//! The table of topic properties: name, type, default, what a value may be, what it does here.
//!
//! Names, types, defaults and broker-side twins are Apache Kafka's; the `produce.*` ones are this project's own. Everything
//! that reads, checks, shows or documents a property goes through [`PROPERTIES`]. What is not in it belongs to a module
//! (`module_keys.rs`).

use verbatim_wire::error::ErrorCode;

use crate::errors::ApiError;

/// The name of the property that makes a topic exact.
pub const EXACT: &str = "produce.at.offset";
/// The name of the rewind policy of an exact topic.
pub const REWIND: &str = "produce.at.offset.rewind";
/// The name of the record validation of an exact topic.
pub const VALIDATION: &str = "produce.at.offset.validation";
/// The name of the permission to rewrite records.
pub const REWRITE: &str = "produce.at.offset.rewrite";
/// The name of the recorded id of the source topic.
pub const SOURCE_TOPIC_ID: &str = "produce.at.offset.source.topic.id";
/// The name of the property that chooses the judging module.
pub const MODULE: &str = "produce.module";
/// The module that judges where `produce.module` says nothing.
pub const DEFAULT_MODULE: &str = "exact-mirroring";

/// What a value is, as DescribeConfigs tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// These words in any number, separated by commas.
    Words(&'static [&'static str]),
    /// Words of any sort, separated by commas.
    List,
    /// A 32-bit number within these bounds.
    Int(i32, i32),
    /// A 64-bit number within these bounds.
    Long(i64, i64),
    /// A number with a fraction within these bounds.
    Double(f64, f64),
    /// A topic id: 22 characters of URL-safe base64, as Kafka writes it.
    TopicId,
}

/// When a value may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At any time.
    Always,
    /// At any time; on an exact topic only by the mirror itself, since it would shape the data.
    ShapesData,
    /// When the topic is created and never again.
    AtCreation,
    /// Set when the topic is created; afterwards it can only be removed, which promotes the topic.
    RemoveOnly,
}

/// One property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Property {
    /// Its name.
    pub name: &'static str,
    /// What a value is.
    pub kind: Kind,
    /// The value where none is set.
    pub default: &'static str,
    /// The broker-wide twin that Kafka's tools show as a synonym; empty if there is none.
    pub twin: &'static str,
    /// When it may change.
    pub change: Change,
    /// Whether this version acts on it; otherwise the value is stored and shown.
    pub acted_on: bool,
    /// What it does, in a sentence.
    pub doc: &'static str,
}

impl Property {
    /// The property of that name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        PROPERTIES.iter().find(|property| property.name == name)
    }

    /// Judges a value.
    ///
    /// # Errors
    /// INVALID_CONFIG naming key, value and expectation.
    pub(crate) fn check(&self, value: &str) -> Result<(), ApiError> {
        if self.accepts(value.trim()) {
            return Ok(());
        }
        let text = format!("topic property {} must be {}, value=`{value}`", self.name, self.expectation());
        Err(ApiError::new(ErrorCode::InvalidConfig, text))
    }

    /// What a value must be, in words.
    #[must_use]
    pub fn expectation(&self) -> String {
        match self.kind {
            Kind::Boolean => "true or false".to_owned(),
            Kind::Text => "a text that is not empty".to_owned(),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Words(words) => format!("a list of {}", words.join(", ")),
            Kind::List => "a list of words separated by commas".to_owned(),
            Kind::Int(least, i32::MAX) => format!("a 32-bit number from {least} on"),
            Kind::Int(least, most) => format!("a number from {least} to {most}"),
            Kind::Long(least, i64::MAX) => format!("a number from {least} on"),
            Kind::Long(least, most) => format!("a number from {least} to {most}"),
            Kind::Double(least, most) => format!("a number from {least} to {most}"),
            Kind::TopicId => "a topic id of 22 characters of URL-safe base64".to_owned(),
        }
    }

    /// The type's number in DescribeConfigs (v3 on).
    #[must_use]
    pub const fn type_number(&self) -> i8 {
        match self.kind {
            Kind::Boolean => 1,
            Kind::Text | Kind::Word(_) | Kind::TopicId => 2,
            Kind::Int(..) => 3,
            Kind::Long(..) => 5,
            Kind::Double(..) => 6,
            Kind::Words(_) | Kind::List => 7,
        }
    }

    /// The type's name.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Boolean => "boolean",
            Kind::Text | Kind::Word(_) | Kind::TopicId => "string",
            Kind::Int(..) => "int",
            Kind::Long(..) => "long",
            Kind::Double(..) => "double",
            Kind::Words(_) | Kind::List => "list",
        }
    }

    fn accepts(&self, value: &str) -> bool {
        match self.kind {
            Kind::Boolean => matches!(value, "true" | "false"),
            Kind::Text => !value.is_empty(),
            Kind::Word(words) => words.contains(&value),
            Kind::Words(words) => items(value).all(|item| words.contains(&item)),
            Kind::List => true,
            Kind::Int(least, most) => value.parse().is_ok_and(|number: i32| (least..=most).contains(&number)),
            Kind::Long(least, most) => {
                value.parse().is_ok_and(|number: i64| (least..=most).contains(&number))
            }
            Kind::Double(least, most) => {
                value.parse().is_ok_and(|number: f64| (least..=most).contains(&number))
            }
            Kind::TopicId => crate::topic_id::parse(value).is_some(),
        }
    }
}

/// The items of a list value.
pub fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

const fn property(name: &'static str, kind: Kind, default: &'static str, twin: &'static str) -> Property {
    Property { name, kind, default, twin, change: Change::Always, acted_on: false, doc: "" }
}

impl Property {
    const fn shapes_data(self) -> Self {
        Self { change: Change::ShapesData, ..self }
    }

    const fn change(self, change: Change) -> Self {
        Self { change, ..self }
    }

    const fn acted_on(self) -> Self {
        Self { acted_on: true, ..self }
    }

    const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }
}

const FOREVER: &str = "9223372036854775807";
const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];

/// Every topic property, by name.
pub const PROPERTIES: &[Property] = &[
    property("cleanup.policy", Kind::Words(&["compact", "delete"]), "delete", "log.cleanup.policy")
        .shapes_data()
        .acted_on()
        .doc("delete: old segments go; compact: a null key is an error, compaction itself is not done yet."),
    property("compression.gzip.level", Kind::Int(-1, 9), "-1", "compression.gzip.level")
        .shapes_data()
        .doc("Level of gzip where the broker compresses."),
    property("compression.lz4.level", Kind::Int(1, 17), "9", "compression.lz4.level")
        .shapes_data()
        .doc("Level of lz4 where the broker compresses."),
    property("compression.type", Kind::Word(CODECS), "producer", "compression.type")
        .shapes_data()
        .acted_on()
        .doc("Codec that batches are stored in; a normal topic takes only producer, which keeps what came."),
    property("compression.zstd.level", Kind::Int(-131_072, 22), "3", "compression.zstd.level")
        .shapes_data()
        .doc("Level of zstd where the broker compresses."),
    property("delete.retention.ms", Kind::Long(0, i64::MAX), "86400000", "log.cleaner.delete.retention.ms")
        .shapes_data()
        .doc("How long tombstones of a compacted topic are kept."),
    property("file.delete.delay.ms", Kind::Long(0, i64::MAX), "60000", "log.segment.delete.delay.ms")
        .doc("How long a removed file stays on disk."),
    property("flush.messages", Kind::Long(1, i64::MAX), FOREVER, "log.flush.interval.messages")
        .doc("Records between two flushes; here the host's own flush policy decides."),
    property("flush.ms", Kind::Long(0, i64::MAX), FOREVER, "log.flush.interval.ms")
        .doc("Time between two flushes; here the host's own flush policy decides."),
    property("follower.replication.throttled.replicas", Kind::List, "", "")
        .doc("Replicas throttled as followers."),
    property("index.interval.bytes", Kind::Int(0, i32::MAX), "4096", "log.index.interval.bytes")
        .acted_on()
        .doc("Bytes of log between two index entries."),
    property("leader.replication.throttled.replicas", Kind::List, "", "")
        .doc("Replicas throttled as leaders."),
    property("max.compaction.lag.ms", Kind::Long(1, i64::MAX), FOREVER, "log.cleaner.max.compaction.lag.ms")
        .shapes_data()
        .doc("Longest time that a record stays uncompacted."),
    property("max.message.bytes", Kind::Int(0, i32::MAX), "1048588", "message.max.bytes")
        .shapes_data()
        .acted_on()
        .doc("Largest batch that is accepted; not looked at on an exact topic."),
    property(
        "message.timestamp.after.max.ms",
        Kind::Long(0, i64::MAX),
        "3600000",
        "log.message.timestamp.after.max.ms",
    )
    .shapes_data()
    .acted_on()
    .doc("How far a timestamp may lie ahead of the broker's clock; not looked at on an exact topic."),
    property(
        "message.timestamp.before.max.ms",
        Kind::Long(0, i64::MAX),
        FOREVER,
        "log.message.timestamp.before.max.ms",
    )
    .shapes_data()
    .acted_on()
    .doc("How far a timestamp may lie behind the broker's clock; not looked at on an exact topic."),
    property(
        "message.timestamp.type",
        Kind::Word(&["CreateTime", "LogAppendTime"]),
        "CreateTime",
        "log.message.timestamp.type",
    )
    .shapes_data()
    .acted_on()
    .doc("Whose clock stamps records; not looked at on an exact topic."),
    property("min.cleanable.dirty.ratio", Kind::Double(0.0, 1.0), "0.5", "log.cleaner.min.cleanable.ratio")
        .shapes_data()
        .doc("Share of uncompacted log that makes compaction worthwhile."),
    property("min.compaction.lag.ms", Kind::Long(0, i64::MAX), "0", "log.cleaner.min.compaction.lag.ms")
        .shapes_data()
        .doc("Shortest time that a record stays uncompacted."),
    property("min.insync.replicas", Kind::Int(1, i32::MAX), "1", "min.insync.replicas")
        .acted_on()
        .doc("Replicas that must be in sync and online for acks = all."),
    property("preallocate", Kind::Boolean, "false", "log.preallocate")
        .doc("Whether segment files are allocated at once."),
    property(MODULE, Kind::Text, DEFAULT_MODULE, "")
        .acted_on()
        .doc("Name of the module that judges what is written."),
    property(EXACT, Kind::Boolean, "false", "").change(Change::RemoveOnly).acted_on().doc(
        "The writer chooses offsets and leader epochs; set at creation, removing it promotes the topic.",
    ),
    property(REWIND, Kind::Word(&["refuse", "truncate"]), "refuse", "")
        .acted_on()
        .doc("Whether a truncation of the source is refused or followed."),
    property(REWRITE, Kind::Word(&["refuse", "allow"]), "refuse", "")
        .change(Change::AtCreation)
        .acted_on()
        .doc("Whether the module may hand back other records, of a normal topic too; set at creation only."),
    property(SOURCE_TOPIC_ID, Kind::TopicId, "AAAAAAAAAAAAAAAAAAAAAA", "")
        .change(Change::AtCreation)
        .acted_on()
        .doc("Id of the mirrored topic; writes from a topic with another id are refused. All A: unknown."),
    property(VALIDATION, Kind::Word(&["header", "records"]), "header", "")
        .acted_on()
        .doc("Whether the records inside exact batches are validated too."),
    property("retention.bytes", Kind::Long(-1, i64::MAX), "-1", "log.retention.bytes")
        .shapes_data()
        .acted_on()
        .doc("Size that a partition keeps at least when old segments go; -1 is no bound; not looked at on an exact topic."),
    property("retention.ms", Kind::Long(-1, i64::MAX), "604800000", "log.retention.ms")
        .shapes_data()
        .acted_on()
        .doc("Age of a segment's largest timestamp at which it goes; -1 is for ever; not looked at on an exact topic."),
    property("segment.bytes", Kind::Int(14, i32::MAX), "1073741824", "log.segment.bytes")
        .acted_on()
        .doc("Size at which a segment is closed; on a normal topic also the largest batch."),
    property("segment.index.bytes", Kind::Int(4, i32::MAX), "10485760", "log.index.size.max.bytes")
        .acted_on()
        .doc("Largest size of an index file; a full one closes the segment."),
    property("segment.jitter.ms", Kind::Long(0, i64::MAX), "0", "log.roll.jitter.ms")
        .acted_on()
        .doc("Up to this much segment.ms is shorter, by another part for each segment."),
    property("segment.ms", Kind::Long(1, i64::MAX), "604800000", "log.roll.ms")
        .acted_on()
        .doc("Time from a segment's first batch to the one that closes it, by their timestamps."),
    property("unclean.leader.election.enable", Kind::Boolean, "false", "unclean.leader.election.enable")
        .doc("Whether a replica that is not in sync may lead."),
];
