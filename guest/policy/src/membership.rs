//! Who may join the in-sync set (R41b, KIP-320).

use alloc::format;
use alloc::string::String;

use verbatim_contract::{Position, Replica};

/// R41b: the replica is online and has everything up to the high watermark and to the start of the current
/// epoch; with less, its election could lose what a reader has seen.
pub(crate) fn may_join(replica: &Replica, replica_end: i64, position: &Position) -> Result<(), String> {
    let id = replica.id;
    if !replica.online {
        return Err(format!("replica {id} must be online, online=`false`"));
    }
    if let Some(entry) = position.last_entry.filter(|entry| replica_end < entry.start) {
        return Err(format!(
            "replica {id} must reach epoch {}'s start at {}, end=`{replica_end}`",
            entry.epoch, entry.start
        ));
    }
    if replica_end < position.high_watermark {
        return Err(format!(
            "replica {id} must reach the high watermark {}, end=`{replica_end}`",
            position.high_watermark
        ));
    }
    Ok(())
}
