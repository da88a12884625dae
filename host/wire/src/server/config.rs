//! What a server is bounded by.

use std::time::Duration;

use crate::frame::FRAME_BYTES_MAX;
use crate::shape::Limits;

/// Limits of a server. [`Config::check`] says how they must fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Connections at a time. One more is taken only if another gives way that has not sent a request yet.
    pub connections_max: usize,
    /// Connections at a time from one address (Kafka's `max.connections.per.ip`).
    pub connections_per_ip_max: usize,
    /// Admitted and unanswered requests of one connection; then it is not read from.
    pub in_flight_requests_per_connection_max: usize,
    /// The largest frame taken, in bytes (Kafka's `socket.request.max.bytes`).
    pub request_bytes_max: usize,
    /// Bytes of one connection's requests that are not answered yet; then it is not read from.
    pub in_flight_bytes_per_connection_max: usize,
    /// Bytes of all connections' requests that are not answered yet, and of answers that are not taken yet, each
    /// connection's first 16 KiB left out. A connection gets no more of it than is left for the others.
    pub in_flight_bytes_max: usize,
    /// How long a new connection may take until its first request is there as a whole.
    pub handshake_max: Duration,
    /// How long a connection may be silent while nothing is asked (Kafka's `connections.max.idle.ms`).
    pub idle_max: Duration,
    /// In which time a peer must send 16 KiB of a request it began, or take as much of an answer; or a sixteenth if that is
    /// more; or the rest.
    pub stall_max: Duration,
    /// How long a request may wait for room among `in_flight_bytes_max` if its own connection holds nothing else. Short,
    /// because what is there of it holds room itself.
    pub room_wait_max: Duration,
    /// How long a connection may be muted at most, whatever the service says.
    pub mute_max: Duration,
    /// How long requests may take to finish after a shutdown was asked for.
    pub drain_max: Duration,
    /// Bounds of a single request.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connections_max: 1_000,
            connections_per_ip_max: usize::MAX,
            in_flight_requests_per_connection_max: 64,
            request_bytes_max: FRAME_BYTES_MAX,
            in_flight_bytes_per_connection_max: 128 * 1024 * 1024,
            in_flight_bytes_max: 256 * 1024 * 1024,
            handshake_max: Duration::from_secs(10),
            idle_max: Duration::from_secs(600),
            stall_max: Duration::from_secs(30),
            room_wait_max: Duration::from_secs(5),
            mute_max: Duration::from_secs(30),
            drain_max: Duration::from_secs(10),
            limits: Limits::REQUEST,
        }
    }
}

/// Limits that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {expected}, {field}=`{value}`")]
pub struct ConfigError {
    field: &'static str,
    value: String,
    expected: String,
}

impl ConfigError {
    /// A field, what it is, and what it must be, such as `1 or more`.
    pub fn new(field: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self { field, value: value.to_string(), expected: expected.into() }
    }
}

impl Config {
    /// Whether the largest request fits into what one connection may hold, and that twice into what all may hold.
    ///
    /// # Errors
    /// [`ConfigError`], naming field, value and expectation.
    pub fn check(&self) -> Result<(), ConfigError> {
        let counts = [
            ("connections_max", self.connections_max),
            ("connections_per_ip_max", self.connections_per_ip_max),
            ("in_flight_requests_per_connection_max", self.in_flight_requests_per_connection_max),
            ("request_bytes_max", self.request_bytes_max),
        ];
        let counts =
            counts.map(|(field, value)| (field, value.to_string(), value > 0, "1 or more".to_owned()));
        let waits = [
            ("handshake_max", self.handshake_max),
            ("idle_max", self.idle_max),
            ("stall_max", self.stall_max),
        ];
        let waits =
            waits.map(|(field, wait)| (field, format!("{wait:?}"), !wait.is_zero(), "above 0".to_owned()));
        let (request, own) = (self.request_bytes_max, self.in_flight_bytes_per_connection_max);
        let all = own.saturating_mul(2);
        let sizes = [
            (
                "in_flight_requests_per_connection_max",
                self.in_flight_requests_per_connection_max.to_string(),
                self.in_flight_requests_per_connection_max <= IN_FLIGHT_REQUESTS_MAX,
                format!("at most {IN_FLIGHT_REQUESTS_MAX}"),
            ),
            (
                "request_bytes_max",
                request.to_string(),
                request <= own,
                format!("at most in_flight_bytes_per_connection_max, {own}"),
            ),
            (
                "in_flight_bytes_max",
                self.in_flight_bytes_max.to_string(),
                self.in_flight_bytes_max >= all,
                format!("at least twice in_flight_bytes_per_connection_max, {all}"),
            ),
        ];
        let wrong = counts.into_iter().chain(waits).chain(sizes).find(|(_, _, fits, _)| !fits);
        match wrong {
            Some((field, value, _, expected)) => Err(ConfigError::new(field, value, expected)),
            None => Ok(()),
        }
    }
}

/// More requests of a connection under way than any client has.
const IN_FLIGHT_REQUESTS_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_do_not_fit_together_are_named() {
        let default = Config::default();
        assert_eq!(default.check(), Ok(()));
        let cases = [
            (
                Config { request_bytes_max: (1 << 27) + 1, ..default.clone() },
                "request_bytes_max must be at most in_flight_bytes_per_connection_max, 134217728, \
                 request_bytes_max=`134217729`",
            ),
            (
                Config { in_flight_bytes_max: 1, ..default.clone() },
                "in_flight_bytes_max must be at least twice in_flight_bytes_per_connection_max, 268435456, \
                 in_flight_bytes_max=`1`",
            ),
            (
                Config { connections_per_ip_max: 0, ..default.clone() },
                "connections_per_ip_max must be 1 or more, connections_per_ip_max=`0`",
            ),
            (
                Config { request_bytes_max: 0, ..default.clone() },
                "request_bytes_max must be 1 or more, request_bytes_max=`0`",
            ),
            (Config { idle_max: Duration::ZERO, ..default }, "idle_max must be above 0, idle_max=`0ns`"),
        ];
        for (config, expected) in cases {
            assert_eq!(config.check().map_err(|error| error.to_string()), Err(expected.to_owned()));
        }
    }
}
