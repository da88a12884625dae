/// CRC-32C (Castagnoli) of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

/// CRC-32C of bytes whose first part has the checksum `crc`, `bytes` being the rest.
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(feature = "std")]
    return ::crc32c::crc32c_append(crc, bytes);
    #[cfg(not(feature = "std"))]
    return software::crc32c_append(crc, bytes);
}

/// One table of 1 KiB: inside a module a checksum is rare, as the host hands over its verdict.
#[cfg(any(test, not(feature = "std")))]
mod software {
    const REVERSED_POLYNOMIAL: u32 = 0x82F6_3B78;

    static TABLE: [u32; 256] = table();

    pub(super) fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!crc, |state, byte| {
            let [low, ..] = state.to_le_bytes();
            TABLE.get(usize::from(low ^ byte)).copied().unwrap_or(0) ^ (state >> 8)
        })
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "evaluated while compiling, where a wrong index is a compile error"
    )]
    const fn table() -> [u32; 256] {
        let mut table = [0; 256];
        let mut index = 0;
        let mut value: u32 = 0;
        while index < table.len() {
            let mut state = value;
            let mut bit = 0;
            while bit < 8 {
                state = if state & 1 == 1 { (state >> 1) ^ REVERSED_POLYNOMIAL } else { state >> 1 };
                bit += 1;
            }
            table[index] = state;
            index += 1;
            value += 1;
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        // RFC 3720, appendix B.4.
        for compute in [crc32c_append, software::crc32c_append] {
            assert_eq!(compute(0, b""), 0);
            assert_eq!(compute(0, b"123456789"), 0xE306_9283);
            assert_eq!(compute(0, &[0; 32]), 0x8A91_36AA);
            assert_eq!(compute(0, &[0xFF; 32]), 0x62A8_AB43);
        }
    }

    proptest! {
        #[test]
        fn table_and_hardware_agree(
            bytes in proptest::collection::vec(any::<u8>(), 0..2000),
            cut in any::<prop::sample::Index>(),
        ) {
            let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
            let whole = crc32c(&bytes);
            prop_assert_eq!(software::crc32c_append(0, &bytes), whole);
            prop_assert_eq!(crc32c_append(crc32c(first), second), whole);
            prop_assert_eq!(software::crc32c_append(software::crc32c_append(0, first), second), whole);
        }
    }
}
