use crate::attributes::Attributes;

/// Bytes before the records: every fixed field of a batch.
pub const HEADER_LEN: usize = 61;
/// Bytes that `batchLength` does not count: the base offset and the length itself.
pub const OVERHEAD_LEN: usize = 12;
/// The smallest `batchLength` that is framed at all (R2a): that of the oldest message format.
pub const MIN_BATCH_LENGTH: i32 = 14;
/// The smallest frame: [`OVERHEAD_LEN`] and [`MIN_BATCH_LENGTH`].
pub const MIN_FRAME_LEN: usize = 26;
/// Bytes up to and including the magic byte, which lies at the same place in every version of the format.
pub const PREFIX_LEN: usize = 17;
/// Where the checksum's range begins; it ends with the batch.
pub const CRC_START: usize = ATTRIBUTES;

pub(crate) const BASE_OFFSET: usize = 0;
pub(crate) const BATCH_LENGTH: usize = 8;
pub(crate) const LEADER_EPOCH: usize = 12;
pub(crate) const MAGIC: usize = 16;
pub(crate) const CRC: usize = 17;
pub(crate) const ATTRIBUTES: usize = 21;
pub(crate) const LAST_OFFSET_DELTA: usize = 23;
pub(crate) const BASE_TIMESTAMP: usize = 27;
pub(crate) const MAX_TIMESTAMP: usize = 35;
pub(crate) const PRODUCER_ID: usize = 43;
pub(crate) const PRODUCER_EPOCH: usize = 51;
pub(crate) const BASE_SEQUENCE: usize = 53;
pub(crate) const RECORD_COUNT: usize = 57;

/// The magic of the only format that is stored: record batch v2.
pub(crate) const MAGIC_V2: i8 = 2;

/// The fields in front of the checksum, which older formats have as well (there, the epoch's place holds their CRC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Bytes after this field.
    pub batch_length: i32,
    /// `partitionLeaderEpoch`: the epoch of the leader that appended the batch.
    pub leader_epoch: i32,
    /// Version of the format; 2 here (R3).
    pub magic: i8,
}

impl Prefix {
    /// Reads the first [`PREFIX_LEN`] bytes; `None` if there are fewer. Nothing is judged.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PREFIX_LEN] = bytes.first_chunk()?;
        Some(Self {
            base_offset: i64::from_be_bytes(field(bytes, BASE_OFFSET)?),
            batch_length: i32::from_be_bytes(field(bytes, BATCH_LENGTH)?),
            leader_epoch: i32::from_be_bytes(field(bytes, LEADER_EPOCH)?),
            magic: i8::from_be_bytes(field(bytes, MAGIC)?),
        })
    }
}

/// Every field of a batch header, decoded and not judged: any 61 bytes give one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Offset of the first record, or of the first record there was before a compaction.
    pub base_offset: i64,
    /// Bytes after this field; see [`Header::total_len`].
    pub batch_length: i32,
    /// `partitionLeaderEpoch`: the epoch of the leader that appended the batch.
    pub leader_epoch: i32,
    /// Version of the format; 2 here (R3).
    pub magic: i8,
    /// CRC-32C of everything from the attributes on.
    pub crc: u32,
    /// Codec, timestamp type and flags.
    pub attributes: Attributes,
    /// Last offset minus base offset; compaction keeps it, so it may lie beyond the last record.
    pub last_offset_delta: i32,
    /// What records' timestamp deltas count from, in ms since 1970; with a delete horizon, that horizon (R18).
    pub base_timestamp: i64,
    /// The largest timestamp, or every record's where the type is LogAppendTime; ms since 1970, -1 for none.
    pub max_timestamp: i64,
    /// The idempotent producer; any negative value is none.
    pub producer_id: i64,
    /// That producer's epoch, -1 for none.
    pub producer_epoch: i16,
    /// Sequence number of the first record, -1 for none.
    pub base_sequence: i32,
    /// Number of records that are left; neither the last offset nor the last sequence follows from it.
    pub record_count: i32,
}

impl Header {
    /// Reads the first [`HEADER_LEN`] bytes; `None` if there are fewer (R2b). Nothing is judged.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_LEN] = bytes.first_chunk()?;
        Some(Self {
            base_offset: i64::from_be_bytes(field(bytes, BASE_OFFSET)?),
            batch_length: i32::from_be_bytes(field(bytes, BATCH_LENGTH)?),
            leader_epoch: i32::from_be_bytes(field(bytes, LEADER_EPOCH)?),
            magic: i8::from_be_bytes(field(bytes, MAGIC)?),
            crc: u32::from_be_bytes(field(bytes, CRC)?),
            attributes: Attributes::from_bits(i16::from_be_bytes(field(bytes, ATTRIBUTES)?)),
            last_offset_delta: i32::from_be_bytes(field(bytes, LAST_OFFSET_DELTA)?),
            base_timestamp: i64::from_be_bytes(field(bytes, BASE_TIMESTAMP)?),
            max_timestamp: i64::from_be_bytes(field(bytes, MAX_TIMESTAMP)?),
            producer_id: i64::from_be_bytes(field(bytes, PRODUCER_ID)?),
            producer_epoch: i16::from_be_bytes(field(bytes, PRODUCER_EPOCH)?),
            base_sequence: i32::from_be_bytes(field(bytes, BASE_SEQUENCE)?),
            record_count: i32::from_be_bytes(field(bytes, RECORD_COUNT)?),
        })
    }

    /// The 61 bytes that [`Header::read`] reads, every field as it stands, checksum and length included.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let mut rest = bytes.as_mut_slice();
        put(&mut rest, &self.base_offset.to_be_bytes());
        put(&mut rest, &self.batch_length.to_be_bytes());
        put(&mut rest, &self.leader_epoch.to_be_bytes());
        put(&mut rest, &self.magic.to_be_bytes());
        put(&mut rest, &self.crc.to_be_bytes());
        put(&mut rest, &self.attributes.bits().to_be_bytes());
        put(&mut rest, &self.last_offset_delta.to_be_bytes());
        put(&mut rest, &self.base_timestamp.to_be_bytes());
        put(&mut rest, &self.max_timestamp.to_be_bytes());
        put(&mut rest, &self.producer_id.to_be_bytes());
        put(&mut rest, &self.producer_epoch.to_be_bytes());
        put(&mut rest, &self.base_sequence.to_be_bytes());
        put(&mut rest, &self.record_count.to_be_bytes());
        bytes
    }

    /// Bytes of the whole batch by its own length field; `None` where that is below [`MIN_BATCH_LENGTH`] (R2a).
    pub fn total_len(&self) -> Option<usize> {
        total_len(self.batch_length)
    }

    /// Offset of the last record there is or was; `None` where that overflows or the delta is negative (R6).
    pub fn last_offset(&self) -> Option<i64> {
        if self.last_offset_delta < 0 {
            return None;
        }
        self.base_offset.checked_add(i64::from(self.last_offset_delta))
    }

    /// The offset after this batch; `None` where that overflows or the delta is negative (R6).
    pub fn next_offset(&self) -> Option<i64> {
        self.last_offset()?.checked_add(1)
    }

    /// Sequence of the last record there is or was; after 2147483647 comes 0. The base sequence itself where that
    /// or the delta is negative, as then there is none.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 || self.last_offset_delta < 0 {
            return self.base_sequence;
        }
        let sum = self.base_sequence.cast_unsigned().wrapping_add(self.last_offset_delta.cast_unsigned());
        (sum & i32::MAX.cast_unsigned()).cast_signed()
    }

    /// Whether an idempotent producer wrote the batch: any negative id means none did.
    pub fn has_producer(&self) -> bool {
        self.producer_id >= 0
    }

    /// The delete horizon in ms since 1970, where the batch has one (R18).
    pub fn delete_horizon(&self) -> Option<i64> {
        self.attributes.has_delete_horizon().then_some(self.base_timestamp)
    }
}

/// Bytes of a whole batch whose length field is `batch_length`; `None` below [`MIN_BATCH_LENGTH`].
pub(crate) fn total_len(batch_length: i32) -> Option<usize> {
    if batch_length < MIN_BATCH_LENGTH {
        return None;
    }
    usize::try_from(batch_length).ok()?.checked_add(OVERHEAD_LEN)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Writes a field at the front of `rest` and moves on; the callers' widths add up to the buffer.
fn put(rest: &mut &mut [u8], field: &[u8]) {
    if let Some((place, after)) = core::mem::take(rest).split_at_mut_checked(field.len()) {
        place.copy_from_slice(field);
        *rest = after;
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(base_offset: i64, last_offset_delta: i32, base_sequence: i32) -> Header {
        let mut header = Header::read(&[0; HEADER_LEN]).expect("61 bytes are a header");
        header.base_offset = base_offset;
        header.last_offset_delta = last_offset_delta;
        header.base_sequence = base_sequence;
        header
    }

    #[test]
    fn offsets_never_wrap() {
        assert_eq!(header(100, 9, 0).last_offset(), Some(109));
        assert_eq!(header(100, 9, 0).next_offset(), Some(110));
        assert_eq!(header(i64::MAX - 1, 0, 0).next_offset(), Some(i64::MAX));
        assert_eq!(header(i64::MAX, 0, 0).last_offset(), Some(i64::MAX));
        assert_eq!(header(i64::MAX, 0, 0).next_offset(), None);
        assert_eq!(header(i64::MAX, 1, 0).last_offset(), None);
        assert_eq!(header(5, -1, 0).last_offset(), None);
    }

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(header(0, 4, 10).last_sequence(), 14);
        assert_eq!(header(0, 0, i32::MAX).last_sequence(), i32::MAX);
        assert_eq!(header(0, 1, i32::MAX).last_sequence(), 0);
        assert_eq!(header(0, i32::MAX, i32::MAX).last_sequence(), i32::MAX - 1);
        assert_eq!(header(0, 5, -1).last_sequence(), -1);
        assert_eq!(header(0, -5, 3).last_sequence(), 3);
    }

    #[test]
    fn lengths_below_the_smallest_are_none() {
        assert_eq!(total_len(13), None);
        assert_eq!(total_len(14), Some(MIN_FRAME_LEN));
        assert_eq!(total_len(49), Some(HEADER_LEN));
        assert_eq!(total_len(i32::MIN), None);
        assert_eq!(total_len(i32::MAX), Some(2_147_483_659));
    }

    proptest! {
        #[test]
        fn any_61_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), HEADER_LEN)) {
            let header = Header::read(&bytes).expect("61 bytes are a header");
            prop_assert_eq!(&header.to_bytes()[..], &bytes[..]);
            let prefix = Prefix::read(&bytes).expect("61 bytes hold a prefix");
            prop_assert_eq!(prefix.base_offset, header.base_offset);
            prop_assert_eq!(prefix.batch_length, header.batch_length);
            prop_assert_eq!(prefix.leader_epoch, header.leader_epoch);
            prop_assert_eq!(prefix.magic, header.magic);
            prop_assert_eq!(Header::read(&bytes[..HEADER_LEN - 1]), None);
            prop_assert_eq!(Prefix::read(&bytes[..PREFIX_LEN - 1]), None);
        }
    }
}
