//! Power losses at random moments, during writes and during starts. Whatever the flush policy, what is stored afterwards is
//! a beginning of what was sent, in whole batches, and topics, starts and epochs are what was acknowledged; with
//! `flush = always` every acknowledged batch and every batch that a reader saw is there, byte for byte.
//!
//! The disk is one in memory (its model is that of `verbatim-test-disk`). A printed seed, given as `VERBATIM_SEED`, repeats
//! what is written and after how many operations the machine ends; how the threads take turns it does not repeat.
//! `VERBATIM_SOAK` makes ten times as many rounds.
#![expect(clippy::panic, clippy::expect_used, clippy::cast_possible_truncation, reason = "tests")]

mod copy;
pub(crate) mod peer;
mod plain;
mod topics;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use verbatim_broker::{Broker, Config, FlushPolicy, NativeJudges};
use verbatim_policy::ExactMirroring;
use verbatim_test_disk::{Loss, Random, SimDisk};

use copy::Copy;
use peer::Peer;
use plain::Plain;
use topics::Topics;

/// Power losses of one disk.
const LOSSES: u64 = 20;
const ROUNDS: u64 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_power_losses_take_nothing_that_was_acknowledged() {
    let lost = rounds(FlushPolicy::Always, ROUNDS).await;
    assert!(lost.is_empty(), "{lost:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_flushes_the_same_test_finds_what_is_lost() {
    let lost = rounds(FlushPolicy::Never, 2).await;
    assert!(lost.iter().any(|what| what.contains("acknowledged")), "{lost:#?}");
    assert!(lost.iter().any(|what| what.contains("was read")), "{lost:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_flushes_now_and_then_a_loss_is_all_that_can_go_wrong() {
    rounds(FlushPolicy::Interval, 2).await;
}

/// What was lost, in words; anything else that is wrong ends the test.
async fn rounds(flush: FlushPolicy, rounds: u64) -> Vec<String> {
    let given = std::env::var("VERBATIM_SEED").ok().map(|seed| seed.parse().unwrap());
    let rounds = if std::env::var_os("VERBATIM_SOAK").is_some() { rounds * 10 } else { rounds };
    let mut lost = Vec::new();
    for round in 0..if given.is_some() { 1 } else { rounds } {
        let seed = given.unwrap_or_else(|| u64::from(uuid::Uuid::new_v4().as_fields().0));
        println!("VERBATIM_SEED={seed} flush {flush:?}, round {round}");
        lost.extend(
            World::new(seed, flush).run().await.into_iter().map(|what| format!("seed {seed}: {what}")),
        );
    }
    lost
}

/// A task's view of the host: how to reach it, and whether the disk still lives.
#[derive(Clone)]
struct Life {
    address: std::net::SocketAddr,
    disk: SimDisk,
    number: u64,
}

struct World {
    disk: SimDisk,
    flush: FlushPolicy,
    random: Random,
    plain: Vec<Plain>,
    copies: Vec<Copy>,
    topics: Topics,
    lost: Vec<String>,
}

impl Life {
    fn is_over(&self) -> bool {
        self.disk.lives() != self.number
    }

    async fn peer(&self) -> Peer {
        Peer::connect(self.address).await
    }

    /// Only the end of the machine is a reason to refuse.
    fn refused(&self, what: &str, answer: &dyn std::fmt::Debug) {
        assert!(self.is_over(), "refused by a sound host: {what}, {answer:?}");
    }
}

impl World {
    fn new(seed: u64, flush: FlushPolicy) -> Self {
        let disk = SimDisk::new(seed);
        disk.set_short_writes(11);
        Self {
            disk,
            flush,
            random: Random::new(seed),
            plain: ["plain-a", "plain-b"].map(Plain::new).into(),
            copies: ["copy-a", "copy-b"].map(Copy::new).into(),
            topics: Topics::default(),
            lost: Vec::new(),
        }
    }

    async fn run(mut self) -> Vec<String> {
        let broker = self.broker().await.unwrap();
        let peer = Peer::connect(broker.local_addr()).await;
        for name in self.plain.iter().map(|plain| plain.name) {
            assert_eq!(peer.create(name, 1, &plain::PROPERTIES).await.unwrap(), 0);
        }
        for name in self.copies.iter().map(|copy| copy.name) {
            assert_eq!(peer.create(name, 1, &copy::PROPERTIES).await.unwrap(), 0);
        }
        drop(peer);
        self.write(&broker, LOSSES).await;
        drop(broker);
        for left in (0..LOSSES).rev() {
            let broker = self.start().await;
            self.check(&broker).await;
            self.write(&broker, left).await;
            drop(broker);
        }
        let broker = self.start().await;
        self.check(&broker).await;
        broker.shutdown().await;
        let broker = self.broker().await.unwrap();
        self.check(&broker).await;
        self.lost
    }

    /// Starts the host; now and then the machine ends before that is done, once or several times.
    async fn start(&mut self) -> Broker {
        loop {
            if self.random.one_in(3) {
                let after = self.random.below(60);
                self.disk.set_power_loss(after, loss(&mut self.random));
            }
            let life = self.disk.lives();
            let started = self.broker().await;
            self.disk.clear_faults();
            match started {
                Ok(broker) if self.disk.lives() == life => return broker,
                Err(error) if self.disk.lives() == life => panic!("no start: {error}"),
                _ => {}
            }
        }
    }

    async fn broker(&self) -> Result<Broker, verbatim_broker::StartError> {
        let mut config = Config::new(PathBuf::from("/data"), ([127, 0, 0, 1], 0).into());
        config.retention_check_interval = Duration::MAX;
        config.flush = self.flush;
        config.flush_interval = Duration::from_millis(3);
        config.append_threads = Some(2);
        // The batches' times are long ago, and their producers are not to be forgotten.
        config.producer_id_expiration = Duration::from_secs(1 << 32);
        Broker::start_on(self.disk.process(), config, Arc::new(NativeJudges(ExactMirroring))).await
    }

    /// Writers, readers and an operator, until the machine ends.
    async fn write(&mut self, broker: &Broker, round: u64) {
        let life = Life { address: broker.local_addr(), disk: self.disk.clone(), number: self.disk.lives() };
        let after = 20 + self.random.below(600);
        self.disk.set_power_loss(after, loss(&mut self.random));
        let random = &mut self.random;
        let plain: Vec<_> = self.plain.iter().map(|one| one.begin(&life, random, round)).collect();
        let copies: Vec<_> = self.copies.iter().map(|one| one.begin(&life, random)).collect();
        let topics = tokio::spawn(self.topics.clone().change(life.clone(), Random::new(random.number())));
        for (one, begun) in self.plain.iter_mut().zip(plain) {
            one.end(begun).await;
        }
        for (one, begun) in self.copies.iter_mut().zip(copies) {
            one.candidates = begun.await.unwrap();
        }
        self.topics = topics.await.unwrap();
        assert!(life.is_over());
    }

    async fn check(&mut self, broker: &Broker) {
        let peer = Peer::connect(broker.local_addr()).await;
        for plain in &mut self.plain {
            plain.check(&peer, &mut self.lost).await;
        }
        for copy in &mut self.copies {
            copy.check(&peer, &mut self.lost).await;
        }
        self.topics.check(&peer, &mut self.lost).await;
        let mut folders: Vec<String> = self.topics.folders();
        folders.extend(self.plain.iter().map(|one| format!("{}-0", one.name)));
        folders.extend(self.copies.iter().map(|one| format!("{}-0", one.name)));
        folders.sort();
        assert_eq!(peer::folders(&self.disk), folders, "folders are those of the topics");
    }
}

fn loss(random: &mut Random) -> Loss {
    if random.one_in(2) { Loss::Everything } else { Loss::Random }
}
