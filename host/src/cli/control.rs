//! What operators ask of a running host: one connection a question, over a Unix socket in the data folder, or over TCP with
//! a token.
//!
//! The question is one line of JSON, a [`Question`]; for a swap the module's bytes follow. The answer is lines of JSON,
//! [`Answer`]s: any number that tell of progress, then one that ends it. Whoever asks for a swap keeps the connection open, both
//! ways, until then: the swap is abandoned otherwise.

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) mod client;
pub(super) mod server;
mod socket;

/// The socket in the data folder.
pub(super) const SOCKET: &str = "control.sock";
/// The longest question, in bytes; a module's bytes are not part of it.
const QUESTION_LEN_MAX: u64 = 64 << 10;
/// The longest line of an answer, in bytes.
const ANSWER_LEN_MAX: u64 = 16 << 20;

/// A question.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    /// What the token file holds, over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
    /// What is asked.
    pub(super) ask: Ask,
}

/// What is asked.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Ask {
    /// Put another module in the place of a named one.
    Swap {
        /// The name.
        name: String,
        /// Length of the module's file, whose bytes follow the line.
        length: u64,
        /// The rule suite is to be run, too.
        #[serde(default)]
        kafka: bool,
        /// Live requests are judged by it first, for this long.
        #[serde(default)]
        shadow: Option<Bound>,
        /// Everything but the swap itself.
        #[serde(default)]
        dry_run: bool,
    },
    /// What serves.
    Status,
    /// Back to the module that served before.
    Rollback {
        /// The name.
        name: String,
    },
    /// What became of each swap.
    History {
        /// The name.
        name: String,
    },
}

/// When a shadow period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Bound {
    /// After this time in milliseconds.
    Ms(u64),
    /// After so many requests.
    Requests(u64),
}

/// A line of an answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// Something that is under way or done.
    Progress(String),
    /// The end: what was asked for.
    Done(Value),
    /// The end: it failed, and nothing changed.
    Failed(String),
    /// The end: the question is wrong.
    Wrong(String),
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn questions_are_lines_that_say_what_they_are() {
        let swap = Ask::Swap {
            name: "strict".to_owned(),
            length: 7,
            kafka: true,
            shadow: Some(Bound::Ms(30_000)),
            dry_run: false,
        };
        let line = serde_json::to_string(&Question { token: None, ask: swap }).unwrap();
        let expected = r#"{"ask":{"swap":{"name":"strict","length":7,"kafka":true,"shadow":{"ms":30000},"dry_run":false}}}"#;
        assert_eq!(line, expected);
        let short = r#"{"token":"t","ask":{"swap":{"name":"strict","length":7}}}"#;
        assert!(serde_json::from_str::<Question>(short).is_ok());
        assert_eq!(serde_json::from_str::<Question>(r#"{"ask":"status"}"#).unwrap().ask, Ask::Status);
        for wrong in [r#"{"ask":"stop"}"#, r#"{"ask":"status","more":1}"#, "{}", r#"{"ask":{"rollback":{}}}"#]
        {
            assert!(serde_json::from_str::<Question>(wrong).is_err(), "{wrong}");
        }
    }
}
