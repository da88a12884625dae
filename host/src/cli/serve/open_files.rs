//! How many files the process may hold open: every connection is one, a partition that is being written about two, and up to
//! 512 of all older segments.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside those of connections and partitions: 512 of older segments, and the process's own.
const OTHERS: u64 = 600;
/// Its last segment, and what is made or synced while it is written.
const EACH_PARTITION: u64 = 2;

/// Raises the soft limit to the hard one.
pub(super) fn raise() {
    let before = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: before.maximum, maximum: before.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}

/// Tells the limit, and warns if it is too low for so many connections and partitions.
pub(super) fn tell(connections_max: usize, partitions: usize) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(soft) = current else {
        tracing::info!("open files are not limited");
        return;
    };
    let needed = needed(connections_max, partitions);
    if soft < needed {
        let hard = maximum.map_or_else(|| "none".to_owned(), |hard| hard.to_string());
        tracing::warn!(
            soft,
            hard,
            needed,
            connections_max,
            partitions,
            "the limit of open files is low, partitions may go offline and connections be refused: raise the hard limit (LimitNOFILE, ulimit -Hn), or lower connections-max"
        );
    } else {
        tracing::info!(open_files_max = soft, needed, "limit of open files");
    }
}

/// Open files that are enough.
fn needed(connections_max: usize, partitions: usize) -> u64 {
    let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let partitions = wide(partitions).saturating_mul(EACH_PARTITION);
    wide(connections_max).saturating_add(partitions).saturating_add(OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_are_needed_are_those_of_the_manual() {
        assert_eq!(needed(1_000, 0), 1_600);
        assert_eq!(needed(1_000, 10_000), 21_600);
        assert_eq!(needed(usize::MAX, usize::MAX), u64::MAX);
    }
}
