//! What a request builds on: the log as it is, or as a cut leaves it.

use verbatim_contract::{CutPreview, EpochEntry, Position};

/// The log just before the request's batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    /// Where the log ends.
    pub(crate) end: i64,
    /// The latest leader-epoch entry.
    pub(crate) last_entry: Option<EpochEntry>,
    /// The leader epoch of the offset below the end, -1 when nothing is there.
    pub(crate) epoch_before: i32,
}

impl Ground {
    /// The log as it is.
    pub(crate) fn of(position: &Position) -> Self {
        Self { end: position.end, last_entry: position.last_entry, epoch_before: position.epoch_before_end }
    }

    /// The log after a cut to `end`: every entry that is left began below it.
    pub(crate) fn after_cut(end: i64, preview: &CutPreview) -> Self {
        Self { end, last_entry: preview.last_entry, epoch_before: epoch_left(preview) }
    }
}

/// The epoch of the last entry that a cut leaves, -1 when it leaves none.
pub(crate) fn epoch_left(preview: &CutPreview) -> i32 {
    preview.last_entry.map_or(-1, |entry| entry.epoch)
}
