//! What judges a request, whatever it runs in.

use verbatim_contract::{Description, Position, Replica};

use crate::{Call, Denied, Failure, Partition, Plan, Stamp};

/// Judges produce requests. One judge belongs to one append thread and is called synchronously.
pub trait Judge<P: Partition> {
    /// What the module says of itself.
    fn describe(&self) -> &Description;

    /// Judges one partition's part of a request. The partition is handed over by value and comes back with the verdict,
    /// after a trap too.
    fn judge(&mut self, call: Call, partition: P) -> Judged<P>;

    /// May `replica`, whose log ends at `replica_end`, join the in-sync set of a partition at `position` (R41b)?
    ///
    /// # Errors
    /// Why not.
    fn may_join(&mut self, replica: &Replica, replica_end: i64, position: &Position)
    -> Result<(), NotJoined>;

    /// Takes the module that is in service now, where it can be swapped, and says which one that is. [`Self::judge`] does so by
    /// itself; ask before it for what is decided by module, as by [`Poison`](crate::Poison).
    fn follow(&mut self) -> Option<Stamp> {
        None
    }

    /// Which module judged last, where it can be swapped.
    fn judged_by(&self) -> Option<Stamp> {
        None
    }
}

/// What comes back from a judge.
#[derive(Debug)]
pub struct Judged<P> {
    /// The call as it was handed over.
    pub call: Call,
    /// The partition as it was handed over.
    pub partition: P,
    /// What is to be done, or why nothing is.
    pub verdict: Result<Plan, Denied>,
}

/// Why a replica does not join the in-sync set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotJoined {
    /// It may not, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The module that decides failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The host's own rule for a module that does not decide who may join (R41b, KIP-320): nobody who is marked offline, who
/// ends below the start of the current epoch, or who ends below the high watermark.
///
/// # Errors
/// The reason in words.
pub fn may_join(replica: &Replica, replica_end: i64, position: &Position) -> Result<(), String> {
    if !replica.online {
        return Err(format!("replica {} is offline, online=`false`", replica.id));
    }
    if let Some(entry) = position.last_entry.filter(|entry| replica_end < entry.start) {
        let (id, epoch, start) = (replica.id, entry.epoch, entry.start);
        return Err(format!(
            "replica {id} ends below the start {start} of epoch {epoch}, end=`{replica_end}`"
        ));
    }
    if replica_end < position.high_watermark {
        let (id, high_watermark) = (replica.id, position.high_watermark);
        return Err(format!(
            "replica {id} ends below the high watermark {high_watermark}, end=`{replica_end}`"
        ));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use verbatim_contract::EpochEntry;

    use super::*;

    #[test]
    fn a_replica_joins_once_it_is_online_and_caught_up() {
        let position = Position {
            start: 0,
            end: 60,
            high_watermark: 50,
            stable_offset: 50,
            last_entry: Some(EpochEntry { epoch: 3, start: 40 }),
            epoch_before_end: 3,
            shown_epoch: 3,
        };
        let replica = |online| Replica { id: 2, in_sync: false, online };
        assert_eq!(may_join(&replica(true), 50, &position), Ok(()));
        for (online, end, expected) in
            [(false, 60, "offline"), (true, 39, "epoch 3"), (true, 49, "watermark 50")]
        {
            let reason = may_join(&replica(online), end, &position).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
