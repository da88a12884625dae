//! The format of scenario files, as `tests/conformance/README.md` describes it. An unknown key is an error.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

/// Which kind of topic a scenario is about.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The partition assigns offsets.
    Normal,
    /// The writer chooses offsets and leader epochs (`produce.at.offset`).
    Exact,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct File {
    /// Batches by name, for `use`.
    #[serde(default)]
    pub(crate) batch: BTreeMap<String, BatchSpec>,
    /// Each with its place in the file.
    pub(crate) scenario: Vec<Spanned<ScenarioSpec>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ScenarioSpec {
    pub(crate) name: String,
    pub(crate) rules: Vec<String>,
    pub(crate) mode: Mode,
    #[serde(default)]
    pub(crate) policy: PolicySpec,
    /// The module's own keys.
    #[serde(default)]
    pub(crate) config: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) log: LogSpec,
    #[serde(default)]
    pub(crate) request: Vec<RequestSpec>,
    #[serde(default)]
    pub(crate) join: Vec<JoinSpec>,
}

/// What differs from the defaults of the mode.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PolicySpec {
    #[serde(default)]
    pub(crate) rewind: Rewind,
    #[serde(default)]
    pub(crate) rewrite: Rewrite,
    pub(crate) validate_records: Option<bool>,
    #[serde(default)]
    pub(crate) compacted: bool,
    #[serde(default)]
    pub(crate) log_append_time: bool,
    pub(crate) max_message_bytes: Option<u32>,
    pub(crate) segment_bytes: Option<u32>,
    pub(crate) before_max_ms: Option<i64>,
    pub(crate) after_max_ms: Option<i64>,
    pub(crate) min_insync: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rewind {
    #[default]
    Refuse,
    Truncate,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rewrite {
    #[default]
    Refuse,
    Allow,
}

/// The log before the first request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct LogSpec {
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) high_watermark: Option<i64>,
    pub(crate) shown_epoch: Option<i32>,
    /// Pairs of epoch and start.
    pub(crate) epochs: Option<Vec<(i32, i64)>>,
    #[serde(default)]
    pub(crate) batches: Vec<BatchSpec>,
    pub(crate) replicas: Option<Vec<ReplicaSpec>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ReplicaSpec {
    pub(crate) id: i32,
    #[serde(default = "yes")]
    pub(crate) in_sync: bool,
    #[serde(default = "yes")]
    pub(crate) online: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RequestSpec {
    pub(crate) now_ms: Option<i64>,
    pub(crate) acks: Option<i16>,
    pub(crate) api_version: Option<i16>,
    #[serde(default)]
    pub(crate) transactional: bool,
    pub(crate) tag: Option<TagSpec>,
    #[serde(default)]
    pub(crate) batches: Vec<BatchSpec>,
    /// Bytes behind the batches, as hex.
    pub(crate) tail: Option<String>,
    pub(crate) expect: ExpectSpec,
}

/// The tag's fields, or all of it as hex.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct TagSpec {
    pub(crate) hex: Option<String>,
    #[serde(default)]
    pub(crate) other_source_topic: bool,
    pub(crate) expected_end: Option<i64>,
    pub(crate) epoch_before: Option<i32>,
    pub(crate) source_start: Option<i64>,
    pub(crate) source_end: Option<i64>,
    pub(crate) source_epoch: Option<i32>,
    pub(crate) end_to: Option<i64>,
    pub(crate) truncate_to: Option<i64>,
    /// Pairs of epoch and start.
    pub(crate) entries: Option<Vec<(i32, i64)>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct BatchSpec {
    /// The whole batch.
    pub(crate) hex: Option<String>,
    /// The name of a batch in the file's `batch` table.
    #[serde(rename = "use")]
    pub(crate) named: Option<String>,
    pub(crate) base: Option<i64>,
    pub(crate) epoch: Option<i32>,
    pub(crate) records: Option<Vec<RecordSpec>>,
    pub(crate) codec: Option<String>,
    pub(crate) producer: Option<ProducerSpec>,
    #[serde(default)]
    pub(crate) transactional: bool,
    /// A control batch of this type; 0 is ABORT, 1 is COMMIT.
    pub(crate) control: Option<i16>,
    /// A LogAppendTime batch of this time.
    pub(crate) log_append_time: Option<i64>,
    pub(crate) delete_horizon: Option<i64>,
    /// The payload as hex, instead of the records.
    pub(crate) payload: Option<String>,
    #[serde(default)]
    pub(crate) header: HeaderSpec,
    /// False: the checksum stays what it was before `header` and `payload` were applied.
    pub(crate) sealed: Option<bool>,
    #[serde(default)]
    pub(crate) wrong_crc: bool,
    /// Only so many bytes of it, framed as a batch of that length.
    pub(crate) short: Option<usize>,
    /// So many such batches, one behind the other.
    pub(crate) repeat: Option<u32>,
}

/// Header fields set to what no builder would set them to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct HeaderSpec {
    pub(crate) batch_length: Option<i32>,
    pub(crate) magic: Option<i8>,
    pub(crate) attributes: Option<i16>,
    pub(crate) last_offset_delta: Option<i32>,
    pub(crate) base_timestamp: Option<i64>,
    pub(crate) max_timestamp: Option<i64>,
    pub(crate) record_count: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RecordSpec {
    pub(crate) offset: Option<i32>,
    pub(crate) timestamp: Option<i64>,
    pub(crate) key: Option<String>,
    pub(crate) key_hex: Option<String>,
    #[serde(default)]
    pub(crate) null_key: bool,
    pub(crate) value: Option<String>,
    /// A value of so many bytes.
    pub(crate) value_bytes: Option<usize>,
    #[serde(default)]
    pub(crate) null_value: bool,
    /// Pairs of name and value.
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ProducerSpec {
    pub(crate) id: i64,
    #[serde(default)]
    pub(crate) epoch: i16,
    #[serde(default)]
    pub(crate) sequence: i32,
}

/// What must become of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ExpectSpec {
    /// The reason of the refusal, as in `wit/types.wit`.
    pub(crate) refused: Option<String>,
    pub(crate) code: Option<i16>,
    pub(crate) batch: Option<u32>,
    pub(crate) expected: Option<i64>,
    /// Parts of the refusal's text.
    #[serde(default)]
    pub(crate) text: Vec<String>,
    /// The batches that are appended, in their order.
    #[serde(default)]
    pub(crate) placed: Vec<PlacedSpec>,
    /// Base offsets of those that are stored already, in their order.
    #[serde(default)]
    pub(crate) duplicates: Vec<i64>,
    /// Parts of lines that the module traces, one a line.
    #[serde(default)]
    pub(crate) trace: Vec<String>,
    #[serde(default)]
    pub(crate) log: LogAfterSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PlacedSpec {
    pub(crate) base: i64,
    pub(crate) epoch: i32,
    pub(crate) bytes: Option<Kept>,
    /// The records that are left of a batch that is rewritten.
    pub(crate) records: Option<Vec<RecordSpec>>,
    pub(crate) max_timestamp: Option<i64>,
    pub(crate) log_append_time: Option<bool>,
}

/// How much of a batch must be as it came.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kept {
    /// Every byte.
    Same,
    /// All but base offset and leader epoch.
    Placed,
    /// All but these, timestamp type, maxTimestamp and checksum.
    Restamped,
    /// All but these, length, number of records, the records and, where none are left, the codec.
    Rewritten,
}

/// The log after a request; what is not named is not looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct LogAfterSpec {
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) stable_offset: Option<i64>,
    pub(crate) shown_epoch: Option<i32>,
    /// Pairs of epoch and start.
    pub(crate) epochs: Option<Vec<(i32, i64)>>,
    /// Base offsets.
    pub(crate) batches: Option<Vec<i64>>,
    /// Producer id, first and last offset.
    pub(crate) aborted: Option<Vec<(i64, i64, i64)>>,
    /// Start, end and epoch of the source, as declared.
    pub(crate) source: Option<(i64, i64, i32)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct JoinSpec {
    pub(crate) replica: ReplicaSpec,
    pub(crate) end: i64,
    /// A part of the reason; without it the replica may join.
    pub(crate) refused: Option<String>,
}

fn yes() -> bool {
    true
}
