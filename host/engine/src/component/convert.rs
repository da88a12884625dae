//! Between the contract and the generated types: every field by its name, every case by its own line.

use verbatim_contract as contract;

use super::bindings::exports::verbatim::produce::produce_path;
use super::bindings::verbatim::produce::{log, types};

pub(super) fn policy(from: &contract::Policy) -> types::Policy {
    types::Policy {
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
        topic_id_high: from.topic_id.0,
        topic_id_low: from.topic_id.1,
        partition: from.partition,
        config_generation: from.config_generation,
    }
}

pub(super) fn epoch_entry(from: contract::EpochEntry) -> types::EpochEntry {
    types::EpochEntry { epoch: from.epoch, start: from.start }
}

pub(super) fn position(from: &contract::Position) -> types::Position {
    types::Position {
        start: from.start,
        end: from.end,
        high_watermark: from.high_watermark,
        stable_offset: from.stable_offset,
        last_entry: from.last_entry.map(epoch_entry),
        epoch_before_end: from.epoch_before_end,
        shown_epoch: from.shown_epoch,
    }
}

pub(super) fn request(from: &contract::Request) -> types::Request {
    types::Request {
        now_ms: from.now_ms,
        acks: from.acks,
        api_version: from.api_version,
        transactional: from.transactional,
        framing: match from.framing {
            contract::Framing::Complete => types::Framing::Complete,
            contract::Framing::CutTail => types::Framing::CutTail,
            contract::Framing::LengthTooSmall => types::Framing::LengthTooSmall,
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

pub(super) fn batch(from: &contract::Batch) -> types::Batch {
    types::Batch {
        base_offset: from.header.base_offset,
        batch_length: from.header.batch_length,
        leader_epoch: from.header.leader_epoch,
        magic: from.header.magic,
        crc: from.header.crc,
        attributes: from.header.attributes.bits(),
        last_offset_delta: from.header.last_offset_delta,
        base_timestamp: from.header.base_timestamp,
        max_timestamp: from.header.max_timestamp,
        producer_id: from.header.producer_id,
        producer_epoch: from.header.producer_epoch,
        base_sequence: from.header.base_sequence,
        record_count: from.header.record_count,
        length: from.length,
        crc_ok: from.crc_ok,
        short_header: from.short_header,
        producer: from.producer.map(|last| types::ProducerLast {
            producer_epoch: last.producer_epoch,
            last_sequence: last.last_sequence,
            last_offset: last.last_offset,
            open_transaction: last.open_transaction,
        }),
    }
}

pub(super) fn replica(from: &contract::Replica) -> types::Replica {
    types::Replica { id: from.id, in_sync: from.in_sync, online: from.online }
}

pub(super) fn comparison(from: contract::Comparison) -> log::Comparison {
    match from {
        contract::Comparison::Absent => log::Comparison::Absent,
        contract::Comparison::Same => log::Comparison::Same,
        contract::Comparison::Differs(offset) => log::Comparison::Differs(offset),
        contract::Comparison::Overlaps(offset) => log::Comparison::Overlaps(offset),
    }
}

pub(super) fn cut_preview(from: contract::CutPreview) -> log::CutPreview {
    log::CutPreview {
        at_boundary: from.at_boundary,
        last_entry: from.last_entry.map(epoch_entry),
        highest_epoch_cut: from.highest_epoch_cut,
    }
}

pub(super) fn producer_state(from: contract::ProducerState) -> log::ProducerState {
    let batch = |batch: contract::ProducerBatch| log::ProducerBatch {
        first_sequence: batch.first_sequence,
        last_sequence: batch.last_sequence,
        base_offset: batch.base_offset,
        last_offset: batch.last_offset,
        timestamp: batch.timestamp,
    };
    log::ProducerState {
        producer_epoch: from.producer_epoch,
        coordinator_epoch: from.coordinator_epoch,
        last_timestamp: from.last_timestamp,
        open_transaction: from.open_transaction,
        batches: from.batches.into_iter().map(batch).collect(),
    }
}

pub(super) fn unreadable(from: contract::Unreadable) -> log::Unreadable {
    match from {
        contract::Unreadable::Corrupt => log::Unreadable::Corrupt,
        contract::Unreadable::TooLarge => log::Unreadable::TooLarge,
        contract::Unreadable::UnknownCodec => log::Unreadable::UnknownCodec,
    }
}

pub(super) fn placement(from: log::Placement) -> contract::Placement {
    contract::Placement {
        base_offset: from.base_offset,
        leader_epoch: from.leader_epoch,
        log_append_time: from.log_append_time,
        max_timestamp: from.max_timestamp,
    }
}

pub(super) fn description(from: produce_path::Description) -> contract::Description {
    contract::Description {
        name: from.name,
        version: from.version,
        supports_exact: from.supports_exact,
        supports_normal: from.supports_normal,
        rewrites: from.rewrites,
    }
}

pub(super) fn refusal(from: types::Refusal) -> contract::Refusal {
    contract::Refusal {
        reason: reason(from.reason),
        batch: from.batch,
        expected: from.expected,
        text: from.text,
    }
}

fn reason(from: types::Reason) -> contract::Reason {
    match from {
        types::Reason::RequiredAcks => contract::Reason::RequiredAcks,
        types::Reason::Transactional => contract::Reason::Transactional,
        types::Reason::CodecVersion => contract::Reason::CodecVersion,
        types::Reason::NoBatch => contract::Reason::NoBatch,
        types::Reason::CutTail => contract::Reason::CutTail,
        types::Reason::FrameLength => contract::Reason::FrameLength,
        types::Reason::UnknownMagic => contract::Reason::UnknownMagic,
        types::Reason::OldMagic => contract::Reason::OldMagic,
        types::Reason::Checksum => contract::Reason::Checksum,
        types::Reason::UnknownCodec => contract::Reason::UnknownCodec,
        types::Reason::OffsetDelta => contract::Reason::OffsetDelta,
        types::Reason::RecordCount => contract::Reason::RecordCount,
        types::Reason::ControlBatch => contract::Reason::ControlBatch,
        types::Reason::ControlKey => contract::Reason::ControlKey,
        types::Reason::MissingSequence => contract::Reason::MissingSequence,
        types::Reason::MultipleBatches => contract::Reason::MultipleBatches,
        types::Reason::BatchTooLarge => contract::Reason::BatchTooLarge,
        types::Reason::SegmentTooSmall => contract::Reason::SegmentTooSmall,
        types::Reason::TooManyBatches => contract::Reason::TooManyBatches,
        types::Reason::BaseOffset => contract::Reason::BaseOffset,
        types::Reason::MalformedRecords => contract::Reason::MalformedRecords,
        types::Reason::NullKey => contract::Reason::NullKey,
        types::Reason::Timestamp => contract::Reason::Timestamp,
        types::Reason::EmptyBatch => contract::Reason::EmptyBatch,
        types::Reason::PositionMismatch => contract::Reason::PositionMismatch,
        types::Reason::Diverged => contract::Reason::Diverged,
        types::Reason::OverlapInRequest => contract::Reason::OverlapInRequest,
        types::Reason::TagMissing => contract::Reason::TagMissing,
        types::Reason::AcksNotAll => contract::Reason::AcksNotAll,
        types::Reason::TagUnexpected => contract::Reason::TagUnexpected,
        types::Reason::SourceTopicChanged => contract::Reason::SourceTopicChanged,
        types::Reason::TagInvalid => contract::Reason::TagInvalid,
        types::Reason::EpochRange => contract::Reason::EpochRange,
        types::Reason::EpochRegressed => contract::Reason::EpochRegressed,
        types::Reason::RewindRefused => contract::Reason::RewindRefused,
        types::Reason::RewindInvalid => contract::Reason::RewindInvalid,
        types::Reason::ProducerFenced => contract::Reason::ProducerFenced,
        types::Reason::OutOfOrderSequence => contract::Reason::OutOfOrderSequence,
        types::Reason::InvalidTxnState => contract::Reason::InvalidTxnState,
        types::Reason::NotEnoughReplicas => contract::Reason::NotEnoughReplicas,
        types::Reason::Other(code) => contract::Reason::Other(code),
    }
}
