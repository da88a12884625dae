//! Two answers: is the host alive (else it must be started anew), and is it ready (else clients must not be sent to it).

use std::fmt::Write as _;
use std::time::Duration;

use super::thread::{Found, Work};
use crate::shared::{PartitionId, Shared};

/// Lines about partitions at most.
const LINES_MAX: usize = 100;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Health {
    pub(super) is_good: bool,
    /// Why, in lines.
    pub(super) text: String,
}

impl Health {
    pub(super) fn good(text: &str) -> Self {
        Self { is_good: true, text: format!("{text}\n") }
    }

    fn bad(text: String) -> Self {
        Self { is_good: false, text }
    }
}

/// Whether every append thread takes work: none has ended, and none has been at one piece of work for too long. While
/// partitions are opened, which may take long, and while the host shuts down, only an ended one counts.
pub(super) fn alive(shared: &Shared) -> Health {
    if shared.stopping.is_cancelled() {
        return Health::good("shutting down");
    }
    let longest = Duration::from_millis(shared.config.limits.append_stall_ms_max);
    let mut text = String::new();
    for (index, thread) in shared.metrics.threads.iter().enumerate() {
        let problem = match thread.duty.found() {
            Found::Ended => {
                "has ended, its partitions take nothing until the host is started anew".to_owned()
            }
            Found::Busy(work, time) if time > longest && shared.metrics.is_opened() => {
                let (time, longest) = (time.as_secs_f64(), longest.as_secs_f64());
                format!("has been {} for {time:.1} s, more than {longest:.1} s", doing(shared, work))
            }
            Found::Busy(..) | Found::Idle => continue,
        };
        // Writing to a text does not fail.
        let _ = writeln!(text, "append thread {index} {problem}");
    }
    if text.is_empty() { Health::good("ok") } else { Health::bad(text) }
}

/// Whether all partitions are open and online, and the host does not shut down.
pub(super) fn ready(shared: &Shared) -> Health {
    if shared.stopping.is_cancelled() {
        return Health::bad("shutting down\n".to_owned());
    }
    if !shared.metrics.is_opened() {
        return Health::bad("starting: partitions are being opened\n".to_owned());
    }
    let (mut text, mut count) = (String::new(), 0_usize);
    for partition in shared.each_partition() {
        let Some(reason) = partition.offline() else { continue };
        count = count.saturating_add(1);
        if count <= LINES_MAX {
            let (topic, index) = (&partition.topic.name, partition.index);
            let _ = writeln!(text, "offline, topic=`{topic}`, partition=`{index}`: {reason}");
        }
    }
    if count > LINES_MAX {
        let _ = writeln!(text, "and {} more", count.saturating_sub(LINES_MAX));
    }
    if count == 0 { Health::good("ok") } else { Health::bad(text) }
}

fn doing(shared: &Shared, work: Work) -> String {
    let place = |id: PartitionId| {
        let snapshot = shared.catalogue.snapshot();
        let topic = snapshot.topic_by_id(id.topic);
        let name = topic.map_or_else(|| crate::topic_id::format(id.topic), |topic| topic.name.clone());
        format!("topic=`{name}`, partition=`{}`", id.index)
    };
    match work {
        Work::Produce(id) => format!("judging and writing a request, {},", place(id)),
        Work::Flush(id) => format!("flushing, {},", place(id)),
        Work::Other => "at a change or at housekeeping".to_owned(),
    }
}
