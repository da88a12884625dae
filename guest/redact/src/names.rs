//! A list of names, of which there may be thousands, in each of thousands of records.

use std::ops::Range;

/// Names that are looked up byte for byte, in a time that does not depend on how many they are.
#[derive(Debug, Default)]
pub(crate) struct Names {
    text: String,
    /// Where in the text a name lies: at its hash's place, or at the first free one behind that. At least half of them are free,
    /// and have an empty range: no name is empty.
    places: Vec<Range<u32>>,
    /// A bit for each length that a name has; the longest ones share the last one.
    lengths: u64,
}

impl Names {
    /// The names that stand between the commas of this text, without blanks around them.
    pub(crate) fn new(text: String) -> Self {
        let mut ranges = Vec::new();
        let mut start: usize = 0;
        for item in text.split(',') {
            let name = item.trim_start();
            let at = start.saturating_add(item.len().saturating_sub(name.len()));
            let end = at.saturating_add(name.trim_end().len());
            start = start.saturating_add(item.len()).saturating_add(1);
            if let (Ok(at), Ok(end)) = (u32::try_from(at), u32::try_from(end))
                && at < end
            {
                ranges.push(at..end);
            }
        }
        let room = if ranges.is_empty() { 0 } else { ranges.len().saturating_mul(2).next_power_of_two() };
        let mut names = Self { text, places: vec![0..0; room], lengths: 0 };
        ranges.into_iter().for_each(|range| names.insert(range));
        names
    }

    /// The list as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lengths == 0
    }

    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.lengths & length_bit(name) != 0
            && self
                .probe(name)
                .any(|place| self.places.get(place).is_some_and(|range| self.name(range) == name))
    }

    fn insert(&mut self, range: Range<u32>) {
        let name = self.name(&range);
        let (bit, free) = (length_bit(name), self.probe(name).last());
        let free = free.map_or_else(|| self.first(name), |place| self.after(place));
        self.lengths |= bit;
        if let Some(place) = self.places.get_mut(free) {
            *place = range;
        }
    }

    /// The taken places from that of the name's hash on.
    fn probe(&self, name: &[u8]) -> impl Iterator<Item = usize> {
        let is_taken = |place: &usize| self.places.get(*place).is_some_and(|range| !range.is_empty());
        std::iter::successors(Some(self.first(name)), |place| Some(self.after(*place))).take_while(is_taken)
    }

    fn first(&self, name: &[u8]) -> usize {
        let hash = hash(name);
        usize::try_from((hash ^ (hash >> 32)) & u64::from(u32::MAX)).unwrap_or(0) & self.mask()
    }

    fn after(&self, place: usize) -> usize {
        place.saturating_add(1) & self.mask()
    }

    fn mask(&self) -> usize {
        self.places.len().saturating_sub(1)
    }

    fn name(&self, range: &Range<u32>) -> &[u8] {
        let at = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
        self.text.as_bytes().get(at(range.start)..at(range.end)).unwrap_or_default()
    }
}

fn length_bit(name: &[u8]) -> u64 {
    1 << name.len().min(63)
}

/// FNV-1a.
fn hash(name: &[u8]) -> u64 {
    name.iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_has_commas_and_blanks() {
        let names = Names::new(" a, bc ,,d e,\u{a0}ö\u{2003},a".to_owned());
        for name in ["a", "bc", "d e", "ö"] {
            assert!(names.contains(name.as_bytes()), "{name}");
        }
        for name in ["", "b", "c", "d", " a", "a,", ",", "abc"] {
            assert!(!names.contains(name.as_bytes()), "{name}");
        }
        for nothing in ["", ",", " , ,"] {
            assert!(Names::new(nothing.to_owned()).is_empty());
            assert!(!Names::new(nothing.to_owned()).contains(b""));
        }
    }

    proptest! {
        #[test]
        fn what_is_in_it_is_what_a_set_has(
            listed in proptest::collection::vec("[ab]{1,4}", 0..60), asked in proptest::collection::vec("[ab]{0,5}", 0..40),
        ) {
            let names = Names::new(listed.join(","));
            let set: HashSet<&String> = listed.iter().collect();
            prop_assert_eq!(names.is_empty(), set.is_empty());
            for name in listed.iter().chain(&asked) {
                prop_assert_eq!(names.contains(name.as_bytes()), set.contains(name), "{}", name);
            }
        }
    }
}
