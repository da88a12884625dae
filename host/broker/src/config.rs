//! The host's own settings, as opposed to a topic's.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use verbatim_wire::server::{self, ConfigError};

use crate::throttle;

/// The longest string that older versions of OffsetFetch can tell.
const METADATA_BYTES_MAX: usize = 32_767;

/// When an append counts as kept, which is when it is acknowledged and may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FlushPolicy {
    /// Once it is on the disk; one flush serves all requests that are waiting (group commit).
    Always,
    /// Once it is written; the disk is flushed every [`Config::flush_interval`].
    Interval,
    /// Once it is written; the operating system decides when it reaches the disk.
    Never,
}

/// Everything a host is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Folder of all partitions and of the catalogue; created if it is not there.
    pub data: PathBuf,
    /// Where connections are taken; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Host and port that clients are told; the listening address if not given.
    pub advertise: Option<(String, u16)>,
    /// This node's id.
    pub node_id: i32,
    /// Where `/metrics`, `/healthz` and `/readyz` are answered over HTTP; nowhere if not given.
    pub metrics_listen: Option<SocketAddr>,
    /// When an append counts as kept.
    pub flush: FlushPolicy,
    /// Time between two flushes with [`FlushPolicy::Interval`].
    pub flush_interval: Duration,
    /// How long an idle producer is remembered (Kafka's `producer.id.expiration.ms`).
    pub producer_id_expiration: Duration,
    /// Time between two looks for segments that retention removes (Kafka's `log.retention.check.interval.ms`);
    /// with `Duration::MAX` nobody looks.
    pub retention_check_interval: Duration,
    /// How long the first generation of a group waits for more members (Kafka's `group.initial.rebalance.delay.ms`).
    pub group_initial_rebalance_delay: Duration,
    /// How long committed offsets are kept of a group that has no members (Kafka's `offsets.retention.minutes`).
    pub group_offsets_retention: Duration,
    /// Append threads; the number of processors if not given.
    pub append_threads: Option<usize>,
    /// What is bounded.
    pub limits: Limits,
}

impl Config {
    /// The defaults for this folder and address.
    #[must_use]
    pub fn new(data: PathBuf, listen: SocketAddr) -> Self {
        Self {
            data,
            listen,
            advertise: None,
            node_id: 1,
            metrics_listen: None,
            flush: FlushPolicy::Always,
            flush_interval: Duration::from_secs(1),
            producer_id_expiration: Duration::from_secs(86_400),
            retention_check_interval: Duration::from_secs(300),
            group_initial_rebalance_delay: Duration::from_secs(3),
            group_offsets_retention: Duration::from_secs(604_800),
            append_threads: None,
            limits: Limits::default(),
        }
    }

    /// Whether a host can run with it: intervals above 0, at least one append thread, and [`Limits::check`].
    ///
    /// # Errors
    /// [`ConfigError`], naming field, value and expectation.
    pub fn check(&self) -> Result<(), ConfigError> {
        let intervals = [
            ("flush_interval", self.flush_interval),
            ("retention_check_interval", self.retention_check_interval),
            ("group_offsets_retention", self.group_offsets_retention),
        ];
        if let Some((field, value)) = intervals.into_iter().find(|(_, interval)| interval.is_zero()) {
            return Err(ConfigError::new(field, format!("{value:?}"), "above 0"));
        }
        if let Some(threads) = self.append_threads.filter(|threads| *threads == 0) {
            return Err(ConfigError::new("append_threads", threads, "1 or more"));
        }
        self.limits.check()
    }
}

/// What is bounded, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest request in bytes.
    pub request_bytes_max: usize,
    /// Connections at a time.
    pub connections_max: usize,
    /// Connections at a time from one address (Kafka's `max.connections.per.ip`).
    pub connections_per_ip_max: usize,
    /// Unanswered requests of one connection; then it is not read from.
    pub in_flight_requests_per_connection_max: usize,
    /// Bytes of one connection's unanswered requests; then it is not read from.
    pub in_flight_bytes_per_connection_max: usize,
    /// Bytes of all connections' unanswered requests, and of answers other than Fetch that are not taken yet.
    pub in_flight_bytes_max: usize,
    /// Milliseconds until a new connection's first request must be there.
    pub handshake_ms_max: u64,
    /// Milliseconds that a connection may be silent while nothing is asked (Kafka's `connections.max.idle.ms`).
    pub idle_ms_max: u64,
    /// Milliseconds in which a peer must move 16 KiB, or a sixteenth if that is more, of a request or answer that is begun.
    pub stall_ms_max: u64,
    /// Largest batch on an exact topic in bytes (R12); a normal topic has its own `max.message.bytes`.
    pub exact_batch_bytes_max: usize,
    /// Bytes that one batch may inflate to where records are validated.
    pub inflate_bytes_max: usize,
    /// Requests waiting for one append thread.
    pub append_queue_max: usize,
    /// Bytes of records in one Fetch answer, whatever the client asks for.
    pub fetch_bytes_max: usize,
    /// Bytes of records in all Fetch answers that their readers have not taken yet; a reader for whom nothing is left gets
    /// one batch.
    pub fetch_buffered_bytes_max: usize,
    /// Longest wait of a Fetch in milliseconds, whatever the client asks for.
    pub fetch_wait_ms_max: u64,
    /// Fetch sessions (Kafka's `max.incremental.fetch.session.cache.slots`); a reader that finds no room does without.
    pub fetch_sessions_max: usize,
    /// Partitions of all fetch sessions together, some 300 bytes of memory each.
    pub fetch_session_partitions_max: usize,
    /// Consumer groups with members.
    pub groups_max: usize,
    /// Members of one group (Kafka's `group.max.size`).
    pub group_members_max: usize,
    /// Shortest session timeout of a member in milliseconds (Kafka's `group.min.session.timeout.ms`).
    pub group_session_ms_min: u64,
    /// Longest session timeout of a member in milliseconds (Kafka's `group.max.session.timeout.ms`).
    pub group_session_ms_max: u64,
    /// Bytes that the members of all groups may take: names, subscriptions, assignments.
    pub group_members_bytes_max: usize,
    /// Bytes that the committed offsets of all groups may take, some 160 each and what clients write to them.
    pub group_offsets_bytes_max: usize,
    /// Bytes that a client may write to a committed offset (Kafka's `offset.metadata.max.bytes`).
    pub group_offset_metadata_bytes_max: usize,
    /// Partitions that metrics show one by one, some 1 KiB of text each.
    pub metrics_partitions_max: usize,
    /// Milliseconds that an append thread may be at one request or flush before the host counts as not alive.
    pub append_stall_ms_max: u64,
    /// Partitions of one topic.
    pub partitions_max: u32,
    /// Longest time in milliseconds that a client is told to wait after failures of the module.
    pub throttle_ms_max: i32,
}

impl Limits {
    /// Whether times, queues and what groups may take are above 0, the shortest session is not above the longest, an offset's
    /// metadata can be told to every client, and the limits of connections fit together: the largest request into what one
    /// connection may have in flight, and that twice into what all may have.
    ///
    /// # Errors
    /// [`ConfigError`], naming field, value and expectation.
    pub fn check(&self) -> Result<(), ConfigError> {
        // Here in milliseconds and by the names that they have here; the server has other ones.
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let counts = [
            ("handshake_ms_max", self.handshake_ms_max),
            ("idle_ms_max", self.idle_ms_max),
            ("stall_ms_max", self.stall_ms_max),
            ("append_queue_max", count(self.append_queue_max)),
            ("groups_max", count(self.groups_max)),
            ("group_members_max", count(self.group_members_max)),
            ("group_session_ms_min", self.group_session_ms_min),
            ("group_members_bytes_max", count(self.group_members_bytes_max)),
            ("group_offsets_bytes_max", count(self.group_offsets_bytes_max)),
        ];
        if let Some((field, count)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(ConfigError::new(field, count, "1 or more"));
        }
        let (shortest, longest) = (self.group_session_ms_min, self.group_session_ms_max);
        if longest < shortest {
            let expected = format!("at least group_session_ms_min, {shortest}");
            return Err(ConfigError::new("group_session_ms_max", longest, expected));
        }
        if self.group_offset_metadata_bytes_max > METADATA_BYTES_MAX {
            let (bytes, expected) =
                (self.group_offset_metadata_bytes_max, format!("at most {METADATA_BYTES_MAX}"));
            return Err(ConfigError::new("group_offset_metadata_bytes_max", bytes, expected));
        }
        self.server().check()
    }

    /// Those that the server keeps.
    pub(crate) fn server(&self) -> server::Config {
        server::Config {
            connections_max: self.connections_max,
            connections_per_ip_max: self.connections_per_ip_max,
            in_flight_requests_per_connection_max: self.in_flight_requests_per_connection_max,
            request_bytes_max: self.request_bytes_max,
            in_flight_bytes_per_connection_max: self.in_flight_bytes_per_connection_max,
            in_flight_bytes_max: self.in_flight_bytes_max,
            handshake_max: Duration::from_millis(self.handshake_ms_max),
            idle_max: Duration::from_millis(self.idle_ms_max),
            stall_max: Duration::from_millis(self.stall_ms_max),
            mute_max: throttle::mute(self.throttle_ms_max),
            ..server::Config::default()
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes_max: 104_857_600,
            connections_max: 1_000,
            connections_per_ip_max: 2_147_483_647,
            in_flight_requests_per_connection_max: 64,
            in_flight_bytes_per_connection_max: 134_217_728,
            in_flight_bytes_max: 268_435_456,
            handshake_ms_max: 10_000,
            idle_ms_max: 600_000,
            stall_ms_max: 30_000,
            exact_batch_bytes_max: 67_108_864,
            inflate_bytes_max: 67_108_864,
            append_queue_max: 512,
            fetch_bytes_max: 57_671_680,
            fetch_buffered_bytes_max: 268_435_456,
            fetch_wait_ms_max: 30_000,
            fetch_sessions_max: 1_000,
            fetch_session_partitions_max: 200_000,
            groups_max: 10_000,
            group_members_max: 1_000,
            group_session_ms_min: 6_000,
            group_session_ms_max: 1_800_000,
            group_members_bytes_max: 67_108_864,
            group_offsets_bytes_max: 134_217_728,
            group_offset_metadata_bytes_max: 4_096,
            metrics_partitions_max: 20_000,
            append_stall_ms_max: 30_000,
            partitions_max: 10_000,
            throttle_ms_max: i32::try_from(verbatim_engine::MAX_THROTTLE_MS).unwrap_or(i32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_cannot_run_with_is_named() {
        let default = Config::new(PathBuf::new(), SocketAddr::from(([127, 0, 0, 1], 0)));
        assert_eq!(default.check(), Ok(()));
        let limited = |change: fn(&mut Limits)| {
            let mut config = default.clone();
            change(&mut config.limits);
            config
        };
        let cases = [
            (Config { flush_interval: Duration::ZERO, ..default.clone() }, "flush_interval must be above 0"),
            (
                Config { retention_check_interval: Duration::ZERO, ..default.clone() },
                "retention_check_interval must be above 0",
            ),
            (
                Config { group_offsets_retention: Duration::ZERO, ..default.clone() },
                "group_offsets_retention must be above 0",
            ),
            (Config { append_threads: Some(0), ..default.clone() }, "append_threads must be 1 or more"),
            (limited(|limits| limits.groups_max = 0), "groups_max must be 1 or more"),
            (limited(|limits| limits.group_members_max = 0), "group_members_max must be 1 or more"),
            (limited(|limits| limits.group_session_ms_min = 0), "group_session_ms_min must be 1 or more"),
            (
                limited(|limits| limits.group_session_ms_max = 5_999),
                "group_session_ms_max must be at least group_session_ms_min, 6000, group_session_ms_max=`5999`",
            ),
            (
                limited(|limits| limits.group_members_bytes_max = 0),
                "group_members_bytes_max must be 1 or more",
            ),
            (
                limited(|limits| limits.group_offsets_bytes_max = 0),
                "group_offsets_bytes_max must be 1 or more",
            ),
            (
                limited(|limits| limits.group_offset_metadata_bytes_max = 32_768),
                "group_offset_metadata_bytes_max must be at most 32767",
            ),
            (limited(|limits| limits.append_queue_max = 0), "append_queue_max must be 1 or more"),
            (limited(|limits| limits.handshake_ms_max = 0), "handshake_ms_max must be 1 or more"),
            (limited(|limits| limits.idle_ms_max = 0), "idle_ms_max must be 1 or more"),
            (limited(|limits| limits.stall_ms_max = 0), "stall_ms_max must be 1 or more"),
            (limited(|limits| limits.request_bytes_max = 0), "request_bytes_max must be 1 or more"),
        ];
        for (config, expected) in cases {
            let told = config.check().map_err(|error| error.to_string());
            assert!(told.as_ref().is_err_and(|told| told.starts_with(expected)), "{expected}: {told:?}");
        }
    }
}
