//! Apache Kafka itself: one broker in KRaft mode, on loopback, with its data in a temporary folder.

use crate::host::free_address;
use crate::tools;
use anyhow::{Context, ensure};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A running broker. Dropping it kills it.
#[derive(Debug)]
pub struct Kafka {
    child: Child,
    folder: TempDir,
    address: SocketAddr,
}

impl Kafka {
    /// Formats a data folder, starts a broker and waits until it answers. `None` without Kafka (see [`tools::find`]).
    ///
    /// # Errors
    /// With the broker's log, if it does not start.
    pub fn start() -> anyhow::Result<Option<Self>> {
        let (Some(storage), Some(server), Some(topics)) =
            (tools::find("kafka-storage")?, tools::find("kafka-server")?, tools::find("kafka-topics")?)
        else {
            return Ok(None);
        };
        let folder = tempfile::Builder::new().prefix("verbatim-kafka-").tempdir()?;
        let (address, controller) = (free_address()?, free_address()?);
        let properties = folder.path().join("server.properties");
        let data = folder.path().join("data");
        fs::write(&properties, properties_text(address, controller, &data.display().to_string()))?;
        let properties = properties.display().to_string();
        let id = storage.succeed(&["random-uuid"])?;
        storage.succeed(&["format", "--cluster-id", id.trim(), "--config", &properties])?;

        let log = File::create(folder.path().join("broker.log"))?;
        let mut command = Command::new(server.program());
        command.arg(&properties).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let mut kafka = Self { child, folder, address };
        crate::wait_for("answer of the broker", Duration::from_secs(60), || {
            ensure!(kafka.child.try_wait()?.is_none(), "the broker ended\n{}", kafka.log());
            Ok(std::net::TcpStream::connect(address).ok().map(drop))
        })?;
        topics.succeed(&["--bootstrap-server", &kafka.bootstrap(), "--list"])?;
        Ok(Some(kafka))
    }

    /// Where it listens, for command lines.
    pub fn bootstrap(&self) -> String {
        self.address.to_string()
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What it has printed so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("broker.log")).unwrap_or_default()
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn properties_text(address: SocketAddr, controller: SocketAddr, data: &str) -> String {
    format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@{controller}\n\
         controller.listener.names=CONTROLLER\n\
         listeners=PLAINTEXT://{address},CONTROLLER://{controller}\n\
         log.dirs={data}\n\
         offsets.topic.replication.factor=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         group.initial.rebalance.delay.ms=0\n"
    )
}
