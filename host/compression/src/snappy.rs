use bytes::{Buf, Bytes};
use snap::raw::{Decoder, decompress_len};

use crate::error::Fault;

/// What Java's framing begins with: magic, version 1, readable from version 1 on.
pub(crate) const STREAM_HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
const MAGIC: &[u8] = b"\x82SNAPPY\0";
/// A block length that says: not a block, another stream's header.
const MAGIC_HEAD: [u8; 4] = *b"\x82SNA";

/// Three bytes (a copy with a two-byte offset) make at most 64; nothing in the format makes more of fewer.
const EXPANSION: (usize, usize) = (64, 3);

/// Java's framing, block by block, or else one raw block, which is what librdkafka writes.
pub(crate) struct Snappy {
    /// What follows the current block; only blocks and headers.
    rest: Bytes,
    block: Bytes,
    limit_left: usize,
}

impl Snappy {
    pub(crate) fn new(payload: Bytes, limit_bytes: usize) -> Result<Self, Fault> {
        let mut snappy = Self { rest: payload, block: Bytes::new(), limit_left: limit_bytes };
        if !snappy.take_stream_header() {
            if snappy.rest.is_empty() {
                return Err(Fault::ended());
            }
            let whole = std::mem::take(&mut snappy.rest);
            snappy.inflate_block(&whole)?;
        }
        Ok(snappy)
    }

    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        while self.block.is_empty() {
            if !self.next_block()? {
                return Ok(0);
            }
        }
        let len = self.block.len().min(out.len());
        self.block.split_to(len).copy_to_slice(out.get_mut(..len).unwrap_or_default());
        Ok(len)
    }

    /// Whether a header was there; if so it is behind us. Its versions are not looked at, as Java does not.
    fn take_stream_header(&mut self) -> bool {
        let is_there = self.rest.len() >= STREAM_HEADER.len() && self.rest.starts_with(MAGIC);
        if is_there {
            self.rest.advance(STREAM_HEADER.len());
        }
        is_there
    }

    /// Inflates the next block; false at the end.
    fn next_block(&mut self) -> Result<bool, Fault> {
        loop {
            let Some(length) = self.rest.first_chunk().copied() else { return Ok(false) };
            if length == MAGIC_HEAD {
                if self.rest.len() < STREAM_HEADER.len() {
                    return Err(Fault::ended());
                }
                if !self.take_stream_header() {
                    return Ok(false);
                }
                continue;
            }
            self.rest.advance(length.len());
            let length = i32::from_be_bytes(length);
            let len = usize::try_from(length)
                .map_err(|_| Fault::corrupt(format!("negative, block length=`{length}`")))?;
            if len > self.rest.len() {
                return Err(Fault::ended());
            }
            let block = self.rest.split_to(len);
            self.inflate_block(&block)?;
            return Ok(true);
        }
    }

    fn inflate_block(&mut self, packed: &[u8]) -> Result<(), Fault> {
        let declared = decompress_len(packed).map_err(Fault::corrupt)?;
        self.limit_left = self.limit_left.checked_sub(declared).ok_or(Fault::TooLarge)?;
        let (numerator, denominator) = EXPANSION;
        if declared > packed.len().saturating_mul(numerator) / denominator {
            return Err(Fault::corrupt(format!(
                "{} bytes cannot hold what is declared, length=`{declared}`",
                packed.len()
            )));
        }
        let mut block = Vec::new();
        block.try_reserve_exact(declared).map_err(|_| Fault::TooLarge)?;
        block.resize(declared, 0);
        let inflated = Decoder::new().decompress(packed, &mut block).map_err(Fault::corrupt)?;
        block.truncate(inflated);
        self.block = Bytes::from(block);
        Ok(())
    }
}
