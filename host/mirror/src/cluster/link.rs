//! One connection to one address, made when it is needed and made anew when it was lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use verbatim_wire::client::{ClientConfig, ClientError, Connection};

use super::types::ClusterConfig;

/// A broker's address and the connection to it.
#[derive(Debug)]
pub(super) struct Link {
    address: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// After a failure: until when nobody connects, the pause that was, and why.
    failed: Option<Failed>,
}

#[derive(Debug)]
struct Failed {
    until: Instant,
    pause: Duration,
    reason: String,
}

impl Link {
    pub(super) fn new(address: String) -> Self {
        Self { address, state: Mutex::default() }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// True if a connection stands and nobody is just making one.
    pub(super) fn is_up(&self) -> bool {
        let state = self.state.try_lock();
        state.is_ok_and(|state| state.connection.as_ref().is_some_and(|connection| !connection.is_closed()))
    }

    /// The connection. Everybody who asks waits for the same attempt; for a while after it failed nobody makes another.
    pub(super) async fn connection(&self, config: &ClusterConfig) -> Result<Arc<Connection>, ClientError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        state.connection = None;
        if let Some(failed) = state.failed.as_ref().filter(|failed| failed.until > Instant::now()) {
            return Err(ClientError::Closed { reason: failed.reason.clone() });
        }
        match self.dial(config.client.clone()).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *state = State { connection: Some(Arc::clone(&connection)), failed: None };
                Ok(connection)
            }
            Err(error) => {
                let pause = state.failed.as_ref().map_or(config.pause_min, |failed| failed.pause * 2);
                let pause = pause.min(config.pause_max);
                let reason = format!("{}: {error}", self.address);
                state.failed = Some(Failed { until: Instant::now() + pause, pause, reason });
                Err(error)
            }
        }
    }

    /// A connection of one's own.
    pub(super) async fn dial(&self, config: ClientConfig) -> Result<Connection, ClientError> {
        Connection::connect(self.address.as_str(), config).await
    }

    /// Forgets a connection over which an answer did not come in time; whoever still waits for one of its answers may.
    pub(super) async fn forget(&self, connection: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|held| Arc::ptr_eq(held, connection)) {
            state.connection = None;
        }
    }

    /// Closes the connection once nobody uses it any more.
    pub(super) async fn close(&self) {
        self.state.lock().await.connection = None;
    }
}
