//! A running host: from a configuration to a bound address, and back to a clean data folder.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use verbatim_log::folder::DataFolder;
use verbatim_log::{DiskIo, Io, LogError};
use verbatim_wire::server::{ConfigError, Server};

use crate::api::Apis;
use crate::append::{self, Setup};
use crate::catalogue::{Catalogue, CatalogueError, State, Topic};
use crate::config::{Config, FlushPolicy};
use crate::errors::ApiError;
use crate::groups::{self, Groups};
use crate::judges::{Choosing, Judges};
use crate::metrics::{self, Endpoint, Metrics};
use crate::shared::{Folder, Parts, Shared};
use crate::{promotion, retention, topics};

/// How often idle producers are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(600);

/// A host that serves. Dropping it without [`Broker::shutdown`] is as good as a crash.
pub struct Broker {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<()>,
    threads: Vec<JoinHandle<()>>,
    /// What is done now and then.
    upkeep: JoinSet<()>,
    shared: Arc<Shared>,
    endpoint: Option<Endpoint>,
}

/// Why a host does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A host cannot run with these settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] LogError),
    /// The catalogue cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The address cannot be listened on.
    #[error("cannot listen, listen=`{address}`: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// An append thread cannot be started.
    #[error("an append thread cannot be started: {0}")]
    Thread(std::io::Error),
    /// What opening the partitions wrote cannot be made durable.
    #[error("the partitions cannot be made durable: {0}")]
    NotDurable(String),
    /// What a crash left unfinished cannot be finished.
    #[error("topic `{topic}` was left unfinished and cannot be finished now: {problem}")]
    Unfinished {
        /// The topic.
        topic: String,
        /// Why.
        problem: String,
    },
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Broker").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Broker {
    /// Opens the data folder, recovers its partitions, and serves. A partition that cannot be opened is offline by name;
    /// the others serve. To be called within a tokio runtime of several threads.
    ///
    /// # Errors
    /// See [`StartError`]; nothing runs then.
    pub async fn start(config: Config, judges: Arc<dyn Judges>) -> Result<Self, StartError> {
        Self::start_on(Arc::new(DiskIo), config, judges).await
    }

    /// [`Self::start`] on another file system than the machine's, such as one that fails when a test says so.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_on(
        io: Arc<dyn Io>,
        config: Config,
        judges: Arc<dyn Judges>,
    ) -> Result<Self, StartError> {
        config.check()?;
        let folder = DataFolder::open(&config.data, Arc::clone(&io))?;
        let catalogue = Catalogue::open(&config.data, Arc::clone(&io))?;
        let listen = |source| StartError::Listen { address: config.listen, source };
        let server = Server::bind(config.listen, config.limits.server()).await.map_err(listen)?;
        let address = server.local_addr().map_err(listen)?;
        let advertised =
            config.advertise.clone().unwrap_or_else(|| (address.ip().to_string(), address.port()));
        let metrics_listener = listen_for_metrics(&config).await?;
        let in_flight = server.in_flight();
        let known = catalogue.snapshot();
        let (groups, keeper) = Groups::start(&config, folder.path(), Arc::clone(&io), |topic| {
            known.topics.values().any(|known| known.id == topic)
        })?;
        let (metrics, appenders, mut threads) = start_threads(&config, &judges, &io)?;
        threads.push(keeper);
        let shared = Arc::new(Shared::new(Parts {
            config,
            metrics,
            in_flight,
            catalogue,
            judges,
            groups,
            folder,
            io,
            appenders,
            advertised,
        }));
        // From here on, so that whoever watches the host sees it start.
        let endpoint = metrics_listener.map(|listener| Endpoint::start(listener, &shared));
        if let Err(error) = open_all(&shared).await {
            if let Some(endpoint) = endpoint {
                endpoint.end().await;
            }
            return Err(error);
        }
        shared.metrics.set_opened();
        let mut upkeep = JoinSet::new();
        upkeep.spawn(expire_producers_now_and_then(Arc::downgrade(&shared)));
        upkeep.spawn(retention::run_now_and_then(Arc::downgrade(&shared)));
        upkeep.spawn(groups::tick_in_time(Arc::downgrade(&shared)));
        upkeep.spawn(groups::expire_now_and_then(Arc::downgrade(&shared)));
        if shared.config.flush == FlushPolicy::Interval {
            upkeep.spawn(flush_now_and_then(Arc::downgrade(&shared)));
        }
        let (stop, stopped) = oneshot::channel();
        let service = Arc::new(Apis(Arc::clone(&shared)));
        let serving = tokio::spawn(server.run(service, async {
            // A dropped handle stops serving, too.
            let _ = stopped.await;
        }));
        Ok(Self { address, stop, serving, threads, upkeep, shared, endpoint })
    }

    /// The address that is listened on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The address that metrics and health are told on, if any.
    #[must_use]
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.endpoint.as_ref().map(Endpoint::address)
    }

    /// All metrics as OpenMetrics text, for a program that shows them by its own means. Looks at every partition, so not to
    /// be called often from a thread that serves.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        metrics::text(&self.shared)
    }

    /// Shows more metrics beside the host's own, after them, until the host is shut down.
    pub fn add_metrics(&self, more: Arc<dyn metrics::More>) {
        self.shared.metrics.add(more);
    }

    /// Which topics choose which module, at any time from now on.
    #[must_use]
    pub fn choosing(&self) -> Choosing {
        Choosing(Arc::downgrade(&self.shared))
    }

    /// The cluster's id, chosen when the data folder was created.
    #[must_use]
    pub fn cluster_id(&self) -> String {
        self.shared.catalogue.snapshot().cluster_id.clone()
    }

    /// How many partitions there are at present, of all topics.
    #[must_use]
    pub fn partitions(&self) -> usize {
        let snapshot = self.shared.catalogue.snapshot();
        snapshot
            .topics
            .values()
            .map(|topic| usize::try_from(topic.partitions).unwrap_or(usize::MAX))
            .fold(0, usize::saturating_add)
    }

    /// Stops taking requests, answers those that were taken, makes everything durable and closes.
    pub async fn shutdown(self) {
        let Self { stop, serving, threads, mut upkeep, shared, endpoint, .. } = self;
        shared.stopping.cancel();
        // An error means that it has stopped already.
        let _ = stop.send(());
        if let Err(error) = serving.await {
            tracing::error!(%error, "serving ended badly");
        }
        // Nothing of the host is held by others when this returns, the data folder least of all.
        upkeep.shutdown().await;
        for appender in &shared.appenders {
            appender.stop().await;
        }
        shared.groups.keeper().stop().await;
        let joined = tokio::task::spawn_blocking(move || {
            for thread in threads {
                if thread.join().is_err() {
                    tracing::error!("an append thread ended badly, the next start recovers its partitions");
                }
            }
        });
        if let Err(error) = joined.await {
            tracing::error!(%error, "waiting for the append threads failed");
        }
        if let Some(endpoint) = endpoint {
            endpoint.end().await;
        }
    }
}

async fn listen_for_metrics(config: &Config) -> Result<Option<(TcpListener, SocketAddr)>, StartError> {
    let Some(address) = config.metrics_listen else { return Ok(None) };
    let listen = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    Ok(Some((listener, address)))
}

type Threads = (Arc<Metrics>, Vec<append::Appender>, Vec<JoinHandle<()>>);

fn start_threads(config: &Config, judges: &Arc<dyn Judges>, io: &Arc<dyn Io>) -> Result<Threads, StartError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let count = config.append_threads.unwrap_or(cores);
    let metrics = Arc::new(Metrics::new(count));
    let setup = Setup {
        metrics: Arc::clone(&metrics),
        judges: Arc::clone(judges),
        io: Arc::clone(io),
        data: config.data.clone(),
        node: config.node_id,
        flush: config.flush,
        queue_max: config.limits.append_queue_max,
        inflate_bytes_max: config.limits.inflate_bytes_max,
        exact_batch_bytes_max: config.limits.exact_batch_bytes_max,
    };
    let started: Result<Vec<_>, _> = (0..count).map(|index| append::start(index, setup.clone())).collect();
    let (appenders, joins) = started.map_err(StartError::Thread)?.into_iter().unzip();
    Ok((metrics, appenders, joins))
}

/// Opens what is there, all of it made durable at once, then finishes what a crash left in the middle.
async fn open_all(shared: &Shared) -> Result<(), StartError> {
    let snapshot = shared.catalogue.snapshot();
    topics::remove_strays(shared, |name| snapshot.topic(name)).await;
    let together = shared.together();
    for topic in snapshot.topics.values().filter(|topic| topic.is_visible()) {
        let opened = shared.open_together(topic, 0..topic.partitions, Folder::Present, &together).await;
        if let Err(error) = opened {
            tracing::error!(topic = topic.name, %error, "a partition is offline");
        }
    }
    shared.finish(together).await.map_err(|error| StartError::NotDurable(error.text))?;
    for topic in snapshot.topics.values() {
        match topic.state {
            State::Live => {}
            State::Promoting => {
                // An offline partition keeps the topic promoting; asking again goes on with it.
                if let Err(error) = promotion::resume(shared, Topic::clone(topic)).await {
                    tracing::error!(topic = topic.name, %error, "the promotion is not finished");
                }
            }
            State::Creating | State::Deleting => {
                let unfinished = |error: ApiError| StartError::Unfinished {
                    topic: topic.name.clone(),
                    problem: error.text,
                };
                topics::remove(shared, topic).await.map_err(unfinished)?;
            }
        }
    }
    Ok(())
}

async fn expire_producers_now_and_then(shared: Weak<Shared>) {
    while let Some(running) = shared.upgrade() {
        let expiration_ms =
            i64::try_from(running.config.producer_id_expiration.as_millis()).unwrap_or(i64::MAX);
        for appender in &running.appenders {
            let expired = appender.begin(move |worker| worker.expire_producers(expiration_ms)).await;
            if expired.is_err() {
                return;
            }
        }
        drop(running);
        tokio::time::sleep(EXPIRY_INTERVAL).await;
    }
}

async fn flush_now_and_then(shared: Weak<Shared>) {
    while let Some(running) = shared.upgrade() {
        for appender in &running.appenders {
            if appender.begin(append::Worker::flush_all).await.is_err() {
                return;
            }
        }
        running.groups.keeper().flush().await;
        let interval = running.config.flush_interval;
        drop(running);
        tokio::time::sleep(interval).await;
    }
}
