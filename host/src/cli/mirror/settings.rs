//! What a mirror is told, by flags, the environment and the configuration file, made into the library's configuration.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use verbatim::mirror::cluster::ClusterConfig;
use verbatim::mirror::mirror::{MirrorConfig, OnDataLost, OnDivergence, TargetConfig};

use super::super::Usage;
use super::super::values::{addresses, at_least_1, missing, patterns, wrong};

/// The default, as the help tells it.
const REPORT_INTERVAL_MS: u64 = 10_000;

/// The least room: a batch of the usual largest size.
const BUFFERED_BYTES_MIN: usize = 1_048_576;
const CONNECTIONS_MAX: usize = 1_000;
/// Names of mirrors inside a host are labels of metrics.
const NAME_CHARS_MAX: usize = 100;
/// What the mirror calls itself, for quotas and logs of source and target.
const CLIENT_ID: &str = "verbatim-mirror";

/// The flags of `verbatim mirror`, which are also the fields of the tables `[mirror]` and `[[serve.mirror]]`.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(in super::super) struct Asked {
    /// The mirror's name; of `[[serve.mirror]]` alone.
    #[arg(skip)]
    name: Option<String>,
    /// The cluster to copy from: addresses to begin with, separated by commas [required]
    #[arg(long, env = "VERBATIM_MIRROR_SOURCE", value_name = "HOST:PORT,..")]
    source: Option<String>,
    /// The host to copy to, likewise [default: what --bootstrap-server says]
    #[arg(long, env = "VERBATIM_MIRROR_TARGET", value_name = "HOST:PORT,..")]
    target: Option<String>,
    /// Topics to copy: regular expressions for the whole name, separated by commas; may be repeated [required]
    #[arg(long, env = "VERBATIM_MIRROR_TOPICS", value_name = "PATTERN,..")]
    topics: Vec<String>,
    /// Topics not to copy although --topics names them, likewise [default: none]
    #[arg(long, env = "VERBATIM_MIRROR_EXCLUDE", value_name = "PATTERN,..")]
    exclude: Vec<String>,
    /// Topics to show and not to copy at present, likewise [default: none]
    #[arg(long, env = "VERBATIM_MIRROR_PAUSED", value_name = "PATTERN,..")]
    paused: Vec<String>,
    /// Consumer groups whose committed offsets are carried over, likewise [default: none]
    #[arg(long, env = "VERBATIM_MIRROR_GROUPS", value_name = "PATTERN,..")]
    groups: Vec<String>,
    /// A property to create topics with at the target, beside what makes them copies; may be repeated, in the environment one a
    /// line [default: none]
    #[arg(long, env = "VERBATIM_MIRROR_TARGET_CONFIG", value_delimiter = '\n', value_name = "KEY=VALUE")]
    target_config: Vec<String>,
    /// End once everything is caught up or stopped
    #[arg(long, env = "VERBATIM_MIRROR_ONCE")]
    once: bool,
    /// Where the source deleted what was not copied: stop the partition, or leave a hole and go on [default: stop]
    #[arg(long, env = "VERBATIM_MIRROR_ON_DATA_LOST", value_name = "stop|skip")]
    on_data_lost: Option<String>,
    /// Where the source was truncated below the copy's end: stop the partition, or truncate the copy [default: stop]
    #[arg(long, env = "VERBATIM_MIRROR_ON_DIVERGENCE", value_name = "stop|follow")]
    on_divergence: Option<String>,
    /// Time between two looks for new topics, partitions and settings [default: 30000]
    #[arg(long, env = "VERBATIM_MIRROR_REFRESH_MS", value_name = "MS")]
    refresh_ms: Option<u64>,
    /// Bytes of records on their way at most [default: 67108864]
    #[arg(long, env = "VERBATIM_MIRROR_BUFFERED_BYTES_MAX", value_name = "BYTES")]
    buffered_bytes_max: Option<usize>,
    /// Connections to write over; partitions are dealt out among them [default: 2]
    #[arg(long, env = "VERBATIM_MIRROR_CONNECTIONS", value_name = "N")]
    connections: Option<usize>,
    /// Time between two summaries where there are no bars [default: 10000]
    #[arg(long, env = "VERBATIM_MIRROR_REPORT_INTERVAL_MS", value_name = "MS")]
    report_interval_ms: Option<u64>,
    /// Address to answer /metrics on; port 0 lets the system choose [default: none]
    #[arg(long, env = "VERBATIM_MIRROR_METRICS_LISTEN", value_name = "IP:PORT")]
    metrics_listen: Option<SocketAddr>,
    /// Answer on another address than a loopback one although nothing is encrypted or authenticated
    #[arg(long, env = "VERBATIM_MIRROR_ALLOW_PLAINTEXT")]
    allow_plaintext: bool,
    /// Only show what would be created and copied, and with which settings
    #[arg(long, env = "VERBATIM_MIRROR_DRY_RUN")]
    dry_run: bool,
}

/// What `verbatim mirror` does.
pub(in super::super) struct Settings {
    pub(super) config: MirrorConfig,
    pub(super) report_interval: Duration,
    pub(super) metrics_listen: Option<SocketAddr>,
    pub(super) dry_run: bool,
}

/// A mirror inside a host, less its target, which is known once the host listens.
#[derive(Debug)]
pub(in super::super) struct Inside {
    /// Its name.
    pub(in super::super) name: String,
    /// Everything but the target's addresses.
    pub(in super::super) config: MirrorConfig,
}

impl Asked {
    /// Flags, and for those not given what the file's table says.
    pub(super) fn or(self, file: Self) -> Self {
        let several = |flags: Vec<String>, file| if flags.is_empty() { file } else { flags };
        Self {
            name: file.name,
            source: self.source.or(file.source),
            target: self.target.or(file.target),
            topics: several(self.topics, file.topics),
            exclude: several(self.exclude, file.exclude),
            paused: several(self.paused, file.paused),
            groups: several(self.groups, file.groups),
            target_config: several(self.target_config, file.target_config),
            once: self.once || file.once,
            on_data_lost: self.on_data_lost.or(file.on_data_lost),
            on_divergence: self.on_divergence.or(file.on_divergence),
            refresh_ms: self.refresh_ms.or(file.refresh_ms),
            buffered_bytes_max: self.buffered_bytes_max.or(file.buffered_bytes_max),
            connections: self.connections.or(file.connections),
            report_interval_ms: self.report_interval_ms.or(file.report_interval_ms),
            metrics_listen: self.metrics_listen.or(file.metrics_listen),
            allow_plaintext: self.allow_plaintext || file.allow_plaintext,
            dry_run: self.dry_run || file.dry_run,
        }
    }

    /// For the command, whose target is the general bootstrap server if none is given.
    pub(super) fn settings(self, bootstrap: &str) -> Result<Settings, Usage> {
        let place = "mirror";
        if let Some(name) = self.name {
            return Err(wrong(place, "name", &name, "left out: only [[serve.mirror]] has names"));
        }
        let target = self.target.clone().unwrap_or_else(|| bootstrap.to_owned());
        let interval_ms = self.report_interval_ms.unwrap_or(REPORT_INTERVAL_MS);
        let report_interval = at_least_1(place, "report-interval-ms", interval_ms)?;
        let target = addresses(place, "target", &target)?;
        let metrics_listen = self.metrics_listen;
        if let Some(address) = metrics_listen.filter(|address| !address.ip().is_loopback())
            && !self.allow_plaintext
        {
            let expected = "a loopback address unless --allow-plaintext is given";
            return Err(wrong(place, "metrics-listen", &address.to_string(), expected));
        }
        let config = self.config(place, target)?;
        Ok(Settings { config, report_interval, metrics_listen, dry_run: self.dry_run })
    }

    /// For a mirror inside a host.
    pub(in super::super) fn inside(self) -> Result<Inside, Usage> {
        let Some(name) = self.name.clone() else {
            return Err(Usage(
                "[[serve.mirror]]: name is missing: each such table needs one of its own".to_owned(),
            ));
        };
        let place = format!("[[serve.mirror]] `{name}`");
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
            return Err(wrong(
                &place,
                "name",
                &name,
                "1 to 100 letters, digits, dots, underscores or hyphens",
            ));
        }
        let outside = [
            ("target", self.target.clone()),
            ("once", self.once.then(|| "true".to_owned())),
            ("dry-run", self.dry_run.then(|| "true".to_owned())),
            ("report-interval-ms", self.report_interval_ms.map(|ms| ms.to_string())),
            ("allow-plaintext", self.allow_plaintext.then(|| "true".to_owned())),
            ("metrics-listen", self.metrics_listen.map(|address| address.to_string())),
        ];
        for (field, value) in outside {
            if let Some(value) = value {
                return Err(wrong(&place, field, &value, "left out: it is of `verbatim mirror` alone"));
            }
        }
        let config = self.config(&place, Vec::new())?;
        Ok(Inside { name, config })
    }

    fn config(&self, place: &str, target: Vec<String>) -> Result<MirrorConfig, Usage> {
        let source = self.source.as_deref().unwrap_or_default();
        if source.is_empty() {
            return Err(missing(place, "source", "HOST:PORT of the cluster to copy from"));
        }
        let source = addresses(place, "source", source)?;
        if let Some(same) = source.iter().find(|address| target.contains(address)) {
            return Err(wrong(place, "source", same, "another cluster than the target"));
        }
        let topics = patterns(place, "topics", &self.topics)?;
        if topics.is_empty() {
            return Err(missing(
                place,
                "topics",
                "patterns of the topics to copy, such as `orders,invoices-.*`",
            ));
        }
        let mut config = MirrorConfig::new(cluster(source), cluster(target));
        config.topics = topics;
        config.exclude = patterns(place, "exclude", &self.exclude)?;
        config.paused = patterns(place, "paused", &self.paused)?;
        config.groups = patterns(place, "groups", &self.groups)?;
        config.target_config = target_config(place, &self.target_config)?;
        config.once = self.once;
        config.on_data_lost = match self.on_data_lost.as_deref() {
            None | Some("stop") => OnDataLost::Stop,
            Some("skip") => OnDataLost::Skip,
            Some(other) => return Err(wrong(place, "on-data-lost", other, "stop or skip")),
        };
        config.on_divergence = match self.on_divergence.as_deref() {
            None | Some("stop") => OnDivergence::Stop,
            Some("follow") => OnDivergence::Follow,
            Some(other) => return Err(wrong(place, "on-divergence", other, "stop or follow")),
        };
        if let Some(ms) = self.refresh_ms {
            config.refresh = at_least_1(place, "refresh-ms", ms)?;
        }
        config.buffered_bytes_max = self.buffered_bytes_max.unwrap_or(config.buffered_bytes_max);
        if config.buffered_bytes_max < BUFFERED_BYTES_MIN {
            let value = config.buffered_bytes_max.to_string();
            return Err(wrong(place, "buffered-bytes-max", &value, "1048576 or more"));
        }
        config.connections = self.connections.unwrap_or(config.connections);
        if !(1..=CONNECTIONS_MAX).contains(&config.connections) {
            let value = config.connections.to_string();
            return Err(wrong(place, "connections", &value, "a number from 1 to 1000"));
        }
        Ok(config)
    }
}

/// KEY=VALUE; what stands behind the first equals sign is the value, all of it.
fn target_config(place: &str, texts: &[String]) -> Result<TargetConfig, Usage> {
    let mut config = TargetConfig::default();
    for text in texts {
        let told = |expected: &str| wrong(place, "target-config", text, expected);
        let (key, value) = text.split_once('=').ok_or_else(|| told("KEY=VALUE"))?;
        config.set(key, value).map_err(|expected| told(&expected.to_string()))?;
    }
    Ok(config)
}

/// How a cluster at these addresses is reached.
pub(in super::super) fn cluster(addresses: Vec<String>) -> ClusterConfig {
    let mut cluster = ClusterConfig::new(addresses);
    CLIENT_ID.clone_into(&mut cluster.client.client_id);
    cluster
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::super::values::tests::{asked, refused};
    use super::*;

    #[test]
    fn what_is_not_given_has_its_default() {
        let settings =
            asked::<Asked>("source = 's:1, t:2'\ntopics = ['a,b.*']").settings("127.0.0.1:9092").unwrap();
        let config = settings.config;
        assert_eq!(config.source.bootstrap, ["s:1", "t:2"]);
        assert_eq!(config.target.bootstrap, ["127.0.0.1:9092"]);
        assert_eq!(config.on_data_lost, OnDataLost::Stop);
        assert_eq!(config.on_divergence, OnDivergence::Stop);
        // As the help says.
        assert_eq!(config.refresh, Duration::from_secs(30));
        assert_eq!((config.buffered_bytes_max, config.connections), (67_108_864, 2));
        assert!(!config.once && !settings.dry_run && config.groups.is_empty());
        assert_eq!(settings.report_interval, Duration::from_secs(10));
    }

    #[test]
    fn a_flag_goes_before_the_file() {
        let flags: Asked = asked("source = 'flag:1'\ntopics = ['flag']\non-data-lost = 'skip'");
        let file = asked(
            "source = 'file:1'\ntarget = 'file:2'\ntopics = ['file']\nexclude = ['x']\nonce = true\n\
                   target-config = ['d=', 'a=b=c']",
        );
        let config = flags.or(file).settings("other:1").unwrap().config;
        assert_eq!(config.target_config.iter().collect::<Vec<_>>(), [("a", "b=c"), ("d", "")]);
        assert_eq!(config.source.bootstrap, ["flag:1"]);
        assert_eq!(config.target.bootstrap, ["file:2"]);
        assert!(config.topics.iter().any(|topic| topic.is_match("flag")));
        assert!(!config.topics.iter().any(|topic| topic.is_match("file")));
        assert!(config.exclude.len() == 1 && config.once);
        assert_eq!(config.on_data_lost, OnDataLost::Skip);
    }

    #[test]
    fn what_is_wrong_is_named_with_value_and_expectation() {
        let good = "source = 's:1'\ntopics = ['a']\n";
        refused(
            "mirror: ",
            &[
                ("topics = ['a']", "mirror: source is missing"),
                ("source = 's:1'", "mirror: topics is missing"),
                ("source = 's:1'\ntopics = [' , ']", "mirror: topics is missing"),
                (
                    "source = 's'\ntopics = ['a']",
                    "source must be HOST:PORT, several of them separated by commas, source=`s`",
                ),
                ("source = 's:1,'\ntopics = ['a']", "source=`s:1,`"),
                (
                    "source = 't:1'\ntopics = ['a']",
                    "source must be another cluster than the target, source=`t:1`",
                ),
                (
                    "source = 's:1'\ntopics = ['a)(b']",
                    "topics must be a regular expression (unopened group), topics=`a)(b`",
                ),
                (&format!("{good}target = 'x'"), "target=`x`"),
                (
                    &format!("{good}exclude = ['[']"),
                    "exclude must be a regular expression (unclosed character class)",
                ),
                (
                    &format!("{good}on-data-lost = 'go'"),
                    "on-data-lost must be stop or skip, on-data-lost=`go`",
                ),
                (
                    &format!("{good}on-divergence = 'skip'"),
                    "on-divergence must be stop or follow, on-divergence=`skip`",
                ),
                (&format!("{good}refresh-ms = 0"), "refresh-ms must be 1 or more, refresh-ms=`0`"),
                (&format!("{good}report-interval-ms = 0"), "report-interval-ms must be 1 or more"),
                (&format!("{good}buffered-bytes-max = 1"), "buffered-bytes-max must be 1048576 or more"),
                (
                    &format!("{good}connections = 0"),
                    "connections must be a number from 1 to 1000, connections=`0`",
                ),
                (
                    &format!("{good}metrics-listen = '0.0.0.0:1'"),
                    "metrics-listen must be a loopback address unless",
                ),
                (&format!("{good}name = 'x'"), "name must be left out"),
                (
                    &format!("{good}target-config = ['produce.module']"),
                    "target-config must be KEY=VALUE, target-config=`produce.module`",
                ),
                (
                    &format!("{good}target-config = ['produce.at.offset=true']"),
                    "target-config must be another property than produce.at.offset, which the mirror itself sets",
                ),
                (
                    &format!("{good}target-config = ['produce.at.offset.source.topic.id=x']"),
                    "another property than produce.at.offset.source.topic.id, which",
                ),
                (&format!("{good}target-config = ['=x']"), "must be a property's name without blanks"),
                (
                    &format!("{good}target-config = ['a=1', 'a=2']"),
                    "must be given once for each property, target-config=`a=2`",
                ),
            ],
            |asked: Asked| asked.settings("t:1"),
        );
    }

    #[test]
    fn inside_a_host_a_table_has_a_name_and_no_target() {
        let good = "source = 's:1'\ntopics = ['a']\n";
        let inside = asked::<Asked>(&format!("name = 'eu-1'\n{good}")).inside().unwrap();
        assert_eq!((inside.name.as_str(), inside.config.target.bootstrap.len()), ("eu-1", 0));
        refused(
            "[[serve.mirror]]",
            &[
                (good, "[[serve.mirror]]: name is missing"),
                (&format!("name = 'e u'\n{good}"), "[[serve.mirror]] `e u`: name must be 1 to 100 letters"),
                (&format!("name = 'e'\n{good}once = true"), "[[serve.mirror]] `e`: once must be left out"),
                (&format!("name = 'e'\n{good}target = 't:1'"), "target=`t:1`"),
                (
                    &format!("name = 'e'\n{good}target-config = ['x']"),
                    "[[serve.mirror]] `e`: target-config must be KEY=VALUE, target-config=`x`",
                ),
                ("name = 'e'\ntopics = ['a']", "[[serve.mirror]] `e`: source is missing"),
            ],
            Asked::inside,
        );
    }
}
