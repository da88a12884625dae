//! Measures what judging costs with a module's file.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};
use serde::Serialize;
use verbatim::engine::{Inspection, Memory, Native};
use verbatim::harness::{self, Measured, Timing};
use verbatim_policy::ExactMirroring;

use super::super::output::{Output, table};

/// Measure what judging costs with a module's file
#[derive(Debug, Args)]
pub(in super::super) struct Bench {
    /// The module, a WebAssembly component; bundled:exact-mirroring and bundled:redact are those that come along
    file: PathBuf,
    /// How many rounds are measured, after one to warm up
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// How long is judged in all; preparing the calls takes about as long again
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=3600))]
    seconds: u32,
}

/// For programs: what was measured, and how.
#[derive(Serialize)]
struct Benched<'a> {
    name: &'a str,
    version: &'a str,
    sha256: String,
    /// What the module's time is divided by.
    beside: &'static str,
    rounds: u32,
    cases: Vec<Measured>,
}

impl Bench {
    pub(super) fn run(self, output: Output) -> anyhow::Result<()> {
        let module = super::load(&self.file, &super::read(&self.file)?)?;
        let mut judge = module.instance::<Memory>()?;
        let mut native = Native::new(ExactMirroring);
        let time = Duration::from_secs(u64::from(self.seconds));
        let cases = harness::bench(&mut judge, &mut native, self.rounds, time);
        let inspection = module.inspect();
        let benched = Benched {
            name: &inspection.description.name,
            version: &inspection.description.version,
            sha256: inspection.digest.to_string(),
            beside: "exact-mirroring, native",
            rounds: self.rounds,
            cases,
        };
        output.write(&benched, || benched.text(inspection))
    }
}

impl Benched<'_> {
    fn text(&self, inspection: &Inspection) -> String {
        let heading = ["TOPIC", "JUDGED", "BATCHES", "MODULE", "NATIVE", "RATIO"].map(str::to_owned);
        let rows = self.cases.iter().map(|case| {
            let ratio = case.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            let (mode, batches) = (case.mode.to_string(), case.batches.to_string());
            vec![mode, case.name.to_owned(), batches, cell(case.judge), cell(case.beside), ratio]
        });
        let rows: Vec<_> = [heading.to_vec()].into_iter().chain(rows).collect();
        let denied = self.cases.iter().filter_map(|case| {
            let Measured { mode, name, batches, denied, .. } = case;
            Some(format!("{mode}, {name}, {batches}: {}", denied.as_ref()?))
        });
        let first = format!(
            "{}\nnanoseconds a batch of {} records: median (fastest to slowest) of {} rounds; native is {}",
            super::title(inspection),
            harness::BENCH_RECORDS,
            self.rounds,
            "exact-mirroring without WebAssembly"
        );
        [first, table(&rows)].into_iter().chain(denied).collect::<Vec<_>>().join("\n")
    }
}

fn cell(timing: Option<Timing>) -> String {
    match timing {
        Some(Timing { median_ns, min_ns, max_ns }) => format!("{median_ns} ({min_ns} to {max_ns})"),
        None => "-".to_owned(),
    }
}
