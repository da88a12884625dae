use bytes::{Buf, Bytes};
use lz4_flex::block::decompress_into;
use twox_hash::XxHash32;

use crate::error::Fault;

const MAGIC: u32 = 0x184D_2204;
const FLAG_CONTENT_CHECKSUM: u8 = 0x04;
const FLAG_CONTENT_SIZE: u8 = 0x08;
const FLAG_BLOCK_CHECKSUM: u8 = 0x10;
/// Version 01, independent blocks, and neither of the two low bits (a dictionary, reserved).
const FLAGS_FIXED: (u8, u8) = (0b1110_0011, 0b0110_0000);
const BLOCK_NOT_COMPRESSED: u32 = 0x8000_0000;
/// One byte of a block makes at most this many, but for a few at its start and end.
const EXPANSION: usize = 255;
const EXPANSION_SLACK_BYTES: usize = 64;

/// One frame of independent blocks, block by block. The library's own reader takes a frame without its end for a whole
/// one, so the framing is read here and only the blocks are the library's.
pub(crate) struct Lz4 {
    rest: Bytes,
    block_max_bytes: usize,
    has_block_checksums: bool,
    has_content_checksum: bool,
    block: Vec<u8>,
    given_out: usize,
    ended: bool,
}

impl Lz4 {
    pub(crate) fn new(mut rest: Bytes) -> Result<Self, Fault> {
        if take_u32(&mut rest)? != MAGIC {
            return Err(Fault::corrupt("it does not begin with an lz4 frame"));
        }
        let at_descriptor = rest.clone();
        let (flags, sizes) = (take_u8(&mut rest)?, take_u8(&mut rest)?);
        if flags & FLAGS_FIXED.0 != FLAGS_FIXED.1 {
            return Err(Fault::corrupt(format!("unsupported frame, flags=`{flags:#04x}`")));
        }
        let block_max_bytes = block_max_bytes(sizes)?;
        if flags & FLAG_CONTENT_SIZE != 0 {
            rest.try_get_u64_le().map_err(|_| Fault::ended())?;
        }
        let descriptor_len = at_descriptor.len().saturating_sub(rest.len());
        let [_, check, ..] = hash(at_descriptor.get(..descriptor_len).unwrap_or_default()).to_le_bytes();
        if take_u8(&mut rest)? != check {
            return Err(Fault::corrupt("wrong checksum of the frame's descriptor"));
        }
        Ok(Self {
            rest,
            block_max_bytes,
            has_block_checksums: flags & FLAG_BLOCK_CHECKSUM != 0,
            has_content_checksum: flags & FLAG_CONTENT_CHECKSUM != 0,
            block: Vec::new(),
            given_out: 0,
            ended: false,
        })
    }

    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        while self.given_out == self.block.len() {
            if self.ended {
                return Ok(0);
            }
            self.next_block()?;
        }
        let left = self.block.get(self.given_out..).unwrap_or_default();
        let len = left.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..len), left.get(..len)) {
            to.copy_from_slice(from);
        }
        self.given_out = self.given_out.saturating_add(len);
        Ok(len)
    }

    fn next_block(&mut self) -> Result<(), Fault> {
        self.block.clear();
        self.given_out = 0;
        let size = take_u32(&mut self.rest)?;
        let len = usize::try_from(size & !BLOCK_NOT_COMPRESSED).map_err(Fault::corrupt)?;
        if len == 0 {
            self.ended = true;
            if self.has_content_checksum {
                take_u32(&mut self.rest)?;
            }
            return Ok(());
        }
        if len > self.block_max_bytes {
            let max = self.block_max_bytes;
            return Err(Fault::corrupt(format!(
                "block is larger than its frame's {max} bytes, length=`{len}`"
            )));
        }
        if len > self.rest.len() {
            return Err(Fault::ended());
        }
        let data = self.rest.split_to(len);
        if self.has_block_checksums && take_u32(&mut self.rest)? != hash(&data) {
            return Err(Fault::corrupt("wrong checksum of a block"));
        }
        if size & BLOCK_NOT_COMPRESSED != 0 {
            self.block.extend_from_slice(&data);
            return Ok(());
        }
        let room = len.saturating_mul(EXPANSION).saturating_add(EXPANSION_SLACK_BYTES);
        self.block.resize(room.min(self.block_max_bytes), 0);
        let inflated = decompress_into(&data, &mut self.block).map_err(Fault::corrupt)?;
        self.block.truncate(inflated);
        Ok(())
    }
}

/// The descriptor's second byte: a size code from 4 to 7 in bits 4 to 6, nothing else.
fn block_max_bytes(sizes: u8) -> Result<usize, Fault> {
    match sizes {
        0x40 => Ok(64 << 10),
        0x50 => Ok(256 << 10),
        0x60 => Ok(1 << 20),
        0x70 => Ok(4 << 20),
        other => Err(Fault::corrupt(format!("unsupported block size, code=`{other:#04x}`"))),
    }
}

fn hash(bytes: &[u8]) -> u32 {
    XxHash32::oneshot(0, bytes)
}

fn take_u8(rest: &mut Bytes) -> Result<u8, Fault> {
    rest.try_get_u8().map_err(|_| Fault::ended())
}

fn take_u32(rest: &mut Bytes) -> Result<u32, Fault> {
    rest.try_get_u32_le().map_err(|_| Fault::ended())
}
