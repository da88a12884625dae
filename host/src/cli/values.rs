//! Values of options, told by flags, the environment and the configuration file, and what is said of those that are wrong.

use std::time::Duration;

use regex::Regex;

use super::Usage;
use super::connect::host_port;

/// A value that is not as expected. The place is a command or a table of the configuration file.
pub(super) fn wrong(place: &str, field: &str, value: &str, expected: &str) -> Usage {
    Usage(format!("{place}: {field} must be {expected}, {field}=`{value}`"))
}

/// A value that is not there.
pub(super) fn missing(place: &str, field: &str, what: &str) -> Usage {
    Usage(format!("{place}: {field} is missing: {what}"))
}

/// A time in milliseconds that is not 0.
pub(super) fn at_least_1(place: &str, field: &str, ms: u64) -> Result<Duration, Usage> {
    match ms {
        0 => Err(wrong(place, field, "0", "1 or more")),
        ms => Ok(Duration::from_millis(ms)),
    }
}

/// HOST:PORT, several of them separated by commas.
pub(super) fn addresses(place: &str, field: &str, text: &str) -> Result<Vec<String>, Usage> {
    let one = |address: &str| match host_port(address) {
        Some(_) => Ok(address.to_owned()),
        None => Err(wrong(place, field, text, "HOST:PORT, several of them separated by commas")),
    };
    text.split(',').map(str::trim).map(one).collect()
}

/// Regular expressions, those of a text separated by commas.
pub(super) fn patterns(place: &str, field: &str, texts: &[String]) -> Result<Vec<Regex>, Usage> {
    let one = |text: &str| {
        Regex::new(text).map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
            wrong(place, field, text, &format!("a regular expression ({why})"))
        })
    };
    texts.iter().flat_map(|text| split(text)).map(one).collect()
}

/// At commas, but not at those of `{2,3}` or `[,]`, nor at escaped ones.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let (mut nested, mut escaped) = (false, false);
    let at_comma = move |char: char| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        match char {
            '\\' => escaped = true,
            '{' | '[' => nested = true,
            '}' | ']' => nested = false,
            _ => {}
        }
        char == ',' && !nested
    };
    text.split(at_comma).map(str::trim).filter(|pattern| !pattern.is_empty())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(super) mod tests {
    use serde::de::DeserializeOwned;

    use super::*;

    /// Options as a table of the configuration file tells them.
    pub(in super::super) fn asked<T: DeserializeOwned>(table: &str) -> T {
        toml::from_str(table).unwrap()
    }

    /// Each of these tables is refused by words that begin with the place and hold these; what is no option at all, by its name.
    pub(in super::super) fn refused<T: DeserializeOwned, S>(
        place: &str,
        rows: &[(&str, &str)],
        made: impl Fn(T) -> Result<S, Usage>,
    ) {
        for (table, told) in rows {
            let error = made(asked(table)).err().unwrap().to_string();
            assert!(error.starts_with(place) && error.contains(told), "{table}: {error}");
        }
        let error = toml::from_str::<T>("sauce = 's:1'").err().unwrap();
        assert!(error.to_string().contains("sauce"), "{error}");
    }

    #[test]
    fn patterns_keep_their_own_commas() {
        let texts = ["a{1,2},b[,x]".to_owned(), r"c\,d, , e|f".to_owned()];
        let all = patterns("mirror", "topics", &texts).unwrap();
        let all: Vec<&str> = all.iter().map(Regex::as_str).collect();
        assert_eq!(all, ["a{1,2}", "b[,x]", r"c\,d", "e|f"]);
    }
}
