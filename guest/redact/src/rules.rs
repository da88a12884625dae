//! What is to be redacted, from the module's own configuration.

use std::fmt::Display;
use std::ops::Range;

use verbatim_kit::batch::{Record, RecordHeader};
use verbatim_kit::{Reason, Refusal, refuse};

use crate::json::{self, NotJson};
use crate::names::Names;
use crate::paths::{PATHS_MAX, Path, Paths};

/// What stands in the place of a value that was masked.
pub(crate) const MASK: &[u8] = b"***";

/// The same in a JSON text.
pub(crate) const JSON_MASK: &[u8] = b"\"***\"";

/// What becomes of a record whose value is no JSON.
pub(crate) const INVALID_JSON: &str = "redact.json.invalid";

/// All keys.
const KEYS: [&str; 7] = [
    "redact.drop.keys",
    "redact.drop.headers",
    "redact.drop.json",
    "redact.mask.keys",
    "redact.mask.headers",
    "redact.mask.json",
    INVALID_JSON,
];

/// Kafka's code for a configuration that is wrong.
const INVALID_CONFIG: u16 = 40;

/// The rules of a topic, of which there is at least one.
#[derive(Debug)]
pub(crate) struct Rules {
    drop: Selection,
    mask: Selection,
    invalid_json: InvalidJson,
}

/// Records that are meant, by any of these.
#[derive(Debug)]
struct Selection {
    keys: Names,
    headers: Names,
    json: Paths,
}

/// What becomes of a record whose value is no JSON, where a rule looks for JSON fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InvalidJson {
    Refuse,
    Keep,
    Drop,
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is left as it came.
    Kept,
    /// It goes.
    Dropped,
    /// It is left with this value, and its headers are to be masked.
    Masked(Value),
}

/// The value of a record that is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// As it came.
    Same,
    /// [`MASK`].
    Whole,
    /// With [`JSON_MASK`] in the place of some fields.
    Fields,
}

/// Whether a topic may have these keys, which are all that it has of this module.
///
/// # Errors
/// The first that is unknown, or has a wrong value.
pub(crate) fn check(keys: &[(String, String)]) -> Result<(), Refusal> {
    if let Some((unknown, value)) = keys.iter().find(|(name, _)| !KEYS.contains(&name.as_str())) {
        return Err(misconfigured(unknown, value, format!("set by one of the keys {}", KEYS.join(", "))));
    }
    let value = |key: &str| keys.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    Rules::read(value).map(|_| ())
}

impl Rules {
    /// The topic's rules, by the values of its keys; none where no rule is set.
    ///
    /// # Errors
    /// A configuration that is wrong refuses every request (40): nothing may get through that was to be redacted.
    pub(crate) fn read(mut value: impl FnMut(&str) -> Option<String>) -> Result<Option<Self>, Refusal> {
        let drop = Selection::read(&mut value, "redact.drop")?;
        let mask = Selection::read(&mut value, "redact.mask")?;
        let invalid_json = match value(INVALID_JSON).as_deref().map(str::trim) {
            None | Some("refuse") => InvalidJson::Refuse,
            Some("keep") => InvalidJson::Keep,
            Some("drop") => InvalidJson::Drop,
            Some(other) => return Err(misconfigured(INVALID_JSON, other, "`refuse`, `keep` or `drop`")),
        };
        if drop.is_empty() && mask.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { drop, mask, invalid_json }))
    }

    /// What becomes of a record. It tells the fields of the value that are to be masked, in their order; they count only where the
    /// fate is [`Value::Fields`].
    ///
    /// # Errors
    /// The value is no JSON, and the configuration says that this is refused.
    pub(crate) fn judge(
        &self,
        record: &Record<'_>,
        on_field: impl FnMut(Range<usize>),
    ) -> Result<Fate, NotJson> {
        let mut headers = record.headers;
        if self.drop.has_key(record)
            || (!self.drop.headers.is_empty() && headers.any(|header| self.drop.has_header(&header)))
        {
            return Ok(Fate::Dropped);
        }
        let fate = record.value.map_or(Ok(Fate::Kept), |value| self.judge_value(record, value, on_field))?;
        let masks_header = || {
            let mut headers = record.headers;
            !self.mask.headers.is_empty() && headers.any(|header| self.masks(&header))
        };
        Ok(if fate == Fate::Kept && masks_header() { Fate::Masked(Value::Same) } else { fate })
    }

    /// Whether this header's value is to be masked, and is not yet. Null hides nothing.
    pub(crate) fn masks(&self, header: &RecordHeader<'_>) -> bool {
        self.mask.has_header(header) && header.value.is_some_and(|value| value != MASK)
    }

    /// What the rules say of a record by its value, which is not null.
    fn judge_value(
        &self,
        record: &Record<'_>,
        value: &[u8],
        mut on_field: impl FnMut(Range<usize>),
    ) -> Result<Fate, NotJson> {
        let is_whole = self.mask.has_key(record);
        if is_whole && value == MASK {
            return Ok(Fate::Kept);
        }
        let mut masked = is_whole.then_some(Value::Whole);
        let fields = (!is_whole).then_some(&self.mask.json);
        let read = json::find(value, Some(&self.drop.json), fields, |field| {
            if value.get(field.clone()) != Some(JSON_MASK) {
                masked = Some(Value::Fields);
                on_field(field);
            }
        });
        let left = |masked: Option<Value>| masked.map_or(Fate::Kept, Fate::Masked);
        match (read, self.invalid_json) {
            (Ok(is_dropped), _) => Ok(if is_dropped { Fate::Dropped } else { left(masked) }),
            (Err(NotJson), InvalidJson::Refuse) => Err(NotJson),
            (Err(NotJson), InvalidJson::Drop) => Ok(Fate::Dropped),
            (Err(NotJson), InvalidJson::Keep) => Ok(left(masked.filter(|_| is_whole))),
        }
    }
}

impl Selection {
    fn read(value: &mut dyn FnMut(&str) -> Option<String>, prefix: &str) -> Result<Self, Refusal> {
        let mut named = |what| {
            let key = format!("{prefix}.{what}");
            value(&key).map_or(Ok(Names::default()), |value| plain_names(&key, value))
        };
        let (keys, headers) = (named("keys")?, named("headers")?);
        let key = format!("{prefix}.json");
        let json = value(&key).map_or(Ok(Paths::default()), |value| paths(&key, &value))?;
        Ok(Self { keys, headers, json })
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.headers.is_empty() && self.json.is_empty()
    }

    fn has_key(&self, record: &Record<'_>) -> bool {
        record.key.is_some_and(|key| self.keys.contains(key))
    }

    fn has_header(&self, header: &RecordHeader<'_>) -> bool {
        self.headers.contains(header.key)
    }
}

/// Record keys, or names of headers. Who writes `*` among them means a pattern, and there are none.
fn plain_names(key: &str, value: String) -> Result<Names, Refusal> {
    if value.contains('*') {
        let pattern = verbatim_kit::items(&value).find(|item| item.contains('*')).unwrap_or_default();
        return Err(misconfigured(key, pattern, "whole keys or names, without `*`"));
    }
    let names = Names::new(value);
    if names.is_empty() { Err(empty(key, names.text())) } else { Ok(names) }
}

/// A list without items is a mistake, which would let all through.
fn empty(key: &str, value: &str) -> Refusal {
    misconfigured(key, value, "a list with at least one item, or not set")
}

fn paths(key: &str, value: &str) -> Result<Paths, Refusal> {
    let items: Vec<&str> = verbatim_kit::items(value).collect();
    if items.is_empty() {
        return Err(empty(key, value));
    }
    if items.len() > PATHS_MAX {
        return Err(misconfigured(key, items.len(), format!("at most {} paths", PATHS_MAX)));
    }
    let path = |text: &&str| {
        let expected = "paths such as `$.card.number` and `$.items[*].owner`, with commas between them";
        Path::parse(text).ok_or_else(|| misconfigured(key, text.escape_debug(), expected))
    };
    items.iter().map(path).collect::<Result<_, _>>().map(Paths::new)
}

fn misconfigured(key: &str, value: impl Display, expected: impl Display) -> Refusal {
    refuse(
        Reason::Other(INVALID_CONFIG),
        format!("the module's configuration must be {expected}"),
        key,
        value,
    )
}
