//! Where a copy and its source part: the dialogue of `docs/TAG.md`, "Realigning after error 1" (KIP-279).
//!
//! [`align`] asks both sides OffsetForLeaderEpoch in turns until they name the same epoch. It knows no connection: whoever can
//! answer for both sides implements [`Histories`].

use std::future::Future;

/// An answer of OffsetForLeaderEpoch: the largest epoch at or below the one asked for, and where it ends.
/// (-1, -1) if there are no epochs, or the one asked for is above the leader's (R42).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEnd {
    /// The epoch.
    pub epoch: i32,
    /// The offset where the next one begins, or the log's end.
    pub end: i64,
}

/// Both sides' leader epochs.
pub trait Histories {
    /// What a failed question says.
    type Error;

    /// The source's answer to OffsetForLeaderEpoch(`epoch`).
    fn source_epoch_end(&mut self, epoch: i32) -> impl Future<Output = Result<EpochEnd, Self::Error>> + Send;

    /// The copy's.
    fn copy_epoch_end(&mut self, epoch: i32) -> impl Future<Output = Result<EpochEnd, Self::Error>> + Send;
}

/// Where the copy stands, from ListOffsets and an answer's tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyState {
    /// Its log start.
    pub start: i64,
    /// Its end.
    pub end: i64,
    /// The epoch of its last entry; -1 = none.
    pub last_epoch: i32,
}

/// What the dialogue comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aligned {
    /// Both agree up to the copy's end: go on there, with the source's epoch at `at` - 1.
    Continue {
        /// The copy's end.
        at: i64,
    },
    /// Both agree up to `to` and no further. Round it down to a batch boundary of the copy (the batch that a fetch from `to`
    /// brings begins there or below), then truncate.
    Truncate {
        /// The largest common end.
        to: i64,
    },
    /// There is nothing in common to go on from. Someone decides.
    Stop {
        /// Why.
        why: Apart,
    },
}

/// Why source and copy cannot be aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// The source has no epochs, or its leader's is below the copy's last one.
    UnknownToSource,
    /// Everything that the copy holds is another history than the source's.
    NothingInCommon,
    /// A side named an epoch above the one it was asked for.
    Contradiction,
}

/// Finds the largest common end of copy and source.
///
/// A source whose start lies above the copy's end has lost data in between; that is for the caller to see, by the source's
/// ListOffsets, before it continues.
///
/// # Errors
/// The first question that fails.
pub async fn align<H: Histories>(histories: &mut H, copy: CopyState) -> Result<Aligned, H::Error> {
    if copy.last_epoch < 0 {
        return Ok(Aligned::Continue { at: copy.end });
    }
    // Where the copy's epoch `asked` ends.
    let (mut asked, mut copy_end) = (copy.last_epoch, copy.end);
    loop {
        let source = histories.source_epoch_end(asked).await?;
        if source.epoch < 0 {
            return Ok(Aligned::Stop { why: Apart::UnknownToSource });
        }
        if source.epoch == asked {
            return Ok(common(source.end.min(copy_end), copy));
        }
        if source.epoch > asked {
            return Ok(Aligned::Stop { why: Apart::Contradiction });
        }
        let ours = histories.copy_epoch_end(source.epoch).await?;
        if ours.epoch == source.epoch {
            return Ok(common(source.end.min(ours.end), copy));
        }
        if ours.epoch < 0 {
            return Ok(Aligned::Stop { why: Apart::NothingInCommon });
        }
        if ours.epoch > source.epoch {
            return Ok(Aligned::Stop { why: Apart::Contradiction });
        }
        // Lower every time, so this comes to an end.
        (asked, copy_end) = (ours.epoch, ours.end);
    }
}

/// The copy's answers may reach beyond its end, to what its source has declared.
fn common(end: i64, copy: CopyState) -> Aligned {
    if end >= copy.end {
        Aligned::Continue { at: copy.end }
    } else if end < copy.start {
        Aligned::Stop { why: Apart::NothingInCommon }
    } else {
        Aligned::Truncate { to: end }
    }
}
