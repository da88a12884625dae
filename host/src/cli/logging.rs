//! Logs on stderr, with fields, as text or as one JSON object a line.

use std::io::{self, Write};
use std::sync::OnceLock;

use anyhow::Context as _;
use indicatif::MultiProgress;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LogFormat {
    // A readable line.
    #[default]
    Text,
    // A JSON object a line.
    Json,
}

/// The variable that says which logs are written, such as `info` or `verbatim_broker=debug`.
const FILTER: &str = "VERBATIM_LOG";
const DEFAULT_FILTER: &str = "info";

/// Begins to log.
pub(super) fn start(format: LogFormat) -> anyhow::Result<()> {
    let directives = std::env::var(FILTER).unwrap_or_else(|_| DEFAULT_FILTER.to_owned());
    let filter = EnvFilter::try_new(&directives)
        .map_err(|error| super::Usage(format!("{FILTER} is no log filter, value=`{directives}`: {error}")))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Stderr);
    let started = match format {
        LogFormat::Text => logs.with_ansi(false).try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    started.map_err(anyhow::Error::from_boxed).context("logging cannot be started")
}

/// Bars on the terminal, which give way while a line is written.
static BARS: OnceLock<MultiProgress> = OnceLock::new();

/// From now on lines are written above these bars.
pub(super) fn give_way(bars: MultiProgress) {
    // A second set of bars would find the first one there; there is one a process.
    let _ = BARS.set(bars);
}

struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match BARS.get() {
            Some(bars) => bars.suspend(|| io::stderr().write(bytes)),
            None => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
