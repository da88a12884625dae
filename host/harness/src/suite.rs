//! Scenario files, read and made ready to run.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use toml::Spanned;
use verbatim_engine::Memory;
use verbatim_engine::contract::{EpochEntry, Replica, Request};

use crate::batch::{self, Named};
use crate::format::{ExpectSpec, File, JoinSpec, Mode, ReplicaSpec, RequestSpec, ScenarioSpec};
use crate::{hex, state};

/// The name of a suite that was loaded from files.
const OF_FILES: &str = "scenarios";

/// Scenarios in the order of their files' names and of the files.
#[derive(Debug)]
pub struct Suite {
    name: String,
    scenarios: Vec<Scenario>,
}

impl Suite {
    /// A suite made of texts: each with its file's name, as errors give it, and what the file contains.
    ///
    /// # Errors
    /// As [`load`].
    pub fn parse(name: &str, files: &[(&str, &str)]) -> Result<Self, LoadError> {
        let mut scenarios = Vec::new();
        for (file, text) in files {
            let more = parse(Path::new(file), text);
            scenarios.extend(more.map_err(|problem| LoadError { file: file.into(), problem })?);
        }
        Ok(Self { name: name.to_owned(), scenarios })
    }

    /// Its name: `scenarios` for one that was loaded from files.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Only the scenarios that show one of these rules.
    #[must_use]
    pub fn showing(mut self, rules: &[&str]) -> Self {
        self.scenarios.retain(|scenario| scenario.rules.iter().any(|rule| rules.contains(&rule.as_str())));
        self
    }

    /// Adds the scenarios of another.
    pub fn extend(&mut self, other: Self) {
        self.scenarios.extend(other.scenarios);
    }

    /// All scenarios.
    #[must_use]
    pub fn scenarios(&self) -> &[Scenario] {
        &self.scenarios
    }
}

/// One scenario: a log, and what comes to it.
#[derive(Debug)]
pub struct Scenario {
    file: String,
    name: String,
    rules: Vec<String>,
    mode: Mode,
    pub(crate) log: Memory,
    pub(crate) requests: Vec<Prepared>,
    pub(crate) joins: Vec<JoinSpec>,
}

impl Scenario {
    /// The file's name.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Its own name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rules that it shows, such as `R19`.
    #[must_use]
    pub fn rules(&self) -> &[String] {
        &self.rules
    }

    /// The kind of topic.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

/// A request ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) request: Request,
    pub(crate) entries: Vec<EpochEntry>,
    pub(crate) records: Bytes,
    pub(crate) expect: ExpectSpec,
}

/// A scenario file that cannot be run.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct LoadError {
    file: PathBuf,
    problem: Problem,
}

#[derive(Debug)]
enum Problem {
    Read(std::io::Error),
    Syntax(Box<toml::de::Error>),
    Scenario { line: usize, name: String, text: String },
    Empty,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "{error}"),
            Self::Syntax(error) => write!(f, "{error}"),
            Self::Scenario { line, name, text } => write!(f, "line {line}: scenario `{name}`: {text}"),
            Self::Empty => f.write_str("there is no .toml file"),
        }
    }
}

/// Reads one scenario file, or all `.toml` files of a folder by name.
///
/// # Errors
/// A file cannot be read, has an unknown key, or a scenario that contradicts itself; the last two with their line.
pub fn load(path: &Path) -> Result<Suite, LoadError> {
    let unreadable = |error| LoadError { file: path.to_owned(), problem: Problem::Read(error) };
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries =
            fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
        files = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
    }
    if files.is_empty() {
        return Err(LoadError { file: path.to_owned(), problem: Problem::Empty });
    }
    let mut scenarios = Vec::new();
    for file in files {
        match load_file(&file) {
            Ok(more) => scenarios.extend(more),
            Err(problem) => return Err(LoadError { file, problem }),
        }
    }
    Ok(Suite { name: OF_FILES.to_owned(), scenarios })
}

fn load_file(path: &Path) -> Result<Vec<Scenario>, Problem> {
    parse(path, &fs::read_to_string(path).map_err(Problem::Read)?)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Scenario>, Problem> {
    let file: File = toml::from_str(text).map_err(|error| Problem::Syntax(Box::new(error)))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut names = HashSet::new();
    let prepare = |spec: Spanned<ScenarioSpec>| {
        let before = text.get(..spec.span().start).unwrap_or_default();
        let (line, spec) = (before.matches('\n').count().saturating_add(1), spec.into_inner());
        let name = spec.name.clone();
        if !names.insert((name.clone(), spec.mode)) {
            let text = "an earlier one of this mode has the same name".to_owned();
            return Err(Problem::Scenario { line, name, text });
        }
        scenario(&stem, spec, &file.batch).map_err(|text| Problem::Scenario { line, name, text })
    };
    file.scenario.into_iter().map(prepare).collect()
}

fn scenario(file: &str, spec: ScenarioSpec, named: &Named) -> Result<Scenario, String> {
    if spec.rules.is_empty() || (spec.request.is_empty() && spec.join.is_empty()) {
        return Err("a scenario names at least one rule and has at least one request or join".into());
    }
    let mut log = state::log(spec.mode, &spec.policy, &spec.log, named)?;
    log.config = spec.config;
    let prepare = |(index, spec)| prepared(spec, named).map_err(|text| format!("request {index}: {text}"));
    Ok(Scenario {
        file: file.to_owned(),
        name: spec.name,
        rules: spec.rules,
        mode: spec.mode,
        log,
        requests: spec.request.into_iter().enumerate().map(prepare).collect::<Result<_, _>>()?,
        joins: spec.join,
    })
}

fn prepared(spec: RequestSpec, named: &Named) -> Result<Prepared, String> {
    let expect = &spec.expect;
    let accepts = !expect.placed.is_empty() || !expect.duplicates.is_empty();
    let blames = expect.code.is_some() || expect.batch.is_some() || expect.expected.is_some();
    match &expect.refused {
        Some(_) if accepts => return Err("a refused request has neither placed nor duplicates".into()),
        Some(_) if expect.code.is_none() => return Err("a refused request has a code".into()),
        None if blames || !expect.text.is_empty() => {
            return Err("code, batch, expected and text belong to a refused request".into());
        }
        _ => {}
    }
    let mut records = Vec::new();
    for batch in &spec.batches {
        records.extend(batch::build(batch, named)?.concat());
    }
    records.extend(hex::decode(spec.tail.as_deref().unwrap_or_default())?);
    let (request, entries) = state::request(&spec)?;
    Ok(Prepared { request, entries, records: Bytes::from(records), expect: spec.expect })
}

pub(crate) fn replica(spec: ReplicaSpec) -> Replica {
    Replica { id: spec.id, in_sync: spec.in_sync, online: spec.online }
}
