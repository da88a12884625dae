//! Mirrors inside a host, which copy into it: each goes on whatever its source does, and none takes the host down.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use verbatim::broker::Broker;
use verbatim::mirror::mirror::state::{Event, PartitionStatus, State};
use verbatim::mirror::mirror::{Mirror, MirrorConfig};

use super::super::Usage;
use super::super::mirror::{Asked, Figures, Inside, MEASURE_INTERVAL, News, cluster, every};

/// The first pause before a mirror that ended is started anew, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long a mirror may take to stop; what is not acknowledged by then is copied after the next start.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Time between two looks whether mirrors reach their own host, and how long one may take.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
const LOOK_MAX: Duration = Duration::from_secs(5);

/// All mirrors of a host.
#[derive(Debug)]
pub(super) struct Mirrors {
    stop: CancellationToken,
    running: JoinSet<()>,
}

/// The tables `[[serve.mirror]]` of a host that listens there.
pub(super) fn asked(tables: Vec<Asked>, listen: SocketAddr) -> Result<Vec<Inside>, Usage> {
    let mut mirrors: Vec<Inside> = Vec::new();
    for table in tables {
        let mirror = table.inside()?;
        let name = &mirror.name;
        if mirrors.iter().any(|other| other.name == *name) {
            return Err(Usage(format!(
                "[[serve.mirror]] `{name}`: name must be another one than those before, name=`{name}`"
            )));
        }
        let own = [listen.to_string(), reachable(listen).to_string()];
        if let Some(source) = mirror.config.source.bootstrap.iter().find(|source| own.contains(source)) {
            return Err(Usage(format!(
                "[[serve.mirror]] `{name}`: source must be another cluster than this host, source=`{source}`"
            )));
        }
        mirrors.push(mirror);
    }
    Ok(mirrors)
}

impl Mirrors {
    /// Starts them, to copy into this host, whose metrics get theirs, and which tells its clients to reach it there.
    pub(super) fn start(asked: Vec<Inside>, host: &Broker, advertise: Option<(String, u16)>) -> Self {
        let (stop, mut running) = (CancellationToken::new(), JoinSet::new());
        let figures = host.metrics_addr().filter(|_| !asked.is_empty()).map(|_| Arc::<Figures>::default());
        if let Some(figures) = &figures {
            host.add_metrics(Arc::<Figures>::clone(figures));
        }
        if let Some(advertise) = advertise.filter(|_| !asked.is_empty()) {
            let stop = stop.clone();
            running.spawn(async move {
                stop.run_until_cancelled(watch_own_host(advertise)).await;
            });
        }
        for Inside { name, mut config } in asked {
            config.target = cluster(vec![reachable(host.local_addr()).to_string()]);
            let keeper = Keeper { name, config, figures: figures.clone(), news: News::default() };
            running.spawn(keeper.run(stop.clone()));
        }
        Self { stop, running }
    }

    /// Stops them, while the host still takes what is under way.
    pub(super) async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a mirror ended badly");
            }
        }
    }
}

/// Where a host that listens there is reached from the same machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Mirrors are clients as others are: they copy into their host where it says that it is. Tells each time when it cannot be
/// reached there, for another reason than before, or can again.
async fn watch_own_host((host, port): (String, u16)) {
    let address = format!("{host}:{port}");
    let mut unreachable = None;
    let mut looks = every(LOOK_INTERVAL);
    loop {
        looks.tick().await;
        let connected = tokio::time::timeout(LOOK_MAX, TcpStream::connect((host.as_str(), port))).await;
        let reason = match connected {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no connection within {LOOK_MAX:?}")),
        };
        match &reason {
            _ if reason == unreachable => {}
            Some(reason) => tracing::warn!(
                advertise = address,
                reason,
                "mirrors cannot reach their own host at the address that it tells its clients: advertise one that this machine reaches as well"
            ),
            None => tracing::info!(advertise = address, "mirrors reach their own host again"),
        }
        unreachable = reason;
    }
}

/// Keeps one mirror going.
struct Keeper {
    name: String,
    config: MirrorConfig,
    figures: Option<Arc<Figures>>,
    news: News,
}

impl Keeper {
    async fn run(mut self, stop: CancellationToken) {
        let mut pause = PAUSE_MIN;
        loop {
            let began = Instant::now();
            let Some(reason) = self.mirror(&stop).await else { return };
            if began.elapsed() > PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(
                mirror = self.name,
                reason,
                pause_ms,
                "nothing can be mirrored, it is tried again"
            );
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => pause = pause.saturating_mul(2).min(PAUSE_MAX),
            }
        }
    }

    /// Mirrors until it is told to stop; or until that ends by itself, for this reason.
    async fn mirror(&mut self, stop: &CancellationToken) -> Option<String> {
        tracing::info!(
            mirror = self.name,
            source = self.config.source.bootstrap.join(","),
            "the mirror starts"
        );
        let mut mirror = Mirror::start(self.config.clone());
        let mut measures = every(MEASURE_INTERVAL);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.stop(mirror).await;
                    return None;
                }
                _ = measures.tick() => if let Some(figures) = &self.figures {
                    figures.set(&self.name, mirror.snapshot());
                },
                event = mirror.event() => match event {
                    Some(event) => self.tell(&event),
                    None => break,
                }
            }
        }
        let ended = mirror.ended().await.err();
        Some(ended.map_or_else(|| "it has ended".to_owned(), |error| error.to_string()))
    }

    async fn stop(&self, mirror: Mirror) {
        match tokio::time::timeout(STOP_MAX, mirror.stop()).await {
            Ok(_) => tracing::info!(mirror = self.name, "the mirror has stopped"),
            Err(_) => tracing::warn!(mirror = self.name, "the mirror did not stop in time and is left alone"),
        }
    }

    fn tell(&mut self, event: &Event) {
        let mirror = self.name.as_str();
        match event {
            Event::State(status) if self.news.is_news(status) => tell_state(mirror, status),
            Event::State(_) => {}
            Event::Note(note) => {
                tracing::warn!(mirror, topic = note.topic, note = note.text, "a note on a topic")
            }
            Event::Topic(done) => {
                tracing::info!(mirror, topic = done.topic, done = done.text, "a topic was changed")
            }
        }
    }
}

fn tell_state(mirror: &str, status: &PartitionStatus) {
    let PartitionStatus { topic, partition, state, end, .. } = status;
    let (reason, remedy) = (status.reason.as_deref(), status.remedy.as_deref());
    if state.is_stopped() || *state == State::Waiting {
        tracing::warn!(mirror, topic, partition, %state, end, reason, remedy, "a partition is not mirrored");
    } else {
        tracing::info!(mirror, topic, partition, %state, end, reason, remedy, "a partition's state");
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn tables_are_checked_together() {
        let table = |name: &str, source: &str| -> Asked {
            toml::from_str(&format!("name = '{name}'\nsource = '{source}'\ntopics = ['.*']")).unwrap()
        };
        let listen = "0.0.0.0:9092".parse().unwrap();
        let good = asked(vec![table("a", "other:1"), table("b", "other:1")], listen).unwrap();
        assert_eq!(good.len(), 2);
        for (tables, told) in [
            (
                vec![table("a", "other:1"), table("a", "other:2")],
                "[[serve.mirror]] `a`: name must be another one",
            ),
            (vec![table("a", "127.0.0.1:9092")], "source must be another cluster than this host"),
            (vec![table("a", "0.0.0.0:9092")], "source=`0.0.0.0:9092`"),
            (vec![table("a", "x")], "[[serve.mirror]] `a`: source must be HOST:PORT"),
        ] {
            let error = asked(tables, listen).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_host_on_all_addresses_is_reached_over_loopback() {
        for (listen, reached) in
            [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:2", "[::1]:2"), ("127.0.0.2:3", "127.0.0.2:3")]
        {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), reached);
        }
    }
}
