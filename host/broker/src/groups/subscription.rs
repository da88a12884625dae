//! What the members of a group read, as consumers tell it in their metadata.

use std::collections::BTreeSet;

use super::group::{Group, State};

/// The protocol type of consumers, whose metadata can be read.
const CONSUMERS: &str = "consumer";

/// Topics that a group reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subscription {
    /// These.
    Topics(BTreeSet<String>),
    /// It has members, and what they read cannot be told.
    Unknown,
}

impl Subscription {
    /// Of a group without members.
    pub(crate) const fn none() -> Self {
        Self::Topics(BTreeSet::new())
    }

    pub(crate) fn of(group: &Group) -> Self {
        if group.is_unused() {
            return Self::none();
        }
        if group.state() != State::Stable || group.protocol_type() != CONSUMERS {
            return Self::Unknown;
        }
        let topics: Option<Vec<Vec<String>>> =
            group.members().map(|(_, member)| topics(&member.metadata(group.protocol()))).collect();
        topics.map_or(Self::Unknown, |topics| Self::Topics(topics.into_iter().flatten().collect()))
    }

    pub(crate) fn reads(&self, topic: &str) -> bool {
        match self {
            Self::Topics(topics) => topics.contains(topic),
            Self::Unknown => true,
        }
    }
}

/// The topics at the head of a consumer's metadata: version (i16), count (i32), names (i16 and bytes each).
fn topics(metadata: &[u8]) -> Option<Vec<String>> {
    let (_, rest) = metadata.split_first_chunk::<2>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    // Not reserved: the count is the client's word.
    let mut topics = Vec::new();
    for _ in 0..count {
        let (length, behind) = rest.split_first_chunk::<2>()?;
        let (name, behind) = behind.split_at_checked(usize::try_from(i16::from_be_bytes(*length)).ok()?)?;
        topics.push(std::str::from_utf8(name).ok()?.to_owned());
        rest = behind;
    }
    Some(topics)
}

#[cfg(test)]
mod tests {
    use super::topics;

    #[test]
    fn topics_are_read_and_nothing_else_is_taken_for_them() {
        let whole = [0, 1, 0, 0, 0, 2, 0, 1, b'a', 0, 2, b'b', b'c', 9, 9];
        assert_eq!(topics(&whole), Some(vec!["a".to_owned(), "bc".to_owned()]));
        for cut in 0..13 {
            assert_eq!(topics(whole.get(..cut).unwrap_or_default()), None, "{cut}");
        }
        assert_eq!(topics(&[0, 0, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(topics(&[0, 0, 0x7f, 0xff, 0xff, 0xff]), None);
        assert_eq!(topics(&[0, 0, 0, 0, 0, 1, 0, 1, 0xff]), None);
    }
}
