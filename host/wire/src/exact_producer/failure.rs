//! Why a write was not done, and what to do about it.

use super::Found;
use crate::error::{ErrorCode, describe};

/// Why a write was not done. Whatever it is, the partition stops there: every write behind fails with the same error, until
/// [`ExactPartition::resume_at`](super::ExactPartition::resume_at) says where to go on. What was acknowledged stays.
///
/// A failed write may still be stored in whole or in part: it was perhaps sent, and its answer lost. Sending it again does
/// no harm (R21). `message` is the host's own text where there is one: field, value, expectation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExactError {
    /// The partition's end or last epoch is not what these writes can have left (error 1, R22), or nothing was said yet
    /// about where to begin. Compare with the source ([`align()`](super::align())), then resume.
    #[error(
        "the partition ends at {} with last epoch {}, which is not where these writes go on", .found.end, .found.last_epoch
    )]
    Realign {
        /// Where the partition stands.
        found: Found,
    },
    /// Other bytes are stored at this place (R23).
    #[error("diverged from offset {offset} on: {message}")]
    Diverged {
        /// The first offset that differs.
        offset: i64,
        /// The host's text.
        message: String,
    },
    /// A leader epoch is below one that the partition knows: the writer speaks for a replaced leader, or the history forks
    /// (74, R28, R28a).
    #[error("fenced: {message}")]
    Fenced {
        /// The host's text.
        message: String,
    },
    /// The topic is the copy of another source topic (103, R26).
    #[error("another source topic: {message}")]
    SourceTopicIdMismatch {
        /// The host's text.
        message: String,
    },
    /// The topic or partition is not there, or was re-created since it was opened (3, 100).
    #[error("no such partition: {message}")]
    UnknownPartition {
        /// What is missing.
        message: String,
    },
    /// The broker is no Verbatim host, or the topic is not exact. No records were sent.
    #[error("not an exact topic: {message}")]
    NotExact {
        /// What gave it away.
        message: String,
    },
    /// A policy forbids it, such as a truncation while `produce.at.offset.rewind` is `refuse` (44).
    #[error("refused by policy: {message}")]
    PolicyViolation {
        /// The host's text.
        message: String,
    },
    /// A batch is damaged or breaks a rule (2, 87).
    #[error("invalid records: {message}")]
    InvalidRecord {
        /// The host's text.
        message: String,
    },
    /// A batch is above the host's cap (10, R12).
    #[error("too large: {message}")]
    TooLarge {
        /// The host's text.
        message: String,
    },
    /// The call contradicts itself or the calls before it; or the host says so of the tag (42, R26a).
    #[error("invalid write: {message}")]
    InvalidWrite {
        /// What is wrong.
        message: String,
    },
    /// What may pass did not, in as many attempts as [`Retry`](super::Retry) allows.
    #[error("gave up after {attempts} attempts: {message}")]
    Unavailable {
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        message: String,
    },
    /// The host refused with an error that has no meaning for an exact write.
    #[error("refused: {}: {message}", describe(*.code))]
    Refused {
        /// Kafka's error code.
        code: i16,
        /// The host's text.
        message: String,
    },
    /// The producer's task ended, with its runtime.
    #[error("the producer has ended")]
    Ended,
}

/// What a caller can do about an [`ExactError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Advice {
    /// Resume later: it may pass.
    Retry,
    /// Ask source and copy where they part, then resume or truncate: [`align()`](super::align()).
    Realign,
    /// Stop; compare source and copy; someone decides.
    Stop,
    /// Read the batches again, or correct them.
    FixData,
    /// The calling program is wrong.
    FixCall,
    /// An operator changes the topic or the configuration.
    Operator,
}

impl ExactError {
    /// What to do about it.
    pub const fn advice(&self) -> Advice {
        match self {
            Self::Unavailable { .. } | Self::Ended => Advice::Retry,
            Self::Realign { .. } | Self::Fenced { .. } => Advice::Realign,
            Self::Diverged { .. } | Self::SourceTopicIdMismatch { .. } | Self::UnknownPartition { .. } => {
                Advice::Stop
            }
            Self::InvalidRecord { .. } => Advice::FixData,
            Self::InvalidWrite { .. } | Self::TooLarge { .. } => Advice::FixCall,
            Self::NotExact { .. } | Self::PolicyViolation { .. } | Self::Refused { .. } => Advice::Operator,
        }
    }
}

/// What is to be done about an error code of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Class {
    /// Error 1: the position differs.
    Position,
    /// It may pass.
    Passing,
    /// It will not pass.
    Fatal(ExactError),
}

/// Classes a partition's refusal; `diverged` is the first diverged offset of its tag.
pub(super) fn class(code: i16, message: &str, diverged: Option<i64>) -> Class {
    let message = if message.is_empty() { describe(code) } else { message.to_owned() };
    let Some(known) = ErrorCode::from_number(code) else {
        return Class::Fatal(ExactError::Refused { code, message });
    };
    Class::Fatal(match known {
        ErrorCode::OffsetOutOfRange => return Class::Position,
        ErrorCode::InvalidRecord => match diverged {
            Some(offset) => ExactError::Diverged { offset, message },
            None => ExactError::InvalidRecord { message },
        },
        ErrorCode::CorruptMessage => ExactError::InvalidRecord { message },
        ErrorCode::FencedLeaderEpoch => ExactError::Fenced { message },
        ErrorCode::InconsistentTopicId => ExactError::SourceTopicIdMismatch { message },
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId => {
            ExactError::UnknownPartition { message }
        }
        ErrorCode::PolicyViolation => ExactError::PolicyViolation { message },
        ErrorCode::MessageTooLarge => ExactError::TooLarge { message },
        ErrorCode::InvalidRequest => ExactError::InvalidWrite { message },
        passing if passing.is_retriable() => return Class::Passing,
        _ => ExactError::Refused { code, message },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_the_tags_page_has_its_class_and_advice() {
        assert_eq!(class(1, "", None), Class::Position);
        assert_eq!(class(19, "", None), Class::Passing);
        assert_eq!(class(56, "", None), Class::Passing);
        let advice = |code, diverged| match class(code, "said", diverged) {
            Class::Fatal(error) => {
                assert!(error.to_string().contains("said"), "{error}");
                error.advice()
            }
            class => unreachable!("{class:?}"),
        };
        let table = [
            (2, None, Advice::FixData),
            (3, None, Advice::Stop),
            (10, None, Advice::FixCall),
            (42, None, Advice::FixCall),
            (44, None, Advice::Operator),
            (74, None, Advice::Realign),
            (87, None, Advice::FixData),
            (87, Some(4), Advice::Stop),
            (100, None, Advice::Stop),
            (103, None, Advice::Stop),
            (53, None, Advice::Operator),
            (9_999, None, Advice::Operator),
        ];
        for (code, diverged, expected) in table {
            assert_eq!(advice(code, diverged), expected, "{code}");
        }
    }

    #[test]
    fn a_refusal_without_a_text_says_its_name() {
        let Class::Fatal(error) = class(44, "", None) else { unreachable!("44 does not pass") };
        assert_eq!(error.to_string(), "refused by policy: POLICY_VIOLATION (44)");
    }
}
