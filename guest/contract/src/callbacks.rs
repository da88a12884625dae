//! What a module asks back, and what it offers.

use alloc::{string::String, vec::Vec};

use crate::{Batch, EpochEntry, Policy, Position, ProducerState, Refusal, Request};

/// Where a batch goes. On an exact topic offset and epoch are the batch's own and the rest is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Base offset.
    pub base_offset: i64,
    /// Partition leader epoch.
    pub leader_epoch: i32,
    /// The timestamp-type bit.
    pub log_append_time: bool,
    /// maxTimestamp, milliseconds.
    pub max_timestamp: i64,
}

/// A batch of the request against what is stored at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Nothing is stored in the batch's offset range.
    Absent,
    /// The same bytes are stored there, or were received there where records are rewritten.
    Same,
    /// A batch with that base offset is stored with other bytes, or was received with other ones; the offset of the first
    /// difference. Of bytes that are gone by a rewriting only the batch is known: its base offset then.
    Differs(i64),
    /// The range touches stored batches that begin elsewhere; the first offset in dispute.
    Overlaps(i64),
}

/// What a cut would leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutPreview {
    /// The target is a stored batch boundary, the end of the log, or within a hole.
    pub at_boundary: bool,
    /// The last epoch entry that would be left.
    pub last_entry: Option<EpochEntry>,
    /// The highest leader epoch among entries and batches that would be cut.
    pub highest_epoch_cut: Option<i32>,
}

/// A replica of the partition, the one that judges included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Broker id.
    pub id: i32,
    /// It is in the in-sync set.
    pub in_sync: bool,
    /// Its log directory is online.
    pub online: bool,
}

/// Why records cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The compressed bytes are damaged.
    Corrupt,
    /// They inflate to more than the limit.
    TooLarge,
    /// No such codec.
    UnknownCodec,
}

/// What a module may ask and say during a call. Every batch of an accepted request is settled exactly once, by `append`,
/// `duplicate` or `rewrite`; these only stage.
pub trait Callbacks {
    /// Places batch `index` of the request.
    fn append(&mut self, index: u32, placement: Placement);
    /// Batch `index` is already stored with this base offset.
    fn duplicate(&mut self, index: u32, base_offset: i64);
    /// Places batch `index` with other records; only where [`Policy::may_rewrite`].
    ///
    /// `records` is what [`Callbacks::records`] gives, changed: the batch's section of records as record batch v2 has it, not
    /// compressed, one record behind the other, without the batch's header. The host walks it and takes the number of
    /// records from it; no record at all is an empty batch. It keeps the received header but for length, checksum, number
    /// of records and maxTimestamp, which becomes the largest that is left, as after a compaction. Where nothing is left, and
    /// where the type is LogAppendTime, it stays on an exact topic, and is the placement's on a normal one. It compresses the
    /// records by the batch's codec; an empty batch has none (R17).
    ///
    /// What a compaction would not do is refused, and never stored: offset deltas must rise and be among those received, and
    /// each record that is left keeps timestamp delta and attributes. Key, value and headers may be others. Control batches
    /// cannot be rewritten. A batch whose records came with more than 16 MiB, inflated, is too large for it: what the module
    /// accepts, the host then refuses ([`Reason::BatchTooLarge`](crate::Reason::BatchTooLarge)). To hand back more than 16 MiB is
    /// refused so too, or breaks the call.
    fn rewrite(&mut self, index: u32, placement: Placement, records: Vec<u8>);
    /// Compares batch `index` with what is stored at `base_offset`.
    fn compare(&mut self, index: u32, base_offset: i64) -> Comparison;
    /// What a cut to `to` would leave; cuts nothing.
    fn cut(&mut self, to: i64) -> CutPreview;
    /// What is remembered of a producer.
    fn producer(&mut self, producer_id: i64) -> Option<ProducerState>;
    /// All replicas of the partition.
    fn replicas(&mut self) -> Vec<Replica>;
    /// The next piece, at most `max` bytes, of batch `index`'s inflated records; empty at the end.
    ///
    /// # Errors
    /// Why they cannot be read; asking again gives the same.
    fn records(&mut self, index: u32, max: u32) -> Result<Vec<u8>, Unreadable>;
    /// The value of one of the module's own configuration keys.
    fn config(&mut self, key: &str) -> Option<String>;
    /// A line for the host's log; the host limits size and rate.
    fn trace(&mut self, line: &str);
}

/// What a module says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name, as topics choose it by `produce.module`.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// It judges exact topics.
    pub supports_exact: bool,
    /// It judges normal topics.
    pub supports_normal: bool,
    /// It hands back other records on topics that allow it.
    pub rewrites: bool,
}

/// The export `produce-path`: what judges.
pub trait ProducePath {
    /// Judges one partition's part of a request: settles every batch through `callbacks`, or refuses all of it.
    ///
    /// # Errors
    /// The refusal; whatever was staged before it is dropped.
    fn produce(
        &self,
        policy: &Policy,
        position: &Position,
        request: &Request,
        entries: &[EpochEntry],
        batches: &[Batch],
        callbacks: &mut dyn Callbacks,
    ) -> Result<(), Refusal>;

    /// What it is.
    fn describe(&self) -> Description;
}

/// The export `membership` (R41b): who may join the in-sync set.
pub trait Membership {
    /// May `replica`, whose log ends at `replica_end`, join the in-sync set of a partition at `position`?
    ///
    /// # Errors
    /// The reason in words.
    fn may_join(&self, replica: &Replica, replica_end: i64, position: &Position) -> Result<(), String>;
}

/// The export `configuration`: whether the keys that an operator sets for a module are such as it understands.
pub trait Configuration {
    /// Judges all of a topic's keys that begin with the module's name and a dot, each with its value. Without a rule of its own
    /// a policy takes any.
    ///
    /// # Errors
    /// What is wrong with them: an unknown key or a wrong value, by key, value and expectation.
    fn check(&self, keys: &[(String, String)]) -> Result<(), String> {
        let _ = keys;
        Ok(())
    }
}
