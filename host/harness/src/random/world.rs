//! The topics, logs and requests.

use bytes::Bytes;
use verbatim_batch::{Attributes, BatchBuilder, Codec, HEADER_LEN, Header, NewRecord, OVERHEAD_LEN, reseal};
use verbatim_engine::contract::{EpochEntry, Framing, Policy, Replica, Request};
use verbatim_engine::{Memory, Stored};

use super::tape::Tape;

const NOW_MS: i64 = 1_700_000_000_000;

/// A request with what comes beside it: the tag's entries, and the batches one behind the other.
pub type Sent = (Request, Vec<EpochEntry>, Bytes);

/// A topic of either mode with a log that could have come about.
#[must_use]
pub fn log(tape: &mut Tape<'_>) -> Memory {
    let mut log = Memory::new(policy(tape));
    (log.inflate, log.compress) = (crate::inflate, crate::compress);
    for _ in 0..tape.below(5) {
        append(tape, &mut log);
    }
    if log.policy.exact {
        log.end = log.end.saturating_add(tape.one(&[0, 0, 2]));
        if tape.rarely(4) {
            let last = log.epochs.last().map_or(0, |entry| entry.epoch);
            log.epochs.assign(last.saturating_add(1), log.end);
        }
        let last = log.epochs.last().map_or(-1, |entry| entry.epoch);
        log.shown_epoch = last.saturating_add(tape.one(&[0, 0, 1]));
    }
    if tape.rarely(4) {
        log.start = tape.one(&[log.end, log.end / 2]);
        log.stored.advance_start(log.start);
        log.epochs.advance_start(log.start);
    }
    if tape.rarely(8) {
        // Cut to the start, and so empty.
        log.end = log.start;
        log.epochs.truncate(log.end);
        log.stored = Stored::default();
    }
    log.high_watermark = log.end;
    log.replicas =
        (1..=3).map(|id| Replica { id, in_sync: !tape.rarely(8), online: !tape.rarely(8) }).collect();
    log
}

/// A request that is nearly right for this log, or one that was sent before, early or late.
#[must_use]
pub fn request(tape: &mut Tape<'_>, log: &Memory, sent: &[Sent]) -> Sent {
    let rewinds = sent.iter().rfind(|sent| sent.0.truncate_to.is_some());
    let again = sent.len().saturating_sub(usize::from(tape.below(3)).saturating_add(1));
    let again = rewinds.filter(|_| tape.rarely(2)).or(sent.get(again));
    match again.filter(|_| tape.rarely(3)) {
        Some(sent) if tape.rarely(2) => with_one_more(tape, sent),
        Some(sent) => sent.clone(),
        None => new_request(tape, log),
    }
}

/// The request of which a crash left all but the last batch.
fn with_one_more(tape: &mut Tape<'_>, (request, entries, records): &Sent) -> Sent {
    let last = verbatim_batch::frames(records).last().and_then(|frame| Header::read(frame.bytes()));
    let mut records = records.to_vec();
    if let Some((last, next)) = last.and_then(|last| Some((last, last.next_offset()?))) {
        records.extend(batch(tape, next.max(0), last.leader_epoch));
    }
    (*request, entries.clone(), Bytes::from(records))
}

fn new_request(tape: &mut Tape<'_>, log: &Memory) -> Sent {
    let exact = log.policy.exact;
    let position = log.position();
    let truncate_to = (exact && tape.rarely(4)).then(|| boundary(tape, log));
    let from = truncate_to.unwrap_or(position.end);
    let (records, end) = if exact { exact_records(tape, log, from) } else { (normal_records(tape), 0) };
    let last = position.last_entry.map_or(-1, |entry| entry.epoch);
    let before = truncate_to.map_or(position.epoch_before_end, |to| log.epochs.before(to));
    let usual_acks = if exact { -1 } else { tape.one(&[-1, 1, 0]) };
    let further = end.saturating_add(3);
    let usual_source_epoch = last.saturating_add(1).max(position.shown_epoch);
    let source_start = tape.mostly(
        0,
        3,
        &[
            position.start,
            position.end / 2,
            from.saturating_add(1),
            from,
            end.saturating_sub(1),
            end,
            further,
        ],
    );
    let request = Request {
        now_ms: NOW_MS,
        acks: tape.mostly(usual_acks, 32, &[1, 5]),
        api_version: tape.mostly(13, 8, &[9, 7, 3]),
        transactional: tape.rarely(8),
        framing: Framing::Complete,
        has_tag: exact != tape.rarely(48),
        source_topic_matches: !tape.rarely(48),
        expected_end: tape.mostly(position.end, 4, &[0, position.end.saturating_add(1), end]),
        epoch_before: tape.mostly(before, 6, &[-1, -1, last, before.saturating_add(1)]),
        source_start: source_start.max(0),
        source_end: tape.mostly(1000, 24, &[2, -1]),
        source_epoch: tape.mostly(
            usual_source_epoch,
            6,
            &[last, position.shown_epoch, usual_source_epoch.saturating_add(1), 0, -1, i32::MAX],
        ),
        end_to: tape.rarely(4).then(|| tape.mostly(end, 2, &[further, further, position.end, 0])),
        truncate_to,
    };
    let entries = match tape.below(6) {
        0..3 => Vec::new(),
        3 => clamped(log, &records, request.source_start, from),
        _ => entries(tape, log, (from, end)),
    };
    (request, entries, Bytes::from(records))
}

/// The history of a source whose first epoch begins where its log does.
fn clamped(log: &Memory, records: &[u8], source_start: i64, from: i64) -> Vec<EpochEntry> {
    let mut history = log.epochs.clone();
    history.truncate(from);
    for frame in verbatim_batch::frames(records) {
        if let Some(header) = Header::read(frame.bytes()) {
            history.assign(header.leader_epoch, header.base_offset);
        }
    }
    history.advance_start(source_start);
    history.entries().to_vec()
}

fn policy(tape: &mut Tape<'_>) -> Policy {
    let exact = !tape.rarely(3);
    Policy {
        exact,
        rewind_truncate: !tape.rarely(4),
        validate_records: !exact || tape.rarely(3),
        may_rewrite: tape.rarely(4),
        compacted: tape.rarely(4),
        log_append_time: tape.rarely(3),
        max_message_bytes: tape.mostly(1000, 16, &[90]),
        segment_bytes: tape.mostly(1000, 16, &[85]),
        before_max_ms: tape.one(&[i64::MAX, i64::MAX, 10, 0]),
        after_max_ms: tape.one(&[3_600_000, 3_600_000, i64::MAX, 0]),
        min_insync: tape.one(&[1, 2, 3]),
        topic_id: (1, 2),
        partition: 0,
        config_generation: 0,
    }
}

/// Stores one more batch, as it could have been.
fn append(tape: &mut Tape<'_>, log: &mut Memory) {
    let last = log.epochs.last().map_or(0, |entry| entry.epoch);
    let (gap, rise) = if log.policy.exact { (tape.one(&[0, 0, 1, 4]), tape.one(&[0, 0, 1])) } else { (0, 0) };
    let (base, epoch) = (log.end.saturating_add(gap), last.saturating_add(rise));
    let bytes = batch(tape, base, epoch);
    let Some(header) = Header::read(&bytes) else { return };
    log.epochs.assign(epoch, base);
    log.end = header.next_offset().unwrap_or(base);
    log.stored.push(header, Bytes::from(bytes));
}

/// Batches for an exact topic, and where they end.
fn exact_records(tape: &mut Tape<'_>, log: &Memory, from: i64) -> (Vec<u8>, i64) {
    let mut records = Vec::new();
    let mut base = from;
    // A run that is stored, a batch of which may be damaged.
    if tape.rarely(3) {
        let stored = log.stored.batches();
        let first = usize::from(tape.below(4));
        let many = usize::from(tape.below(4));
        for (header, bytes) in stored.iter().skip(first).take(many) {
            records.extend(damaged(tape, bytes.to_vec(), 24));
            base = header.next_offset().unwrap_or(base);
        }
    }
    let last = log.epochs.last().map_or(0, |entry| entry.epoch);
    let mut epoch = last;
    if from == log.start && tape.rarely(3) {
        // An empty log may restart below its end (R25).
        base = base.saturating_sub(tape.one(&[1, 2]));
    }
    for _ in 0..tape.below(4) {
        epoch = epoch.saturating_add(tape.mostly(0, 4, &[1, 1, -1]));
        let at = base.saturating_add(tape.mostly(0, 4, &[2, 2, 2, -1]));
        let one = batch(tape, at.max(0), epoch);
        base = Header::read(&one).and_then(|header| header.next_offset()).unwrap_or(base);
        records.extend(damaged(tape, one, 24));
    }
    tail(tape, &mut records);
    (records, base)
}

/// A batch for a normal topic, or not quite.
fn normal_records(tape: &mut Tape<'_>) -> Vec<u8> {
    let mut records = Vec::new();
    for _ in 0..tape.mostly(1, 12, &[0, 2]) {
        let base = tape.mostly(0, 24, &[5]);
        let one = batch(tape, base, -1);
        records.extend(damaged(tape, one, 4));
    }
    tail(tape, &mut records);
    records
}

fn tail(tape: &mut Tape<'_>, records: &mut Vec<u8>) {
    match tape.below(64) {
        63 => records.extend([0; 20]),
        62 => records.extend([0; 30]),
        _ => {}
    }
}

fn batch(tape: &mut Tape<'_>, base: i64, epoch: i32) -> Vec<u8> {
    let key = tape.one(&[&[0, 0, 0, 1][..], &[0, 0, 0, 0], &[0, 0, 0, 9], &[1, 2]]);
    let mut builder = BatchBuilder::new(base).leader_epoch(epoch);
    let count = tape.one(&[1, 1, 1, 2, 2, 3, 3, 0]);
    for index in 0..count {
        let timestamp = NOW_MS.saturating_add(tape.one(&[0, 0, -1, -11, 1]));
        let mut record = NewRecord::new(index, timestamp).value(b"v");
        if !tape.rarely(8) {
            record = record.key(key);
        }
        builder = builder.record(record);
    }
    if tape.rarely(3) {
        builder =
            builder.producer(tape.one(&[7, 8]), tape.one(&[0, 0, 1, -1]), tape.one(&[0, 1, 2, i32::MAX, -1]));
    }
    if tape.rarely(12) {
        builder = builder.transactional();
    }
    if tape.rarely(16) {
        builder = builder.control();
    }
    if tape.rarely(16) {
        builder = builder.log_append_time(tape.one(&[NOW_MS, -1]));
    }
    if tape.rarely(16) {
        builder = builder.last_offset_delta(4);
    }
    let codec =
        if count > 0 { tape.one(&[Codec::None, Codec::None, Codec::Lz4, Codec::Zstd]) } else { Codec::None };
    // A few small records always fit a batch; else there would be none.
    let plain = builder.plain_records().unwrap_or_default();
    let payload = verbatim_compression::deflate(codec, &plain).unwrap_or_default();
    builder.build_compressed(codec, &payload).unwrap_or_default()
}

/// Once in `times` something about the batch is wrong.
fn damaged(tape: &mut Tape<'_>, mut bytes: Vec<u8>, times: u16) -> Vec<u8> {
    if !tape.rarely(times) {
        return bytes;
    }
    let Some(before) = Header::read(&bytes) else { return bytes };
    let mut header = before;
    match tape.below(12) {
        0 => header.crc ^= 1,
        1 => header.magic = tape.one(&[0, 1, 3, -1]),
        2 => header.attributes = Attributes::from_bits(before.attributes.bits() ^ (1 << tape.below(15))),
        3 => {
            header.last_offset_delta =
                tape.one(&[-1, i32::MIN, i32::MAX, before.last_offset_delta.saturating_add(1)])
        }
        4 => header.record_count = tape.one(&[0, -1, before.record_count.saturating_add(1), i32::MAX]),
        5 => header.base_offset = tape.one(&[-1, i64::MAX, i64::MIN, before.base_offset.saturating_add(1)]),
        6 => header.leader_epoch = tape.one(&[-1, i32::MAX, i32::MAX - 1]),
        7 => header.base_timestamp = tape.one(&[i64::MAX, i64::MIN, -1]),
        8 => header.max_timestamp = -1,
        9 => header.base_sequence = tape.one(&[-1, i32::MAX, 3]),
        10 => {
            bytes.truncate(tape.one(&[40, 60]));
            header.batch_length = i32::try_from(bytes.len().saturating_sub(OVERHEAD_LEN)).unwrap_or(0);
        }
        _ => {
            if let Some(byte) = bytes.get_mut(HEADER_LEN.saturating_add(usize::from(tape.below(8)))) {
                *byte ^= 1;
            }
        }
    }
    for (byte, new) in bytes.iter_mut().zip(header.to_bytes()) {
        *byte = new;
    }
    if header.crc == before.crc && !tape.rarely(4) && reseal(&mut bytes).is_err() {
        // Too short for a checksum, as was wished.
    }
    bytes
}

/// An offset where the log may be cut, or nearly.
fn boundary(tape: &mut Tape<'_>, log: &Memory) -> i64 {
    let starts: Vec<_> = log.stored.batches().iter().map(|(header, _)| header.base_offset).collect();
    let offset = if starts.is_empty() { log.end } else { tape.one(&starts) };
    tape.one(&[offset, offset, offset, log.end, log.start, offset.saturating_add(1)])
}

/// Entries some of which the log has, and some of which come with the batches.
fn entries(tape: &mut Tape<'_>, log: &Memory, (from, end): (i64, i64)) -> Vec<EpochEntry> {
    let known = log.epochs.entries();
    let mut entries = known.iter().skip(usize::from(tape.below(4))).copied().collect::<Vec<_>>();
    entries.retain(|entry| entry.start < from);
    let mut epoch = log.epochs.last().map_or(0, |entry| entry.epoch);
    for _ in 0..tape.below(3) {
        epoch = epoch.saturating_add(tape.one(&[1, 1, 0, -1]));
        entries.push(EpochEntry {
            epoch,
            start: tape.one(&[
                from,
                end,
                from.saturating_add(1),
                end.saturating_add(1),
                from.saturating_sub(1),
            ]),
        });
    }
    entries
}
