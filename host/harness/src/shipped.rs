//! The suites that come with this library.

use verbatim_engine::Failure;

use crate::contract::{DEFAULT_SEED, contract};
use crate::report::Report;
use crate::run::run;
use crate::subject::Subject;
use crate::suite::{LoadError, Suite};

/// Names and contents of the files in `tests/conformance`.
macro_rules! conformance {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../tests/conformance/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = conformance![
    "epochs.toml",
    "framing.toml",
    "header.toml",
    "offsets.toml",
    "order-exact.toml",
    "order-normal.toml",
    "producers.toml",
    "records.toml",
    "replicas.toml",
    "retention.toml",
    "rewinds.toml",
    "tag.toml",
    "vectors.toml",
];

/// The rules that are about leader epochs: the epoch that the writer has before its batches (R22), which epochs may follow
/// and where they begin (R27 to R30), who speaks for a leader that was replaced (R28a), rewinds (R31), and who may join the
/// in-sync set (R41b).
const KIP_320: &[&str] = &["R22", "R27", "R28", "R28a", "R29", "R30", "R31", "R41b"];

/// A suite that comes with this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shipped {
    /// What any policy keeps, whatever its rules: it describes itself, settles each batch once, refuses by value, neither
    /// traps nor misses its deadline on hostile input, and answers the same when it is asked again.
    Contract,
    /// Every scenario of `tests/conformance`: Apache Kafka's rules on normal topics, and those of exact ones.
    Kafka,
    /// Those of them that are about leader epochs (R22, R27 to R31, R41b).
    Kip320,
}

impl Shipped {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Contract, Self::Kafka, Self::Kip320];

    /// Its name: `contract`, `kafka` or `kip-320`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Kafka => "kafka",
            Self::Kip320 => "kip-320",
        }
    }

    /// Its scenarios. *contract* has none: it is a program, [`contract`](crate::contract()).
    ///
    /// # Errors
    /// None that a released version has: its own files load.
    pub fn scenarios(self) -> Result<Option<Suite>, LoadError> {
        Ok(match self {
            Self::Contract => None,
            Self::Kafka => Some(Suite::parse(self.name(), FILES)?),
            Self::Kip320 => Some(Suite::parse(self.name(), FILES)?.showing(KIP_320)),
        })
    }

    /// Runs it. A module that does not start, or a suite that cannot be had, is a failed test named `load`.
    #[must_use]
    pub fn run(self, subject: &Subject) -> Report {
        match self.scenarios() {
            Ok(Some(suite)) => run_on(&suite, subject).unwrap_or_else(|failure| Report::not_loaded(&failure)),
            Ok(None) => contract(subject, DEFAULT_SEED),
            Err(error) => Report::not_loaded(&error),
        }
    }
}

fn run_on(suite: &Suite, subject: &Subject) -> Result<Report, Failure> {
    Ok(run(suite, subject.judge()?.as_mut()))
}

/// Holds a module or a policy to suites, in a test.
///
/// ```no_run
/// use verbatim_harness::{Shipped, Subject, assert_passes};
///
/// let module = Subject::component(&std::fs::read("my-module.wasm")?)?;
/// assert_passes(&module, &[Shipped::Contract, Shipped::Kip320]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A policy that is compiled in needs no file:
///
/// ```
/// use verbatim_harness::{Shipped, Subject, assert_passes};
/// use verbatim_policy::ExactMirroring;
///
/// assert_passes(&Subject::native(ExactMirroring), &Shipped::ALL);
/// ```
///
/// # Panics
/// With the report, if a test fails.
pub fn assert_passes(subject: &Subject, suites: &[Shipped]) {
    let mut report = Report::default();
    suites.iter().for_each(|suite| report.extend(suite.run(subject)));
    assert!(report.is_success(), "{report}");
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn what_is_embedded_is_the_folder() {
        let folder: PathBuf =
            [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "conformance"].iter().collect();
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut there: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        there.retain(|name| name.ends_with(".toml"));
        there.sort();
        assert_eq!(FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), there);
        for (name, text) in FILES {
            assert_eq!(std::fs::read_to_string(folder.join(name)).ok().as_deref(), Some(*text), "{name}");
        }
    }

    #[test]
    fn each_suite_has_what_its_name_says() {
        let names = |suite: Shipped| {
            let suite = suite.scenarios().ok().flatten();
            suite.map(|suite| suite.scenarios().iter().map(|one| one.name().to_owned()).collect::<Vec<_>>())
        };
        let (kafka, kip_320) =
            (names(Shipped::Kafka).unwrap_or_default(), names(Shipped::Kip320).unwrap_or_default());
        assert_eq!(names(Shipped::Contract), None);
        let whole = FILES.iter().map(|(_, text)| text.matches("[[scenario]]").count()).sum::<usize>();
        assert_eq!(kafka.len(), whole);
        assert!(kip_320.len() > 40 && kip_320.len() < whole / 2, "{}", kip_320.len());
        assert!(kip_320.iter().all(|name| kafka.contains(name)));
    }
}
