//! What generations of modules did, for `/metrics`: of each name the one in service and the one before it, so that the
//! number of series stays bounded however often modules are swapped.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use verbatim_broker::metrics::{Family, Kind, More, Out};
use verbatim_engine::{Counts, FAILURE_LABELS, Generation, REASON_LABELS, TIME_BOUNDS_NS};

use super::{Modules, Outcome};

const LABELS: &[&str] = &["module", "generation"];

const SERVES: Family = Family {
    name: "verbatim_generation_info",
    kind: Kind::Gauge,
    labels: &["module", "generation", "sha256"],
    help: "1 for the generation of a module that is in service, 0 for the one before it.",
};
const CALLS: Family = Family {
    name: "verbatim_generation_calls_total",
    kind: Kind::Counter,
    labels: LABELS,
    help: "Partitions' parts of Produce requests that a generation judged.",
};
const BATCHES: Family = Family {
    name: "verbatim_generation_batches_total",
    kind: Kind::Counter,
    labels: LABELS,
    help: "Batches in them.",
};
const REFUSALS: Family = Family {
    name: "verbatim_generation_refusals_total",
    kind: Kind::Counter,
    labels: &["module", "generation", "reason"],
    help: "Those that it refused, by the contract's reason; a module's own is other.",
};
const FAILURES: Family = Family {
    name: "verbatim_generation_failures_total",
    kind: Kind::Counter,
    labels: &["module", "generation", "kind"],
    help: "Those on which it failed: trap, deadline, memory, invariant, start.",
};
const DURATION: Family = Family {
    name: "verbatim_generation_judging_duration_seconds",
    kind: Kind::Histogram,
    labels: LABELS,
    help: "How long judging took, of one call in eight.",
};
const MEMORY: Family = Family {
    name: "verbatim_generation_memory_max_bytes",
    kind: Kind::Gauge,
    labels: LABELS,
    help: "The most linear memory that one instance had.",
};
const SWAPS: Family = Family {
    name: "verbatim_module_swaps_total",
    kind: Kind::Counter,
    labels: &["module", "outcome"],
    help: "What became of swaps: swapped, refused, abandoned, rolled-back, rolled-back-by-itself.",
};

/// All families, for the table in docs/OPERATIONS.md.
#[cfg(test)]
const FAMILIES: &[&Family] = &[&SERVES, &CALLS, &BATCHES, &REFUSALS, &FAILURES, &DURATION, &MEMORY, &SWAPS];

/// One of a generation's numbers.
type Number = fn(&Counts) -> u64;

/// How often each outcome came about since the start.
#[derive(Debug, Default)]
pub(super) struct Outcomes([AtomicU64; Outcome::ALL.len()]);

impl Outcomes {
    pub(super) fn count(&self, outcome: Outcome) {
        let all = Outcome::ALL.iter().zip(&self.0);
        all.filter(|(one, _)| **one == outcome).for_each(|(_, count)| {
            count.fetch_add(1, Relaxed);
        });
    }
}

/// A generation's place among the series, and what it did.
struct Shown {
    module: String,
    number: String,
    sha256: String,
    serves: bool,
    counts: Counts,
}

impl Shown {
    fn new(module: &str, generation: &Arc<Generation>, serves: bool) -> Self {
        Self {
            module: module.to_owned(),
            number: generation.number().to_string(),
            sha256: generation.digest().to_string(),
            serves,
            counts: generation.counts(),
        }
    }

    fn labels(&self) -> [&str; 2] {
        [&self.module, &self.number]
    }
}

impl More for Modules {
    fn write(&self, out: &mut Out<'_>) -> fmt::Result {
        let mut shown = Vec::new();
        for (name, named) in &self.named {
            shown.extend(named.slot.previous().map(|previous| Shown::new(name, &previous, false)));
            shown.push(Shown::new(name, &named.slot.current(), true));
        }
        totals(out, &shown)?;
        by_kind(out, &shown)?;
        out.family(&SWAPS, |series| {
            self.named.iter().try_for_each(|(name, named)| {
                let mut outcomes = Outcome::ALL.iter().zip(&named.outcomes.0);
                outcomes.try_for_each(|(outcome, count)| {
                    series.number(&[name, outcome.name()], count.load(Relaxed))
                })
            })
        })
    }
}

fn totals(out: &mut Out<'_>, shown: &[Shown]) -> fmt::Result {
    out.family(&SERVES, |series| {
        shown
            .iter()
            .try_for_each(|one| series.gauge(&[&one.module, &one.number, &one.sha256], i64::from(one.serves)))
    })?;
    let of: [(&Family, Number); 3] = [
        (&CALLS, |counts| counts.calls),
        (&BATCHES, |counts| counts.batches),
        (&MEMORY, |counts| counts.memory_bytes),
    ];
    of.iter().try_for_each(|(family, number)| {
        out.family(family, |series| {
            shown.iter().try_for_each(|one| series.number(&one.labels(), number(&one.counts)))
        })
    })
}

fn by_kind(out: &mut Out<'_>, shown: &[Shown]) -> fmt::Result {
    out.family(&REFUSALS, |series| {
        shown.iter().try_for_each(|one| {
            let mut refused = REASON_LABELS.iter().zip(&one.counts.refusals).filter(|(_, count)| **count > 0);
            refused.try_for_each(|(reason, count)| series.number(&[&one.module, &one.number, reason], *count))
        })
    })?;
    out.family(&FAILURES, |series| {
        shown.iter().try_for_each(|one| {
            let mut failed = FAILURE_LABELS.iter().zip(&one.counts.failures);
            failed.try_for_each(|(kind, count)| series.number(&[&one.module, &one.number, kind], *count))
        })
    })?;
    out.family(&DURATION, |series| {
        shown.iter().try_for_each(|one| {
            let times = &one.counts.times;
            let within = TIME_BOUNDS_NS.iter().zip(&times.classes).map(|(bound, count)| (*bound, *count));
            let beyond = times.classes.last().copied().unwrap_or_default();
            series.times(&one.labels(), within, beyond, times.sum_ns)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_documented() {
        let operations = include_str!("../../../docs/OPERATIONS.md");
        for family in FAMILIES {
            let labels = if family.labels.is_empty() { "-".to_owned() } else { family.labels.join(", ") };
            let unit = if family.unit().is_empty() { "-" } else { family.unit() };
            let row = format!(
                "| `{}` | {} | {unit} | {labels} | {} |",
                family.name,
                family.kind.name(),
                family.help
            );
            assert!(operations.contains(&row), "{row}");
        }
    }
}
