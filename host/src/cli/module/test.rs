//! Holds a module's file to the suites of the harness, and to scenarios.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use verbatim::engine::Inspection;
use verbatim::harness::{self, DEFAULT_SEED, Report, Shipped, Subject, Suite};

use super::super::Usage;
use super::super::output::Output;

/// Hold a module's file to suites and scenarios
#[derive(Debug, Args)]
pub(in super::super) struct Test {
    /// The module, a WebAssembly component; bundled:exact-mirroring and bundled:redact are those that come along
    file: PathBuf,
    /// Scenario files, or folders of them
    scenarios: Vec<PathBuf>,
    /// A suite that this command brings along; may be repeated [default: contract, if no scenarios are named]
    #[arg(long = "suite", value_enum, value_name = "SUITE")]
    suites: Vec<Choice>,
    /// Write the results to this file too, as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Which random requests the suite contract makes
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// What any policy keeps, whatever its rules
    Contract,
    /// Every rule: Apache Kafka's on normal topics, and those of exact ones
    Kafka,
    /// The rules about leader epochs
    #[value(name = "kip-320")]
    Kip320,
    /// All of these
    All,
}

/// For programs: what was tested, and what came of it.
#[derive(Serialize)]
struct Tested<'a> {
    file: &'a Path,
    /// Nothing of what the file says of itself if it cannot be used.
    name: Option<&'a str>,
    version: Option<&'a str>,
    sha256: Option<String>,
    passed: usize,
    failed: usize,
    #[serde(flatten)]
    report: &'a Report,
}

impl Test {
    pub(super) fn run(self, output: Output) -> anyhow::Result<()> {
        let bytes = super::read(&self.file)?;
        let scenarios = self.scenarios()?;
        let mut inspection = None;
        let report = match super::load(&self.file, &bytes) {
            Ok(module) => {
                inspection = Some(module.inspect().clone());
                self.judged(&Subject::module(&module), scenarios.as_ref())
            }
            // Reads on from "expected one that this host can use".
            Err(error) => Report::not_loaded(&format!("one that {error:#}")),
        };
        if let Some(file) = &self.junit {
            let written = std::fs::write(file, harness::junit(&report));
            written.map_err(|error| Usage(format!("cannot write, junit=`{}`: {error}", file.display())))?;
        }
        let tested = Tested::new(&self.file, inspection.as_ref(), &report);
        output.write(&tested, || {
            let title = inspection.as_ref().map(super::title);
            title.into_iter().chain([report.to_string()]).collect::<Vec<_>>().join("\n")
        })?;
        let (failed, all) = (tested.failed, report.tests.len());
        anyhow::ensure!(failed == 0, "{failed} of {all} tests failed");
        anyhow::ensure!(report.is_success(), "no test was run");
        Ok(())
    }

    /// The scenarios of all files and folders.
    fn scenarios(&self) -> Result<Option<Suite>, Usage> {
        let mut all: Option<Suite> = None;
        for path in &self.scenarios {
            let suite = harness::load(path).map_err(|error| Usage(error.to_string()))?;
            match &mut all {
                Some(all) => all.extend(suite),
                None => all = Some(suite),
            }
        }
        Ok(all)
    }

    fn judged(&self, subject: &Subject, scenarios: Option<&Suite>) -> Report {
        let mut report = Report::default();
        for suite in self.shipped() {
            report.extend(match suite {
                Shipped::Contract => harness::contract(subject, self.seed),
                Shipped::Kafka | Shipped::Kip320 => suite.run(subject),
            });
        }
        if let Some(scenarios) = scenarios {
            report.extend(match subject.judge() {
                Ok(mut judge) => harness::run(scenarios, judge.as_mut()),
                Err(failure) => Report::not_loaded(&failure),
            });
        }
        report
    }

    /// The suites that were asked for, each once.
    fn shipped(&self) -> Vec<Shipped> {
        let mut suites = Shipped::ALL.to_vec();
        let unasked = self.suites.is_empty() && self.scenarios.is_empty();
        suites.retain(|suite| {
            let choice = match suite {
                Shipped::Contract => Choice::Contract,
                Shipped::Kafka => Choice::Kafka,
                Shipped::Kip320 => Choice::Kip320,
            };
            self.suites.contains(&choice)
                || self.suites.contains(&Choice::All)
                || (unasked && choice == Choice::Contract)
        });
        suites
    }
}

impl<'a> Tested<'a> {
    fn new(file: &'a Path, inspection: Option<&'a Inspection>, report: &'a Report) -> Self {
        Self {
            file,
            name: inspection.map(|inspection| inspection.description.name.as_str()),
            version: inspection.map(|inspection| inspection.description.version.as_str()),
            sha256: inspection.map(|inspection| inspection.digest.to_string()),
            passed: report.passed(),
            failed: report.failed().count(),
            report,
        }
    }
}
