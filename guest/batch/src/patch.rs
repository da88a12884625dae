use core::fmt;

use crate::attributes::TimestampType;
use crate::header::{ATTRIBUTES, BASE_OFFSET, CRC, HEADER_LEN, Header, LEADER_EPOCH, MAX_TIMESTAMP};
use crate::view::compute_crc;

/// The bytes are too few for the fields that were to be changed; nothing was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchError {
    /// Bytes given.
    pub len: usize,
}

/// Gives a batch its place in a log: base offset and leader epoch, which lie outside the checksum.
///
/// # Errors
/// There are fewer than 61 bytes.
pub fn place(batch: &mut [u8], base_offset: i64, leader_epoch: i32) -> Result<(), PatchError> {
    let header = header_of(batch)?;
    set(header, BASE_OFFSET, base_offset.to_be_bytes());
    set(header, LEADER_EPOCH, leader_epoch.to_be_bytes());
    Ok(())
}

/// Sets timestamp type and `maxTimestamp` (R16), and the checksum anew where one of them changed; tells whether so.
///
/// # Errors
/// There are fewer than 61 bytes.
pub fn restamp(batch: &mut [u8], max_timestamp: i64, log_append_time: bool) -> Result<bool, PatchError> {
    let error = PatchError { len: batch.len() };
    let before = Header::read(batch).ok_or(error)?;
    let timestamp_type =
        if log_append_time { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
    let attributes = before.attributes.with_timestamp_type(timestamp_type);
    if attributes == before.attributes && max_timestamp == before.max_timestamp {
        return Ok(false);
    }
    let header = header_of(batch)?;
    set(header, ATTRIBUTES, attributes.bits().to_be_bytes());
    set(header, MAX_TIMESTAMP, max_timestamp.to_be_bytes());
    reseal(batch)?;
    Ok(true)
}

/// Sets the checksum to that of the bytes as they are.
///
/// # Errors
/// There are fewer than 61 bytes.
pub fn reseal(batch: &mut [u8]) -> Result<(), PatchError> {
    let error = PatchError { len: batch.len() };
    let crc = compute_crc(batch).ok_or(error)?;
    set(header_of(batch)?, CRC, crc.to_be_bytes());
    Ok(())
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch is shorter than its header of {HEADER_LEN} bytes, length=`{}`", self.len)
    }
}

impl core::error::Error for PatchError {}

fn header_of(batch: &mut [u8]) -> Result<&mut [u8; HEADER_LEN], PatchError> {
    let len = batch.len();
    batch.first_chunk_mut().ok_or(PatchError { len })
}

fn set<const N: usize>(header: &mut [u8; HEADER_LEN], at: usize, value: [u8; N]) {
    if let Some(place) = header.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = value;
    }
}
