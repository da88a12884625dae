//! Test suites that nobody here wrote, run against a host. `tests/compat` holds a script and a list for each.
//!
//! Every test of a suite is listed, as one that is run or as one that is excluded, with the reason. So a list can only
//! grow: a test that a new version brings must be listed, and in the long runs an excluded test that passes fails here.

use anyhow::{Context, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::time::Duration;
use verbatim_tests::host::Home;
use verbatim_tests::{run, soak, tools, workspace};

/// How long Go's tests of a suite may take together and each of Python's alone; each excluded test in a long run, in
/// seconds. Half a minute is usual.
const SUITE_SECONDS: u32 = 280;
const EXCLUDED_SECONDS: u32 = 10;
/// How long a script may take.
const PATIENCE: Duration = Duration::from_secs(300);

#[test]
fn franz_go() -> anyhow::Result<()> {
    suite("franz-go", "franz-go/kgo.test")
}

#[test]
fn kafka_python() -> anyhow::Result<()> {
    suite("kafka-python", "kafka-python/test")
}

/// Runs a suite. `fetched` is what is there, in target/tools, once `make tools` has fetched it.
fn suite(name: &str, fetched: &str) -> anyhow::Result<()> {
    if !tools::fetched(fetched)? {
        return Ok(());
    }
    let list = List::read(name)?;
    let there: BTreeSet<String> = script(name, &["list"])?.lines().map(str::to_owned).collect();
    list.must_be_of(&there)?;
    let home = Home::new()?;
    let host = home.start()?;
    let bootstrap = host.bootstrap();
    let wanted: Vec<&str> = list.run.iter().map(String::as_str).collect();
    let results = results(name, &bootstrap, SUITE_SECONDS, &wanted)?;
    for test in &list.run {
        let result = results.get(test).map_or("not ended", String::as_str);
        ensure!(result == "pass", "{name}: {test}: {result}; its output is in target/tools\n{}", host.log());
    }
    if soak() {
        for (test, reason) in &list.excluded {
            let results = self::results(name, &bootstrap, EXCLUDED_SECONDS, &[test])?;
            let passed = results.get(test).is_some_and(|result| result == "pass");
            ensure!(!passed, "{name}: {test} passes: run it, it is excluded because it {reason}");
        }
    }
    host.stop()
}

/// The tests of a suite.
struct List {
    run: BTreeSet<String>,
    /// With the reason of each.
    excluded: BTreeMap<String, String>,
}

impl List {
    fn read(name: &str) -> anyhow::Result<Self> {
        let file = workspace().join("tests/compat").join(name).with_extension("txt");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let mut list = Self { run: BTreeSet::new(), excluded: BTreeMap::new() };
        let mut reason = None;
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let new = if let Some(section) = line.strip_prefix("[excluded: ") {
                reason = Some(section.strip_suffix(']').context("a reason ends with ]")?.to_owned());
                true
            } else if line == "[run]" {
                reason = None;
                true
            } else {
                !list.contains(line)
                    && match &reason {
                        None => list.run.insert(line.to_owned()),
                        Some(reason) => list.excluded.insert(line.to_owned(), reason.clone()).is_none(),
                    }
            };
            ensure!(new, "{}: {line} is listed twice", file.display());
        }
        Ok(list)
    }

    fn contains(&self, test: &str) -> bool {
        self.run.contains(test) || self.excluded.contains_key(test)
    }

    fn must_be_of(&self, there: &BTreeSet<String>) -> anyhow::Result<()> {
        let unlisted: Vec<_> = there.iter().filter(|test| !self.contains(test)).collect();
        ensure!(unlisted.is_empty(), "tests that are not listed: {unlisted:?}");
        let gone: Vec<_> =
            self.run.iter().chain(self.excluded.keys()).filter(|test| !there.contains(*test)).collect();
        ensure!(gone.is_empty(), "listed tests that there are not: {gone:?}");
        Ok(())
    }
}

/// Runs some tests: `pass`, `fail` or `skip` of each that ended.
fn results(
    name: &str,
    bootstrap: &str,
    seconds: u32,
    tests: &[&str],
) -> anyhow::Result<BTreeMap<String, String>> {
    let seconds = seconds.to_string();
    let lines = script(name, &[&["run", bootstrap, &seconds], tests].concat())?;
    let results = lines.lines().filter_map(|line| line.split_once(' '));
    Ok(results.map(|(result, test)| (test.to_owned(), result.to_owned())).collect())
}

fn script(name: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let script = workspace().join("tests/compat").join(name).with_extension("sh");
    run::run_within(Command::new("sh").arg(script).args(arguments), b"", PATIENCE)?.success()
}
