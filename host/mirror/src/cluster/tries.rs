//! What went wrong with a question, and whether it is asked again.

use std::time::Duration;

use verbatim_wire::ErrorCode;
use verbatim_wire::client::ClientError;
use verbatim_wire::error::describe;

use super::types::{ClusterConfig, ClusterError};

/// How often a cluster may say that something is not there before it is believed: a broker that has just started says so
/// of everything.
const UNKNOWN_LOOKS: u32 = 4;

/// Codes of Kafka's that pass and that no Verbatim host answers with: REPLICA_NOT_AVAILABLE, NETWORK_EXCEPTION,
/// LISTENER_NOT_FOUND.
const PASSING: &[i16] = &[9, 13, 72];

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It may pass; in words.
    Passing(String),
    /// The cluster says that it is not there; what.
    Unknown(String),
    /// It does not pass.
    Final(ClusterError),
}

impl Fault {
    /// The fault that an error code is.
    pub(crate) fn of_code(what: &str, code: i16) -> Self {
        if matches!(
            ErrorCode::from_number(code),
            Some(ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId)
        ) {
            return Self::Unknown(format!("{what}: {}", describe(code)));
        }
        if is_passing(code) {
            return Self::Passing(describe(code));
        }
        Self::Final(ClusterError::Refused { what: what.to_owned(), code })
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Connect(_) | ClientError::Timeout { .. } | ClientError::Closed { .. } => {
                Self::Passing(error.to_string())
            }
            ClientError::Refused { code } if is_passing(code) => Self::Passing(error.to_string()),
            ClientError::Encode(_)
            | ClientError::Response(_)
            | ClientError::Refused { .. }
            | ClientError::NoVersion { .. }
            | ClientError::UnknownApi(_) => Self::Final(ClusterError::Unsupported(error)),
        }
    }
}

/// True if asking again may help.
pub(crate) fn is_passing(code: i16) -> bool {
    ErrorCode::from_number(code).is_some_and(ErrorCode::is_retriable) || PASSING.contains(&code)
}

/// The attempts of one question.
#[derive(Debug)]
pub(crate) struct Tries<'a> {
    config: &'a ClusterConfig,
    what: String,
    failures: u32,
    unknown: u32,
    pause: Duration,
}

impl<'a> Tries<'a> {
    pub(crate) fn new(config: &'a ClusterConfig, what: String) -> Self {
        Self { config, what, failures: 0, unknown: 0, pause: config.pause_min }
    }

    /// True if nothing has failed yet: what is known of leaders will do.
    pub(crate) fn is_first(&self) -> bool {
        self.failures == 0
    }

    /// Takes a failure: pauses if the question is to be asked again.
    ///
    /// # Errors
    /// What the question has failed with for good.
    pub(crate) async fn failed(&mut self, fault: Fault) -> Result<(), ClusterError> {
        self.failures = self.failures.saturating_add(1);
        match fault {
            Fault::Final(error) => return Err(error),
            Fault::Unknown(what) => {
                self.unknown = self.unknown.saturating_add(1);
                if self.unknown >= UNKNOWN_LOOKS.min(self.config.attempts_max) {
                    return Err(ClusterError::Unknown(what));
                }
            }
            Fault::Passing(last) => {
                self.unknown = 0;
                if self.failures >= self.config.attempts_max {
                    let (what, attempts) = (self.what.clone(), self.failures);
                    return Err(ClusterError::Unavailable { what, attempts, last });
                }
            }
        }
        tokio::time::sleep(self.pause).await;
        self.pause = self.pause.saturating_mul(2).min(self.config.pause_max);
        Ok(())
    }
}
