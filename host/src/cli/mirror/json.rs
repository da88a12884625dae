//! Lines for programs: one JSON object each, with `time_ms` and `event`.
//!
//! `state`, `note` and `topic` come as they happen; `snapshot` now and then and `final` once have totals and everything.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use verbatim::mirror::mirror::state::{Event, Snapshot};

use super::super::output::Output;
use super::View;
use super::figures::{Meter, Totals};

/// Writes JSON to stdout.
#[derive(Debug)]
pub(super) struct Json {
    meter: Meter,
}

/// A line: when, and what.
#[derive(Serialize)]
struct Line<T> {
    time_ms: u64,
    #[serde(flatten)]
    what: T,
}

#[derive(Serialize)]
struct Everything<'a> {
    event: &'static str,
    totals: Totals,
    #[serde(flatten)]
    snapshot: &'a Snapshot,
}

impl Json {
    pub(super) fn new() -> Self {
        Self { meter: Meter::new(Instant::now()) }
    }

    fn everything<'a>(&mut self, event: &'static str, snapshot: &'a Snapshot) -> Everything<'a> {
        let mut totals = Totals::of(&snapshot.partitions);
        self.meter.measure(&mut totals, Instant::now());
        Everything { event, totals, snapshot }
    }
}

impl View for Json {
    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        write(event)
    }

    fn look(&mut self, snapshot: &Snapshot) -> anyhow::Result<()> {
        write(self.everything("snapshot", snapshot))
    }

    fn end(&mut self, snapshot: &Snapshot) -> anyhow::Result<()> {
        write(self.everything("final", snapshot))
    }
}

fn write(what: impl Serialize) -> anyhow::Result<()> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let time_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    Output::Json.write(&Line { time_ms, what }, String::new)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::{Value, json};
    use verbatim::mirror::mirror::state::{State, TopicNote};

    use super::super::figures::tests::status;
    use super::*;

    #[test]
    fn lines_have_the_documented_shape() {
        let line = |what: Value| what;
        let state = Event::State(status("a", 0, State::CaughtUp));
        let told = serde_json::to_value(Line { time_ms: 5, what: &state }).unwrap();
        assert_eq!(
            told,
            line(json!({
                "time_ms": 5, "event": "state", "topic": "a", "partition": 0, "state": "caught-up",
                "reason": null, "remedy": null, "end": 90, "source_start": 10, "source_end": 100,
                "source_epoch": 3, "lag_records": 10, "lag_ms": 40, "batches": 8, "records": 80,
                "bytes": 1_500_000, "skipped": []
            }))
        );
        let note = Event::Note(TopicNote { topic: "a".to_owned(), text: "b".to_owned() });
        let told = serde_json::to_value(Line { time_ms: 5, what: &note }).unwrap();
        assert_eq!(told, json!({ "time_ms": 5, "event": "note", "topic": "a", "text": "b" }));
        let snapshot = Snapshot { partitions: vec![status("a", 0, State::CaughtUp)], ..Snapshot::default() };
        let told = serde_json::to_value(Json::new().everything("final", &snapshot)).unwrap();
        assert_eq!(told.get("event"), Some(&json!("final")));
        assert_eq!(told.pointer("/totals/states/caught-up"), Some(&json!(1)));
        assert_eq!(told.pointer("/partitions/0/end"), Some(&json!(90)));
        assert!(told.get("notes").is_some() && told.get("groups").is_some());
    }
}
