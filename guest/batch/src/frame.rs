use core::ops::Range;

use crate::header::{HEADER_LEN, Header, OVERHEAD_LEN, Prefix, total_len};

/// Splits a run of bytes into batches by their length fields alone (R1, R2a).
///
/// ```
/// let run = [0_u8; 5];
/// let mut frames = verbatim_batch::frames(&run);
/// assert!(frames.next().is_none());
/// assert_eq!(frames.end(), Some(verbatim_batch::FramesEnd::TailCut { bytes: 5 }));
/// ```
pub fn frames(bytes: &[u8]) -> Frames<'_> {
    Frames { bytes, at: 0, end: None }
}

/// The iterator of [`frames`].
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
    end: Option<FramesEnd>,
}

/// How a run of batches ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramesEnd {
    /// With the last byte of its last batch, or the run was empty.
    Complete,
    /// With a part of a batch, `bytes` long (R1: ignored after a whole batch).
    TailCut {
        /// Bytes from that batch's first to the end of the run.
        bytes: usize,
    },
    /// At a batch whose length field is below the smallest (R2a); what follows cannot be framed.
    LengthTooSmall {
        /// Where that batch begins in the run.
        at: usize,
        /// Its `batchLength`.
        value: i32,
    },
}

/// The bytes of one batch as its own length field bounds them; nothing else about them is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    at: usize,
    bytes: &'a [u8],
    prefix: Prefix,
}

impl<'a> Frames<'a> {
    /// How the run ended; `None` while there may be more frames.
    pub fn end(&self) -> Option<FramesEnd> {
        self.end
    }

    /// Bytes framed so far, which is where the next frame begins or the whole batches end.
    pub fn framed_len(&self) -> usize {
        self.at
    }

    fn step(&mut self) -> Result<Frame<'a>, FramesEnd> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Err(FramesEnd::Complete);
        }
        let cut = FramesEnd::TailCut { bytes: rest.len() };
        let value = batch_length(rest).ok_or(cut)?;
        let len = total_len(value).ok_or(FramesEnd::LengthTooSmall { at: self.at, value })?;
        let bytes = rest.get(..len).ok_or(cut)?;
        let frame = Frame { at: self.at, bytes, prefix: Prefix::read(bytes).ok_or(cut)? };
        self.at = self.at.saturating_add(len);
        Ok(frame)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.end.is_some() {
            return None;
        }
        match self.step() {
            Ok(frame) => Some(frame),
            Err(end) => {
                self.end = Some(end);
                None
            }
        }
    }
}

impl core::iter::FusedIterator for Frames<'_> {}

impl<'a> Frame<'a> {
    /// Where the batch lies in the run that was split.
    pub fn range(&self) -> Range<usize> {
        self.at..self.at.saturating_add(self.bytes.len())
    }

    /// The whole batch.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The fields in front of the checksum, which every frame is long enough for.
    pub fn prefix(&self) -> Prefix {
        self.prefix
    }

    /// Every field, or `None` where the header is short (R2b).
    pub fn header(&self) -> Option<Header> {
        Header::read(self.bytes)
    }

    /// Whether the batch is too short for its header (R2b).
    pub fn has_short_header(&self) -> bool {
        self.bytes.len() < HEADER_LEN
    }
}

fn batch_length(rest: &[u8]) -> Option<i32> {
    let (_, length) = rest.first_chunk::<OVERHEAD_LEN>()?.split_last_chunk()?;
    Some(i32::from_be_bytes(*length))
}

#[cfg(test)]
#[expect(clippy::expect_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn batch_of(batch_length: i32) -> Vec<u8> {
        let mut bytes = alloc::vec![7; 8];
        bytes.extend(batch_length.to_be_bytes());
        bytes.resize(12 + usize::try_from(batch_length).unwrap_or(0), 2);
        bytes
    }

    fn lens_and_end(bytes: &[u8]) -> (Vec<usize>, FramesEnd) {
        let mut frames = frames(bytes);
        let lens = frames.by_ref().map(|frame| frame.bytes().len()).collect();
        (lens, frames.end().expect("a drained iterator has ended"))
    }

    #[test]
    fn splits_by_length() {
        let run = [batch_of(14), batch_of(48), batch_of(49)].concat();
        assert_eq!(lens_and_end(&run), (alloc::vec![26, 60, 61], FramesEnd::Complete));
        let short: Vec<bool> = frames(&run).map(|frame| frame.has_short_header()).collect();
        assert_eq!(short, [true, true, false]);
        let ranges: Vec<_> = frames(&run).map(|frame| frame.range()).collect();
        assert_eq!(ranges, [0..26, 26..86, 86..147]);
        assert_eq!(lens_and_end(&[]), (alloc::vec![], FramesEnd::Complete));
    }

    #[test]
    fn a_tail_is_cut_at_every_length() {
        let run = [batch_of(20), batch_of(30)].concat();
        for keep in 33..run.len() {
            assert_eq!(
                lens_and_end(&run[..keep]),
                (alloc::vec![32], FramesEnd::TailCut { bytes: keep - 32 })
            );
        }
    }

    #[test]
    fn too_small_a_length_ends_the_run() {
        for value in [13, 0, -1, i32::MIN] {
            let run = [batch_of(14), batch_of(value), batch_of(14)].concat();
            assert_eq!(lens_and_end(&run), (alloc::vec![26], FramesEnd::LengthTooSmall { at: 26, value }));
        }
    }

    #[test]
    fn the_largest_length_is_a_cut_tail() {
        let mut run = batch_of(14);
        run[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
        assert_eq!(lens_and_end(&run), (alloc::vec![], FramesEnd::TailCut { bytes: 26 }));
    }

    proptest! {
        #[test]
        fn frames_cover_arbitrary_bytes_up_to_the_end(
            bytes in proptest::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..400),
        ) {
            let mut run = frames(&bytes);
            let mut at = 0;
            for frame in run.by_ref() {
                prop_assert_eq!(frame.range().start, at);
                prop_assert_eq!(&bytes[frame.range()], frame.bytes());
                at = frame.range().end;
            }
            prop_assert_eq!(run.framed_len(), at);
            match run.end() {
                Some(FramesEnd::Complete) => prop_assert_eq!(at, bytes.len()),
                Some(FramesEnd::TailCut { bytes: left }) => prop_assert_eq!(at + left, bytes.len()),
                Some(FramesEnd::LengthTooSmall { at: bad, value }) => prop_assert!(bad == at && value < 14),
                None => prop_assert!(false, "not ended"),
            }
        }
    }
}
