//! Compressed batches that inflate to a gigabyte, or merely say so, are refused where records are validated: on a normal
//! topic always, on an exact topic with `produce.at.offset.validation=records`. Resident memory stays where it is.

use anyhow::{Context, ensure};
use std::io::Write;
use verbatim_batch::{BatchBuilder, Codec, NewRecord};
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::Home;

const GIB: usize = 1 << 30;
const GROWTH_KIB_MAX: u64 = 80 << 10;
const INVALID_RECORD: i16 = 87;

#[test]
fn a_gigabyte_in_disguise_is_refused_in_little_memory() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("plain", 1, &[])?;
    host.create_topic("strict", 1, &[EXACT, "produce.at.offset.validation=records"])?;
    let client = Client::connect(host.address())?;
    // What is needed for work of any kind is not growth.
    assert_eq!(client.produce(("plain", 0), None, &batch(0, 0, &["x"])?)?.error_code, 0);
    let before_kib = host.status_kib("VmHWM")?;

    for (what, codec, payload) in bombs()? {
        let bomb = BatchBuilder::new(0)
            .record(NewRecord::new(0, 1_700_000_000_000).value(b"x"))
            .build_compressed(codec, &payload)
            .map_err(|error| anyhow::anyhow!("{error:?}"))?;
        ensure!(bomb.len() < 64 << 10, "{what}: the bomb itself has {} bytes", bomb.len());
        for (topic, tag) in [("plain", None), ("strict", Some(order((0, -1), (0, 1), 0)))] {
            let answer = client.produce((topic, 0), tag.as_ref(), &bomb).context(what)?;
            ensure!(answer.error_code == INVALID_RECORD, "{what} to {topic}: {answer:?}");
        }
    }
    let growth_kib = host.status_kib("VmHWM")?.saturating_sub(before_kib);
    ensure!(growth_kib < GROWTH_KIB_MAX, "resident memory grew by {growth_kib} KiB at its highest");
    assert_eq!(client.latest(("plain", 0))?.0, 1);
    assert_eq!(client.latest(("strict", 0))?.0, 0);
    host.stop()
}

fn bombs() -> anyhow::Result<Vec<(&'static str, Codec, Vec<u8>)>> {
    let pad = |head: &[u8]| [head, &[0; 40]].concat();
    // Magic; a descriptor with an 8-byte content size and one segment; the size.
    let content_size = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &(GIB as u64).to_le_bytes()].concat();
    // Magic; a descriptor without content size; a window of 2^(10 + 20) bytes.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 20 << 3];
    // Magic; version 1, independent blocks; blocks of 4 MiB; the header's checksum; a block said to be a gigabyte.
    let block = [&[0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73][..], &0x4000_0000_u32.to_le_bytes()].concat();
    // The length before a raw snappy block, and the same within the framing of the Java client.
    let length = [0x80, 0x80, 0x80, 0x80, 0x04];
    let java = [&b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x2d"[..], &length].concat();
    Ok(vec![
        ("zstd that inflates to a gigabyte", Codec::Zstd, zstd_of_zeros()?),
        ("zstd with a content size of a gigabyte", Codec::Zstd, pad(&content_size)),
        ("zstd with a window of a gigabyte", Codec::Zstd, pad(&window)),
        ("lz4 with a block of a gigabyte", Codec::Lz4, pad(&block)),
        ("snappy with a length of a gigabyte", Codec::Snappy, pad(&length)),
        ("framed snappy with a length of a gigabyte", Codec::Snappy, pad(&java)),
    ])
}

fn zstd_of_zeros() -> anyhow::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1)?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..GIB >> 20 {
        encoder.write_all(&zeros)?;
    }
    Ok(encoder.finish()?)
}
