//! The one table from the reasons of a denial to Kafka error codes.

use verbatim_contract::Reason;

use crate::{Denied, Failure};

const INVALID_RECORD: i16 = 87;
const KAFKA_STORAGE_ERROR: i16 = 56;
/// The highest error code of Apache Kafka 4.1; they are numbered from 1 without a gap.
const LAST_KNOWN: u16 = 133;

/// Codes that clients send again for, as Apache Kafka's own clients class them.
const RETRIABLE: [i16; 24] =
    [2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 88, 100, 103];

/// A Kafka error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its number.
    pub number: i16,
    /// A client may send the same request again.
    pub retriable: bool,
}

/// The error code for a partition whose request was denied.
#[must_use]
pub fn denied_code(denied: &Denied) -> Code {
    match denied {
        Denied::Refused(refusal) => refusal_code(refusal.reason),
        Denied::Failed(failure) => failure_code(failure),
    }
}

/// The error code for a module's refusal.
#[must_use]
pub fn refusal_code(reason: Reason) -> Code {
    let number = match reason {
        Reason::PositionMismatch => 1,
        Reason::FrameLength | Reason::UnknownMagic | Reason::Checksum => 2,
        Reason::BatchTooLarge | Reason::TooManyBatches => 10,
        Reason::SegmentTooSmall => 18,
        Reason::NotEnoughReplicas => 19,
        Reason::RequiredAcks => 21,
        Reason::Timestamp => 32,
        Reason::TagInvalid => 42,
        Reason::TagMissing | Reason::AcksNotAll | Reason::TagUnexpected | Reason::RewindRefused => 44,
        Reason::OutOfOrderSequence => 45,
        Reason::ProducerFenced => 47,
        Reason::InvalidTxnState => 48,
        Reason::Transactional => 53,
        Reason::EpochRegressed => 74,
        Reason::CodecVersion => 76,
        Reason::SourceTopicChanged => 103,
        Reason::NoBatch
        | Reason::CutTail
        | Reason::OldMagic
        | Reason::UnknownCodec
        | Reason::OffsetDelta
        | Reason::RecordCount
        | Reason::ControlBatch
        | Reason::ControlKey
        | Reason::MissingSequence
        | Reason::MultipleBatches
        | Reason::BaseOffset
        | Reason::MalformedRecords
        | Reason::NullKey
        | Reason::EmptyBatch
        | Reason::Diverged
        | Reason::OverlapInRequest
        | Reason::EpochRange
        | Reason::RewindInvalid => INVALID_RECORD,
        Reason::Other(number) if (1..=LAST_KNOWN).contains(&number) => {
            i16::try_from(number).unwrap_or(INVALID_RECORD)
        }
        Reason::Other(_) => INVALID_RECORD,
    };
    code(number)
}

/// The error code for a module's failure: the request may be right, so a client may try again.
#[must_use]
pub fn failure_code(failure: &Failure) -> Code {
    match failure {
        Failure::Trap { .. }
        | Failure::Deadline { .. }
        | Failure::Memory { .. }
        | Failure::Invariant(_)
        | Failure::Start { .. } => code(KAFKA_STORAGE_ERROR),
    }
}

/// The code for a batch whose module failed too often on it (see [`Poison`](crate::Poison)).
#[must_use]
pub fn poisoned_code() -> Code {
    code(INVALID_RECORD)
}

fn code(number: i16) -> Code {
    Code { number, retriable: RETRIABLE.contains(&number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modules_own_code_counts_if_kafka_knows_it() {
        for (given, expected) in
            [(0, 87), (1, 1), (42, 42), (133, 133), (134, 87), (40_000, 87), (u16::MAX, 87)]
        {
            assert_eq!(refusal_code(Reason::Other(given)).number, expected, "other({given})");
        }
    }

    #[test]
    fn retriable_is_what_clients_send_again() {
        let retriable = |reason| refusal_code(reason).retriable;
        assert!(
            [Reason::Checksum, Reason::NotEnoughReplicas, Reason::EpochRegressed]
                .map(retriable)
                .iter()
                .all(|r| *r)
        );
        assert!(
            ![Reason::Diverged, Reason::PositionMismatch, Reason::TagMissing]
                .map(retriable)
                .iter()
                .any(|r| *r)
        );
        assert_eq!(failure_code(&Failure::Deadline { budget_us: 1 }), Code { number: 56, retriable: true });
        assert_eq!(poisoned_code(), Code { number: 87, retriable: false });
    }
}
