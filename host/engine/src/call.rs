//! One partition's part of a produce request, as it is handed to a judge.

use std::sync::OnceLock;

use bytes::Bytes;
use verbatim_batch::{HEADER_LEN, Header, crc_matches};
use verbatim_contract::{Batch, EpochEntry, Framing, Policy, Position, ProducerLast, Request};

use crate::Digest;

/// Batches for one partition in one request (R12a). [`Incoming::split`] stops one above it, so that a judge sees that
/// there are too many and no request costs more than that.
pub const MAX_BATCHES: usize = 4096;

/// All that a judge needs to know of one partition's part of a request.
#[derive(Clone, Debug)]
pub struct Call {
    /// The topic's settings.
    pub policy: Policy,
    /// Where the partition's log stands.
    pub position: Position,
    /// The request.
    pub request: Request,
    /// The tag's epoch entries, in its order.
    pub entries: Vec<EpochEntry>,
    /// The batches, in the request's order.
    pub batches: Vec<Incoming>,
}

impl Call {
    /// A call for a request's records, the batches one behind the other: splits them, whatever `request.framing` says,
    /// and looks up the producers.
    #[must_use]
    pub fn new(
        policy: Policy,
        position: Position,
        request: Request,
        entries: Vec<EpochEntry>,
        records: &Bytes,
        mut producer: impl FnMut(i64) -> Option<ProducerLast>,
    ) -> Self {
        let (mut batches, framing) = Incoming::split(records);
        for batch in batches.iter_mut().filter(|batch| batch.facts.header.has_producer()) {
            batch.facts.producer = producer(batch.facts.header.producer_id);
        }
        Self { policy, position, request: Request { framing, ..request }, entries, batches }
    }

    /// Bytes of all batches together.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.batches.iter().fold(0_u64, |sum, batch| sum.saturating_add(u64::from(batch.facts.length)))
    }

    /// Records of all batches together, as their headers say.
    pub(crate) fn record_count(&self) -> u64 {
        let counts =
            self.batches.iter().map(|batch| u64::try_from(batch.facts.header.record_count).unwrap_or(0));
        counts.fold(0, u64::saturating_add)
    }
}

/// A batch as it came in: its bytes, which stay on this side, and what a module is told of them.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The whole batch.
    pub bytes: Bytes,
    /// What is told of it. The checksum's verdict in it is trusted.
    pub facts: Batch,
    digest: OnceLock<Digest>,
}

impl Incoming {
    /// Reads the header and computes the checksum (R2b, R4) of one batch; any bytes will do. The producer is not known
    /// yet: fill in `facts.producer` once the log can be asked.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        let (header, short_header) = match Header::read(&bytes) {
            Some(header) => (header, false),
            None => (short(&bytes), true),
        };
        let crc_ok = !short_header && crc_matches(&bytes);
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Self {
            bytes,
            facts: Batch { header, length, crc_ok, short_header, producer: None },
            digest: OnceLock::new(),
        }
    }

    /// The digest of its bytes, by which a batch is known that was stored with other records; computed once.
    pub fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| Digest::of(&self.bytes))
    }

    pub(crate) fn is_digested(&self) -> bool {
        self.digest.get().is_some()
    }

    /// The same, with what the log knows of the batch's producer.
    #[must_use]
    pub fn with_producer(mut self, producer: Option<ProducerLast>) -> Self {
        self.facts.producer = producer;
        self
    }

    /// Splits a request's records into batches by their lengths alone (R1, R2a) and says how that ended. At most one more
    /// than [`MAX_BATCHES`] come back. Nothing is copied.
    #[must_use]
    pub fn split(records: &Bytes) -> (Vec<Self>, Framing) {
        let mut frames = verbatim_batch::frames(records);
        let batches = frames
            .by_ref()
            .take(MAX_BATCHES.saturating_add(1))
            .map(|frame| Self::new(records.slice(frame.range())))
            .collect();
        let framing = match frames.end() {
            None | Some(verbatim_batch::FramesEnd::Complete) => Framing::Complete,
            Some(verbatim_batch::FramesEnd::TailCut { .. }) => Framing::CutTail,
            Some(verbatim_batch::FramesEnd::LengthTooSmall { .. }) => Framing::LengthTooSmall,
        };
        (batches, framing)
    }
}

/// What there is of a header that is too short; the rest is zero.
fn short(bytes: &[u8]) -> Header {
    let mut padded = [0; HEADER_LEN];
    for (to, from) in padded.iter_mut().zip(bytes) {
        *to = *from;
    }
    let zero = Header {
        base_offset: 0,
        batch_length: 0,
        leader_epoch: 0,
        magic: 0,
        crc: 0,
        attributes: verbatim_batch::Attributes::from_bits(0),
        last_offset_delta: 0,
        base_timestamp: 0,
        max_timestamp: 0,
        producer_id: 0,
        producer_epoch: 0,
        base_sequence: 0,
        record_count: 0,
    };
    Header::read(&padded).unwrap_or(zero)
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_split_says_how_it_ended_and_what_is_short() {
        let mut frame = vec![0; 26];
        frame[7] = 9;
        frame[11] = 14;
        frame[16] = 2;
        let mut run = frame.clone();
        run.extend(&frame);
        let (batches, framing) = Incoming::split(&Bytes::from(run.clone()));
        assert_eq!((batches.len(), framing), (2, Framing::Complete));
        assert!(batches.iter().all(|batch| batch.facts.short_header && !batch.facts.crc_ok));
        assert!(batches.iter().all(|batch| batch.facts.header.base_offset == 9 && batch.facts.length == 26));

        run.extend([0; 5]);
        assert_eq!(Incoming::split(&Bytes::from(run.clone())).1, Framing::CutTail);
        run.extend([0; 20]);
        assert_eq!(Incoming::split(&Bytes::from(run)).1, Framing::LengthTooSmall);
        assert_eq!(Incoming::split(&Bytes::new()).1, Framing::Complete);
    }

    #[test]
    fn a_split_is_bounded() {
        let mut frame = [0; 26];
        frame[11] = 14;
        let run = frame.repeat(MAX_BATCHES + 7);
        assert_eq!(Incoming::split(&Bytes::from(run)).0.len(), MAX_BATCHES + 1);
    }
}
