//! `verbatim verify`: compares topics of two clusters batch by batch, and says where they first differ.

use std::io::IsTerminal as _;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regex::Regex;
use verbatim::mirror::cluster::ClusterConfig;
use verbatim::mirror::verify::{Options, Sample, Verifier, whole_name};

use super::Usage;
use super::output::{Output, complain};

mod text;

/// How often progress is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(200);
/// Exit code if it could not be found out.
const UNDECIDED: u8 = 2;
/// What it calls itself, for quotas and logs of both clusters.
const CLIENT_ID: &str = "verbatim-verify";

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The cluster that was copied from: addresses to begin with, separated by commas
    #[arg(long, value_name = "HOST:PORT,..")]
    source: Option<String>,
    /// The copy, likewise
    #[arg(long, value_name = "HOST:PORT,..")]
    target: Option<String>,
    /// Topics: regular expressions for the whole name
    #[arg(long, required = true, num_args = 1.., value_name = "PATTERN")]
    topics: Vec<String>,
    /// Consumer groups whose committed offsets are compared: regular expressions for the whole id
    #[arg(long, num_args = 1.., value_name = "PATTERN")]
    groups: Vec<String>,
    /// The first offset, where a log begins below it
    #[arg(long, value_name = "N")]
    from_offset: Option<i64>,
    /// The offset after the last one, where a log ends above it
    #[arg(long, value_name = "N")]
    to_offset: Option<i64>,
    /// Compare only this part of the offsets, above 0 and up to 1, in windows chosen at random
    #[arg(long, value_name = "FRACTION")]
    sample: Option<f64>,
    /// What the windows of --sample follow from [default: a new one each time, which is shown]
    #[arg(long, value_name = "N", requires = "sample")]
    seed: Option<u64>,
    /// Only the digests, of the one cluster given, to be compared with somebody else's
    #[arg(long)]
    digest_only: bool,
    /// Note in this file how far it has come, and go on there if it was ended
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Partitions at a time
    #[arg(long, default_value_t = 4, value_name = "N")]
    concurrency: usize,
    /// Bytes read each second of both clusters together [default: no limit]
    #[arg(long, value_name = "BYTES")]
    bytes_per_second: Option<NonZeroU64>,
    /// Bytes of one fetch answer at most; a larger batch comes whole
    #[arg(long, default_value_t = 1 << 20, value_name = "BYTES")]
    fetch_bytes_max: usize,
    /// Bytes that a batch of a compacted topic may inflate to
    #[arg(long, default_value_t = 64 << 20, value_name = "BYTES")]
    inflate_bytes_max: usize,
    /// Keys of a compacted partition whose last record is still looked for at one time, at most
    #[arg(long, default_value_t = 4_000_000, value_name = "N")]
    keys_max: usize,
}

impl Verify {
    /// Exit code 0 if everything is identical or compacted-equal, 1 if not, 2 if that could not be found out.
    pub(super) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let options = self.options()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.context("the runtime cannot be started")?;
        let found = runtime.block_on(verify(options));
        // Whoever still fetches for nobody is not waited for.
        runtime.shutdown_background();
        match found {
            Ok(report) => {
                output.write(&report, || text::report(&report))?;
                Ok(ExitCode::from(report.exit_code()))
            }
            Err(error) => {
                complain(&error.into());
                Ok(ExitCode::from(UNDECIDED))
            }
        }
    }

    fn options(self) -> Result<Options, Usage> {
        let cluster =
            |name: &str, text: &Option<String>| text.as_deref().map(|text| addresses(name, text)).transpose();
        let (source, target) = (cluster("source", &self.source)?, cluster("target", &self.target)?);
        let (source, target) = match (self.digest_only, source, target) {
            (false, Some(source), Some(target)) => (source, Some(target)),
            (false, None, _) => return Err(Usage("--source is missing: the cluster copied from".to_owned())),
            (false, _, None) => {
                return Err(Usage("--target is missing: the copy (or --digest-only)".to_owned()));
            }
            (true, Some(one), None) | (true, None, Some(one)) => (one, None),
            (true, _, _) => return Err(Usage("--digest-only takes one of --source and --target".to_owned())),
        };
        let sample =
            self.sample.map(|fraction| Sample { fraction, seed: self.seed.unwrap_or_else(new_seed) });
        Ok(Options {
            source,
            target,
            topics: patterns("topics", &self.topics)?,
            groups: patterns("groups", &self.groups)?,
            from_offset: self.from_offset,
            to_offset: self.to_offset,
            sample,
            concurrency: self.concurrency,
            fetch_bytes_max: self.fetch_bytes_max,
            inflate_bytes_max: self.inflate_bytes_max,
            keys_max: self.keys_max,
            bytes_per_second: self.bytes_per_second,
            state: self.state,
        })
    }
}

async fn verify(
    options: Options,
) -> Result<verbatim::mirror::verify::Report, verbatim::mirror::verify::VerifyError> {
    let verifier = Verifier::new(options)?;
    let drawing = std::io::stderr().is_terminal().then(|| tokio::spawn(draw(verifier.clone())));
    let report = verifier.run().await;
    if let Some(drawing) = drawing {
        drawing.abort();
        // It was aborted, and has cleared its line.
        let _ = drawing.await;
    }
    report
}

/// A line on the terminal that says how far it has come.
async fn draw(verifier: Verifier) {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("[{bar:24}] {percent}% {msg}");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    let bar = Cleared(bar);
    loop {
        let progress = verifier.progress();
        bar.0.set_length(progress.offsets_total);
        bar.0.set_position(progress.offsets);
        bar.0.set_message(format!(
            "partitions {} of {}, {} MB read",
            progress.partitions_done,
            progress.partitions,
            progress.bytes / 1_000_000
        ));
        tokio::time::sleep(DRAWN_EVERY).await;
    }
}

/// A bar that is gone when it is dropped.
struct Cleared(ProgressBar);

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn addresses(name: &str, text: &str) -> Result<ClusterConfig, Usage> {
    let addresses: Vec<&str> = text.split(',').map(str::trim).collect();
    let wrong = addresses.iter().find(|address| super::connect::host_port(address).is_none());
    if let Some(wrong) = wrong {
        return Err(Usage(format!("--{name} must be HOST:PORT, {name}=`{wrong}`")));
    }
    let mut config = ClusterConfig::new(addresses);
    config.client.client_id = CLIENT_ID.to_owned();
    Ok(config)
}

fn patterns(name: &str, texts: &[String]) -> Result<Vec<Regex>, Usage> {
    let pattern = |text: &String| {
        whole_name(text).map_err(|error| {
            Usage(format!("--{name} must be a regular expression, {name}=`{text}`: {error}"))
        })
    };
    texts.iter().map(pattern).collect()
}

/// A seed of the moment.
fn new_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| u64::from(now.subsec_nanos()))
}
