//! What is judged before a batch is looked at: acks, the tag's presence, transactions, the codec's version.

use verbatim_batch::Codec;
use verbatim_contract::{Batch, Reason, Refusal};

use crate::case::Case;
use crate::refuse;

/// The first Produce version that may carry zstd (KIP-110).
const ZSTD_MIN_API_VERSION: i16 = 7;

/// acks is one of 0, 1, -1 (21).
pub(crate) fn acks(case: &Case<'_>) -> Result<(), Refusal> {
    match case.request.acks {
        -1..=1 => Ok(()),
        acks => Err(refuse::request(
            Reason::RequiredAcks,
            None,
            format_args!("acks must be 0, 1 or -1, acks=`{acks}`"),
        )),
    }
}

/// R26 on a topic that is not exact: no tag (44).
pub(crate) fn no_tag(case: &Case<'_>) -> Result<(), Refusal> {
    if case.request.has_tag {
        return Err(refuse::request(
            Reason::TagUnexpected,
            None,
            format_args!(
                "the exact-produce tag belongs to topics with produce.at.offset only, produce.at.offset=`false`"
            ),
        ));
    }
    Ok(())
}

/// R36b: without a transaction coordinator no batch can belong to a transaction (53).
pub(crate) fn not_transactional(case: &Case<'_>) -> Result<(), Refusal> {
    let with_bit = |batch: &Batch| batch.header.attributes.is_transactional();
    let Some((index, batch)) = readable(case).find(|(_, batch)| with_bit(batch)) else { return Ok(()) };
    Err(refuse::batch(
        Reason::Transactional,
        index,
        None,
        format_args!(
            "transactional batches need a transaction coordinator, which this topic has not, producerId={}, \
             transactional=`true`",
            batch.header.producer_id
        ),
    ))
}

/// zstd came with Produce v7 (76).
pub(crate) fn codec_version(case: &Case<'_>) -> Result<(), Refusal> {
    let version = case.request.api_version;
    if version >= ZSTD_MIN_API_VERSION {
        return Ok(());
    }
    match readable(case).find(|(_, batch)| batch.header.attributes.codec() == Ok(Codec::Zstd)) {
        None => Ok(()),
        Some((index, _)) => Err(refuse::batch(
            Reason::CodecVersion,
            index,
            i64::from(ZSTD_MIN_API_VERSION),
            format_args!(
                "zstd needs Produce version {ZSTD_MIN_API_VERSION} or later, apiVersion=`{version}`"
            ),
        )),
    }
}

/// Batches whose attributes are where they are looked for.
fn readable<'a>(case: &Case<'a>) -> impl Iterator<Item = (u32, &'a Batch)> {
    case.numbered().filter(|(_, batch)| batch.header.magic == 2 && !batch.short_header)
}
