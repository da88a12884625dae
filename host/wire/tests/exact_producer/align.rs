//! The dialogue finds the largest common end of any two histories that share a beginning.

use std::convert::Infallible;

use proptest::prelude::*;
use verbatim_wire::exact_producer::{Aligned, Apart, CopyState, EpochEnd, Histories, align};
use verbatim_wire::tag::EpochEntry;

/// A log's epochs as a broker answers from them (R42).
#[derive(Debug, Clone, Default)]
struct Epochs {
    entries: Vec<EpochEntry>,
    end: i64,
    /// Its leader's epoch, which may have no entry.
    shown: i32,
}

impl Epochs {
    fn answer(&self, epoch: i32) -> EpochEnd {
        let unknown = EpochEnd { epoch: -1, end: -1 };
        let Some(first) = self.entries.first().filter(|_| epoch <= self.shown) else { return unknown };
        if epoch < first.epoch {
            return EpochEnd { epoch, end: first.start };
        }
        let of = self.entries.iter().rfind(|entry| entry.epoch <= epoch).map_or(-1, |entry| entry.epoch);
        let next = self.entries.iter().find(|entry| entry.epoch > epoch);
        EpochEnd { epoch: of, end: next.map_or(self.end, |entry| entry.start) }
    }

    fn at(&self, offset: i64) -> Option<i32> {
        self.entries.iter().rfind(|entry| entry.start <= offset).map(|entry| entry.epoch)
    }

    /// Epochs of so many offsets each, behind what is there; no epoch of the other side's (odd or even).
    fn grow(&mut self, parity: i32, lengths: &[i64]) {
        for (step, length) in (0..).zip(lengths) {
            let above = self.entries.last().map_or(0, |entry| entry.epoch + 1);
            let epoch = above + i32::from(above % 2 != parity) + 2 * (step % 2);
            if self.entries.last().is_none_or(|last| last.start < self.end) {
                self.entries.push(EpochEntry { epoch, start: self.end });
            }
            self.end += length;
        }
        self.shown = self.entries.last().map_or(-1, |entry| entry.epoch);
    }
}

#[derive(Default)]
struct Both {
    source: Epochs,
    copy: Epochs,
    questions: usize,
}

impl Histories for Both {
    type Error = Infallible;

    async fn source_epoch_end(&mut self, epoch: i32) -> Result<EpochEnd, Infallible> {
        self.questions += 1;
        Ok(self.source.answer(epoch))
    }

    async fn copy_epoch_end(&mut self, epoch: i32) -> Result<EpochEnd, Infallible> {
        self.questions += 1;
        Ok(self.copy.answer(epoch))
    }
}

fn aligned(both: &mut Both, start: i64) -> Aligned {
    let last_epoch = both.copy.entries.last().map_or(-1, |entry| entry.epoch);
    let copy = CopyState { start, end: both.copy.end, last_epoch };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(align(both, copy)).unwrap()
}

/// The offset up to which both have the same epoch everywhere. No two leaders share an epoch, so they have the same records.
fn common_end(both: &Both) -> i64 {
    let end = both.source.end.min(both.copy.end);
    (0..end).find(|offset| both.source.at(*offset) != both.copy.at(*offset)).unwrap_or(end)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn the_largest_common_end_is_found(
        shared in proptest::collection::vec(0_i64..6, 1..6),
        inside in 0_i64..6,
        source in proptest::collection::vec(0_i64..6, 0..6),
        copy in proptest::collection::vec(0_i64..6, 0..6),
    ) {
        let mut both = Both::default();
        both.source.grow(0, &shared);
        both.copy = both.source.clone();
        // The last shared epoch went on at the copy with what its source has lost.
        if !both.copy.entries.is_empty() {
            both.copy.end += inside;
        }
        both.source.grow(0, &source);
        both.copy.grow(1, &copy);
        // The source's present leader came after all that the copy has seen.
        both.source.shown = both.source.shown.max(both.copy.shown) + 1;
        let expected = common_end(&both);
        let outcome = aligned(&mut both, 0);
        if expected == both.copy.end {
            prop_assert_eq!(outcome, Aligned::Continue { at: expected });
        } else {
            prop_assert_eq!(outcome, Aligned::Truncate { to: expected });
        }
        prop_assert!(both.questions <= 2 * (both.source.entries.len() + both.copy.entries.len()));
    }

    #[test]
    fn answers_of_any_kind_come_to_an_end_and_never_above_the_copys(
        answers in proptest::collection::vec((-1_i32..9, -1_i64..40), 40),
        start in 0_i64..20,
        length in 0_i64..20,
        last_epoch in -1_i32..9,
    ) {
        struct Liar(Vec<(i32, i64)>);
        impl Histories for Liar {
            type Error = &'static str;
            async fn source_epoch_end(&mut self, _: i32) -> Result<EpochEnd, Self::Error> {
                let (epoch, end) = self.0.pop().ok_or("asked too often")?;
                Ok(EpochEnd { epoch, end })
            }
            async fn copy_epoch_end(&mut self, epoch: i32) -> Result<EpochEnd, Self::Error> {
                self.source_epoch_end(epoch).await
            }
        }
        let copy = CopyState { start, end: start + length, last_epoch };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        match runtime.block_on(align(&mut Liar(answers), copy)).unwrap() {
            Aligned::Continue { at } => prop_assert_eq!(at, copy.end),
            Aligned::Truncate { to } => prop_assert!(start <= to && to < copy.end),
            Aligned::Stop { .. } => {}
        }
    }
}

fn both(source: (&[(i32, i64)], i64), copy: (&[(i32, i64)], i64)) -> Both {
    let epochs = |(entries, end): (&[(i32, i64)], i64)| Epochs {
        entries: entries.iter().map(|(epoch, start)| EpochEntry { epoch: *epoch, start: *start }).collect(),
        end,
        shown: entries.last().map_or(-1, |entry| entry.0),
    };
    Both { source: epochs(source), copy: epochs(copy), questions: 0 }
}

#[test]
fn a_copy_with_nothing_in_common_stops() {
    let mut unknown = both((&[], 0), (&[(4, 0)], 10));
    assert_eq!(aligned(&mut unknown, 0), Aligned::Stop { why: Apart::UnknownToSource });
    let mut older = both((&[(2, 0)], 30), (&[(4, 10)], 20));
    assert_eq!(
        aligned(&mut older, 10),
        Aligned::Stop { why: Apart::UnknownToSource },
        "4 is above all it knows"
    );
    let mut other = both((&[(2, 0), (6, 5)], 30), (&[(4, 10)], 20));
    assert_eq!(aligned(&mut other, 10), Aligned::Stop { why: Apart::NothingInCommon });
}

#[test]
fn an_empty_copy_goes_on_at_its_end() {
    let mut empty = both((&[(3, 0)], 10), (&[], 7));
    assert_eq!(aligned(&mut empty, 7), Aligned::Continue { at: 7 });
    assert_eq!(empty.questions, 0);
}
