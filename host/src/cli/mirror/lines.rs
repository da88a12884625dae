//! Lines for people: one for each change, a summary now and then, a table at the end.

use std::time::Instant;

use verbatim::mirror::mirror::state::{Event, GroupStatus, PartitionStatus, Snapshot, TopicNote};

use super::super::output::{Output, table};
use super::View;
use super::figures::{Meter, Totals};
use super::news::News;

/// Writes lines to stdout.
#[derive(Debug)]
pub(super) struct Lines {
    news: News,
    meter: Meter,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self { news: News::default(), meter: Meter::new(Instant::now()) }
    }
}

impl View for Lines {
    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        told(&mut self.news, event).map_or(Ok(()), |line| print(&line))
    }

    fn look(&mut self, snapshot: &Snapshot) -> anyhow::Result<()> {
        let mut totals = Totals::of(&snapshot.partitions);
        self.meter.measure(&mut totals, Instant::now());
        print(&summary(&totals))
    }

    fn end(&mut self, snapshot: &Snapshot) -> anyhow::Result<()> {
        print(&report(snapshot))
    }
}

/// A line, to stdout.
pub(super) fn print(line: &str) -> anyhow::Result<()> {
    Output::Text.write(&(), || line.to_owned())
}

/// What an event says, if it is news.
pub(super) fn told(news: &mut News, event: &Event) -> Option<String> {
    match event {
        Event::State(status) => news.is_news(status).then(|| state(status)),
        Event::Note(told) | Event::Topic(told) => Some(note(told)),
    }
}

/// A partition's state with reason and remedy.
pub(super) fn state(status: &PartitionStatus) -> String {
    let why = status.reason.iter().map(|reason| format!(": {reason}"));
    let remedy = status.remedy.iter().map(|remedy| format!("; remedy: {remedy}"));
    let because: String = why.chain(remedy).collect();
    format!(
        "{}-{} is {} at {}, source {}..{}{because}",
        status.topic,
        status.partition,
        status.state,
        status.end,
        status.source_start,
        offset(status.source_end)
    )
}

/// A note; of no topic if it is of all.
fn note(note: &TopicNote) -> String {
    if note.topic.is_empty() { note.text.clone() } else { format!("{}: {}", note.topic, note.text) }
}

/// How all stands.
pub(super) fn summary(totals: &Totals) -> String {
    if totals.partitions == 0 {
        return "no partitions yet".to_owned();
    }
    format!(
        "{} partitions: {}; {}; {}",
        totals.partitions,
        totals.states_text(),
        totals.lag_text(),
        totals.rates_text()
    )
}

/// Everything: a table, then what needs words.
pub(super) fn report(snapshot: &Snapshot) -> String {
    let heading = [
        "TOPIC",
        "PARTITION",
        "STATE",
        "SOURCE START",
        "SOURCE END",
        "END",
        "LAG",
        "BATCHES",
        "RECORDS",
        "BYTES",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(snapshot.partitions.iter().map(row));
    let mut parts = vec![table(&rows)];
    let explained = |status: &&PartitionStatus| status.reason.is_some() || status.remedy.is_some();
    parts.extend(snapshot.partitions.iter().filter(explained).map(state));
    for status in &snapshot.partitions {
        parts.extend(status.skipped.iter().map(|hole| {
            let (from, to) = (hole.from, hole.to.saturating_sub(1));
            format!("{}-{} lacks offsets {from}..={to}: {}", status.topic, status.partition, hole.reason)
        }));
    }
    parts.extend(snapshot.notes.iter().map(note));
    if !snapshot.groups.is_empty() {
        let heading = ["GROUP", "TOPIC", "PARTITION", "SOURCE OFFSET", "OFFSET", "WHY THEY DIFFER"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(snapshot.groups.iter().map(group_row));
        parts.push(table(&rows));
    }
    parts.join("\n")
}

fn row(status: &PartitionStatus) -> Vec<String> {
    vec![
        status.topic.clone(),
        status.partition.to_string(),
        status.state.to_string(),
        status.source_start.to_string(),
        offset(status.source_end),
        status.end.to_string(),
        status.lag_records.to_string(),
        status.batches.to_string(),
        status.records.to_string(),
        status.bytes.to_string(),
    ]
}

fn group_row(group: &GroupStatus) -> Vec<String> {
    vec![
        group.group.clone(),
        group.topic.clone(),
        group.partition.to_string(),
        group.source_offset.to_string(),
        match group.offset {
            -1 => "none".to_owned(),
            offset => offset.to_string(),
        },
        group.reason.clone().unwrap_or_default(),
    ]
}

fn offset(offset: i64) -> String {
    if offset < 0 { "?".to_owned() } else { offset.to_string() }
}

#[cfg(test)]
mod tests {
    use verbatim::mirror::mirror::state::{Skipped, State};

    use super::super::figures::tests::status;
    use super::*;

    fn diverged() -> PartitionStatus {
        PartitionStatus {
            reason: Some("offset 90 has other bytes".to_owned()),
            remedy: Some("copy the topic anew".to_owned()),
            source_end: -1,
            skipped: vec![Skipped { from: 5, to: 10, reason: "deleted at the source".to_owned() }],
            ..status("orders", 1, State::Diverged)
        }
    }

    #[test]
    fn a_change_is_a_line_with_reason_and_remedy() {
        let mut news = News::default();
        let events = [
            (Event::State(status("a", 0, State::Aligning)), None),
            (Event::State(status("a", 0, State::CaughtUp)), Some("a-0 is caught-up at 90, source 10..100")),
            (
                Event::State(diverged()),
                Some(
                    "orders-1 is diverged at 90, source 10..?: offset 90 has other bytes; remedy: copy the topic anew",
                ),
            ),
            (
                Event::Topic(TopicNote { topic: "a".to_owned(), text: "created".to_owned() }),
                Some("a: created"),
            ),
            (
                Event::Note(TopicNote { topic: String::new(), text: "no topic matches".to_owned() }),
                Some("no topic matches"),
            ),
        ];
        for (event, line) in events {
            assert_eq!(told(&mut news, &event).as_deref(), line);
        }
    }

    #[test]
    fn a_summary_tells_states_lag_and_rates() {
        assert_eq!(summary(&Totals::default()), "no partitions yet");
        let totals = Totals::of(&[status("a", 0, State::CaughtUp), diverged()]);
        assert_eq!(
            summary(&totals),
            "2 partitions: 1 caught-up, 1 diverged; lag 20 records, 40 ms; 0 records/s, 0.0 MB/s"
        );
    }

    #[test]
    fn the_report_has_a_row_for_each_partition_and_says_what_was_skipped() {
        let group = GroupStatus {
            group: "g".to_owned(),
            topic: "a".to_owned(),
            partition: 0,
            source_offset: 7,
            offset: -1,
            reason: Some("it is live here".to_owned()),
        };
        let snapshot = Snapshot {
            partitions: vec![status("a", 0, State::CaughtUp), diverged()],
            notes: vec![TopicNote { topic: "a".to_owned(), text: "min.insync.replicas stays".to_owned() }],
            groups: vec![group],
        };
        let expected = "\
TOPIC   PARTITION  STATE      SOURCE START  SOURCE END  END  LAG  BATCHES  RECORDS  BYTES
a       0          caught-up  10            100         90   10   8        80       1500000
orders  1          diverged   10            ?           90   10   8        80       1500000
orders-1 is diverged at 90, source 10..?: offset 90 has other bytes; remedy: copy the topic anew
orders-1 lacks offsets 5..=9: deleted at the source
a: min.insync.replicas stays
GROUP  TOPIC  PARTITION  SOURCE OFFSET  OFFSET  WHY THEY DIFFER
g      a      0          7              none    it is live here";
        assert_eq!(report(&snapshot), expected);
    }
}
