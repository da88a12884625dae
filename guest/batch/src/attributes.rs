use core::fmt;

const CODEC_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
const DELETE_HORIZON: i16 = 0x40;

/// A batch's attribute bits. Bits without a meaning (7 to 15) are kept as they came (R11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(i16);

impl Attributes {
    /// From the raw bits; all of them are kept.
    pub const fn from_bits(bits: i16) -> Self {
        Self(bits)
    }

    /// All sixteen bits.
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// How the records are compressed (bits 0 to 2).
    ///
    /// # Errors
    /// The codec's number where it is 5, 6 or 7 (R5).
    pub const fn codec(self) -> Result<Codec, u8> {
        match self.0 & CODEC_MASK {
            0 => Ok(Codec::None),
            1 => Ok(Codec::Gzip),
            2 => Ok(Codec::Snappy),
            3 => Ok(Codec::Lz4),
            4 => Ok(Codec::Zstd),
            5 => Err(5),
            6 => Err(6),
            _ => Err(7),
        }
    }

    /// Whose clock the timestamps come from (bit 3).
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & LOG_APPEND_TIME != 0 { TimestampType::LogAppendTime } else { TimestampType::CreateTime }
    }

    /// Bit 4: the records belong to a transaction.
    pub const fn is_transactional(self) -> bool {
        self.0 & TRANSACTIONAL != 0
    }

    /// Bit 5: the records are control records, not a client's.
    pub const fn is_control(self) -> bool {
        self.0 & CONTROL != 0
    }

    /// Bit 6: the base timestamp is the delete horizon, set by a compaction (R18).
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & DELETE_HORIZON != 0
    }

    /// The same with another codec.
    #[must_use]
    pub const fn with_codec(self, codec: Codec) -> Self {
        Self((self.0 & !CODEC_MASK) | codec.bits())
    }

    /// The same with another timestamp type.
    #[must_use]
    pub const fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        self.with(LOG_APPEND_TIME, matches!(timestamp_type, TimestampType::LogAppendTime))
    }

    /// The same with bit 4 as given.
    #[must_use]
    pub const fn with_transactional(self, on: bool) -> Self {
        self.with(TRANSACTIONAL, on)
    }

    /// The same with bit 5 as given.
    #[must_use]
    pub const fn with_control(self, on: bool) -> Self {
        self.with(CONTROL, on)
    }

    /// The same with bit 6 as given.
    #[must_use]
    pub const fn with_delete_horizon(self, on: bool) -> Self {
        self.with(DELETE_HORIZON, on)
    }

    const fn with(self, bit: i16, on: bool) -> Self {
        if on { Self(self.0 | bit) } else { Self(self.0 & !bit) }
    }
}

/// How a batch's records are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Codec {
    /// 0: plain records.
    #[default]
    None,
    /// 1: gzip.
    Gzip,
    /// 2: snappy.
    Snappy,
    /// 3: LZ4 frames.
    Lz4,
    /// 4: Zstandard frames (KIP-110).
    Zstd,
}

impl Codec {
    /// Every codec, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// Its value in attribute bits 0 to 2.
    pub const fn bits(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Its name as Kafka's `compression.type` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose clock a batch's timestamps come from (KIP-32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// Each record carries its creator's time.
    #[default]
    CreateTime,
    /// Every record reads as the batch's maxTimestamp, which the log set on appending.
    LogAppendTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_pattern_is_kept_and_decoded() {
        for bits in i16::MIN..=i16::MAX {
            let attributes = Attributes::from_bits(bits);
            assert_eq!(attributes.bits(), bits);
            match attributes.codec() {
                Ok(codec) => assert_eq!(codec.bits(), bits & 7),
                Err(number) => assert!(number > 4 && i16::from(number) == bits & 7),
            }
            assert_eq!(attributes.timestamp_type() == TimestampType::LogAppendTime, bits & 8 != 0);
            assert_eq!(attributes.is_transactional(), bits & 16 != 0);
            assert_eq!(attributes.is_control(), bits & 32 != 0);
            assert_eq!(attributes.has_delete_horizon(), bits & 64 != 0);
        }
    }

    #[test]
    fn setters_touch_their_bits_only() {
        for bits in [0, -1, 0x55, 0x2a] {
            let before = Attributes::from_bits(bits);
            for codec in Codec::ALL {
                assert_eq!(before.with_codec(codec).codec(), Ok(codec));
                assert_eq!(before.with_codec(codec).bits() & !7, bits & !7);
            }
            for on in [false, true] {
                let time = if on { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
                assert_eq!(before.with_timestamp_type(time).bits(), if on { bits | 8 } else { bits & !8 });
                assert_eq!(before.with_transactional(on).bits(), if on { bits | 16 } else { bits & !16 });
                assert_eq!(before.with_control(on).bits(), if on { bits | 32 } else { bits & !32 });
                assert_eq!(before.with_delete_horizon(on).bits(), if on { bits | 64 } else { bits & !64 });
            }
        }
    }
}
