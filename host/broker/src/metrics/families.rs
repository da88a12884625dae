//! The list of all metrics: name, type, labels, meaning. The text and the table in docs/OPERATIONS.md are made from it.
//!
//! Names are Prometheus's: base units, the unit in the name, `_total` for what only grows. A label's values are few and
//! known, but for topics.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// One metric, with as many series as its labels have values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// Its name as it is looked for, unit and `_total` included.
    pub name: &'static str,
    /// What kind of numbers it has.
    pub kind: Kind,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it tells, in a sentence.
    pub help: &'static str,
}

/// What kind of numbers a metric has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, and begins anew with the process.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How often something fell into each of some buckets, with sum and count.
    Histogram,
}

impl Kind {
    /// The type's name in the text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }

    pub(super) const fn metric_type(self) -> MetricType {
        match self {
            Self::Counter => MetricType::Counter,
            Self::Gauge => MetricType::Gauge,
            Self::Histogram => MetricType::Histogram,
        }
    }
}

impl Family {
    /// The base unit in the name; empty for plain numbers.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        let stem = self.name.strip_suffix("_total").unwrap_or(self.name);
        ["seconds", "bytes"].into_iter().find(|unit| stem.ends_with(unit)).unwrap_or_default()
    }

    /// Name without suffixes, and unit, as the encoder wants them.
    pub(super) fn parts(&self) -> (&'static str, Option<Unit>) {
        let stem = match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Kind::Gauge | Kind::Histogram => self.name,
        };
        match (stem.strip_suffix("_seconds"), stem.strip_suffix("_bytes")) {
            (Some(stem), _) => (stem, Some(Unit::Seconds)),
            (_, Some(stem)) => (stem, Some(Unit::Bytes)),
            _ => (stem, None),
        }
    }
}

macro_rules! families {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) const $constant: Family =
            Family { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };)*

        /// Every metric, in the order of the text.
        pub const FAMILIES: &[Family] = &[$($constant,)*];
    };
}

families! {
    REQUESTS = Counter "verbatim_requests_total" ["api", "error"]
        "Requests by what was answered: NONE if nothing in the answer failed, else each error code in it once.";
    REQUEST_DURATION = Histogram "verbatim_request_duration_seconds" ["api"]
        "Time from taking a request in until its answer is made, waiting for new data and throttling by others included.";
    RECEIVED = Counter "verbatim_received_bytes_total" ["api"] "Bytes of requests.";
    SENT = Counter "verbatim_sent_bytes_total" ["api"] "Bytes of answers.";
    CONNECTIONS = Gauge "verbatim_connections" [] "Open connections.";
    CONNECTIONS_TAKEN = Counter "verbatim_connections_taken_total" [] "Connections that were let in.";
    CONNECTIONS_REFUSED = Counter "verbatim_connections_refused_total" ["reason"]
        "Connections that were not let in (connections-max, connections-per-ip-max) or had to go before their first request (gave-way).";
    IN_FLIGHT = Gauge "verbatim_in_flight_bytes" []
        "Bytes of requests and answers under way beyond the first 16 KiB of each connection.";
    APPENDED_RECORDS = Counter "verbatim_appended_records_total" ["mode"]
        "Records that were appended, by the topic's mode: exact or normal.";
    APPENDED_BATCHES = Counter "verbatim_appended_batches_total" ["mode"] "Batches that were appended.";
    APPENDED = Counter "verbatim_appended_bytes_total" ["mode"] "Bytes of batches that were appended.";
    REFUSALS = Counter "verbatim_refusals_total" ["reason"]
        "Partitions' parts of Produce requests that were refused, by the contract's reason; a module's own is other.";
    MODULE_FAILURES = Counter "verbatim_module_failures_total" ["kind"]
        "Failures of a module: trap, deadline, memory, invariant, start; poisoned is a part refused because of three before.";
    JUDGING_DURATION = Histogram "verbatim_judging_duration_seconds" []
        "Time from taking a partition's part of a Produce request until its module's verdict.";
    BATCHES_PER_CALL = Histogram "verbatim_batches_per_call" [] "Batches that one call of a module judged.";
    QUEUE_WAIT = Histogram "verbatim_append_queue_wait_seconds" []
        "Time that a partition's part of a Produce request waited for its append thread.";
    FLUSH_DURATION = Histogram "verbatim_flush_duration_seconds" [] "Time of making one partition's writes durable.";
    GROUP_SIZE = Histogram "verbatim_group_commit_requests" []
        "Partitions' parts of Produce requests that were answered after the same flush.";
    RETENTION_SEGMENTS = Counter "verbatim_retention_removed_segments_total" [] "Segments that retention removed.";
    RETENTION = Counter "verbatim_retention_removed_bytes_total" [] "Bytes of segments that retention removed.";
    PARTITIONS = Gauge "verbatim_partitions" [] "Partitions that there are.";
    PARTITIONS_OFFLINE = Gauge "verbatim_partitions_offline" [] "Partitions that cannot be read or written.";
    PARTITIONS_LEFT_OUT = Gauge "verbatim_partitions_left_out" []
        "Partitions that are not shown one by one below, because there are too many.";
    PARTITION_ONLINE = Gauge "verbatim_partition_online" ["topic", "partition"]
        "1 if the partition can be read and written, else 0.";
    LOG_START_OFFSET = Gauge "verbatim_log_start_offset" ["topic", "partition"] "Log start offset.";
    LOG_END_OFFSET = Gauge "verbatim_log_end_offset" ["topic", "partition"] "Log end offset.";
    HIGH_WATERMARK = Gauge "verbatim_high_watermark" ["topic", "partition"]
        "End of what is kept as the flush policy says, which is the end for readers.";
    LAST_STABLE_OFFSET = Gauge "verbatim_last_stable_offset" ["topic", "partition"]
        "First offset of the first open transaction, else the high watermark.";
    SHOWN_LEADER_EPOCH = Gauge "verbatim_shown_leader_epoch" ["topic", "partition"]
        "Leader epoch that clients are shown; -1 for none.";
    SOURCE_END_OFFSET = Gauge "verbatim_source_end_offset" ["topic", "partition"]
        "End that the source of an exact partition last declared; less the log end offset it is the lag.";
    LOG_SEGMENTS = Gauge "verbatim_log_segments" ["topic", "partition"] "Segments.";
    LOG_SIZE = Gauge "verbatim_log_size_bytes" ["topic", "partition"] "Bytes of all segments.";
    BUILD_INFO = Gauge "verbatim_build_info" ["version"] "1, with the version.";
    START_TIME = Gauge "process_start_time_seconds" [] "When the host was started, since 1970.";
    OPEN_FILES = Gauge "process_open_fds" [] "Open files and sockets; Linux only.";
    OPEN_FILES_MAX = Gauge "process_max_fds" [] "How many there may be; Linux only.";
    MEMORY = Gauge "process_resident_memory_bytes" [] "Resident memory; Linux only.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions_and_come_once() {
        for (index, family) in FAMILIES.iter().enumerate() {
            let name = family.name;
            assert!(name.starts_with("verbatim_") || name.starts_with("process_"), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert_eq!(family.kind == Kind::Counter, name.ends_with("_total"), "{name}");
            assert!(family.help.ends_with('.') && !family.help.contains(['\n', '\\', '|']), "{name}");
            assert!(FAMILIES.iter().skip(index + 1).all(|other| other.name != name), "{name} twice");
            let (stem, unit) = family.parts();
            assert_eq!(unit.is_some(), !family.unit().is_empty(), "{name}: {stem}");
        }
    }
}
