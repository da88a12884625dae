use core::fmt;

/// What a control record's key says (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControlKey {
    /// Version of the key; 0 so far. A later one begins with the same two fields.
    pub version: i16,
    /// What the record does.
    pub kind: ControlType,
}

/// What a control record does (R38, R39).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlType {
    /// 0: ends the producer's open transaction, whose records are not to be read.
    Abort,
    /// 1: ends the producer's open transaction, whose records are to be read.
    Commit,
    /// Any other number: stored, without effect.
    Other(i16),
}

/// A control record's key is null or too short (R8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlKeyError {
    /// Its bytes; 0 where it is null.
    pub len: usize,
}

impl ControlKey {
    /// Bytes a control key has at least.
    pub const LEN: usize = 4;

    /// Reads a key; bytes after the first four belong to later versions and are ignored.
    ///
    /// # Errors
    /// There are fewer than four bytes (R8).
    pub fn parse(key: &[u8]) -> Result<Self, ControlKeyError> {
        let &[v0, v1, t0, t1] = key.first_chunk().ok_or(ControlKeyError { len: key.len() })?;
        let kind = ControlType::from_number(i16::from_be_bytes([t0, t1]));
        Ok(Self { version: i16::from_be_bytes([v0, v1]), kind })
    }
}

impl ControlType {
    /// From its number in a key.
    pub const fn from_number(number: i16) -> Self {
        match number {
            0 => Self::Abort,
            1 => Self::Commit,
            other => Self::Other(other),
        }
    }

    /// Its number in a key.
    pub const fn number(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
            Self::Other(number) => number,
        }
    }
}

/// The key, version 0, of a control record.
pub fn marker_key(kind: ControlType) -> [u8; ControlKey::LEN] {
    let [t0, t1] = kind.number().to_be_bytes();
    [0, 0, t0, t1]
}

/// The value, version 0, of a transaction marker: the epoch of the coordinator that wrote it.
pub fn marker_value(coordinator_epoch: i32) -> [u8; 6] {
    let [e0, e1, e2, e3] = coordinator_epoch.to_be_bytes();
    [0, 0, e0, e1, e2, e3]
}

impl fmt::Display for ControlKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "control record's key has fewer than {} bytes, length=`{}`", ControlKey::LEN, self.len)
    }
}

impl core::error::Error for ControlKeyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_number_comes_back() {
        for number in i16::MIN..=i16::MAX {
            let kind = ControlType::from_number(number);
            assert_eq!(kind.number(), number);
            assert_eq!(ControlKey::parse(&marker_key(kind)), Ok(ControlKey { version: 0, kind }));
        }
    }

    #[test]
    fn a_key_is_read_from_its_first_four_bytes() {
        assert_eq!(ControlKey::parse(&[]), Err(ControlKeyError { len: 0 }));
        assert_eq!(ControlKey::parse(&[0, 0, 0]), Err(ControlKeyError { len: 3 }));
        let later = ControlKey { version: 3, kind: ControlType::Commit };
        assert_eq!(ControlKey::parse(&[0, 3, 0, 1, 99]), Ok(later));
        assert_eq!(marker_value(0x0102_0304), [0, 0, 1, 2, 3, 4]);
    }
}
