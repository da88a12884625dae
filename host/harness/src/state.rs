//! Topics, logs and requests from their description.

use bytes::Bytes;
use verbatim_batch::{Codec, Header};
use verbatim_compression::{DEFAULT_LIMIT_BYTES, InflateError};
use verbatim_engine::Memory;
use verbatim_engine::contract::{EpochEntry, EpochHistory, Framing, Policy, Request, Unreadable};
use verbatim_wire::tag::RequestTag;

use crate::batch::{self, Named};
use crate::format::{LogSpec, Mode, PolicySpec, RequestSpec, Rewind, Rewrite, TagSpec};
use crate::hex;
use crate::suite::replica;

/// The requests' clock, ten seconds after the records were made.
pub(crate) const NOW_MS: i64 = 1_700_000_010_000;
/// The latest Produce version.
pub(crate) const API_VERSION: i16 = 13;
/// Kafka's defaults.
const MAX_MESSAGE_BYTES: u32 = 1_048_588;
const SEGMENT_BYTES: u32 = 1 << 30;
const AFTER_MAX_MS: i64 = 3_600_000;

/// Inflates within the default limit, for [`Memory::inflate`].
///
/// # Errors
/// The payload is corrupt or inflates beyond the limit.
pub fn inflate(codec: Codec, payload: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let attributes = verbatim_batch::Attributes::default().with_codec(codec);
    let plain =
        verbatim_compression::inflate(attributes, Bytes::copy_from_slice(payload), DEFAULT_LIMIT_BYTES);
    plain.map(|plain| plain.to_vec()).map_err(|error| match error {
        InflateError::Corrupt { .. } => Unreadable::Corrupt,
        InflateError::TooLarge { .. } => Unreadable::TooLarge,
        InflateError::UnknownCodec { .. } => Unreadable::UnknownCodec,
    })
}

/// Compresses, for [`Memory::compress`].
///
/// # Errors
/// The codec's library failed.
pub fn compress(codec: Codec, plain: &[u8]) -> Result<Vec<u8>, String> {
    verbatim_compression::deflate(codec, plain).map_err(|error| error.to_string())
}

/// The log before the first request.
pub(crate) fn log(mode: Mode, policy: &PolicySpec, spec: &LogSpec, named: &Named) -> Result<Memory, String> {
    let mut log = Memory::new(self::policy(mode, policy));
    log.inflate = inflate;
    log.compress = compress;
    for batch in &spec.batches {
        for bytes in batch::build(batch, named)? {
            push(&mut log, Bytes::from(bytes))?;
        }
    }
    if let Some(pairs) = &spec.epochs {
        log.epochs = EpochHistory::from_entries(entries(pairs))
            .ok_or("the log's epochs and their starts must rise from at least 0")?;
    }
    log.start = spec.start.unwrap_or(0);
    log.end = spec.end.unwrap_or(log.end.max(log.start));
    log.high_watermark = spec.high_watermark.unwrap_or(log.end);
    let last = log.epochs.last().map_or(-1, |entry| entry.epoch);
    log.shown_epoch = spec.shown_epoch.unwrap_or(last);
    if let Some(replicas) = &spec.replicas {
        log.replicas = replicas.iter().copied().map(replica).collect();
    }
    let offsets_rise = log.start <= log.high_watermark && log.high_watermark <= log.end;
    if !offsets_rise || log.shown_epoch < last {
        return Err(
            "the log needs start <= high watermark <= end, and a shown epoch not below the last entry's"
                .into(),
        );
    }
    Ok(log)
}

/// The request, and the entries of its tag. How it is framed is found out when it is sent.
pub(crate) fn request(spec: &RequestSpec) -> Result<(Request, Vec<EpochEntry>), String> {
    let tag = spec.tag.as_ref().map(tag).transpose()?;
    let has_tag = tag.is_some();
    let tag = tag.unwrap_or_else(|| none_declared(0));
    let request = Request {
        now_ms: spec.now_ms.unwrap_or(NOW_MS),
        acks: spec.acks.unwrap_or(-1),
        api_version: spec.api_version.unwrap_or(API_VERSION),
        transactional: spec.transactional,
        framing: Framing::Complete,
        has_tag,
        source_topic_matches: !spec.tag.as_ref().is_some_and(|tag| tag.other_source_topic),
        expected_end: tag.expected_end,
        epoch_before: tag.epoch_before,
        source_start: tag.source_start,
        source_end: tag.source_end,
        source_epoch: tag.source_epoch,
        end_to: tag.end_to,
        truncate_to: tag.truncate_to,
    };
    let entries = tag.entries.iter().map(|entry| EpochEntry { epoch: entry.epoch, start: entry.start });
    Ok((request, entries.collect()))
}

pub(crate) fn entries(pairs: &[(i32, i64)]) -> Vec<EpochEntry> {
    pairs.iter().map(|&(epoch, start)| EpochEntry { epoch, start }).collect()
}

fn policy(mode: Mode, spec: &PolicySpec) -> Policy {
    let exact = mode == Mode::Exact;
    Policy {
        exact,
        rewind_truncate: spec.rewind == Rewind::Truncate,
        validate_records: spec.validate_records.unwrap_or(!exact),
        may_rewrite: spec.rewrite == Rewrite::Allow,
        compacted: spec.compacted,
        log_append_time: spec.log_append_time,
        max_message_bytes: spec.max_message_bytes.unwrap_or(MAX_MESSAGE_BYTES),
        segment_bytes: spec.segment_bytes.unwrap_or(SEGMENT_BYTES),
        before_max_ms: spec.before_max_ms.unwrap_or(i64::MAX),
        after_max_ms: spec.after_max_ms.unwrap_or(AFTER_MAX_MS),
        min_insync: spec.min_insync.unwrap_or(1),
        topic_id: (1, 1),
        partition: 0,
        config_generation: 0,
    }
}

/// Stores a batch as it is.
fn push(log: &mut Memory, bytes: Bytes) -> Result<(), String> {
    let header = Header::read(&bytes).ok_or("a stored batch has a whole header")?;
    let next = header.next_offset().ok_or("a stored batch's offsets exist")?;
    if header.base_offset < log.end || header.total_len() != Some(bytes.len()) {
        return Err(format!("stored batches follow each other, offset=`{}`", header.base_offset));
    }
    if log.epochs.last().is_none_or(|last| last.epoch < header.leader_epoch) {
        log.epochs.assign(header.leader_epoch, header.base_offset);
    }
    log.stored.push(header, bytes);
    log.end = next;
    Ok(())
}

fn tag(spec: &TagSpec) -> Result<RequestTag, String> {
    let declared = match &spec.hex {
        Some(digits) => RequestTag::decode(&hex::decode(digits)?).map_err(|error| error.to_string())?,
        None => none_declared(spec.expected_end.unwrap_or(0)),
    };
    let entries = spec.entries.as_deref().map(|pairs| {
        let entry = |&(epoch, start): &(i32, i64)| verbatim_wire::tag::EpochEntry { epoch, start };
        pairs.iter().map(entry).collect()
    });
    Ok(RequestTag {
        source_topic_id: declared.source_topic_id,
        expected_end: spec.expected_end.unwrap_or(declared.expected_end),
        epoch_before: spec.epoch_before.unwrap_or(declared.epoch_before),
        source_start: spec.source_start.unwrap_or(declared.source_start),
        source_end: spec.source_end.unwrap_or(declared.source_end),
        source_epoch: spec.source_epoch.unwrap_or(declared.source_epoch),
        end_to: spec.end_to.or(declared.end_to),
        truncate_to: spec.truncate_to.or(declared.truncate_to),
        entries: entries.unwrap_or(declared.entries),
    })
}

/// A tag that says as little as it can: nothing below the expected end, a source that begins at 0 and is far
/// ahead.
fn none_declared(expected_end: i64) -> RequestTag {
    RequestTag {
        source_topic_id: [0; 16],
        expected_end,
        epoch_before: -1,
        source_start: 0,
        source_end: i64::MAX,
        source_epoch: 100,
        end_to: None,
        truncate_to: None,
        entries: Vec::new(),
    }
}
