//! A broker's task: one connection asks at once for what has data, another waits for what has none.
//!
//! Kafka answers the requests of one connection one after the other, so a request that waits would hold up all behind it; that is
//! why there are two. What runs dry while the other request waits is looked at again every tenth of the wait, so that nothing
//! waits for a wait that began before it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use verbatim_wire::client::{ClientError, Connection};

use super::board::Picked;
use super::exchange::{Answer, Ask, Terms, exchange};
use super::room;
use super::shared::Shared;
use crate::cluster::Fault;

/// How long a broker that leads nothing any more keeps its connections.
const LINGER: Duration = Duration::from_secs(10);
/// The least that an answer may be asked to hold.
const ANSWER_MIN: usize = 64 * 1024;
/// Bytes of an answer that is waited for: it brings the first data of partitions that had none. Its room lies idle while it is
/// waited for, so it is a small part of all.
const COLD_BYTES: usize = 256 * 1024;
const COLD_PART: usize = 8;
/// Where there is no room, pieces that were not taken for so long are dropped.
const PARK_AFTER: Duration = Duration::from_millis(500);
/// The shortest time between two looks at partitions that have no data.
const LOOK_MIN: Duration = Duration::from_millis(10);

/// Starts a broker's task; the board has the broker already.
pub(super) fn start(shared: &Arc<Shared>, node: i32) {
    let task = Arc::clone(shared);
    shared.spawn(async move {
        let (hot, cold) = (Lane::new(&task, node), Lane::new(&task, node));
        tokio::select! {
            () = hot.ask_at_once() => {}
            () = cold.wait_for_data() => {}
            () = unused(&task, node) => {}
        }
    });
}

/// Returns once the broker is not needed any more and off the board.
async fn unused(shared: &Shared, node: i32) {
    loop {
        sleep(LINGER).await;
        let mut board = shared.board();
        if board.is_unused(node) {
            board.nodes.remove(&node);
            return;
        }
    }
}

/// One connection and what is asked over it.
struct Lane {
    shared: Arc<Shared>,
    node: i32,
    connection: Option<Connection>,
}

impl Lane {
    fn new(shared: &Arc<Shared>, node: i32) -> Self {
        Self { shared: Arc::clone(shared), node, connection: None }
    }

    async fn ask_at_once(mut self) {
        let Some(wake) = self.wake(|node| &node.wake_hot) else { return };
        let look = (self.shared.config.wait_max / 10).max(LOOK_MIN);
        loop {
            let bytes_max = self.shared.config.partition_bytes_max;
            let Picked { asks, is_alone } = self.shared.board().pick_hot(self.node, bytes_max, look);
            if asks.is_empty() {
                let look_at = self.shared.board().look_at(self.node);
                tokio::select! {
                    () = wake.notified() => {}
                    () = until(look_at) => {}
                }
                continue;
            }
            let sum = asks.iter().fold(0_usize, |sum, ask| sum.saturating_add(ask.bytes_max));
            let largest = asks.iter().map(|ask| ask.bytes_max).max().unwrap_or(0);
            let bytes = sum.min(self.answer_bytes().max(if is_alone { largest } else { 0 })).max(1);
            self.ask(asks, Duration::ZERO, i32::from(!is_alone), bytes, is_alone).await;
        }
    }

    async fn wait_for_data(mut self) {
        let Some(wake) = self.wake(|node| &node.wake_cold) else { return };
        loop {
            let brokers = self.shared.board().nodes.len().max(1);
            let part = self.shared.config.buffered_bytes_max / brokers.saturating_mul(COLD_PART);
            // Where there is next to no room it asks for one batch without any.
            let bytes = room::rounded_down(self.answer_bytes().min(COLD_BYTES).min(part));
            let bytes_max = self.shared.config.partition_bytes_max.min(bytes.max(1));
            let asks = self.shared.board().pick_cold(self.node, bytes_max);
            if asks.is_empty() {
                wake.notified().await;
                continue;
            }
            let wait = self.shared.config.wait_max;
            self.ask(asks, wait, 1, bytes, false).await;
            self.shared.board().waited(self.node);
        }
    }

    fn wake(&self, of: impl Fn(&super::board::Node) -> &Arc<Notify>) -> Option<Arc<Notify>> {
        self.shared.board().nodes.get(&self.node).map(|node| Arc::clone(of(node)))
    }

    /// Bytes to ask one broker for at once: all brokers together take half of the room at most.
    fn answer_bytes(&self) -> usize {
        let config = &self.shared.config;
        let brokers = self.shared.board().nodes.len().max(1);
        let part = config.buffered_bytes_max / brokers.saturating_mul(2);
        config.answer_bytes_max.min(part.max(ANSWER_MIN)).max(1)
    }

    /// One request and what becomes of it.
    async fn ask(&mut self, asks: Vec<Ask>, wait: Duration, bytes_min: i32, bytes: usize, is_alone: bool) {
        let room = self.room(bytes).await;
        self.keep_quiet().await;
        // One batch comes in any case.
        let bytes_max = bytes.min(room.bytes()).max(1);
        let terms = Terms { wait, bytes_min, bytes_max, read_committed: self.shared.read_committed };
        match self.exchange(&asks, terms).await {
            Ok(answer) => self.shared.settle(self.node, asks, answer, room, bytes_max, is_alone),
            Err(fault) => self.shared.unanswered(asks, fault),
        }
    }

    /// Waits for room. Readers that do not come for their pieces do not keep others from theirs.
    async fn room(&self, bytes: usize) -> room::Reserved {
        let mut reserved = std::pin::pin!(self.shared.rooms.reserve(bytes));
        loop {
            tokio::select! {
                room = &mut reserved => return room,
                () = sleep(PARK_AFTER) => self.shared.board().park(PARK_AFTER),
            }
        }
    }

    /// Waits while the broker has asked for silence.
    async fn keep_quiet(&self) {
        loop {
            let until = self.shared.board().quiet_until(self.node).filter(|at| *at > Instant::now());
            let Some(until) = until else { return };
            sleep_until(until).await;
        }
    }

    async fn exchange(&mut self, asks: &[Ask], terms: Terms) -> Result<Answer, Fault> {
        let connection = match self.connection.take().filter(|connection| !connection.is_closed()) {
            Some(connection) => connection,
            None => {
                let mut config = self.shared.cluster.config().client.clone();
                config.answer_max = config.answer_max.saturating_add(self.shared.config.wait_max);
                self.shared.cluster.dial(self.node, config).await?
            }
        };
        let answer = exchange(&connection, asks, terms).await;
        // After a failure nothing else is asked over this connection.
        if !matches!(
            answer,
            Err(ClientError::Timeout { .. } | ClientError::Closed { .. } | ClientError::Response(_))
        ) {
            self.connection = Some(connection);
        }
        Ok(answer?)
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
