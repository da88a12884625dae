//! docs/OPERATIONS.md says what the code does: its tables of properties, errors and wire support are compared row by row.

use verbatim_broker::properties::{Change, PROPERTIES, Property};
use verbatim_wire::{APIS, ApiKey, ErrorCode};

const OPERATIONS: &str = include_str!("../../../../docs/OPERATIONS.md");

#[test]
fn topic_properties_are_documented_as_they_are() {
    let rows = PROPERTIES.iter().map(property_row);
    assert_table("properties", "| property | type | default | acted on | change | meaning |", rows);
}

#[test]
fn error_codes_are_documented_as_they_are() {
    let documented = table("errors");
    let answered = ErrorCode::ALL.iter().filter(|code| **code != ErrorCode::None);
    let known: Vec<String> = answered.map(|code| error_start(*code)).collect();
    for (row, start) in documented.iter().skip(2).zip(&known) {
        assert!(row.starts_with(start), "{row}\nmust start with {start}");
        assert!(row.trim_end_matches(" |").len() > start.len() + 10, "{row} says nothing");
    }
    assert_eq!(documented.len(), known.len() + 2, "one row for each code that the wire knows");
}

#[test]
fn every_api_is_documented_with_its_versions() {
    let documented = table("wire");
    for (row, api) in documented.iter().skip(2).zip(APIS) {
        let start =
            format!("| {} ({}) | {}-{} | ", api.key.name(), api.key.number(), api.advertised_min, api.max);
        assert!(row.starts_with(&start), "{row}\nmust start with {start}");
    }
    assert_eq!(documented.len(), APIS.len() + 2);
    assert_eq!(ApiKey::Produce.api().min, 3, "the text above the table says so");
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

fn error_start(code: ErrorCode) -> String {
    let retry = if code.is_retriable() { "yes" } else { "no" };
    format!("| {} | {} | {retry} | ", code.number(), code.name())
}

/// The lines of the table behind a mark, heading and rule included.
fn table(mark: &str) -> Vec<&'static str> {
    let (_, behind) = OPERATIONS.split_once(&format!("<!-- {mark} -->\n")).unwrap();
    behind.lines().skip_while(|line| line.is_empty()).take_while(|line| line.starts_with('|')).collect()
}

fn assert_table(mark: &str, heading: &str, rows: impl Iterator<Item = String>) {
    let rule = heading.split('|').skip(2).map(|_| "|---").collect::<String>() + "|";
    let expected: Vec<String> = [heading.to_owned(), rule].into_iter().chain(rows).collect();
    assert_eq!(table(mark), expected, "the table must be\n{}", expected.join("\n"));
}
