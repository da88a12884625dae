//! The seam for a broker: what the engine asks of a partition while a request is judged.

use bytes::Bytes;
use verbatim_batch::Codec;
use verbatim_contract::{Comparison, CutPreview, ProducerState, Replica, Unreadable};

use crate::Incoming;

/// A partition as a request is judged against it. Every method answers about the state before the request and changes
/// nothing that a reader could see: a broker writes only what a [`Plan`](crate::Plan) says, after the judging.
///
/// It is handed over by value for the time of a call and comes back with the verdict, whatever happened. Box it if it is
/// large.
pub trait Partition: Send + 'static {
    /// Compares a batch with what is stored in its offset range when its base offset is `base_offset`: `Same` only if the
    /// stored bytes equal [`Incoming::bytes`]. For `Differs`, `verbatim_batch::first_difference` finds the offset; holes
    /// store nothing, and a range that lies below the start as a whole is `Absent`. What was received counts: of a batch with
    /// a [`Placed::received`](crate::Placed::received) that digest is kept, and compared with
    /// [`Incoming::digest`]; where they differ, `Differs` tells the base offset.
    fn compare(&mut self, batch: &Incoming, base_offset: i64) -> Comparison;

    /// What a cut to `to` would leave; cuts nothing. Any number may be asked: one below the start or above the end is no
    /// boundary, and one above the end leaves every entry.
    fn cut(&mut self, to: i64) -> CutPreview;

    /// What is remembered of a producer; its newest state also travels in with each of its batches ([`crate::Call::new`]).
    fn producer(&mut self, producer_id: i64) -> Option<ProducerState>;

    /// All replicas, the one that judges included.
    fn replicas(&mut self) -> Vec<Replica>;

    /// The next piece, at most `max` bytes, of a batch's inflated records; empty at the end. `index` is the batch's place
    /// in the request; the partition remembers how far each was read, best in a [`RecordReader`](crate::RecordReader).
    ///
    /// # Errors
    /// Why they cannot be read; asking again gives the same.
    fn records(&mut self, index: u32, batch: &Incoming, max: u32) -> Result<Vec<u8>, Unreadable>;

    /// All of a batch's records, inflated, however far [`Self::records`] gave them. Asked for a batch that is rewritten.
    ///
    /// # Errors
    /// Why they cannot be read, as [`Self::records`] says it.
    fn inflated(&mut self, index: u32, batch: &Incoming) -> Result<Bytes, Unreadable>;

    /// Compresses the records of a batch that is rewritten, by the codec that it came with, which is not `None`.
    ///
    /// # Errors
    /// Why that cannot be done, in words; the request then fails.
    fn compress(&mut self, codec: Codec, plain: &[u8]) -> Result<Vec<u8>, String>;

    /// The call is judged once more: records are read from their beginning again.
    fn start_over(&mut self);

    /// The value of one of the module's own keys for this topic.
    fn config(&mut self, key: &str) -> Option<String>;

    /// A line that the module wrote, already limited in size and rate.
    fn trace(&mut self, line: &str);
}
