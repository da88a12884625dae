//! A generation is taken back by itself exactly when it should be.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hostile_module::Behaviour;
use verbatim_batch::Codec;
use verbatim_contract::{Comparison, CutPreview, ProducerState, Replica, Unreadable};
use verbatim_engine::{
    Before, Cause, Denied, Engine, Event, Failure, Follower, Incoming, Judge, Limits, MAX_PROBES, Memory,
    Module, Partition, ROLLBACK_WINDOW, Slot, SlotSettings, TakenBack,
};

use crate::support::{exact, exact_mirroring, hostile, relabelled, run, tagged, valued};

/// A slot that was just swapped from one module to another, with a clock that tests move.
struct Swapped {
    slot: Slot,
    follower: Follower<Memory>,
    clock_ms: Arc<AtomicU64>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Swapped {
    fn new(from: &Module, to: &Module) -> Self {
        let swapped = Self::started(from, None);
        swapped.slot.switch(to.clone(), Cause::Swap);
        swapped.events.lock().unwrap().clear();
        swapped
    }

    /// A slot that begins with this module.
    fn started(module: &Module, before: Option<Before>) -> Self {
        let (clock_ms, events) = (Arc::new(AtomicU64::new(0)), Arc::<Mutex<Vec<Event>>>::default());
        let (clock, log, began) = (Arc::clone(&clock_ms), Arc::clone(&events), Instant::now());
        let settings = SlotSettings {
            first: 1,
            before,
            clock: Arc::new(move || began + Duration::from_millis(clock.load(Ordering::Relaxed))),
            observer: Arc::new(move |event| log.lock().unwrap().push(event.clone())),
        };
        let slot = Slot::with("policy", module.clone(), settings);
        let follower = slot.follower();
        Self { slot, follower, clock_ms, events }
    }

    /// A request with a batch for each of these values.
    fn ask(&mut self, behaviour: Behaviour, values: &[&str]) -> Result<(), Denied> {
        ask(&mut self.follower, behaviour, values)
    }

    fn pass(&self, time: Duration) {
        self.clock_ms.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// How often it went back, how many witnesses there were, and how many requests were judged once more.
    fn outcome(&self) -> (usize, usize, u64) {
        let events = self.events.lock().unwrap();
        let switched = events.iter().filter(|event| matches!(event, Event::Switched { .. })).count();
        let history = self.slot.history();
        (switched, events.len() - switched, history.iter().map(|one| one.counts().probes).sum())
    }
}

fn ask(follower: &mut Follower<Memory>, behaviour: Behaviour, values: &[&str]) -> Result<(), Denied> {
    let mut memory = exact();
    memory.policy.partition = behaviour.partition();
    let batches: Vec<_> =
        values.iter().zip(0..).map(|(value, base)| valued(base, 3, 1, value.as_bytes())).collect();
    let request = tagged(&memory, (100, 3));
    memory.produce(follower, request, vec![], &run(&batches)).1.map(|_| ())
}

/// Ways to fail, each in a partition of its own.
const FAILING: [Behaviour; 4] =
    [Behaviour::Traps, Behaviour::Recurses, Behaviour::SettlesNothing, Behaviour::SettlesTwice];

#[test]
fn three_requests_from_two_partitions_are_enough() {
    let mut swapped = Swapped::new(exact_mirroring(), hostile());
    swapped.pass(ROLLBACK_WINDOW - Duration::from_millis(1));
    swapped.ask(Behaviour::Traps, &["a"]).unwrap_err();
    swapped.ask(Behaviour::Traps, &["b"]).unwrap_err();
    assert_eq!(swapped.outcome(), (0, 2, 2));
    assert!(swapped.ask(Behaviour::SettlesNothing, &["c"]).is_err(), "the answer stays what it is");
    assert_eq!(swapped.outcome(), (1, 3, 3));

    let (failed, back) = (swapped.slot.previous().unwrap(), swapped.slot.current());
    assert_eq!((failed.number(), back.number()), (2, 3));
    assert_eq!(back.digest(), exact_mirroring().inspect().digest);
    let why = &failed.rolled_back().unwrap().why;
    assert_eq!(*back.cause(), Cause::Rollback(why.clone()));
    let TakenBack::Failing { witnesses } = why else { panic!("{why:?}") };
    assert_eq!(witnesses.iter().map(|one| one.partition).collect::<Vec<_>>(), [1, 1, 6]);
    let reason = why.to_string();
    for part in [
        "partition `1`",
        "partition `6`",
        "topic id AAAAAAAAAAEAAAAAAAAAAg",
        "base offset `0`",
        "trapped: wasm trap",
        "invariant",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    assert!(!reason.contains('\n'));
    assert_eq!(failed.counts().failures, [2, 0, 0, 1, 0]);

    swapped.ask(Behaviour::Traps, &["a"]).unwrap();
    assert_eq!(swapped.follower.judged_by(), Some(back.stamp()));
}

#[test]
fn a_refusal_by_the_former_one_counts_as_no_failure() {
    let mut swapped = Swapped::new(exact_mirroring(), hostile());
    for (behaviour, value) in FAILING.into_iter().zip(["a", "b", "c"]) {
        // The batches overlap: a good module refuses them.
        let mut memory = exact();
        memory.policy.partition = behaviour.partition();
        let twice = [valued(0, 3, 1, value.as_bytes()), valued(0, 3, 1, b"again")];
        let other = [valued(0, 3, 1, value.as_bytes()), valued(0, 3, 1, value.repeat(2).as_bytes())];
        let batches = if value == "a" { twice } else { other };
        let request = tagged(&memory, (100, 3));
        memory.produce(&mut swapped.follower, request, vec![], &run(&batches)).1.unwrap_err();
    }
    assert_eq!(swapped.outcome().0, 1);
}

#[test]
fn one_poisoned_batch_is_not_enough_however_often_and_wherever_it_comes() {
    let mut swapped = Swapped::new(exact_mirroring(), hostile());
    for round in 0..20 {
        let (x, y) = (format!("x{round}"), format!("y{round}"));
        for behaviour in FAILING {
            swapped.ask(behaviour, &["poison"]).unwrap_err();
            swapped.ask(behaviour, &["poison", &x]).unwrap_err();
            swapped.ask(behaviour, &["poison", &y, &x]).unwrap_err();
        }
    }
    assert_eq!(swapped.outcome(), (0, 1, 1));
    assert_eq!(swapped.slot.current().number(), 2);
}

#[test]
fn one_partition_is_not_enough_and_leaves_the_others_their_turn() {
    let mut swapped = Swapped::new(exact_mirroring(), hostile());
    for round in 0..50 {
        swapped.ask(Behaviour::Traps, &[&format!("{round}")]).unwrap_err();
    }
    assert_eq!(swapped.outcome(), (0, 4, 4));
    swapped.ask(Behaviour::Recurses, &["another"]).unwrap_err();
    assert_eq!(swapped.outcome(), (1, 5, 5));
}

#[test]
fn requests_without_batches_all_count_as_one() {
    let mut swapped = Swapped::new(exact_mirroring(), hostile());
    for _ in 0..5 {
        swapped.ask(Behaviour::Traps, &[]).unwrap_err();
        swapped.ask(Behaviour::Recurses, &[]).unwrap_err();
    }
    assert_eq!(swapped.outcome(), (0, 1, 1));
    swapped.ask(Behaviour::Recurses, &["a"]).unwrap_err();
    assert_eq!(swapped.outcome(), (0, 2, 2), "two are not enough");
}

#[test]
fn what_the_former_one_fails_on_too_is_no_evidence_and_costs_little() {
    let other = relabelled(verbatim_artifact::hostile().unwrap(), 1);
    let mut swapped = Swapped::new(hostile(), &other);
    for round in 0..20 {
        for behaviour in Behaviour::ALL {
            let _ = swapped.ask(behaviour, &[&format!("{round} {behaviour:?}")]);
        }
    }
    assert_eq!(swapped.outcome(), (0, 0, u64::try_from(MAX_PROBES).unwrap()));
}

#[test]
fn the_same_file_again_is_not_compared_with_itself() {
    let mut swapped = Swapped::new(hostile(), hostile());
    for value in ["a", "b", "c", "d"] {
        swapped.ask(Behaviour::Traps, &[value]).unwrap_err();
        swapped.ask(Behaviour::Recurses, &[&value.repeat(2)]).unwrap_err();
    }
    assert_eq!(swapped.outcome(), (0, 0, 0));
}

#[test]
fn after_ten_minutes_it_stays() {
    let mut swapped = Swapped::new(exact_mirroring(), hostile());
    swapped.ask(Behaviour::Traps, &["a"]).unwrap_err();
    swapped.ask(Behaviour::Recurses, &["b"]).unwrap_err();
    swapped.pass(ROLLBACK_WINDOW);
    for value in ["c", "d", "e"] {
        swapped.ask(Behaviour::Traps, &[value]).unwrap_err();
    }
    assert_eq!(swapped.outcome(), (0, 2, 2));
}

#[test]
fn a_slot_that_starts_anew_goes_on_with_the_window_of_a_swap() {
    let short_of = |left_ms| ROLLBACK_WINDOW - Duration::from_millis(left_ms);
    let before = |elapsed| Some(Before { module: exact_mirroring().clone(), elapsed });
    for (before, expected) in
        [(before(short_of(1000)), 1), (before(ROLLBACK_WINDOW), 0), (before(short_of(500)), 0), (None, 0)]
    {
        let goes_on = before.is_some();
        let mut started = Swapped::started(hostile(), before);
        assert_eq!(started.slot.previous().is_some(), goes_on);
        started.pass(Duration::from_millis(600));
        for value in ["a", "b", "c"] {
            let _ = started.ask(Behaviour::Traps, &[value]);
            let _ = started.ask(Behaviour::Recurses, &[&value.repeat(2)]);
        }
        assert_eq!(started.outcome().0, expected);
    }
}

#[test]
fn it_goes_back_once() {
    let mut swapped = Swapped::new(hostile(), exact_mirroring());
    let back = swapped.slot.roll_back("somebody asked for it").unwrap();
    for value in ["a", "b", "c", "d"] {
        swapped.ask(Behaviour::Traps, &[value]).unwrap_err();
        swapped.ask(Behaviour::Recurses, &[&value.repeat(2)]).unwrap_err();
    }
    assert_eq!(swapped.outcome(), (1, 0, 0));
    assert_eq!(swapped.slot.current().number(), back.number());
}

#[test]
fn never_to_a_module_that_was_itself_rolled_back() {
    let mut swapped = Swapped::new(hostile(), exact_mirroring());
    swapped.slot.roll_back("somebody asked for it").unwrap();
    swapped.slot.switch(exact_mirroring().clone(), Cause::Swap);
    swapped.slot.switch(relabelled(verbatim_artifact::hostile().unwrap(), 1), Cause::Swap);
    for value in ["a", "b", "c", "d"] {
        swapped.ask(Behaviour::Traps, &[value]).unwrap_err();
        swapped.ask(Behaviour::Recurses, &[&value.repeat(2)]).unwrap_err();
    }
    assert_eq!(swapped.outcome(), (3, 0, 0), "only the three that were asked for");
}

/// A writer must not be able to choose batches on which the module that redacts is taken back for one that does not.
#[test]
fn a_module_that_rewrites_is_not_taken_back_for_one_that_does_not() {
    let redact = verbatim_artifact::redact().unwrap();
    // With so little memory it fails on what it has to hold.
    let small = Engine::new(Limits { memory_bytes: 2 << 20, ..Limits::default() }).unwrap();
    let failing = Module::load(&small, redact).unwrap();
    for (former, expected) in [(exact_mirroring(), (0, 0, 0)), (&relabelled(redact, 1), (1, 3, 3))] {
        let mut swapped = Swapped::new(former, &failing);
        for (partition, value) in [(0, "a"), (0, "b"), (1, "c")] {
            let mut memory = exact();
            memory.policy.partition = partition;
            memory.config = [("redact.drop.keys".to_owned(), "another".to_owned())].into();
            let batch = valued(0, 3, 1, value.repeat(3 << 20).as_bytes());
            let request = tagged(&memory, (100, 3));
            let verdict = memory.produce(&mut swapped.follower, request, vec![], &run(&[batch])).1;
            assert!(matches!(verdict, Err(Denied::Failed(Failure::Memory { .. }))), "{verdict:?}");
        }
        assert_eq!(swapped.outcome(), expected);
    }
    let back = Swapped::new(exact_mirroring(), &failing);
    back.slot.roll_back("somebody asked for it").unwrap();
    assert_eq!(back.slot.current().digest(), exact_mirroring().inspect().digest);
}

#[test]
fn many_threads_take_it_back_once() {
    let mut swapped = Swapped::new(exact_mirroring(), hostile());
    let together = Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (mut follower, together) = (swapped.slot.follower(), &together);
            scope.spawn(move || {
                together.wait();
                for round in 0..50 {
                    let behaviour = FAILING[thread % FAILING.len()];
                    let _ = ask(&mut follower, behaviour, &[&format!("{thread} {round}")]);
                }
            });
        }
    });
    swapped.ask(Behaviour::Traps, &["after"]).unwrap();
    let (switched, witnesses, probes) = swapped.outcome();
    assert_eq!(switched, 1);
    assert!((3..=MAX_PROBES).contains(&witnesses) && probes <= u64::try_from(MAX_PROBES).unwrap());
    assert_eq!(swapped.slot.history().len(), 3);
}

/// The former generation reads the records from their beginning, whatever the failed one had read, and writes no lines.
#[test]
fn the_former_one_reads_what_the_failed_one_read() {
    let slot = Slot::new("policy", exact_mirroring().clone());
    let mut follower = slot.follower();
    let (read, started_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    slot.switch(hostile().clone(), Cause::Swap);
    let mut memory = exact();
    memory.policy.partition = Behaviour::ReadsAndTraps.partition();
    memory.policy.validate_records = true;
    let batch = valued(0, 3, 1, &[7; 10_000]);
    let call = memory.call(tagged(&memory, (100, 3)), vec![], &run(std::slice::from_ref(&batch)));
    let watched = Watched { memory, read: Arc::clone(&read), started_over: Arc::clone(&started_over) };
    let judged = follower.judge(call, watched);
    assert!(matches!(judged.verdict, Err(Denied::Failed(_))));
    assert_eq!(slot.current().counts().probes, 1);
    let records = batch.len() - verbatim_batch::HEADER_LEN;
    assert_eq!(started_over.load(Ordering::Relaxed), 1);
    assert_eq!(read.load(Ordering::Relaxed), batch.len() / 2 + records);
}

/// Counts what is read.
struct Watched {
    memory: Memory,
    read: Arc<AtomicUsize>,
    started_over: Arc<AtomicUsize>,
}

impl Partition for Watched {
    fn compare(&mut self, batch: &Incoming, base_offset: i64) -> Comparison {
        self.memory.compare(batch, base_offset)
    }

    fn cut(&mut self, to: i64) -> CutPreview {
        self.memory.cut(to)
    }

    fn producer(&mut self, producer_id: i64) -> Option<ProducerState> {
        self.memory.producer(producer_id)
    }

    fn replicas(&mut self) -> Vec<Replica> {
        self.memory.replicas()
    }

    fn records(&mut self, index: u32, batch: &Incoming, max: u32) -> Result<Vec<u8>, Unreadable> {
        let piece = self.memory.records(index, batch, max);
        self.read.fetch_add(piece.as_ref().map_or(0, Vec::len), Ordering::Relaxed);
        piece
    }

    fn inflated(&mut self, index: u32, batch: &Incoming) -> Result<Bytes, Unreadable> {
        self.memory.inflated(index, batch)
    }

    fn compress(&mut self, codec: Codec, plain: &[u8]) -> Result<Vec<u8>, String> {
        self.memory.compress(codec, plain)
    }

    fn start_over(&mut self) {
        self.started_over.fetch_add(1, Ordering::Relaxed);
        self.memory.start_over();
    }

    fn config(&mut self, key: &str) -> Option<String> {
        self.memory.config(key)
    }

    fn trace(&mut self, line: &str) {
        self.memory.trace(line);
    }
}
