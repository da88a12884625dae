//! A connection to a broker, and its errors in words.

use anyhow::Context as _;
use verbatim::wire::client::{ClientConfig, Connection};
use verbatim::wire::error::describe;
use verbatim::wire::protocol::StrBytes;

/// Where a broker is looked for if nothing is said.
pub(super) const DEFAULT_BOOTSTRAP: &str = "127.0.0.1:9092";

/// Runs a client's work.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("the runtime cannot be started")?.block_on(work)
}

/// Connects to a broker.
pub(super) async fn connect(bootstrap: &str) -> anyhow::Result<Connection> {
    let connected = Connection::connect(bootstrap, ClientConfig::default()).await;
    connected.with_context(|| format!("no broker, bootstrap-server=`{bootstrap}`"))
}

/// The parts of HOST:PORT. An IPv6 address is written in brackets, and is without them here.
pub(super) fn host_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() { None } else { Some((host.to_owned(), port.parse().ok()?)) }
}

/// An answer's error code and text as an error.
pub(super) fn check(code: i16, text: Option<&StrBytes>) -> anyhow::Result<()> {
    match (code, text) {
        (0, _) => Ok(()),
        (code, Some(text)) if !text.is_empty() => anyhow::bail!("{}: {}", describe(code), text.as_str()),
        (code, _) => anyhow::bail!("{}", describe(code)),
    }
}
