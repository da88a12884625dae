//! Which batches of a piece are copied.

use std::ops::Range;

use verbatim_batch::{FramesEnd, Header, frames};

use crate::mirror::progress::Amount;

/// Where the copy goes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// Its end.
    pub(super) end: i64,
    /// It holds no batch: then one may begin below its end (R25).
    pub(super) empty: bool,
}

/// Batches to copy, one behind the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Where they lie in the piece.
    pub(super) bytes: Range<usize>,
    /// The offset behind the last one.
    pub(super) end: i64,
    pub(super) amount: Amount,
}

/// What of a piece is copied.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selected {
    /// `None`: nothing of it.
    pub(super) run: Option<Run>,
    /// True if batches were left that end above the high watermark: a leader tells where that was before it read, so they may be
    /// committed. They have to come once more.
    pub(super) leaves_some: bool,
}

/// What is wrong with a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// A batch covers the copy's end, and something is stored below that.
    Overlap { header: Box<Header>, end: i64 },
    /// It is not what can be copied, in words.
    Format(String),
}

/// The batches of a piece that end above the copy's end and not above the source's high watermark, untouched.
pub(super) fn select(piece: &[u8], start: Start, high_watermark: i64) -> Result<Selected, Bad> {
    let (mut run, mut leaves_some): (Option<Run>, _) = (None, false);
    let mut all = frames(piece);
    for frame in all.by_ref() {
        let prefix = frame.prefix();
        if prefix.magic != 2 {
            return Err(Bad::Format(format!(
                "the source's batch at offset {} is of an old message format, magic={}, expected 2",
                prefix.base_offset, prefix.magic
            )));
        }
        let header = frame.header();
        let next = header.and_then(|header| header.next_offset());
        let (Some(header), Some(next)) = (header, next) else {
            return Err(Bad::Format(format!(
                "the source's batch at offset {} has no last offset",
                prefix.base_offset
            )));
        };
        if next <= start.end && run.is_none() {
            continue;
        }
        if next > high_watermark {
            leaves_some = true;
            break;
        }
        let end = run.as_ref().map_or(start.end, |run| run.end);
        if header.base_offset < end && !(run.is_none() && start.empty) {
            return Err(Bad::Overlap { header: Box::new(header), end });
        }
        let run = run.get_or_insert(Run { bytes: frame.range(), end, amount: Amount::default() });
        run.bytes.end = frame.range().end;
        run.end = next;
        run.amount.add(&header);
    }
    match all.end() {
        None | Some(FramesEnd::Complete) => Ok(Selected { run, leaves_some }),
        Some(end) => Err(Bad::Format(format!("what the source sent ends with {end:?}"))),
    }
}

impl Amount {
    fn add(&mut self, header: &Header) {
        let bytes = header.total_len().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
        self.batches = self.batches.saturating_add(1);
        self.records = self.records.saturating_add(u64::try_from(header.record_count).unwrap_or(0));
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use verbatim_batch::{BatchBuilder, NewRecord};

    fn batch(base: i64, records: i32) -> Vec<u8> {
        let mut builder = BatchBuilder::new(base).leader_epoch(1);
        for delta in 0..records {
            builder = builder.record(NewRecord::new(delta, 0).value(b"v"));
        }
        builder.build().unwrap()
    }

    fn selected(piece: &[u8], end: i64, empty: bool, high_watermark: i64) -> Result<Option<Run>, Bad> {
        select(piece, Start { end, empty }, high_watermark).map(|selected| selected.run)
    }

    #[test]
    fn what_is_there_already_and_what_is_not_committed_yet_is_left_out() {
        let (a, b, c) = (batch(0, 2), batch(5, 1), batch(6, 3));
        let piece = [a.clone(), b.clone(), c.clone()].concat();
        let run = selected(&piece, 0, false, 9).unwrap().unwrap();
        assert_eq!((run.bytes, run.end, run.amount.records, run.amount.batches), (0..piece.len(), 9, 6, 3));
        let run = selected(&piece, 2, false, 8).unwrap().unwrap();
        assert_eq!((run.bytes, run.end), (a.len()..a.len() + b.len(), 6));
        assert_eq!(run.amount.bytes, u64::try_from(b.len()).unwrap());
        assert_eq!(selected(&piece, 9, false, 9), Ok(None));
        assert_eq!(selected(&[], 0, true, 9), Ok(None));
        assert_eq!(selected(&c, 6, false, 8), Ok(None));
        let leaves_some = |piece: &[u8], end, high_watermark| {
            select(piece, Start { end, empty: false }, high_watermark).unwrap().leaves_some
        };
        assert!(leaves_some(&piece, 0, 8) && leaves_some(&c, 6, 8) && leaves_some(&c, 6, 6));
        assert!(!leaves_some(&piece, 0, 9) && !leaves_some(&piece, 9, 8) && !leaves_some(&[], 0, 0));
    }

    #[test]
    fn a_batch_that_covers_the_end_is_no_continuation_unless_nothing_is_stored() {
        let piece = batch(0, 5);
        assert!(matches!(selected(&piece, 3, false, 5), Err(Bad::Overlap { end: 3, .. })));
        assert_eq!(selected(&piece, 3, true, 5).unwrap().unwrap().end, 5);
        let twice = [batch(0, 5), batch(4, 1)].concat();
        assert!(matches!(selected(&twice, 3, true, 5), Err(Bad::Overlap { end: 5, .. })));
    }

    #[test]
    fn old_formats_and_cut_batches_are_named() {
        let mut old = batch(7, 1);
        old.get_mut(16..17).unwrap().copy_from_slice(&[1]);
        for (piece, text) in
            [(old.as_slice(), "magic=1"), (batch(0, 1).get(..40).unwrap_or_default(), "TailCut")]
        {
            let Err(Bad::Format(said)) = selected(piece, 0, false, 99) else { unreachable!("{text}") };
            assert!(said.contains(text), "{said}");
        }
    }
}
