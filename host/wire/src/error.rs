//! The Kafka error codes this project answers with or reacts to: number, Kafka's name, retriable or not.
//!
//! Numbers, names and the retriable flag are those of the Kafka protocol guide (its error code table). Retriable means
//! that a client may send the same request again, usually after refreshing its metadata.

use std::fmt;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal, $retriable:literal;)*) => {
        /// A Kafka error code by name.
        ///
        /// The number is [`ErrorCode::number`], the name operators know is [`ErrorCode::name`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            /// Every code of the table, by rising number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The number on the wire.
            pub const fn number(self) -> i16 {
                match self { $(Self::$variant => $number,)* }
            }

            /// Kafka's own name of the code, such as `OFFSET_OUT_OF_RANGE`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// True if a client may simply try again.
            pub const fn is_retriable(self) -> bool {
                match self { $(Self::$variant => $retriable,)* }
            }

            /// The code of this number, or nothing if the table does not hold it.
            pub const fn from_number(number: i16) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

error_codes! {
    /// An unexpected failure on the server's side.
    UnknownServerError = -1, "UNKNOWN_SERVER_ERROR", false;
    /// Success.
    None = 0, "NONE", false;
    /// The offset is outside the log, or an expected end or epoch is not ours (R22, R43).
    OffsetOutOfRange = 1, "OFFSET_OUT_OF_RANGE", false;
    /// Checksum, length or magic of a batch is false (R2 to R4).
    CorruptMessage = 2, "CORRUPT_MESSAGE", true;
    /// No such topic or partition here.
    UnknownTopicOrPartition = 3, "UNKNOWN_TOPIC_OR_PARTITION", true;
    /// The partition has no leader at present.
    LeaderNotAvailable = 5, "LEADER_NOT_AVAILABLE", true;
    /// The partition is not led here.
    NotLeaderOrFollower = 6, "NOT_LEADER_OR_FOLLOWER", true;
    /// The request was not done in its time.
    RequestTimedOut = 7, "REQUEST_TIMED_OUT", true;
    /// A batch or request is larger than allowed (R12).
    MessageTooLarge = 10, "MESSAGE_TOO_LARGE", false;
    /// A committed offset's metadata is longer than allowed.
    OffsetMetadataTooLarge = 12, "OFFSET_METADATA_TOO_LARGE", false;
    /// The coordinator is still loading.
    CoordinatorLoadInProgress = 14, "COORDINATOR_LOAD_IN_PROGRESS", true;
    /// There is no coordinator to be had.
    CoordinatorNotAvailable = 15, "COORDINATOR_NOT_AVAILABLE", true;
    /// The coordinator is elsewhere.
    NotCoordinator = 16, "NOT_COORDINATOR", true;
    /// The topic's name is not allowed.
    InvalidTopicException = 17, "INVALID_TOPIC_EXCEPTION", false;
    /// A batch is larger than a segment (R12).
    RecordListTooLarge = 18, "RECORD_LIST_TOO_LARGE", false;
    /// Fewer replicas in sync and online than min.insync.replicas (R41).
    NotEnoughReplicas = 19, "NOT_ENOUGH_REPLICAS", true;
    /// Acks is none of 0, 1, -1.
    InvalidRequiredAcks = 21, "INVALID_REQUIRED_ACKS", false;
    /// The generation is not the group's.
    IllegalGeneration = 22, "ILLEGAL_GENERATION", false;
    /// The member's protocols have none in common with the group's.
    InconsistentGroupProtocol = 23, "INCONSISTENT_GROUP_PROTOCOL", false;
    /// The group id is not allowed.
    InvalidGroupId = 24, "INVALID_GROUP_ID", false;
    /// The member is not in the group.
    UnknownMemberId = 25, "UNKNOWN_MEMBER_ID", false;
    /// The session timeout is not allowed.
    InvalidSessionTimeout = 26, "INVALID_SESSION_TIMEOUT", false;
    /// The group is being rebalanced; members join again.
    RebalanceInProgress = 27, "REBALANCE_IN_PROGRESS", false;
    /// Committed offsets would take more memory than allowed.
    InvalidCommitOffsetSize = 28, "INVALID_COMMIT_OFFSET_SIZE", false;
    /// A timestamp is out of range (R16).
    InvalidTimestamp = 32, "INVALID_TIMESTAMP", false;
    /// The API's version is not served.
    UnsupportedVersion = 35, "UNSUPPORTED_VERSION", false;
    /// A topic of this name exists.
    TopicAlreadyExists = 36, "TOPIC_ALREADY_EXISTS", false;
    /// The number of partitions is not allowed.
    InvalidPartitions = 37, "INVALID_PARTITIONS", false;
    /// The replication factor is not allowed.
    InvalidReplicationFactor = 38, "INVALID_REPLICATION_FACTOR", false;
    /// The replica assignment is not allowed.
    InvalidReplicaAssignment = 39, "INVALID_REPLICA_ASSIGNMENT", false;
    /// A configuration key or value is not allowed.
    InvalidConfig = 40, "INVALID_CONFIG", false;
    /// The controller is elsewhere.
    NotController = 41, "NOT_CONTROLLER", true;
    /// The request is malformed (for the tag: R26a).
    InvalidRequest = 42, "INVALID_REQUEST", false;
    /// The request does not satisfy a policy (R26, R31).
    PolicyViolation = 44, "POLICY_VIOLATION", false;
    /// A producer's sequence does not follow its last one (R35, R36).
    OutOfOrderSequenceNumber = 45, "OUT_OF_ORDER_SEQUENCE_NUMBER", false;
    /// A producer's epoch is older than the one known (R34).
    InvalidProducerEpoch = 47, "INVALID_PRODUCER_EPOCH", false;
    /// The transaction is not in a state for this (R36b, R37).
    InvalidTxnState = 48, "INVALID_TXN_STATE", false;
    /// The producer id does not belong to the transactional id.
    InvalidProducerIdMapping = 49, "INVALID_PRODUCER_ID_MAPPING", false;
    /// The transactional id may not be used (R36b).
    TransactionalIdAuthorizationFailed = 53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", false;
    /// The disk, or the module that judges the topic, failed; nothing was written.
    KafkaStorageError = 56, "KAFKA_STORAGE_ERROR", true;
    /// Nothing is known of this producer id.
    UnknownProducerId = 59, "UNKNOWN_PRODUCER_ID", false;
    /// The group has members.
    NonEmptyGroup = 68, "NON_EMPTY_GROUP", false;
    /// There is no such group.
    GroupIdNotFound = 69, "GROUP_ID_NOT_FOUND", false;
    /// There is no such fetch session.
    FetchSessionIdNotFound = 70, "FETCH_SESSION_ID_NOT_FOUND", true;
    /// The fetch session's epoch is not the expected one.
    InvalidFetchSessionEpoch = 71, "INVALID_FETCH_SESSION_EPOCH", true;
    /// The leader epoch is older than the shown one (R28, R32).
    FencedLeaderEpoch = 74, "FENCED_LEADER_EPOCH", true;
    /// The leader epoch is newer than the shown one (R32).
    UnknownLeaderEpoch = 75, "UNKNOWN_LEADER_EPOCH", true;
    /// The codec cannot be used with this version (R47).
    UnsupportedCompressionType = 76, "UNSUPPORTED_COMPRESSION_TYPE", false;
    /// The offset exists but may not be read yet (R43b).
    OffsetNotAvailable = 78, "OFFSET_NOT_AVAILABLE", true;
    /// A member without an id gets one and has to join again with it (KIP-394).
    MemberIdRequired = 79, "MEMBER_ID_REQUIRED", false;
    /// The group has as many members as allowed.
    GroupMaxSizeReached = 81, "GROUP_MAX_SIZE_REACHED", false;
    /// Another member has taken over the static id (KIP-345).
    FencedInstanceId = 82, "FENCED_INSTANCE_ID", false;
    /// Members of the group read the topic.
    GroupSubscribedToTopic = 86, "GROUP_SUBSCRIBED_TO_TOPIC", false;
    /// A batch or record breaks a rule (R1, R5 to R9, R14 and more).
    InvalidRecord = 87, "INVALID_RECORD", false;
    /// The client must slow down.
    ThrottlingQuotaExceeded = 89, "THROTTLING_QUOTA_EXCEEDED", true;
    /// No topic of this id here.
    UnknownTopicId = 100, "UNKNOWN_TOPIC_ID", true;
    /// The topic id is another one than ours (R26).
    InconsistentTopicId = 103, "INCONSISTENT_TOPIC_ID", true;
    /// A fetch session names its topics otherwise than it began: by name and by id.
    FetchSessionTopicIdError = 106, "FETCH_SESSION_TOPIC_ID_ERROR", true;
    /// The request is for another kind of endpoint, such as a controller.
    MismatchedEndpointType = 114, "MISMATCHED_ENDPOINT_TYPE", false;
    /// There is no such kind of endpoint.
    UnsupportedEndpointType = 115, "UNSUPPORTED_ENDPOINT_TYPE", false;
    /// The transaction must be aborted (R36b, Produce v12 on).
    TransactionAbortable = 120, "TRANSACTION_ABORTABLE", false;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.number())
    }
}

impl From<ErrorCode> for i16 {
    fn from(code: ErrorCode) -> Self {
        code.number()
    }
}

/// The readable name of any error number: Kafka's name if the table holds it, else `error N`.
pub fn describe(number: i16) -> String {
    ErrorCode::from_number(number).map_or_else(|| format!("error {number}"), |code| code.to_string())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use kafka_protocol::ResponseError;

    use super::*;

    #[test]
    fn the_table_is_total_and_unique() {
        for (index, code) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(ErrorCode::from_number(code.number()), Some(*code));
            for other in ErrorCode::ALL.iter().skip(index + 1) {
                assert!(code.number() < other.number(), "{code} before {other}");
                assert_ne!(code.name(), other.name());
            }
        }
        let known = (i16::MIN..=i16::MAX).filter(|number| ErrorCode::from_number(*number).is_some()).count();
        assert_eq!(known, ErrorCode::ALL.len());
    }

    #[test]
    fn numbers_names_and_retriable_agree_with_the_protocol_library() {
        for code in ErrorCode::ALL.iter().filter(|code| **code != ErrorCode::None) {
            let theirs = ResponseError::try_from_code(code.number()).unwrap();
            assert_eq!(theirs.is_retriable(), code.is_retriable(), "{code}");
            let squeezed = code.name().replace('_', "").to_lowercase();
            assert_eq!(format!("{theirs:?}").to_lowercase(), squeezed, "{code}");
        }
    }

    #[test]
    fn a_code_shows_its_name_and_number() {
        assert_eq!(ErrorCode::InvalidRecord.to_string(), "INVALID_RECORD (87)");
        assert_eq!(describe(1), "OFFSET_OUT_OF_RANGE (1)");
        assert_eq!(describe(999), "error 999");
    }
}
