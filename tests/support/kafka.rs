//! Apache Kafka itself: one broker or several in KRaft mode, on loopback, with their data in a temporary folder.

pub mod maker;
pub mod premise;
pub mod sources;

use crate::host::free_address;
use crate::proxy::Proxy;
use crate::run;
use crate::tools::{self, Tool};
use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// How long a broker may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(240);

/// The id of every cluster here: base64 of "verbatim-testing".
const CLUSTER_ID: &str = "dmVyYmF0aW0tdGVzdGluZw";

/// Settings under which little is started, and the cleaner and retention come round several times a second.
pub const LIVELY: &[&str] = &[
    "offsets.topic.num.partitions=1",
    "transaction.state.log.num.partitions=1",
    "transaction.max.timeout.ms=3600000",
    "broker.heartbeat.interval.ms=300",
    "broker.session.timeout.ms=3000",
    "replica.lag.time.max.ms=3000",
    "auto.leader.rebalance.enable=false",
    "log.cleaner.backoff.ms=100",
    "log.cleaner.dedupe.buffer.size=4194304",
    "log.retention.check.interval.ms=200",
    "log.initial.task.delay.ms=100",
    "log.segment.delete.delay.ms=100",
];

/// Running brokers, with the ids 1, 2 and so on. The first is the controller too, so it is never stopped where there are
/// others. Dropping them kills them.
#[derive(Debug)]
pub struct Kafka {
    server: Tool,
    brokers: Vec<Broker>,
    folder: TempDir,
}

#[derive(Debug)]
struct Broker {
    id: usize,
    address: SocketAddr,
    child: Option<Child>,
}

impl Kafka {
    /// One broker with Kafka's defaults. `None` without Kafka (see [`tools::find`]).
    ///
    /// # Errors
    /// With the broker's log, if it does not start.
    pub fn start() -> anyhow::Result<Option<Self>> {
        Self::start_with(1, &[])
    }

    /// Formats data folders, starts so many brokers with these settings and waits until all are there. `None` without Kafka.
    ///
    /// # Errors
    /// With a broker's log, if it does not start.
    pub fn start_with(brokers: usize, settings: &[&str]) -> anyhow::Result<Option<Self>> {
        Self::start_known(brokers, settings, |_| ())
    }

    /// The same, with one broker that clients reach through this proxy.
    ///
    /// # Errors
    /// With the broker's log, if it does not start.
    pub fn start_behind(proxy: &Proxy, settings: &[&str]) -> anyhow::Result<Option<Self>> {
        let advertised = format!("advertised.listeners=PLAINTEXT://{}", proxy.address());
        Self::start_known(1, &[settings, &[advertised.as_str()]].concat(), |broker| proxy.forward_to(broker))
    }

    /// Starts brokers once the address of the first is told.
    fn start_known(
        brokers: usize,
        settings: &[&str],
        known: impl Fn(SocketAddr),
    ) -> anyhow::Result<Option<Self>> {
        let (Some(storage), Some(server), Some(topics)) =
            (tools::find("kafka-storage")?, tools::find("kafka-server")?, tools::find("kafka-topics")?)
        else {
            return Ok(None);
        };
        let folder = tempfile::Builder::new().prefix("verbatim-kafka-").tempdir()?;
        let controller = free_address()?;
        let brokers = (1..=brokers)
            .map(|id| Ok(Broker { id, address: free_address()?, child: None }))
            .collect::<anyhow::Result<Vec<_>>>()?;
        brokers.first().into_iter().for_each(|first| known(first.address));
        let mut kafka = Self { server, brokers, folder };
        kafka.format(&storage, controller, settings)?;
        let ids = 1..=kafka.brokers.len();
        ids.clone().try_for_each(|id| kafka.spawn(id))?;
        ids.clone().try_for_each(|id| kafka.wait_until_ready(id))?;
        // Answered only once the controller knows a broker.
        topics.succeed(&["--bootstrap-server", &kafka.bootstrap(), "--list"])?;
        Ok(Some(kafka))
    }

    /// Where they listen, for command lines.
    pub fn bootstrap(&self) -> String {
        let addresses: Vec<String> = self.brokers.iter().map(|broker| broker.address.to_string()).collect();
        addresses.join(",")
    }

    /// Where each listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.brokers.iter().map(|broker| broker.address).collect()
    }

    /// The first broker's data folder.
    pub fn data(&self) -> PathBuf {
        self.data_of(1)
    }

    /// A broker's data folder.
    pub fn data_of(&self, id: usize) -> PathBuf {
        self.folder.path().join(format!("data-{id}"))
    }

    /// What the brokers have printed so far.
    pub fn log(&self) -> String {
        self.brokers.iter().fold(String::new(), |mut text, broker| {
            // A string takes everything.
            let _ = write!(text, "broker {}\n{}", broker.id, self.log_of(broker.id));
            text
        })
    }

    /// Stops a broker as an operator does (SIGTERM): it hands over what it leads first.
    ///
    /// # Errors
    /// If it does not run, or does not end in time.
    pub fn stop(&mut self, id: usize) -> anyhow::Result<()> {
        let mut child = self.broker(id)?.child.take().context("it does not run")?;
        kill_process(Pid::from_child(&child), Signal::TERM)?;
        run::wait(&mut child, PATIENCE).with_context(|| self.log_of(id))?;
        Ok(())
    }

    /// Kills a broker with SIGKILL.
    ///
    /// # Errors
    /// If it does not run.
    pub fn kill(&mut self, id: usize) -> anyhow::Result<()> {
        let mut child = self.broker(id)?.child.take().context("it does not run")?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Starts a broker that was stopped or killed, at its old address and with its old data, and waits until it answers.
    ///
    /// # Errors
    /// With its log, if it does not start.
    pub fn start_again(&mut self, id: usize) -> anyhow::Result<()> {
        self.spawn(id)?;
        self.wait_until_ready(id)
    }

    fn broker(&mut self, id: usize) -> anyhow::Result<&mut Broker> {
        self.brokers.iter_mut().find(|broker| broker.id == id).with_context(|| format!("no broker {id}"))
    }

    fn log_of(&self, id: usize) -> String {
        fs::read_to_string(self.folder.path().join(format!("broker-{id}.log"))).unwrap_or_default()
    }

    fn properties_of(&self, id: usize) -> PathBuf {
        self.folder.path().join(format!("broker-{id}.properties"))
    }

    fn format(&self, storage: &Tool, controller: SocketAddr, settings: &[&str]) -> anyhow::Result<()> {
        for broker in &self.brokers {
            fs::write(self.properties_of(broker.id), self.properties(broker, controller, settings))?;
        }
        thread::scope(|scope| {
            let format = |broker: &Broker| {
                let properties = self.properties_of(broker.id).display().to_string();
                storage.succeed(&["format", "--cluster-id", CLUSTER_ID, "--config", &properties]).map(drop)
            };
            let formats: Vec<_> =
                self.brokers.iter().map(|broker| scope.spawn(move || format(broker))).collect();
            let ended = |format: thread::ScopedJoinHandle<'_, _>| {
                format.join().unwrap_or_else(|_| Err(anyhow::anyhow!("formatting panicked")))
            };
            formats.into_iter().try_for_each(ended)
        })
    }

    fn properties(&self, broker: &Broker, controller: SocketAddr, settings: &[&str]) -> String {
        let (id, address, data) = (broker.id, broker.address, self.data_of(broker.id));
        let replicas = self.brokers.len().min(3);
        let (role, also) = if id == 1 {
            ("broker,controller", format!(",CONTROLLER://{controller}"))
        } else {
            ("broker", String::new())
        };
        format!(
            "process.roles={role}\n\
             node.id={id}\n\
             controller.quorum.voters=1@{controller}\n\
             controller.listener.names=CONTROLLER\n\
             listeners=PLAINTEXT://{address}{also}\n\
             log.dirs={data}\n\
             offsets.topic.replication.factor={replicas}\n\
             transaction.state.log.replication.factor={replicas}\n\
             transaction.state.log.min.isr=1\n\
             group.initial.rebalance.delay.ms=0\n\
             {}\n",
            settings.join("\n"),
            data = data.display()
        )
    }

    fn spawn(&mut self, id: usize) -> anyhow::Result<()> {
        let log = self.folder.path().join(format!("broker-{id}.log"));
        let log = File::options().append(true).create(true).open(log)?;
        let mut command = Command::new(self.server.program());
        command.arg(self.properties_of(id)).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        self.broker(id)?.child = Some(child);
        Ok(())
    }

    fn wait_until_ready(&mut self, id: usize) -> anyhow::Result<()> {
        crate::wait_for("answer of the broker", PATIENCE, || {
            let broker = self.broker(id)?;
            let address = broker.address;
            let ended = broker.child.as_mut().context("it was not started")?.try_wait()?.is_some();
            ensure!(!ended, "broker {id} ended\n{}", self.log_of(id));
            Ok(TcpStream::connect(address).ok().map(drop))
        })
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        for child in self.brokers.iter_mut().filter_map(|broker| broker.child.as_mut()) {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
