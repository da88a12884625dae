//! Retention: now and then old segments of normal topics go, as `cleanup.policy`, `retention.bytes` and `retention.ms` say.
//!
//! Each partition is looked at on its append thread by a call of its own, which removes a few segments at most and is
//! repeated while there are more, so that what is appended meanwhile waits for no more than that. An exact topic is left
//! alone whatever its properties say: its source deletes.

use std::sync::Weak;
use std::time::Duration;

use verbatim_log::{Reason, Removed, Retention};

use crate::append::{Worker, report};
use crate::errors::ApiError;
use crate::settings::Settings;
use crate::shared::{PartitionId, Shared};

/// Segments that one call removes at most.
const SEGMENTS_MAX: usize = 16;
/// The first look after a start is not later than this, as in Kafka.
const FIRST_LOOK: Duration = Duration::from_secs(30);

/// Runs as long as the host does.
pub(crate) async fn run_now_and_then(shared: Weak<Shared>) {
    let interval = shared.upgrade().map_or(FIRST_LOOK, |running| running.config.retention_check_interval);
    if interval == Duration::MAX {
        return;
    }
    tokio::time::sleep(interval.min(FIRST_LOOK)).await;
    while let Some(running) = shared.upgrade() {
        if look(&running).await.is_err() {
            return;
        }
        drop(running);
        tokio::time::sleep(interval).await;
    }
}

/// One look at all partitions, one after the other; an error means that the host shuts down.
async fn look(shared: &Shared) -> Result<(), ApiError> {
    let snapshot = shared.catalogue.snapshot();
    let normal = snapshot.topics.values().filter(|topic| !topic.settings.exact);
    for (topic, index) in normal.flat_map(|topic| (0..topic.partitions).map(move |index| (topic, index))) {
        let id = PartitionId { topic: topic.id, index };
        while shared.appender(id).call(move |worker| worker.retain(id)).await? {}
    }
    Ok(())
}

impl Worker {
    /// Removes what is due of a partition, a few segments at most; whether there is more.
    fn retain(&mut self, id: PartitionId) -> bool {
        // One that is offline or was deleted meanwhile is not looked at.
        let Ok(partition) = self.online(id) else { return false };
        if partition.topic().settings.exact || partition.log().is_exact() || partition.is_sealed() {
            return false;
        }
        let retention = retention(&partition.topic().settings);
        match partition.log_mut().retain(crate::api::now_ms(), &retention) {
            Ok(removed) => {
                tell(&partition.topic().name, id, &removed, &retention);
                let bytes = removed.segments.iter().map(|segment| segment.bytes).sum();
                self.setup.metrics.retention_removed(removed.segments.len(), bytes);
                removed.more
            }
            Err(error) => {
                report(partition.topic(), id, &error);
                false
            }
        }
    }
}

/// Without `delete` in its cleanup policy a topic keeps whatever lies above its start.
fn retention(settings: &Settings) -> Retention {
    let bytes = u64::try_from(settings.retention_bytes).ok().filter(|_| settings.deletes);
    let ms = Some(settings.retention_ms).filter(|ms| settings.deletes && *ms >= 0);
    Retention { bytes, ms, segments_max: SEGMENTS_MAX }
}

fn tell(topic: &str, id: PartitionId, removed: &Removed, retention: &Retention) {
    let partition = id.index;
    for segment in &removed.segments {
        let cause = match segment.reason {
            Reason::Start => format!("log start offset {} breach", removed.start),
            Reason::Size => {
                format!("log retention size {} breach", retention.bytes.unwrap_or_default())
            }
            Reason::Time => format!(
                "log retention time {}ms breach based on the largest record timestamp in the segment",
                retention.ms.unwrap_or_default()
            ),
        };
        let (base, bytes, largest) = (segment.base, segment.bytes, segment.largest_timestamp);
        tracing::info!(
            topic,
            partition,
            base_offset = base,
            bytes,
            largest_timestamp = largest,
            "Deleting segment due to {cause}"
        );
    }
    if removed.segments.iter().any(|segment| segment.reason != Reason::Start) {
        let start = removed.start;
        tracing::info!(topic, partition, "Incremented log start offset to {start} due to segment deletion");
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::settings::Values;

    #[test]
    fn what_is_kept_follows_the_properties() {
        let read = |pairs: &[(&str, &str)]| {
            let values: Values =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let kept = retention(&Settings::read(&values).unwrap());
            (kept.bytes, kept.ms)
        };
        assert_eq!(read(&[]), (None, Some(604_800_000)));
        assert_eq!(read(&[("retention.ms", "-1"), ("retention.bytes", "0")]), (Some(0), None));
        let bounds = [("retention.ms", "5"), ("retention.bytes", "7")];
        for (policy, kept) in [
            ("delete", (Some(7), Some(5))),
            ("compact", (None, None)),
            ("compact,delete", (Some(7), Some(5))),
        ] {
            assert_eq!(read(&[&bounds[..], &[("cleanup.policy", policy)]].concat()), kept, "{policy}");
        }
    }
}
