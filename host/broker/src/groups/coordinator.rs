//! All groups that have, or lately had, members: found by id, bounded, each ticked when its time comes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use verbatim_wire::error::ErrorCode;

use super::asked::{Answer, Due, Join, Joined, Sync, Synced, Token, Who};
use super::group::{Group, Rules};

/// Longest group id in bytes.
const ID_BYTES_MAX: usize = 1_000;

/// How much all groups together may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Groups with members, or that had some since the last look for unused ones.
    pub(crate) groups_max: usize,
    /// Bytes of members' metadata and assignments, names and fixed sizes included.
    pub(crate) bytes_max: usize,
}

/// Kept in step with its group: what it weighs, and when it is ticked.
struct Entry {
    group: Group,
    bytes: usize,
    deadline: Option<u64>,
}

pub(crate) struct Coordinator {
    rules: Rules,
    bounds: Bounds,
    groups: BTreeMap<Arc<str>, Entry>,
    timers: BTreeSet<(u64, Arc<str>)>,
    bytes: usize,
}

/// Judges a group's id.
pub(crate) fn check_id(id: &str) -> Result<(), ErrorCode> {
    if (1..=ID_BYTES_MAX).contains(&id.len()) { Ok(()) } else { Err(ErrorCode::InvalidGroupId) }
}

impl Coordinator {
    pub(crate) fn new(rules: Rules, bounds: Bounds) -> Self {
        Self { rules, bounds, groups: BTreeMap::new(), timers: BTreeSet::new(), bytes: 0 }
    }

    pub(crate) fn group(&self, id: &str) -> Option<&Group> {
        self.groups.get(id).map(|entry| &entry.group)
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = (&Arc<str>, &Group)> {
        self.groups.iter().map(|(id, entry)| (id, &entry.group))
    }

    /// When [`Self::tick`] has something to do.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    pub(crate) fn join(&mut self, now: u64, id: &str, join: &Join, token: Token, due: &mut Due) {
        if let Err(error) = self.make_room(now, id, join) {
            due.push((token, Answer::Join(Joined::refused(&join.member_id, error))));
            return;
        }
        let rules = self.rules;
        self.with(id, |group| group.join(now, &rules, join, token, due));
    }

    /// The group is there when this returns.
    fn make_room(&mut self, now: u64, id: &str, join: &Join) -> Result<(), ErrorCode> {
        check_id(id)?;
        if self.bytes.saturating_add(join.bytes()) > self.bounds.bytes_max {
            self.forget_unused(|_| true);
            if self.bytes.saturating_add(join.bytes()) > self.bounds.bytes_max {
                return Err(ErrorCode::GroupMaxSizeReached);
            }
        }
        if self.groups.contains_key(id) {
            return Ok(());
        }
        if !join.member_id.is_empty() {
            return Err(ErrorCode::UnknownMemberId);
        }
        if self.groups.len() >= self.bounds.groups_max {
            self.forget_unused(|_| true);
        }
        if self.groups.len() >= self.bounds.groups_max {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        self.groups.insert(id.into(), Entry { group: Group::new(now), bytes: 0, deadline: None });
        Ok(())
    }

    pub(crate) fn sync(&mut self, now: u64, id: &str, who: Who<'_>, sync: Sync, token: Token, due: &mut Due) {
        let bytes = sync.assignments.iter().map(|(_, bytes)| bytes.len()).fold(0, usize::saturating_add);
        let fits = self.bytes.saturating_add(bytes) <= self.bounds.bytes_max;
        let refused = match self.groups.contains_key(id) {
            true if fits => {
                self.with(id, |group| group.sync(now, who, sync, token, due));
                return;
            }
            true => ErrorCode::GroupMaxSizeReached,
            false => ErrorCode::UnknownMemberId,
        };
        due.push((token, Answer::Sync(Synced::refused(refused))));
    }

    pub(crate) fn heartbeat(&mut self, now: u64, id: &str, who: Who<'_>) -> Result<(), ErrorCode> {
        check_id(id)?;
        self.with(id, |group| group.heartbeat(now, who)).unwrap_or(Err(ErrorCode::UnknownMemberId))
    }

    pub(crate) fn leave(
        &mut self,
        now: u64,
        id: &str,
        member: (&str, Option<&str>),
        due: &mut Due,
    ) -> Result<(), ErrorCode> {
        check_id(id)?;
        let rules = self.rules;
        self.with(id, |group| group.leave(now, &rules, member, due))
            .unwrap_or(Err(ErrorCode::UnknownMemberId))
    }

    /// Whether offsets may be committed. A group that is not there takes those of one who is no member.
    pub(crate) fn commit(&mut self, now: u64, id: &str, who: Who<'_>) -> Result<(), ErrorCode> {
        check_id(id)?;
        let absent = if who.generation < 0 { Ok(()) } else { Err(ErrorCode::IllegalGeneration) };
        self.with(id, |group| group.commit(now, who)).unwrap_or(absent)
    }

    /// Whether the group may be deleted, which it is then but for its offsets; whether it was there.
    pub(crate) fn delete(&mut self, id: &str) -> Result<bool, ErrorCode> {
        match self.group(id).map(Group::is_unused) {
            Some(false) => Err(ErrorCode::NonEmptyGroup),
            Some(true) => {
                self.forget(id);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Ticks all groups whose time has come.
    pub(crate) fn tick(&mut self, now: u64, due: &mut Due) {
        while let Some((at, id)) = self.timers.first().cloned()
            && at <= now
        {
            let rules = self.rules;
            self.timers.remove(&(at, Arc::clone(&id)));
            self.with(&id, |group| group.tick(now, &rules, due));
        }
    }

    /// Forgets groups without members that `may` name.
    pub(crate) fn forget_unused(&mut self, may: impl Fn(&str) -> bool) {
        let unused =
            |(id, entry): (&Arc<str>, &Entry)| (entry.group.is_unused() && may(id)).then(|| Arc::clone(id));
        let unused: Vec<Arc<str>> = self.groups.iter().filter_map(unused).collect();
        unused.iter().for_each(|id| self.forget(id));
    }

    fn forget(&mut self, id: &str) {
        let Some((id, entry)) = self.groups.remove_entry(id) else { return };
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        if let Some(at) = entry.deadline {
            self.timers.remove(&(at, id));
        }
    }

    /// Does something to a group, and keeps weight and timer in step.
    fn with<T>(&mut self, id: &str, act: impl FnOnce(&mut Group) -> T) -> Option<T> {
        let (id, _) = self.groups.get_key_value(id)?;
        let id = Arc::clone(id);
        let entry = self.groups.get_mut(&id)?;
        let outcome = act(&mut entry.group);
        let bytes = entry.group.bytes();
        self.bytes = self.bytes.saturating_sub(entry.bytes).saturating_add(bytes);
        entry.bytes = bytes;
        let deadline = entry.group.deadline();
        if let Some(at) = entry.deadline {
            self.timers.remove(&(at, Arc::clone(&id)));
        }
        self.timers.extend(deadline.map(|at| (at, id)));
        entry.deadline = deadline;
        Some(outcome)
    }
}
