//! docs/OPERATIONS.md says what the code does: its tables of properties, metrics and wire support are made from the code, its
//! table of errors is compared with it row by row. With `VERBATIM_UPDATE_DOCS=1` the tables that differ are written anew.

use std::collections::BTreeSet;
use std::path::Path;

use verbatim_broker::metrics::{FAMILIES, Family};
use verbatim_broker::properties::{Change, PROPERTIES, Property};
use verbatim_wire::messages;
use verbatim_wire::{APIS, ApiKey, ErrorCode};

use crate::heads;

/// What Kafka 4 has beside what is served, and why it is not served: the numbers of the APIs, in one row for each reason.
const NOT_SERVED: &[(&str, &[i16], &str)] = &[
    (
        "the newer protocols of groups",
        &[68, 69, 88, 89],
        "consumers use the classic protocol here, `group.protocol=classic`, which is the default of Kafka's own",
    ),
    ("transactions", &[24, 25, 26, 27, 28, 65, 66], "there is no transaction coordinator yet"),
    ("share groups", &[76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92], "queues are not what a copy is for"),
    ("ACLs", &[29, 30, 31], "nobody is authenticated yet, so nobody can be told apart"),
    ("SASL, SCRAM, delegation tokens", &[17, 36, 38, 39, 40, 41, 50, 51], "nobody is authenticated yet"),
    (
        "replicas and leaders",
        &[34, 43, 45, 46, 56, 73],
        "one node, one replica of each partition, one folder of data: there is nothing to move or elect",
    ),
    (
        "KRaft and the broker's life in a cluster",
        &[52, 53, 54, 55, 57, 58, 59, 62, 63, 64, 67, 70, 80, 81, 82],
        "one node needs no quorum; spoken between servers only, or about their quorum",
    ),
    ("client telemetry", &[71, 72], "clients are not asked for metrics; they go on without (KIP-714)"),
];

/// What Kafka has and the message library does not know.
const UNKNOWN: &[(i16, &str)] = &[(88, "StreamsGroupHeartbeat"), (89, "StreamsGroupDescribe")];

#[test]
fn tables_are_what_the_code_says() {
    let mut text = std::fs::read_to_string(operations()).unwrap();
    let before = text.clone();
    let properties = "| property | type | default | acted on | change | meaning |";
    replace_table(&mut text, "properties", properties, PROPERTIES.iter().map(property_row));
    replace_table(&mut text, "wire", "| API | versions | left out |", APIS.iter().map(api_row));
    let metrics = "| metric | type | unit | labels | meaning |";
    replace_table(&mut text, "metrics", metrics, FAMILIES.iter().map(metric_row));
    replace_table(&mut text, "not served", "| not served | APIs | why |", NOT_SERVED.iter().map(reason_row));
    if std::env::var_os("VERBATIM_UPDATE_DOCS").is_some() {
        if text != before {
            std::fs::write(operations(), text).unwrap();
        }
        return;
    }
    for (line, (is, must_be)) in (1..).zip(before.lines().zip(text.lines())) {
        assert_eq!(is, must_be, "docs/OPERATIONS.md:{line}, VERBATIM_UPDATE_DOCS=1 mends it");
    }
    assert_eq!(before, text, "VERBATIM_UPDATE_DOCS=1 mends it");
    assert_eq!(ApiKey::Produce.api().min, 3, "the text above the table says so");
}

#[test]
fn every_api_of_kafka_is_served_or_there_is_a_reason_why_not() {
    let mut known = BTreeSet::new();
    let reasons = NOT_SERVED.iter().flat_map(|(_, numbers, _)| numbers.iter().copied());
    for number in reasons.chain(APIS.iter().map(|api| api.key.number())) {
        assert!(known.insert(number), "API {number} is named twice");
    }
    let theirs: BTreeSet<i16> =
        messages::ApiKey::iter().map(|key| key as i16).chain(UNKNOWN.iter().map(|(key, _)| *key)).collect();
    assert_eq!(known, theirs);
}

#[test]
fn error_codes_are_documented_as_they_are() {
    let text = std::fs::read_to_string(operations()).unwrap();
    let documented: Vec<&str> = text[table(&text, "errors")].lines().collect();
    let answered = ErrorCode::ALL.iter().filter(|code| **code != ErrorCode::None);
    let known: Vec<String> = answered.map(|code| error_start(*code)).collect();
    for (row, start) in documented.iter().skip(2).zip(&known) {
        assert!(row.starts_with(start), "{row}\nmust start with {start}");
        assert!(row.trim_end_matches(" |").len() > start.len() + 10, "{row} says nothing");
    }
    assert_eq!(documented.len(), known.len() + 2, "one row for each code that the wire knows");
}

fn api_row(api: &verbatim_wire::Api) -> String {
    let (name, number) = (api.key.name(), api.key.number());
    let left_out = heads::left_out(number);
    let (min, max) = (api.advertised_min, api.max);
    let versions = if min == max { format!("{min}") } else { format!("{min}-{max}") };
    format!("| {name} ({number}) | {versions} | {left_out} |")
}

fn reason_row((what, numbers, why): &(&str, &[i16], &str)) -> String {
    let name = |number: &i16| {
        let known = messages::ApiKey::iter().find(|key| *key as i16 == *number);
        let unknown = || UNKNOWN.iter().find(|(key, _)| key == number).unwrap().1.to_owned();
        format!("{} ({number})", known.map_or_else(unknown, |key| format!("{key:?}")))
    };
    let names: Vec<String> = numbers.iter().map(name).collect();
    format!("| {what} | {} | {why} |", names.join(", "))
}

fn property_row(property: &Property) -> String {
    let default = match property.default {
        "" => "none".to_owned(),
        default => format!("`{default}`"),
    };
    let change = match property.change {
        Change::Always => "always",
        Change::ShapesData => "mirror",
        Change::AtCreation => "creation",
        Change::RemoveOnly => "remove",
    };
    let acted_on = if property.acted_on { "yes" } else { "no" };
    let (name, kind, doc) = (property.name, property.type_name(), property.doc);
    format!("| `{name}` | {kind}: {} | {default} | {acted_on} | {change} | {doc} |", property.expectation())
}

fn metric_row(family: &Family) -> String {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let (unit, labels) = (or_dash(family.unit().to_owned()), or_dash(family.labels.join(", ")));
    format!("| `{}` | {} | {unit} | {labels} | {} |", family.name, family.kind.name(), family.help)
}

fn error_start(code: ErrorCode) -> String {
    let retry = if code.is_retriable() { "yes" } else { "no" };
    format!("| {} | {} | {retry} | ", code.number(), code.name())
}

fn operations() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/OPERATIONS.md")
}

/// Where the table behind a mark stands in the text, heading and rule included.
fn table(text: &str, mark: &str) -> std::ops::Range<usize> {
    let mark = format!("<!-- {mark} -->\n\n");
    let start = text.find(&mark).unwrap() + mark.len();
    let lines = text[start..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    start..start + lines.map(str::len).sum::<usize>()
}

fn replace_table(text: &mut String, mark: &str, heading: &str, rows: impl Iterator<Item = String>) {
    let rule = heading.split('|').skip(2).map(|_| "|---").collect::<String>() + "|";
    let lines = [heading.to_owned(), rule].into_iter().chain(rows);
    let made: String = lines.map(|line| line + "\n").collect();
    let range = table(text, mark);
    text.replace_range(range, &made);
}
