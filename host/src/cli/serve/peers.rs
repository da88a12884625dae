//! Flags that bound what peers may take.

use clap::Args;
use verbatim::broker::Limits;

use super::super::file;

#[derive(Debug, Args)]
pub(super) struct Peers {
    /// Connections at a time [default: 1000]
    #[arg(long, env = "VERBATIM_CONNECTIONS_MAX", value_name = "N")]
    connections_max: Option<usize>,
    /// Connections at a time from one address [default: 2147483647]
    #[arg(long, env = "VERBATIM_CONNECTIONS_PER_IP_MAX", value_name = "N")]
    connections_per_ip_max: Option<usize>,
    /// Largest request; a larger one closes its connection [default: 104857600]
    #[arg(long, env = "VERBATIM_REQUEST_BYTES_MAX", value_name = "BYTES")]
    request_bytes_max: Option<usize>,
    /// Unanswered requests of a connection; then it is not read from [default: 64]
    #[arg(long, env = "VERBATIM_IN_FLIGHT_REQUESTS_PER_CONNECTION_MAX", value_name = "N")]
    in_flight_requests_per_connection_max: Option<usize>,
    /// Bytes of a connection's unanswered requests; then it is not read from [default: 134217728]
    #[arg(long, env = "VERBATIM_IN_FLIGHT_BYTES_PER_CONNECTION_MAX", value_name = "BYTES")]
    in_flight_bytes_per_connection_max: Option<usize>,
    /// Bytes of all unanswered requests, and of answers that are not taken [default: 268435456]
    #[arg(long, env = "VERBATIM_IN_FLIGHT_BYTES_MAX", value_name = "BYTES")]
    in_flight_bytes_max: Option<usize>,
    /// Bytes of records on their way to readers [default: 268435456]
    #[arg(long, env = "VERBATIM_FETCH_BUFFERED_BYTES_MAX", value_name = "BYTES")]
    fetch_buffered_bytes_max: Option<usize>,
    /// Fetch sessions at a time; who finds none is served without one [default: 1000]
    #[arg(long, env = "VERBATIM_FETCH_SESSIONS_MAX", value_name = "N")]
    fetch_sessions_max: Option<usize>,
    /// Partitions of all fetch sessions together [default: 200000]
    #[arg(long, env = "VERBATIM_FETCH_SESSION_PARTITIONS_MAX", value_name = "N")]
    fetch_session_partitions_max: Option<usize>,
    /// Time until a new connection's first request must be there [default: 10000]
    #[arg(long, env = "VERBATIM_HANDSHAKE_MS_MAX", value_name = "MS")]
    handshake_ms_max: Option<u64>,
    /// Time that a connection may be silent while nothing is asked [default: 600000]
    #[arg(long, env = "VERBATIM_IDLE_MS_MAX", value_name = "MS")]
    idle_ms_max: Option<u64>,
    /// Time in which a begun request or answer must move by 16 KiB or a sixteenth [default: 30000]
    #[arg(long, env = "VERBATIM_STALL_MS_MAX", value_name = "MS")]
    stall_ms_max: Option<u64>,
}

impl Peers {
    /// The limits, with defaults for what is given neither here nor in the file.
    pub(super) fn limits(&self, file: &file::Serve) -> Limits {
        let all = Limits::default();
        Limits {
            connections_max: self.connections_max.or(file.connections_max).unwrap_or(all.connections_max),
            connections_per_ip_max: self
                .connections_per_ip_max
                .or(file.connections_per_ip_max)
                .unwrap_or(all.connections_per_ip_max),
            request_bytes_max: self
                .request_bytes_max
                .or(file.request_bytes_max)
                .unwrap_or(all.request_bytes_max),
            in_flight_requests_per_connection_max: self
                .in_flight_requests_per_connection_max
                .or(file.in_flight_requests_per_connection_max)
                .unwrap_or(all.in_flight_requests_per_connection_max),
            in_flight_bytes_per_connection_max: self
                .in_flight_bytes_per_connection_max
                .or(file.in_flight_bytes_per_connection_max)
                .unwrap_or(all.in_flight_bytes_per_connection_max),
            in_flight_bytes_max: self
                .in_flight_bytes_max
                .or(file.in_flight_bytes_max)
                .unwrap_or(all.in_flight_bytes_max),
            fetch_buffered_bytes_max: self
                .fetch_buffered_bytes_max
                .or(file.fetch_buffered_bytes_max)
                .unwrap_or(all.fetch_buffered_bytes_max),
            fetch_sessions_max: self
                .fetch_sessions_max
                .or(file.fetch_sessions_max)
                .unwrap_or(all.fetch_sessions_max),
            fetch_session_partitions_max: self
                .fetch_session_partitions_max
                .or(file.fetch_session_partitions_max)
                .unwrap_or(all.fetch_session_partitions_max),
            handshake_ms_max: self.handshake_ms_max.or(file.handshake_ms_max).unwrap_or(all.handshake_ms_max),
            idle_ms_max: self.idle_ms_max.or(file.idle_ms_max).unwrap_or(all.idle_ms_max),
            stall_ms_max: self.stall_ms_max.or(file.stall_ms_max).unwrap_or(all.stall_ms_max),
            ..all
        }
    }
}
