//! What members ask of a group, and what they are answered, in plain types.

use bytes::Bytes;
use verbatim_wire::error::ErrorCode;

/// Who waits for an answer.
pub(crate) type Token = u64;

/// Answers that became due, and to whom.
pub(crate) type Due = Vec<(Token, Answer)>;

/// An answer that may have had to wait for other members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// To JoinGroup.
    Join(Joined),
    /// To SyncGroup.
    Sync(Synced),
}

/// JoinGroup.
#[derive(Clone, Debug, Default)]
pub(crate) struct Join {
    /// Empty for one who has no id yet.
    pub(crate) member_id: String,
    /// A static member's name (KIP-345).
    pub(crate) instance: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    pub(crate) session_ms: u64,
    pub(crate) rebalance_ms: u64,
    pub(crate) protocol_type: String,
    /// Names and metadata, the most wanted first.
    pub(crate) protocols: Vec<(String, Bytes)>,
    /// The id that it gets if it has none.
    pub(crate) fresh_id: String,
    /// It has to come again with its new id (KIP-394, JoinGroup v4 on).
    pub(crate) needs_known_id: bool,
    /// Its leader can be told to hand out nothing (JoinGroup v9 on).
    pub(crate) may_skip: bool,
}

impl Join {
    /// Bytes that the member would keep.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [&self.member_id, &self.fresh_id, &self.client_id, &self.client_host];
        let texts = texts.iter().map(|text| text.len()).sum::<usize>();
        let protocols =
            self.protocols.iter().map(|(name, metadata)| name.len().saturating_add(metadata.len()));
        texts.saturating_add(protocols.sum())
    }
}

/// The answer to JoinGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) error: ErrorCode,
    pub(crate) generation: i32,
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) leader: String,
    pub(crate) member_id: String,
    pub(crate) skip_assignment: bool,
    /// Id, instance and metadata of every member: for the leader alone.
    pub(crate) members: Vec<(String, Option<String>, Bytes)>,
}

impl Joined {
    pub(crate) fn refused(member_id: &str, error: ErrorCode) -> Self {
        Self {
            error,
            generation: -1,
            protocol_type: None,
            protocol: None,
            leader: String::new(),
            member_id: member_id.to_owned(),
            skip_assignment: false,
            members: Vec::new(),
        }
    }
}

/// A member as later requests name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who<'a> {
    pub(crate) member_id: &'a str,
    pub(crate) instance: Option<&'a str>,
    pub(crate) generation: i32,
}

/// SyncGroup, beside [`Who`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Sync {
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol: Option<String>,
    /// By member id, from the leader alone.
    pub(crate) assignments: Vec<(String, Bytes)>,
}

/// The answer to SyncGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Synced {
    pub(crate) error: ErrorCode,
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) assignment: Bytes,
}

impl Synced {
    pub(crate) fn refused(error: ErrorCode) -> Self {
        Self { error, protocol_type: None, protocol: None, assignment: Bytes::new() }
    }
}
