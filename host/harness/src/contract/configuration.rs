//! Which keys a module takes that checks its configuration: an answer, or a text, and the same every time.

use verbatim_engine::Misconfigured;

use crate::report::Difference;
use crate::subject::Check;

/// The longest value of a key in bytes, and how many of them a host keeps for a topic.
const VALUE_LEN: usize = 32_767;
const VALUES: usize = 4;
/// The most keys of a topic.
const KEYS: usize = 256;
/// How much of a set of keys is shown, in characters.
const SHOWN_LEN: usize = 80;

type Keys = Vec<(String, String)>;
type Answer = Result<(), Misconfigured>;

/// The first thing that is wrong with the answers of a module of this name, if any.
pub(super) fn run(check: &Check, name: &str) -> Vec<Difference> {
    let wrong = |(index, keys): (usize, Keys)| {
        let differs = |what: &str, expected: &str, got: String| {
            let shown: String = format!("{keys:?}").chars().take(SHOWN_LEN).collect();
            let (at, what, expected) =
                (format!("keys {index} ({shown})"), what.to_owned(), expected.to_owned());
            Some(Difference { at, what, expected, got })
        };
        let answer = check(&keys);
        match &answer {
            Err(Misconfigured::Failed(failure)) => {
                return differs("answer", "yes or no", failure.to_string());
            }
            Err(Misconfigured::Refused(text)) if text.is_empty() => {
                return differs("the text", "key, value and expectation", "nothing".to_owned());
            }
            _ => {}
        }
        let again = check(&keys);
        if again == answer { None } else { differs("asked again", &shown(&answer), shown(&again)) }
    };
    asks(name).into_iter().enumerate().find_map(wrong).into_iter().collect()
}

fn shown(answer: &Answer) -> String {
    answer.as_ref().map_or_else(ToString::to_string, |()| "yes".to_owned())
}

/// None, odd ones, and as many and as large ones as a host hands over.
fn asks(name: &str) -> Vec<Keys> {
    let key = |rest: &str, value: &str| (format!("{name}.{rest}"), value.to_owned());
    let odd = ["", "x", "no such key", ".", "..", "a.b.c", "\u{0}", "schlüssel", "\u{1f511}", "\u{202e}"];
    let values = ["", "1", " ", "-1", "18446744073709551616", "\u{0}", "ü,\u{1f511},;*", "$.a[*].b", "true"];
    let each = odd.iter().flat_map(|rest| values.iter().map(|value| vec![key(rest, value)]));
    let large = "v".repeat(VALUE_LEN);
    let many: Keys = (0..KEYS).map(|number| key(&number.to_string(), "1")).collect();
    let most: Keys = (0..VALUES).map(|number| key(&number.to_string(), &large)).collect();
    let commas = vec![key("list", &",".repeat(VALUE_LEN)), key(&"k".repeat(255), "")];
    let twice = vec![key("x", "1"), key("x", "2")];
    each.chain([Vec::new(), many, most, commas, twice, vec![(String::new(), String::new())]]).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use verbatim_engine::Failure;

    use super::*;

    fn found(check: &Check) -> Vec<String> {
        run(check, "m").into_iter().map(|wrong| format!("{}: {}", wrong.what, wrong.got)).collect()
    }

    #[test]
    fn any_answer_will_do_that_has_words_and_stays_the_same() {
        assert_eq!(found(&|_| Ok(())), [""; 0]);
        assert_eq!(found(&|keys| Err(Misconfigured::Refused(format!("{} too many", keys.len())))), [""; 0]);
    }

    #[test]
    fn a_failure_an_empty_text_and_a_change_of_mind_are_told() {
        let traps = |keys: &[(String, String)]| match keys {
            [] => Err(Misconfigured::Failed(Failure::Trap { text: "unreachable".to_owned() })),
            _ => Ok(()),
        };
        assert_eq!(found(&traps), ["answer: the module trapped: unreachable"]);
        assert_eq!(found(&|_| Err(Misconfigured::Refused(String::new()))), ["the text: nothing"]);
        // What it says depends on what it was asked before.
        let asked = AtomicBool::new(false);
        let wavers = move |_: &[(String, String)]| match asked.fetch_not(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Misconfigured::Refused("no".to_owned())),
        };
        assert_eq!(found(&wavers), ["asked again: no"]);
    }
}
