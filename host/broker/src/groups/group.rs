//! One group: its members, its generation, and what they may ask (Kafka's classic group protocol).
//!
//! Nothing here waits or reads a clock: time comes in as milliseconds, answers that become due go out as [`Due`]. How a
//! generation comes about is in `rebalance`.

use std::collections::BTreeMap;

use verbatim_wire::error::ErrorCode;

use super::asked::{Answer, Due, Join, Joined, Sync, Synced, Token, Who};
use super::member::Member;

/// What is allowed, beside what members ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Members of a group (Kafka's `group.max.size`).
    pub(crate) members_max: usize,
    /// How long an empty group waits for more members before its first generation.
    pub(crate) initial_delay_ms: u64,
    /// Session timeouts that members may ask for.
    pub(crate) session_ms: (u64, u64),
}

/// Where a group is. One that is gone is not kept, and told as `Dead`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No members; perhaps committed offsets.
    Empty,
    /// Members are expected to join.
    PreparingRebalance,
    /// The leader is expected to hand out the assignment.
    CompletingRebalance,
    /// Everybody has an assignment.
    Stable,
}

impl State {
    /// Kafka's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// When members stop being waited for, and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JoinTimer {
    pub(super) at: u64,
    /// Milliseconds by which a first generation may still be put off; `None` for later ones.
    pub(super) more: Option<u64>,
}

/// A consumer group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(super) state: State,
    /// When it came into this state.
    pub(super) since: u64,
    pub(super) generation: i32,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) members: BTreeMap<String, Member>,
    /// Member ids by instance.
    pub(super) statics: BTreeMap<String, String>,
    /// Ids that were given and did not join yet, and until when they may.
    pub(super) pending: BTreeMap<String, u64>,
    pub(super) join_timer: Option<JoinTimer>,
    pub(super) sync_until: Option<u64>,
    /// A member came while a first generation was waited for.
    pub(super) grew: bool,
}

impl Group {
    pub(crate) fn new(now: u64) -> Self {
        Self {
            state: State::Empty,
            since: now,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            statics: BTreeMap::new(),
            pending: BTreeMap::new(),
            join_timer: None,
            sync_until: None,
            grew: false,
        }
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    pub(crate) const fn since(&self) -> u64 {
        self.since
    }

    pub(crate) fn protocol_type(&self) -> &str {
        self.protocol_type.as_deref().unwrap_or_default()
    }

    pub(crate) fn protocol(&self) -> &str {
        self.protocol.as_deref().unwrap_or_default()
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (&String, &Member)> {
        self.members.iter()
    }

    /// Nobody is in it or about to be.
    pub(crate) fn is_unused(&self) -> bool {
        self.state == State::Empty && self.pending.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        let members =
            self.members.iter().map(|(id, member)| id.len().saturating_mul(2).saturating_add(member.bytes()));
        let pending = self.pending.keys().map(|id| id.len().saturating_add(100));
        members.chain(pending).fold(200, usize::saturating_add)
    }

    /// The next time at which [`Self::tick`] has something to do.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let members = self.members.values().filter_map(Member::expires);
        let timers = self.join_timer.map(|timer| timer.at).into_iter().chain(self.sync_until);
        members.chain(self.pending.values().copied()).chain(timers).min()
    }

    /// JoinGroup: answered by `due`, now or later.
    pub(crate) fn join(&mut self, now: u64, rules: &Rules, join: &Join, token: Token, due: &mut Due) {
        let refused = match self.admit(rules, join) {
            Err(error) if error == ErrorCode::GroupMaxSizeReached => Joined::refused("", error),
            Err(error) => Joined::refused(&join.member_id, error),
            Ok(()) if join.member_id.is_empty() => match self.join_anew(now, rules, join, token, due) {
                Some(refused) => refused,
                None => return,
            },
            Ok(()) => match self.join_again(now, rules, join, token, due) {
                Err(error) => Joined::refused(&join.member_id, error),
                Ok(()) => return,
            },
        };
        due.push((token, Answer::Join(refused)));
    }

    fn admit(&self, rules: &Rules, join: &Join) -> Result<(), ErrorCode> {
        if !(rules.session_ms.0..=rules.session_ms.1).contains(&join.session_ms) {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        let fits = match self.state {
            State::Empty => !join.protocol_type.is_empty() && !join.protocols.is_empty(),
            _ => self.protocol_type() == join.protocol_type && self.has_common(&join.protocols),
        };
        if !fits {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        let known = self.members.get(&join.member_id);
        let replaces = join.instance.as_ref().is_some_and(|instance| self.statics.contains_key(instance));
        let has_room = match self.state {
            State::Empty => {
                self.pending.len() < rules.members_max || self.pending.contains_key(&join.member_id)
            }
            State::PreparingRebalance => {
                let waiting = self.members.values().filter(|member| member.joining.is_some()).count();
                known.is_some_and(|member| member.joining.is_some()) || waiting < rules.members_max
            }
            _ => known.is_some() || self.members.len() < rules.members_max,
        };
        if has_room || replaces { Ok(()) } else { Err(ErrorCode::GroupMaxSizeReached) }
    }

    /// One without an id; what it is refused with, if it is.
    fn join_anew(
        &mut self,
        now: u64,
        rules: &Rules,
        join: &Join,
        token: Token,
        due: &mut Due,
    ) -> Option<Joined> {
        let id = join.fresh_id.as_str();
        if let Some(instance) = &join.instance {
            match self.statics.get(instance).cloned() {
                Some(old) => self.replace(now, rules, (&old, id), join, token, due),
                None => self.add(now, rules, id, join, token, due),
            }
            return None;
        }
        if !join.needs_known_id {
            self.add(now, rules, id, join, token, due);
            return None;
        }
        if self.pending.len() >= rules.members_max {
            return Some(Joined::refused("", ErrorCode::GroupMaxSizeReached));
        }
        self.pending.insert(id.to_owned(), now.saturating_add(join.session_ms));
        Some(Joined::refused(id, ErrorCode::MemberIdRequired))
    }

    fn join_again(
        &mut self,
        now: u64,
        rules: &Rules,
        join: &Join,
        token: Token,
        due: &mut Due,
    ) -> Result<(), ErrorCode> {
        let id = join.member_id.as_str();
        if self.pending.contains_key(id) && join.instance.is_none() {
            self.add(now, rules, id, join, token, due);
            return Ok(());
        }
        let member = self.known(id, join.instance.as_deref())?;
        let is_same = member.protocols == join.protocols;
        let told = match self.state {
            State::Empty => return Err(ErrorCode::UnknownMemberId),
            State::CompletingRebalance => is_same,
            // The leader's wish for a rebalance is granted.
            State::Stable => is_same && self.leader.as_deref() != Some(id),
            State::PreparingRebalance => false,
        };
        if told {
            // It did not get the answer of this generation.
            let answer = self.joined(id);
            self.members.get_mut(id).into_iter().for_each(|member| member.heard(now));
            due.push((token, Answer::Join(answer)));
            return Ok(());
        }
        if let Some(member) = self.members.get_mut(id) {
            member.update(join);
            let before = member.joining.replace(token);
            due.extend(before.map(|token| (token, gave_way(id))));
        }
        self.rebalance(now, rules, due);
        Ok(())
    }

    fn add(&mut self, now: u64, rules: &Rules, id: &str, join: &Join, token: Token, due: &mut Due) {
        let mut member = Member::new(join);
        member.joining = Some(token);
        member.deadline = now.saturating_add(super::rebalance::NEW_MEMBER_MS);
        self.pending.remove(id);
        if let Some(instance) = &join.instance {
            self.statics.insert(instance.clone(), id.to_owned());
        }
        if self.state == State::Empty {
            self.protocol_type = Some(join.protocol_type.clone());
        }
        self.grew |= self.state == State::PreparingRebalance && self.generation == 0;
        self.leader.get_or_insert_with(|| id.to_owned());
        self.members.insert(id.to_owned(), member);
        self.rebalance(now, rules, due);
    }

    /// A static member came back under the same name: it takes the place of what it was.
    fn replace(
        &mut self,
        now: u64,
        rules: &Rules,
        (old, new): (&str, &str),
        join: &Join,
        token: Token,
        due: &mut Due,
    ) {
        let Some(mut member) = self.members.remove(old) else { return };
        let leader = self.leader.clone();
        if leader.as_deref() == Some(old) {
            self.leader = Some(new.to_owned());
        }
        if let Some(instance) = &join.instance {
            self.statics.insert(instance.clone(), new.to_owned());
        }
        let fenced = ErrorCode::FencedInstanceId;
        let waiting = member.joining.take().map(|token| (token, Answer::Join(Joined::refused(old, fenced))));
        due.extend(waiting);
        due.extend(member.syncing.take().map(|token| (token, Answer::Sync(Synced::refused(fenced)))));
        member.update(join);
        member.heard(now);
        self.members.insert(new.to_owned(), member);
        if self.state == State::Stable && self.choose() == self.protocol {
            let mut answer = self.joined(new);
            if join.may_skip {
                answer.skip_assignment = !answer.members.is_empty();
            } else {
                // It must not take itself for the leader, which would hand out an assignment.
                answer.leader = leader.unwrap_or_default();
                answer.members = Vec::new();
            }
            due.push((token, Answer::Join(answer)));
            return;
        }
        self.members.get_mut(new).into_iter().for_each(|member| member.joining = Some(token));
        self.rebalance(now, rules, due);
    }

    /// SyncGroup: answered by `due`, now or later.
    pub(crate) fn sync(&mut self, now: u64, who: Who<'_>, sync: Sync, token: Token, due: &mut Due) {
        let is_time = match self.state {
            State::Empty => Err(ErrorCode::UnknownMemberId),
            State::PreparingRebalance => Err(ErrorCode::RebalanceInProgress),
            State::CompletingRebalance | State::Stable => Ok(()),
        };
        let checked = self.check(who).and_then(|()| self.check_protocol(&sync)).and(is_time);
        if let Err(error) = checked {
            due.push((token, Answer::Sync(Synced::refused(error))));
            return;
        }
        let Some(member) = self.members.get_mut(who.member_id) else { return };
        member.synced = true;
        member.heard(now);
        let before = member.syncing.replace(token);
        due.extend(
            before.map(|token| (token, Answer::Sync(Synced::refused(ErrorCode::RebalanceInProgress)))),
        );
        let leads = self.leader.as_deref() == Some(who.member_id);
        if self.state == State::CompletingRebalance && leads {
            self.assign(sync.assignments);
            self.enter(now, State::Stable);
        }
        if self.state == State::Stable {
            self.hand_out(now, due);
        }
    }

    fn check_protocol(&self, sync: &Sync) -> Result<(), ErrorCode> {
        let same_type = sync.protocol_type.is_none() || sync.protocol_type == self.protocol_type;
        let same = sync.protocol.is_none() || sync.protocol == self.protocol;
        if same_type && same { Ok(()) } else { Err(ErrorCode::InconsistentGroupProtocol) }
    }

    /// Heartbeat.
    pub(crate) fn heartbeat(&mut self, now: u64, who: Who<'_>) -> Result<(), ErrorCode> {
        self.check(who)?;
        if let Some(member) = self.members.get_mut(who.member_id) {
            member.heard(now);
        }
        match self.state {
            State::Empty => Err(ErrorCode::UnknownMemberId),
            State::PreparingRebalance => Err(ErrorCode::RebalanceInProgress),
            State::CompletingRebalance | State::Stable => Ok(()),
        }
    }

    /// One member leaves: by its id, or by its instance alone.
    pub(crate) fn leave(
        &mut self,
        now: u64,
        rules: &Rules,
        (id, instance): (&str, Option<&str>),
        due: &mut Due,
    ) -> Result<(), ErrorCode> {
        let id = match instance {
            Some(instance) if id.is_empty() => {
                self.statics.get(instance).cloned().ok_or(ErrorCode::UnknownMemberId)?
            }
            _ => id.to_owned(),
        };
        if self.pending.remove(&id).is_none() {
            self.known(&id, instance)?;
            self.remove(&id, due);
        }
        self.rebalance_without(now, rules, due);
        Ok(())
    }

    /// Whether offsets may be committed; a member that may is heard of thereby.
    pub(crate) fn commit(&mut self, now: u64, who: Who<'_>) -> Result<(), ErrorCode> {
        if who.generation < 0 && self.state == State::Empty {
            return Ok(());
        }
        if who.generation < 0 && who.member_id.is_empty() && who.instance.is_none() {
            // One who is no member may commit only where there are none.
            return Err(ErrorCode::UnknownMemberId);
        }
        self.check(who)?;
        if self.state == State::CompletingRebalance {
            return Err(ErrorCode::RebalanceInProgress);
        }
        if let Some(member) = self.members.get_mut(who.member_id) {
            member.heard(now);
        }
        Ok(())
    }

    /// The member is in the group, under its instance if it has one, and in this generation.
    fn check(&self, who: Who<'_>) -> Result<(), ErrorCode> {
        self.known(who.member_id, who.instance)?;
        if who.generation == self.generation { Ok(()) } else { Err(ErrorCode::IllegalGeneration) }
    }

    fn known(&self, id: &str, instance: Option<&str>) -> Result<&Member, ErrorCode> {
        if let Some(instance) = instance {
            let holder = self.statics.get(instance).ok_or(ErrorCode::UnknownMemberId)?;
            if holder != id {
                return Err(ErrorCode::FencedInstanceId);
            }
        }
        self.members.get(id).ok_or(ErrorCode::UnknownMemberId)
    }

    /// Members that are gone are removed, timers that ran out do what they stand for.
    pub(crate) fn tick(&mut self, now: u64, rules: &Rules, due: &mut Due) {
        let late = self.late(now);
        let pending = self.pending.len();
        self.pending.retain(|_, until| *until > now);
        late.iter().for_each(|id| self.remove(id, due));
        self.sync_until = self.sync_until.filter(|until| *until > now);
        if !late.is_empty() || self.pending.len() < pending {
            self.rebalance_without(now, rules, due);
        }
        if self.join_timer.is_some_and(|timer| timer.at <= now) {
            self.stop_waiting(now, rules, due);
        }
    }

    fn late(&self, now: u64) -> Vec<String> {
        let is_sync_late = self.sync_until.is_some_and(|until| until <= now);
        let is_late =
            |member: &Member| member.expires().is_some_and(|at| at <= now) || is_sync_late && !member.synced;
        self.members.iter().filter(|(_, member)| is_late(member)).map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn remove(&mut self, id: &str, due: &mut Due) {
        let Some(mut member) = self.members.remove(id) else { return };
        let unknown = ErrorCode::UnknownMemberId;
        due.extend(member.joining.take().map(|token| (token, Answer::Join(Joined::refused(id, unknown)))));
        due.extend(member.syncing.take().map(|token| (token, Answer::Sync(Synced::refused(unknown)))));
        if let Some(instance) = member.instance {
            self.statics.remove(&instance);
        }
        if self.leader.as_deref() == Some(id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    pub(super) fn enter(&mut self, now: u64, state: State) {
        self.state = state;
        self.since = now;
    }
}

/// A second JoinGroup of the same member came before the first was answered, so its connection is gone.
fn gave_way(id: &str) -> Answer {
    Answer::Join(Joined::refused(id, ErrorCode::RebalanceInProgress))
}
