//! Zigzag variable-length integers: seven bits a byte, the lowest first, the top bit set on all bytes but the last.
//!
//! Padding (a needlessly long form) is accepted as Kafka accepts it; more bytes than the width needs (5 or 10) and bits
//! beyond the width are not.

use alloc::vec::Vec;

const INT_BYTES_MAX: u32 = 5;
const LONG_BYTES_MAX: u32 = 10;

/// A varint being read byte by byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder {
    value: u64,
    bytes: u32,
    width: Width,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Int,
    Long,
}

/// What a byte did to a [`Decoder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    Done(i64),
    Invalid,
}

impl Decoder {
    pub(crate) fn new(width: Width) -> Self {
        Self { value: 0, bytes: 0, width }
    }

    /// Whether no byte was read yet.
    pub(crate) fn is_new(&self) -> bool {
        self.bytes == 0
    }

    pub(crate) fn push(&mut self, byte: u8) -> Step {
        let (bytes_max, last_max) = match self.width {
            Width::Int => (INT_BYTES_MAX, 0x0F),
            Width::Long => (LONG_BYTES_MAX, 0x01),
        };
        let shift = self.bytes.saturating_mul(7);
        self.bytes = self.bytes.saturating_add(1);
        if self.bytes > bytes_max || (self.bytes == bytes_max && byte > last_max) {
            return Step::Invalid;
        }
        self.value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 != 0 { Step::More } else { Step::Done(unzigzag(self.value)) }
    }
}

/// The value of a varint that is this one byte, which is less than 0x80.
pub(crate) fn of_byte(byte: u8) -> i64 {
    unzigzag(u64::from(byte))
}

/// Appends the shortest form.
pub(crate) fn write(out: &mut Vec<u8>, value: i64) {
    let mut left = zigzag(value);
    while left > 0x7F {
        let [low, ..] = left.to_le_bytes();
        out.push(low | 0x80);
        left >>= 7;
    }
    let [low, ..] = left.to_le_bytes();
    out.push(low);
}

/// How many bytes [`write`] appends.
pub(crate) fn len(value: i64) -> usize {
    // At least one bit, for 0 takes a byte too.
    let bits = u64::BITS.saturating_sub((zigzag(value) | 1).leading_zeros());
    usize::try_from(bits.div_ceil(7)).unwrap_or(usize::MAX)
}

fn zigzag(value: i64) -> u64 {
    (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(bytes: &[u8], width: Width) -> Step {
        let mut decoder = Decoder::new(width);
        let mut last = Step::More;
        for byte in bytes {
            last = decoder.push(*byte);
            if last == Step::Invalid {
                break;
            }
        }
        last
    }

    #[test]
    fn known_forms() {
        for (value, bytes) in [
            (0, &[0_u8][..]),
            (-1, &[1]),
            (1, &[2]),
            (63, &[0x7E]),
            (-64, &[0x7F]),
            (64, &[0x80, 1]),
            (i64::from(i32::MAX), &[0xFE, 0xFF, 0xFF, 0xFF, 0x0F]),
            (i64::from(i32::MIN), &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]),
        ] {
            let mut out = Vec::new();
            write(&mut out, value);
            assert_eq!((out.as_slice(), len(value)), (bytes, bytes.len()));
            assert_eq!(decode(bytes, Width::Int), Step::Done(value));
            assert_eq!(decode(bytes, Width::Long), Step::Done(value));
        }
        for value in [i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            write(&mut out, value);
            assert_eq!(out.len(), 10);
            assert_eq!(decode(&out, Width::Long), Step::Done(value));
        }
    }

    #[test]
    fn padding_is_read_and_excess_is_not() {
        assert_eq!(decode(&[0x82, 0x80, 0x80, 0x80, 0x00], Width::Int), Step::Done(1));
        assert_eq!(decode(&[0x82, 0x80, 0x80, 0x80, 0x80, 0x00], Width::Int), Step::Invalid);
        assert_eq!(decode(&[0x80, 0x80, 0x80, 0x80, 0x10], Width::Int), Step::Invalid);
        assert_eq!(decode(&[0x80; 9], Width::Long), Step::More);
        assert_eq!(decode(&[0x80; 10], Width::Long), Step::Invalid);
        assert_eq!(
            decode(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02], Width::Long),
            Step::Invalid
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in any::<i64>()) {
            let mut out = Vec::new();
            write(&mut out, value);
            prop_assert_eq!(len(value), out.len());
            prop_assert_eq!(decode(&out, Width::Long), Step::Done(value));
            let fits = i32::try_from(value).is_ok();
            prop_assert_eq!(decode(&out, Width::Int) == Step::Done(value), fits);
        }
    }
}
