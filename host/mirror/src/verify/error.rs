//! Why a verification cannot be done at all.

use std::path::PathBuf;

use super::report::Side;
use crate::cluster::{Cluster, ClusterError};

/// Why a verification cannot be done at all, as opposed to what it finds.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// An option is wrong, or two do not go together.
    #[error("{0}")]
    Options(String),
    /// A cluster cannot be asked.
    #[error("the {side} at {address} cannot be asked: {error}")]
    Cluster {
        /// Which one.
        side: Side,
        /// Where.
        address: String,
        /// Why.
        error: ClusterError,
    },
    /// No topic matches on either side.
    #[error("no topic matches, topics=`{patterns}`")]
    NoTopics {
        /// The expressions.
        patterns: String,
    },
    /// The state file cannot be used or kept.
    #[error("state file {what}, state=`{}`", .file.display())]
    State {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl VerifyError {
    pub(super) fn cluster(side: Side, cluster: &Cluster, error: ClusterError) -> Self {
        Self::Cluster { side, address: cluster.config().bootstrap.join(","), error }
    }
}
