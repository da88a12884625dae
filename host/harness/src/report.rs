//! What came of a run.

use std::fmt;

/// Scenarios that passed, and what differed in the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many scenarios went as they should.
    pub passed: usize,
    /// Those that did not.
    pub failed: Vec<Mismatch>,
}

/// A scenario that went otherwise than it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// File and name of the scenario.
    pub scenario: String,
    /// Lines of the form `request 0: code: expected 2, got 87`.
    pub differences: Vec<String>,
}

impl Report {
    /// Nothing differed, and something was run.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.failed.is_empty() && self.passed > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mismatch in &self.failed {
            writeln!(f, "FAILED {}", mismatch.scenario)?;
            for difference in &mismatch.differences {
                writeln!(f, "    {difference}")?;
            }
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed.len())
    }
}
