//! What two modules said of the same call, and whether that is the same.

use std::fmt;

use verbatim_contract::{Reason, Refusal};

use crate::{Call, Denied, FAILURE_LABELS, Failure, Plan, TopicId, failure_place, reason_label};

/// A call on which a candidate says something else than the module in service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The topic's own id, high and low 64 bits.
    pub topic_id: (u64, u64),
    /// The partition's index.
    pub partition: u32,
    /// Base offset of the first batch, as received; none without batches.
    pub base_offset: Option<i64>,
    /// How many batches there are.
    pub batches: usize,
    /// What the module in service said.
    pub live: Said,
    /// What the candidate said.
    pub candidate: Said,
    /// Which parts of the verdicts differ.
    pub parts: Vec<&'static str>,
}

/// A verdict in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The request is carried out.
    Accepted {
        /// Batches that are appended.
        placed: usize,
        /// Batches that are stored already.
        duplicates: usize,
        /// The log's end afterwards.
        end: i64,
    },
    /// The request is refused.
    Refused {
        /// Which rule was broken.
        reason: Reason,
        /// The batch that broke it.
        batch: Option<u32>,
        /// What would have been accepted.
        expected: Option<i64>,
        /// The module's words.
        text: String,
    },
    /// The module failed.
    Failed(Failure),
}

impl Difference {
    /// Whether a verdict differs: in what a plan does, in a refusal's reason, batch or number (not its words), in the kind of
    /// a failure, or altogether.
    pub(super) fn between(
        call: &Call,
        live: &Result<Plan, Denied>,
        candidate: &Result<Plan, Denied>,
    ) -> Option<Self> {
        let parts = parts(live, candidate);
        (!parts.is_empty()).then(|| Self {
            topic_id: call.policy.topic_id,
            partition: call.policy.partition,
            base_offset: call.batches.first().map(|batch| batch.facts.header.base_offset),
            batches: call.batches.len(),
            live: Said::from(live),
            candidate: Said::from(candidate),
            parts,
        })
    }
}

/// The names of what differs.
fn parts(live: &Result<Plan, Denied>, candidate: &Result<Plan, Denied>) -> Vec<&'static str> {
    let named = |all: &[(&'static str, bool)]| {
        all.iter().filter(|(_, same)| !same).map(|&(name, _)| name).collect::<Vec<_>>()
    };
    match (live, candidate) {
        (Ok(a), Ok(b)) => named(&[
            ("cut", a.cut == b.cut),
            ("epoch entries", a.entries == b.entries),
            ("batches appended", a.appends == b.appends),
            ("duplicates", a.duplicates == b.duplicates),
            ("end", a.end == b.end),
            ("start", a.start == b.start),
            ("shown epoch", a.shown_epoch == b.shown_epoch),
            ("source", a.source == b.source),
        ]),
        (Err(Denied::Refused(a)), Err(Denied::Refused(b))) => named(&[
            ("reason", a.reason == b.reason),
            ("batch", a.batch == b.batch),
            ("expected", a.expected == b.expected),
        ]),
        (Err(Denied::Failed(a)), Err(Denied::Failed(b))) => {
            named(&[("failure", failure_place(a) == failure_place(b))])
        }
        _ => vec!["verdict"],
    }
}

impl From<&Result<Plan, Denied>> for Said {
    fn from(verdict: &Result<Plan, Denied>) -> Self {
        match verdict {
            Ok(plan) => Self::Accepted {
                placed: plan.appends.len(),
                duplicates: plan.duplicates.len(),
                end: plan.end,
            },
            Err(Denied::Refused(Refusal { reason, batch, expected, text })) => {
                Self::Refused { reason: *reason, batch: *batch, expected: *expected, text: text.clone() }
            }
            Err(Denied::Failed(failure)) => Self::Failed(failure.clone()),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "topic id {}, partition `{}`", TopicId(self.topic_id), self.partition)?;
        if let Some(base) = self.base_offset {
            write!(formatter, ", {} batches from base offset `{base}`", self.batches)?;
        }
        let parts = self.parts.join(", ");
        write!(formatter, " ({parts}): live {}; candidate {}", self.live, self.candidate)
    }
}

impl fmt::Display for Said {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { placed, duplicates, end } => {
                write!(
                    formatter,
                    "accepts: {placed} batches appended, {duplicates} stored already, end `{end}`"
                )
            }
            Self::Refused { reason, text, .. } => {
                write!(formatter, "refuses ({}): {text}", reason_label(*reason))
            }
            Self::Failed(failure) => {
                let kind = FAILURE_LABELS.get(failure_place(failure)).copied().unwrap_or_default();
                let text = failure.to_string();
                write!(formatter, "fails ({kind}): {}", text.lines().next().unwrap_or_default())
            }
        }
    }
}
