//! Between the generated types and those of the contract: every field by its name, every case by its own line.

use verbatim_batch::{Attributes, Header};
use verbatim_contract as contract;

use super::bindings::exports::verbatim::produce::produce_path;
use super::bindings::verbatim::produce::{log, types};

pub(crate) fn policy(from: types::Policy) -> contract::Policy {
    contract::Policy {
        exact: from.exact,
        rewind_truncate: from.rewind_truncate,
        validate_records: from.validate_records,
        may_rewrite: from.may_rewrite,
        compacted: from.compacted,
        log_append_time: from.log_append_time,
        max_message_bytes: from.max_message_bytes,
        segment_bytes: from.segment_bytes,
        before_max_ms: from.before_max_ms,
        after_max_ms: from.after_max_ms,
        min_insync: from.min_insync,
        topic_id: (from.topic_id_high, from.topic_id_low),
        partition: from.partition,
        config_generation: from.config_generation,
    }
}

pub(crate) fn epoch_entry(from: types::EpochEntry) -> contract::EpochEntry {
    contract::EpochEntry { epoch: from.epoch, start: from.start }
}

pub(crate) fn position(from: types::Position) -> contract::Position {
    contract::Position {
        start: from.start,
        end: from.end,
        high_watermark: from.high_watermark,
        stable_offset: from.stable_offset,
        last_entry: from.last_entry.map(epoch_entry),
        epoch_before_end: from.epoch_before_end,
        shown_epoch: from.shown_epoch,
    }
}

pub(crate) fn request(from: types::Request) -> contract::Request {
    contract::Request {
        now_ms: from.now_ms,
        acks: from.acks,
        api_version: from.api_version,
        transactional: from.transactional,
        framing: match from.framing {
            types::Framing::Complete => contract::Framing::Complete,
            types::Framing::CutTail => contract::Framing::CutTail,
            types::Framing::LengthTooSmall => contract::Framing::LengthTooSmall,
        },
        has_tag: from.has_tag,
        source_topic_matches: from.source_topic_matches,
        expected_end: from.expected_end,
        epoch_before: from.epoch_before,
        source_start: from.source_start,
        source_end: from.source_end,
        source_epoch: from.source_epoch,
        end_to: from.end_to,
        truncate_to: from.truncate_to,
    }
}

pub(crate) fn batch(from: types::Batch) -> contract::Batch {
    contract::Batch {
        header: Header {
            base_offset: from.base_offset,
            batch_length: from.batch_length,
            leader_epoch: from.leader_epoch,
            magic: from.magic,
            crc: from.crc,
            attributes: Attributes::from_bits(from.attributes),
            last_offset_delta: from.last_offset_delta,
            base_timestamp: from.base_timestamp,
            max_timestamp: from.max_timestamp,
            producer_id: from.producer_id,
            producer_epoch: from.producer_epoch,
            base_sequence: from.base_sequence,
            record_count: from.record_count,
        },
        length: from.length,
        crc_ok: from.crc_ok,
        short_header: from.short_header,
        producer: from.producer.map(|last| contract::ProducerLast {
            producer_epoch: last.producer_epoch,
            last_sequence: last.last_sequence,
            last_offset: last.last_offset,
            open_transaction: last.open_transaction,
        }),
    }
}

pub(crate) fn replica(from: types::Replica) -> contract::Replica {
    contract::Replica { id: from.id, in_sync: from.in_sync, online: from.online }
}

pub(crate) fn comparison(from: log::Comparison) -> contract::Comparison {
    match from {
        log::Comparison::Absent => contract::Comparison::Absent,
        log::Comparison::Same => contract::Comparison::Same,
        log::Comparison::Differs(offset) => contract::Comparison::Differs(offset),
        log::Comparison::Overlaps(offset) => contract::Comparison::Overlaps(offset),
    }
}

pub(crate) fn cut_preview(from: log::CutPreview) -> contract::CutPreview {
    contract::CutPreview {
        at_boundary: from.at_boundary,
        last_entry: from.last_entry.map(epoch_entry),
        highest_epoch_cut: from.highest_epoch_cut,
    }
}

pub(crate) fn producer_state(from: log::ProducerState) -> contract::ProducerState {
    let batch = |batch: log::ProducerBatch| contract::ProducerBatch {
        first_sequence: batch.first_sequence,
        last_sequence: batch.last_sequence,
        base_offset: batch.base_offset,
        last_offset: batch.last_offset,
        timestamp: batch.timestamp,
    };
    contract::ProducerState {
        producer_epoch: from.producer_epoch,
        coordinator_epoch: from.coordinator_epoch,
        last_timestamp: from.last_timestamp,
        open_transaction: from.open_transaction,
        batches: from.batches.into_iter().map(batch).collect(),
    }
}

pub(crate) fn unreadable(from: log::Unreadable) -> contract::Unreadable {
    match from {
        log::Unreadable::Corrupt => contract::Unreadable::Corrupt,
        log::Unreadable::TooLarge => contract::Unreadable::TooLarge,
        log::Unreadable::UnknownCodec => contract::Unreadable::UnknownCodec,
    }
}

pub(crate) fn placement(from: contract::Placement) -> log::Placement {
    log::Placement {
        base_offset: from.base_offset,
        leader_epoch: from.leader_epoch,
        log_append_time: from.log_append_time,
        max_timestamp: from.max_timestamp,
    }
}

pub(crate) fn description(from: contract::Description) -> produce_path::Description {
    produce_path::Description {
        name: from.name,
        version: from.version,
        supports_exact: from.supports_exact,
        supports_normal: from.supports_normal,
        rewrites: from.rewrites,
    }
}

pub(crate) fn refusal(from: contract::Refusal) -> types::Refusal {
    types::Refusal {
        reason: reason(from.reason),
        batch: from.batch,
        expected: from.expected,
        text: from.text,
    }
}

fn reason(from: contract::Reason) -> types::Reason {
    match from {
        contract::Reason::RequiredAcks => types::Reason::RequiredAcks,
        contract::Reason::Transactional => types::Reason::Transactional,
        contract::Reason::CodecVersion => types::Reason::CodecVersion,
        contract::Reason::NoBatch => types::Reason::NoBatch,
        contract::Reason::CutTail => types::Reason::CutTail,
        contract::Reason::FrameLength => types::Reason::FrameLength,
        contract::Reason::UnknownMagic => types::Reason::UnknownMagic,
        contract::Reason::OldMagic => types::Reason::OldMagic,
        contract::Reason::Checksum => types::Reason::Checksum,
        contract::Reason::UnknownCodec => types::Reason::UnknownCodec,
        contract::Reason::OffsetDelta => types::Reason::OffsetDelta,
        contract::Reason::RecordCount => types::Reason::RecordCount,
        contract::Reason::ControlBatch => types::Reason::ControlBatch,
        contract::Reason::ControlKey => types::Reason::ControlKey,
        contract::Reason::MissingSequence => types::Reason::MissingSequence,
        contract::Reason::MultipleBatches => types::Reason::MultipleBatches,
        contract::Reason::BatchTooLarge => types::Reason::BatchTooLarge,
        contract::Reason::SegmentTooSmall => types::Reason::SegmentTooSmall,
        contract::Reason::TooManyBatches => types::Reason::TooManyBatches,
        contract::Reason::BaseOffset => types::Reason::BaseOffset,
        contract::Reason::MalformedRecords => types::Reason::MalformedRecords,
        contract::Reason::NullKey => types::Reason::NullKey,
        contract::Reason::Timestamp => types::Reason::Timestamp,
        contract::Reason::EmptyBatch => types::Reason::EmptyBatch,
        contract::Reason::PositionMismatch => types::Reason::PositionMismatch,
        contract::Reason::Diverged => types::Reason::Diverged,
        contract::Reason::OverlapInRequest => types::Reason::OverlapInRequest,
        contract::Reason::TagMissing => types::Reason::TagMissing,
        contract::Reason::AcksNotAll => types::Reason::AcksNotAll,
        contract::Reason::TagUnexpected => types::Reason::TagUnexpected,
        contract::Reason::SourceTopicChanged => types::Reason::SourceTopicChanged,
        contract::Reason::TagInvalid => types::Reason::TagInvalid,
        contract::Reason::EpochRange => types::Reason::EpochRange,
        contract::Reason::EpochRegressed => types::Reason::EpochRegressed,
        contract::Reason::RewindRefused => types::Reason::RewindRefused,
        contract::Reason::RewindInvalid => types::Reason::RewindInvalid,
        contract::Reason::ProducerFenced => types::Reason::ProducerFenced,
        contract::Reason::OutOfOrderSequence => types::Reason::OutOfOrderSequence,
        contract::Reason::InvalidTxnState => types::Reason::InvalidTxnState,
        contract::Reason::NotEnoughReplicas => types::Reason::NotEnoughReplicas,
        contract::Reason::Other(code) => types::Reason::Other(code),
    }
}
