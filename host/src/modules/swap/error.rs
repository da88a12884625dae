//! Why a swap or a rollback does not take place.

use std::time::Duration;

use verbatim_engine::{LoadError, Misconfigured, NoRollback, ShadowError};

use crate::modules::StoreError;
use crate::modules::store::Outcome;
use crate::modules::underway::SHADOW_TIME_MAX;

/// Why nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// There is no such name.
    #[error("there is no module of this name, name=`{name}`, expected one of {known}")]
    UnknownName {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// Somebody else is at it.
    #[error("a swap of this module is under way, name=`{name}`")]
    Busy {
        /// The name.
        name: String,
    },
    /// It is what serves.
    #[error("this very module serves already, name=`{name}`, sha256=`{sha256}`")]
    Same {
        /// The name.
        name: String,
        /// Its digest.
        sha256: String,
    },
    /// It is not a module that this host can use.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It does not pass a suite.
    #[error("the module does not pass the suite {suite}: {failed}")]
    Suite {
        /// The suite.
        suite: &'static str,
        /// The first tests that failed, with what differed.
        failed: String,
    },
    /// It does not judge topics that choose it.
    #[error(
        "the module {described} does not judge {mode} topics, and these choose it by produce.module=`{name}`: {topics}"
    )]
    Mode {
        /// The name.
        name: String,
        /// The module, as it says.
        described: String,
        /// `exact` or `normal`.
        mode: &'static str,
        /// A few of them.
        topics: String,
    },
    /// It does not take the keys of a topic that chooses it.
    #[error(
        "the module {described} does not take the keys of a topic that chooses it by produce.module=`{name}`, topic=`{topic}`: {source}"
    )]
    Keys {
        /// The name.
        name: String,
        /// The module, as it says.
        described: String,
        /// The topic, the first one.
        topic: String,
        /// What the module says is wrong with them.
        source: Misconfigured,
    },
    /// It could not be tried on live requests.
    #[error(transparent)]
    Shadow(#[from] ShadowError),
    /// The shadow period would be too long.
    #[error("a shadow period lasts at most {} s, shadow=`{} ms`", SHADOW_TIME_MAX.as_secs(), .asked.as_millis())]
    ShadowTime {
        /// What was asked for.
        asked: Duration,
    },
    /// Not as many live requests came as the module was to judge.
    #[error(
        "fewer live requests came within {} s than it was to judge first, expected {expected}: {counted}",
        .waited.as_secs()
    )]
    TooFew {
        /// How many were asked for.
        expected: u64,
        /// How long they were waited for.
        waited: Duration,
        /// What was judged.
        counted: String,
    },
    /// A rollback came before the swap was done: an operator's, or the host's own.
    #[error("a rollback overtook this swap, name=`{name}`")]
    Overtaken {
        /// The name.
        name: String,
    },
    /// Whoever asked for it did not wait for it.
    #[error("whoever asked for this swap was gone before it was done, name=`{name}`")]
    Gone {
        /// The name.
        name: String,
    },
    /// There is nothing to go back to.
    #[error("nothing to go back to, name=`{name}`: {why}")]
    NoRollback {
        /// The name.
        name: String,
        /// Why.
        why: NoRollback,
    },
    /// It cannot be kept, or what was kept cannot be had.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SwapError {
    /// The call is wrong, rather than the module.
    #[must_use]
    pub fn is_wrong_call(&self) -> bool {
        matches!(self, Self::UnknownName { .. } | Self::Same { .. } | Self::ShadowTime { .. })
    }

    /// How it stands in the history; not at all if it tells nothing of a module.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Load(_) | Self::Suite { .. } | Self::Mode { .. } | Self::Keys { .. } => {
                Some(Outcome::Refused)
            }
            Self::TooFew { .. } | Self::Overtaken { .. } | Self::Gone { .. } => Some(Outcome::Abandoned),
            _ => None,
        }
    }
}
