//! Members that come, go, die and are slow, at random; whatever they do, generations are what the protocol promises, and
//! once they are left alone all that live share one. The printed seed, given as `VERBATIM_SEED`, repeats a run.

use std::collections::BTreeMap;

use verbatim_test_disk::Random;

use super::*;

const CLIENTS: u64 = 4;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    Join(Token),
    Sync(Token),
}

struct Client {
    join: Join,
    id: String,
    generation: i32,
    stable: bool,
    waits: Waits,
    alive: bool,
    heard: u64,
}

struct Model {
    world: World,
    random: Random,
    clients: Vec<Client>,
    ids: u64,
    /// By generation: its leader, and what that handed out.
    leaders: BTreeMap<i32, String>,
    assignments: BTreeMap<(i32, String), Bytes>,
    last_generation: i32,
}

#[test]
fn random_members_end_in_one_generation_together() {
    let given = std::env::var("VERBATIM_SEED").ok().map(|seed| seed.parse().unwrap());
    let seed: u64 = given.unwrap_or_else(|| u64::from(uuid::Uuid::new_v4().as_fields().0));
    println!("VERBATIM_SEED={seed}");
    for round in 0..200 {
        Model::new(seed.wrapping_add(round)).run();
    }
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let client = |index: u64| {
            let name = format!("client{index}");
            let instance = random.one_in(3).then(|| name.clone());
            let needs_known_id = random.one_in(2);
            let may_skip = random.one_in(2);
            let join = Join { instance, needs_known_id, may_skip, ..member(&name) };
            Client {
                join,
                id: String::new(),
                generation: -1,
                stable: false,
                waits: Waits::Nothing,
                alive: true,
                heard: 0,
            }
        };
        let clients = (0..CLIENTS).map(client).collect();
        Self {
            world: World::new(),
            random,
            clients,
            ids: 0,
            leaders: BTreeMap::new(),
            assignments: BTreeMap::new(),
            last_generation: 0,
        }
    }

    fn run(mut self) {
        for _ in 0..150 {
            let index = self.random.below(CLIENTS) as usize;
            match self.random.below(20) {
                0 => self.clients[index].alive = false,
                1 => self.leave(index),
                // It starts anew, as after a crash of its process: whatever was for it is lost.
                2 => self.restart(index),
                // It was away for a while, and asks again.
                3 => {
                    self.clients[index].alive = true;
                    self.clients[index].waits = Waits::Nothing;
                }
                4..8 => {
                    let ms = self.random.below(9_000);
                    self.world.pass(ms);
                }
                _ => self.step(index),
            }
            self.deliver();
        }
        self.settle();
    }

    /// Everybody who lives does what is next, often enough; the dead are found out.
    fn settle(&mut self) {
        for _ in 0..400 {
            self.world.pass(1_000);
            self.deliver();
            for index in 0..self.clients.len() {
                self.step(index);
                self.deliver();
            }
        }
        let living: Vec<&Client> = self.clients.iter().filter(|client| client.alive).collect();
        let group = self.world.coordinator.group("g");
        let mut members: Vec<String> =
            group.map(|group| group.members().map(|(id, _)| id.clone()).collect()).unwrap_or_default();
        let mut expected: Vec<String> = living.iter().map(|client| client.id.clone()).collect();
        members.sort();
        expected.sort();
        assert_eq!(members, expected);
        assert!(living.iter().all(|client| client.stable && client.generation == self.last_generation));
        let state = if expected.is_empty() { State::Empty } else { State::Stable };
        assert!(self.world.state().is_none_or(|is| is == state));
        assert!(self.world.due.is_empty(), "an answer to nobody: {:?}", self.world.due);
    }

    fn restart(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.alive = true;
        client.id.clear();
        client.generation = -1;
        client.stable = false;
        client.waits = Waits::Nothing;
    }

    fn leave(&mut self, index: usize) {
        let client = &self.clients[index];
        if client.alive && client.waits == Waits::Nothing && !client.id.is_empty() {
            let instance = client.join.instance.clone();
            let id = client.id.clone();
            let _ = self.world.leave(&id, instance.as_deref());
            self.restart(index);
        }
    }

    /// What a client does next of itself.
    fn step(&mut self, index: usize) {
        let client = &self.clients[index];
        if !client.alive || client.waits != Waits::Nothing {
            return;
        }
        if !client.stable {
            self.join(index);
        } else if self.world.now >= client.heard + 3_000 {
            self.heartbeat(index);
        }
    }

    fn join(&mut self, index: usize) {
        self.ids += 1;
        let client = &self.clients[index];
        let fresh_id = format!("{}-{}", client.join.client_id, self.ids);
        let join = Join { member_id: client.id.clone(), fresh_id, ..client.join.clone() };
        self.clients[index].waits = Waits::Join(self.world.join(&join));
    }

    fn heartbeat(&mut self, index: usize) {
        let client = &self.clients[index];
        let instance = client.join.instance.clone();
        let id = client.id.clone();
        let who = Who { member_id: &id, instance: instance.as_deref(), generation: client.generation };
        let outcome = self.world.heartbeat(who);
        self.clients[index].heard = self.world.now;
        match outcome {
            Ok(()) => {}
            Err(ErrorCode::RebalanceInProgress) => self.clients[index].stable = false,
            Err(_) => self.restart(index),
        }
    }

    /// Gives answers to the clients that wait for them, until there are none.
    fn deliver(&mut self) {
        while !self.world.due.is_empty() {
            let (token, answer) = self.world.due.remove(0);
            let waits = |client: &Client| match client.waits {
                Waits::Join(other) | Waits::Sync(other) => other == token,
                Waits::Nothing => false,
            };
            let found = self.clients.iter().position(waits);
            match answer {
                Answer::Join(joined) => self.joined(found, joined),
                Answer::Sync(synced) => self.synced(found, &synced),
            }
        }
    }

    fn joined(&mut self, found: Option<usize>, joined: Joined) {
        if joined.error == ErrorCode::None {
            assert!(joined.generation >= self.last_generation, "generations rise");
            self.last_generation = joined.generation;
            if joined.leader == joined.member_id {
                let before = self.leaders.insert(joined.generation, joined.leader.clone());
                // A static leader that came back is the same one under another id.
                let same = |id: &String| id.split('-').next() == joined.leader.split('-').next();
                assert!(before.as_ref().is_none_or(same), "two leaders: {before:?}, {joined:?}");
                assert!(joined.members.iter().any(|(id, _, _)| *id == joined.member_id));
            }
        }
        // One that starts anew does not hear the answer any more.
        let Some(index) = found.filter(|index| self.clients[*index].alive) else { return };
        self.clients[index].waits = Waits::Nothing;
        match joined.error {
            ErrorCode::None => {
                self.clients[index].id.clone_from(&joined.member_id);
                self.clients[index].generation = joined.generation;
                self.sync(index, &joined);
            }
            ErrorCode::MemberIdRequired => self.clients[index].id = joined.member_id,
            ErrorCode::RebalanceInProgress => {}
            ErrorCode::UnknownMemberId | ErrorCode::FencedInstanceId => self.restart(index),
            // Members that died and are not found out yet take up the room.
            ErrorCode::GroupMaxSizeReached => self.restart(index),
            other => panic!("{other}"),
        }
    }

    fn sync(&mut self, index: usize, joined: &Joined) {
        let leads = joined.leader == joined.member_id && !joined.skip_assignment;
        let text = |id: &String| format!("{} of {}", id, joined.generation);
        let parts: Vec<(&str, String)> =
            joined.members.iter().filter(|_| leads).map(|(id, _, _)| (id.as_str(), text(id))).collect();
        let parts: Vec<(&str, &str)> = parts.iter().map(|(id, part)| (*id, part.as_str())).collect();
        let instance = self.clients[index].join.instance.clone();
        let who = Who { instance: instance.as_deref(), ..who(joined) };
        self.clients[index].waits = Waits::Sync(self.world.sync(who, &parts));
    }

    fn synced(&mut self, found: Option<usize>, synced: &Synced) {
        let Some(index) = found.filter(|index| self.clients[*index].alive) else { return };
        let client = &mut self.clients[index];
        client.waits = Waits::Nothing;
        client.heard = self.world.now;
        client.stable = synced.error == ErrorCode::None;
        match synced.error {
            ErrorCode::None => {
                let part = String::from_utf8(synced.assignment.to_vec()).unwrap();
                let name = |id: &str| id.split('-').next().map(str::to_owned);
                assert!(
                    part.ends_with(&format!(" of {}", client.generation)),
                    "{part}, {}",
                    client.generation
                );
                assert_eq!(name(&part), name(&client.id), "{part}");
                let key = (client.generation, client.join.client_id.clone());
                let before = self.assignments.insert(key, synced.assignment.clone());
                assert!(before.is_none_or(|before| before == synced.assignment), "one part a generation");
            }
            ErrorCode::RebalanceInProgress => {}
            _ => self.restart(index),
        }
    }
}
