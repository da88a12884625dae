//! Carries committed offsets of consumer groups over, with no translation: same offset, leader epoch and metadata.
//!
//! - An offset is committed at the destination only once the copy reaches it; until then the one before stays.
//! - A group with members at the destination is left alone, as its coordinator sees to as well.
//! - An offset goes back only if it is the one that was carried last and the source's went back: then nobody read at the
//!   destination meanwhile. What was carried last is known to this mirror alone, so after a restart none goes back.
//! - What is not carried is told with its reason. Offsets that the source removed stay at the destination.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use verbatim_wire::error::describe;

use super::backoff::Backoff;
use super::config::Patterns;
use super::links::Links;
use super::state::{GroupStatus, PartitionStatus, State};
use crate::cluster::{ClusterError, GroupOffset, Partition};

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(5);
/// How long the last round may take.
const LAST_ROUND_MAX: Duration = Duration::from_secs(30);
/// The group has members, so offsets from outside are refused.
const UNKNOWN_MEMBER_ID: i16 = 25;

/// Group and partition.
type Place = (String, Partition);

/// Whoever carries offsets.
pub(super) struct Carrier {
    links: Arc<Links>,
    groups: Patterns,
    /// The offsets that were carried last.
    carried: BTreeMap<Place, i64>,
}

/// What is to be done about one offset.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It is there.
    Same,
    Carry,
    /// Not now, and why.
    Keep(String),
}

impl Carrier {
    pub(super) fn new(links: Arc<Links>) -> Self {
        let groups = Patterns::new(&links.config.groups);
        Self { links, groups, carried: BTreeMap::new() }
    }

    /// Round by round until `stop`; a last one then, for what was copied at last, if everything is to be caught up.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        if self.links.config.groups.is_empty() {
            return;
        }
        let mut backoff = Backoff::default();
        loop {
            let round = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                round = self.round() => round,
            };
            let pause = match round {
                Ok(()) => {
                    backoff.succeed();
                    INTERVAL
                }
                Err(error) => {
                    tracing::warn!(%error, "committed offsets were not carried, it is tried again");
                    backoff.fail().max(INTERVAL)
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(pause) => {}
            }
        }
        if self.links.config.once {
            match timeout(LAST_ROUND_MAX, self.round()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "committed offsets were not carried at the end"),
                Err(_) => tracing::error!("committed offsets were not carried at the end: no time was left"),
            }
        }
    }

    /// Looks at all groups once.
    async fn round(&mut self) -> Result<(), ClusterError> {
        let mut groups = self.links.source.groups().await?;
        groups.retain(|(group, _)| self.groups.matches(group));
        let mut statuses = Vec::new();
        let mut failed = None;
        for (group, node) in groups {
            // One group that cannot be carried does not stop the others.
            match self.group(&group, node).await {
                Ok(carried) => statuses.extend(carried),
                Err(error) => failed = Some(error),
            }
        }
        statuses.sort_by(|a, b| (&a.group, &a.topic, a.partition).cmp(&(&b.group, &b.topic, b.partition)));
        self.links.board.set_groups(statuses);
        failed.map_or(Ok(()), Err)
    }

    async fn group(&mut self, group: &str, node: i32) -> Result<Vec<GroupStatus>, ClusterError> {
        let target = &self.links.target;
        let wanted = self.links.source.group_offsets(node, group).await?;
        let coordinator = target.coordinator(group).await?;
        // Asked first, so that offsets are those of a group that had no members.
        let lives = target.has_members(coordinator, group).await?;
        let there: BTreeMap<Partition, GroupOffset> = target
            .group_offsets(coordinator, group)
            .await?
            .into_iter()
            .map(|one| (one.partition.clone(), one))
            .collect();
        let mut statuses = Vec::with_capacity(wanted.len());
        let mut due = Vec::new();
        for offset in wanted {
            let found = there.get(&offset.partition);
            let copy = self.links.board.find(&offset.partition);
            let last = self.carried.get(&(group.to_owned(), offset.partition.clone())).copied();
            let verdict = judge(&offset, found, copy.as_ref(), lives, last);
            let mut status = status(group, &offset, found);
            match verdict {
                Verdict::Same => {}
                Verdict::Keep(reason) => status.reason = Some(reason),
                Verdict::Carry => due.push((statuses.len(), offset)),
            }
            statuses.push(status);
        }
        self.commit(group, coordinator, due, &mut statuses).await?;
        Ok(statuses)
    }

    async fn commit(
        &mut self,
        group: &str,
        coordinator: i32,
        due: Vec<(usize, GroupOffset)>,
        statuses: &mut [GroupStatus],
    ) -> Result<(), ClusterError> {
        if due.is_empty() {
            return Ok(());
        }
        let (places, offsets): (Vec<usize>, Vec<GroupOffset>) = due.into_iter().unzip();
        let codes = self.links.target.commit_group_offsets(coordinator, group, &offsets).await?;
        for ((place, offset), code) in places.into_iter().zip(offsets).zip(codes) {
            let Some(status) = statuses.get_mut(place) else { continue };
            match code {
                0 => {
                    status.offset = offset.offset;
                    self.carried.insert((group.to_owned(), offset.partition), offset.offset);
                }
                UNKNOWN_MEMBER_ID => status.reason = Some(has_members()),
                code => status.reason = Some(format!("the destination refused it: {}", describe(code))),
            }
        }
        Ok(())
    }
}

fn status(group: &str, offset: &GroupOffset, found: Option<&GroupOffset>) -> GroupStatus {
    GroupStatus {
        group: group.to_owned(),
        topic: offset.partition.topic.clone(),
        partition: offset.partition.index,
        source_offset: offset.offset,
        offset: found.map_or(-1, |found| found.offset),
        reason: None,
    }
}

fn has_members() -> String {
    "the group has members at the destination".to_owned()
}

/// What becomes of an offset of the source, given the destination's, the copy, and the offset that was carried last.
fn judge(
    wanted: &GroupOffset,
    found: Option<&GroupOffset>,
    copy: Option<&PartitionStatus>,
    lives: bool,
    last: Option<i64>,
) -> Verdict {
    if found == Some(wanted) {
        return Verdict::Same;
    }
    let Some(copy) = copy else { return Verdict::Keep("the partition is not mirrored".to_owned()) };
    if lives {
        return Verdict::Keep(has_members());
    }
    if !matches!(copy.state, State::Mirroring | State::CaughtUp) {
        return Verdict::Keep("the partition is not being mirrored at present".to_owned());
    }
    if wanted.offset > copy.end {
        return Verdict::Keep(format!("the copy ends before it, at {}", copy.end));
    }
    let before = found.map_or(-1, |found| found.offset);
    if before > wanted.offset && last != Some(before) {
        return Verdict::Keep(format!("the destination's is further, at {before}"));
    }
    Verdict::Carry
}

#[cfg(test)]
#[expect(clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    fn offset(offset: i64) -> GroupOffset {
        let partition = Partition { topic: "t".to_owned(), index: 0 };
        GroupOffset { partition, offset, leader_epoch: 3, metadata: "m".to_owned() }
    }

    fn copy(state: State, end: i64) -> PartitionStatus {
        PartitionStatus {
            topic: "t".to_owned(),
            partition: 0,
            state,
            reason: None,
            remedy: None,
            end,
            source_start: 0,
            source_end: end,
            source_epoch: 3,
            lag_records: 0,
            lag_ms: 0,
            batches: 0,
            records: 0,
            bytes: 0,
            skipped: Vec::new(),
        }
    }

    fn kept(verdict: Verdict) -> String {
        match verdict {
            Verdict::Keep(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_offset_is_carried_once_the_copy_reaches_it() {
        let at = |end| copy(State::Mirroring, end);
        assert_eq!(judge(&offset(10), None, Some(&at(10)), false, None), Verdict::Carry);
        assert_eq!(judge(&offset(10), Some(&offset(4)), Some(&at(10)), false, None), Verdict::Carry);
        assert!(kept(judge(&offset(10), None, Some(&at(9)), false, None)).contains("at 9"));
        assert_eq!(judge(&offset(10), Some(&offset(10)), None, true, None), Verdict::Same);
        let other_epoch = GroupOffset { leader_epoch: 2, ..offset(10) };
        assert_eq!(judge(&offset(10), Some(&other_epoch), Some(&at(10)), false, None), Verdict::Carry);
    }

    #[test]
    fn what_is_not_mirrored_or_read_at_the_destination_is_left_alone() {
        let caught_up = copy(State::CaughtUp, 10);
        assert!(kept(judge(&offset(5), None, None, false, None)).contains("not mirrored"));
        assert!(kept(judge(&offset(5), None, Some(&caught_up), true, None)).contains("members"));
        for state in [State::Aligning, State::Diverged, State::TargetNotExact, State::SourceTruncated] {
            let stopped = copy(state, 10);
            assert!(kept(judge(&offset(5), None, Some(&stopped), false, None)).contains("at present"));
        }
    }

    #[test]
    fn an_offset_goes_back_only_where_the_sources_did_and_nobody_read_meanwhile() {
        let copy = copy(State::CaughtUp, 10);
        let at = |last| judge(&offset(5), Some(&offset(8)), Some(&copy), false, last);
        assert_eq!(at(Some(8)), Verdict::Carry);
        assert!(kept(at(Some(7))).contains("further, at 8"));
        assert!(kept(at(None)).contains("further, at 8"));
    }
}
