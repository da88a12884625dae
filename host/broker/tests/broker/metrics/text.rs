//! A strict reader of the two texts, which takes nothing that Prometheus would not.

use std::collections::{BTreeMap, BTreeSet};

/// What a text says.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// Families in their order, with their types.
    pub(super) families: Vec<(String, String)>,
    /// Every series, its labels in the order of the text: `name{a="1"}`.
    pub(super) series: BTreeMap<String, f64>,
}

impl Text {
    /// Reads OpenMetrics 1.0.
    pub(super) fn open_metrics(text: &str) -> Self {
        let (text, rest) = text.split_once("# EOF\n").unwrap();
        assert_eq!(rest, "", "nothing follows the end");
        Self::read(text, true)
    }

    /// Reads Prometheus' format 0.0.4.
    pub(super) fn prometheus(text: &str) -> Self {
        Self::read(text, false)
    }

    /// A series' value; 0 if it is not there.
    pub(super) fn of(&self, series: &str) -> f64 {
        self.series.get(series).copied().unwrap_or(0.0)
    }

    fn read(text: &str, is_open: bool) -> Self {
        assert!(text.ends_with('\n'));
        let (mut read, mut seen) = (Self::default(), BTreeSet::new());
        for line in text.lines() {
            match line.strip_prefix("# ") {
                Some(comment) => read.comment(comment, &mut seen),
                None => read.sample(line, is_open),
            }
        }
        read.check_histograms();
        read
    }

    fn comment(&mut self, comment: &str, seen: &mut BTreeSet<String>) {
        let (kind, rest) = comment.split_once(' ').unwrap();
        let (name, said) = rest.split_once(' ').unwrap();
        assert!(seen.insert(format!("{kind} {name}")), "{kind} of {name} comes twice");
        match kind {
            "HELP" => assert!(said.ends_with('.'), "{comment}"),
            "TYPE" => {
                assert!(seen.contains(&format!("HELP {name}")), "{name} has no help before its type");
                self.families.push((name.to_owned(), said.to_owned()));
            }
            "UNIT" => {
                assert_eq!(self.families.last().unwrap().0, name);
                assert!(name.ends_with(&format!("_{said}")), "{comment}");
            }
            _ => assert_eq!(kind, "HELP, TYPE or UNIT"),
        }
    }

    fn sample(&mut self, line: &str, is_open: bool) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').map_or((series, None), |(name, rest)| (name, Some(rest)));
        let (family, kind) = self.families.last().unwrap();
        let suffixes: &[&str] = match (kind.as_str(), is_open) {
            ("counter", true) => &["_total"],
            ("histogram", _) => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        let suffix = name.strip_prefix(family.as_str());
        assert!(
            suffix.is_some_and(|suffix| suffixes.contains(&suffix)),
            "{line} is no part of {family} ({kind})"
        );
        if let Some(labels) = labels {
            check_labels(labels.strip_suffix('}').unwrap());
        }
        let value: f64 = value.parse().unwrap();
        assert!(value.is_finite() && (kind == "gauge" || value >= 0.0), "{line}");
        assert!(self.series.insert(series.to_owned(), value).is_none(), "{series} comes twice");
    }

    /// Buckets rise with their bounds, and the last one holds all.
    fn check_histograms(&self) {
        let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (series, value) in &self.series {
            let Some((name, labels)) = series.split_once("_bucket{") else { continue };
            let (bounds, others): (Vec<&str>, Vec<&str>) =
                labels.trim_end_matches('}').split(',').partition(|label| label.starts_with("le="));
            let bound = bounds[0].trim_start_matches("le=\"").trim_end_matches('"');
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
            let others = if others.is_empty() { String::new() } else { format!("{{{}}}", others.join(",")) };
            buckets.entry(format!("{name}_count{others}")).or_default().push((bound, *value));
        }
        assert!(!buckets.is_empty());
        for (count, mut buckets) in buckets {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{count}: buckets fall");
            assert_eq!(*buckets.last().unwrap(), (f64::INFINITY, self.series[&count]), "{count}");
        }
    }
}

fn check_labels(labels: &str) {
    let mut rest = labels;
    let mut names = BTreeSet::new();
    while !rest.is_empty() {
        let (name, quoted) = rest.split_once("=\"").unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{labels}");
        assert!(names.insert(name), "{labels}: {name} comes twice");
        let end = quoted.find('"').unwrap();
        assert!(!quoted[..end].contains('\\'), "no label here needs an escape");
        rest = &quoted[end + 1..];
        if !rest.is_empty() {
            rest = rest.strip_prefix(',').unwrap();
            assert!(!rest.is_empty(), "{labels}");
        }
    }
}
