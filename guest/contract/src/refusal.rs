//! Why a request is refused. Bad data is always a refusal; a trap means a bug in the module.

use alloc::string::String;

/// The longest refusal text in bytes; a host cuts what is longer at a character boundary.
pub const MAX_TEXT_LEN: usize = 1024;

/// A refused request of one partition: nothing of it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which rule was broken.
    pub reason: Reason,
    /// The batch that broke it, counted from 0 in the request; none when it is the request as a whole.
    pub batch: Option<u32>,
    /// The value that would have been accepted, or the first diverged offset (R23), where there is one number to tell.
    pub expected: Option<i64>,
    /// Field, value and expectation in words, at most [`MAX_TEXT_LEN`] bytes.
    pub text: String,
}

impl Refusal {
    /// A refusal of the request as a whole.
    #[must_use]
    pub fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, batch: None, expected: None, text: text.into() }
    }

    /// The same for what is wrong with batch `index` of the request.
    #[must_use]
    pub fn of_batch(self, index: u32) -> Self {
        Self { batch: Some(index), ..self }
    }

    /// The same with the number that would have been accepted.
    #[must_use]
    pub fn expecting(self, number: i64) -> Self {
        Self { expected: Some(number), ..self }
    }
}

/// The broken rule. The host maps each to a Kafka error code in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// acks is none of 0, 1, -1.
    RequiredAcks,
    /// A transactional batch where none is possible (R36b).
    Transactional,
    /// The codec needs a later Produce version.
    CodecVersion,
    /// No whole batch (R1).
    NoBatch,
    /// Bytes behind the last whole batch (R1).
    CutTail,
    /// The stated length cannot hold a batch (R2).
    FrameLength,
    /// The magic byte is none of Kafka's (R3).
    UnknownMagic,
    /// The magic byte is 0 or 1 (R3).
    OldMagic,
    /// The checksum differs (R4).
    Checksum,
    /// A codec that does not exist (R5).
    UnknownCodec,
    /// lastOffsetDelta is negative or overflows (R6).
    OffsetDelta,
    /// recordCount does not fit (R7).
    RecordCount,
    /// A control batch from a client (R8).
    ControlBatch,
    /// A control record whose key is too short (R8).
    ControlKey,
    /// A producer id without a sequence (R9).
    MissingSequence,
    /// More than one batch for a partition (R10).
    MultipleBatches,
    /// Larger than `max.message.bytes`, or than the host's own cap (R12).
    BatchTooLarge,
    /// Larger than `segment.bytes` (R12).
    SegmentTooSmall,
    /// More batches in a request than the limit (R12a).
    TooManyBatches,
    /// A base offset from a client that may not choose one (R13).
    BaseOffset,
    /// Records that do not parse, or cannot be inflated (R14).
    MalformedRecords,
    /// A record without a key on a compacted topic (R15).
    NullKey,
    /// A timestamp out of range or of the wrong type (R16).
    Timestamp,
    /// An empty batch that is not 61 bytes of codec none (R17).
    EmptyBatch,
    /// Expected end or epoch before differ from the log's (R22).
    PositionMismatch,
    /// Other bytes are stored at that offset (R23).
    Diverged,
    /// Batches of one request overlap (R24).
    OverlapInRequest,
    /// An exact topic was written without the tag (R26).
    TagMissing,
    /// An exact write that does not wait for all (R26).
    AcksNotAll,
    /// A tag on a topic that is not exact (R26).
    TagUnexpected,
    /// The source topic was created anew (R26).
    SourceTopicChanged,
    /// The tag contradicts itself (R26a).
    TagInvalid,
    /// A leader epoch below 0 or at the largest number (R27).
    EpochRange,
    /// A leader epoch below one that is already there (R28).
    EpochRegressed,
    /// The source rewound and the policy refuses to follow (R31).
    RewindRefused,
    /// A rewind that is not possible (R31).
    RewindInvalid,
    /// A producer epoch below the stored one (R34).
    ProducerFenced,
    /// A sequence that does not follow (R35, R36).
    OutOfOrderSequence,
    /// Plain data inside an open transaction (R37).
    InvalidTxnState,
    /// Fewer replicas in sync and online than asked for (R41).
    NotEnoughReplicas,
    /// A module's own reason: a Kafka error code; one that is unknown to the host counts as 87.
    Other(u16),
}
