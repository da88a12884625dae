//! What is to be redacted, from the module's own configuration.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;

use verbatim_kit::batch::{Record, RecordHeader};
use verbatim_kit::{Reason, Refusal, refuse, reserve_within};

use crate::json::{self, Path};

/// What stands in the place of a value that was masked.
pub(crate) const MASK: &[u8] = b"***";

/// The same in a JSON text.
const JSON_MASK: &[u8] = b"\"***\"";

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
    keys: Vec<String>,
    headers: Vec<String>,
    json: Vec<Path>,
}

/// What becomes of a record whose value is no JSON, where a rule looks for JSON fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InvalidJson {
    Refuse,
    Keep,
    Drop,
}

/// What becomes of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate<'a> {
    /// It is left as it came.
    Kept,
    /// It goes.
    Dropped,
    /// It is left with this value, none being that which it has, and its headers are to be masked.
    Masked(Option<Cow<'a, [u8]>>),
}

/// Why a record cannot be redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// Its value is no JSON, and the configuration says that this is refused.
    NotJson,
    /// Its value becomes larger than the limit.
    TooLarge,
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

    /// What becomes of a record, of which no value may become larger than `bytes_max`.
    ///
    /// # Errors
    /// Why it can be neither kept nor redacted.
    pub(crate) fn judge<'a>(&self, record: &Record<'a>, bytes_max: usize) -> Result<Fate<'a>, Unfit> {
        let mut headers = record.headers;
        if self.drop.has_key(record) || headers.any(|header| self.drop.has_header(&header)) {
            return Ok(Fate::Dropped);
        }
        let value = match record.value.map(|value| self.judge_value(record, value, bytes_max)).transpose()? {
            Some(Fate::Dropped) => return Ok(Fate::Dropped),
            Some(Fate::Masked(value)) => value,
            Some(Fate::Kept) | None => None,
        };
        let mut headers = record.headers;
        let changes = value.is_some() || headers.any(|header| self.masks(&header));
        Ok(if changes { Fate::Masked(value) } else { Fate::Kept })
    }

    /// Whether this header's value is to be masked, and is not yet. Null hides nothing.
    pub(crate) fn masks(&self, header: &RecordHeader<'_>) -> bool {
        self.mask.has_header(header) && header.value.is_some_and(|value| value != MASK)
    }

    /// What the rules say of a record by its value, which is not null.
    fn judge_value<'a>(
        &self,
        record: &Record<'a>,
        value: &'a [u8],
        bytes_max: usize,
    ) -> Result<Fate<'a>, Unfit> {
        let is_masked_whole = self.mask.has_key(record);
        if is_masked_whole && value == MASK {
            return Ok(Fate::Kept);
        }
        let fields: &[Path] = if is_masked_whole { &[] } else { &self.mask.json };
        let mut is_dropped = false;
        let read = json::find(value, &self.drop.json, |_| is_dropped = true);
        let masked = match read {
            Ok(()) if is_dropped => return Ok(Fate::Dropped),
            Ok(()) => masked_fields(value, fields, bytes_max),
            Err(json::NotJson) => Err(Unfit::NotJson),
        };
        let masked = match (masked, self.invalid_json) {
            (Err(Unfit::NotJson), InvalidJson::Drop) => return Ok(Fate::Dropped),
            (Err(Unfit::NotJson), InvalidJson::Keep) => None,
            (masked, _) => masked?,
        };
        let masked = if is_masked_whole { Some(Cow::Borrowed(MASK)) } else { masked.map(Cow::Owned) };
        Ok(masked.map_or(Fate::Kept, |value| Fate::Masked(Some(value))))
    }
}

/// A JSON value with these fields masked; none where there is nothing to mask.
fn masked_fields(value: &[u8], fields: &[Path], bytes_max: usize) -> Result<Option<Vec<u8>>, Unfit> {
    let mut masked = Spliced { value, copied: 0, bytes: None, fits: Some(()), bytes_max };
    let read = json::find(value, fields, |field| {
        if value.get(field.clone()) != Some(JSON_MASK) {
            masked.replace(field, JSON_MASK);
        }
    });
    read.map_err(|json::NotJson| Unfit::NotJson)?;
    if masked.bytes.is_some() {
        masked.replace(value.len()..value.len(), &[]);
    }
    masked.fits.ok_or(Unfit::TooLarge).map(|()| masked.bytes)
}

/// A value of which parts are replaced, from front to back.
struct Spliced<'a> {
    value: &'a [u8],
    /// Its bytes up to here are in the copy.
    copied: usize,
    bytes: Option<Vec<u8>>,
    /// None as soon as the copy would be larger than `bytes_max`.
    fits: Option<()>,
    bytes_max: usize,
}

impl Spliced<'_> {
    fn replace(&mut self, part: Range<usize>, with: &[u8]) {
        let before = self.value.get(self.copied..part.start).unwrap_or_default();
        let bytes = self.bytes.get_or_insert_default();
        let more = before.len().saturating_add(with.len());
        self.fits = self.fits.and_then(|()| reserve_within(bytes, more, self.bytes_max));
        if self.fits.is_some() {
            bytes.extend_from_slice(before);
            bytes.extend_from_slice(with);
        }
        self.copied = part.end;
    }
}

impl Selection {
    fn read(value: &mut dyn FnMut(&str) -> Option<String>, prefix: &str) -> Result<Self, Refusal> {
        let mut named = |what| {
            let key = format!("{prefix}.{what}");
            value(&key).map_or(Ok(Vec::new()), |value| plain_names(&key, &value))
        };
        let (keys, headers) = (named("keys")?, named("headers")?);
        let key = format!("{prefix}.json");
        let json = value(&key).map_or(Ok(Vec::new()), |value| paths(&key, &value))?;
        Ok(Self { keys, headers, json })
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.headers.is_empty() && self.json.is_empty()
    }

    fn has_key(&self, record: &Record<'_>) -> bool {
        record.key.is_some_and(|key| self.keys.iter().any(|wanted| wanted.as_bytes() == key))
    }

    fn has_header(&self, header: &RecordHeader<'_>) -> bool {
        self.headers.iter().any(|wanted| wanted.as_bytes() == header.key)
    }
}

/// The items of a list that is set, of which there is at least one: an empty rule is a mistake, which would let all through.
fn items(key: &str, value: &str) -> Result<Vec<String>, Refusal> {
    let items: Vec<String> = verbatim_kit::items(value).map(str::to_owned).collect();
    if items.is_empty() {
        return Err(misconfigured(key, value, "a list with at least one item, or not set"));
    }
    Ok(items)
}

/// Record keys, or names of headers. Who writes `*` among them means a pattern, and there are none.
fn plain_names(key: &str, value: &str) -> Result<Vec<String>, Refusal> {
    let items = items(key, value)?;
    match items.iter().find(|item| item.contains('*')) {
        Some(pattern) => Err(misconfigured(key, pattern, "whole keys or names, without `*`")),
        None => Ok(items),
    }
}

fn paths(key: &str, value: &str) -> Result<Vec<Path>, Refusal> {
    let items = items(key, value)?;
    if items.len() > json::PATHS_MAX {
        return Err(misconfigured(key, items.len(), format!("at most {} paths", json::PATHS_MAX)));
    }
    let path = |text: &String| {
        let expected = "paths such as `$.card.number` and `$.items[*].owner`, with commas between them";
        Path::parse(text).ok_or_else(|| misconfigured(key, text.escape_debug(), expected))
    };
    items.iter().map(path).collect()
}

fn misconfigured(key: &str, value: impl Display, expected: impl Display) -> Refusal {
    refuse(
        Reason::Other(INVALID_CONFIG),
        format!("the module's configuration must be {expected}"),
        key,
        value,
    )
}
