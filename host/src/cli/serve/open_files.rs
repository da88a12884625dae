//! How many files the process may hold open: every connection is one, and the last segment of every partition, and up to
//! 512 of all older segments.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside connections below which a host is told to have too few.
const MARGIN: u64 = 512;

/// Raises the soft limit to the hard one, and warns if that is little for so many connections.
pub(super) fn raise(connections_max: usize) {
    let before = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: before.maximum, maximum: before.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
    let Some(open_files_max) = getrlimit(Resource::Nofile).current else {
        tracing::info!("open files are not limited");
        return;
    };
    let needed = u64::try_from(connections_max).unwrap_or(u64::MAX).saturating_add(MARGIN);
    if open_files_max < needed {
        tracing::warn!(
            open_files_max,
            connections_max,
            "too few open files: every connection is one, the last segment of every partition, and up to 512 older segments"
        );
    } else {
        tracing::info!(open_files_max, "limit of open files");
    }
}
