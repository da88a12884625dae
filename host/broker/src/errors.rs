//! From what went wrong to what a client is told: the one place where a broker's failure becomes a Kafka error code.

use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

/// Bytes of a text that are sent. A text quotes what the client said, and strings of older versions end at 32,767 bytes.
const TEXT_BYTES_MAX: usize = 4_096;

/// A failure with its Kafka code and a text that names field, value and expectation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {text}")]
pub(crate) struct ApiError {
    /// The code on the wire.
    pub(crate) code: ErrorCode,
    /// What is wrong, in words.
    pub(crate) text: String,
}

impl ApiError {
    /// A failure of this code.
    pub(crate) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// INVALID_CONFIG (40).
    pub(crate) fn config(text: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidConfig, text)
    }

    /// POLICY_VIOLATION (44).
    pub(crate) fn policy(text: impl Into<String>) -> Self {
        Self::new(ErrorCode::PolicyViolation, text)
    }

    /// UNKNOWN_TOPIC_OR_PARTITION (3) for a topic.
    #[must_use]
    pub(crate) fn unknown_topic(name: &str) -> Self {
        Self::new(
            ErrorCode::UnknownTopicOrPartition,
            format!("this server has no such topic, topic=`{name}`"),
        )
    }

    /// UNKNOWN_TOPIC_OR_PARTITION (3) for a partition.
    #[must_use]
    pub(crate) fn unknown_partition(topic: &str, partition: i32) -> Self {
        let text = format!("topic `{topic}` has no such partition, partition=`{partition}`");
        Self::new(ErrorCode::UnknownTopicOrPartition, text)
    }

    /// UNKNOWN_TOPIC_ID (100).
    #[must_use]
    pub(crate) fn unknown_topic_id(id: uuid::Uuid) -> Self {
        let text = format!("this server has no topic of this id, topic_id=`{}`", crate::topic_id::format(id));
        Self::new(ErrorCode::UnknownTopicId, text)
    }

    /// KAFKA_STORAGE_ERROR (56): disk or module failed.
    pub(crate) fn storage(text: impl Into<String>) -> Self {
        Self::new(ErrorCode::KafkaStorageError, text)
    }

    /// The code and the text as the fields of an answer, the text's beginning if it quotes something long.
    #[must_use]
    pub(crate) fn fields(&self) -> (i16, Option<StrBytes>) {
        let mut text = self.text.clone();
        if text.len() > TEXT_BYTES_MAX {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
            text.push_str(" ...");
        }
        (self.code.number(), Some(StrBytes::from_string(text)))
    }
}

/// The code for a module's refusal, by the engine's table; one that the wire does not know counts as INVALID_RECORD (87).
#[must_use]
pub(crate) fn refusal_code(reason: verbatim_contract::Reason) -> ErrorCode {
    wire_code(verbatim_engine::refusal_code(reason))
}

/// The code for a module's failure, by the engine's table.
#[must_use]
pub(crate) fn failure_code(failure: &verbatim_engine::Failure) -> ErrorCode {
    wire_code(verbatim_engine::failure_code(failure))
}

/// The code for a batch on which the module failed too often, by the engine's table.
#[must_use]
pub(crate) fn poisoned_code() -> ErrorCode {
    wire_code(verbatim_engine::poisoned_code())
}

fn wire_code(code: verbatim_engine::Code) -> ErrorCode {
    ErrorCode::from_number(code.number).unwrap_or(ErrorCode::InvalidRecord)
}

/// The two fields of an answer that went well or did not.
#[must_use]
pub(crate) fn fields<T>(result: &Result<T, ApiError>) -> (i16, Option<StrBytes>) {
    result.as_ref().err().map_or((0, None), ApiError::fields)
}
