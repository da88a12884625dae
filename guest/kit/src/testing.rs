//! A log and calls to test a policy against, natively.
//!
//! What a policy sees here is made of batches as bytes and of plain structs, each of which a test may change before it
//! judges. The whole rules of a topic are better told in scenario files (`verbatim module test`); this is for what is quicker
//! said in Rust.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use verbatim_batch::{HEADER_LEN, Header, crc_matches};
use verbatim_contract::{
    Batch, Callbacks, Comparison, CutPreview, EpochEntry, Framing, Placement, Policy, Position, ProducePath,
    ProducerState, Refusal, Replica, Request, Unreadable,
};

/// The wall clock of every call, in ms since 1970, unless a test sets another one.
pub const NOW_MS: i64 = 1_700_000_000_000;

/// One call, ready to be judged: an empty log, a writer that does everything right, no batch yet.
#[derive(Clone, Debug)]
pub struct Call {
    /// The topic's settings.
    pub policy: Policy,
    /// Where the log stands.
    pub position: Position,
    /// The request.
    pub request: Request,
    /// The tag's leader epochs.
    pub entries: Vec<EpochEntry>,
    /// The batches.
    pub batches: Vec<Batch>,
    /// What the host answers.
    pub log: Log,
}

/// What a policy said of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Its verdict.
    pub verdict: Result<(), Refusal>,
    /// How it settled batches, in the order in which it did. After a refusal a host drops it.
    pub settled: Vec<Settled>,
    /// The lines that it wrote to the host's log.
    pub lines: Vec<String>,
}

/// A batch that was settled; the first number is its index in the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was placed as it is.
    Appended(u32, Placement),
    /// It is stored with this base offset.
    Duplicate(u32, i64),
    /// It was placed with these plain records.
    Rewritten(u32, Placement, Vec<u8>),
}

/// A host that answers what a test told it to, and notes what it is told.
#[derive(Clone, Debug)]
pub struct Log {
    /// The plain records of each batch, as often as they are there.
    pub records: Vec<Result<Vec<u8>, Unreadable>>,
    /// Pieces of records are not longer than this, whatever is asked for.
    pub piece_bytes_max: usize,
    /// The answer to every comparison.
    pub comparison: Comparison,
    /// The producers that are known.
    pub producers: BTreeMap<i64, ProducerState>,
    /// The replicas.
    pub replicas: Vec<Replica>,
    /// The module's configuration.
    pub config: BTreeMap<String, String>,
    settled: Vec<Settled>,
    lines: Vec<String>,
    given: BTreeMap<u32, usize>,
}

impl Call {
    /// A call for a normal topic.
    #[must_use]
    pub fn normal() -> Self {
        Self {
            policy: Policy {
                exact: false,
                rewind_truncate: false,
                validate_records: true,
                may_rewrite: false,
                compacted: false,
                log_append_time: false,
                max_message_bytes: 1_048_588,
                segment_bytes: 1 << 30,
                before_max_ms: i64::MAX,
                after_max_ms: i64::MAX,
                min_insync: 1,
                topic_id: (1, 1),
                partition: 0,
                config_generation: 0,
            },
            position: Position {
                start: 0,
                end: 0,
                high_watermark: 0,
                stable_offset: 0,
                last_entry: None,
                epoch_before_end: -1,
                shown_epoch: 0,
            },
            request: Request {
                now_ms: NOW_MS,
                acks: -1,
                api_version: 13,
                transactional: false,
                framing: Framing::Complete,
                has_tag: false,
                source_topic_matches: true,
                expected_end: 0,
                epoch_before: -1,
                source_start: 0,
                source_end: i64::MAX,
                source_epoch: 0,
                end_to: None,
                truncate_to: None,
            },
            entries: Vec::new(),
            batches: Vec::new(),
            log: Log::default(),
        }
    }

    /// A call for an exact topic, with the tag, whose records are not validated.
    #[must_use]
    pub fn exact() -> Self {
        let mut call = Self::normal();
        call.policy.exact = true;
        call.policy.validate_records = false;
        call.position.shown_epoch = -1;
        call.request.has_tag = true;
        call
    }

    /// One more batch, from its bytes, with its records as they are in it.
    #[must_use]
    pub fn batch(self, bytes: &[u8]) -> Self {
        let plain = bytes.get(HEADER_LEN..).unwrap_or_default();
        self.compressed_batch(bytes, plain)
    }

    /// One more batch, whose records inflate to `plain`.
    #[must_use]
    pub fn compressed_batch(mut self, bytes: &[u8], plain: &[u8]) -> Self {
        let header = Header::read(bytes);
        let zeros = [0; HEADER_LEN];
        let Some(facts) = header.or_else(|| Header::read(&zeros)) else { return self };
        self.request.source_epoch = self.request.source_epoch.max(facts.leader_epoch);
        self.batches.push(Batch {
            header: facts,
            length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            crc_ok: crc_matches(bytes),
            short_header: header.is_none(),
            producer: None,
        });
        self.log = self.log.plain_records(plain);
        self
    }

    /// One of the module's own keys has this value.
    #[must_use]
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.log = self.log.config(key, value);
        self
    }

    /// What this policy says. The call is as it was, to be judged by another one.
    pub fn judge(&self, policy: &impl ProducePath) -> Judged {
        let mut log = self.log.clone();
        let verdict = policy.produce(
            &self.policy,
            &self.position,
            &self.request,
            &self.entries,
            &self.batches,
            &mut log,
        );
        Judged { verdict, settled: log.settled, lines: log.lines }
    }
}

impl Log {
    /// One more batch, whose plain records these are.
    #[must_use]
    pub fn plain_records(mut self, plain: &[u8]) -> Self {
        self.records.push(Ok(plain.to_vec()));
        self
    }

    /// One of the module's own keys has this value.
    #[must_use]
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.config.insert(key.into(), value.into());
        self
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            piece_bytes_max: usize::MAX,
            comparison: Comparison::Absent,
            producers: BTreeMap::new(),
            replicas: alloc::vec![Replica { id: 1, in_sync: true, online: true }],
            config: BTreeMap::new(),
            settled: Vec::new(),
            lines: Vec::new(),
            given: BTreeMap::new(),
        }
    }
}

impl Callbacks for Log {
    fn append(&mut self, index: u32, placement: Placement) {
        self.settled.push(Settled::Appended(index, placement));
    }

    fn duplicate(&mut self, index: u32, base_offset: i64) {
        self.settled.push(Settled::Duplicate(index, base_offset));
    }

    fn rewrite(&mut self, index: u32, placement: Placement, records: Vec<u8>) {
        self.settled.push(Settled::Rewritten(index, placement, records));
    }

    fn compare(&mut self, _index: u32, _base_offset: i64) -> Comparison {
        self.comparison
    }

    fn cut(&mut self, _to: i64) -> CutPreview {
        CutPreview { at_boundary: true, last_entry: None, highest_epoch_cut: None }
    }

    fn producer(&mut self, producer_id: i64) -> Option<ProducerState> {
        self.producers.get(&producer_id).cloned()
    }

    fn replicas(&mut self) -> Vec<Replica> {
        self.replicas.clone()
    }

    fn records(&mut self, index: u32, max: u32) -> Result<Vec<u8>, Unreadable> {
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let plain = self.records.get(place).cloned().unwrap_or(Err(Unreadable::Corrupt))?;
        let given = self.given.entry(index).or_default();
        let max = usize::try_from(max).unwrap_or(usize::MAX).min(self.piece_bytes_max);
        let piece: Vec<u8> = plain.iter().skip(*given).take(max).copied().collect();
        *given = given.saturating_add(piece.len());
        Ok(piece)
    }

    fn config(&mut self, key: &str) -> Option<String> {
        self.config.get(key).cloned()
    }

    fn trace(&mut self, line: &str) {
        self.lines.push(line.into());
    }
}
