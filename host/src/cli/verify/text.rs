//! A report for people: a table, and below it what needs more words.

use verbatim::mirror::verify::{BatchHeader, Difference, PartitionReport, Report, Verdict};

use super::super::output::table;

pub(super) fn report(report: &Report) -> String {
    let mut parts = Vec::new();
    let heading = ["PARTITION", "VERDICT", "RANGE", "BATCHES", "RECORDS", "BYTES", "DIGEST"];
    let mut rows = vec![heading.map(ToOwned::to_owned).to_vec()];
    rows.extend(report.partitions.iter().map(row));
    parts.push(table(&rows));
    parts.extend(report.partitions.iter().filter_map(details));
    if !report.groups.is_empty() {
        let heading = ["GROUP", "PARTITION", "VERDICT", "WHY"].map(ToOwned::to_owned).to_vec();
        let rows = report.groups.iter().map(|group| {
            let partition = format!("{}-{}", group.topic, group.partition);
            vec![group.group.clone(), partition, group.verdict.to_string(), group.reason.clone()]
        });
        parts.push(table(&std::iter::once(heading).chain(rows).collect::<Vec<_>>()));
    }
    parts.push(summary(report));
    parts.join("\n\n")
}

fn row(partition: &PartitionReport) -> Vec<String> {
    let none = || "-".to_owned();
    let sampled = if partition.sampled.is_some() { " (sampled)" } else { "" };
    let count = partition.count.source;
    vec![
        format!("{}-{}", partition.topic, partition.partition),
        format!("{}{sampled}", partition.verdict),
        partition.range.map_or_else(none, |range| range.to_string()),
        count.batches.to_string(),
        count.records.to_string(),
        count.bytes.to_string(),
        digests(partition).unwrap_or_else(none),
    ]
}

/// One digest if both sides have the same, else both.
fn digests(partition: &PartitionReport) -> Option<String> {
    let digest = partition.digest;
    match (digest.source, digest.target) {
        (Some(source), Some(target)) if source != target => {
            Some(format!("{} / {}", source.short(), target.short()))
        }
        (source, target) => source.or(target).map(|digest| digest.short()),
    }
}

fn details(partition: &PartitionReport) -> Option<String> {
    let mut lines = Vec::new();
    if !partition.reason.is_empty() {
        lines.push(format!("  {}", partition.reason));
    }
    if let Some(redacted) = partition.redacted.as_ref().filter(|_| partition.verdict != Verdict::Redacted) {
        lines.push(format!("  as far as it was compared {redacted}"));
    }
    lines.extend(partition.difference.iter().flat_map(headers));
    if let Some(sampled) = &partition.sampled {
        let offsets: i64 = sampled.windows.iter().map(|window| window.to.saturating_sub(window.from)).sum();
        lines.push(format!(
            "  sampled: {offsets} offsets in {} windows, fraction {}, seed {}; the others were not looked at",
            sampled.windows.len(),
            sampled.fraction,
            sampled.seed
        ));
    }
    if let Some(at) = partition.resumed_from {
        lines.push(format!("  gone on from offset {at}, up to which an earlier run found no difference"));
    }
    lines.extend(partition.notes.iter().map(|note| format!("  note: {note}")));
    let name = format!("{}-{}: {}", partition.topic, partition.partition, partition.verdict);
    (!lines.is_empty()).then(|| format!("{name}\n{}", lines.join("\n")))
}

/// Both headers side by side.
fn headers(difference: &Difference) -> Vec<String> {
    let (source, target) = (difference.batches.source.as_deref(), difference.batches.target.as_deref());
    if source.is_none() && target.is_none() {
        return Vec::new();
    }
    let (source, target) = (fields(source), fields(target));
    let mut rows = vec![["", "SOURCE", "TARGET", ""].map(ToOwned::to_owned).to_vec()];
    for ((name, s), (_, t)) in source.into_iter().zip(target) {
        let mark = if s == t { "" } else { "<" };
        rows.push(vec![name.to_owned(), s, t, mark.to_owned()]);
    }
    table(&rows).lines().map(|line| format!("    {line}")).collect()
}

fn fields(header: Option<&BatchHeader>) -> Vec<(&'static str, String)> {
    let told = |tell: &dyn Fn(&BatchHeader) -> String| header.map_or_else(|| "-".to_owned(), tell);
    let optional = |number: Option<i64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    vec![
        ("baseOffset", told(&|header| header.base_offset.to_string())),
        ("lastOffset", told(&|header| optional(header.last_offset))),
        ("bytes", told(&|header| optional(header.bytes.and_then(|bytes| i64::try_from(bytes).ok())))),
        ("leaderEpoch", told(&|header| header.leader_epoch.to_string())),
        ("attributes", told(&|header| format!("{:04x} {}", header.attributes, kinds(header)))),
        ("baseTimestamp", told(&|header| header.base_timestamp.to_string())),
        ("maxTimestamp", told(&|header| header.max_timestamp.to_string())),
        ("producerId", told(&|header| header.producer_id.to_string())),
        ("producerEpoch", told(&|header| header.producer_epoch.to_string())),
        ("baseSequence", told(&|header| header.base_sequence.to_string())),
        ("records", told(&|header| header.records.to_string())),
        ("crc", told(&|header| header.crc.clone())),
    ]
}

fn kinds(header: &BatchHeader) -> String {
    let flags = [(header.transactional, "transactional"), (header.control, "control")];
    let flags = flags.into_iter().filter(|(on, _)| *on).map(|(_, name)| name);
    let kinds = [header.codec.as_str(), header.timestamp_type.as_str()].into_iter().chain(flags);
    kinds.collect::<Vec<_>>().join(",")
}

/// How many have which verdict, the worst last, where it is seen.
fn summary(report: &Report) -> String {
    let verdicts = [
        Verdict::Digest,
        Verdict::Identical,
        Verdict::CompactedEqual,
        Verdict::Redacted,
        Verdict::Behind,
        Verdict::Missing,
        Verdict::Undecided,
        Verdict::Diverged,
    ];
    let all = || {
        let partitions = report.partitions.iter().map(|partition| partition.verdict);
        partitions.chain(report.groups.iter().map(|group| group.verdict))
    };
    let counts = verdicts.into_iter().filter_map(|verdict| {
        let count = all().filter(|one| *one == verdict).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    counts.collect::<Vec<_>>().join(", ")
}
