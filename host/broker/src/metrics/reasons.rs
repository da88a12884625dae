//! Reasons of refusals and kinds of module failures as labels, and their places in arrays.

use verbatim_contract::Reason;
use verbatim_engine::Failure;

macro_rules! reasons {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// The label of each reason, as the contract spells it.
        pub(super) const REASONS: &[&str] = &[$($name,)* "other"];

        /// Every reason but a module's own, in the same order.
        #[derive(Clone, Copy)]
        enum Place { $($variant,)* Other }

        /// How many there are.
        pub(super) const REASON_COUNT: usize = REASONS.len();

        /// A reason's place in [`REASONS`].
        pub(super) const fn reason_place(reason: Reason) -> usize {
            let place = match reason {
                $(Reason::$variant => Place::$variant,)*
                Reason::Other(_) => Place::Other,
            };
            place as usize
        }

        #[cfg(test)]
        const ALL: &[Reason] = &[$(Reason::$variant,)* Reason::Other(87)];
    };
}

reasons! {
    RequiredAcks = "required-acks",
    Transactional = "transactional",
    CodecVersion = "codec-version",
    NoBatch = "no-batch",
    CutTail = "cut-tail",
    FrameLength = "frame-length",
    UnknownMagic = "unknown-magic",
    OldMagic = "old-magic",
    Checksum = "checksum",
    UnknownCodec = "unknown-codec",
    OffsetDelta = "offset-delta",
    RecordCount = "record-count",
    ControlBatch = "control-batch",
    ControlKey = "control-key",
    MissingSequence = "missing-sequence",
    MultipleBatches = "multiple-batches",
    BatchTooLarge = "batch-too-large",
    SegmentTooSmall = "segment-too-small",
    TooManyBatches = "too-many-batches",
    BaseOffset = "base-offset",
    MalformedRecords = "malformed-records",
    NullKey = "null-key",
    Timestamp = "timestamp",
    EmptyBatch = "empty-batch",
    PositionMismatch = "position-mismatch",
    Diverged = "diverged",
    OverlapInRequest = "overlap-in-request",
    TagMissing = "tag-missing",
    AcksNotAll = "acks-not-all",
    TagUnexpected = "tag-unexpected",
    SourceTopicChanged = "source-topic-changed",
    TagInvalid = "tag-invalid",
    EpochRange = "epoch-range",
    EpochRegressed = "epoch-regressed",
    RewindRefused = "rewind-refused",
    RewindInvalid = "rewind-invalid",
    ProducerFenced = "producer-fenced",
    OutOfOrderSequence = "out-of-order-sequence",
    InvalidTxnState = "invalid-txn-state",
    NotEnoughReplicas = "not-enough-replicas",
}

/// The label of each kind of failure.
pub(super) const FAILURES: [&str; 6] = ["trap", "deadline", "memory", "invariant", "start", "poisoned"];

/// The place of a part refused because the module failed on it before.
pub(super) const POISONED: usize = 5;

/// A failure's place in [`FAILURES`].
pub(super) const fn failure_place(failure: &Failure) -> usize {
    match failure {
        Failure::Trap { .. } => 0,
        Failure::Deadline { .. } => 1,
        Failure::Memory { .. } => 2,
        Failure::Invariant(_) => 3,
        Failure::Start { .. } => 4,
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_spelt_as_the_contract_spells_them() {
        assert_eq!(ALL.len(), REASON_COUNT);
        for (place, reason) in ALL.iter().enumerate() {
            assert_eq!(reason_place(*reason), place);
            let name = verbatim_harness::reason_name(*reason);
            assert_eq!(REASONS[place], name.strip_suffix("(87)").unwrap_or(&name));
        }
    }

    #[test]
    fn failures_have_their_own_places() {
        let text = String::new;
        assert_eq!(FAILURES[failure_place(&Failure::Trap { text: text() })], "trap");
        assert_eq!(FAILURES[failure_place(&Failure::Deadline { budget_us: 1 })], "deadline");
        assert_eq!(FAILURES[failure_place(&Failure::Memory { wanted: 1, limit: 1 })], "memory");
        assert_eq!(FAILURES[failure_place(&Failure::Start { text: text() })], "start");
        assert_eq!(FAILURES[POISONED], "poisoned");
    }
}
