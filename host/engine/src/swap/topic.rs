//! A topic's id as Kafka's tools write it.

use std::fmt::{self, Write as _};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Shows the high and low 64 bits of an id as 22 characters of URL-safe base64 without padding.
pub(crate) struct TopicId(pub(crate) (u64, u64));

impl fmt::Display for TopicId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (high, low) = self.0;
        let number = u128::from(high) << 64 | u128::from(low);
        // Six bits a character; the last one has two, and four that are zero.
        let sixes = (0..21).map(|index| number >> (122 - 6 * index) & 0x3f).chain([(number & 3) << 4]);
        for six in sixes {
            let letter = usize::try_from(six).ok().and_then(|at| ALPHABET.get(at)).copied().unwrap_or(b'A');
            formatter.write_char(char::from(letter))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_kafka_does() {
        // The all-zero id, the largest one, and the one of Kafka's metadata topic.
        assert_eq!(TopicId((0, 0)).to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(TopicId((u64::MAX, u64::MAX)).to_string(), "_____________________w");
        assert_eq!(TopicId((0, 1)).to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
    }
}
