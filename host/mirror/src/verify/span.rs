//! What of two logs can be compared, and what their ends alone tell.

use super::options::Options;
use super::report::{Both, Bounds, Difference, Range};

/// The common part of two logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) range: Range,
    /// Both logs end where the range does.
    pub(super) to_the_end: bool,
    /// Offsets that the target is behind the source.
    pub(super) behind: i64,
    pub(super) differences: Vec<Difference>,
    pub(super) notes: Vec<String>,
}

impl Span {
    /// Of these logs, within the offsets asked for.
    ///
    /// # Errors
    /// The logs have nothing in common though both have something; in words.
    pub(super) fn of(bounds: Both<Bounds>, options: &Options) -> Result<Self, String> {
        let low = |offset: i64| options.from_offset.map_or(offset, |from| offset.max(from));
        let high = |offset: i64| options.to_offset.map_or(offset, |to| offset.min(to));
        let Both { source: s, target: t } = bounds;
        let (s_start, t_start) = (low(s.start), low(t.start));
        let (s_end, t_end) = (high(s.end).max(s_start), high(t.end).max(t_start));
        let from = s_start.max(t_start);
        let mut span = Self {
            range: Range { from, to: s_end.min(t_end).max(from) },
            to_the_end: s.end == t.end && high(s.end) == s.end,
            behind: 0,
            differences: Vec::new(),
            notes: Vec::new(),
        };
        let is_empty = t.start == t.end;
        if t_end < s_start && !is_empty {
            return Err(format!(
                "no offset is held by both: the source begins at {}, the target ends at {}",
                s.start, t.end
            ));
        }
        if t_start > s_start {
            let what = format!("the target begins at offset {}, the source at {}", t.start, s.start);
            span.differences.push(Difference::new(s_start, what));
        } else if s_start > t_start && !is_empty {
            span.notes.push(format!(
                "the source begins at offset {}, and the target still has what it deleted, from {} on: not compared",
                s.start, t.start
            ));
        }
        if t_end > s_end {
            let what =
                format!("the target ends at offset {}, beyond the source, which ends at {}", t.end, s.end);
            span.differences.push(Difference::new(s_end, what));
        } else {
            span.behind = s_end.saturating_sub(t_end.max(s_start));
            // Nothing was copied of what the source has deleted since, so its end alone is behind.
            if s_end > t_end && span.behind == 0 {
                span.behind = s_end.saturating_sub(t_end);
            }
        }
        if span.range.from == span.range.to && s.start < s.end && t.start < t.end && span.behind == 0 {
            span.notes.push("there are no offsets in the range asked for".to_owned());
        }
        Ok(span)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::cluster::ClusterConfig;

    fn span(
        source: (i64, i64),
        target: (i64, i64),
        asked: (Option<i64>, Option<i64>),
    ) -> Result<Span, String> {
        let log = |(start, end)| Bounds { start, end, last_stable_offset: end };
        let cluster = ClusterConfig::new(["a:1"]);
        let mut options = Options::new(cluster.clone(), cluster, Vec::new());
        (options.from_offset, options.to_offset) = asked;
        Span::of(Both { source: log(source), target: log(target) }, &options)
    }

    #[test]
    fn the_common_part_and_what_the_ends_tell() {
        let all = (None, None);
        let tell = |source, target, asked| {
            let span = span(source, target, asked).unwrap();
            let offsets: Vec<_> = span.differences.iter().filter_map(|one| one.offset).collect();
            (span.range.from, span.range.to, span.behind, offsets, span.notes.len(), span.to_the_end)
        };
        assert_eq!(tell((0, 10), (0, 10), all), (0, 10, 0, vec![], 0, true));
        assert_eq!(tell((0, 10), (0, 7), all), (0, 7, 3, vec![], 0, false));
        assert_eq!(tell((0, 10), (0, 12), all), (0, 10, 0, vec![10], 0, false));
        assert_eq!(tell((0, 10), (4, 10), all), (4, 10, 0, vec![0], 0, true));
        assert_eq!(tell((4, 10), (0, 10), all), (4, 10, 0, vec![], 1, true));
        assert_eq!(tell((5, 10), (0, 0), all), (5, 5, 5, vec![], 0, false));
        assert_eq!(tell((10, 10), (0, 0), all), (10, 10, 10, vec![], 0, false));
        assert_eq!(tell((0, 0), (0, 0), all), (0, 0, 0, vec![], 0, true));
        assert_eq!(tell((0, 10), (4, 12), (Some(5), Some(8))), (5, 8, 0, vec![], 0, false));
        assert_eq!(tell((0, 10), (0, 7), (None, Some(7))), (0, 7, 0, vec![], 0, false));
        assert_eq!(tell((0, 10), (0, 10), (Some(20), None)), (20, 20, 0, vec![], 1, true));
        assert!(span((8, 10), (0, 5), all).is_err());
    }
}
