//! Reports as JUnit's XML, which most build servers read.

use std::fmt::{self, Write as _};

use crate::report::{LeftOut, Outcome, Report};

/// The report as an XML document: a `testsuite` for each suite, a `testcase` for each test, and one that is skipped for
/// tests that were left out.
#[must_use]
pub fn junit(report: &Report) -> String {
    let mut xml = String::new();
    // Writing to a string does not fail.
    let _ = document(&mut xml, report);
    xml
}

fn document(xml: &mut String, report: &Report) -> fmt::Result {
    writeln!(xml, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(xml, "<testsuites>")?;
    for suite in report.suites() {
        let tests: Vec<_> = report.tests.iter().filter(|test| test.suite == suite).collect();
        let left_out: Vec<_> = report.left_out.iter().filter(|left_out| left_out.suite == suite).collect();
        testsuite(xml, suite, &tests, &left_out)?;
    }
    writeln!(xml, "</testsuites>")
}

fn testsuite(xml: &mut String, name: &str, tests: &[&Outcome], left_out: &[&LeftOut]) -> fmt::Result {
    let name = if name.is_empty() { "module" } else { name };
    let failures = tests.iter().filter(|test| !test.passed()).count();
    let time = tests.iter().fold(0_u64, |sum, test| sum.saturating_add(test.time_us));
    let (count, skipped) = (tests.len().saturating_add(left_out.len()), left_out.len());
    let (shown, time) = (Escaped(name), seconds(time));
    writeln!(
        xml,
        r#"  <testsuite name="{shown}" tests="{count}" failures="{failures}" errors="0" skipped="{skipped}" time="{time}">"#
    )?;
    for test in tests {
        let class = test.file.as_ref().map_or_else(|| name.to_owned(), |file| format!("{name}.{file}"));
        testcase(xml, &class, test)?;
    }
    for LeftOut { tests, reason, .. } in left_out {
        let reason = Escaped(reason);
        writeln!(xml, r#"    <testcase classname="{shown}" name="{tests} left out: {reason}">"#)?;
        writeln!(xml, "      <skipped/>\n    </testcase>")?;
    }
    writeln!(xml, "  </testsuite>")
}

fn testcase(xml: &mut String, class: &str, test: &Outcome) -> fmt::Result {
    let without_place = Outcome { suite: String::new(), file: None, ..test.clone() }.to_string();
    let (class, name, time) = (Escaped(class), Escaped(&without_place), seconds(test.time_us));
    write!(xml, r#"    <testcase classname="{class}" name="{name}" time="{time}""#)?;
    let Some(first) = test.differences.first().map(ToString::to_string) else { return writeln!(xml, "/>") };
    let all: Vec<String> = test.differences.iter().map(ToString::to_string).collect();
    let (first, all) = (Escaped(&first), all.join("\n"));
    writeln!(xml, ">\n      <failure message=\"{first}\">{}</failure>\n    </testcase>", Escaped(&all))
}

fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// Text as XML 1.0 may have it, in an attribute too. What no XML document can hold is replaced.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // Else a reader would make spaces of them in an attribute.
                '\t' | '\n' | '\r' => write!(f, "&#{};", u32::from(character))?,
                '\0'..' ' | '\u{fffe}' | '\u{ffff}' => f.write_char(char::REPLACEMENT_CHARACTER)?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::format::Mode;
    use crate::report::Difference;

    #[test]
    fn an_xml_parser_reads_back_what_was_written() {
        let odd = "a <b> & \"c\" 'd' ]]> \u{0}\u{1b}\t\n\r\u{fffe} é 漢 🦀";
        let kept = "a <b> & \"c\" 'd' ]]> \u{fffd}\u{fffd}\t\n\r\u{fffd} é 漢 🦀";
        let difference = Difference {
            at: String::new(),
            what: "text".to_owned(),
            expected: odd.to_owned(),
            got: "nothing".to_owned(),
        };
        let failed = Outcome {
            suite: "kafka".to_owned(),
            file: Some(odd.to_owned()),
            name: odd.to_owned(),
            mode: Some(Mode::Exact),
            time_us: 1_234_567,
            differences: vec![difference.clone(), difference],
            ..Outcome::default()
        };
        let passed = Outcome { suite: "contract".to_owned(), name: "fine".to_owned(), ..Outcome::default() };
        let mut report = Report { tests: vec![passed, failed], ..Report::default() };
        report.leave_out("kafka", Mode::Normal, 3);

        let xml = junit(&report);
        let document = roxmltree::Document::parse(&xml).unwrap();
        let suites: Vec<_> =
            document.root_element().children().filter(|node| node.has_tag_name("testsuite")).collect();
        let names: Vec<_> = suites.iter().filter_map(|suite| suite.attribute("name")).collect();
        assert_eq!(names, ["contract", "kafka"]);
        for (name, value) in [("tests", "2"), ("failures", "1"), ("skipped", "1"), ("time", "1.234567")] {
            assert_eq!(suites[1].attribute(name), Some(value), "{name}");
        }
        let cases: Vec<_> = suites[1].children().filter(|node| node.has_tag_name("testcase")).collect();
        assert_eq!(cases[0].attribute("classname"), Some(format!("kafka.{kept}").as_str()));
        assert_eq!(cases[0].attribute("name"), Some(format!("{kept} (exact)").as_str()));
        let failure = cases[0].children().find(|node| node.has_tag_name("failure")).unwrap();
        let line = format!("text: expected {kept}, got nothing");
        assert_eq!(failure.attribute("message"), Some(line.as_str()));
        assert_eq!(failure.text(), Some(format!("{line}\n{line}").as_str()));
        assert!(cases[1].children().any(|node| node.has_tag_name("skipped")));
        assert!(cases[1].attribute("name").unwrap().starts_with("3 left out"));
    }
}
