//! A digest of a run of batches that two people can compare over the phone.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A chain over whole batches: it begins as 32 zero bytes, and with each batch becomes SHA-256 of itself followed by the
/// batch's bytes. So it depends on the batches and their order alone, not on how they were fetched, and goes on from
/// its value.
///
/// ```
/// use verbatim_mirror::verify::Digest;
///
/// let mut digest = Digest::default();
/// digest.add(b"a batch");
/// assert_eq!(digest.short(), "9547-5718-09a0-e66c");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Goes on with one whole batch.
    pub fn add(&mut self, batch: &[u8]) {
        self.0 = Sha256::new().chain_update(self.0).chain_update(batch).finalize().into();
    }

    /// The first 64 bits as four groups of hexadecimal digits.
    pub fn short(&self) -> String {
        let groups = self.0.chunks(2).take(4);
        let groups = groups.map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        groups.collect::<Vec<_>>().join("-")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, at) in bytes.iter_mut().zip((0_usize..64).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at.saturating_add(2))?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// All 64 hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a digest has 64 hexadecimal digits"))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_from_its_value_and_the_place_of_each_byte_matters() {
        let mut whole = Digest::default();
        whole.add(b"one");
        let saved = serde_json::to_string(&whole).unwrap();
        whole.add(b"two");
        let mut resumed: Digest = serde_json::from_str(&saved).unwrap();
        resumed.add(b"two");
        assert_eq!(whole, resumed);
        let mut other = Digest::default();
        other.add(b"onet");
        other.add(b"wo");
        assert_ne!(whole, other);
        assert!(serde_json::from_str::<Digest>("\"12\"").is_err());
    }
}
