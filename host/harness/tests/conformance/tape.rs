//! Choices read from a tape of random numbers, so that a failing case shrinks.

/// A tape; behind its end every choice is the first.
pub(crate) struct Tape<'a> {
    numbers: std::slice::Iter<'a, u16>,
}

impl<'a> Tape<'a> {
    pub(crate) fn new(numbers: &'a [u16]) -> Self {
        Self { numbers: numbers.iter() }
    }

    /// One of `count` choices; 0 is the plainest.
    pub(crate) fn below(&mut self, count: u16) -> u16 {
        self.numbers.next().map_or(0, |number| number % count)
    }

    /// True once in `times`.
    pub(crate) fn rarely(&mut self, times: u16) -> bool {
        self.below(times) == times - 1
    }

    /// One of these; the first is the plainest.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        let index = self.below(u16::try_from(of.len()).unwrap_or(u16::MAX));
        of.get(usize::from(index)).copied().unwrap_or_else(|| panic!("there is nothing to choose from"))
    }

    /// The usual, and once in `times` one of the odd.
    pub(crate) fn mostly<T: Copy>(&mut self, usual: T, times: u16, odd: &[T]) -> T {
        if self.rarely(times) { self.one(odd) } else { usual }
    }
}
