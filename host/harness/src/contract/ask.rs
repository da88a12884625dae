//! Requests to ask about, and the logs that they come to.

use bytes::Bytes;
use verbatim_batch::{HEADER_LEN, Header, reseal};
use verbatim_compression::InflateError;
use verbatim_engine::contract::{EpochEntry, Framing, Request, Unreadable};
use verbatim_engine::{Judge, Memory};

use super::Verdict;
use crate::batch::{self, Named};
use crate::format::{BatchSpec, LogSpec, Mode, PolicySpec, ProducerSpec, Rewind};
use crate::state;

/// How much a batch may inflate to here: enough to be too much, without taking long.
const INFLATE_LIMIT: usize = 256 << 10;

/// One request, with the log that it comes to.
#[derive(Clone)]
pub(super) struct Ask {
    /// In a few words.
    pub(super) what: String,
    pub(super) log: Memory,
    pub(super) request: Request,
    pub(super) entries: Vec<EpochEntry>,
    pub(super) records: Bytes,
}

impl Ask {
    /// A request that fits where the log stands, with these records.
    pub(super) fn new(log: &Memory, what: impl Into<String>, records: Vec<u8>) -> Self {
        let request = fitting_request(log);
        let (what, log, records) = (what.into(), log.clone(), Bytes::from(records));
        Self { what, log, request, entries: Vec::new(), records }
    }

    /// The same with another request.
    pub(super) fn edited(mut self, edit: impl FnOnce(&mut Self)) -> Self {
        edit(&mut self);
        self
    }

    pub(super) fn put(&self, judge: &mut dyn Judge<Memory>) -> Verdict {
        self.log.clone().produce(judge, self.request, self.entries.clone(), &self.records).1
    }

    /// Its place among others.
    pub(super) fn at(&self, index: usize) -> String {
        format!("request {index} ({})", self.what)
    }
}

/// A request that fits where the log stands: on an exact topic its source begins at 0 and is far ahead.
pub(crate) fn fitting_request(log: &Memory) -> Request {
    let exact = log.policy.exact;
    Request {
        now_ms: state::NOW_MS,
        acks: -1,
        api_version: state::API_VERSION,
        transactional: false,
        framing: Framing::Complete,
        has_tag: exact,
        source_topic_matches: true,
        expected_end: if exact { log.end } else { 0 },
        epoch_before: if exact { log.epochs.before(log.end) } else { 0 },
        source_start: 0,
        source_end: if exact { i64::MAX } else { 0 },
        source_epoch: if exact { 100 } else { 0 },
        end_to: None,
        truncate_to: None,
    }
}

/// The logs that everything is asked on: empty ones and ones with data, on a plain topic and on one with more settings.
pub(super) fn logs(mode: Mode) -> Result<Vec<Memory>, String> {
    let plain = PolicySpec::default();
    let strict = PolicySpec {
        rewind: Rewind::Truncate,
        validate_records: Some(true),
        compacted: true,
        log_append_time: true,
        min_insync: Some(2),
        ..PolicySpec::default()
    };
    let mut logs = Vec::new();
    for policy in [plain, strict] {
        for batches in [Vec::new(), stored(mode)] {
            let spec = LogSpec { batches, ..LogSpec::default() };
            let mut log = state::log(mode, &policy, &spec, &Named::new())?;
            log.inflate = |codec, payload| {
                let attributes = verbatim_batch::Attributes::default().with_codec(codec);
                let bytes = Bytes::copy_from_slice(payload);
                let plain = verbatim_compression::inflate(attributes, bytes, INFLATE_LIMIT);
                plain.map(|plain| plain.to_vec()).map_err(|error| match error {
                    InflateError::Corrupt { .. } => Unreadable::Corrupt,
                    InflateError::TooLarge { .. } => Unreadable::TooLarge,
                    InflateError::UnknownCodec { .. } => Unreadable::UnknownCodec,
                })
            };
            logs.push(log);
        }
    }
    Ok(logs)
}

/// Two batches of a producer, a hole where there may be one, and an open transaction.
fn stored(mode: Mode) -> Vec<BatchSpec> {
    let exact = mode == Mode::Exact;
    let of = |id, sequence| Some(ProducerSpec { id, epoch: 0, sequence });
    let (later, epoch) = if exact { (10, 5) } else { (2, 0) };
    let first = if exact { 3 } else { 0 };
    vec![
        BatchSpec { base: Some(0), epoch: Some(first), producer: of(7, 0), ..BatchSpec::default() },
        BatchSpec { base: Some(1), epoch: Some(first), producer: of(7, 1), ..BatchSpec::default() },
        BatchSpec {
            base: Some(later),
            epoch: Some(epoch),
            producer: of(9, 0),
            transactional: exact,
            ..BatchSpec::default()
        },
    ]
}

/// A batch as such a log could take it.
pub(super) fn fitting(log: &Memory) -> BatchSpec {
    let exact = log.policy.exact;
    let last = log.epochs.last().map_or(0, |entry| entry.epoch);
    BatchSpec {
        base: Some(if exact { log.end } else { 0 }),
        epoch: Some(if exact { last } else { -1 }),
        ..BatchSpec::default()
    }
}

pub(super) fn built(spec: &BatchSpec) -> Result<Vec<u8>, String> {
    Ok(batch::build(spec, &Named::new())?.concat())
}

/// The header and the payload of such a batch.
pub(super) fn parts(spec: &BatchSpec) -> Result<(Header, Vec<u8>), String> {
    let bytes = built(spec)?;
    let header = Header::read(&bytes).ok_or("the batch has no header")?;
    Ok((header, bytes.get(HEADER_LEN..).unwrap_or_default().to_vec()))
}

/// These bytes as they are, whatever length the header states, with the checksum that they have.
pub(super) fn sealed(header: &Header, payload: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes: Vec<u8> = header.to_bytes().into_iter().chain(payload.iter().copied()).collect();
    reseal(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}
