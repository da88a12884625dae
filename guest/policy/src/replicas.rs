//! Replicas in sync (R41).

use verbatim_contract::{Callbacks, Reason, Refusal};

use crate::case::Case;
use crate::refuse;

/// R41: acks = all needs `min.insync.replicas` replicas that are in sync and online (19).
pub(crate) fn enough(case: &Case<'_>, log: &mut dyn Callbacks) -> Result<(), Refusal> {
    let least = case.policy.min_insync;
    // The replica that judges is one, so there is nothing to ask for a minimum of one.
    if case.request.acks != -1 || least <= 1 {
        return Ok(());
    }
    let ready = log.replicas().iter().filter(|replica| replica.in_sync && replica.online).count();
    if u32::try_from(ready).is_ok_and(|ready| ready < least) {
        return Err(refuse::request(
            Reason::NotEnoughReplicas,
            i64::from(least),
            format_args!(
                "acks=-1 needs min.insync.replicas = {least} in sync and online, replicas=`{ready}`"
            ),
        ));
    }
    Ok(())
}
