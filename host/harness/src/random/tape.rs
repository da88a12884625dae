//! Choices read from a tape of random numbers.

/// Long enough for every choice of a log and some requests.
const TAPE_LEN: usize = 600;

/// The numbers of one case, made from a seed and the case's own number (SplitMix64).
#[must_use]
pub fn numbers(seed: u64, case: u64) -> Vec<u16> {
    let mut state = seed ^ case.wrapping_mul(0xd134_2543_de82_ef95);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // The upper bits are the better ones, and sixteen of them fit.
        u16::try_from((mixed ^ (mixed >> 31)) >> 48).unwrap_or(0)
    };
    (0..TAPE_LEN).map(|_| next()).collect()
}

/// A tape; behind its end every choice is the first.
#[derive(Debug)]
pub struct Tape<'a> {
    numbers: std::slice::Iter<'a, u16>,
}

impl<'a> Tape<'a> {
    /// A tape with these numbers.
    #[must_use]
    pub fn new(numbers: &'a [u16]) -> Self {
        Self { numbers: numbers.iter() }
    }

    /// One of `count` choices; 0 is the plainest.
    pub fn below(&mut self, count: u16) -> u16 {
        self.numbers.next().and_then(|number| number.checked_rem(count)).unwrap_or(0)
    }

    /// True once in `times`.
    pub fn rarely(&mut self, times: u16) -> bool {
        self.below(times).saturating_add(1) == times
    }

    /// One of these, the first of which is the plainest; of none, the type's own default.
    pub fn one<T: Copy + Default>(&mut self, of: &[T]) -> T {
        let index = self.below(u16::try_from(of.len()).unwrap_or(u16::MAX));
        of.get(usize::from(index)).copied().unwrap_or_default()
    }

    /// The usual, and once in `times` one of the odd.
    pub fn mostly<T: Copy + Default>(&mut self, usual: T, times: u16, odd: &[T]) -> T {
        if self.rarely(times) { self.one(odd) } else { usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_brings_the_same_numbers_back_and_cases_differ() {
        assert_eq!(numbers(7, 1), numbers(7, 1));
        assert_ne!(numbers(7, 1), numbers(7, 2));
        assert_ne!(numbers(7, 1), numbers(8, 1));
    }

    #[test]
    fn behind_the_end_all_is_plain() {
        let mut tape = Tape::new(&[5]);
        assert_eq!((tape.below(3), tape.below(3), tape.rarely(2)), (2, 0, false));
        assert_eq!((tape.one(&[4, 9]), tape.mostly(1, 2, &[3])), (4, 1));
        assert_eq!((tape.one::<i64>(&[]), tape.below(0)), (0, 0));
    }
}
