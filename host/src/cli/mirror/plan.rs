//! `verbatim mirror --dry-run`: what would be created and copied, and with which settings.

use verbatim::mirror::mirror::{MirrorConfig, PlannedTopic, Step, plan};

use super::super::output::{Output, table};

/// Shows the plan; an error if some topic cannot be mirrored.
pub(super) async fn show(config: &MirrorConfig, output: Output) -> anyhow::Result<()> {
    let planned = plan(config).await?;
    for topic in &planned {
        output.write(topic, || text(topic))?;
    }
    let stopped = planned.iter().filter(|topic| topic.step == Step::Stop).count();
    anyhow::ensure!(stopped == 0, "{stopped} of {} topics cannot be mirrored", planned.len());
    Ok(())
}

fn text(planned: &PlannedTopic) -> String {
    let what = what(planned);
    let topic = &planned.topic;
    let because = planned.reason.iter().map(|reason| format!(": {reason}"));
    let remedy = planned.remedy.iter().map(|remedy| format!("; remedy: {remedy}"));
    let because: String = because.chain(remedy).collect();
    let mut parts = vec![format!("{topic} (id {}) {what}{because}", planned.source_topic_id)];
    parts.extend(planned.settings.iter().map(|(name, value)| match value {
        Some(value) => format!("{topic}: {name}={value}"),
        None => format!("{topic}: {name} would be removed"),
    }));
    parts.extend(
        planned.secret.iter().map(|name| {
            format!("{topic}: {name} would not be carried over: the source keeps its value secret")
        }),
    );
    parts.extend(planned.notes.iter().map(|note| format!("{topic}: {note}")));
    let heading = ["TOPIC", "PARTITION", "SOURCE START", "SOURCE END", "END", "OFFSETS TO COPY"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(planned.partitions.iter().map(|partition| {
        let from = partition.end.max(partition.source_start);
        vec![
            topic.clone(),
            partition.partition.to_string(),
            partition.source_start.to_string(),
            partition.source_end.to_string(),
            if partition.end < 0 { "none".to_owned() } else { partition.end.to_string() },
            match planned.step {
                Step::Create | Step::GoOn => partition.source_end.saturating_sub(from).max(0).to_string(),
                Step::Pause | Step::Stop => "0".to_owned(),
            },
        ]
    }));
    parts.push(table(&rows));
    parts.join("\n")
}

/// What the destination has of the topic, and what would become of it.
fn what(planned: &PlannedTopic) -> String {
    let wanted = planned.partitions.len();
    let there = planned.copy.map_or_else(
        || "is not there".to_owned(),
        |copy| {
            let kind = if copy.exact { "exact" } else { "not exact" };
            format!("is there, {kind}, partitions {}", copy.partitions)
        },
    );
    let more = planned.copy.map_or(0, |copy| wanted.saturating_sub(copy.partitions));
    match planned.step {
        Step::Create => format!("{there}: it would be created and copied, partitions {wanted}"),
        Step::GoOn if more > 0 => format!("{there}: its copy would go on, partitions added {more}"),
        Step::GoOn => format!("{there}: its copy would go on"),
        Step::Pause => format!("{there}: it is paused and would not be copied"),
        Step::Stop => format!("{there}: it cannot be mirrored"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use verbatim::mirror::mirror::{PlannedCopy, PlannedPartition};

    use super::*;

    #[test]
    fn a_plan_tells_settings_and_what_is_to_be_copied() {
        let partition =
            |partition, end| PlannedPartition { partition, source_start: 10, source_end: 100, end };
        let mut planned = PlannedTopic {
            topic: "a".to_owned(),
            source_topic_id: "ID".to_owned(),
            step: Step::GoOn,
            copy: Some(PlannedCopy { exact: true, partitions: 1 }),
            reason: None,
            remedy: None,
            settings: BTreeMap::from([
                ("cleanup.policy".to_owned(), Some("compact".to_owned())),
                ("segment.ms".to_owned(), None),
            ]),
            secret: vec!["hidden".to_owned()],
            notes: vec!["partition 0: something".to_owned()],
            partitions: vec![partition(0, 60), partition(1, -1), partition(2, 120)],
        };
        let expected = "\
a (id ID) is there, exact, partitions 1: its copy would go on, partitions added 2
a: cleanup.policy=compact
a: segment.ms would be removed
a: hidden would not be carried over: the source keeps its value secret
a: partition 0: something
TOPIC  PARTITION  SOURCE START  SOURCE END  END   OFFSETS TO COPY
a      0          10            100         60    40
a      1          10            100         none  90
a      2          10            100         120   0";
        assert_eq!(text(&planned), expected);
        planned.step = Step::Stop;
        planned.copy = Some(PlannedCopy { exact: false, partitions: 3 });
        planned.reason = Some("it is not exact".to_owned());
        planned.remedy = Some("delete it".to_owned());
        let told = text(&planned);
        let told = told.lines().next().unwrap_or_default();
        assert_eq!(
            told,
            "a (id ID) is there, not exact, partitions 3: it cannot be mirrored: it is not exact; remedy: delete it"
        );
        planned.copy = None;
        for (step, told) in [
            (Step::Create, "is not there: it would be created and copied, partitions 3"),
            (Step::Pause, "is not there: it is paused and would not be copied"),
        ] {
            planned.step = step;
            assert_eq!(what(&planned), told);
        }
    }
}
