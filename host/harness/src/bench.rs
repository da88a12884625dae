//! What judging costs.
//!
//! Only the judging is timed: the call is described, its checksums are computed and the log is copied beforehand. Two judges
//! take turns within each round, so that what slows the machine slows both, and their ratio says more than either number.

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;
use verbatim_engine::{Call, Denied, Judge, Memory};

use crate::batch::{self, Named};
use crate::contract::fitting_request;
use crate::format::{BatchSpec, LogSpec, Mode, PolicySpec, RecordSpec};
use crate::reason::reason_name;
use crate::run::supported;
use crate::state;

/// Records of each batch that [`bench()`] has judged.
pub const BENCH_RECORDS: usize = 100;

/// Bytes of each record's value.
const VALUE_LEN: usize = 100;
/// Calls that are made ready at once.
const AT_ONCE: usize = 32;

/// One kind of request to an empty topic.
struct Case {
    name: &'static str,
    mode: Mode,
    batches: u32,
    log: Memory,
    call: Call,
}

/// Nanoseconds for each batch, over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Timing {
    /// The median round.
    pub median_ns: u64,
    /// The fastest round.
    pub min_ns: u64,
    /// The slowest round.
    pub max_ns: u64,
}

/// What a case came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// What was judged.
    pub name: &'static str,
    /// On which kind of topic.
    pub mode: Mode,
    /// Batches in each call.
    pub batches: u32,
    /// The judge's own time; nothing if it denied the request.
    pub judge: Option<Timing>,
    /// The other judge's time in the same rounds; nothing if it denied the request.
    pub beside: Option<Timing>,
    /// The median, over the rounds, of the judge's time divided by the other's.
    pub ratio: Option<f64>,
    /// Why there is no time of the judge.
    pub denied: Option<String>,
}

impl Case {
    /// Every case. A normal topic takes one batch a request (R10) and always has its records validated (R14).
    fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for (name, mode, validates, codec) in [
            ("headers", Mode::Exact, false, "none"),
            ("plain records", Mode::Exact, true, "none"),
            ("lz4 records", Mode::Exact, true, "lz4"),
            ("plain records", Mode::Normal, true, "none"),
            ("lz4 records", Mode::Normal, true, "lz4"),
        ] {
            let counts: &[u32] = if mode == Mode::Exact { &[1, 16] } else { &[1] };
            let of = |&batches| Self::new(name, mode, validates, codec, batches);
            cases.extend(counts.iter().filter_map(of));
        }
        cases
    }

    /// Nothing if the batches cannot be built, which they can.
    fn new(name: &'static str, mode: Mode, validates: bool, codec: &str, batches: u32) -> Option<Self> {
        let policy = PolicySpec { validate_records: Some(validates), ..PolicySpec::default() };
        let log = state::log(mode, &policy, &LogSpec::default(), &Named::new()).ok()?;
        let record = RecordSpec { value_bytes: Some(VALUE_LEN), ..RecordSpec::default() };
        let spec = BatchSpec {
            records: Some(vec![record; BENCH_RECORDS]),
            codec: Some(codec.to_owned()),
            repeat: Some(batches),
            ..BatchSpec::default()
        };
        let records = Bytes::from(batch::build(&spec, &Named::new()).ok()?.concat());
        let call = log.call(fitting_request(&log), Vec::new(), &records);
        Some(Self { name, mode, batches, log, call })
    }

    /// Why a judge does not accept it, if so.
    fn denied(&self, judge: &mut dyn Judge<Memory>) -> Option<String> {
        match judge.judge(self.call.clone(), self.log.clone()).verdict {
            Ok(_) => None,
            Err(Denied::Refused(refusal)) => {
                Some(format!("refused as {}: {}", reason_name(refusal.reason), refusal.text))
            }
            Err(Denied::Failed(failure)) => Some(failure.to_string()),
        }
    }

    /// Judges for so long, and gives the nanoseconds for each batch.
    fn time(&self, judge: &mut dyn Judge<Memory>, least: Duration) -> f64 {
        let (mut spent, mut calls) = (Duration::ZERO, 0_u32);
        while spent < least || calls == 0 {
            let ready: Vec<_> = (0..AT_ONCE).map(|_| (self.call.clone(), self.log.clone())).collect();
            let mut done = Vec::with_capacity(AT_ONCE);
            let begun = Instant::now();
            for (call, log) in ready {
                done.push(judge.judge(call, log));
            }
            spent = spent.saturating_add(begun.elapsed());
            calls = calls.saturating_add(u32::try_from(done.len()).unwrap_or(u32::MAX));
        }
        spent.as_secs_f64() * 1e9 / f64::from(calls) / f64::from(self.batches)
    }
}

/// Measures `judge` on topics of the modes that it supports, with `beside` in the same rounds. `time` is what all rounds
/// together spend judging, but for one round to warm up; preparing it takes about as long again.
pub fn bench(
    judge: &mut dyn Judge<Memory>,
    beside: &mut dyn Judge<Memory>,
    rounds: u32,
    time: Duration,
) -> Vec<Measured> {
    let supported = supported(judge);
    let mut cases = Case::all();
    cases.retain(|case| supported.contains(&case.mode));
    let parts = u32::try_from(cases.len()).unwrap_or(u32::MAX).saturating_mul(2).saturating_mul(rounds);
    let slice = time.checked_div(parts).unwrap_or_default();
    cases.iter().map(|case| measure(case, judge, beside, rounds, slice)).collect()
}

fn measure(
    case: &Case,
    judge: &mut dyn Judge<Memory>,
    beside: &mut dyn Judge<Memory>,
    rounds: u32,
    slice: Duration,
) -> Measured {
    let (denied, beside_denied) = (case.denied(judge), case.denied(beside));
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let mut times = (None, None);
        // Neither is always the first.
        for own_turn in [round % 2 == 0, round % 2 != 0] {
            if own_turn && denied.is_none() {
                times.0 = Some(case.time(judge, slice));
            } else if !own_turn && beside_denied.is_none() {
                times.1 = Some(case.time(beside, slice));
            }
        }
        // The first round warms up.
        if round > 0 {
            own.extend(times.0);
            others.extend(times.1);
        }
    }
    let ratios = own.iter().zip(&others).map(|(own, other)| own / other).collect();
    let Case { name, mode, batches, .. } = *case;
    let (judge, beside, ratio) = (timing(own), timing(others), median(ratios));
    Measured { name, mode, batches, judge, beside, ratio, denied }
}

fn timing(rounds: Vec<f64>) -> Option<Timing> {
    let min = rounds.iter().copied().reduce(f64::min)?;
    let max = rounds.iter().copied().reduce(f64::max)?;
    Some(Timing { median_ns: whole(median(rounds)?), min_ns: whole(min), max_ns: whole(max) })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Nanoseconds without their fraction.
fn whole(ns: f64) -> u64 {
    u64::try_from(Duration::from_secs_f64(ns / 1e9).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use verbatim_engine::Native;
    use verbatim_policy::ExactMirroring;

    use super::*;

    #[test]
    fn every_case_is_accepted_and_measured() {
        let (mut judge, mut beside) = (Native::new(ExactMirroring), Native::new(ExactMirroring));
        let measured = bench(&mut judge, &mut beside, 3, Duration::ZERO);
        assert_eq!(measured.len(), 8);
        for one in measured {
            assert_eq!(one.denied, None);
            let timing = one.judge.unwrap();
            assert!(timing.min_ns <= timing.median_ns && timing.median_ns <= timing.max_ns, "{one:?}");
            assert!(
                timing.min_ns > 0 && one.beside.is_some() && one.ratio.is_some_and(f64::is_finite),
                "{one:?}"
            );
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
        assert_eq!(timing(vec![5.0, 1.0, 2.0]), Some(Timing { median_ns: 2, min_ns: 1, max_ns: 5 }));
    }
}
