//! Records as they lie in a journal: length (u32), CRC-32C of length and content (u32), and one change as JSON.
//!
//! Behind damage the next whole record is looked for byte by byte. Nothing that a client wrote can be taken for one: JSON has
//! no byte below 32, so inside of a change a length would be half a gigabyte or more, and larger than a change can be.

use verbatim_batch::{crc32c, crc32c_append};

use super::super::offsets::Change;

/// Bytes before the content of a record.
const HEAD: usize = 8;
/// The least content that JSON within a record can be taken for: four bytes of text as a length.
const CONTENT_MAX: usize = 0x2020_2020;

/// A part of a journal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A record at this position, and its content.
    Whole(usize, &'a [u8]),
    /// So many bytes from this position on are no records, and one follows.
    Damaged(usize, usize),
    /// From this position on there is no whole record any more.
    Torn(usize),
}

/// A journal part by part.
pub(super) fn parts(journal: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = journal.get(at..).filter(|rest| !rest.is_empty())?;
        if let Some(content) = first(rest) {
            let begin = at;
            at = at.saturating_add(HEAD).saturating_add(content.len());
            return Some(Part::Whole(begin, content));
        }
        let begin = at;
        let next = (1..rest.len()).find(|skipped| rest.get(*skipped..).and_then(first).is_some());
        at = next.map_or(journal.len(), |skipped| begin.saturating_add(skipped));
        Some(next.map_or(Part::Torn(begin), |skipped| Part::Damaged(begin, skipped)))
    })
}

/// The content of the record that bytes begin with; none if it is not whole.
fn first(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<4>()?;
    let content = rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    // Told before the checksum, which takes its time.
    let is_object = content.len() < CONTENT_MAX && content.starts_with(b"{") && content.ends_with(b"}");
    let is_whole = || crc32c_append(crc32c(length), content) == u32::from_be_bytes(*checksum);
    (is_object && is_whole()).then_some(content)
}

/// Appends a change as a record.
pub(super) fn encode(change: &Change, out: &mut Vec<u8>) -> std::io::Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    serde_json::to_writer(&mut *out, change)?;
    let content = out.len().saturating_sub(start).saturating_sub(HEAD);
    let fitting = u32::try_from(content).ok().filter(|_| content < CONTENT_MAX);
    let length = fitting.ok_or_else(|| {
        std::io::Error::other(format!("a change must have less than {CONTENT_MAX} bytes, bytes=`{content}`"))
    })?;
    let length = length.to_be_bytes();
    let Some(written) = out.get_mut(start..) else { return Ok(()) };
    let Some((head, content)) = written.split_at_mut_checked(HEAD) else { return Ok(()) };
    let checksum = crc32c_append(crc32c(&length), content).to_be_bytes();
    head.iter_mut().zip(length.into_iter().chain(checksum)).for_each(|(byte, value)| *byte = value);
    Ok(())
}
