//! Every codec both ways, what is read beyond what is written, and what is refused.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::io::Write;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use verbatim_batch::{Attributes, Codec};
use verbatim_compression::{DEFAULT_LIMIT_BYTES, InflateError, Inflater, PIECE_MAX_BYTES, deflate, inflate};

const PACKING: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

fn of(codec: Codec) -> Attributes {
    Attributes::default().with_codec(codec)
}

fn whole(codec: Codec, payload: &[u8]) -> Result<Bytes, InflateError> {
    inflate(of(codec), Bytes::copy_from_slice(payload), DEFAULT_LIMIT_BYTES)
}

fn in_pieces(codec: Codec, payload: &[u8], sizes: &[usize]) -> Result<Vec<u8>, InflateError> {
    let mut inflater = Inflater::new(of(codec), Bytes::copy_from_slice(payload), DEFAULT_LIMIT_BYTES)?;
    let mut plain = Vec::new();
    for size in sizes.iter().cycle() {
        let piece = inflater.next_piece(*size)?;
        assert!(piece.len() <= *size);
        if piece.is_empty() {
            assert!(inflater.next_piece(*size)?.is_empty());
            break;
        }
        plain.extend_from_slice(&piece);
    }
    Ok(plain)
}

fn assert_corrupt(codec: Codec, payload: &[u8], expected: &str) {
    match whole(codec, payload) {
        Err(InflateError::Corrupt { codec: named, reason }) => {
            assert_eq!(named, codec);
            assert!(reason.contains(expected), "{codec}: {reason}");
        }
        other => panic!("{codec}: {other:?}"),
    }
}

/// Compressible and larger than every codec's block.
fn text(len: usize) -> Vec<u8> {
    (0_u32..).flat_map(|number| format!("record {} ", number % 5_000).into_bytes()).take(len).collect()
}

#[test]
fn each_codec_round_trips_at_every_size() {
    for codec in Codec::ALL {
        for len in [0, 1, 15, 16, 17, 32 << 10, (32 << 10) + 1, 64 << 10, 300_000, 3 << 20] {
            let plain = text(len);
            let packed = deflate(codec, &plain).unwrap();
            assert_eq!(whole(codec, &packed).unwrap(), plain, "{codec} {len}");
            assert_eq!(in_pieces(codec, &packed, &[1_000, 70_001]).unwrap(), plain, "{codec} {len}");
            if codec != Codec::None && len > 1_000 {
                assert!(packed.len() < len / 2, "{codec} {len}");
            }
        }
    }
}

#[test]
fn plain_payloads_are_not_copied() {
    let payload = Bytes::from(text(1_000));
    let plain = inflate(of(Codec::None), payload.clone(), 10).unwrap();
    assert_eq!((plain.as_ptr(), plain.len()), (payload.as_ptr(), payload.len()));
    let piece = Inflater::new(of(Codec::None), payload.clone(), 10).unwrap().next_piece(400).unwrap();
    assert_eq!((piece.as_ptr(), piece.len()), (payload.as_ptr(), 400));
}

#[test]
fn pieces_are_full_and_bounded() {
    for codec in Codec::ALL {
        let packed = deflate(codec, &text((2 << 20) + 5)).unwrap();
        let mut inflater = Inflater::new(of(codec), Bytes::from(packed), DEFAULT_LIMIT_BYTES).unwrap();
        let mut next = || inflater.next_piece(usize::MAX).unwrap().len();
        assert_eq!([next(), next(), next(), next()], [PIECE_MAX_BYTES, PIECE_MAX_BYTES, 5, 0], "{codec}");
    }
}

#[test]
fn the_limit_is_exact() {
    for codec in PACKING {
        let plain = text(200_000);
        let packed = Bytes::from(deflate(codec, &plain).unwrap());
        assert_eq!(inflate(of(codec), packed.clone(), 200_000).unwrap(), plain);
        let error = Err(InflateError::TooLarge { codec, limit_bytes: 199_999 });
        assert_eq!(inflate(of(codec), packed.clone(), 199_999), error);
        if let Ok(mut inflater) = Inflater::new(of(codec), packed, 199_999) {
            while inflater.next_piece(50_000).is_ok() {}
            assert_eq!(inflater.next_piece(1), error);
        }
    }
}

#[test]
fn unknown_codecs_are_named() {
    for number in 5..=7_u8 {
        let attributes = Attributes::from_bits(i16::from(number));
        assert_eq!(inflate(attributes, Bytes::new(), 10), Err(InflateError::UnknownCodec { number }));
    }
}

#[test]
fn a_payload_cut_anywhere_is_corrupt() {
    let plain = text(100_000);
    for codec in PACKING {
        let packed = deflate(codec, &plain).unwrap();
        let framing = if codec == Codec::Snappy { 16 } else { 0 };
        for keep in (framing + 4..packed.len()).step_by(7).chain([packed.len() - 1]) {
            match whole(codec, &packed[..keep]) {
                // Snappy's framing has no end: a stream cut between blocks is a shorter stream.
                Ok(shorter) if codec == Codec::Snappy => assert_eq!(shorter.len() % (32 << 10), 0),
                other => assert!(matches!(other, Err(InflateError::Corrupt { .. })), "{codec} {keep}"),
            }
        }
    }
}

#[test]
fn empty_payloads() {
    assert_corrupt(Codec::Gzip, b"", "gzip header");
    assert_corrupt(Codec::Snappy, b"", "too early");
    assert_corrupt(Codec::Lz4, b"", "too early");
    assert_eq!(whole(Codec::Zstd, b"").unwrap(), "");
}

#[test]
fn streams_in_a_row() {
    for codec in PACKING {
        let two = [deflate(codec, b"one, ").unwrap(), deflate(codec, b"two").unwrap()].concat();
        let expected = if codec == Codec::Lz4 { "one, " } else { "one, two" };
        assert_eq!(whole(codec, &two).unwrap(), expected, "{codec}");
    }
}

#[test]
fn bytes_after_the_end() {
    for (codec, tail_len, kept) in [
        (Codec::Gzip, 3, true),
        (Codec::Gzip, 40, true),
        (Codec::Snappy, 3, true),
        (Codec::Snappy, 40, false),
        (Codec::Lz4, 40, true),
        (Codec::Zstd, 1, false),
        (Codec::Zstd, 40, false),
    ] {
        let packed = [deflate(codec, b"plain").unwrap(), vec![0x55; tail_len]].concat();
        match whole(codec, &packed) {
            Ok(plain) => assert!(kept && plain == "plain", "{codec} {tail_len}"),
            Err(error) => {
                assert!(!kept && matches!(error, InflateError::Corrupt { .. }), "{codec} {tail_len}")
            }
        }
    }
}

#[test]
fn a_damaged_second_gzip_member_is_corrupt() {
    let mut two = [deflate(Codec::Gzip, b"one").unwrap(), deflate(Codec::Gzip, b"two").unwrap()].concat();
    let at_checksum = two.len() - 8;
    two[at_checksum] ^= 1;
    assert_corrupt(Codec::Gzip, &two, "corrupt");
}

#[test]
fn snappy_as_librdkafka_and_as_java_write_it() {
    let raw = snap::raw::Encoder::new().compress_vec(&text(100_000)).unwrap();
    assert_eq!(whole(Codec::Snappy, &raw).unwrap(), text(100_000));
    // A raw block of five literal bytes, alone and in the framing.
    assert_eq!(whole(Codec::Snappy, b"\x05\x10plain").unwrap(), "plain");
    let framed = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x07\x05\x10plain";
    assert_eq!(whole(Codec::Snappy, framed).unwrap(), "plain");
    assert_eq!(deflate(Codec::Snappy, b"plain").unwrap(), framed);
    assert_eq!(whole(Codec::Snappy, &framed[..16]).unwrap(), "");
    assert_eq!(whole(Codec::Snappy, b"\x82SNAPPY\0\0\0\0\x02\0\0\0\0").unwrap(), "");
    assert_corrupt(Codec::Snappy, b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\xFF\0\0\0", "block length=`-16777216`");
    assert_corrupt(Codec::Snappy, b"\x05\x0Cplai", "");
    assert_corrupt(Codec::Snappy, b"\x04\x10plain", "");
}

#[test]
fn zstd_frames_of_level_22() {
    // Its window, 128 MiB, stands in every frame, however little there is; one raw block.
    let frame = b"\x28\xB5\x2F\xFD\0\x88\x29\0\0plain";
    assert_eq!(whole(Codec::Zstd, frame).unwrap(), "plain");
}

#[test]
fn lz4_frames_as_kafka_writes_them_and_what_it_does_not_read() {
    let packed = deflate(Codec::Lz4, &text(100_000)).unwrap();
    assert_eq!(packed[..7], [0x04, 0x22, 0x4D, 0x18, 0x60, 0x40, 0x82]);
    assert_eq!(packed[packed.len() - 4..], [0; 4]);
    let changed = |at: usize, byte: u8| {
        let mut bytes = packed.clone();
        bytes[at] = byte;
        bytes
    };
    assert_corrupt(Codec::Lz4, &changed(0, 0), "does not begin");
    assert_corrupt(Codec::Lz4, &changed(4, 0x40), "flags=`0x40`");
    assert_corrupt(Codec::Lz4, &changed(4, 0x61), "flags=`0x61`");
    assert_corrupt(Codec::Lz4, &changed(5, 0x30), "code=`0x30`");
    assert_corrupt(Codec::Lz4, &changed(6, 0), "descriptor");
    assert_corrupt(Codec::Lz4, &changed(9, 2), "larger than its frame's 65536 bytes");
}

#[test]
fn lz4_frames_with_checksums_and_sizes() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let plain = text(500_000);
    for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB] {
        let info = FrameInfo::new()
            .block_size(size)
            .block_mode(BlockMode::Independent)
            .block_checksums(true)
            .content_checksum(true)
            .content_size(Some(500_000));
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(&plain).unwrap();
        let mut packed = encoder.finish().unwrap();
        assert_eq!(whole(Codec::Lz4, &packed).unwrap(), plain);
        // Within the first block, which begins after magic, flags, sizes, content size, check byte and its length.
        packed[30] ^= 1;
        assert_corrupt(Codec::Lz4, &packed, "checksum of a block");
    }
    let info = FrameInfo::new().block_mode(BlockMode::Linked);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(&plain).unwrap();
    assert_corrupt(Codec::Lz4, &encoder.finish().unwrap(), "unsupported frame");
}

#[test]
fn inflaters_can_be_sent() {
    fn sent<T: Send>(_: &T) {}
    sent(&Inflater::new(of(Codec::Zstd), Bytes::from(deflate(Codec::Zstd, b"x").unwrap()), 10).unwrap());
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..200), vec(0..3_u8, 0..5_000), (0..200_000_usize).prop_map(text)]
}

proptest! {
    #[test]
    fn whole_and_pieces_agree_on_damaged_payloads(
        plain in data(),
        codec in 1..5_usize,
        changes in vec((any::<Index>(), any::<u8>()), 0..3),
        cut in proptest::option::weighted(0.3, any::<Index>()),
        sizes in vec(1..100_000_usize, 1..4),
    ) {
        let codec = Codec::ALL[codec];
        let mut packed = deflate(codec, &plain).unwrap();
        for (at, byte) in &changes {
            let at = at.index(packed.len());
            packed[at] = *byte;
        }
        if let Some(cut) = cut {
            packed.truncate(cut.index(packed.len() + 1));
        }
        let all = whole(codec, &packed);
        if changes.is_empty() && cut.is_none() {
            prop_assert_eq!(all.as_deref(), Ok(&plain[..]));
        }
        prop_assert_eq!(in_pieces(codec, &packed, &sizes), all.map(Vec::from));
    }

    #[test]
    fn arbitrary_payloads_never_panic(
        payload in vec(any::<u8>(), 0..300),
        codec in 1..5_usize,
        start in 0..3_usize,
    ) {
        let codec = Codec::ALL[codec];
        let starts = deflate(codec, b"start of a stream").unwrap();
        let payload = [&starts[..starts.len().min(start * 8)], &payload].concat();
        if let Ok(plain) = inflate(of(codec), Bytes::from(payload), 1 << 20) {
            prop_assert!(plain.len() <= 1 << 20);
        }
    }
}
