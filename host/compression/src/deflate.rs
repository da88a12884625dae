use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use snap::raw::Encoder;
use verbatim_batch::Codec;

use crate::snappy::STREAM_HEADER;

const SNAPPY_BLOCK_BYTES: usize = 32 << 10;
/// Kafka's default levels.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// The library of a codec failed, which it does for want of memory.
#[derive(Debug, thiserror::Error)]
#[error("cannot compress {len} bytes with {codec}: {source}")]
pub struct DeflateError {
    codec: Codec,
    len: usize,
    source: io::Error,
}

/// Compresses plain records as Kafka's Java client does by default; with [`Codec::None`] they stay as they are.
///
/// # Errors
/// The codec's library failed.
pub fn deflate(codec: Codec, plain: &[u8]) -> Result<Vec<u8>, DeflateError> {
    let packed = match codec {
        Codec::None => Ok(plain.to_vec()),
        Codec::Gzip => gzip(plain),
        Codec::Snappy => snappy(plain),
        Codec::Lz4 => lz4(plain),
        Codec::Zstd => zstd::bulk::compress(plain, ZSTD_LEVEL),
    };
    packed.map_err(|source| DeflateError { codec, len: plain.len(), source })
}

fn gzip(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    encoder.write_all(plain)?;
    encoder.finish()
}

fn snappy(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = STREAM_HEADER.to_vec();
    let mut encoder = Encoder::new();
    for block in plain.chunks(SNAPPY_BLOCK_BYTES) {
        let block = encoder.compress_vec(block)?;
        let len = i32::try_from(block.len()).map_err(io::Error::other)?;
        packed.extend_from_slice(&len.to_be_bytes());
        packed.extend_from_slice(&block);
    }
    Ok(packed)
}

fn lz4(plain: &[u8]) -> io::Result<Vec<u8>> {
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(plain)?;
    Ok(encoder.finish()?)
}
