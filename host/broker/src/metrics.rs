//! What a host counts of itself, and how it is shown: `/metrics`, `/healthz`, `/readyz`.
//!
//! [`FAMILIES`] is the one list of what there is; `collect` writes it as text when somebody asks, `http` is the listener,
//! `health` the two answers about the host's state.
//!
//! **Cost.** Nothing is locked and nothing allocated where requests are counted. An append thread has a `ThreadMetrics` of
//! its own, which nobody else writes; what connections count is atomic. Labels are places in arrays, by code, reason or kind;
//! names are put to them only when the text is made.
//!
//! **More.** A program that does other things beside the host, such as mirroring into it, has its metrics shown on the same
//! page: it gives [`More`] to [`Broker::add_metrics`](crate::Broker::add_metrics). One that is no host has an [`Endpoint`]
//! of its own.
//!
//! **Bounds.** Labels come from lists that are compiled in, but for the partitions' topics: of those no more than
//! [`Limits::metrics_partitions_max`](crate::Limits) partitions are shown, and the text says how many are left out.

mod cells;
mod codes;
mod collect;
mod families;
mod health;
mod http;
mod process;
mod requests;
mod thread;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use verbatim_wire::server::{Event, RefusedBy};
use verbatim_wire::{APIS, ApiKey};

use self::cells::{Cell, Count};
pub use self::collect::{More, Out, Series};
pub use self::families::{FAMILIES, Family, Kind};
pub use self::http::Endpoint;
pub(crate) use self::http::plain_text as text;
use self::requests::ApiMetrics;
pub(crate) use self::requests::Watch;
pub(crate) use self::thread::{ThreadMetrics, Work};

/// Everything that is counted.
pub(crate) struct Metrics {
    started: Instant,
    started_at: SystemTime,
    /// Every partition was tried to be opened.
    opened: AtomicBool,
    apis: Vec<ApiMetrics>,
    threads: Vec<Arc<ThreadMetrics>>,
    connections: Count,
    connections_closed: Count,
    refused_all: Count,
    refused_from_address: Count,
    gave_way: Count,
    retention_segments: Count,
    retention_bytes: Count,
    more: Mutex<Vec<Arc<dyn More>>>,
}

impl Metrics {
    /// For a host of so many append threads that starts now.
    pub(crate) fn new(threads: usize) -> Self {
        let started = Instant::now();
        Self {
            started,
            started_at: SystemTime::now(),
            opened: AtomicBool::new(false),
            apis: APIS.iter().map(|_| ApiMetrics::default()).collect(),
            threads: (0..threads).map(|_| Arc::new(ThreadMetrics::new(started))).collect(),
            connections: Count::default(),
            connections_closed: Count::default(),
            refused_all: Count::default(),
            refused_from_address: Count::default(),
            gave_way: Count::default(),
            retention_segments: Count::default(),
            retention_bytes: Count::default(),
            more: Mutex::default(),
        }
    }

    /// Shows these, too.
    pub(crate) fn add(&self, more: Arc<dyn More>) {
        self.more.lock().unwrap_or_else(PoisonError::into_inner).push(more);
    }

    fn more(&self) -> Vec<Arc<dyn More>> {
        self.more.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the append thread of this number counts.
    pub(crate) fn thread(&self, index: usize) -> Arc<ThreadMetrics> {
        // There is one for each; a thread without would count for itself alone.
        self.threads.get(index).map_or_else(|| Arc::new(ThreadMetrics::new(self.started)), Arc::clone)
    }

    /// The server tells something.
    pub(crate) fn observe(&self, event: Event) {
        match event {
            Event::Opened => self.connections.add(1),
            Event::Closed => self.connections_closed.add(1),
            Event::Refused(RefusedBy::All) => self.refused_all.add(1),
            Event::Refused(RefusedBy::FromAddress) => self.refused_from_address.add(1),
            Event::Refused(RefusedBy::GaveWay) => self.gave_way.add(1),
            Event::Received { key, bytes } => self.api(key, |api| api.received.add(wide(bytes))),
            Event::Sent { key, bytes } => self.api(key, |api| api.sent.add(wide(bytes))),
        }
    }

    /// Retention removed segments.
    pub(crate) fn retention_removed(&self, segments: usize, bytes: u64) {
        self.retention_segments.add(wide(segments));
        self.retention_bytes.add(bytes);
    }

    /// All partitions that can be opened are open.
    pub(crate) fn set_opened(&self) {
        self.opened.store(true, Ordering::Release);
    }

    fn is_opened(&self) -> bool {
        self.opened.load(Ordering::Acquire)
    }

    fn api(&self, key: ApiKey, count: impl FnOnce(&ApiMetrics)) {
        // `APIS` is in the order of the keys.
        if let Some(api) = self.apis.get(key as usize) {
            count(api);
        }
    }

    /// Seconds since 1970.
    fn started_at_seconds(&self) -> f64 {
        self.started_at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_is_found_by_its_key() {
        for (index, api) in APIS.iter().enumerate() {
            assert_eq!(api.key as usize, index);
        }
    }
}
