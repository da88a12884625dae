//! Fields of a JSON text, found by their paths without taking the text apart, so that all that is not masked stays as it is:
//! numbers, escapes, blanks and the order of members.
//!
//! The text is read once, from front to back, and nothing is allocated for what it holds: a value may be as large as a module's
//! memory allows, and its writer chooses what is in it. It must be JSON as RFC 8259 has it, at most [`DEPTH_MAX`] levels deep.

use std::ops::Range;

use crate::paths::{Node, Paths};

/// The most arrays and objects inside each other.
pub(crate) const DEPTH_MAX: usize = 128;

/// The text is no JSON, or too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotJson;

/// Tells where each field that one of the paths `masked` leads to lies, in the order of the text; of fields inside each other,
/// the outer one. Gives whether one of the paths `dropped` leads to a field. Without paths nothing is looked at.
///
/// # Errors
/// The text is no JSON, wherever in it that shows.
pub(crate) fn find(
    text: &[u8],
    dropped: Option<&Paths>,
    masked: Option<&Paths>,
    on_field: impl FnMut(Range<usize>),
) -> Result<bool, NotJson> {
    let here = Here { dropped: dropped.and_then(Paths::root), masked: masked.and_then(Paths::root) };
    if here.dropped.is_none() && here.masked.is_none() {
        return Ok(false);
    }
    let text = std::str::from_utf8(text).map_err(|_| NotJson)?;
    let mut scan =
        Scan { text, bytes: text.as_bytes(), at: 0, is_dropped: false, unescaped: String::new(), on_field };
    scan.value(here, 0)?;
    scan.blanks();
    if scan.at == text.len() { Ok(scan.is_dropped) } else { Err(NotJson) }
}

/// What the steps to the present value lead to, of each kind of paths; none where no path goes that way.
#[derive(Clone, Copy)]
struct Here<'p> {
    dropped: Option<&'p Node>,
    masked: Option<&'p Node>,
}

impl<'p> Here<'p> {
    fn behind(self, step: impl Fn(&'p Node) -> Option<&'p Node>) -> Self {
        Self { dropped: self.dropped.and_then(&step), masked: self.masked.and_then(&step) }
    }
}

/// Where the reading is.
struct Scan<'a, F> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    is_dropped: bool,
    /// A member's name without its escapes: the one buffer for all of them.
    unescaped: String,
    on_field: F,
}

impl<F: FnMut(Range<usize>)> Scan<'_, F> {
    fn value(&mut self, here: Here<'_>, depth: usize) -> Result<(), NotJson> {
        self.blanks();
        let start = self.at;
        self.is_dropped |= here.dropped.is_some_and(|node| node.is_field);
        let is_masked = here.masked.is_some_and(|node| node.is_field);
        let below = Here { masked: here.masked.filter(|_| !is_masked), ..here };
        match self.next()? {
            b'{' => self.object(below, depth)?,
            b'[' => self.array(below, depth)?,
            b'"' => drop(self.string()?),
            b't' => self.word(b"rue")?,
            b'f' => self.word(b"alse")?,
            b'n' => self.word(b"ull")?,
            b'-' => {
                let first = self.next()?;
                self.number(first)?;
            }
            first => self.number(first)?,
        }
        if is_masked {
            (self.on_field)(start..self.at);
        }
        Ok(())
    }

    fn object(&mut self, here: Here<'_>, depth: usize) -> Result<(), NotJson> {
        let inside = deeper(depth)?;
        self.blanks();
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.blanks();
            self.expect(b'"')?;
            let start = self.at;
            let has_escapes = self.string()?;
            let name = self.text.get(start..self.at.saturating_sub(1)).unwrap_or_default();
            let below = if has_escapes {
                self.unescaped.clear();
                let is_name = unescape(name, &mut self.unescaped).is_some();
                here.behind(|node| node.member(&self.unescaped).filter(|_| is_name))
            } else {
                here.behind(|node| node.member(name))
            };
            self.blanks();
            self.expect(b':')?;
            self.value(below, inside)?;
            self.blanks();
            match self.next()? {
                b',' => {}
                b'}' => return Ok(()),
                _ => return Err(NotJson),
            }
        }
    }

    fn array(&mut self, here: Here<'_>, depth: usize) -> Result<(), NotJson> {
        let inside = deeper(depth)?;
        let below = here.behind(|node| node.each.as_deref());
        self.blanks();
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.value(below, inside)?;
            self.blanks();
            match self.next()? {
                b',' => {}
                b']' => return Ok(()),
                _ => return Err(NotJson),
            }
        }
    }

    /// The rest of a string behind its first quote. Gives whether it has escapes.
    fn string(&mut self) -> Result<bool, NotJson> {
        let mut has_escapes = false;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = rest.iter().take_while(|byte| **byte > 0x1F && !matches!(byte, b'"' | b'\\')).count();
            self.at = self.at.saturating_add(plain);
            match self.next()? {
                b'"' => return Ok(has_escapes),
                b'\\' => self.escape()?,
                _ => return Err(NotJson),
            }
            has_escapes = true;
        }
    }

    /// The rest of an escape behind its backslash.
    fn escape(&mut self) -> Result<(), NotJson> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                (0..4).try_for_each(|_| if self.next()?.is_ascii_hexdigit() { Ok(()) } else { Err(NotJson) })
            }
            _ => Err(NotJson),
        }
    }

    /// The rest of a number whose first digit this must be.
    fn number(&mut self, first: u8) -> Result<(), NotJson> {
        match first {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return Err(NotJson),
        }
        if matches!(self.peek(), Some(b'.' | b'e' | b'E')) { self.fraction() } else { Ok(()) }
    }

    /// What may stand behind a number's digits: a fraction, an exponent.
    fn fraction(&mut self) -> Result<(), NotJson> {
        if self.take(b'.') {
            self.some_digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.some_digits()?;
        }
        Ok(())
    }

    fn some_digits(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        self.digits();
        if self.at > start { Ok(()) } else { Err(NotJson) }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at = self.at.saturating_add(1);
        }
    }

    fn word(&mut self, rest: &[u8]) -> Result<(), NotJson> {
        rest.iter().try_for_each(|byte| self.expect(*byte))
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at = self.at.saturating_add(1);
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, NotJson> {
        let byte = self.peek().ok_or(NotJson)?;
        self.at = self.at.saturating_add(1);
        Ok(byte)
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at = self.at.saturating_add(usize::from(is_there));
        is_there
    }

    fn expect(&mut self, wanted: u8) -> Result<(), NotJson> {
        if self.take(wanted) { Ok(()) } else { Err(NotJson) }
    }
}

fn deeper(depth: usize) -> Result<usize, NotJson> {
    depth.checked_add(1).filter(|depth| *depth <= DEPTH_MAX).ok_or(NotJson)
}

/// What stands between quotes without its escapes, behind what is in `name` already; `None` if it is no text: half a surrogate
/// pair is no character.
fn unescape(quoted: &str, name: &mut String) -> Option<()> {
    let mut rest = quoted;
    while let Some((plain, escape)) = rest.split_once('\\') {
        name.push_str(plain);
        let mut chars = escape.chars();
        let char = match chars.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = unit(&mut chars)?;
                let second = if is_high(first) {
                    chars = chars.as_str().strip_prefix("\\u")?.chars();
                    Some(unit(&mut chars)?)
                } else {
                    None
                };
                char::decode_utf16([first].into_iter().chain(second)).next()?.ok()?
            }
            other => other,
        };
        name.push(char);
        rest = chars.as_str();
    }
    name.push_str(rest);
    Some(())
}

/// Whether a UTF-16 unit is the first of two.
fn is_high(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

/// The UTF-16 unit of four hexadecimal digits.
fn unit(chars: &mut std::str::Chars<'_>) -> Option<u16> {
    let digits = chars.by_ref().take(4).filter_map(|digit| digit.to_digit(16));
    u16::try_from(digits.fold(0, |unit, digit| unit << 4 | digit)).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::paths::{Path, Step};

    fn paths(texts: &[&str]) -> Paths {
        Paths::new(texts.iter().map(|text| Path::parse(text).unwrap()).collect())
    }

    fn fields<'a>(text: &'a str, wanted: &[&str]) -> Result<Vec<&'a str>, NotJson> {
        let mut found = Vec::new();
        let dropped = find(text.as_bytes(), Some(&paths(wanted)), None, |_| panic!("nothing is masked"));
        let read = find(text.as_bytes(), None, Some(&paths(wanted)), |field| found.push(&text[field]));
        assert_eq!(dropped, read.map(|_| !found.is_empty()));
        assert_ne!(read, Ok(true));
        read.map(|_| found)
    }

    #[test]
    fn fields_are_found_as_they_are_written() {
        let text = r#" { "card" : {"number":  4111e-2 , "n\u0075mber": "\ud83d\ude00", "other": [1]}, "x": {"number": 1} } "#;
        assert_eq!(fields(text, &["$.card.number"]), Ok(vec!["4111e-2", r#""\ud83d\ude00""#]));
        assert_eq!(fields(text, &["$.card.other[*]", "$.x.number"]), Ok(vec!["1", "1"]));
        assert_eq!(fields(text, &["$.card.other", "$.card.other[*]"]), Ok(vec!["[1]"]));
        assert_eq!(fields(text, &["$.card[*]", "$.number", "$.card.number.x"]), Ok(vec![]));
        assert_eq!(fields(r#"[{"a":1},{"b":2,"a":null},3,[{"a":4}]]"#, &["$[*].a"]), Ok(vec!["1", "null"]));
        assert_eq!(fields(r#"{"a\/b\"\\😀":0}"#, &["$.a/b\\"]), Ok(vec![]));
        assert_eq!(fields("{\"\\ud83d\\ude00\":0,\"\\ud83d\":1,\"😀\":2}", &["$.😀"]), Ok(vec!["0", "2"]));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(fields(&nested(DEPTH_MAX), &["$.a"]), Ok(vec![]));
        assert_eq!(fields(&nested(DEPTH_MAX + 1), &["$.a"]), Err(NotJson));
        assert_eq!(fields(&"[".repeat(10_000_000), &["$.a"]), Err(NotJson));
    }

    /// Texts that are JSON, and texts that nearly are.
    fn text() -> impl Strategy<Value = String> {
        let number = prop_oneof![
            Just("0".to_owned()),
            Just("-0.0".to_owned()),
            Just("1e5".to_owned()),
            Just("-12.50E-7".to_owned()),
            any::<i64>().prop_map(|number| number.to_string()),
            "-?[0-9]{1,30}(\\.[0-9]{0,3})?([eE][+-]?[0-9]{0,2})?"
        ];
        let string = prop_oneof![
            "[a-c]{0,2}".prop_map(|text| format!("\"{text}\"")),
            any::<String>().prop_map(|text| Value::from(text).to_string()),
            Just(r#""\u0061""#.to_owned()),
            Just(r#""\uD800 \/\b\f""#.to_owned())
        ];
        let word = prop_oneof![Just("true".to_owned()), Just("false".to_owned()), Just("null".to_owned())];
        let leaf = prop_oneof![number, string, word];
        leaf.prop_recursive(5, 40, 5, |inner| {
            let blank = || "[ \t\r\n]{0,2}";
            let member =
                (prop_oneof!["\"[a-c]\"", Just(r#""\u0061""#.to_owned())], blank(), inner.clone(), blank())
                    .prop_map(|(name, before, value, after)| {
                        format!("{before}{name}{after}:{before}{value}")
                    });
            let many = |items: Vec<String>| items.join(",");
            prop_oneof![
                proptest::collection::vec(member, 0..5).prop_map(move |items| format!("{{{}}}", many(items))),
                proptest::collection::vec(inner, 0..5).prop_map(move |items| format!("[{}]", many(items))),
            ]
        })
    }

    /// What the field that this path leads to must be, once or more times, by the parsed text.
    fn led_to(value: &Value, steps: &[Step], found: &mut Vec<Value>) {
        match (steps.split_first(), value) {
            (None, value) => found.push(value.clone()),
            (Some((Step::Member(name), rest)), Value::Object(members)) => {
                members.get(name).into_iter().for_each(|value| led_to(value, rest, found));
            }
            (Some((Step::Each, rest)), Value::Array(elements)) => {
                elements.iter().for_each(|value| led_to(value, rest, found));
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn what_is_json_is_what_a_parser_says(
            text in text(), at in any::<prop::sample::Index>(), byte in any::<u8>(), how in 0..4,
        ) {
            let mut bytes = text.into_bytes();
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.truncate(at),
                2 => bytes.insert(at, byte % 128),
                _ => {}
            }
            // `IgnoredAny` is not asked whether bytes are UTF-8, nor how large a number is.
            let is_read = serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok();
            let expected = std::str::from_utf8(&bytes).is_ok() && is_read;
            let found = find(&bytes, None, Some(&paths(&["$.a.b", "$[*]"])), |_| {});
            prop_assert_eq!(found.is_ok(), expected, "{:?}", String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn what_is_found_is_where_a_parser_finds_it(text in text(), path in "\\$(\\.[a-c]|\\[\\*\\]){1,3}") {
            let Ok(value) = serde_json::from_str::<Value>(&text) else { return Ok(()) };
            let path = Path::parse(&path).unwrap();
            let mut expected = Vec::new();
            led_to(&value, &path.0, &mut expected);
            let mut found = Vec::new();
            let wanted = Paths::new(vec![path]);
            find(text.as_bytes(), None, Some(&wanted), |field| found.push(text[field].to_owned())).unwrap();
            let parsed: Vec<Value> = found.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            // Of members with one name the parser keeps the last one; here each is found.
            prop_assert!(expected.iter().all(|value| parsed.contains(value)), "{:?} of {:?}", parsed, expected);
            prop_assert!(!expected.is_empty() || parsed.is_empty() || has_twins(&text));
        }
    }

    /// Whether an object in the text may name a member twice.
    fn has_twins(text: &str) -> bool {
        ["a", "b", "c"].iter().any(|name| text.matches(&format!("\"{name}\"")).count() > 1)
            || text.contains("\\u0061")
    }
}
