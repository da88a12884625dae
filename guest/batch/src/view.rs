use core::fmt;

use crate::attributes::Codec;
use crate::checksum::crc32c;
use crate::header::{CRC_START, HEADER_LEN, Header, MAGIC_V2, Prefix, total_len};
use crate::record::Records;

/// A whole batch whose length, magic, header and checksum are right (R2 to R4). What its fields mean is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    bytes: &'a [u8],
    header: Header,
}

impl<'a> Batch<'a> {
    /// Checks exactly one batch, from its first byte to its last.
    ///
    /// # Errors
    /// The first of these that is broken: length (R2a), magic (R3), header length (R2b), checksum (R4).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let available = bytes.len();
        let prefix = Prefix::read(bytes).ok_or(BatchError::ShortHeader { available })?;
        if total_len(prefix.batch_length) != Some(available) {
            return Err(BatchError::Length { value: prefix.batch_length, available });
        }
        if prefix.magic != MAGIC_V2 {
            return Err(BatchError::Magic { value: prefix.magic });
        }
        let header = Header::read(bytes).ok_or(BatchError::ShortHeader { available })?;
        let computed = compute_crc(bytes).ok_or(BatchError::ShortHeader { available })?;
        if computed != header.crc {
            return Err(BatchError::Crc { stored: header.crc, computed });
        }
        Ok(Self { bytes, header })
    }

    /// The batch as it came.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its fields.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Everything after the header: the records, compressed as the codec says.
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(HEADER_LEN..).unwrap_or_default()
    }

    /// A walk over the records where they are not compressed; else `None`: inflate [`Batch::payload`] first.
    pub fn plain_records(&self) -> Option<Records<'a>> {
        (self.header.attributes.codec() == Ok(Codec::None))
            .then(|| Records::new(self.payload(), self.header.record_count))
    }
}

/// Why bytes are not a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchError {
    /// R2a, or the bytes are not exactly one batch.
    Length {
        /// The batch's `batchLength`.
        value: i32,
        /// Bytes given.
        available: usize,
    },
    /// R3.
    Magic {
        /// The magic found.
        value: i8,
    },
    /// R2b.
    ShortHeader {
        /// Bytes given.
        available: usize,
    },
    /// R4.
    Crc {
        /// The batch's own.
        stored: u32,
        /// That of its bytes.
        computed: u32,
    },
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { value, available } => {
                write!(f, "batch length does not fit its {available} bytes, batchLength=`{value}`")
            }
            Self::Magic { value } => write!(f, "batch format is not version 2, magic=`{value}`"),
            Self::ShortHeader { available } => {
                write!(f, "batch is shorter than its header of {HEADER_LEN} bytes, length=`{available}`")
            }
            Self::Crc { stored, computed } => {
                write!(f, "batch checksum is wrong, expected {computed:08x}, crc=`{stored:08x}`")
            }
        }
    }
}

impl core::error::Error for BatchError {}

/// The checksum that a batch of these bytes must carry; `None` where they end before its range begins.
pub fn compute_crc(bytes: &[u8]) -> Option<u32> {
    bytes.get(CRC_START..).map(crc32c)
}

/// Whether a batch with a whole header carries its right checksum (R4).
pub fn crc_matches(bytes: &[u8]) -> bool {
    Header::read(bytes).is_some_and(|header| compute_crc(bytes) == Some(header.crc))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use crate::builder::{BatchBuilder, NewRecord};
    use crate::patch::reseal;

    #[test]
    fn the_first_broken_check_is_named() {
        let good = BatchBuilder::new(3).record(NewRecord::new(0, 1)).build().unwrap();
        let (len, value) = (good.len(), i32::from(good[11]));
        let parse_changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            Batch::parse(&bytes).map(|batch| *batch.header()).unwrap_err()
        };
        assert_eq!(parse_changed(11, 13), BatchError::Length { value: 13, available: len });
        assert_eq!(parse_changed(16, 1), BatchError::Magic { value: 1 });
        assert!(matches!(parse_changed(22, 1), BatchError::Crc { .. }));
        assert_eq!(Batch::parse(&good[..len - 1]), Err(BatchError::Length { value, available: len - 1 }));
        assert_eq!(
            Batch::parse(&[&good[..], &[0]].concat()),
            Err(BatchError::Length { value, available: len + 1 })
        );
        assert_eq!(Batch::parse(&good[..16]), Err(BatchError::ShortHeader { available: 16 }));
        let mut short = good[..60].to_vec();
        short[11] = 48;
        assert_eq!(Batch::parse(&short), Err(BatchError::ShortHeader { available: 60 }));
        short[16] = 0;
        assert_eq!(Batch::parse(&short), Err(BatchError::Magic { value: 0 }));
    }

    #[test]
    fn plain_records_are_offered_for_codec_none_only() {
        let mut bytes = BatchBuilder::new(3).record(NewRecord::new(0, 1)).build().unwrap();
        for bits in 0..8 {
            bytes[22] = bits;
            reseal(&mut bytes).unwrap();
            assert_eq!(Batch::parse(&bytes).unwrap().plain_records().is_some(), bits == 0);
        }
    }
}
