//! The same policy natively and in the module gives the same verdicts, and none that the host does not carry out.

use verbatim_batch::{BatchBuilder, NewRecord, reseal};
use verbatim_contract::{EpochEntry, Reason, Replica, Request};
use verbatim_engine::{Denied, Judge, Memory, Native, denied_code};
use verbatim_policy::ExactMirroring;

use crate::support::{
    Random, batch, entry, exact, exact_mirroring, fingerprint, normal, request, run, tagged, valued,
};

/// Gives a request to both judges on equal partitions; both must say the same and leave the same.
struct Pair {
    native: Native<ExactMirroring>,
    component: Box<dyn Judge<Memory>>,
    memory: Memory,
}

impl Pair {
    fn new(memory: Memory) -> Self {
        let component = Box::new(exact_mirroring().instance().unwrap());
        Self { native: Native::new(ExactMirroring), component, memory }
    }

    fn produce(
        &mut self,
        request: Request,
        entries: &[EpochEntry],
        batches: &[Vec<u8>],
    ) -> Result<(), Denied> {
        let records = run(batches);
        let (native, expected) =
            self.memory.clone().produce(&mut self.native, request, entries.to_vec(), &records);
        let (component, verdict) =
            self.memory.clone().produce(&mut *self.component, request, entries.to_vec(), &records);
        assert_eq!(verdict, expected);
        assert_eq!(fingerprint(&component), fingerprint(&native));
        self.memory = component;
        verdict.map(|_| ())
    }

    fn refused(&mut self, request: Request, batches: &[Vec<u8>]) -> Reason {
        match self.produce(request, &[], batches) {
            Err(Denied::Refused(refusal)) => refusal.reason,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_exact_topic_is_mirrored() {
    let mut pair = Pair::new(exact());
    let first = [batch(100, 5, 4), batch(110, 5, 1)];
    let into_empty = tagged(&pair.memory, (5_000_000_002, 7));
    pair.produce(into_empty, &[], &first).unwrap();
    assert_eq!((pair.memory.end, pair.memory.shown_epoch), (111, 7));
    assert_eq!(pair.memory.stored.bytes(), first.concat());

    pair.produce(into_empty, &[], &first).unwrap();
    assert_eq!(pair.memory.end, 111, "a retry appends nothing");

    let far = tagged(&pair.memory, (5_000_000_002, 7));
    pair.produce(far, &[entry(6, 200)], &[batch(5_000_000_000, 7, 2)]).unwrap();
    assert_eq!(pair.memory.epochs.entries(), [entry(5, 100), entry(6, 200), entry(7, 5_000_000_000)]);

    let lower = tagged(&pair.memory, (5_000_000_010, 7));
    assert_eq!(pair.refused(lower, &[batch(5_000_000_002, 6, 1)]), Reason::EpochRegressed);
    assert_eq!(pair.refused(into_empty, &[valued(100, 5, 4, b"other")]), Reason::PositionMismatch);
    let untagged = Request { has_tag: false, ..lower };
    assert_eq!(pair.refused(untagged, &[batch(5_000_000_002, 7, 1)]), Reason::TagMissing);
}

#[test]
fn a_normal_topic_assigns() {
    let mut pair = Pair::new(normal());
    pair.produce(request(), &[], &[batch(0, -1, 3)]).unwrap();
    pair.produce(request(), &[], &[batch(0, -1, 2)]).unwrap();
    assert_eq!(pair.memory.end, 5);
    let bases: Vec<_> = pair.memory.stored.batches().iter().map(|(header, _)| header.base_offset).collect();
    assert_eq!(bases, [0, 3]);
    assert!(pair.memory.stored.batches().iter().all(|(_, bytes)| verbatim_batch::crc_matches(bytes)));

    pair.memory.policy.log_append_time = true;
    pair.produce(request(), &[], &[batch(0, -1, 2)]).unwrap();
    let (header, bytes) = pair.memory.stored.batches().last().unwrap();
    assert_eq!(header.max_timestamp, request().now_ms);
    assert!(verbatim_batch::crc_matches(bytes), "the checksum is made anew");
    pair.memory.policy.log_append_time = false;

    let mut damaged = batch(0, -1, 2);
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(pair.refused(request(), &[damaged]), Reason::Checksum);
    assert_eq!(pair.refused(request(), &[batch(0, -1, 1), batch(0, -1, 1)]), Reason::MultipleBatches);
    let empty_run = pair.refused(request(), &[]);
    assert_eq!(empty_run, Reason::NoBatch);
}

#[test]
fn an_idempotent_retry_is_known_by_its_producer() {
    let mut pair = Pair::new(normal());
    let sequenced = |sequence| {
        let builder = BatchBuilder::new(0).producer(7, 0, sequence);
        builder.record(NewRecord::new(0, 1_700_000_000_000).value(b"v")).build().unwrap()
    };
    pair.produce(request(), &[], &[sequenced(0)]).unwrap();
    pair.produce(request(), &[], &[sequenced(1)]).unwrap();
    pair.produce(request(), &[], &[sequenced(0)]).unwrap();
    assert_eq!(pair.memory.end, 2);
    assert_eq!(pair.refused(request(), &[sequenced(5)]), Reason::OutOfOrderSequence);
}

#[test]
fn too_few_replicas_show() {
    for memory in [exact(), normal()] {
        let mut pair = Pair::new(memory);
        pair.memory.policy.min_insync = 2;
        let request = Request { has_tag: pair.memory.policy.exact, ..tagged(&pair.memory, (1, 0)) };
        let batches = [batch(0, 0, 1)];
        pair.memory.replicas[1].online = false;
        pair.produce(request, &[], &batches).unwrap();
        pair.memory.replicas[2].in_sync = false;
        let request = Request { expected_end: 1, epoch_before: 0, ..request };
        let next = [if pair.memory.policy.exact { batch(1, 0, 1) } else { batch(0, 0, 1) }];
        let denied = pair.produce(request, &[], &next).unwrap_err();
        assert_eq!(denied_code(&denied).number, 19);
    }
}

#[test]
fn who_may_join_is_the_same() {
    let mut pair = Pair::new(exact());
    let request = tagged(&pair.memory, (20, 3));
    pair.produce(request, &[], &[batch(0, 2, 10), batch(10, 3, 10)]).unwrap();
    let position = pair.memory.position();
    for (online, end) in [(true, 20), (true, 19), (true, 9), (false, 20)] {
        let replica = Replica { id: 2, in_sync: false, online };
        let native: &mut dyn Judge<Memory> = &mut pair.native;
        let native = native.may_join(&replica, end, &position);
        let component = pair.component.may_join(&replica, end, &position);
        assert_eq!(component, native);
        assert_eq!(native.is_ok(), online && end == 20);
        assert_eq!(verbatim_engine::may_join(&replica, end, &position).is_ok(), native.is_ok());
    }
}

/// Random requests against random logs: equal verdicts, and never one that breaks an invariant.
#[test]
fn random_requests_are_judged_alike() {
    let mut random = Random::seeded();
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..200 {
        let mut pair = Pair::new(if random.below(2) == 0 { exact() } else { normal() });
        pair.memory.policy.rewind_truncate = random.below(4) > 0;
        pair.memory.policy.validate_records |= random.below(2) == 0;
        for _ in 0..60 {
            let (request, entries, batches) = if pair.memory.policy.exact {
                random_exact(&mut random, &pair.memory)
            } else {
                random_normal(&mut random)
            };
            match pair.produce(request, &entries, &batches) {
                Ok(()) => accepted += 1,
                Err(Denied::Refused(_)) => refused += 1,
                Err(Denied::Failed(failure)) => {
                    panic!("{failure}: {request:?} {entries:?} on {:?}", pair.memory)
                }
            }
        }
    }
    println!("accepted {accepted}, refused {refused}");
    assert!(accepted > 1000 && refused > 1000, "accepted {accepted}, refused {refused}: too few of one kind");
}

type Produced = (Request, Vec<EpochEntry>, Vec<Vec<u8>>);

fn random_exact(random: &mut Random, memory: &Memory) -> Produced {
    let last = memory.epochs.last().map_or(0, |entry| entry.epoch);
    let epoch = |random: &mut Random| last + [0, 0, 0, 1, 2, -1][random.index(6)];
    let mut batches: Vec<Vec<u8>> = Vec::new();
    let stored = memory.stored.batches();
    if random.below(3) == 0 && !stored.is_empty() {
        let from = stored.len() - 1 - random.index(stored.len().min(3));
        batches.extend(stored[from..].iter().map(|(_, bytes)| bytes.to_vec()));
    }
    let truncate_to = (random.below(4) == 0).then(|| memory.end - random.near(6));
    let mut base = if batches.is_empty() { truncate_to.unwrap_or(memory.end) } else { memory.end };
    for _ in 0..random.below(4) {
        base += [0, 0, 0, 3, -2][random.index(5)];
        let count = 1 + i32::try_from(random.below(3)).unwrap();
        batches.push(valued(
            base.max(0),
            epoch(random).max(0),
            count,
            &[b'a' + u8::try_from(random.below(3)).unwrap()],
        ));
        base += i64::from(count);
    }
    let damaged = batches.last_mut().filter(|_| random.below(12) == 0);
    if let Some(byte) = damaged.and_then(|batch| batch.last_mut()) {
        *byte ^= 1;
    }
    let entries =
        (0..random.below(3)).map(|_| entry(epoch(random) + 1, memory.end + random.near(5))).collect();
    let ground = truncate_to.unwrap_or(memory.end);
    let request = Request {
        expected_end: memory.end + if random.below(8) == 0 { random.near(3) } else { 0 },
        epoch_before: memory.epochs.before(ground) - i32::from(random.below(10) == 0),
        source_start: random.near(4).max(0),
        source_end: memory.end + 10,
        end_to: (random.below(4) == 0).then(|| base + random.near(4)),
        truncate_to,
        ..tagged(memory, (0, last + i32::try_from(random.below(3)).unwrap()))
    };
    (request, entries, batches)
}

fn random_normal(random: &mut Random) -> Produced {
    let producer = [-1, 7, 8][random.index(3)];
    let sequence = if producer < 0 { -1 } else { i32::try_from(random.below(6)).unwrap() };
    let epoch = i16::try_from(random.below(2)).unwrap() - i16::from(producer < 0);
    let builder = BatchBuilder::new(0).producer(producer, epoch, sequence);
    let count = 1 + i32::try_from(random.below(2)).unwrap();
    let record = |delta| NewRecord::new(delta, 1_700_000_000_000).key(b"k").value(b"v");
    let mut bytes = (0..count).fold(builder, |builder, delta| builder.record(record(delta))).build().unwrap();
    if random.below(4) == 0 {
        let at = random.index(bytes.len());
        bytes[at] ^= 1 << random.below(8);
        if random.below(2) == 0 {
            reseal(&mut bytes).unwrap();
        }
    }
    (request(), vec![], vec![bytes])
}
