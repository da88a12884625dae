//! Names of refusal reasons, as `wit/types.wit` spells them.

use std::borrow::Cow;

use verbatim_engine::contract::Reason;

/// The reason's name in `wit/types.wit`; `other(87)` for a module's own.
#[must_use]
pub fn reason_name(reason: Reason) -> Cow<'static, str> {
    let name = match reason {
        Reason::RequiredAcks => "required-acks",
        Reason::Transactional => "transactional",
        Reason::CodecVersion => "codec-version",
        Reason::NoBatch => "no-batch",
        Reason::CutTail => "cut-tail",
        Reason::FrameLength => "frame-length",
        Reason::UnknownMagic => "unknown-magic",
        Reason::OldMagic => "old-magic",
        Reason::Checksum => "checksum",
        Reason::UnknownCodec => "unknown-codec",
        Reason::OffsetDelta => "offset-delta",
        Reason::RecordCount => "record-count",
        Reason::ControlBatch => "control-batch",
        Reason::ControlKey => "control-key",
        Reason::MissingSequence => "missing-sequence",
        Reason::MultipleBatches => "multiple-batches",
        Reason::BatchTooLarge => "batch-too-large",
        Reason::SegmentTooSmall => "segment-too-small",
        Reason::TooManyBatches => "too-many-batches",
        Reason::BaseOffset => "base-offset",
        Reason::MalformedRecords => "malformed-records",
        Reason::NullKey => "null-key",
        Reason::Timestamp => "timestamp",
        Reason::EmptyBatch => "empty-batch",
        Reason::PositionMismatch => "position-mismatch",
        Reason::Diverged => "diverged",
        Reason::OverlapInRequest => "overlap-in-request",
        Reason::TagMissing => "tag-missing",
        Reason::AcksNotAll => "acks-not-all",
        Reason::TagUnexpected => "tag-unexpected",
        Reason::SourceTopicChanged => "source-topic-changed",
        Reason::TagInvalid => "tag-invalid",
        Reason::EpochRange => "epoch-range",
        Reason::EpochRegressed => "epoch-regressed",
        Reason::RewindRefused => "rewind-refused",
        Reason::RewindInvalid => "rewind-invalid",
        Reason::ProducerFenced => "producer-fenced",
        Reason::OutOfOrderSequence => "out-of-order-sequence",
        Reason::InvalidTxnState => "invalid-txn-state",
        Reason::NotEnoughReplicas => "not-enough-replicas",
        Reason::Other(code) => return Cow::Owned(format!("other({code})")),
    };
    Cow::Borrowed(name)
}
