//! Modules of a running host: which ones serve, others put in their place, and back.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::Value;
use verbatim::modules::SHADOW_TIME_MAX;

use super::super::control::client::Place;
use super::super::control::{Ask, Bound};
use super::super::file;
use super::super::output::{Output, lined_up};
use super::super::values;

/// Put another module in the place of a named one, without a gap
#[derive(Debug, Args)]
pub(in super::super) struct Swap {
    /// The name that topics choose it by (`produce.module`)
    name: String,
    /// The module, a WebAssembly component; bundled:exact-mirroring and bundled:redact are those that come along
    file: PathBuf,
    /// Run a rule suite on it, beside the contract suite which it must always pass
    #[arg(long, value_name = "kafka")]
    suite: Option<String>,
    /// Judge live requests with it first, and report every difference of verdict: a time (30s, 5m; at most 60m), or a
    /// number of requests, which is waited for 10 minutes. Who stops this command before abandons the swap
    #[arg(long, value_name = "TIME|N")]
    shadow: Option<String>,
    /// Do all of it but the swap
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

/// Show which modules serve
#[derive(Debug, Args)]
pub(in super::super) struct Status {
    #[command(flatten)]
    place: Place,
}

/// Go back to the module that served before
#[derive(Debug, Args)]
pub(in super::super) struct Rollback {
    /// The name that topics choose it by (`produce.module`)
    name: String,
    #[command(flatten)]
    place: Place,
}

/// Show what became of each swap
#[derive(Debug, Args)]
pub(in super::super) struct History {
    /// The name that topics choose it by (`produce.module`)
    name: String,
    #[command(flatten)]
    place: Place,
}

impl Swap {
    pub(in super::super) fn run(self, file: &file::Serve, output: Output) -> anyhow::Result<()> {
        let kafka = match self.suite.as_deref() {
            None => false,
            Some("kafka") => true,
            Some(other) => return Err(values::wrong("module swap", "suite", other, "kafka").into()),
        };
        let shadow = self.shadow.as_deref().map(bound).transpose()?;
        let module = super::read(&self.file)?;
        let (name, length) = (self.name, u64::try_from(module.len())?);
        let ask = Ask::Swap { name, length, kafka, shadow, dry_run: self.dry_run };
        let done = self.place.ask(file, ask, &module, told(output))?;
        output.write(&done, || swapped(&done))
    }
}

impl Status {
    pub(in super::super) fn run(self, file: &file::Serve, output: Output) -> anyhow::Result<()> {
        let done = self.place.ask(file, Ask::Status, &[], |_| ())?;
        output.write(&done, || rows(&done, STATUS))
    }
}

impl Rollback {
    pub(in super::super) fn run(self, file: &file::Serve, output: Output) -> anyhow::Result<()> {
        let done = self.place.ask(file, Ask::Rollback { name: self.name }, &[], told(output))?;
        output.write(&done, || swapped(&done))
    }
}

impl History {
    pub(in super::super) fn run(self, file: &file::Serve, output: Output) -> anyhow::Result<()> {
        let done = self.place.ask(file, Ask::History { name: self.name }, &[], |_| ())?;
        output.write(&done, || rows(&done, HISTORY))
    }
}

/// Progress goes to stderr, for people only.
fn told(output: Output) -> impl FnMut(&str) {
    move |text| {
        if output == Output::Text {
            eprintln!("{text}");
        }
    }
}

/// A time or a number of requests.
fn bound(text: &str) -> anyhow::Result<Bound> {
    let wrong = || {
        values::wrong(
            "module swap",
            "shadow",
            text,
            "a time (500ms, 30s, 5m) of at most 60m, or a number of requests, 1 or more",
        )
    };
    let digits = text.trim_end_matches(|char: char| !char.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
    let most = u64::try_from(SHADOW_TIME_MAX.as_millis()).unwrap_or(u64::MAX);
    let ms = |factor| number.checked_mul(factor).filter(|ms| *ms <= most).map(Bound::Ms);
    let bound = match text.get(digits.len()..) {
        Some("") => Some(Bound::Requests(number)),
        Some("ms") => ms(1),
        Some("s") => ms(1_000),
        Some("m") => ms(60_000),
        _ => None,
    };
    bound.ok_or_else(|| wrong().into())
}

fn swapped(done: &Value) -> String {
    let mut text = done.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
    let differences = done.pointer("/shadow/differences").and_then(Value::as_array);
    for difference in differences.into_iter().flatten() {
        // A string takes everything.
        let _ = write!(text, "\n  {}", shown(Some(difference)));
    }
    text
}

/// Longer cells of a table are cut; programs get them whole.
const CELL_CHARS_MAX: usize = 120;

/// Headings and the fields under them.
type Columns = &'static [(&'static str, &'static str)];

const STATUS: Columns = &[
    ("NAME", "name"),
    ("GENERATION", "generation"),
    ("MODULE", "described"),
    ("FOR", "since_ms"),
    ("CALLS", "calls"),
    ("REFUSALS", "refusals"),
    ("FAILURES", "failures"),
    ("SHA256", "sha256"),
    ("CAUSE", "cause"),
    ("REASON", "reason"),
];
const HISTORY: Columns = &[
    ("AGO", "at_ms"),
    ("OUTCOME", "outcome"),
    ("GENERATION", "generation"),
    ("MODULE", "described"),
    ("SHA256", "sha256"),
    ("REASON", "reason"),
];

fn rows(done: &Value, columns: Columns) -> String {
    let heading = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let cell = |value: &Value, field: &str| match value.get(field).and_then(Value::as_u64) {
        Some(at_ms) if field.ends_with("_ms") => ago(at_ms),
        Some(_) if *field == *"generation" && changed_nothing(value) => shown(None),
        _ => shown(value.get(field)),
    };
    let row = |value: &Value| columns.iter().map(|(_, field)| in_a_row(&cell(value, field))).collect();
    let all = done.as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(all.iter().map(row)).collect();
    let below = std::iter::once(String::new()).chain(all.iter().map(below));
    let lines = lined_up(&rows).into_iter().zip(below).map(|(line, below)| line + &below);
    lines.collect::<Vec<_>>().join("\n")
}

/// A swap that did not take place has no generation: what its entry tells is the one that went on.
fn changed_nothing(value: &Value) -> bool {
    let outcome = value.get("outcome").and_then(Value::as_str);
    outcome.is_some_and(|outcome| matches!(outcome, "refused" | "abandoned"))
}

/// What fits into a row, and does nothing to a terminal: the beginning of the first line.
fn in_a_row(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().filter(|char| !char.is_control()).take(CELL_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Under a module that was taken back by itself stands what it failed on, and under one that serves the one that is tried.
fn below(value: &Value) -> String {
    format!("{}{}", evidence(value), candidate(value).unwrap_or_default())
}

fn candidate(value: &Value) -> Option<String> {
    let candidate = value.get("candidate").filter(|candidate| !candidate.is_null())?;
    let number = |field| candidate.get(field).and_then(Value::as_u64).unwrap_or_default();
    let text = |field| in_a_row(&shown(candidate.get(field)));
    Some(format!(
        "\n  beside it {} sha256:{} judges live requests, for {}: {} so far, {} of them otherwise",
        text("described"),
        text("sha256"),
        ago(number("since_ms")),
        number("judged"),
        number("different")
    ))
}

/// A line for each request that tells against a module.
fn evidence(value: &Value) -> String {
    let all = value.get("evidence").and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .map(|one| format!("\n  {}", shown(Some(one)).replace(['\n', '\r'], " ")))
        .collect()
}

/// How long ago that was, in its largest unit.
fn ago(at_ms: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = now.saturating_sub(Duration::from_millis(at_ms)).as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::super::Usage;
    use super::*;
    use serde_json::json;

    #[test]
    fn evidence_stands_under_the_row_that_it_is_about() {
        let done = json!([
            { "generation": 2, "outcome": "swapped", "reason": "" },
            { "generation": 3, "outcome": "rolled-back-by-itself", "reason": "it failed", "evidence": ["a", "b"] },
            { "generation": 4, "outcome": "swapped", "reason": "", "evidence": [] },
        ]);
        let text = rows(&done, HISTORY);
        let lines: Vec<&str> = text.lines().collect();
        let starts = [(2, "rolled-back-by-itself"), (3, "  a"), (4, "  b"), (5, "swapped")];
        for (line, part) in starts {
            assert!(lines.get(line).unwrap().contains(part), "{text}");
        }
        assert_eq!(lines.len(), 6);
    }

    #[test]
    fn a_row_is_a_line_whatever_it_tells() {
        let done = json!([
            { "generation": 1, "outcome": "refused", "described": "", "reason": "one\ntwo\n\nthree" },
            { "generation": 1, "outcome": "abandoned", "described": "a 1", "reason": "x".repeat(70_000) },
            { "generation": 2, "outcome": "rolled-back-by-itself", "reason": "\u{1b}[31mred", "evidence": ["a\nb"] },
            { "generation": 3, "outcome": "swapped", "described": "c 1", "reason": "" },
        ]);
        let text = rows(&done, HISTORY);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 6, "{text}");
        let expected = [
            (1, "refused", "-"),
            (2, "abandoned", "-"),
            (3, "rolled-back-by-itself", "2"),
            (5, "swapped", "3"),
        ];
        for (line, outcome, generation) in expected {
            let line = lines.get(line).unwrap();
            assert_eq!((line.get(1), line.get(2)), (Some(&outcome), Some(&generation)), "{text}");
        }
        assert!(text.contains("one…") && !text.contains("two") && text.contains("\n  a b\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 250) && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_candidate_stands_under_the_module_that_serves() {
        let candidate =
            json!({ "described": "b 1", "sha256": "beef", "since_ms": 0, "judged": 5, "different": 2 });
        let done = json!([{ "name": "a", "generation": 1, "candidate": candidate }, { "name": "b", "candidate": null }]);
        let text = rows(&done, STATUS);
        let below = text.lines().nth(2).unwrap();
        assert!(below.contains("b 1 sha256:beef") && below.contains("5 so far, 2 of them"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn a_shadow_period_is_a_time_or_a_number() {
        for (text, expected) in [
            ("30s", Bound::Ms(30_000)),
            ("5m", Bound::Ms(300_000)),
            ("250ms", Bound::Ms(250)),
            ("60m", Bound::Ms(3_600_000)),
            ("1000", Bound::Requests(1_000)),
        ] {
            assert_eq!(bound(text).unwrap(), expected);
        }
        for text in [
            "",
            "s",
            "0",
            "0s",
            "-1",
            "1h",
            "1.5s",
            "61m",
            "3600001ms",
            "99999999999999999999",
            "18446744073709551615m",
        ] {
            let error = bound(text).unwrap_err();
            assert!(error.is::<Usage>() && error.to_string().contains("shadow"), "{error}");
        }
    }
}
