//! What a server tells its service of beside requests, so that it can be counted.

use std::sync::Arc;

use super::account::Budget;
use super::doors;
use crate::api::ApiKey;

/// Something that happened. Told on the way, so whoever takes it should only count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A connection was let in.
    Opened,
    /// A connection that was let in is gone.
    Closed,
    /// A connection was not let in, or had to go before its first request.
    Refused(RefusedBy),
    /// A request came whole, of an API and version that are served.
    Received {
        /// Its API.
        key: ApiKey,
        /// Bytes of its frame, length included.
        bytes: usize,
    },
    /// An answer went out whole.
    Sent {
        /// Its API.
        key: ApiKey,
        /// Bytes of its frame, length included.
        bytes: usize,
    },
}

/// What a connection was refused by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedBy {
    /// [`super::Config::connections_max`].
    All,
    /// [`super::Config::connections_per_ip_max`].
    FromAddress,
    /// It had not sent a request yet when another needed its place.
    GaveWay,
}

impl From<&doors::Refused> for RefusedBy {
    fn from(refused: &doors::Refused) -> Self {
        match refused {
            doors::Refused::All(_) => Self::All,
            doors::Refused::FromAddress(_) => Self::FromAddress,
        }
    }
}

/// Shows how many bytes of [`super::Config::in_flight_bytes_max`] are drawn.
#[derive(Debug, Clone)]
pub struct InFlight {
    pub(super) budget: Arc<Budget>,
    pub(super) all: usize,
}

impl InFlight {
    /// The bytes at present.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.all.saturating_sub(self.budget.left())
    }
}
