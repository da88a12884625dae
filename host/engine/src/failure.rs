//! Why a request has no plan: the module refused it, or the module failed.

use std::fmt;

use verbatim_contract::Refusal;

/// A request that is not carried out. Nothing of it was kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The module refused it: the request is at fault.
    #[error("{}", .0.text)]
    Refused(Refusal),
    /// The module failed: the request may be right.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Keys of a module that a topic cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misconfigured {
    /// The module does not take them: key, value and expectation in its words.
    #[error("{0}")]
    Refused(String),
    /// The module failed, so that nobody knows.
    #[error("the module could not check its configuration: {0}")]
    Failed(#[from] Failure),
}

/// A module that failed. Its store and instance are gone; the next call gets new ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It trapped, which is a bug in it.
    #[error("the module trapped: {text}")]
    Trap {
        /// The cause and the last line that the module wrote in this call, then a short backtrace.
        text: String,
    },
    /// It used more time than it has.
    #[error("the module exceeded its deadline of {budget_us} us of processor time")]
    Deadline {
        /// What it had, in microseconds.
        budget_us: u64,
    },
    /// It asked for more memory than it may have and gave up.
    #[error("the module wanted more memory than its limit, bytes=`{wanted}`, limit {limit}")]
    Memory {
        /// What it asked for, in bytes.
        wanted: usize,
        /// Its limit, in bytes.
        limit: usize,
    },
    /// It accepted the request with a result that the host does not carry out.
    #[error("the module broke an invariant: {0}")]
    Invariant(#[from] Broken),
    /// No instance of it could be made.
    #[error("the module does not start: {text}")]
    Start {
        /// Why.
        text: String,
    },
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{which}: {text}")]
pub struct Broken {
    /// Which one.
    pub which: Invariant,
    /// Field, value and expectation in words.
    pub text: String,
}

impl Broken {
    pub(crate) fn new(which: Invariant, text: impl Into<String>) -> Self {
        Self { which, text: text.into() }
    }
}

/// The invariants that the host enforces whatever a module says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invariant {
    /// I1: a partition's offsets strictly increase.
    Offsets,
    /// I2: its leader epochs never decrease by offset.
    Epochs,
    /// I3: bytes kept are bytes received.
    Bytes,
    /// I5: nothing unvalidated is ever readable, least of all a false checksum.
    Validated,
    /// I6: a cut happens only as the request and the topic allow.
    Cut,
    /// I7: what a module hands over is bounded.
    Limits,
    /// I8: every batch is settled exactly once, where it belongs.
    Settled,
}

impl fmt::Display for Invariant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Offsets => "offsets (I1)",
            Self::Epochs => "leader epochs (I2)",
            Self::Bytes => "bytes (I3)",
            Self::Validated => "validation (I5)",
            Self::Cut => "cut (I6)",
            Self::Limits => "limits (I7)",
            Self::Settled => "settlement (I8)",
        })
    }
}
