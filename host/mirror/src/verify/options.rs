//! What is verified, and how.

use std::num::NonZeroU64;
use std::path::PathBuf;

use regex::Regex;

use crate::cluster::ClusterConfig;

/// What is compared with what, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The side that was copied from. With [`Options::target`] left out only its digests are made.
    pub source: ClusterConfig,
    /// The copy.
    pub target: Option<ClusterConfig>,
    /// Topics that one of these matches are compared; see [`whole_name`]. Internal topics only if their very name is given.
    pub topics: Vec<Regex>,
    /// Committed offsets of groups that one of these matches are compared, on these topics; none if empty.
    pub groups: Vec<Regex>,
    /// The first offset, where the logs begin below it.
    pub from_offset: Option<i64>,
    /// The offset after the last one, where the logs end above it.
    pub to_offset: Option<i64>,
    /// Take a target that a module has redacted for [`Verdict::Redacted`](super::Verdict::Redacted), where its topic says
    /// `produce.at.offset.rewrite=allow`.
    pub allow_redacted: bool,
    /// Compare only a part of each partition.
    pub sample: Option<Sample>,
    /// Partitions that are compared at the same time.
    pub concurrency: usize,
    /// Bytes of one fetch answer; a larger batch comes whole. Six such answers are held for each of the partitions under way.
    pub fetch_bytes_max: usize,
    /// Bytes that a batch may inflate to, where records have to be looked at.
    pub inflate_bytes_max: usize,
    /// Keys that may be owed at one time in one partition of a compacted topic, at about 50 bytes each.
    pub keys_max: usize,
    /// Bytes read each second of both clusters together.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Where to note how far it has come, to go on there. The file is written anew about each second, and removed once
    /// everything is decided.
    pub state: Option<PathBuf>,
}

/// A part of each partition, chosen at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// How much of the offsets, above 0 and up to 1.
    pub fraction: f64,
    /// What the choice follows from: the same seed chooses the same offsets of the same range.
    pub seed: u64,
}

impl Options {
    /// Everything in these topics, with the defaults: 4 partitions at a time, 1 MiB an answer, 64 MiB a batch, 4 million keys.
    pub fn new(source: ClusterConfig, target: ClusterConfig, topics: Vec<Regex>) -> Self {
        Self {
            source,
            target: Some(target),
            topics,
            groups: Vec::new(),
            from_offset: None,
            to_offset: None,
            allow_redacted: false,
            sample: None,
            concurrency: 4,
            fetch_bytes_max: 1 << 20,
            inflate_bytes_max: verbatim_compression::DEFAULT_LIMIT_BYTES,
            keys_max: 4_000_000,
            bytes_per_second: None,
            state: None,
        }
    }
}

/// An expression that matches whole names only.
///
/// # Errors
/// It is no regular expression.
pub fn whole_name(pattern: &str) -> Result<Regex, regex::Error> {
    // By itself first, so that an error shows what was written.
    Regex::new(pattern)?;
    Regex::new(&format!("^(?:{pattern})$"))
}
