#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod disk;
mod handed_over;
mod members;
mod model;

use bytes::Bytes;
use verbatim_wire::error::ErrorCode;

use super::asked::{Answer, Due, Join, Joined, Sync, Synced, Token, Who};
use super::coordinator::{Bounds, Coordinator};
use super::group::{Rules, State};

const RULES: Rules = Rules { members_max: 4, initial_delay_ms: 3_000, session_ms: (6_000, 60_000) };
const BOUNDS: Bounds = Bounds { groups_max: 3, bytes_max: 20_000 };
const SESSION_MS: u64 = 10_000;
const REBALANCE_MS: u64 = 20_000;

/// A coordinator with a clock, and the answers it gave.
struct World {
    coordinator: Coordinator,
    now: u64,
    token: Token,
    due: Due,
}

impl World {
    fn new() -> Self {
        Self { coordinator: Coordinator::new(RULES, BOUNDS), now: 0, token: 0, due: Vec::new() }
    }

    fn join(&mut self, join: &Join) -> Token {
        self.join_group("g", join)
    }

    fn join_group(&mut self, group: &str, join: &Join) -> Token {
        self.token += 1;
        self.coordinator.join(self.now, group, join, self.token, &mut self.due);
        self.token
    }

    fn sync(&mut self, who: Who<'_>, assignments: &[(&str, &str)]) -> Token {
        self.token += 1;
        let one = |(id, bytes): &(&str, &str)| ((*id).to_owned(), Bytes::copy_from_slice(bytes.as_bytes()));
        let sync = Sync { assignments: assignments.iter().map(one).collect(), ..Sync::default() };
        self.coordinator.sync(self.now, "g", who, sync, self.token, &mut self.due);
        self.token
    }

    fn heartbeat(&mut self, who: Who<'_>) -> Result<(), ErrorCode> {
        self.coordinator.heartbeat(self.now, "g", who)
    }

    fn commit(&mut self, who: Who<'_>) -> Result<(), ErrorCode> {
        self.coordinator.commit(self.now, "g", who)
    }

    fn leave(&mut self, id: &str, instance: Option<&str>) -> Result<(), ErrorCode> {
        self.coordinator.leave(self.now, "g", (id, instance), &mut self.due)
    }

    /// Time passes, and everything that is due on the way happens when it is.
    fn pass(&mut self, ms: u64) {
        let until = self.now + ms;
        while let Some(at) = self.coordinator.deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.coordinator.tick(self.now, &mut self.due);
            assert!(self.coordinator.deadline().is_none_or(|at| at > self.now), "a tick leaves nothing due");
        }
        self.now = until;
    }

    fn taken(&mut self, token: Token) -> Option<Answer> {
        let at = self.due.iter().position(|(to, _)| *to == token)?;
        Some(self.due.remove(at).1)
    }

    fn joined(&mut self, token: Token) -> Joined {
        match self.taken(token) {
            Some(Answer::Join(joined)) => joined,
            other => panic!("{other:?}"),
        }
    }

    fn synced(&mut self, token: Token) -> Synced {
        match self.taken(token) {
            Some(Answer::Sync(synced)) => synced,
            other => panic!("{other:?}"),
        }
    }

    fn state(&self) -> Option<State> {
        self.coordinator.group("g").map(super::group::Group::state)
    }

    /// A group of these members in a stable generation; what each was told when it joined.
    fn stable(&mut self, names: &[&str]) -> Vec<Joined> {
        let tokens: Vec<_> = names.iter().map(|name| self.join(&member(name))).collect();
        self.pass(RULES.initial_delay_ms * 3);
        let joined: Vec<_> = tokens.into_iter().map(|token| self.joined(token)).collect();
        let assignments: Vec<_> = joined.iter().map(|one| (one.member_id.as_str(), "part")).collect();
        let tokens: Vec<_> = joined.iter().map(|one| self.sync(who(one), &assignments)).collect();
        for token in tokens {
            assert_eq!(self.synced(token).error, ErrorCode::None);
        }
        assert_eq!(self.state(), Some(State::Stable));
        joined
    }
}

/// A member that gets the id of its name at once.
fn member(name: &str) -> Join {
    Join {
        fresh_id: format!("{name}-id"),
        client_id: name.to_owned(),
        session_ms: SESSION_MS,
        rebalance_ms: REBALANCE_MS,
        protocol_type: "consumer".to_owned(),
        protocols: vec![("range".to_owned(), Bytes::from(name.to_owned()))],
        ..Join::default()
    }
}

fn again(joined: &Joined, join: &Join) -> Join {
    Join { member_id: joined.member_id.clone(), ..join.clone() }
}

fn who(joined: &Joined) -> Who<'_> {
    Who { member_id: &joined.member_id, instance: None, generation: joined.generation }
}
