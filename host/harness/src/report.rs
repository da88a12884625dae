//! What came of a run.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::format::Mode;

/// Tests that were run, those that were not, and what else is to be said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The tests in the order in which they were run.
    pub tests: Vec<Outcome>,
    /// Tests that were not run.
    pub left_out: Vec<LeftOut>,
    /// What is neither right nor wrong, a sentence each.
    pub notes: Vec<String>,
}

/// One test: a scenario, or a part of the suite *contract*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The suite's name.
    pub suite: String,
    /// The scenario file's name without its ending.
    pub file: Option<String>,
    /// Its own name.
    pub name: String,
    /// The kind of topic, where there is one.
    pub mode: Option<Mode>,
    /// The rules that it shows, such as `R19`.
    pub rules: Vec<String>,
    /// How long it took, in microseconds.
    pub time_us: u64,
    /// What went otherwise than it should; nothing if the test passed.
    pub differences: Vec<Difference>,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where in the test, such as `request 0`; counted from 0. Empty if it is the test as a whole.
    pub at: String,
    /// What is compared.
    pub what: String,
    /// How it should be.
    pub expected: String,
    /// How it is.
    pub got: String,
}

/// Tests of one suite that were not run, all for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The suite's name.
    pub suite: String,
    /// How many.
    pub tests: usize,
    /// Why.
    pub reason: String,
}

impl Report {
    /// Nothing failed, and something was run.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.failed().next().is_none() && self.passed() > 0
    }

    /// How many tests passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.tests.iter().filter(|test| test.passed()).count()
    }

    /// The tests that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Outcome> {
        self.tests.iter().filter(|test| !test.passed())
    }

    /// The names of the suites that it is about, in their order.
    #[must_use]
    pub fn suites(&self) -> Vec<&str> {
        let names = self.tests.iter().map(|test| test.suite.as_str());
        let mut suites = Vec::new();
        for name in names.chain(self.left_out.iter().map(|left_out| left_out.suite.as_str())) {
            if !suites.contains(&name) {
                suites.push(name);
            }
        }
        suites
    }

    /// A report of one failed test named `load`: there is nothing to be tested, for this reason.
    #[must_use]
    pub fn not_loaded(error: &dyn fmt::Display) -> Self {
        let difference = Difference {
            at: String::new(),
            what: "the module".to_owned(),
            expected: "one that this host can use".to_owned(),
            got: error.to_string(),
        };
        let test = Outcome { name: "load".to_owned(), differences: vec![difference], ..Outcome::default() };
        Self { tests: vec![test], ..Self::default() }
    }

    /// Adds what came of another run.
    pub fn extend(&mut self, other: Self) {
        self.tests.extend(other.tests);
        self.left_out.extend(other.left_out);
        self.notes.extend(other.notes);
    }

    /// Counts tests of `suite` as left out because the module says that it does not judge topics of this mode.
    pub(crate) fn leave_out(&mut self, suite: &str, mode: Mode, tests: usize) {
        if tests > 0 {
            let reason = format!("the module says that it does not judge {mode} topics");
            self.left_out.push(LeftOut { suite: suite.to_owned(), tests, reason });
        }
    }
}

impl Outcome {
    /// Nothing differed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }

    /// The same after so much time.
    pub(crate) fn timed(mut self, took: Duration) -> Self {
        self.time_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self
    }
}

/// Failed tests with what differed, then tests left out, notes, and lines of numbers: of each suite, if there are more
/// than one, and of all.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for test in self.failed() {
            writeln!(f, "FAILED {test}")?;
            for difference in &test.differences {
                writeln!(f, "    {difference}")?;
            }
        }
        for LeftOut { suite, tests, reason } in &self.left_out {
            writeln!(f, "left out: {tests} of {suite}: {reason}")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        let suites = self.suites();
        for suite in suites.iter().filter(|_| suites.len() > 1) {
            let tests = || self.tests.iter().filter(|test| test.suite == **suite);
            let passed = tests().filter(|test| test.passed()).count();
            writeln!(f, "{suite}: {passed} passed, {} failed", tests().count().saturating_sub(passed))?;
        }
        let left_out: usize = self.left_out.iter().map(|left_out| left_out.tests).sum();
        write!(f, "{} passed, {} failed, {left_out} left out", self.passed(), self.failed().count())
    }
}

/// Suite, file and name; then, in parentheses, rules and mode.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = [Some(&self.suite), self.file.as_ref()];
        for place in places.into_iter().flatten().filter(|place| !place.is_empty()) {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.name)?;
        let mode = self.mode.map(|mode| mode.to_string());
        let about: Vec<&str> = self.rules.iter().map(String::as_str).chain(mode.as_deref()).collect();
        if about.is_empty() { Ok(()) } else { write!(f, " ({})", about.join(", ")) }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, what, expected, got } = self;
        if !at.is_empty() {
            write!(f, "{at}: ")?;
        }
        write!(f, "{what}: expected {expected}, got {got}")
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Exact => "exact",
        })
    }
}
