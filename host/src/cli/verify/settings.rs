//! What a verifier is told, by flags, the environment and the configuration file, made into the library's options.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use regex::Regex;
use serde::Deserialize;
use verbatim::mirror::cluster::ClusterConfig;
use verbatim::mirror::verify::{Options, Sample, whole_name};

use super::super::Usage;
use super::super::values::{addresses, missing, patterns, wrong};

/// What it calls itself, for quotas and logs of both clusters.
const CLIENT_ID: &str = "verbatim-verify";
/// Where something is missing or wrong.
const PLACE: &str = "verify";

/// The flags of `verbatim verify`, which are also the fields of the table `[verify]`.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(in super::super) struct Asked {
    /// The cluster that was copied from: addresses to begin with, separated by commas [required]
    #[arg(long, env = "VERBATIM_VERIFY_SOURCE", value_name = "HOST:PORT,..")]
    source: Option<String>,
    /// The copy, likewise [required]
    #[arg(long, env = "VERBATIM_VERIFY_TARGET", value_name = "HOST:PORT,..")]
    target: Option<String>,
    /// Topics: regular expressions for the whole name, separated by commas; may be repeated [required]
    #[arg(long, env = "VERBATIM_VERIFY_TOPICS", value_name = "PATTERN,..")]
    topics: Vec<String>,
    /// Consumer groups whose committed offsets are compared, likewise [default: none]
    #[arg(long, env = "VERBATIM_VERIFY_GROUPS", value_name = "PATTERN,..")]
    groups: Vec<String>,
    /// The first offset, where a log begins below it
    #[arg(long, env = "VERBATIM_VERIFY_FROM_OFFSET", value_name = "N")]
    from_offset: Option<i64>,
    /// The offset after the last one, where a log ends above it
    #[arg(long, env = "VERBATIM_VERIFY_TO_OFFSET", value_name = "N")]
    to_offset: Option<i64>,
    /// Take what a module has redacted for equal in everything else, where the target's topic allows it to
    #[arg(long, env = "VERBATIM_VERIFY_ALLOW_REDACTED")]
    allow_redacted: bool,
    /// Compare only this part of the offsets, above 0 and up to 1, in windows chosen at random
    #[arg(long, env = "VERBATIM_VERIFY_SAMPLE", value_name = "FRACTION")]
    sample: Option<f64>,
    /// What the windows of --sample follow from [default: a new one each time, which is shown]
    #[arg(long, env = "VERBATIM_VERIFY_SEED", value_name = "N")]
    seed: Option<u64>,
    /// Only the digests, of the one cluster given, to be compared with somebody else's
    #[arg(long, env = "VERBATIM_VERIFY_DIGEST_ONLY")]
    digest_only: bool,
    /// Note in this file how far it has come, and go on there if it was ended
    #[arg(long, env = "VERBATIM_VERIFY_STATE", value_name = "FILE")]
    state: Option<PathBuf>,
    /// Partitions at a time [default: 4]
    #[arg(long, env = "VERBATIM_VERIFY_CONCURRENCY", value_name = "N")]
    concurrency: Option<usize>,
    /// Bytes read each second of both clusters together [default: no limit]
    #[arg(long, env = "VERBATIM_VERIFY_BYTES_PER_SECOND", value_name = "BYTES")]
    bytes_per_second: Option<NonZeroU64>,
    /// Bytes of one fetch answer at most; a larger batch comes whole [default: 1048576]
    #[arg(long, env = "VERBATIM_VERIFY_FETCH_BYTES_MAX", value_name = "BYTES")]
    fetch_bytes_max: Option<usize>,
    /// Bytes that a batch of a compacted topic may inflate to [default: 67108864]
    #[arg(long, env = "VERBATIM_VERIFY_INFLATE_BYTES_MAX", value_name = "BYTES")]
    inflate_bytes_max: Option<usize>,
    /// Keys of a compacted partition whose last record is still looked for at one time, at most [default: 4000000]
    #[arg(long, env = "VERBATIM_VERIFY_KEYS_MAX", value_name = "N")]
    keys_max: Option<usize>,
}

impl Asked {
    /// Flags, and for those not given what the file's table says.
    pub(super) fn or(self, file: Self) -> Self {
        let several = |flags: Vec<String>, file| if flags.is_empty() { file } else { flags };
        Self {
            source: self.source.or(file.source),
            target: self.target.or(file.target),
            topics: several(self.topics, file.topics),
            groups: several(self.groups, file.groups),
            from_offset: self.from_offset.or(file.from_offset),
            to_offset: self.to_offset.or(file.to_offset),
            allow_redacted: self.allow_redacted || file.allow_redacted,
            sample: self.sample.or(file.sample),
            seed: self.seed.or(file.seed),
            digest_only: self.digest_only || file.digest_only,
            state: self.state.or(file.state),
            concurrency: self.concurrency.or(file.concurrency),
            bytes_per_second: self.bytes_per_second.or(file.bytes_per_second),
            fetch_bytes_max: self.fetch_bytes_max.or(file.fetch_bytes_max),
            inflate_bytes_max: self.inflate_bytes_max.or(file.inflate_bytes_max),
            keys_max: self.keys_max.or(file.keys_max),
        }
    }

    /// The library's options; ranges of numbers it checks itself.
    pub(super) fn options(self) -> Result<Options, Usage> {
        let (source, target) = self.clusters()?;
        let topics = whole_names("topics", &self.topics)?;
        if topics.is_empty() {
            let what = "patterns of the topics to compare, such as `orders,invoices-.*`";
            return Err(missing(PLACE, "topics", what));
        }
        if let (Some(seed), None) = (self.seed, self.sample) {
            return Err(wrong(PLACE, "seed", &seed.to_string(), "left out where sample is not given"));
        }
        let sample = |fraction| Sample { fraction, seed: self.seed.unwrap_or_else(new_seed) };
        let mut options = Options::new(source.clone(), source, topics);
        options.target = target;
        options.groups = whole_names("groups", &self.groups)?;
        options.from_offset = self.from_offset;
        options.to_offset = self.to_offset;
        options.allow_redacted = self.allow_redacted;
        options.sample = self.sample.map(sample);
        options.concurrency = self.concurrency.unwrap_or(options.concurrency);
        options.fetch_bytes_max = self.fetch_bytes_max.unwrap_or(options.fetch_bytes_max);
        options.inflate_bytes_max = self.inflate_bytes_max.unwrap_or(options.inflate_bytes_max);
        options.keys_max = self.keys_max.unwrap_or(options.keys_max);
        options.bytes_per_second = self.bytes_per_second;
        options.state = self.state;
        Ok(options)
    }

    /// Both, or with `digest_only` the one that is given.
    fn clusters(&self) -> Result<(ClusterConfig, Option<ClusterConfig>), Usage> {
        let given =
            |field, text: &Option<String>| text.as_deref().map(|text| cluster(field, text)).transpose();
        match (self.digest_only, given("source", &self.source)?, given("target", &self.target)?) {
            (false, Some(source), Some(target)) => Ok((source, Some(target))),
            (false, None, _) => {
                Err(missing(PLACE, "source", "HOST:PORT of the cluster that was copied from"))
            }
            (false, _, None) => Err(missing(PLACE, "target", "HOST:PORT of the copy (or --digest-only)")),
            (true, Some(one), None) | (true, None, Some(one)) => Ok((one, None)),
            (true, _, _) => Err(wrong(PLACE, "digest-only", "true", "given with one of source and target")),
        }
    }
}

fn cluster(field: &str, text: &str) -> Result<ClusterConfig, Usage> {
    let mut cluster = ClusterConfig::new(addresses(PLACE, field, text)?);
    CLIENT_ID.clone_into(&mut cluster.client.client_id);
    Ok(cluster)
}

fn whole_names(field: &str, texts: &[String]) -> Result<Vec<Regex>, Usage> {
    let whole = |pattern: Regex| {
        let whole = whole_name(pattern.as_str());
        whole.map_err(|error| {
            wrong(PLACE, field, pattern.as_str(), &format!("a regular expression ({error})"))
        })
    };
    patterns(PLACE, field, texts)?.into_iter().map(whole).collect()
}

/// A seed of the moment.
fn new_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| u64::from(now.subsec_nanos()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::super::values::tests::{asked, refused};
    use super::*;

    #[test]
    fn what_is_not_given_has_its_default() {
        let text = "source = 's:1, t:2'\ntarget = 'u:3'\ntopics = ['a{1,2},b.*']\n";
        let options = asked::<Asked>(text).options().unwrap();
        assert_eq!(options.source.bootstrap, ["s:1", "t:2"]);
        assert_eq!(options.target.unwrap().bootstrap, ["u:3"]);
        let topics: Vec<&str> = options.topics.iter().map(Regex::as_str).collect();
        assert_eq!(topics, ["^(?:a{1,2})$", "^(?:b.*)$"]);
        // As the help says.
        let sizes = (options.fetch_bytes_max, options.inflate_bytes_max, options.keys_max);
        assert_eq!((options.concurrency, sizes), (4, (1_048_576, 67_108_864, 4_000_000)));
        assert!(options.groups.is_empty() && options.sample.is_none() && options.state.is_none());
        assert!(!options.allow_redacted);
    }

    #[test]
    fn a_flag_goes_before_the_file() {
        let flags: Asked = asked("source = 'flag:1'\ntopics = ['flag']\nsample = 0.5\nkeys-max = 1");
        let file = asked(
            "source = 'file:1'\ntarget = 'file:2'\ntopics = ['file']\ngroups = ['x,y']\nseed = 7\n\
             keys-max = 2\nallow-redacted = true\nconcurrency = 3\nfetch-bytes-max = 4\nbytes-per-second = 5\nfrom-offset = 6",
        );
        let options = flags.or(file).options().unwrap();
        assert_eq!(options.source.bootstrap, ["flag:1"]);
        assert!(options.topics.iter().all(|topic| topic.is_match("flag")));
        assert_eq!(options.sample, Some(Sample { fraction: 0.5, seed: 7 }));
        assert_eq!((options.groups.len(), options.keys_max, options.concurrency), (2, 1, 3));
        assert_eq!((options.fetch_bytes_max, options.from_offset), (4, Some(6)));
        assert!(options.allow_redacted);
        assert_eq!(options.bytes_per_second, NonZeroU64::new(5));
    }

    #[test]
    fn digests_alone_are_of_one_cluster() {
        for side in ["source", "target"] {
            let options: Asked = asked(&format!("{side} = 's:1'\ntopics = ['a']\ndigest-only = true"));
            let options = options.options().unwrap();
            assert!(options.source.bootstrap == ["s:1"] && options.target.is_none(), "{side}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_value_and_expectation() {
        let good = "source = 's:1'\ntarget = 't:1'\ntopics = ['a']\n";
        refused(
            "verify: ",
            &[
                ("target = 't:1'\ntopics = ['a']", "source is missing"),
                ("source = 's:1'\ntopics = ['a']", "target is missing"),
                ("source = 's:1'\ntarget = 't:1'", "topics is missing"),
                ("source = 's'\ntarget = 't:1'\ntopics = ['a']", "source must be HOST:PORT"),
                (&format!("{good}groups = ['a)(b']"), "groups must be a regular expression (unopened group)"),
                (&format!("{good}seed = 1"), "seed must be left out where sample is not given, seed=`1`"),
                (
                    &format!("{good}digest-only = true"),
                    "digest-only must be given with one of source and target",
                ),
            ],
            Asked::options,
        );
    }
}
