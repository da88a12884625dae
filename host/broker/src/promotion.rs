//! Promotion: `produce.at.offset` is removed, and a mirrored topic becomes one that anybody writes.
//!
//! 1. Every partition is *sealed*: no write is taken from here on.
//! 2. It is refused with 44, and everything unsealed, while a transaction is open (the producers are named: their markers
//!    would have to be written first) or where a mirrored producer id has this host's own prefix.
//! 3. The catalogue says `promoting`. From here on it goes forward only; a crash resumes at the next start.
//! 4. Partition by partition: the declared position of the source ends, the leader epoch becomes the highest one shown, or that
//!    a group committed an offset with, plus one, with its entry at the end of the log. The log keeps that it was promoted, so
//!    doing it again changes nothing.
//! 5. The catalogue says `live`; partitions are opened for plain writes.

use std::sync::Arc;

use crate::catalogue::{State, Topic};
use crate::errors::ApiError;
use crate::shared::{PartitionId, Shared};
use crate::topics;

/// Producers that a refusal names at most.
const NAMED_MAX: usize = 10;

/// No epoch of a committed offset raises a partition's to this or above.
const EPOCHS_KEPT: i32 = i32::MAX / 2;

/// What a sealed partition holds against its promotion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Obstacles {
    /// Producers with an open transaction, and where it began.
    pub(crate) open: Vec<(i64, i64)>,
    /// Mirrored producer ids that have this host's prefix.
    pub(crate) own_ids: Vec<i64>,
}

/// Promotes a topic to `target`, which is the topic without the property. The caller holds the admin lock.
pub(crate) async fn promote(shared: &Shared, target: Topic, validate_only: bool) -> Result<(), ApiError> {
    if target.state != State::Promoting {
        let checked = seal(shared, &target).await;
        if validate_only || checked.is_err() {
            unseal(shared, &target).await?;
            return checked;
        }
    } else if validate_only {
        return Ok(());
    }
    let promoting = Topic { state: State::Promoting, ..target };
    if let Err(error) = topics::put(shared, &promoting) {
        unseal(shared, &promoting).await?;
        return Err(error);
    }
    resume(shared, promoting).await
}

/// Steps 4 and 5, from wherever they stopped.
pub(crate) async fn resume(shared: &Shared, topic: Topic) -> Result<(), ApiError> {
    for index in 0..topic.partitions {
        let id = PartitionId { topic: topic.id, index };
        let floor = epoch_floor(shared, id);
        let epoch = shared.appender(id).call(move |worker| worker.promote(id, floor)).await??;
        tracing::info!(topic = topic.name, partition = index, epoch, "partition promoted");
    }
    let live = Topic { state: State::Live, ..topic };
    tracing::info!(topic = live.name, "topic promoted: it takes plain writes now");
    topics::apply(shared, live.clone()).await?;
    unseal(shared, &live).await
}

/// The highest epoch of a committed offset, so that no reader's is above what it reads next. Anybody may commit anything:
/// the last epochs there are do not count, which leaves some for the starts to come.
fn epoch_floor(shared: &Shared, id: PartitionId) -> i32 {
    let highest = shared.groups.keeper().offsets().highest_epoch(id);
    if highest < EPOCHS_KEPT { highest } else { -1 }
}

async fn seal(shared: &Shared, topic: &Topic) -> Result<(), ApiError> {
    let prefix = shared.catalogue.snapshot().producer_prefix;
    for index in 0..topic.partitions {
        let id = PartitionId { topic: topic.id, index };
        let obstacles = shared.appender(id).call(move |worker| worker.seal(id, prefix)).await??;
        check(topic, index, &obstacles)?;
    }
    Ok(())
}

async fn unseal(shared: &Shared, topic: &Topic) -> Result<(), ApiError> {
    let topic = Arc::new(topic.clone());
    for index in 0..topic.partitions {
        let id = PartitionId { topic: topic.id, index };
        shared.appender(id).call(move |worker| worker.unseal(id)).await?;
    }
    Ok(())
}

fn check(topic: &Topic, index: u32, obstacles: &Obstacles) -> Result<(), ApiError> {
    let place = format!("topic=`{}`, partition=`{index}`", topic.name);
    if !obstacles.open.is_empty() {
        let named: Vec<String> = obstacles
            .open
            .iter()
            .take(NAMED_MAX)
            .map(|(producer, first)| format!("producer {producer} since offset {first}"))
            .collect();
        let count = obstacles.open.len();
        let text = format!(
            "the topic cannot be promoted while {count} transactions are open: {}, {place}",
            named.join(", ")
        );
        return Err(ApiError::policy(text));
    }
    if let Some(id) = obstacles.own_ids.first() {
        let text = format!(
            "the topic cannot be promoted: a mirrored producer id has this host's own prefix, producer_id=`{id}`, {place}"
        );
        return Err(ApiError::policy(text));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::settings::{Settings, Values};

    #[test]
    fn an_open_transaction_names_its_producer() {
        let topic = Topic {
            name: "orders".to_owned(),
            id: uuid::Uuid::nil(),
            partitions: 1,
            values: Values::new(),
            settings: Settings::read(&Values::new()).unwrap(),
            generation: 0,
            state: State::Live,
        };
        let obstacles = Obstacles { open: vec![(4242, 17)], own_ids: Vec::new() };
        let error = check(&topic, 3, &obstacles).unwrap_err();
        assert_eq!(error.code.number(), 44);
        for part in ["4242", "17", "orders", "partition=`3`"] {
            assert!(error.text.contains(part), "{} lacks {part}", error.text);
        }
        let obstacles = Obstacles { open: Vec::new(), own_ids: vec![77] };
        assert!(check(&topic, 0, &obstacles).unwrap_err().text.contains("77"));
        assert_eq!(check(&topic, 0, &Obstacles::default()), Ok(()));
    }
}
