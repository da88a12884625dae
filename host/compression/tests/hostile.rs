//! Payloads that inflate to, or merely declare, far more than the limit: refused, with little memory taken.
//!
//! One test in a program of its own, because it watches the memory of the whole process.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::fs;
use std::io::{Read, Write};

use bytes::Bytes;
use verbatim_batch::{Attributes, Codec};
use verbatim_compression::{DEFAULT_LIMIT_BYTES, InflateError, Inflater, deflate, inflate};

const GIB: usize = 1 << 30;
const MIB: usize = 1 << 20;
/// Room for what is not ours: the test harness, the allocator's slack.
const SLACK: usize = 4 * MIB;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    TooLarge,
    Corrupt,
}
use Verdict::{Corrupt, TooLarge};

#[test]
fn hostile_payloads_cost_little_memory() {
    // Above 32 MiB an allocation is always given back at once, so that it cannot hide what is taken later.
    let (_, seen) = watched(|| {
        std::hint::black_box(vec![1_u8; 48 * MIB]);
        Err(InflateError::Corrupt { codec: Codec::None, reason: "the watch sees 48 MiB".into() })
    });
    assert!(seen > 48 * MIB - SLACK, "the memory cannot be watched here: {} KiB seen", seen >> 10);
    for (name, codec, payload, expected) in declared() {
        assert!(payload.len() <= 200, "{name}");
        check(name, codec, payload, expected, SLACK, SLACK);
    }
    for (name, codec, payload, streamed_max) in bombs() {
        let whole_max = DEFAULT_LIMIT_BYTES + streamed_max + SLACK;
        check(name, codec, payload, TooLarge, streamed_max + SLACK, whole_max);
    }
}

fn check(name: &str, codec: Codec, payload: Bytes, expected: Verdict, streamed_max: usize, whole_max: usize) {
    let attributes = Attributes::default().with_codec(codec);
    let (error, grown) = watched(|| {
        let mut inflater = Inflater::new(attributes, payload.clone(), DEFAULT_LIMIT_BYTES)?;
        while !inflater.next_piece(64 << 10)?.is_empty() {}
        Ok(())
    });
    assert_eq!(error, expected, "{name}, in pieces");
    assert!(grown <= streamed_max, "{name}, in pieces: {} KiB of memory", grown >> 10);
    let (error, grown) = watched(|| inflate(attributes, payload, DEFAULT_LIMIT_BYTES).map(drop));
    assert_eq!(error, expected, "{name}, at once");
    assert!(grown <= whole_max, "{name}, at once: {} KiB of memory", grown >> 10);
}

/// How the work was refused, and by how much the process's resident memory was larger at its peak than before.
fn watched(work: impl FnOnce() -> Result<(), InflateError>) -> (Verdict, usize) {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak_resident_bytes();
    let verdict = match work().unwrap_err() {
        InflateError::TooLarge { limit_bytes, .. } => {
            assert_eq!(limit_bytes, DEFAULT_LIMIT_BYTES);
            TooLarge
        }
        error => {
            assert!(matches!(error, InflateError::Corrupt { .. }), "{error}");
            Corrupt
        }
    };
    (verdict, peak_resident_bytes().saturating_sub(before))
}

fn peak_resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Small payloads that only claim to be large.
fn declared() -> Vec<(&'static str, Codec, Bytes, Verdict)> {
    let frame = |bytes: &[u8]| [&b"\x28\xB5\x2F\xFD"[..], bytes, &[0; 90]].concat();
    let good_zstd = deflate(Codec::Zstd, b"a whole frame in front").unwrap();
    let snappy = |rest: &[u8]| [&b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"[..], rest, &[0; 90]].concat();
    let mut lz4 = deflate(Codec::Lz4, b"").unwrap();
    lz4[5] = 0x70;
    lz4[6] = 0x73;
    let lz4_block = |length: u32| [&lz4[..7], &length.to_le_bytes(), &[0; 90]].concat();
    let gzip = [&[0x1F, 0x8B, 8, 4, 0, 0, 0, 0, 0, 3, 0xFF, 0xFF][..], &[0; 90]].concat();
    [
        (
            "snappy length of 1 GiB",
            Codec::Snappy,
            [&b"\x80\x80\x80\x80\x04"[..], &[0; 95]].concat(),
            TooLarge,
        ),
        ("snappy length of 63 MiB", Codec::Snappy, [&b"\x80\x80\xC0\x1F"[..], &[0; 95]].concat(), Corrupt),
        ("snappy framed length", Codec::Snappy, snappy(b"\0\0\0\x20\x80\x80\x80\x80\x04"), TooLarge),
        ("snappy framed block of 1 GiB", Codec::Snappy, snappy(b"\x40\0\0\0"), Corrupt),
        ("zstd content of 1 GiB", Codec::Zstd, frame(b"\xA0\0\0\0\x40"), TooLarge),
        ("zstd content of 1 GiB, small window", Codec::Zstd, frame(b"\x80\0\0\0\0\x40"), TooLarge),
        ("zstd content of 63 MiB", Codec::Zstd, frame(b"\xA0\0\0\xF0\x03"), Corrupt),
        ("zstd window of 1 GiB", Codec::Zstd, frame(b"\0\xA0"), TooLarge),
        ("zstd window of 128 MiB", Codec::Zstd, frame(b"\0\x88"), Corrupt),
        ("zstd window of 256 MiB", Codec::Zstd, frame(b"\0\x90"), TooLarge),
        ("zstd window of 1 GiB later", Codec::Zstd, [good_zstd, frame(b"\0\xA0")].concat(), TooLarge),
        ("lz4 block of 1 GiB", Codec::Lz4, lz4_block(1 << 30), Corrupt),
        ("lz4 block of 4 MiB", Codec::Lz4, lz4_block(4 << 20), Corrupt),
        ("lz4 plain block of 4 MiB", Codec::Lz4, lz4_block(0x8000_0000 | (4 << 20)), Corrupt),
        ("gzip extra field of 64 KiB", Codec::Gzip, gzip, Corrupt),
    ]
    .map(|(name, codec, payload, verdict)| (name, codec, Bytes::from(payload), verdict))
    .into()
}

/// Payloads that really inflate beyond the limit, and the memory that reading them in pieces may take.
fn bombs() -> Vec<(&'static str, Codec, Bytes, usize)> {
    let mut zstd = zstd::stream::read::Encoder::new(std::io::repeat(0).take(GIB as u64), 3).unwrap();
    let mut zstd_payload = Vec::new();
    zstd.read_to_end(&mut zstd_payload).unwrap();
    assert!(zstd_payload.len() < 36_000, "{} bytes make 1 GiB", zstd_payload.len());
    // The largest window, and 8,192 blocks that each repeat one byte 131,072 times.
    let wide = [&b"\x28\xB5\x2F\xFD\0\x88"[..], &b"\x02\0\x10\0".repeat(8_192)].concat();
    let zeros = vec![0; 4 * MIB];
    let gzip = deflate(Codec::Gzip, &zeros).unwrap().repeat(20);
    let snappy_block = snap::raw::Encoder::new().compress_vec(&zeros).unwrap();
    let snappy_chunk =
        [&u32::try_from(snappy_block.len()).unwrap().to_be_bytes()[..], &snappy_block].concat();
    let snappy = [&b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"[..], &snappy_chunk.repeat(20)].concat();
    let snappy_raw = snap::raw::Encoder::new().compress_vec(&vec![0; 65 * MIB]).unwrap();
    let info = lz4_flex::frame::FrameInfo::new()
        .block_size(lz4_flex::frame::BlockSize::Max4MB)
        .block_mode(lz4_flex::frame::BlockMode::Independent);
    let mut lz4 = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    (0..20).for_each(|_| lz4.write_all(&zeros).unwrap());
    [
        ("33 KB of zstd making 1 GiB", Codec::Zstd, zstd_payload, 4 * MIB),
        ("33 KB of zstd making 1 GiB in a wide window", Codec::Zstd, wide, DEFAULT_LIMIT_BYTES),
        ("gzip making 80 MiB", Codec::Gzip, gzip, MIB),
        ("snappy making 80 MiB", Codec::Snappy, snappy, 5 * MIB),
        ("one snappy block making 65 MiB", Codec::Snappy, snappy_raw, MIB),
        ("lz4 making 80 MiB", Codec::Lz4, lz4.finish().unwrap(), 5 * MIB),
    ]
    .map(|(name, codec, payload, streamed_max)| (name, codec, Bytes::from(payload), streamed_max))
    .into()
}
