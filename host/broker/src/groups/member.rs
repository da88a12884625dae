//! A member of a group.

use bytes::Bytes;

use super::asked::{Join, Token};

/// Memory that a member takes beside its texts and bytes, about.
const BYTES_EACH: usize = 400;

/// One member.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) instance: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    pub(crate) session_ms: u64,
    pub(crate) rebalance_ms: u64,
    pub(crate) protocols: Vec<(String, Bytes)>,
    pub(crate) assignment: Bytes,
    /// Who waits for the answer to its JoinGroup.
    pub(crate) joining: Option<Token>,
    /// Who waits for the answer to its SyncGroup.
    pub(crate) syncing: Option<Token>,
    /// It asked for its assignment in this generation.
    pub(crate) synced: bool,
    /// It was never in a generation.
    pub(crate) is_new: bool,
    /// When it counts as gone unless it is heard of.
    pub(crate) deadline: u64,
}

impl Member {
    pub(crate) fn new(join: &Join) -> Self {
        Self {
            instance: join.instance.clone(),
            client_id: join.client_id.clone(),
            client_host: join.client_host.clone(),
            session_ms: join.session_ms,
            rebalance_ms: join.rebalance_ms,
            protocols: join.protocols.clone(),
            assignment: Bytes::new(),
            joining: None,
            syncing: None,
            synced: false,
            is_new: true,
            deadline: 0,
        }
    }

    /// Takes over what it says of itself now.
    pub(crate) fn update(&mut self, join: &Join) {
        self.session_ms = join.session_ms;
        self.rebalance_ms = join.rebalance_ms;
        self.protocols.clone_from(&join.protocols);
        self.client_id.clone_from(&join.client_id);
        self.client_host.clone_from(&join.client_host);
    }

    /// It was heard of.
    pub(crate) fn heard(&mut self, now: u64) {
        self.deadline = now.saturating_add(self.session_ms);
    }

    /// When it counts as gone: not while it waits for an answer, unless it is new.
    pub(crate) fn expires(&self) -> Option<u64> {
        let waits = self.joining.is_some() && !self.is_new || self.syncing.is_some();
        (!waits).then_some(self.deadline)
    }

    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|(name, _)| name == protocol);
        found.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
    }

    pub(crate) fn supports(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|(name, _)| name == protocol)
    }

    pub(crate) fn bytes(&self) -> usize {
        let texts =
            [self.client_id.len(), self.client_host.len(), self.instance.as_ref().map_or(0, String::len)];
        let protocols =
            self.protocols.iter().map(|(name, metadata)| name.len().saturating_add(metadata.len()));
        texts
            .into_iter()
            .chain(protocols)
            .chain([self.assignment.len(), BYTES_EACH])
            .fold(0, usize::saturating_add)
    }
}
