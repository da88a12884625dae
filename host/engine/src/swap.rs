//! Modules that are swapped while they serve: a [`Slot`] holds the one in service, a [`Follower`] judges by it.

mod counters;
mod evidence;
mod follower;
mod generation;
mod shadow;
mod slot;
mod tape;
mod topic;

pub use counters::{Counts, TIME_BOUNDS_NS, Times};
pub use evidence::{MAX_PROBES, ROLLBACK_WINDOW, Witness};
pub use follower::Follower;
pub use generation::{Cause, Generation, RolledBack, Stamp, TakenBack};
pub use shadow::{
    Bound, Difference, MAX_DIFFERENCES, MAX_QUEUED_BYTES, Said, Shadow, ShadowEnd, ShadowError, ShadowReport,
};
pub use slot::{Before, Event, MAX_HISTORY, NoRollback, Slot, SlotSettings};
pub use tape::{MAX_TAPE_LEN, Recorded, Replay, Tape};
pub(crate) use topic::TopicId;
