//! `verbatim serve`: runs a host until SIGTERM or SIGINT.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use verbatim::Modules;
use verbatim::broker::{Broker, Config, FlushPolicy};

use super::Usage;
use super::connect::host_port;
use super::control::server::{Control, Remote};
use super::file;
use super::mirror::Inside;
use super::output::Output;

mod control;
mod groups;
mod mirrors;
mod open_files;
mod peers;

use mirrors::Mirrors;

/// How long threads that read the disk may take to end.
const END_MAX: Duration = Duration::from_secs(5);
/// Threads for reading from the disk at most; each costs address space.
const BLOCKING_THREADS_MAX: usize = 16;

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Folder of the data; created if it is not there
    #[arg(long, env = "VERBATIM_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address to take connections on; with port 0 a free one is chosen and printed [default: 127.0.0.1:9092]
    #[arg(long, env = "VERBATIM_LISTEN", value_name = "IP:PORT")]
    listen: Option<SocketAddr>,
    /// Address to answer /metrics, /healthz and /readyz on; port 0 as with --listen [default: none]
    #[arg(long, env = "VERBATIM_METRICS_LISTEN", value_name = "IP:PORT")]
    metrics_listen: Option<SocketAddr>,
    /// Host and port that clients are told [default: the listening address]
    #[arg(long, env = "VERBATIM_ADVERTISE", value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// This node's id [default: 1]
    #[arg(long, env = "VERBATIM_NODE_ID", value_name = "N")]
    node_id: Option<i32>,
    /// When a batch counts as kept: on the disk (always), or once written (interval, never) [default: always]
    #[arg(long, env = "VERBATIM_FLUSH", value_parser = flush_policy, value_name = "always|interval|never")]
    flush: Option<FlushPolicy>,
    /// Time between two flushes with --flush interval [default: 1000]
    #[arg(long, env = "VERBATIM_FLUSH_INTERVAL_MS", value_name = "MS")]
    flush_interval_ms: Option<u64>,
    /// Time between two looks for old segments of normal topics [default: 300000]
    #[arg(long, env = "VERBATIM_RETENTION_CHECK_INTERVAL_MS", value_name = "MS")]
    retention_check_interval_ms: Option<u64>,
    /// Threads that judge and write; each partition belongs to one [default: one for each processor]
    #[arg(long, env = "VERBATIM_APPEND_THREADS", value_name = "N")]
    append_threads: Option<usize>,
    /// Largest batch on an exact topic [default: 67108864]
    #[arg(long, env = "VERBATIM_EXACT_BATCH_BYTES_MAX", value_name = "BYTES")]
    exact_batch_bytes_max: Option<usize>,
    /// Bytes that one batch may inflate to where records are validated [default: 67108864]
    #[arg(long, env = "VERBATIM_INFLATE_BYTES_MAX", value_name = "BYTES")]
    inflate_bytes_max: Option<usize>,
    #[command(flatten)]
    peers: peers::Peers,
    #[command(flatten)]
    groups: groups::Groups,
    #[command(flatten)]
    control: control::Flags,
    /// A module from a file, or bundled:redact, for topics that choose it by produce.module; may be repeated
    #[arg(long, env = "VERBATIM_MODULE", value_parser = named_file, value_delimiter = ',', value_name = "NAME=FILE")]
    module: Vec<(String, PathBuf)>,
    /// Listen beyond the loopback interface although nothing is encrypted or authenticated
    #[arg(long, env = "VERBATIM_ALLOW_PLAINTEXT")]
    allow_plaintext: bool,
}

impl Serve {
    pub(super) fn run(self, mut file: file::Serve, output: Output) -> anyhow::Result<()> {
        let allow_plaintext = self.allow_plaintext || file.allow_plaintext == Some(true);
        let mut named: Vec<(String, PathBuf)> = file.module.clone().into_iter().collect();
        named.extend(self.module.iter().cloned());
        let tables = std::mem::take(&mut file.mirror);
        let remote = self.control.remote(&file)?;
        let config = self.config(file)?;
        let mirrors = mirrors::asked(tables, config.listen)?;
        let listening = [
            ("listen", Some(config.listen)),
            ("metrics-listen", config.metrics_listen),
            ("control-listen", remote.as_ref().map(|remote| remote.listen)),
        ];
        for (name, address) in listening.iter().filter_map(|(name, address)| Some((name, (*address)?))) {
            if !address.ip().is_loopback() && !allow_plaintext {
                let text = format!(
                    "listening beyond loopback needs --allow-plaintext: nothing is encrypted or authenticated, {name}=`{address}`"
                );
                return Err(Usage(text).into());
            }
        }
        let mut modules = Modules::bundled(&config.data)?;
        for (name, path) in named {
            modules.add_file(&name, &path)?;
        }
        open_files::raise();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()
            .context("the runtime cannot be started")?;
        let served = runtime.block_on(serve(config, Arc::new(modules), mirrors, remote, output));
        // What still reads the disk for nobody is not waited for.
        runtime.shutdown_timeout(END_MAX);
        served
    }

    fn config(self, mut file: file::Serve) -> anyhow::Result<Config> {
        let limits = self.peers.limits(&file);
        let data = self
            .data
            .or(file.data.take())
            .ok_or_else(|| Usage("--data is missing: the folder of the data".to_owned()))?;
        let listen = self.listen.or(file.listen).unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 9092)));
        let mut config = Config::new(data, listen);
        config.advertise =
            self.advertise.or(file.advertise.take()).map(|text| advertised(&text)).transpose()?;
        config.metrics_listen = self.metrics_listen.or(file.metrics_listen);
        config.node_id = self.node_id.or(file.node_id).unwrap_or(config.node_id);
        config.flush = self.flush.or(file.flush).unwrap_or(config.flush);
        let interval_ms = self.flush_interval_ms.or(file.flush_interval_ms);
        config.flush_interval = interval("flush-interval-ms", interval_ms, config.flush_interval)?;
        let look_ms = self.retention_check_interval_ms.or(file.retention_check_interval_ms);
        config.retention_check_interval =
            interval("retention-check-interval-ms", look_ms, config.retention_check_interval)?;
        config.append_threads = self.append_threads.or(file.append_threads);
        config.limits = limits;
        self.groups.set(&file, &mut config)?;
        let limits = &mut config.limits;
        limits.exact_batch_bytes_max =
            self.exact_batch_bytes_max.or(file.exact_batch_bytes_max).unwrap_or(limits.exact_batch_bytes_max);
        limits.inflate_bytes_max =
            self.inflate_bytes_max.or(file.inflate_bytes_max).unwrap_or(limits.inflate_bytes_max);
        if config.node_id < 0 {
            return Err(Usage(format!("--node-id must be 0 or more, node-id=`{}`", config.node_id)).into());
        }
        // In the words of the flags.
        config.check().map_err(|error| Usage(format!("--{error}").replace('_', "-")))?;
        Ok(config)
    }
}

/// What is printed once the host serves.
#[derive(Serialize)]
struct Started {
    version: &'static str,
    listen: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics_listen: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_listen: Option<SocketAddr>,
    data: PathBuf,
    cluster_id: String,
    modules: Vec<StartedModule>,
}

#[derive(Serialize)]
struct StartedModule {
    name: String,
    version: String,
    sha256: String,
}

async fn serve(
    config: Config,
    modules: Arc<Modules>,
    mirrors: Vec<Inside>,
    remote: Option<Remote>,
    output: Output,
) -> anyhow::Result<()> {
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let started = modules.iter().map(|(name, module)| StartedModule {
        name: name.to_owned(),
        version: module.module().inspect().description.version.clone(),
        sha256: module.digest().to_string(),
    });
    let (data, started) = (config.data.clone(), started.collect());
    let (advertise, connections_max) = (config.advertise.clone(), config.limits.connections_max);
    let broker =
        Broker::start(config, Arc::<Modules>::clone(&modules)).await.context("the host does not start")?;
    broker.add_metrics(Arc::<Modules>::clone(&modules));
    let choosing = broker.choosing();
    modules.remove_unneeded();
    modules.tell_unjudged(&choosing);
    let control = Control::start(&data, remote, control::answering(modules, choosing)).await?;
    let started = Started {
        version: verbatim::VERSION,
        listen: broker.local_addr(),
        metrics_listen: broker.metrics_addr(),
        control_listen: control.remote,
        data: std::path::absolute(&data).unwrap_or(data),
        cluster_id: broker.cluster_id(),
        modules: started,
    };
    output.write(&started, || started.line())?;
    open_files::tell(connections_max, broker.partitions());
    let mirrors = Mirrors::start(mirrors, &broker, advertise);
    tokio::select! {
        _ = terminated.recv() => tracing::info!("SIGTERM: shutting down"),
        _ = interrupted.recv() => tracing::info!("SIGINT: shutting down"),
    }
    control.stop().await;
    mirrors.stop().await;
    broker.shutdown().await;
    tracing::info!("shut down");
    Ok(())
}

impl Started {
    fn line(&self) -> String {
        let modules: Vec<String> = self
            .modules
            .iter()
            .map(|module| format!("{} {} sha256:{}", module.name, module.version, module.sha256))
            .collect();
        let metrics = self.metrics_listen.map(|address| format!(", metrics {address}")).unwrap_or_default();
        let control = self.control_listen.map(|address| format!(", control {address}")).unwrap_or_default();
        format!(
            "verbatim {} serves on {}, data {}, module {}{metrics}{control}",
            self.version,
            self.listen,
            self.data.display(),
            modules.join(", module ")
        )
    }
}

fn flush_policy(text: &str) -> Result<FlushPolicy, String> {
    match text {
        "always" => Ok(FlushPolicy::Always),
        "interval" => Ok(FlushPolicy::Interval),
        "never" => Ok(FlushPolicy::Never),
        _ => Err("expected always, interval or never".to_owned()),
    }
}

/// What is given in milliseconds; the configuration names it without the unit that the flag has.
fn interval(flag: &str, given_ms: Option<u64>, default: Duration) -> anyhow::Result<Duration> {
    match given_ms {
        Some(0) => Err(Usage(format!("--{flag} must be 1 or more, {flag}=`0`")).into()),
        Some(ms) => Ok(Duration::from_millis(ms)),
        None => Ok(default),
    }
}

fn named_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(path)))
        }
        _ => Err("expected NAME=FILE".to_owned()),
    }
}

fn advertised(text: &str) -> anyhow::Result<(String, u16)> {
    let wrong = || Usage(format!("--advertise must be HOST:PORT, advertise=`{text}`"));
    Ok(host_port(text).ok_or_else(wrong)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn addresses_to_advertise_are_host_and_port() {
        assert_eq!(advertised("broker.example:9092").unwrap(), ("broker.example".to_owned(), 9092));
        assert_eq!(advertised("[::1]:1").unwrap(), ("::1".to_owned(), 1));
        for bad in ["", "host", ":9092", "host:port", "host:70000"] {
            let error = advertised(bad).unwrap_err();
            assert!(error.is::<Usage>() && error.to_string().contains("HOST:PORT"), "{error}");
        }
    }
}
