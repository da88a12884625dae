//! Reasons of refusals and kinds of failures as short words, for logs and metrics; a bounded number of them.

use verbatim_contract::Reason;

use crate::Failure;

macro_rules! reasons {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// The word for each reason, as the contract in `wit/` spells it; the last one is for a module's own.
        pub const REASON_LABELS: [&str; REASON_COUNT] = [$($name,)* "other"];

        #[derive(Clone, Copy)]
        enum Place { $($variant,)* Other }

        const REASON_COUNT: usize = Place::Other as usize + 1;

        /// A reason's place in [`REASON_LABELS`].
        #[must_use]
        pub const fn reason_place(reason: Reason) -> usize {
            let place = match reason {
                $(Reason::$variant => Place::$variant,)*
                Reason::Other(_) => Place::Other,
            };
            place as usize
        }

        /// The word for a reason, as the contract in `wit/` spells it.
        #[must_use]
        pub const fn reason_label(reason: Reason) -> &'static str {
            match reason {
                $(Reason::$variant => $name,)*
                Reason::Other(_) => "other",
            }
        }
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

/// The word for each kind of failure.
pub const FAILURE_LABELS: [&str; 5] = ["trap", "deadline", "memory", "invariant", "start"];

/// A failure's place in [`FAILURE_LABELS`].
#[must_use]
pub const fn failure_place(failure: &Failure) -> usize {
    match failure {
        Failure::Trap { .. } => 0,
        Failure::Deadline { .. } => 1,
        Failure::Memory { .. } => 2,
        Failure::Invariant(_) => 3,
        Failure::Start { .. } => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_spelt_as_the_contract_spells_them() {
        let wit = include_str!("../../../wit/types.wit");
        let cases: Vec<&str> = wit
            .split_once("variant reason {")
            .and_then(|(_, after)| after.split_once('}'))
            .map(|(cases, _)| cases.lines().map(str::trim).filter(|line| !line.starts_with("///")))
            .into_iter()
            .flatten()
            .filter_map(|line| line.strip_suffix(',').map(|case| case.trim_end_matches("(u16)")))
            .collect();
        assert_eq!(cases, REASON_LABELS);
        assert_eq!(REASON_LABELS.get(reason_place(Reason::Other(87))), Some(&reason_label(Reason::Other(1))));
        assert_eq!(REASON_LABELS.get(reason_place(Reason::NullKey)), Some(&reason_label(Reason::NullKey)));
    }

    #[test]
    fn failures_have_their_own_places() {
        let text = String::new;
        for (failure, label) in [
            (Failure::Trap { text: text() }, "trap"),
            (Failure::Deadline { budget_us: 1 }, "deadline"),
            (Failure::Memory { wanted: 1, limit: 1 }, "memory"),
            (Failure::Start { text: text() }, "start"),
        ] {
            assert_eq!(FAILURE_LABELS.get(failure_place(&failure)), Some(&label));
        }
    }
}
