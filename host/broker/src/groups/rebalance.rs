//! How a group gets its next generation: members join, a protocol is chosen, the leader hands out the assignment.

use bytes::Bytes;
use verbatim_wire::error::ErrorCode;

use super::asked::{Answer, Due, Joined, Synced};
use super::group::{Group, JoinTimer, Rules, State};

/// How long a member that was never in a generation is kept, whatever it asked for (as Kafka does), in milliseconds.
pub(super) const NEW_MEMBER_MS: u64 = 300_000;

impl Group {
    /// Begins a rebalance, or ends one that everybody has joined.
    pub(super) fn rebalance(&mut self, now: u64, rules: &Rules, due: &mut Due) {
        if self.state != State::PreparingRebalance {
            self.prepare(now, rules, due);
        }
        self.complete_if_all_joined(now, due);
    }

    /// Somebody left.
    pub(super) fn rebalance_without(&mut self, now: u64, rules: &Rules, due: &mut Due) {
        match self.state {
            State::Empty => {}
            State::PreparingRebalance => self.complete_if_all_joined(now, due),
            State::CompletingRebalance | State::Stable => self.rebalance(now, rules, due),
        }
    }

    fn prepare(&mut self, now: u64, rules: &Rules, due: &mut Due) {
        self.sync_until = None;
        let again = Synced::refused(ErrorCode::RebalanceInProgress);
        for member in self.members.values_mut() {
            due.extend(member.syncing.take().map(|token| (token, Answer::Sync(again.clone()))));
            if self.state == State::CompletingRebalance {
                member.assignment = Bytes::new();
                member.heard(now);
            }
        }
        let wait = self.rebalance_ms();
        self.join_timer = Some(if self.state == State::Empty {
            let delay = rules.initial_delay_ms.min(wait);
            JoinTimer { at: now.saturating_add(delay), more: Some(wait.saturating_sub(delay)) }
        } else {
            JoinTimer { at: now.saturating_add(wait), more: None }
        });
        self.grew = false;
        self.enter(now, State::PreparingRebalance);
    }

    /// The longest time that a member asks for.
    fn rebalance_ms(&self) -> u64 {
        self.members.values().map(|member| member.rebalance_ms).max().unwrap_or(0)
    }

    /// A first generation waits for its timer, since more members may be about to start.
    fn complete_if_all_joined(&mut self, now: u64, due: &mut Due) {
        let is_first = self.join_timer.is_some_and(|timer| timer.more.is_some()) && !self.members.is_empty();
        let all = self.pending.is_empty() && self.members.values().all(|member| member.joining.is_some());
        if self.state == State::PreparingRebalance && all && !is_first {
            self.complete(now, due);
        }
    }

    /// The timer for joining ran out.
    pub(super) fn stop_waiting(&mut self, now: u64, rules: &Rules, due: &mut Due) {
        if let Some(more) = self.join_timer.and_then(|timer| timer.more)
            && self.grew
            && more > 0
        {
            let delay = rules.initial_delay_ms.min(more).max(1);
            self.grew = false;
            self.join_timer =
                Some(JoinTimer { at: now.saturating_add(delay), more: Some(more.saturating_sub(delay)) });
            return;
        }
        let absent = |(id, member): (&String, &super::member::Member)| {
            (member.joining.is_none() && member.instance.is_none()).then(|| id.clone())
        };
        let absent: Vec<String> = self.members.iter().filter_map(absent).collect();
        absent.iter().for_each(|id| self.remove(id, due));
        let nobody = self.members.values().all(|member| member.joining.is_none());
        if nobody && !self.members.is_empty() {
            // Static members alone, all of them away: their sessions decide.
            let wait = self.rebalance_ms().max(1);
            self.join_timer = Some(JoinTimer { at: now.saturating_add(wait), more: None });
            return;
        }
        self.complete(now, due);
    }

    fn complete(&mut self, now: u64, due: &mut Due) {
        self.join_timer = None;
        self.grew = false;
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        if self.members.is_empty() {
            self.protocol = None;
            self.leader = None;
            self.enter(now, State::Empty);
            return;
        }
        self.elect();
        self.protocol = self.choose();
        self.enter(now, State::CompletingRebalance);
        self.sync_until = Some(now.saturating_add(self.rebalance_ms()));
        let ids: Vec<String> = self.members.keys().cloned().collect();
        for id in ids {
            let answer = self.joined(&id);
            let Some(member) = self.members.get_mut(&id) else { continue };
            member.synced = false;
            member.assignment = Bytes::new();
            if let Some(token) = member.joining.take() {
                member.is_new = false;
                member.heard(now);
                due.push((token, Answer::Join(answer)));
            }
        }
    }

    /// A leader that did not join gives way to a member that did.
    fn elect(&mut self) {
        let joined = |id: &String| self.members.get(id).is_some_and(|member| member.joining.is_some());
        if !self.leader.as_ref().is_some_and(joined) {
            let other = self.members.iter().find(|(_, member)| member.joining.is_some());
            self.leader = other.map(|(id, _)| id.clone()).or_else(|| self.leader.take());
        }
    }

    /// The protocol that every member supports and most want; among equals the one that comes first by name.
    pub(super) fn choose(&self) -> Option<String> {
        let first = self.members.values().next()?;
        let mut votes = std::collections::BTreeMap::<&str, usize>::new();
        let common = |name: &str| self.members.values().all(|member| member.supports(name));
        votes.extend(
            first
                .protocols
                .iter()
                .map(|(name, _)| name.as_str())
                .filter(|name| common(name))
                .map(|name| (name, 0)),
        );
        for member in self.members.values() {
            let wanted = member.protocols.iter().find(|(name, _)| votes.contains_key(name.as_str()));
            if let Some(count) = wanted.and_then(|(name, _)| votes.get_mut(name.as_str())) {
                *count = count.saturating_add(1);
            }
        }
        let best = votes.iter().max_by(|(a, x), (b, y)| x.cmp(y).then(b.cmp(a)));
        best.map(|(name, _)| (*name).to_owned())
    }

    /// Whether a newcomer's protocols have one in common with those of all members.
    pub(super) fn has_common(&self, protocols: &[(String, Bytes)]) -> bool {
        let common = |name: &str| self.members.values().all(|member| member.supports(name));
        protocols.iter().any(|(name, _)| common(name))
    }

    /// What a member of the present generation is told.
    pub(super) fn joined(&self, id: &str) -> Joined {
        let leader = self.leader.clone().unwrap_or_default();
        let protocol = self.protocol();
        let members = if leader == id {
            let one = |(id, member): (&String, &super::member::Member)| {
                (id.clone(), member.instance.clone(), member.metadata(protocol))
            };
            self.members.iter().map(one).collect()
        } else {
            Vec::new()
        };
        Joined {
            error: ErrorCode::None,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader,
            member_id: id.to_owned(),
            skip_assignment: false,
            members,
        }
    }

    /// Takes the leader's assignment; who is not in it gets an empty one.
    pub(super) fn assign(&mut self, assignments: Vec<(String, Bytes)>) {
        self.members.values_mut().for_each(|member| member.assignment = Bytes::new());
        for (id, assignment) in assignments {
            if let Some(member) = self.members.get_mut(&id) {
                member.assignment = assignment;
            }
        }
    }

    /// Answers all who wait for their assignment.
    pub(super) fn hand_out(&mut self, now: u64, due: &mut Due) {
        for member in self.members.values_mut() {
            let Some(token) = member.syncing.take() else { continue };
            member.heard(now);
            let answer = Synced {
                error: ErrorCode::None,
                protocol_type: self.protocol_type.clone(),
                protocol: self.protocol.clone(),
                assignment: member.assignment.clone(),
            };
            due.push((token, Answer::Sync(answer)));
        }
        if self.members.values().all(|member| member.synced) {
            self.sync_until = None;
        }
    }
}
